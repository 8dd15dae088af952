//! What an auditor asks of the control listener. The proofs themselves are tested where they are made.

use futures_util::future::BoxFuture;
use serde_json::{Value, json};

use super::control::served;
use super::get;
use crate::events::tree::TreeHead;
use crate::http::proofs::{Asked, Leaf, NotProved, ProofsView, Proved, ProvedOf};
use crate::ids::{LogId, Seq};

/// A log of eight records, whose newest checkpoint has six.
pub(super) struct Eight;

const LOG: LogId = LogId([1; 16]);

fn tree(size: u64) -> TreeHead {
    TreeHead { size, root: [0; 32] }
}

impl ProofsView for Eight {
    fn key(&self) -> String {
        "name+00000000+key".to_owned()
    }

    fn checkpoint(&self) -> Option<String> {
        Some("a note\n".to_owned())
    }

    fn prove(&self, asked: Asked) -> BoxFuture<'_, Result<Proved, NotProved>> {
        let of = match asked {
            Asked::Consistency { first: 4, second } => Ok(ProvedOf::Consistency(tree(4), tree(second.unwrap_or(6)))),
            Asked::Consistency { first: 9, .. } => Err(NotProved::Ahead { log: LOG, size: 8 }),
            Asked::Consistency { first: 1, .. } => Err(NotProved::Gone(0)),
            Asked::Consistency { first: 2, .. } => Err(NotProved::NoLog),
            Asked::Consistency { first: 3, .. } => Err(NotProved::Unreadable("record 3 is damaged".to_owned())),
            Asked::Consistency { second, .. } => Err(NotProved::Outside(second.unwrap_or(6))),
            Asked::Inclusion { leaf: Leaf::Seq(Seq(77)), .. } => Err(NotProved::NoRecord { log: LOG, seq: Seq(77) }),
            Asked::Inclusion { size, .. } => Ok(ProvedOf::Inclusion(5, [0; 32], tree(size.unwrap_or(6)))),
        };
        Box::pin(std::future::ready(of.map(|of| Proved { log: LOG, of, hashes: vec![[0; 32]] })))
    }
}

#[tokio::test]
async fn an_auditor_gets_key_checkpoint_and_proofs() {
    let served = served().await;
    for (path, body) in [("/v1/log/key", "name+00000000+key\n"), ("/v1/log/checkpoint", "a note\n")] {
        let answer = get(served.address, path, "").await;
        assert_eq!((answer.status, answer.body.as_slice()), (200, body.as_bytes()), "{path}");
        assert!(answer.head.contains("content-type: text/plain"), "{}", answer.head);
    }
    let hash = "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=";
    let root = |size: u64| json!({"size": size, "root": hash});
    let log = LOG.to_string();
    for (path, expected) in [
        ("first=4&second=8", json!({"log": log, "first": root(4), "second": root(8), "consistency": [hash]})),
        ("first=4", json!({"log": log, "first": root(4), "second": root(6), "consistency": [hash]})),
        ("leaf=5&size=8", json!({"log": log, "leaf": {"index": 5, "hash": hash}, "tree": root(8), "audit_path": [hash]})),
        ("seq=6", json!({"log": log, "leaf": {"index": 5, "hash": hash}, "tree": root(6), "audit_path": [hash]})),
    ] {
        let answer = get(served.address, &format!("/v1/log/proof?{path}"), "").await;
        let body: Value = serde_json::from_slice(&answer.body).expect("JSON");
        assert_eq!((answer.status, body), (200, expected), "{path}");
    }
}

#[tokio::test]
async fn what_cannot_be_proved_has_its_code() {
    let served = served().await;
    for (path, status, code) in [
        ("", 400, "bad_proof"),
        ("first=-1", 400, "bad_proof"),
        ("first=x", 400, "bad_proof"),
        ("first=99999999999999999999", 400, "bad_proof"),
        ("second=4", 400, "bad_proof"),
        ("first=4&first=4", 400, "bad_proof"),
        ("first=4&leaf=1", 400, "bad_proof"),
        ("leaf=1&seq=1", 400, "bad_proof"),
        ("first=4&more=1", 400, "bad_proof"),
        ("first=8&second=4", 400, "bad_proof"),
        ("first=9", 409, "ahead"),
        ("first=1", 410, "gone"),
        ("first=2", 503, "log_not_open"),
        ("first=3", 500, "log_unreadable"),
        ("seq=77", 404, "not_found"),
    ] {
        let answer = get(served.address, &format!("/v1/log/proof?{path}"), "").await;
        assert_eq!((answer.status, answer.code().as_str()), (status, code), "{path}");
    }
    let foreign = get(served.address, "/v1/log/checkpoint", "Origin: https://evil.example\r\n").await;
    assert_eq!((foreign.status, foreign.code().as_str()), (403, "foreign_origin"));
}
