//! Secrets and the NetworkPolicy against an API server by script.

use base64::Engine as _;
use expect_test::expect;
use serde_json::{Value, json};

use super::performing::{cluster, exists, not_found, short};
use super::script::{Say, Script, status};
use super::{app, order, settings, step};
use crate::events::kinds::step::Refusal;
use crate::kube::answer::Answer;
use crate::kube::manifest::Template;
use crate::kube::policy::Confirmed as _;

fn kept_secret(change: impl FnOnce(&mut Value)) -> Value {
    let mut secret = Template::new(&settings()).secret(&order(), "export A='b'\n");
    secret["metadata"]["uid"] = json!("uid-s");
    secret["metadata"]["resourceVersion"] = json!("200");
    change(&mut secret);
    secret
}

const POST_SECRET: &str = "POST /api/v1/namespaces/apps/secrets";
const SECRET: &str = "/api/v1/namespaces/apps/secrets/bot-r2-3c6ef362-env";

async fn put(script: Vec<(&str, Say)>) -> (String, Vec<Value>) {
    let script = Script::new(script);
    let performed = cluster(&script).put_secret(&order(), Some("export A='secret-value'\n"), true).await;
    (short(&performed), script.got().into_iter().map(|got| got.body).collect())
}

#[tokio::test(start_paused = true)]
async fn b13_a_secret_is_created_or_replaced_by_uid_and_version() {
    let get = format!("GET {SECRET}");
    let update = format!("PUT {SECRET}");
    let taken = || status(409, "AlreadyExists", "secrets already exists", "secrets", "bot-r2-3c6ef362-env");
    let (said, bodies) = put(vec![(POST_SECRET, Say::Json(201, kept_secret(|_| {})))]).await;
    expect!["Done status 201 object uid-s@200 observed false attempts 1 requests 1 [create secrets bot-r2-3c6ef362-env #1 201]"]
        .assert_eq(&said);
    assert_eq!(bodies[0]["data"]["env"], json!(base64::prelude::BASE64_STANDARD.encode("export A='secret-value'\n")));

    let (said, bodies) =
        put(vec![(POST_SECRET, taken()), (&get, Say::Json(200, kept_secret(|_| {}))), (&update, Say::Json(200, kept_secret(|_| {})))])
            .await;
    expect!["Done status 200 object uid-s@200 observed false attempts 2 requests 3 [create secrets bot-r2-3c6ef362-env #1 409, update secrets bot-r2-3c6ef362-env #2 200]"].assert_eq(&said);
    assert_eq!((&bodies[2]["metadata"]["uid"], &bodies[2]["metadata"]["resourceVersion"]), (&json!("uid-s"), &json!("200")));

    let stale = status(409, "Conflict", "the object has been modified", "secrets", "bot-r2-3c6ef362-env");
    let (said, _) = put(vec![(POST_SECRET, taken()), (&get, Say::Json(200, kept_secret(|_| {}))), (&update, stale)]).await;
    expect!["RetryLater { after_us: None, slow_down: false, doubtful: false } status 409 object - observed false attempts 2 requests 3 [create secrets bot-r2-3c6ef362-env #1 409, update secrets bot-r2-3c6ef362-env #2 409]"].assert_eq(&said);
    let foreign = kept_secret(|secret| secret["metadata"]["labels"] = json!({}));
    expect!["Refused(Foreign) status 200 object - observed false attempts 1 requests 2 [create secrets bot-r2-3c6ef362-env #1 409]"]
        .assert_eq(&put(vec![(POST_SECRET, taken()), (&get, Say::Json(200, foreign))]).await.0);
    let other = kept_secret(|secret| secret["metadata"]["annotations"]["wharfinger.dev/app"] = json!("acme/other"));
    expect!["Refused(Foreign) status 200 object - observed false attempts 1 requests 2 [create secrets bot-r2-3c6ef362-env #1 409]"]
        .assert_eq(&put(vec![(POST_SECRET, taken()), (&get, Say::Json(200, other))]).await.0);
    let going = kept_secret(|secret| secret["metadata"]["deletionTimestamp"] = json!("2026-11-30T12:00:00Z"));
    expect!["NameHeld status 200 object - observed false attempts 1 requests 2 [create secrets bot-r2-3c6ef362-env #1 409]"]
        .assert_eq(&put(vec![(POST_SECRET, taken()), (&get, Say::Json(200, going))]).await.0);
    expect!["Unknown status 0 object - observed false attempts 1 requests 1 [create secrets bot-r2-3c6ef362-env #1 0]"]
        .assert_eq(&put(vec![(POST_SECRET, Say::Never)]).await.0);
    expect!["Done status 200 object uid-s@200 observed false attempts 1 requests 2 [create secrets bot-r2-3c6ef362-env #1 201]"]
        .assert_eq(&put(vec![(POST_SECRET, Say::Json(201, json!({}))), (&get, Say::Json(200, kept_secret(|_| {})))]).await.0);
}

#[tokio::test(start_paused = true)]
async fn a_secret_is_read_as_metadata_and_its_words_are_redacted() {
    let get = format!("GET {SECRET}");
    let script = Script::new(vec![
        (POST_SECRET, status(422, "Invalid", "Secret is invalid: \"secret-value\" is odd", "secrets", "x")),
        (&get, Say::Json(200, kept_secret(|_| {}))),
        (&get, not_found("secrets", "bot-r2-3c6ef362-env")),
        (&get, not_found("secrets", "bot-r2-3c6ef362-env")),
    ]);
    let cluster = cluster(&script);
    let refused = cluster.put_secret(&order(), Some("export TOKEN='secret-value'\n"), false).await;
    assert_eq!(refused.explained.as_deref(), Some("Secret is invalid: \"[TOKEN]\" is odd"));
    assert_eq!(refused.answer, Answer::Refused(Refusal::Invalid));
    assert_eq!(cluster.put_secret(&order(), None, true).await.answer, Answer::AlreadySo);
    assert_eq!(cluster.put_secret(&order(), None, true).await.answer, Answer::AGAIN);
    assert_eq!(cluster.put_secret(&order(), None, false).await.answer, Answer::AGAIN);
    assert_eq!(cluster.read_secret(&order()).await.answer, Answer::Gone);
    for got in &script.got()[1..] {
        assert_eq!(got.accept, "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1", "{}", got.line);
    }
}

#[tokio::test(start_paused = true)]
async fn secrets_are_listed_in_pages_without_what_they_hold() {
    let page = |names: &[&str], next: &str| {
        let items: Vec<Value> = names
            .iter()
            .map(|name| {
                let mut secret = kept_secret(|secret| secret["metadata"]["name"] = json!(name));
                secret.as_object_mut().expect("an object").remove("data");
                secret
            })
            .collect();
        Say::Json(200, json!({"metadata": {"resourceVersion": "9", "continue": next}, "items": items}))
    };
    let script = Script::new(vec![
        (
            "GET /api/v1/namespaces/apps/secrets?limit=500&labelSelector=wharfinger.dev%2Fmanaged-by%3Dwharfinger",
            page(&["a-env", "b-env"], "to/ken="),
        ),
        ("GET continue=to%2Fken%3D", page(&["c-env", "no suffix"], "")),
    ]);
    let listed = cluster(&script).list_secrets().await.expect("a list");
    assert_eq!(listed.secrets.iter().map(|secret| secret.host.as_str()).collect::<Vec<_>>(), ["a", "b", "c"]);
    let script = Script::new(vec![("GET /", page(&["a-env"], "t")), ("GET /", Say::Json(410, json!({})))]);
    assert!(cluster(&script).list_secrets().await.is_err(), "half a list is none");
}

#[tokio::test(start_paused = true)]
async fn an_environment_is_read_from_our_own_secret_alone() {
    let get = format!("GET {SECRET}");
    let foreign = kept_secret(|secret| secret["metadata"]["labels"] = json!({}));
    let odd = kept_secret(|secret| secret["data"]["env"] = json!("%%%"));
    let script = Script::new(vec![
        (&get, Say::Json(200, kept_secret(|_| {}))),
        (&get, Say::Json(200, foreign)),
        (&get, Say::Json(200, odd)),
        (&get, not_found("secrets", "bot-r2-3c6ef362-env")),
        (&get, Say::Reset),
    ]);
    let cluster = cluster(&script);
    let environment = cluster.secret_env(&app(), &order().host).await.expect("read").expect("ours");
    assert_eq!(environment.iter().collect::<Vec<_>>(), [("A", "b")]);
    for _ in 0..3 {
        assert_eq!(cluster.secret_env(&app(), &order().host).await.expect("read"), None);
    }
    assert!(cluster.secret_env(&app(), &order().host).await.is_err());
    script.got();
}

#[tokio::test(start_paused = true)]
async fn b48_the_policy_is_made_compared_and_repaired() {
    const POLICY: &str = "/apis/networking.k8s.io/v1/namespaces/apps/networkpolicies";
    let name = "wharf-apps-test";
    let (get, post, update) = (format!("GET {POLICY}/{name}"), format!("POST {POLICY}"), format!("PUT {POLICY}/{name}"));
    let there = |change: fn(&mut Value)| {
        let mut policy = crate::kube::policy::Policy::new(&settings()).object();
        policy["metadata"]["uid"] = json!("uid-p");
        policy["metadata"]["resourceVersion"] = json!("300");
        change(&mut policy);
        Say::Json(200, policy)
    };
    let open: fn(&mut Value) = |policy| policy["spec"]["egress"] = json!([{}]);
    let foreign: fn(&mut Value) = |policy| policy["metadata"]["labels"] = json!({});
    let going: fn(&mut Value) = |policy| policy["metadata"]["deletionTimestamp"] = json!("2026-11-30T12:00:00Z");
    let none = || not_found("networkpolicies", name);
    let mut table = String::new();
    for script in [
        vec![(&get, none()), (&post, there(|_| {}))],
        vec![(&get, there(|_| {}))],
        vec![(&get, there(open)), (&update, there(|_| {}))],
        vec![(&get, there(foreign))],
        vec![(&get, there(going))],
        vec![(&get, none()), (&post, exists())],
        vec![(&get, none()), (&post, there(open))],
        vec![(&get, none()), (&post, Say::Never)],
        vec![(&get, none()), (&post, Say::Json(201, json!({})))],
        vec![(&get, status(403, "Forbidden", "cannot get resource", "networkpolicies", name))],
        vec![(&get, there(open)), (&update, exists())],
    ] {
        let script = Script::new(script.into_iter().map(|(line, say)| (line.as_str(), say)).collect());
        let performed = cluster(&script).ensure_policy(step(17), 0).await;
        let got = script.got();
        assert!(got.iter().all(|got| got.line.starts_with("GET") == got.audit_id.is_none()));
        table += &(short(&performed) + "\n");
    }
    expect![[r#"
        Done status 200 object uid-p@300 observed false attempts 1 requests 2 [create networkpolicies wharf-apps-test #1 200]
        AlreadySo status 200 object uid-p@300 observed false attempts 0 requests 1 []
        Done status 200 object uid-p@300 observed false attempts 1 requests 2 [update networkpolicies wharf-apps-test #1 200]
        Refused(NetworkPolicy) status 200 object - observed false attempts 0 requests 1 []
        NameHeld status 200 object uid-p@300 observed false attempts 0 requests 1 []
        RetryLater { after_us: None, slow_down: false, doubtful: false } status 409 object - observed false attempts 1 requests 2 [create networkpolicies wharf-apps-test #1 409]
        Refused(NetworkPolicy) status 200 object uid-p@300 observed false attempts 1 requests 2 [create networkpolicies wharf-apps-test #1 200]
        RetryLater { after_us: None, slow_down: false, doubtful: false } status 0 object - observed false attempts 1 requests 2 [create networkpolicies wharf-apps-test #1 0]
        RetryLater { after_us: None, slow_down: false, doubtful: false } status 201 object - observed false attempts 1 requests 2 [create networkpolicies wharf-apps-test #1 201]
        Forbidden status 403 object - observed false attempts 0 requests 1 []
        RetryLater { after_us: None, slow_down: false, doubtful: false } status 409 object - observed false attempts 1 requests 2 [update networkpolicies wharf-apps-test #1 409]
    "#]].assert_eq(&table);
}
