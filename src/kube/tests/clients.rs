//! Where the access comes from, and what is refused before anything is sent.

use std::path::{Path, PathBuf};

use expect_test::expect;

use crate::config::Kubernetes;
use crate::kube::client::{Access, Surroundings, access, connect};

fn kubeconfig(cluster: &str, user: &str) -> String {
    format!(
        "apiVersion: v1\nkind: Config\ncurrent-context: a\n\
         clusters: [{{name: c, cluster: {{{cluster}}}}}]\n\
         users: [{{name: u, user: {{{user}}}}}]\n\
         contexts: [{{name: a, context: {{cluster: c, user: u, namespace: apps}}}}, {{name: b, context: {{cluster: c, user: u, namespace: Bad_Name}}}}]\n"
    )
}

async fn said(text: &str, change: impl FnOnce(&mut Kubernetes)) -> String {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("config");
    std::fs::write(&path, text).expect("written");
    let mut settings = Kubernetes { kubeconfig: path.display().to_string(), ..Kubernetes::default() };
    change(&mut settings);
    let folder = folder.path().display().to_string();
    match connect(&settings, &Surroundings::default()).await {
        Ok(connected) => format!("namespace {}", connected.namespace),
        Err(error) => error.to_string().replace(&folder, "FOLDER"),
    }
}

const LOOPBACK: &str = "server: 'http://127.0.0.1:1'";

#[tokio::test]
async fn what_is_unsafe_or_unusable_is_refused_with_its_reason() {
    let mut table = String::new();
    let mut tell = |text: String| table += &(text + "\n");
    tell(said(&kubeconfig(LOOPBACK, "token: t"), |_| {}).await);
    tell(said(&kubeconfig(LOOPBACK, "token: t"), |settings| settings.namespace = "other".to_owned()).await);
    tell(said(&kubeconfig(LOOPBACK, "token: t"), |settings| settings.namespace = "No".to_owned()).await);
    tell(said(&kubeconfig(LOOPBACK, "token: t"), |settings| settings.context = "b".to_owned()).await);
    tell(said(&kubeconfig(LOOPBACK, "token: t"), |settings| settings.context = "absent".to_owned()).await);
    tell(said(&kubeconfig("server: 'https://10.0.0.1:6443', insecure-skip-tls-verify: true", "token: t"), |_| {}).await);
    tell(said(&kubeconfig("server: 'http://10.0.0.1:6443'", "token: t"), |_| {}).await);
    tell(said(&kubeconfig("server: 'http://127.0.0.1.evil.test'", "token: t"), |_| {}).await);
    tell(said(&kubeconfig("server: 'http://[::1]:1'", "token: t"), |_| {}).await);
    tell(said(&kubeconfig("server: 'https://10.0.0.1', certificate-authority-data: bm90IGEgY2VydA==", "token: t"), |_| {}).await);
    tell(said(&kubeconfig(LOOPBACK, "tokenFile: /nowhere/token"), |_| {}).await);
    tell(said("nonsense: [", |_| {}).await.lines().next().unwrap_or("").to_owned());
    tell(said("", |settings| settings.kubeconfig = "/nowhere/config".to_owned()).await);
    expect![[r#"
        namespace apps
        namespace other
        kubernetes.namespace "No": no DNS label of at most 63 characters
        kubernetes.namespace "Bad_Name": no DNS label of at most 63 characters
        the kubeconfig FOLDER/config: failed to load current context: absent
        the kubeconfig sets insecure-skip-tls-verify: give the cluster's certificate-authority instead
        http://10.0.0.1:6443/ is neither https nor on loopback
        http://127.0.0.1.evil.test/ is neither https nor on loopback
        namespace apps
        the certificate-authority holds no certificate
        the token file /nowhere/token: No such file or directory (os error 2)
        the kubeconfig FOLDER/config: failed to parse kubeconfig YAML: error: line 1 column 11: unclosed bracket '['
        the kubeconfig /nowhere/config: failed to read kubeconfig from '"/nowhere/config"': No such file or directory (os error 2)
    "#]]
    .assert_eq(&table);
}

#[tokio::test]
async fn b41_a_token_file_that_breaks_every_request_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("token");
    for (token, good) in [("abc.def-ghi_=", true), ("abc\n", false), ("", false), ("a b", false), ("abc\u{e9}", false)] {
        std::fs::write(&path, token).expect("written");
        let said = said(&kubeconfig(LOOPBACK, &format!("tokenFile: '{}'", path.display())), |_| {}).await;
        assert_eq!(said == "namespace apps", good, "{token:?}: {said}");
    }
}

#[test]
fn the_access_is_looked_up_in_order_and_nothing_falls_through() {
    let folder = tempfile::tempdir().expect("a folder");
    let home = folder.path().to_path_buf();
    let at_home = home.join(".kube").join("config");
    let setting = |path: &str| Kubernetes { kubeconfig: path.to_owned(), ..Kubernetes::default() };
    let around = |kubeconfig: &str, home: Option<&Path>, in_cluster| Surroundings {
        kubeconfig: Some(kubeconfig.to_owned()).filter(|path| !path.is_empty()),
        home: home.map(Path::to_path_buf),
        in_cluster,
    };
    let files = |paths: &[&str]| Access::Files(paths.iter().map(PathBuf::from).collect());
    let found = |settings: &Kubernetes, around: &Surroundings| access(settings, around).map_err(|error| error.to_string());
    assert_eq!(found(&setting("/x"), &around("/y", Some(&home), true)), Ok(files(&["/x"])));
    assert_eq!(found(&setting(""), &around("/y:/z:", Some(&home), true)), Ok(files(&["/y", "/z"])));
    assert_eq!(found(&setting(""), &around("", Some(&home), true)), Ok(Access::InCluster), "no file at home");
    assert!(found(&setting(""), &around("", Some(&home), false)).is_err());
    assert!(found(&setting(""), &around(":", None, false)).is_err());
    std::fs::create_dir_all(at_home.parent().expect("a folder")).expect("made");
    std::fs::write(&at_home, "").expect("written");
    assert_eq!(found(&setting(""), &around("", Some(&home), true)), Ok(Access::Files(vec![at_home])));
}
