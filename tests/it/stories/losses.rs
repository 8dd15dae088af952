//! What a daemon does when its log is not what it was, and what is in no log.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use wharfinger::sim::node::{Register, Run, Script};

use super::stage::{Stage, healthy};

const BOT: &str = "acme/bot";
const BEE: &str = "acme/bee";

/// A host that is live, and its pod.
async fn live(stage: &mut Stage, app: &str) -> (String, String) {
    let host = stage.deploy(app, healthy());
    stage.until_live(app, &host).await;
    let uid = stage.uid(&host).await.expect("a live host has a pod");
    (host, uid)
}

/// The daemon goes on without what its store lost: the pods of both apps stay what they are, and a third app goes live.
async fn goes_on(stage: &mut Stage, hosts: &[(String, String)]) {
    stage.start();
    let (third, _) = live(stage, "acme/cat").await;
    stage.beats(8).await;
    for (host, uid) in hosts {
        assert_eq!(stage.uid(host).await.as_ref(), Some(uid), "{host} is the pod that it was");
        assert_eq!(stage.creates_of(host), 1, "{host}");
    }
    // It acts on what it found, too.
    let next = stage.deploy(BOT, healthy());
    stage.until_live(BOT, &next).await;
    stage.until_nothing_left(&hosts[0].0).await;
    assert!(stage.serves(&third).await);
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("made");
    for entry in fs::read_dir(from).expect("readable") {
        let entry = entry.expect("readable");
        let to = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy(&entry.path(), &to);
        } else {
            fs::copy(entry.path(), to).expect("copied");
        }
    }
}

pub(super) async fn lost_tail(mut stage: Stage) {
    let bot = live(&mut stage, BOT).await;
    stage.kill();
    let store = stage.data().join("log/store");
    let kept = stage.data().join("kept");
    copy(&store, &kept);
    stage.start();
    let bee = live(&mut stage, BEE).await;
    stage.kill();
    // A disk that lies: the store is what it was, and the marks know of more.
    fs::remove_dir_all(&store).expect("removed");
    fs::rename(&kept, &store).expect("renamed");
    goes_on(&mut stage, &[bot, bee]).await;
    assert!(stage.said().contains("log_lost_tail"), "{}", stage.said());
    // Whole, with the gap named; no number twice.
    stage.end();
    let began = stage.records("daemon/story").into_iter().filter(|record| record["kind"] == "LogRestarted");
    let reasons: Vec<String> = began.map(|record| record["payload"]["reason"].as_str().unwrap_or_default().to_owned()).collect();
    assert_eq!(reasons, ["NewFolder", "LostTail"]);
}

pub(super) async fn set_aside(mut stage: Stage) {
    let bot = live(&mut stage, BOT).await;
    let bee = live(&mut stage, BEE).await;
    stage.kill();
    let store = stage.data().join("log/store");
    // A store without its data file is none, whatever else of it is there.
    fs::rename(store.join("db"), store.join("db.lost")).expect("renamed");
    goes_on(&mut stage, &[bot, bee]).await;
    assert!(stage.said().contains("log_set_aside"), "{}", stage.said());
    stage.end();
    let beside: Vec<PathBuf> = fs::read_dir(stage.data()).expect("readable").map(|entry| entry.expect("readable").path()).collect();
    let aside = beside.iter().find(|path| path.display().to_string().contains("log-set-aside-20")).expect("a folder with a date");
    assert!(aside.join("store/db.lost").is_file() && aside.join("marks").is_file());
    let began = stage.records("daemon/story").into_iter().find(|record| record["kind"] == "LogRestarted").expect("it began");
    assert_eq!(began["payload"]["reason"], "SetAside", "{began}");
    assert!(began["seq"].as_u64().is_some_and(|seq| seq > 65_536), "no number is used twice: {began}");
}

pub(super) async fn no_secret_is_kept(mut stage: Stage) {
    // What the gateway gives this app as its environment.
    let secret = "hello from acme/bot";
    let lines = vec![format!("GREETING={secret}"), format!("{secret}{secret}"), "an end".to_owned()];
    let run = Run { first_lines: lines, ..Run::ends(Duration::from_millis(50), 3) };
    stage.deploy(BOT, Script { register: Register::Never, ..healthy().app(run) });
    let why = stage.until_failed(BOT).await;
    assert!(why.contains("GREETING=[GREETING]") && !why.contains(secret), "{why}");
    let said = stage.said();
    stage.end();
    assert!(!said.contains(secret), "{said}");
    let (mut folders, mut looked_at) = (vec![stage.data()], 0);
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).expect("readable") {
            let path = entry.expect("readable").path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let bytes = fs::read(&path).expect("readable");
            looked_at += bytes.len();
            let found = bytes.windows(secret.len()).any(|window| window == secret.as_bytes());
            assert!(!found, "{} holds a value of the environment", path.display());
        }
    }
    assert!(looked_at > 10_000, "{looked_at} bytes are no data folder");
    let kept = stage.records(BOT).iter().any(|record| record.to_string().contains("GREETING=[GREETING]"));
    assert!(kept, "what it printed is kept, without the value");
}
