//! The nodes' own endpoint, asked over HTTPS as an API server asks a kubelet.

use super::support::install_provider;
use crate::sim::api::logs::{LogKey, LogRead};
use crate::sim::node::{Identity, Kubelet};

/// A certificate for 127.0.0.1 that is its own authority.
fn identity() -> Identity {
    let made = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).expect("a certificate");
    Identity { certificate: made.cert.der().to_vec(), key: made.signing_key.serialize_der() }
}

#[tokio::test]
async fn logs_are_served_as_a_kubelet_serves_them() {
    install_provider();
    let identity = identity();
    let kubelet = Kubelet::start(&identity).await.expect("a port");
    let set = |uid: &str, container: &str, read: LogRead| {
        let [namespace, pod, uid, container] = ["apps", "h", uid, container].map(str::to_owned);
        kubelet.logs().set(LogKey { namespace, pod, uid, container }, read);
    };
    set("1", "app", LogRead::Text("one\ntwo\nthree\n".to_owned()));
    set("1", "install", LogRead::Waiting("PodInitializing".to_owned()));
    set("1", "cut-off", LogRead::Unreachable);
    // A pod of the name on a node that is cut off must not hide this one.
    set("0", "app", LogRead::Unreachable);
    set("2", "app", LogRead::Unreachable);

    let authority = reqwest::Certificate::from_der(&identity.certificate).expect("a certificate");
    let client = reqwest::Client::builder().tls_certs_only([authority]).build().expect("a client");
    let url = format!("https://{}/containerLogs/apps", kubelet.address());
    let get = async |path: &str| {
        let answer = client.get(format!("{url}/{path}")).send().await.ok()?;
        let status = answer.status().as_u16();
        Some((status, answer.text().await.ok()?))
    };
    let says = |status: u16, text: &str| Some((status, text.to_owned()));
    assert_eq!(get("h/app").await, says(200, "one\ntwo\nthree\n"));
    assert_eq!(get("h/app?tailLines=2&limitBytes=5").await, says(200, "two\nt"));
    let previous = "previous terminated container \"app\" in pod \"h\" not found";
    assert_eq!(get("h/app?previous=true").await, says(400, previous));
    let waiting = "container \"install\" in pod \"h\" is waiting to start: PodInitializing";
    assert_eq!(get("h/install").await, says(400, waiting));
    assert_eq!(get("h/no").await, says(404, "container \"no\" not found in pod \"h\""));
    assert_eq!(get("no/app").await, says(404, "pod \"no\" does not exist"));
    assert_eq!(get("h/cut-off").await, None, "no answer at all");

    let untrusting = reqwest::Client::builder().tls_certs_only([]).build().expect("a client");
    assert!(untrusting.get(format!("{url}/h/app")).send().await.is_err());
}
