//! Sessions by the real binary over its real HTTP, on the embedded cluster: lived through, by many at once, and by callers who leave.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;
use wharfinger::sim::node::{Run, Script};

use super::stage::{Stage, client, healthy};

const SEED: &[(&str, &str)] = &[("X-Service", "sessions"), ("X-Resource", "sandbox")];

/// A caller of the daemon.
struct Caller {
    client: reqwest::Client,
    control: String,
}

impl Caller {
    async fn of(stage: &mut Stage) -> Self {
        stage.ready().await;
        Self { client: client(), control: stage.control().await }
    }

    async fn ask(&self, method: &str, path: &str, headers: &[(&str, &str)]) -> (u16, Value) {
        let method = reqwest::Method::from_bytes(method.as_bytes()).expect("a method");
        let mut request = self.client.request(method, format!("{}{path}", self.control));
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let answer = request.send().await.expect("the daemon answers");
        let status = answer.status().as_u16();
        (status, serde_json::from_slice(&answer.bytes().await.expect("whole")).unwrap_or_default())
    }

    async fn state(&self, id: &str) -> Value {
        self.ask("GET", &format!("/v1/sessions/{id}"), &[]).await.1
    }
}

/// A session whose process ends by itself.
fn ends(exit_code: i32) -> Script {
    let usual = healthy();
    Script { app: Run { lasts: Some(Duration::from_millis(600)), exit_code, ..usual.app }, ..usual }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_session_lives_ends_is_resumed_and_deleted() {
    let mut stage = Stage::with_sessions("session").await;
    let caller = Caller::of(&mut stage).await;
    stage.scripts.set("pi-session-s1", ends(3));
    let (status, made) = caller.ask("PUT", "/v1/sessions/s1", &[]).await;
    assert_eq!(
        (status, &made["resumed"], &made["fresh_data"], &made["tenant"]),
        (201, &json!(false), &json!(true), &json!("default")),
        "{made}"
    );
    assert!(
        made["svc_dns"].as_str().is_some_and(|dns| dns.starts_with("pi-session-s1.") && dns.ends_with(".svc.cluster.local:8787")),
        "{made}"
    );
    assert_eq!(stage.uid("pi-session-s1").await.as_deref(), made["pod_uid"].as_str());
    stage.scripts.set("pi-session-s1", healthy());
    stage.until("its end is suspended", |_| async { caller.state("s1").await["state"] == "suspended" }).await;
    let suspended = caller.state("s1").await;
    let end = &suspended["last_end"];
    assert_eq!((&end["cause"], &end["exit_code"], &end["pod_uid"]), (&json!("app_exit"), &json!(3), &made["pod_uid"]), "{suspended}");
    assert!(stage.pod("pi-session-s1").await.is_none() && stage.claim("workspace-session-s1").await.is_some());
    let (status, resumed) = caller.ask("POST", "/v1/sessions?session_id=s1", &[]).await;
    assert_eq!((status, &resumed["resumed"], &resumed["fresh_data"]), (200, &json!(true), &json!(false)), "{resumed}");
    assert_ne!(resumed["pod_uid"], made["pod_uid"]);
    assert_eq!(caller.ask("POST", "/v1/sessions/s1/touch", &[]).await.0, 200);
    let (_, page) = caller.ask("GET", "/v1/sessions?state=ready", &[]).await;
    assert_eq!(page["sessions"][0]["session_id"], "s1", "{page}");
    let (status, left) = caller.ask("DELETE", "/v1/sessions/s1", &[]).await;
    assert_eq!(status, 204, "{left}");
    assert!(stage.pod("pi-session-s1").await.is_none() && stage.claim("workspace-session-s1").await.is_none());
    assert_eq!(caller.state("s1").await["state"], "absent");
    assert_eq!(caller.ask("DELETE", "/v1/sessions/s1", &[]).await.0, 204, "it is so already");
    assert_eq!(caller.ask("DELETE", "/v1/sessions/never", &[]).await.0, 404);
    stage.end();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_session_lives_by_the_seeds_headers() {
    let mut stage = Stage::with_sessions("session-seed").await;
    let caller = Caller::of(&mut stage).await;
    let (status, made) = caller.ask("POST", "/?session_id=s1", SEED).await;
    let expected = json!({
        "session_id": "s1", "pod_name": "pi-session-s1", "pvc_name": "workspace-session-s1", "svc_dns": made["svc_dns"], "resumed": false,
    });
    assert_eq!((status, &made), (200, &expected));
    let (status, again) = caller.ask("POST", "/?session_id=s1", SEED).await;
    assert_eq!((status, &again["resumed"]), (200, &json!(true)));
    let (status, left) = caller.ask("DELETE", "/?session_id=s1", SEED).await;
    assert_eq!(status, 204, "{left}");
    assert!(stage.pod("pi-session-s1").await.is_none() && stage.claim("workspace-session-s1").await.is_none());
    assert_eq!(caller.ask("DELETE", "/?session_id=never", SEED).await.0, 204);
    stage.end();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn b17_a_hundred_parallel_creates_are_one_provisioning_and_a_hundred_equal_answers() {
    let mut stage = Stage::with_sessions("session-many").await;
    let caller = Caller::of(&mut stage).await;
    let answers = futures_util::future::join_all((0..100).map(|_| caller.ask("PUT", "/v1/sessions/s1", &[]))).await;
    assert!(answers.iter().all(|answer| *answer == answers[0] && answer.0 == 201), "{answers:?}");
    assert_eq!(stage.writes_of("s1"), 3, "claim, pod and Service");
    stage.end();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn callers_that_hang_up_and_deletes_at_any_moment_leave_a_session_whole_or_gone() {
    let mut stage = Stage::with_sessions("session-hangup").await;
    let caller = Caller::of(&mut stage).await;
    let address = caller.control.trim_start_matches("http://").to_owned();
    for moment in 0..20 {
        let id = format!("left-{moment}");
        let mut leaving = TcpStream::connect(&address).await.expect("it connects");
        let request = format!("PUT /v1/sessions/{id} HTTP/1.1\r\nHost: localhost\r\n\r\n");
        leaving.write_all(request.as_bytes()).await.expect("written");
        tokio::time::sleep(Duration::from_millis(moment * 10)).await;
        drop(leaving);
    }
    let mut deleted = Vec::new();
    for moment in 0..20 {
        let id = format!("gone-{moment}");
        assert_eq!(caller.ask("PUT", &format!("/v1/sessions/{id}?wait=0"), &[]).await.0, 202);
        tokio::time::sleep(Duration::from_millis(moment * 15)).await;
        let path = format!("/v1/sessions/{id}");
        let (status, left) = caller.ask("DELETE", &path, &[]).await;
        assert_eq!(status, 204, "{id}: {left}");
        deleted.push(id);
    }
    for moment in 0..20 {
        let id = format!("left-{moment}");
        // One that left before its call was read is not known; all that were recorded are brought.
        stage.until("it is whole", |_| async { matches!(caller.state(&id).await["state"].as_str(), Some("ready") | None) }).await;
    }
    for id in deleted {
        assert_eq!(caller.state(&id).await["state"], "absent", "{id}");
        let pod = stage.pod(&format!("pi-session-{id}")).await;
        assert!(pod.is_none() && stage.claim(&format!("workspace-session-{id}")).await.is_none(), "{id}");
    }
    let again = caller.ask("PUT", "/v1/sessions/gone-3", &[]).await;
    assert_eq!((again.0, &again.1["fresh_data"]), (201, &json!(true)), "a create after a delete starts fresh");
    stage.end();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_command_line_does_the_same() {
    let mut stage = Stage::with_sessions("session-cli").await;
    let caller = Caller::of(&mut stage).await;
    let server = caller.control.clone();
    let run = |args: &[&str]| {
        let words: Vec<&str> = ["sessions"].into_iter().chain(args.iter().copied()).chain(["--server", &server]).collect();
        let output = super::daemon::wharf(&words);
        (output.status.code(), String::from_utf8_lossy(&output.stdout).into_owned(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let (code, said, error) = run(&["create", "s1", "--tenant", "acme"]);
    assert_eq!(code, Some(0), "{error}");
    assert!(said.starts_with("s1 ready, on a new workspace: pi-session-s1."), "{said}");
    assert!(run(&["list"]).1.contains("s1       acme    ready"), "{:?}", run(&["list"]));
    let shown: Value = serde_json::from_str(&run(&["show", "s1", "--format", "json"]).1).expect("JSON");
    assert_eq!(shown["state"], "ready");
    assert_eq!(run(&["delete", "s1", "--keep-workspace"]).1, "s1 suspended\n");
    assert_eq!(run(&["create", "s1", "--tenant", "other"]).0, Some(1), "another tenant's");
    assert_eq!(run(&["delete", "s1"]).1, "s1 deleted\n");
    let (code, _, error) = run(&["show", "never"]);
    assert!(code == Some(1) && error.contains("not_found"), "{error}");
    assert_eq!(run(&["show", "NEVER"]).0, Some(2));
    stage.end();
}
