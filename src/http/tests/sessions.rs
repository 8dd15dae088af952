//! The routes of sessions over HTTP, before one session that lives as the stories of `session/` tell it.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt as _;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

use super::control::{NoLog, control};
use super::{Answer, raw};
use crate::actors::{Called, NotCalled};
use crate::config::access::token_digest;
use crate::config::{Sessions, Switch};
use crate::events::kinds::session::{CallRefusal, SessionAsked, SessionCall, SessionDeleteAsked, SessionTouched};
use crate::events::record::Event;
use crate::http::access::asked::Callers;
use crate::http::access::gate::Gate;
use crate::http::access::refusals::Refusals;
use crate::http::control::{Control, serve_control};
use crate::http::sessions::desk::Desk;
use crate::http::sessions::view::SessionsView;
use crate::ids::{SessionId, Tenant, Word, hex};
use crate::kube::review::TokenReviews;
use crate::session::calls::{self, Taken};
use crate::session::state::Session;
use crate::session::tests::story::Story;
use crate::sim::world::{World, WorldOptions};

/// One session, `s1`; others are refused by their names.
pub(crate) struct One {
    story: Mutex<Story>,
    now: watch::Sender<Arc<Session>>,
    refused: Mutex<Vec<String>>,
}

impl One {
    pub(crate) fn new() -> Arc<Self> {
        let one = Self { story: Mutex::new(Story::new()), now: watch::Sender::new(Arc::default()), refused: Mutex::default() };
        one.tell("start\nlisted");
        Arc::new(one)
    }

    /// Goes on with the session's story.
    fn tell(&self, lines: &str) {
        let mut story = self.story.lock().expect("no panic");
        for line in lines.lines().map(str::trim).filter(|line| !line.is_empty()) {
            let inputs = story.inputs(line);
            story.react(inputs);
        }
        self.now.send_replace(Arc::new(story.session.clone()));
    }

    fn made(&self) {
        self.tell("create\nsettle CreateClaim done\nclaim\nsettle PutService done\nservice\nsettle CreatePod done\npod running\npod ready");
    }

    fn call(&self, id: &SessionId, take: impl FnOnce(&Session) -> Taken) -> Result<Called, NotCalled> {
        match id.as_str() {
            "s1" => {}
            "full" => return Err(NotCalled::Full),
            "not-ready" => return Err(NotCalled::NotReady("it starts")),
            "fast" => return Err(NotCalled::Refused(CallRefusal::TooFast)),
            "many" => return Err(NotCalled::Refused(CallRefusal::TooMany)),
            "much" => return Err(NotCalled::Refused(CallRefusal::TooManyOfTenant)),
            _ => return Err(NotCalled::Refused(CallRefusal::Unknown)),
        }
        let mut story = self.story.lock().expect("no panic");
        let before = Arc::new(story.session.clone());
        let demand = match take(&before) {
            Taken::Refused(why) => return Err(NotCalled::Refused(why)),
            Taken::AlreadySo => None,
            Taken::Joins(seq) => Some(seq),
            Taken::News(event) => {
                let is_call = |other: &Event| *other == *event;
                story.react(vec![(*event).clone()]);
                story.records.iter().rev().find(|record| is_call(&record.event)).map(|record| record.header.seq)
            }
        };
        self.now.send_replace(Arc::new(story.session.clone()));
        Ok(Called { demand, before })
    }
}

impl SessionsView for One {
    fn create<'a>(&'a self, id: &'a SessionId, ask: SessionAsked) -> BoxFuture<'a, Result<Called, NotCalled>> {
        std::future::ready(self.call(id, |session| calls::create(session, ask))).boxed()
    }

    fn delete<'a>(
        &'a self,
        id: &'a SessionId,
        ask: SessionDeleteAsked,
        _of: Option<&'a Tenant>,
    ) -> BoxFuture<'a, Result<Called, NotCalled>> {
        std::future::ready(self.call(id, |session| calls::delete(session, ask))).boxed()
    }

    fn touch<'a>(&'a self, id: &'a SessionId, touched: SessionTouched) -> BoxFuture<'a, Result<Called, NotCalled>> {
        let now_us = self.story.lock().expect("no panic").now_us;
        std::future::ready(self.call(id, |session| calls::touch(session, touched, now_us))).boxed()
    }

    fn refused(&self, id: &SessionId, by: &Word, call: SessionCall, why: CallRefusal) {
        self.refused.lock().expect("no panic").push(format!("{call:?} of {id} by {by}: {why:?}"));
    }

    fn is_known(&self) -> bool {
        true
    }

    fn state(&self, id: &SessionId) -> Option<Arc<Session>> {
        (id.as_str() == "s1").then(|| Arc::clone(&self.now.borrow()))
    }

    fn changes(&self, _: &SessionId) -> Option<watch::Receiver<Arc<Session>>> {
        Some(self.now.subscribe())
    }

    fn list(&self, after: Option<&SessionId>, limit: usize, takes: &dyn Fn(&Session) -> bool) -> Vec<(SessionId, Arc<Session>)> {
        let session = Arc::clone(&self.now.borrow());
        let ids = ["s0", "s1", "s2"].map(|id| SessionId::new(id).expect("an id"));
        let behind = ids.into_iter().filter(|id| after.is_none_or(|after| id > after) && takes(&session));
        behind.take(limit).map(|id| (id, Arc::clone(&session))).collect()
    }
}

/// A desk before those sessions.
pub(crate) fn desk(one: Arc<One>) -> Desk {
    let settings = Sessions { serve: Switch::On, ready_s: 2, waiting: 100, ..Sessions::default() };
    Desk::new(&settings, "wharf-sessions", one, Arc::new(NoLog))
}

struct Served {
    address: SocketAddr,
    one: Arc<One>,
    _folder: tempfile::TempDir,
    _world: Option<World>,
}

impl Served {
    async fn start(access: Option<&str>) -> Self {
        let one = One::new();
        Self::with(access, desk(Arc::clone(&one)), one).await
    }

    async fn with(access: Option<&str>, sessions: Desk, one: Arc<One>) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let (mut gate, mut world) = (Gate::local(), None);
        if let Some(access) = access {
            let file = folder.path().join("access.toml");
            std::fs::write(&file, access).expect("written");
            let started = World::start(WorldOptions::default()).await.expect("a world");
            let callers = Callers::new(file, TokenReviews::new(started.client()));
            gate = Gate { callers: Some(Arc::new(callers)), open_metrics: true, refusals: Refusals::default() };
            world = Some(started);
        }
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("loopback");
        let address = listener.local_addr().expect("an address");
        let control = Control { gate, sessions, ..control(Arc::new(NoLog)) };
        tokio::spawn(serve_control(listener, control, std::future::pending()));
        Self { address, one, _folder: folder, _world: world }
    }

    async fn ask(&self, line: &str, headers: &str, body: &str) -> Answer {
        let length = body.len();
        let request = format!("{line} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: {length}\r\n{headers}\r\n{body}");
        raw(self.address, &request).await
    }

    async fn by(&self, token: &str, line: &str, body: &str) -> (u16, Value) {
        let answer = self.ask(line, &format!("Authorization: Bearer {token}\r\n"), body).await;
        (answer.status, serde_json::from_slice(&answer.body).unwrap_or_default())
    }
}

fn document(answer: &Answer) -> Value {
    serde_json::from_slice(&answer.body).unwrap_or_else(|_| panic!("JSON: {}", answer.head))
}

#[tokio::test]
async fn a_session_is_made_shown_suspended_resumed_and_deleted() {
    let served = Served::start(None).await;
    let at_once = served.ask("PUT /v1/sessions/s1?wait=0", "", r#"{"tenant": "acme"}"#).await;
    let told = document(&at_once);
    assert_eq!((at_once.status, &told["state"], &told["stage"]), (202, &json!("provisioning"), &json!("claim")));
    served.one.tell("settle CreateClaim done\nclaim\nsettle PutService done\nservice\nsettle CreatePod done\npod running\npod ready");
    let ready = served.ask("POST /v1/sessions?session_id=s1", "", r#"{"tenant": "acme"}"#).await;
    assert_eq!(ready.status, 200);
    let expected = json!({
        "session_id": "s1", "tenant": "acme", "state": "ready", "stage": null, "pod_name": "pi-session-s1",
        "pvc_name": "workspace-session-s1", "svc_dns": "pi-session-s1.wharf-sessions.svc.cluster.local:8787", "svc_ip": "10.96.0.7",
        "resumed": true, "fresh_data": true, "pod_uid": document(&ready)["pod_uid"], "ready_at": "2027-01-15T08:00:00.000000Z",
    });
    assert_eq!(document(&ready), expected);
    let shown = document(&served.ask("GET /v1/sessions/s1", "", "").await);
    assert_eq!((&shown["state"], &shown["last_end"], shown.get("tail")), (&json!("ready"), &Value::Null, None));
    let touched = served.ask("POST /v1/sessions/s1/touch", "", "").await;
    assert_eq!((touched.status, document(&touched)["last_active_at"].is_string()), (200, true));
    let leaving = served.ask("DELETE /v1/sessions/s1?keep_workspace=1&wait=0", "", "").await;
    assert_eq!((leaving.status, &document(&leaving)["left"]), (202, &json!(["pod"])));
    served.one.tell("settle DeletePod done\npod exited:0 deleting\ngone pod");
    assert_eq!(served.ask("DELETE /v1/sessions/s1?keep_workspace=1", "", "").await.status, 204);
    let shown = document(&served.ask("GET /v1/sessions/s1", "", "").await);
    assert_eq!(
        (&shown["state"], &shown["last_end"]["cause"], &shown["last_end"]["exit_code"]),
        (&json!("suspended"), &json!("deleted_by_us"), &json!(0))
    );
    let resuming = served.ask("PUT /v1/sessions/s1?wait=0", "", r#"{"tenant": "acme"}"#).await;
    assert_eq!((resuming.status, &document(&resuming)["resumed"]), (202, &json!(true)));
    let both = served.ask("DELETE /v1/sessions/s1?wait=0", "", "").await;
    assert_eq!(both.status, 202, "{}", document(&both));
}

#[tokio::test]
async fn what_is_no_call_has_its_code() {
    let served = Served::start(None).await;
    for (line, body, status, code) in [
        ("PUT /v1/sessions/S1", "", 400, "bad_session_id"),
        ("PUT /v1/sessions/-a", "", 400, "bad_session_id"),
        ("PUT /v1/sessions/..%2f..", "", 400, "bad_session_id"),
        ("PUT /v1/sessions/%ff", "", 400, "bad_session_id"),
        ("PUT /v1/sessions/aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", "", 400, "bad_session_id"),
        ("POST /v1/sessions", "", 400, "bad_query"),
        ("POST /v1/sessions?session_id=A", "", 400, "bad_session_id"),
        ("PUT /v1/sessions/s1?wait=x", "", 400, "bad_query"),
        ("PUT /v1/sessions/s1?wait=3601", "", 400, "bad_query"),
        ("PUT /v1/sessions/s1?wait=1&wait=1", "", 400, "bad_query"),
        ("PUT /v1/sessions/s1?force_after=0", "", 400, "bad_query"),
        ("PUT /v1/sessions/s1?more=1", "", 400, "bad_query"),
        ("PUT /v1/sessions/s1", "{", 400, "bad_body"),
        ("PUT /v1/sessions/s1", r#"{"owner": "x"}"#, 400, "bad_body"),
        ("PUT /v1/sessions/s1", r#"{"tenant": "A"}"#, 400, "bad_tenant"),
        ("PUT /v1/sessions/full", "", 503, "busy"),
        ("PUT /v1/sessions/not-ready", "", 503, "unavailable"),
        ("PUT /v1/sessions/fast", "", 429, "too_fast"),
        ("PUT /v1/sessions/many", "", 503, "too_many_sessions"),
        ("PUT /v1/sessions/much", "", 429, "too_many_of_tenant"),
        ("DELETE /v1/sessions/s1?keep_workspace=yes", "", 400, "bad_query"),
        ("DELETE /v1/sessions/s1", "", 404, "not_found"),
        ("DELETE /v1/sessions/s2", "", 404, "not_found"),
        ("GET /v1/sessions/s2", "", 404, "not_found"),
        ("GET /v1/sessions/s1?include=all", "", 400, "bad_query"),
        ("GET /v1/sessions?state=good", "", 400, "bad_query"),
        ("GET /v1/sessions?limit=0", "", 400, "bad_query"),
        ("GET /v1/sessions?after=A", "", 400, "bad_session_id"),
        ("GET /v1/sessions?tenant=A", "", 400, "bad_tenant"),
        ("POST /v1/sessions/s2/touch", "", 404, "not_found"),
        ("POST /?session_id=s1", "", 400, "bad_service"),
        ("GET /", "", 405, "method_not_allowed"),
        ("PATCH /v1/sessions/s1", "", 405, "method_not_allowed"),
    ] {
        let answer = served.ask(line, "", body).await;
        assert_eq!((answer.status, answer.code().as_str()), (status, code), "{line} {body}");
        let waits = matches!(status, 429 | 503);
        assert_eq!(answer.head.contains("retry-after: "), waits, "{line}: {}", answer.head);
    }
    let large = "x".repeat(70_000);
    assert_eq!(served.ask("PUT /v1/sessions/s1", "", &large).await.status, 413);
    let chunked = format!(
        "PUT /v1/sessions/s1 HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n{:x}\r\n{large}\r\n0\r\n\r\n",
        large.len()
    );
    assert_eq!(raw(served.address, &chunked).await.status, 413);
    assert!(!served.one.now.borrow().is_known(), "none of it reached the session");
}

#[tokio::test]
async fn there_are_none_where_they_are_off() {
    let one = One::new();
    let off = Desk::new(&Sessions::default(), "ns", Arc::clone(&one) as Arc<dyn SessionsView>, Arc::new(NoLog));
    let served = Served::with(None, off, one).await;
    for line in ["PUT /v1/sessions/s1", "DELETE /v1/sessions/s1", "GET /v1/sessions", "GET /v1/sessions/s1", "POST /v1/sessions/s1/touch"] {
        let answer = served.ask(line, "", "").await;
        assert_eq!((answer.status, answer.code().as_str()), (404, "no_sessions"), "{line}");
    }
}

fn token(name: &str, tenants: &str) -> String {
    format!("[[token]]\nname = \"{name}\"\nsha256 = \"{}\"\nroles = [\"sessions\"]\n{tenants}\n", hex(&token_digest(name)))
}

#[tokio::test]
async fn a_token_sees_the_sessions_of_its_tenants_and_no_others() {
    let access =
        token("acme", "tenants = [\"acme\"]") + &token("other", "tenants = [\"other\"]") + &token("two", "tenants = [\"acme\", \"other\"]");
    let operator = format!("[[token]]\nname = \"root\"\nsha256 = \"{}\"\nroles = [\"operator\", \"tails\"]\n", hex(&token_digest("root")));
    let served = Served::start(Some(&(access + &operator))).await;
    let code = |(status, body): (u16, Value)| (status, body["code"].as_str().unwrap_or_default().to_owned());
    // Its only tenant is the tenant of what it makes.
    let (status, made) = served.by("acme", "PUT /v1/sessions/s1?wait=0", "").await;
    assert_eq!((status, &made["tenant"]), (202, &json!("acme")));
    assert_eq!(code(served.by("acme", "PUT /v1/sessions/s1?wait=0", r#"{"tenant": "other"}"#).await), (403, "foreign_tenant".to_owned()));
    assert_eq!(code(served.by("two", "PUT /v1/sessions/s1?wait=0", "").await), (403, "foreign_tenant".to_owned()));
    // Another's is hidden; who sees it is told whose it is.
    for line in ["PUT /v1/sessions/s1?wait=0", "DELETE /v1/sessions/s1?wait=0", "GET /v1/sessions/s1", "POST /v1/sessions/s1/touch"] {
        assert_eq!(code(served.by("other", line, "").await), (404, "not_found".to_owned()), "{line}");
    }
    let told = served.one.refused.lock().expect("no panic").join(", ");
    assert_eq!(told, "Delete of s1 by other: Hidden, Touch of s1 by other: Hidden");
    for (who, body) in [("two", r#"{"tenant": "other"}"#), ("root", "")] {
        assert_eq!(code(served.by(who, "PUT /v1/sessions/s1?wait=0", body).await), (409, "other_tenant".to_owned()), "{who}");
    }
    let listed = async |who: &str, query: &str| {
        let (status, page) = served.by(who, &format!("GET /v1/sessions{query}"), "").await;
        assert_eq!(status, 200);
        let ids = page["sessions"].as_array().expect("a list").iter().map(|session| session["session_id"].as_str().unwrap_or_default());
        (ids.collect::<Vec<_>>().join(" "), page["next"].clone())
    };
    assert_eq!(listed("acme", "").await, ("s0 s1 s2".to_owned(), Value::Null));
    assert_eq!(listed("other", "").await, (String::new(), Value::Null));
    assert_eq!(listed("other", "?tenant=acme").await, (String::new(), Value::Null));
    assert_eq!(listed("root", "?limit=2").await, ("s0 s1".to_owned(), json!("s1")));
    assert_eq!(listed("root", "?limit=2&after=s1").await, ("s2".to_owned(), Value::Null));
    assert_eq!(listed("root", "?state=ready").await, (String::new(), Value::Null));
    assert_eq!(listed("root", "?state=provisioning&tenant=acme").await.0, "s0 s1 s2");
    // Last lines are for who may read what tenants wrote.
    assert_eq!(code(served.by("acme", "GET /v1/sessions/s1?include=tail", "").await), (403, "forbidden".to_owned()));
    assert_eq!(served.by("root", "GET /v1/sessions/s1?include=tail", "").await.0, 200);
}

#[tokio::test]
async fn many_callers_wait_for_one_answer_and_one_that_hangs_up_changes_nothing() {
    let served = Arc::new(Served::start(None).await);
    for _ in 0..20 {
        let mut leaving = TcpStream::connect(served.address).await.expect("it connects");
        leaving.write_all(b"PUT /v1/sessions/s1 HTTP/1.1\r\nHost: localhost\r\n\r\n").await.expect("written");
        drop(leaving);
    }
    let asking = |served: &Arc<Served>| {
        let served = Arc::clone(served);
        tokio::spawn(async move {
            let answer = served.ask("PUT /v1/sessions/s1", "", "").await;
            (answer.status, document(&answer))
        })
    };
    let callers: Vec<_> = (0..80).map(|_| asking(&served)).collect();
    while served.one.now.receiver_count() < 80 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    served.one.tell(
        "settle CreateClaim done\nclaim tenant=default\nsettle PutService done\nservice\nsettle CreatePod done\npod running\npod ready",
    );
    let mut answers = Vec::new();
    for caller in callers {
        answers.push(caller.await.expect("no panic"));
    }
    assert!(answers.iter().all(|answer| *answer == answers[0] && answer.0 == 201), "{:?}", answers[0]);
    let asked =
        served.one.story.lock().expect("no panic").records.iter().filter(|record| matches!(record.event, Event::SessionAsked(_))).count();
    assert_eq!(asked, 1);
}

#[tokio::test]
async fn at_the_deadline_the_caller_is_told_how_far_it_is() {
    let served = Served::start(None).await;
    let late = served.ask("PUT /v1/sessions/s1?wait=1", "", "").await;
    let told = document(&late);
    assert_eq!((late.status, &told["code"], &told["stage"], &told["reason"]), (504, &json!("not_ready"), &json!("claim"), &Value::Null));
    served.one.tell("settle CreateClaim quota");
    let refused = served.ask("PUT /v1/sessions/s1", "", "").await;
    let told = document(&refused);
    assert_eq!(
        (refused.status, &told["code"], &told["stage"], &told["retrying"]),
        (503, &json!("refused_quota"), &json!("claim"), &json!(true))
    );
    assert!(refused.head.contains("retry-after: 30"), "{}", refused.head);
}

#[tokio::test]
async fn past_so_many_callers_that_wait_the_next_is_sent_away_at_once() {
    let one = One::new();
    let settings = Sessions { serve: Switch::On, waiting: 3, ..Sessions::default() };
    let desk = Desk::new(&settings, "ns", Arc::clone(&one) as Arc<dyn SessionsView>, Arc::new(NoLog));
    let served = Arc::new(Served::with(None, desk, one).await);
    let waiting: Vec<_> = (0..3)
        .map(|_| {
            let served = Arc::clone(&served);
            tokio::spawn(async move { served.ask("PUT /v1/sessions/s1", "", "").await.status })
        })
        .collect();
    while served.one.now.receiver_count() < 3 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let away = served.ask("PUT /v1/sessions/s1", "", "").await;
    assert_eq!((away.status, away.code().as_str()), (503, "too_many_waiting"));
    assert_eq!(*served.one.refused.lock().expect("no panic"), ["Create of s1 by local: TooManyWaiting"]);
    assert_eq!(served.ask("PUT /v1/sessions/s1?wait=0", "", "").await.status, 202, "who does not wait needs no place");
    served.one.tell(
        "settle CreateClaim done\nclaim tenant=default\nsettle PutService done\nservice\nsettle CreatePod done\npod running\npod ready",
    );
    for caller in waiting {
        assert_eq!(caller.await.expect("no panic"), 201);
    }
}

#[tokio::test]
async fn the_seeds_form_has_the_seeds_fields_and_meaning() {
    const SEED: &str = "X-Service: sessions\r\nX-Resource: sandbox\r\n";
    let served = Served::start(None).await;
    for headers in
        ["", "X-Service: sessions\r\n", "X-Service: sessions\r\nX-Resource: other\r\n", "X-Service: x\r\nX-Resource: sandbox\r\n"]
    {
        assert_eq!(served.ask("POST /?session_id=s1", headers, "").await.code(), "bad_service", "{headers}");
        assert_eq!(served.ask("DELETE /?session_id=s1", headers, "").await.code(), "bad_service", "{headers}");
    }
    assert_eq!(served.ask("DELETE /?session_id=never", SEED, "").await.status, 204, "what is not there is no failure");
    assert_eq!(served.ask("POST /?session_id=S", SEED, "").await.code(), "bad_session_id");
    assert_eq!(served.ask("POST /", SEED, "").await.code(), "bad_query");
    served.one.tell("create tenant=default");
    let late = served.ask("POST /?session_id=s1", SEED, "what a body says is not read").await;
    assert_eq!((late.status, late.code().as_str()), (504, "not_ready"));
    served.one.tell("settle CreateClaim done\nclaim tenant=default\nsettle PutService done\nservice\nsettle CreatePod done\npod running");
    // Running and not ready: the seed's caller got its address at once, and here it is waited for.
    served.one.tell("pod ready");
    let again = served.ask("POST /?session_id=s1", SEED, "").await;
    let expected = json!({
        "session_id": "s1", "pod_name": "pi-session-s1", "pvc_name": "workspace-session-s1",
        "svc_dns": "pi-session-s1.wharf-sessions.svc.cluster.local:8787", "resumed": true,
    });
    assert_eq!((again.status, document(&again)), (200, expected));
    let left = served.ask("DELETE /?session_id=s1", SEED, "").await;
    assert_eq!((left.status, &document(&left)["left"]), (202, &json!(["pod", "service", "claim"])));
}

#[tokio::test]
async fn a_session_whose_pod_ends_is_shown_with_how_it_ended() {
    let served = Served::start(None).await;
    served.one.made();
    served.one.tell("pod exited:3");
    let shown = document(&served.ask("GET /v1/sessions/s1", "", "").await);
    assert_eq!(
        (&shown["state"], &shown["last_end"]["cause"], &shown["last_end"]["exit_code"]),
        (&json!("exited"), &json!("app_exit"), &json!(3))
    );
}
