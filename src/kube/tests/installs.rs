//! The install's script, run for real: what is fetched is checked before anything looks inside.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::path::Path;
use std::process::{Command, Output};

use sha2::{Digest as _, Sha256};

use crate::ids::hex;
use crate::kube::install::fetch_and_unpack;

/// Serves a body once over HTTP on loopback; gives the URL.
fn serve(status: &'static str, body: Vec<u8>) -> String {
    serve_in_turn(vec![Some((status, body))])
}

/// Serves one connection after the other; one without an answer is closed at once.
fn serve_in_turn(answers: Vec<Option<(&'static str, Vec<u8>)>>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("http://{}/sources/x", listener.local_addr().expect("an address"));
    std::thread::spawn(move || {
        for answer in answers {
            let (mut stream, _) = listener.accept().expect("a connection");
            let Some((status, body)) = answer else { continue };
            let mut head = [0; 4096];
            let _ = stream.read(&mut head);
            let length = body.len();
            let _ = write!(stream, "HTTP/1.1 {status}\r\ncontent-length: {length}\r\nlocation: /other\r\nconnection: close\r\n\r\n");
            let _ = stream.write_all(&body);
        }
    });
    url
}

/// Long enough for three tries, with pauses of one and two seconds.
const FETCH_WITHIN_S: &str = "4";

fn run(folder: &Path, shell: &[&str], url: &str, sha256: &str, most: &str) -> Output {
    let app = folder.join("app");
    std::fs::create_dir_all(&app).expect("a folder");
    Command::new(shell[0])
        .args(&shell[1..])
        .args(["-c", &fetch_and_unpack(), "install", url, sha256, app.to_str().expect("a path"), most, FETCH_WITHIN_S])
        .env("TMPDIR", folder)
        .output()
        .unwrap_or_else(|error| panic!("{} is needed to test the install's script: {error}", shell[0]))
}

/// A gzipped tarball of `name` with `content`, or with a name of our making.
fn tarball(names: &[(&str, &str)]) -> Vec<u8> {
    let folder = tempfile::tempdir().expect("a folder");
    let list = folder.path().join("list.tgz");
    std::fs::write(folder.path().join("plain"), "content\n").expect("written");
    let mut command = Command::new("tar");
    command.args(["-czf", list.to_str().expect("a path"), "-P", "-C", folder.path().to_str().expect("a path")]);
    for (from, to) in names {
        command.arg(format!("--transform=s,^{from}$,{to},"));
    }
    assert!(command.arg("plain").status().expect("tar").success());
    std::fs::read(list).expect("the tarball")
}

#[test]
fn b65_a_package_is_checked_before_it_is_unpacked() {
    let node = Command::new("node").arg("--version").output();
    assert!(node.is_ok_and(|node| node.status.success()), "node is needed to test the install's script");
    let good = tarball(&[]);
    let sha256 = hex(&Sha256::digest(&good));
    for shell in [&["dash"][..], &["bash"], &["busybox", "sh"]] {
        let folder = tempfile::tempdir().expect("a folder");
        let done = run(folder.path(), shell, &serve("200 OK", good.clone()), &sha256, "1000000");
        assert!(done.status.success(), "{shell:?}: {}", String::from_utf8_lossy(&done.stderr));
        assert_eq!(std::fs::read_to_string(folder.path().join("app/plain")).expect("the file"), "content\n");
        assert!(!folder.path().join("package.tgz").exists());
    }
    let wrong = [
        ("200 OK", good.clone(), "0".repeat(64), "1000000", "its SHA-256 is"),
        ("200 OK", good.clone(), sha256.clone(), "10", "over 10 bytes"),
        ("404 Not Found", good.clone(), sha256.clone(), "1000000", "HTTP 404"),
        ("302 Found", good, sha256, "1000000", "HTTP 302"),
    ];
    for (status, body, sha256, most, says) in wrong {
        let folder = tempfile::tempdir().expect("a folder");
        let done = run(folder.path(), &["dash"], &serve(status, body), &sha256, most);
        let said = String::from_utf8_lossy(&done.stderr).into_owned();
        assert!(!done.status.success() && said.contains(says), "{says}: {said}");
        assert_eq!(std::fs::read_dir(folder.path().join("app")).expect("the folder").count(), 0, "{says}");
    }
}

#[test]
fn a_package_that_cannot_be_had_at_first_is_fetched_again() {
    let good = tarball(&[]);
    let sha256 = hex(&Sha256::digest(&good));
    let folder = tempfile::tempdir().expect("a folder");
    let url = serve_in_turn(vec![None, Some(("503 Service Unavailable", Vec::new())), Some(("200 OK", good.clone()))]);
    let begun = crate::clock::now();
    let done = run(folder.path(), &["/bin/sh"], &url, &sha256, "1000000");
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    assert_eq!(std::fs::read_to_string(folder.path().join("app/plain")).expect("the file"), "content\n");
    assert!(begun.elapsed().as_millis() >= 3_000, "a second, then two");
    // A package that is wrong is fetched once: a second connection would have been answered well.
    let folder = tempfile::tempdir().expect("a folder");
    let url = serve_in_turn(vec![Some(("200 OK", b"wrong".to_vec())), Some(("200 OK", good))]);
    assert!(!run(folder.path(), &["/bin/sh"], &url, &sha256, "1000000").status.success());
}

#[test]
fn b65_no_entry_leads_outside() {
    for name in ["../evil", "a/../../evil", "/tmp/evil-absolute", ".."] {
        let evil = tarball(&[("plain", name)]);
        let sha256 = hex(&Sha256::digest(&evil));
        let folder = tempfile::tempdir().expect("a folder");
        let done = run(folder.path(), &["dash"], &serve("200 OK", evil), &sha256, "1000000");
        let said = String::from_utf8_lossy(&done.stderr).into_owned();
        assert!(!done.status.success() && said.contains("leads outside"), "{name}: {said}");
        assert!(!folder.path().join("evil").exists() && !Path::new("/tmp/evil-absolute").exists());
    }
}
