//! `wharf backup` and `wharf restore` as they are typed, with the commands that read what they make.

use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use crate::cli::dispatch;
use crate::clock::{Clock, Entropy};
use crate::events::kinds::daemon::IncarnationStopped;
use crate::events::log::{EventLog, LogReader, OpenOptions};
use crate::events::record::{Draft, Event, Reaction};
use crate::events::sled_log::SledLog;
use crate::http::access::gate::Gate;
use crate::http::control::{AppsView, Control, serve_control};
use crate::http::events::Feed;
use crate::http::log::LogView;
use crate::http::proofs::{Asked, NotProved, ProofsView, Proved};
use crate::http::readiness::{GatewayState, Readiness, Role};
use crate::ids::{AppId, Seq, Subject, Word};
use crate::telemetry::Metrics;

fn wharf(words: &[&str]) -> ExitCode {
    dispatch(std::iter::once("wharf").chain(words.iter().copied()).map(Into::into))
}

fn daemon() -> Subject {
    Subject::daemon("world").expect("a name")
}

/// The log of a data folder, with a thousand records.
fn a_log(dir: &Path) -> SledLog {
    let opened = SledLog::open(&dir.join("log"), &Clock::simulated(1), Entropy::os(), &OpenOptions::new(daemon()));
    let (mut log, _) = opened.expect("it opens");
    let event = Event::IncarnationStopped(IncarnationStopped { reason: Word::new("SIGTERM") });
    for _ in 0..10 {
        let drafts = vec![Draft::input(event.clone()); 100];
        log.append(&[Reaction { subject: daemon(), time_us: 1, rules: 1, settings: Seq::NONE, drafts }]).expect("appended");
    }
    log
}

#[tokio::test]
async fn a_folder_at_rest_is_kept_read_and_restored() {
    let place = tempfile::tempdir().expect("a folder");
    let path = |name: &str| place.path().join(name).to_str().expect("UTF-8").to_owned();
    let (data, file, part, restored) = (path("data"), path("log.wharf"), path("part.wharf"), path("restored"));
    let log = a_log(Path::new(&data));
    assert_eq!(wharf(&["backup", &file, "--dir", &data]), ExitCode::from(3), "a daemon holds it");
    Box::new(log).close().expect("closed");

    assert_eq!(wharf(&["backup", &file, "--dir", &data]), ExitCode::SUCCESS);
    for reads in [&["verify"][..], &["log", "daemon/world", "--until", "1"]] {
        assert_eq!(wharf(&[reads, &["--dir", &file]].concat()), ExitCode::SUCCESS, "{reads:?}");
    }
    assert_eq!(wharf(&["backup", &part, "--dir", &data, "--from", "500", "--subject", "world"]), ExitCode::SUCCESS);
    assert_eq!(wharf(&["verify", "--dir", &part]), ExitCode::from(2), "a part cannot be verified");
    assert_eq!(wharf(&["restore", &part, "--dir", &restored]), ExitCode::from(2), "a part cannot be restored");

    assert_eq!(wharf(&["restore", &file, "--dir", &restored]), ExitCode::SUCCESS);
    assert_eq!(wharf(&["verify", "--dir", &restored]), ExitCode::SUCCESS);
    assert_eq!(wharf(&["restore", &file, "--dir", &restored]), ExitCode::from(2), "it is not empty any more");

    let mut bytes = std::fs::read(&file).expect("it is there");
    bytes.truncate(bytes.len() / 2);
    std::fs::write(&file, bytes).expect("written");
    for reads in [&["verify"][..], &["log"]] {
        assert_eq!(wharf(&[reads, &["--dir", &file]].concat()), ExitCode::from(2), "{reads:?}");
    }
}

struct Shown(Arc<dyn LogReader>);

impl LogView for Shown {
    fn reader(&self) -> Option<Arc<dyn LogReader>> {
        Some(Arc::clone(&self.0))
    }
}

/// What else a control listener shows.
struct Nothing;

impl AppsView for Nothing {
    fn apps(&self) -> BoxFuture<'_, Value> {
        Box::pin(async { json!({"apps": []}) })
    }

    fn app<'a>(&'a self, _app: &'a AppId) -> BoxFuture<'a, Option<Value>> {
        Box::pin(async { None })
    }
}

impl ProofsView for Nothing {
    fn key(&self) -> String {
        String::new()
    }

    fn checkpoint(&self) -> Option<String> {
        None
    }

    fn prove(&self, _asked: Asked) -> BoxFuture<'_, Result<Proved, NotProved>> {
        Box::pin(async { Err(NotProved::NoLog) })
    }
}

fn readiness() -> Readiness {
    Readiness {
        replayed: true,
        listed: true,
        watch_age_ms: Some(1),
        watch_limit_ms: 150_000,
        log_writable: true,
        nodes_unknown: false,
        role: Role::Active,
        standing_by: None,
        log_failed: None,
        secrets_listed: true,
        gateway: GatewayState::Waiting,
    }
}

/// A control listener over that log, and where it is.
pub(super) async fn serve(log: Arc<dyn LogView>) -> (String, JoinHandle<std::io::Result<()>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("loopback");
    let server = format!("http://{}", listener.local_addr().expect("an address"));
    let control = Control {
        readiness: Arc::new(readiness),
        metrics: Metrics::default(),
        apps: Arc::new(Nothing),
        proofs: Arc::new(Nothing),
        feed: Feed::new(Arc::clone(&log), "world"),
        log,
        sessions: crate::http::tests::sessions::desk(crate::http::tests::sessions::One::new()),
        gate: Gate::local(),
        entropy: Entropy::os(),
    };
    (server, tokio::spawn(serve_control(listener, control, std::future::pending())))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_running_daemon_is_kept_as_its_folder_would_be() {
    let place = tempfile::tempdir().expect("a folder");
    let path = |name: &str| place.path().join(name).to_str().expect("UTF-8").to_owned();
    let (data, live, rest) = (path("data"), path("live.wharf"), path("rest.wharf"));
    let log = a_log(Path::new(&data));
    let (server, serving) = serve(Arc::new(Shown(log.reader()))).await;
    let kept = {
        let (live, server) = (live.clone(), server.clone());
        tokio::task::spawn_blocking(move || wharf(&["backup", &live, "--server", &server])).await.expect("no panic")
    };
    assert_eq!(kept, ExitCode::SUCCESS);
    serving.abort();
    let _ = serving.await;
    let head = log.reader().acknowledged();
    Box::new(log).close().expect("closed");
    assert_eq!(wharf(&["verify", "--dir", &live]), ExitCode::SUCCESS);
    let reader = crate::events::backup::file::open(Path::new(&live)).expect("it opens");
    assert_eq!(reader.acknowledged(), head);
    assert_eq!(wharf(&["backup", &rest, "--dir", &live]), ExitCode::SUCCESS);
}

#[test]
fn a_folder_whose_beginning_aged_out_is_verified_kept_and_restored() {
    let place = tempfile::tempdir().expect("a folder");
    let path = |name: &str| place.path().join(name).to_str().expect("UTF-8").to_owned();
    let (data, file, restored, seen) = (path("data"), path("log.wharf"), path("restored"), path("seen"));
    let mut log = a_log(Path::new(&data));
    let key = crate::proof::key::SigningKey::new("wharfinger/prod/prod", [1; 32]).expect("a name");
    let early = crate::proof::checkpoint::Checkpoint::new("wharfinger/prod/prod", log.reader().id(), log.reader().tree());
    std::fs::write(&seen, early.signed(&key)).expect("written");
    while log.remove(Seq(800)).expect("removed").is_some() {}
    assert!(log.reader().removed().is_some_and(|removed| removed.to > Seq(300)));
    Box::new(log).close().expect("closed");
    assert_eq!(wharf(&["verify", "--dir", &data, "--checkpoint", &seen, "--key", &key.verifier().to_string()]), ExitCode::SUCCESS);
    assert_eq!(wharf(&["log", "--dir", &data]), ExitCode::SUCCESS);
    assert_eq!(wharf(&["erase", "5", "--reason", "x", "--dir", &data]), ExitCode::from(1), "it is not there any more");
    assert_eq!(wharf(&["backup", &file, "--dir", &data]), ExitCode::SUCCESS);
    assert_eq!(wharf(&["restore", &file, "--dir", &restored]), ExitCode::SUCCESS);
    for dir in [&file, &restored] {
        assert_eq!(wharf(&["verify", "--dir", dir, "--checkpoint", &seen]), ExitCode::SUCCESS, "{dir}");
    }
}
