//! Faults of the embedded API server: what the caller sees, what was done, what the audit says.

use std::time::Duration;

use futures_util::StreamExt as _;
use serde_json::{Value, json};

use super::support::{api, ask};
use crate::sim::api::{Action, Canned, ClusterApi, Cut, Match, Verb};

const SECRETS: &str = "/api/v1/namespaces/apps/secrets";

fn secret(name: &str) -> Value {
    json!({"metadata": {"name": name}, "stringData": {"env": "A=1"}})
}

async fn send(client: &::kube::Client, body: &Value) -> Result<u16, String> {
    let request = http::Request::post(SECRETS).header("content-type", "application/json").header("audit-id", "a-1");
    let request = request.body(::kube::client::Body::from(body.to_string().into_bytes())).expect("a valid request");
    let response = client.send(request).await.map_err(|error| error.to_string())?;
    let code = response.status().as_u16();
    response.into_body().collect_bytes().await.map_err(|error| error.to_string())?;
    Ok(code)
}

fn audited(api: &ClusterApi) -> Vec<String> {
    let entries = api.audit().since(0).into_iter();
    entries.map(|entry| format!("{} {} {} {} {:?}", entry.audit_id, entry.verb, entry.name, entry.code, entry.fault)).collect()
}

#[tokio::test(start_paused = true)]
async fn b13_a_write_is_lost_before_or_after_it_was_done() {
    let api = api();
    let client = api.client("apps");
    api.faults().once(Match::on(Verb::Create, "secrets"), Action::DropBefore);
    api.faults().once(Match::on(Verb::Create, "secrets"), Action::DropAfter);
    api.faults().once(Match::on(Verb::Create, "secrets"), Action::CutBody);
    assert!(send(&client, &secret("a")).await.is_err());
    assert!(api.object("secrets", "apps", "a").is_none(), "nothing was done");
    assert!(send(&client, &secret("a")).await.is_err());
    assert!(api.object("secrets", "apps", "a").is_some(), "it was done");
    assert!(send(&client, &secret("b")).await.is_err());
    assert!(api.object("secrets", "apps", "b").is_some(), "it was done");
    assert_eq!(send(&client, &secret("c")).await, Ok(201), "each fault is met once");
    let expected = [
        "a-1 create a 0 Some(\"drop_before\")",
        "a-1 create a 201 Some(\"drop_after\")",
        "a-1 create b 201 Some(\"cut_body\")",
        "a-1 create c 201 None",
    ];
    assert_eq!(audited(&api), expected);
}

#[tokio::test(start_paused = true)]
async fn answers_are_scripted_for_the_nth_match_of_a_name() {
    let api = api();
    let client = api.client("apps");
    api.faults().set(Match::on(Verb::Create, "secrets").named("a"), 1, 2, Action::Answer(Canned::overloaded(7)));
    let mut codes = Vec::new();
    for name in ["a1", "b1", "a2", "b2", "a3", "a4"] {
        codes.push(send(&client, &secret(name)).await.expect("an answer"));
    }
    assert_eq!(codes, [201, 201, 429, 201, 429, 201]);
    assert_eq!(api.faults().met(), 2);
}

#[tokio::test(start_paused = true)]
async fn answers_are_delayed_or_never_come() {
    let api = api();
    let client = api.client("apps");
    api.faults().once(Match::all(), Action::Delay(Duration::from_secs(3)));
    api.faults().once(Match::all(), Action::Delay(Duration::from_secs(4)));
    let started = crate::clock::now();
    assert_eq!(send(&client, &secret("a")).await, Ok(201));
    assert_eq!(started.elapsed(), Duration::from_secs(7));
    api.faults().once(Match::all(), Action::HangAfter);
    let hangs = tokio::time::timeout(Duration::from_secs(3_600), send(&client, &secret("b"))).await;
    assert!(hangs.is_err());
    assert!(api.object("secrets", "apps", "b").is_some(), "it was done");
    let other = api.client_as("node", "apps");
    api.faults().always(Match::all(), Action::Answer(Canned::internal()));
    assert_eq!(ask(&other, "POST", SECRETS, &secret("c")).await.0, 201, "faults are the daemon's unless said otherwise");
    assert_eq!(ask(&client, "POST", SECRETS, &secret("d")).await.0, 500);
    api.faults().clear_all();
    assert_eq!(ask(&client, "POST", SECRETS, &secret("d")).await.0, 201);
}

async fn watch(api: &ClusterApi) -> impl futures_util::Stream<Item = Result<::kube::core::WatchEvent<Value>, ::kube::Error>> {
    let path = format!("{SECRETS}?watch=true&resourceVersion=0&allowWatchBookmarks=true&timeoutSeconds=100");
    api.client("apps").request_events::<Value>(http::Request::get(path).body(Vec::new()).expect("a request")).await.expect("a watch")
}

#[tokio::test(start_paused = true)]
async fn watches_are_cut_muted_and_told_odd_things() {
    let api = api();
    for (cut, errors) in [(Cut::End, 0), (Cut::Reset, 1), (Cut::HalfLine, 0)] {
        let events = watch(&api).await;
        api.cut_watches("secrets", cut);
        let events: Vec<_> = events.collect().await;
        assert_eq!(events.len(), errors, "{cut:?}");
    }
    let mut events = std::pin::pin!(watch(&api).await);
    api.send_watch_line("secrets", "{\"type\":\"MODIFIED\",\"object\":7}");
    assert!(matches!(events.next().await, Some(Ok(::kube::core::WatchEvent::Modified(Value::Number(_))))));
    api.mute_watches("secrets");
    api.put_raw(json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "unseen", "namespace": "apps"}}));
    let silent = tokio::time::timeout(Duration::from_secs(3_600), events.next()).await;
    assert!(silent.is_err(), "no event, no bookmark, no end");
    api.faults().once(Match::on(Verb::Watch, "secrets"), Action::Mute);
    let mut events = std::pin::pin!(watch(&api).await);
    let silent = tokio::time::timeout(Duration::from_secs(3_600), events.next()).await;
    assert!(silent.is_err(), "deaf from the start");
}

#[tokio::test(start_paused = true)]
async fn b01_a_watch_is_answered_410_as_a_status_or_as_an_event() {
    let api = api();
    api.faults().once(Match::on(Verb::Watch, "secrets"), Action::Answer(Canned::gone()));
    let client = api.client("apps");
    let path = format!("{SECRETS}?watch=true&resourceVersion=5");
    assert_eq!(ask(&client, "GET", &path, &Value::Null).await.0, 410);
    api.skip_revisions(10);
    api.compact();
    let (code, line) = ask(&client, "GET", &path, &Value::Null).await;
    assert_eq!((code, &line["object"]["code"]), (200, &json!(410)));
}

#[tokio::test(start_paused = true)]
async fn pod_security_is_enforced_where_it_is_asked_for() {
    let api = api();
    api.add_namespace("strict", &[("pod-security.kubernetes.io/enforce", "restricted")]);
    let client = api.client("strict");
    let recorded = include_str!("../../../tests/data/podjson/status-403-podsecurity.json");
    let recorded: Value = serde_json::from_str(recorded).expect("JSON");
    let security = json!({"runAsNonRoot": true, "runAsUser": 1000, "seccompProfile": {"type": "RuntimeDefault"}});
    let pod = json!({"metadata": {"name": "q"}, "spec": {"securityContext": security, "containers": [{"name": "main", "image": "a:1"}]}});
    let (code, body) = ask(&client, "POST", "/api/v1/namespaces/strict/pods", &pod).await;
    assert_eq!((code, body), (403, recorded["body"].clone()));
    let (code, _) = ask(&client, "POST", "/api/v1/namespaces/apps/pods", &pod).await;
    assert_eq!(code, 201);
    let open = json!({"metadata": {"name": "q"}, "spec": {"hostNetwork": true, "containers": [{"name": "main", "image": "a:1",
        "securityContext": {"runAsUser": 0, "capabilities": {"drop": ["ALL"], "add": ["SYS_ADMIN"]}, "allowPrivilegeEscalation": false}}]}});
    let (_, body) = ask(&client, "POST", "/api/v1/namespaces/strict/pods", &open).await;
    let expected = "pods \"q\" is forbidden: violates PodSecurity \"restricted:latest\": host namespaces (hostNetwork=true), unrestricted \
                    capabilities (container \"main\" must not include \"SYS_ADMIN\" in securityContext.capabilities.add), runAsNonRoot != \
                    true (pod or container \"main\" must set securityContext.runAsNonRoot=true), runAsUser=0 (container \"main\" must not \
                    set runAsUser=0), seccompProfile (pod or container \"main\" must set securityContext.seccompProfile.type to \
                    \"RuntimeDefault\" or \"Localhost\")";
    assert_eq!(body["message"], expected);
}

#[tokio::test(start_paused = true)]
async fn unknown_fields_are_dropped_with_a_warning_that_the_audit_keeps() {
    let api = api();
    let client = api.client("apps");
    let pod = json!({"metadata": {"name": "q"}, "spec": {"zzz": 1, "containers": [{"name": "main", "image": "a:1", "imagePulPolicy": "Always"}]}});
    let (code, body) = ask(&client, "POST", "/api/v1/namespaces/apps/pods", &pod).await;
    assert_eq!((code, &body["spec"]["zzz"]), (201, &Value::Null));
    let entry = api.audit().since(0).pop().expect("an entry");
    assert_eq!(entry.unknown_fields, ["spec.zzz", "spec.containers[0].imagePulPolicy"]);
    let (code, body) = ask(&client, "POST", "/api/v1/namespaces/apps/pods?fieldValidation=Strict", &pod).await;
    assert_eq!((code, &body["reason"]), (400, &json!("BadRequest")));
}

#[tokio::test(start_paused = true)]
async fn recorded_refusals_come_word_by_word() {
    let api = api();
    api.put_raw(json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "term"}, "status": {"phase": "Terminating"}}));
    let client = api.client("apps");
    let recorded = |name: &str| -> Value {
        let path = format!("{}/tests/data/podjson/status-{name}.json", env!("CARGO_MANIFEST_DIR"));
        serde_json::from_str::<Value>(&std::fs::read_to_string(path).expect("recorded")).expect("JSON")["body"].clone()
    };
    let pod = |name: &str| json!({"metadata": {"name": name}, "spec": {"containers": [{"name": "main", "image": "a:1"}]}});
    let mut bad = pod("bad");
    bad["spec"]["containers"][0]["name"] = json!("Bad_Name");
    bad["spec"]["restartPolicy"] = json!("Sometimes");
    ask(&client, "POST", "/api/v1/namespaces/apps/pods", &pod("dup")).await;
    let cases = [
        ("403-namespace-terminating", "POST", "/api/v1/namespaces/term/pods", pod("q")),
        ("404-namespace-create", "POST", "/api/v1/namespaces/absent/pods", pod("q")),
        ("404-pod", "GET", "/api/v1/namespaces/apps/pods/nope", Value::Null),
        ("404-resource", "GET", "/apis/nope/v1/things", Value::Null),
        ("405-method", "PUT", "/api/v1/namespaces/apps/pods", Value::Null),
        ("409-alreadyexists", "POST", "/api/v1/namespaces/apps/pods", pod("dup")),
        ("422-invalid-pod", "POST", "/api/v1/namespaces/apps/pods", bad),
    ];
    for (name, method, path, body) in cases {
        assert_eq!(ask(&client, method, path, &body).await.1, recorded(name), "{name}");
    }
}

#[tokio::test(start_paused = true)]
async fn tokens_and_access_are_reviewed_but_not_stored() {
    let api = api();
    let client = api.client("apps");
    api.add_token("good", "system:serviceaccount:ops:reader", &["wharf"]);
    api.deny("list", "nodes");
    let path = "/apis/authentication.k8s.io/v1/tokenreviews";
    let review = async |token: &str, audience: &str| {
        let (code, body) = ask(&client, "POST", path, &json!({"spec": {"token": token, "audiences": [audience]}})).await;
        assert_eq!(code, 201, "{body}");
        body["status"].clone()
    };
    assert_eq!(review("good", "wharf").await["authenticated"], true);
    assert_eq!(review("good", "other").await["authenticated"], Value::Null);
    assert!(review("bad", "wharf").await["error"].is_string());
    assert_eq!(ask(&client, "GET", path, &Value::Null).await.0, 405);
    let path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
    let may = async |verb: &str| {
        let spec = json!({"spec": {"resourceAttributes": {"verb": verb, "resource": "nodes"}}});
        ask(&client, "POST", path, &spec).await.1["status"]["allowed"].clone()
    };
    assert_eq!((may("list").await, may("get").await), (json!(false), json!(true)));
}

#[tokio::test(start_paused = true)]
async fn a_restart_resets_watches_and_forgets_the_history_but_no_object() {
    let api = api();
    let client = api.client("apps");
    assert_eq!(ask(&client, "POST", SECRETS, &secret("a")).await.0, 201);
    let old = api.revision();
    assert_eq!(ask(&client, "POST", SECRETS, &secret("b")).await.0, 201);
    let events = watch(&api).await;
    api.restart();
    let events: Vec<_> = events.collect().await;
    assert_eq!(events.iter().filter(|event| event.is_ok()).count(), 2, "what had been sent arrives");
    assert_eq!(events.iter().filter(|event| event.is_err()).count(), 1, "then the connection breaks");
    let (_, line) = ask(&client, "GET", &format!("{SECRETS}?watch=true&resourceVersion={old}"), &Value::Null).await;
    assert_eq!(line["object"]["code"], 410);
    assert_eq!(api.objects("secrets", Some("apps")).len(), 2);
}
