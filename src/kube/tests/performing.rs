//! Steps against an API server by script: what is sent, and what is made of every answer.

use expect_test::expect;
use serde_json::{Value, json};

use super::script::{Piece, Say, Script, status};
use super::{digest, host, order, settings, step};
use crate::events::kinds::step::Refusal;
use crate::events::kinds::tail::TailLack;
use crate::ids::Uid;
use crate::kube::answer::Answer;
use crate::kube::call::{audit_id, uuid};
use crate::kube::manifest::{Order, Template};
use crate::kube::perform::{Cluster, Performed};

pub(super) const HOST: &str = "bot-r2-3c6ef362";

pub(super) fn cluster(script: &Script) -> Cluster {
    Cluster::new(script.client(), "apps", &settings())
}

/// The order's pod as the server keeps it.
pub(super) fn kept(change: impl FnOnce(&mut Value)) -> Value {
    let mut pod = Template::new(&settings()).pod(&order(), &digest());
    pod["metadata"]["uid"] = json!("uid-1");
    pod["metadata"]["resourceVersion"] = json!("100");
    pod["status"] = json!({"phase": "Pending"});
    change(&mut pod);
    pod
}

pub(super) fn exists() -> Say {
    status(409, "AlreadyExists", &format!("pods \"{HOST}\" already exists"), "pods", HOST)
}

pub(super) fn not_found(kind: &str, name: &str) -> Say {
    status(404, "NotFound", &format!("{kind} \"{name}\" not found"), kind, name)
}

pub(super) fn uid(text: &str) -> Uid {
    Uid::new(text).expect("a uid")
}

/// What became of a try, in a line.
pub(super) fn short(performed: &Performed) -> String {
    let calls: Vec<String> = performed
        .calls
        .iter()
        .map(|call| format!("{} {} {} #{} {}", call.verb, call.resource, call.name, call.attempt, call.status))
        .collect();
    let object = performed.object.as_ref().map(|object| format!("{}@{}", object.uid, object.resource_version));
    format!(
        "{:?} status {} object {} observed {} attempts {} requests {} [{}]",
        performed.answer,
        performed.status,
        object.unwrap_or_else(|| "-".to_owned()),
        performed.observed.is_some(),
        performed.attempts,
        performed.requests,
        calls.join(", ")
    )
}

async fn create(script: Vec<(&str, Say)>) -> String {
    let script = Script::new(script);
    let performed = cluster(&script).create_pod(&order(), &digest()).await;
    script.got();
    short(&performed)
}

const POST: &str = "POST /api/v1/namespaces/apps/pods";
const GET: &str = "GET /api/v1/namespaces/apps/pods/bot-r2-3c6ef362";

#[tokio::test(start_paused = true)]
async fn a_pod_is_created_once_with_its_audit_id() {
    let script = Script::new(vec![(POST, Say::Json(201, kept(|_| {})))]);
    let performed = cluster(&script).create_pod(&Order { attempts: 4, ..order() }, &digest()).await;
    expect!["Done status 201 object uid-1@100 observed true attempts 5 requests 1 [create pods bot-r2-3c6ef362 #5 201]"]
        .assert_eq(&short(&performed));
    let got = &script.got()[0];
    assert_eq!(got.audit_id, Some(uuid(&audit_id(step(17), 5))));
    assert_eq!((performed.audit_id, performed.calls[0].audit_id), (audit_id(step(17), 5), audit_id(step(17), 5)));
    assert_eq!(got.body, Template::new(&settings()).pod(&order(), &digest()));
    assert_eq!(performed.explained, None);
}

#[tokio::test(start_paused = true)]
async fn b09_b11_what_has_the_name_is_judged_and_not_touched() {
    let there = |change: fn(&mut Value)| vec![(POST, exists()), (GET, Say::Json(200, kept(change)))];
    expect!["AlreadySo status 200 object uid-1@100 observed true attempts 1 requests 2 [create pods bot-r2-3c6ef362 #1 409]"]
        .assert_eq(&create(there(|_| {})).await);
    // Another log made it, by an equal manifest.
    let other_log = |pod: &mut Value| pod["metadata"]["annotations"]["wharfinger.dev/step"] = json!("cdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcd:9");
    expect!["AlreadySo status 200 object uid-1@100 observed true attempts 1 requests 2 [create pods bot-r2-3c6ef362 #1 409]"]
        .assert_eq(&create(there(other_log)).await);
    // Another log made it, by another manifest.
    let different = |pod: &mut Value| {
        pod["metadata"]["annotations"]["wharfinger.dev/step"] = json!("cdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcd:9");
        pod["metadata"]["annotations"]["wharfinger.dev/digest"] = json!("00");
    };
    expect!["Conflict status 200 object uid-1@100 observed true attempts 1 requests 2 [create pods bot-r2-3c6ef362 #1 409]"]
        .assert_eq(&create(there(different)).await);
    expect!["Refused(Foreign) status 200 object uid-1@100 observed true attempts 1 requests 2 [create pods bot-r2-3c6ef362 #1 409]"]
        .assert_eq(&create(there(|pod| pod["metadata"]["labels"] = json!({}))).await);
    expect!["Refused(Foreign) status 200 object uid-1@100 observed true attempts 1 requests 2 [create pods bot-r2-3c6ef362 #1 409]"]
        .assert_eq(&create(there(|pod| pod["metadata"]["labels"]["wharfinger.dev/instance"] = json!("x"))).await);
    expect!["Refused(Foreign) status 200 object uid-1@100 observed true attempts 1 requests 2 [create pods bot-r2-3c6ef362 #1 409]"]
        .assert_eq(&create(there(|pod| pod["metadata"]["annotations"]["wharfinger.dev/app"] = json!("acme/x"))).await);
    expect!["NameHeld status 200 object uid-1@100 observed true attempts 1 requests 2 [create pods bot-r2-3c6ef362 #1 409]"]
        .assert_eq(&create(there(|pod| pod["metadata"]["deletionTimestamp"] = json!("2026-11-30T12:00:00Z"))).await);
    expect!["RetryLater { after_us: None, slow_down: false, doubtful: false } status 404 object - observed false attempts 1 requests 2 [create pods bot-r2-3c6ef362 #1 409]"].assert_eq(&create(vec![(POST, exists()), (GET, not_found("pods", HOST))]).await);
    expect!["RetryLater { after_us: None, slow_down: false, doubtful: false } status 0 object - observed false attempts 1 requests 2 [create pods bot-r2-3c6ef362 #1 409]"].assert_eq(&create(vec![(POST, exists()), (GET, Say::Reset)]).await);
    expect!["Refused(Foreign) status 200 object - observed false attempts 1 requests 2 [create pods bot-r2-3c6ef362 #1 409]"]
        .assert_eq(&create(vec![(POST, exists()), (GET, Say::Json(200, json!({"metadata": {}})))]).await);
    let held = status(409, "AlreadyExists", "object is being deleted: pods \"x\" already exists", "pods", HOST);
    expect!["NameHeld status 409 object - observed false attempts 1 requests 1 [create pods bot-r2-3c6ef362 #1 409]"]
        .assert_eq(&create(vec![(POST, held)]).await);
}

#[tokio::test(start_paused = true)]
async fn a_create_without_an_answer_is_unknown() {
    for say in [Say::Never, Say::Reset, Say::Json(504, json!({})), Say::Json(502, json!({}))] {
        let script = Script::new(vec![(POST, say)]);
        let performed = cluster(&script).create_pod(&order(), &digest()).await;
        assert_eq!((performed.answer.clone(), performed.attempts), (Answer::Unknown, 1), "{}", short(&performed));
        script.got();
    }
    let script = Script::new(vec![(POST, Say::Refuse)]);
    assert_eq!(cluster(&script).create_pod(&order(), &digest()).await.answer, Answer::AGAIN, "nobody heard it");
    // 201 with a body that cannot be read: it happened.
    let cut = || Say::Stream(vec![Piece::Text("{\"metadata\":{".to_owned()), Piece::Break]);
    expect!["Done status 200 object uid-1@100 observed true attempts 1 requests 2 [create pods bot-r2-3c6ef362 #1 200]"]
        .assert_eq(&create(vec![(POST, cut()), (GET, Say::Json(200, kept(|_| {})))]).await);
    expect!["Unknown status 404 object - observed false attempts 1 requests 2 [create pods bot-r2-3c6ef362 #1 201]"]
        .assert_eq(&create(vec![(POST, Say::Json(201, json!({}))), (GET, not_found("pods", HOST))]).await);
    let other = kept(|pod| pod["metadata"]["annotations"]["wharfinger.dev/step"] = json!("abababababababababababababababab:16"));
    expect!["Unknown status 200 object - observed false attempts 1 requests 2 [create pods bot-r2-3c6ef362 #1 200]"]
        .assert_eq(&create(vec![(POST, cut()), (GET, Say::Json(200, other))]).await);
    let hangs = Say::Stream(vec![Piece::Text("{".to_owned()), Piece::Hang]);
    expect!["Unknown status 0 object - observed false attempts 1 requests 1 [create pods bot-r2-3c6ef362 #1 0]"]
        .assert_eq(&create(vec![(POST, hangs)]).await);
}

#[tokio::test(start_paused = true)]
async fn b24_what_the_server_says_is_kept() {
    let said = "pods \"x\" is forbidden: exceeded quota: q, requested: pods=1";
    let script = Script::new(vec![(POST, status(403, "Forbidden", said, "pods", HOST))]);
    let performed = cluster(&script).create_pod(&order(), &digest()).await;
    assert_eq!((performed.answer, performed.explained.as_deref()), (Answer::Refused(Refusal::Quota), Some(said)));
    let busy = Say::Raw(429, vec![("retry-after", "3".to_owned())], b"Too many requests".to_vec());
    let script = Script::new(vec![(POST, busy)]);
    let performed = cluster(&script).create_pod(&order(), &digest()).await;
    assert_eq!(performed.answer, Answer::RetryLater { after_us: Some(3_000_000), slow_down: true, doubtful: false });
}

async fn delete(script: Vec<(&str, Say)>) -> String {
    let script = Script::new(script);
    let performed = cluster(&script).delete_pod(&order(), &uid("uid-1"), 45, false).await;
    script.got();
    short(&performed)
}

#[tokio::test(start_paused = true)]
async fn b15_every_delete_carries_the_uid_and_is_told_as_it_is() {
    const DELETE: &str = "DELETE /api/v1/namespaces/apps/pods/bot-r2-3c6ef362";
    let script = Script::new(vec![(DELETE, Say::Json(200, kept(|_| {}))), (DELETE, Say::Json(200, json!({"kind": "Status"})))]);
    let cluster = cluster(&script);
    expect!["Done status 200 object uid-1@100 observed false attempts 1 requests 1 [delete pods bot-r2-3c6ef362 #1 200]"]
        .assert_eq(&short(&cluster.delete_pod(&order(), &uid("uid-1"), 45, false).await));
    expect!["Done status 200 object - observed false attempts 1 requests 1 [delete pods bot-r2-3c6ef362 #1 200]"]
        .assert_eq(&short(&cluster.delete_pod(&order(), &uid("uid-1"), 45, true).await));
    let bodies: Vec<Value> = script.got().into_iter().map(|got| got.body).collect();
    let options = |grace| json!({"apiVersion": "v1", "kind": "DeleteOptions", "gracePeriodSeconds": grace, "preconditions": {"uid": "uid-1"}, "propagationPolicy": "Background"});
    assert_eq!(bodies, [options(45), options(0)]);

    let differs = || status(409, "Conflict", "the UID in the precondition does not match", "Pod", HOST);
    expect!["Gone status 404 object - observed false attempts 1 requests 1 [delete pods bot-r2-3c6ef362 #1 404]"]
        .assert_eq(&delete(vec![(DELETE, not_found("pods", HOST))]).await);
    expect!["Gone status 200 object - observed false attempts 1 requests 2 [delete pods bot-r2-3c6ef362 #1 409]"]
        .assert_eq(&delete(vec![(DELETE, differs()), (GET, Say::Json(200, kept(|pod| pod["metadata"]["uid"] = json!("uid-2"))))]).await);
    expect!["RetryLater { after_us: None, slow_down: false, doubtful: false } status 200 object - observed false attempts 1 requests 2 [delete pods bot-r2-3c6ef362 #1 409]"].assert_eq(&delete(vec![(DELETE, differs()), (GET, Say::Json(200, kept(|_| {})))]).await);
    expect!["Gone status 404 object - observed false attempts 1 requests 2 [delete pods bot-r2-3c6ef362 #1 409]"]
        .assert_eq(&delete(vec![(DELETE, differs()), (GET, not_found("pods", HOST))]).await);
    expect!["Forbidden status 403 object - observed false attempts 1 requests 1 [delete pods bot-r2-3c6ef362 #1 403]"]
        .assert_eq(&delete(vec![(DELETE, status(403, "Forbidden", "cannot delete resource", "pods", HOST))]).await);
    expect!["RetryLater { after_us: None, slow_down: false, doubtful: true } status 500 object - observed false attempts 1 requests 1 [delete pods bot-r2-3c6ef362 #1 500]"].assert_eq(&delete(vec![(DELETE, Say::Json(500, json!({})))]).await);
    expect!["RetryLater { after_us: None, slow_down: false, doubtful: false } status 404 object - observed false attempts 1 requests 1 [delete pods bot-r2-3c6ef362 #1 404]"].assert_eq(&delete(vec![(DELETE, Say::Raw(404, Vec::new(), b"404 page not found".to_vec()))]).await);
    expect!["Unknown status 0 object - observed false attempts 1 requests 1 [delete pods bot-r2-3c6ef362 #1 0]"]
        .assert_eq(&delete(vec![(DELETE, Say::Never)]).await);
}

#[tokio::test(start_paused = true)]
async fn b39_a_tail_is_of_exactly_that_pod_and_bounded() {
    const LOG: &str = "GET /api/v1/namespaces/apps/pods/bot-r2-3c6ef362/log?container=app&tailLines=300&limitBytes=1048576";
    let started: fn(&mut Value) =
        |pod| pod["status"] = json!({"containerStatuses": [{"name": "app", "state": {"terminated": {"exitCode": 1}}}]});
    let waiting: fn(&mut Value) =
        |pod| pod["status"] = json!({"containerStatuses": [{"name": "app", "state": {"waiting": {"reason": "x"}}}]});
    let text = |text: &str| Say::Raw(200, Vec::new(), text.as_bytes().to_vec());
    let pod = |change: fn(&mut Value)| Say::Json(200, kept(change));
    let read = async |script: Vec<(&str, Say)>| {
        let script = Script::new(script);
        let tail = cluster(&script).read_tail(&host(HOST), &uid("uid-1"), "app", false).await;
        script.got();
        tail.map(|tail| (String::from_utf8_lossy(&tail.bytes[..tail.bytes.len().min(20)]).into_owned(), tail.bytes.len(), tail.ended))
    };
    assert_eq!(read(vec![(LOG, text("a\nb\n")), (GET, pod(started))]).await, Ok(("a\nb\n".to_owned(), 4, true)));
    assert_eq!(read(vec![(LOG, text("")), (GET, pod(started))]).await, Ok((String::new(), 0, true)));
    assert_eq!(read(vec![(LOG, text("")), (GET, pod(waiting))]).await, Err(TailLack::NotStarted));
    let new: fn(&mut Value) = |pod| pod["metadata"]["uid"] = json!("uid-2");
    assert_eq!(read(vec![(LOG, text("a\n")), (GET, pod(new))]).await, Err(TailLack::Gone), "another pod's lines");
    assert_eq!(read(vec![(LOG, text("a\n")), (GET, not_found("pods", HOST))]).await, Err(TailLack::Gone));
    assert_eq!(read(vec![(LOG, not_found("pods", HOST))]).await, Err(TailLack::Gone));
    let creating = status(400, "BadRequest", "container \"app\" in pod \"x\" is waiting to start: ContainerCreating", "pods", HOST);
    assert_eq!(read(vec![(LOG, creating)]).await, Err(TailLack::NotStarted));
    assert_eq!(read(vec![(LOG, Say::Json(500, json!({})))]).await, Err(TailLack::Refused));
    assert_eq!(read(vec![(LOG, Say::Never)]).await, Err(TailLack::TimedOut));
    let broken = Say::Stream(vec![Piece::Text("half".to_owned()), Piece::Break]);
    assert_eq!(read(vec![(LOG, broken), (GET, pod(started))]).await, Ok(("half".to_owned(), 4, true)), "what came is kept");
    let endless = || Say::Raw(200, Vec::new(), vec![b'x'; 3 << 20]);
    let script = vec![(LOG, endless()), ("GET tailLines=30&", endless()), ("GET tailLines=3&", endless()), (GET, pod(started))];
    assert_eq!(read(script).await, Ok(("x".repeat(20), 1 << 20, true)));
}

#[tokio::test(start_paused = true)]
async fn a_pod_is_read_after_a_write_that_was_never_answered() {
    let script = Script::new(vec![
        (GET, Say::Json(200, kept(|_| {}))),
        (GET, not_found("pods", HOST)),
        (GET, Say::Json(200, kept(|pod| pod["metadata"]["labels"] = json!({})))),
        (GET, Say::Never),
    ]);
    let cluster = cluster(&script);
    let mut table = String::new();
    for _ in 0..4 {
        table += &(short(&cluster.read_pod(&order()).await) + "\n");
    }
    expect![[r#"
        Done status 200 object uid-1@100 observed true attempts 0 requests 1 []
        Gone status 404 object - observed false attempts 0 requests 1 []
        Refused(Foreign) status 200 object uid-1@100 observed true attempts 0 requests 1 []
        RetryLater { after_us: None, slow_down: false, doubtful: false } status 0 object - observed false attempts 0 requests 1 []
    "#]]
    .assert_eq(&table);
    assert!(script.got().iter().all(|got| got.audit_id.is_none()));
}
