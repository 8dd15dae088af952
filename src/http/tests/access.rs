//! Who may ask what: every route with every role and none, and the API server's word on a token.

use std::sync::Arc;

use tokio::net::TcpListener;

use super::control::{NoLog, control};
use super::{Answer, raw};
use crate::config::access::{Need, Role, token_digest};
use crate::http::access::asked::Callers;
use crate::http::access::gate::Gate;
use crate::http::access::refusals::Refusals;
use crate::http::access::routes::ROUTES;
use crate::http::control::{Control, serve_control};
use crate::http::log::LogView;
use crate::ids::hex;
use crate::kube::review::TokenReviews;
use crate::sim::world::{World, WorldOptions};

pub(super) struct Guarded {
    pub(super) address: std::net::SocketAddr,
    world: World,
    file: std::path::PathBuf,
    pub(super) refusals: Refusals,
    _folder: tempfile::TempDir,
}

impl Guarded {
    async fn start(access: &str, open_metrics: bool) -> Self {
        Self::start_with(access, open_metrics, Arc::new(NoLog)).await
    }

    pub(super) async fn start_with(access: &str, open_metrics: bool, log: Arc<dyn LogView>) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("access.toml");
        std::fs::write(&file, access).expect("written");
        let world = World::start(WorldOptions::default()).await.expect("a world");
        let refusals = Refusals::default();
        let callers = Callers::new(file.clone(), TokenReviews::new(world.client()));
        let gate = Gate { callers: Some(Arc::new(callers)), open_metrics, refusals: refusals.clone() };
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("loopback");
        let address = listener.local_addr().expect("an address");
        let control = Control { gate, ..control(log) };
        tokio::spawn(serve_control(listener, control, std::future::pending()));
        Self { address, world, file, refusals, _folder: folder }
    }

    pub(super) async fn ask(&self, method: &str, path: &str, token: Option<&str>) -> Answer {
        let token = token.map_or_else(String::new, |token| format!("Authorization: Bearer {token}\r\n"));
        raw(self.address, &format!("{method} {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{token}\r\n")).await
    }
}

pub(super) fn token(name: &str, roles: &str) -> String {
    format!("[[token]]\nname = \"{name}\"\nsha256 = \"{}\"\nroles = [{roles}]\n", hex(&token_digest(name)))
}

/// One token a role, named as the role.
fn one_each() -> String {
    Role::ALL.map(|role| token(role.name(), &format!("\"{}\"", role.name()))).concat()
}

fn may(role: Option<&str>, need: Need) -> bool {
    match need {
        Need::Nothing => true,
        Need::Read => matches!(role, Some("auditor" | "operator")),
        Need::Sessions => matches!(role, Some("sessions" | "operator")),
        Need::ReadSessions => matches!(role, Some("sessions" | "auditor" | "operator")),
        Need::Act => role == Some("operator"),
    }
}

#[tokio::test]
async fn each_route_lets_in_the_roles_of_the_table_and_no_other() {
    let guarded = Guarded::start(&one_each(), false).await;
    let callers = [None, Some("sessions"), Some("auditor"), Some("tails"), Some("operator"), Some("nobody")];
    for route in ROUTES {
        let path = route.path.replace("{org}", "acme").replace("{name}", "bot").replace("{id}", "s2");
        for caller in callers {
            let answer = guarded.ask(route.method, &path, caller).await;
            let is_known = caller.is_some_and(|name| Role::parse(name).is_some());
            let wanted = match (may(caller, route.need), is_known) {
                (true, _) => None,
                (false, true) => Some((403, "forbidden")),
                (false, false) => Some((401, "unauthorized")),
            };
            let refused = matches!(answer.status, 401 | 403).then(|| (answer.status, answer.code()));
            assert_eq!(refused, wanted.map(|(status, code)| (status, code.to_owned())), "{} {path} by {caller:?}", route.method);
            assert_eq!(answer.head.contains("www-authenticate: Bearer"), answer.status == 401, "{}", answer.head);
        }
    }
    let counted = guarded.refusals.take();
    let times = |who: &str, route: &str| {
        counted.iter().filter(|(refusal, _)| refusal.who.as_str() == who && refusal.route == route).map(|(_, times)| *times).sum::<u64>()
    };
    assert_eq!((times("tails", "GET /v1/log"), times("", "GET /v1/log"), times("auditor", "GET /v1/log")), (1, 2, 0));
    assert_eq!(times("sessions", "GET /v1/apps/{org}/{name}"), 1);
}

#[tokio::test]
async fn metrics_are_open_where_the_setting_says_so() {
    let guarded = Guarded::start(&one_each(), true).await;
    assert_eq!(guarded.ask("GET", "/metrics", None).await.status, 200);
    assert_eq!(guarded.ask("GET", "/v1/apps", None).await.status, 401);
}

#[tokio::test]
async fn what_is_no_bearer_token_lets_nobody_in() {
    let guarded = Guarded::start(&one_each(), true).await;
    for header in
        ["Authorization: Basic auditor", "Authorization: auditor", "Authorization: Bearer auditor\r\nAuthorization: Bearer auditor", "X: y"]
    {
        let request = format!("GET /v1/apps HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{header}\r\n\r\n");
        assert_eq!(raw(guarded.address, &request).await.status, 401, "{header}");
    }
    assert_eq!(guarded.ask("HEAD", "/v1/apps", Some("auditor")).await.status, 200);
    let other = guarded.ask("DELETE", "/v1/apps", None).await;
    assert_eq!((other.status, other.head.contains("allow: GET, HEAD")), (405, true));
}

#[tokio::test]
async fn a_file_that_changes_counts_and_a_bad_one_keeps_everybody_out() {
    let guarded = Guarded::start(&one_each(), true).await;
    assert_eq!(guarded.ask("GET", "/v1/apps", Some("auditor")).await.status, 200);
    std::fs::write(&guarded.file, token("other", "\"auditor\"")).expect("written");
    until(|| async { guarded.ask("GET", "/v1/apps", Some("auditor")).await.status == 401 }).await;
    assert_eq!(guarded.ask("GET", "/v1/apps", Some("other")).await.status, 200);
    std::fs::write(&guarded.file, "[[token]]").expect("written");
    until(|| async { guarded.ask("GET", "/v1/apps", Some("other")).await.status == 503 }).await;
    assert_eq!(guarded.ask("GET", "/v1/apps", None).await.status, 401);
    assert_eq!(guarded.ask("GET", "/livez", None).await.status, 200);
}

#[tokio::test]
async fn an_account_is_who_the_api_server_says_and_only_for_our_audience() {
    let access = "[[account]]\nuser = \"system:serviceaccount:siem:shipper\"\nroles = [\"auditor\"]\n";
    let guarded = Guarded::start(access, true).await;
    let api = &guarded.world.api;
    api.add_token("ours", "system:serviceaccount:siem:shipper", &["wharfinger"]);
    api.add_token("theirs", "system:serviceaccount:siem:shipper", &["https://kubernetes.default.svc"]);
    api.add_token("eve", "system:serviceaccount:siem:eve", &["wharfinger"]);
    for (token, status) in [("ours", 200), ("ours", 200), ("theirs", 401), ("eve", 401), ("unknown", 401), ("a b", 401)] {
        assert_eq!(guarded.ask("GET", "/v1/apps", Some(token)).await.status, status, "{token}");
    }
}

/// Waits until it holds.
async fn until<F: Future<Output = bool>>(holds: impl Fn() -> F) {
    while !holds().await {
        tokio::task::yield_now().await;
    }
}
