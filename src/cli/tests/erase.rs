//! `wharf erase` on a folder, as an operator runs it.

use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use clap::Parser as _;
use futures_util::future::BoxFuture;

use crate::actors::{Committer, CommitterThread};
use crate::cli::erase::archived;
use crate::cli::{Cli, dispatch, log};
use crate::clock::{Clock, Entropy};
use crate::events::archive::{Archive, segments};
use crate::events::erase::Erasure;
use crate::events::kinds::daemon::{Setting, SettingsTold};
use crate::events::kinds::operator::{OperatorSaid, RecordErased};
use crate::events::log::{EventLog as _, LogReader, OpenOptions};
use crate::events::record::{Draft, Event, Reaction};
use crate::events::sled_log::SledLog;
use crate::events::stored::Body;
use crate::http::erase::{Erased, Refused, Wanted};
use crate::http::log::LogView;
use crate::ids::{Seq, Subject, Word};
use crate::telemetry::Metrics;

const SECRET: &str = "correct horse battery staple";

fn wharf(arguments: &[&str], dir: &Path) -> ExitCode {
    let dir = ["--dir", dir.to_str().expect("UTF-8")];
    dispatch(["wharf"].iter().chain(arguments).chain(&dir).map(Into::into))
}

/// A data folder whose record 2 says what it should not have.
fn folder() -> tempfile::TempDir {
    let dir = tempfile::tempdir().expect("a folder");
    let options = OpenOptions::new(Subject::daemon("prod").expect("a name"));
    let (mut log, _) = SledLog::open(&dir.path().join("log"), &Clock::simulated(1), Entropy::os(), &options).expect("opens");
    for why in [SECRET, "nothing much"] {
        let said = Event::OperatorSaid(OperatorSaid { who: Word::new("on-call"), why: why.to_owned() });
        let reaction =
            Reaction { subject: options.daemon.clone(), time_us: 10, rules: 0, settings: Seq::NONE, drafts: vec![Draft::input(said)] };
        log.append(&[reaction]).expect("appended");
    }
    Box::new(log).close().expect("closed");
    dir
}

#[test]
fn what_a_record_said_is_gone_and_the_log_is_whole() {
    let dir = folder();
    let before = log::open(dir.path()).expect("a log").acknowledged();
    assert_eq!(wharf(&["erase", "2", "--reason", "a password was typed"], dir.path()), ExitCode::SUCCESS);
    assert_eq!(wharf(&["verify"], dir.path()), ExitCode::SUCCESS);
    let database = std::fs::read(dir.path().join("log/store/db")).expect("a file");
    assert!(!database.windows(SECRET.len()).any(|window| window == SECRET.as_bytes()), "the database was written anew");
    let reader = log::open(dir.path()).expect("a log");
    let body = |seq: u64| reader.record(Seq(seq)).expect("read").expect("there").expect("sound").body;
    assert_eq!(body(2), Body::Withheld);
    let Body::Known(Event::RecordErased(RecordErased { record, who, why })) = body(4) else { panic!("the erasure is recorded") };
    assert_eq!((record.log, record.seq, who.as_str(), why.as_str()), (before.log, Seq(2), "", "a password was typed"));
    assert_eq!((reader.id(), reader.tree().size), (before.log, before.tree.size + 1), "the same log goes on");
}

#[test]
fn what_may_not_be_erased_is_answered_with_no() {
    let dir = folder();
    for seq in ["1", "0", "9"] {
        assert_eq!(wharf(&["erase", seq, "--reason", "x"], dir.path()), ExitCode::from(1), "{seq}");
    }
    assert_eq!(wharf(&["erase", "2", "--reason", "x"], dir.path()), ExitCode::SUCCESS);
    assert_eq!(wharf(&["erase", "2", "--reason", "x"], dir.path()), ExitCode::from(1), "it is erased already");
    assert_eq!(log::open(dir.path()).expect("a log").tree().size, 4, "only one erasure is recorded");
    let held = log::open(dir.path()).expect("a log");
    assert_eq!(wharf(&["erase", "3", "--reason", "x"], dir.path()), ExitCode::from(3), "somebody has it open");
    drop(held);
    assert_eq!(wharf(&["erase", "2", "--reason", "x"], &dir.path().join("none")), ExitCode::from(3));
    for bad in ["", &"x".repeat(1_025)] {
        assert!(Cli::try_parse_from(["wharf", "erase", "2", "--reason", bad]).is_err());
    }
    assert!(Cli::try_parse_from(["wharf", "erase", "2"]).is_err(), "a reason is asked for");
}

#[test]
fn the_archive_is_named_when_it_holds_what_is_erased() {
    let dir = folder();
    let options = OpenOptions::new(Subject::daemon("prod").expect("a name"));
    let (mut log, _) = SledLog::open(&dir.path().join("log"), &Clock::simulated(1), Entropy::os(), &options).expect("opens");
    let setting = Setting { key: "log.archive".to_owned(), value: "\"archive\"".to_owned() };
    let told = Event::SettingsTold(SettingsTold { all: vec![setting] });
    let drafts = vec![Draft::input(told)];
    log.append(&[Reaction { subject: options.daemon, time_us: 10, rules: 0, settings: Seq::NONE, drafts }]).expect("appended");
    Archive::new(&dir.path().join("archive")).write(log.reader().as_ref(), Seq(2), 7).expect("written");
    while log.remove(Seq(2)).expect("removed").is_some() {}
    Box::new(log).close().expect("closed");
    let named = |seq| archived(dir.path(), seq, log::open(dir.path()).expect("a log").as_ref()).len();
    assert_eq!((named(2), named(3)), (1, 0));
    assert_eq!(wharf(&["erase", "2", "--reason", "x"], dir.path()), ExitCode::from(1), "the log says nothing of it");
    assert_eq!(wharf(&["erase", "3", "--reason", "x"], dir.path()), ExitCode::SUCCESS);
    assert_eq!(wharf(&["verify"], dir.path()), ExitCode::SUCCESS);
    let segment = &segments(&dir.path().join("archive")).expect("listed")[0];
    assert_eq!(wharf(&["verify"], &segment.path), ExitCode::SUCCESS);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_running_daemon_erases_and_its_next_start_leaves_no_byte() {
    let dir = folder();
    let options = OpenOptions::new(Subject::daemon("prod").expect("a name"));
    let open = || SledLog::open(&dir.path().join("log"), &Clock::simulated(1), Entropy::os(), &options).expect("opens").0;
    let database = || std::fs::read(dir.path().join("log/store/db")).expect("a file");
    let has_secret = |bytes: &[u8]| bytes.windows(SECRET.len()).any(|window| window == SECRET.as_bytes());

    let (committer, thread) = CommitterThread::start(Box::new(open()), Metrics::default()).expect("a thread");
    let shown = Arc::new(Written(thread.reader(), committer));
    let (server, serving) = super::keep::serve(shown).await;
    let erase = |seq: &str| {
        let arguments = ["wharf", "erase", seq, "--reason", "x", "--server", &server].map(Into::into);
        tokio::task::spawn_blocking(move || dispatch(arguments))
    };
    assert_eq!(erase("2").await.expect("no panic"), ExitCode::SUCCESS);
    assert_eq!(erase("2").await.expect("no panic"), ExitCode::from(1), "it is erased already");
    assert_eq!(erase("1").await.expect("no panic"), ExitCode::from(1), "it decides");
    assert!(has_secret(&database()) && dir.path().join("log/renew").exists(), "the database only appends");
    serving.abort();
    let _ = serving.await;
    thread.ended().await.expect("its log").close().expect("closed");

    Box::new(open()).close().expect("closed");
    assert!(!has_secret(&database()), "the next start wrote it anew");
    assert!(!dir.path().join("log/renew").exists(), "it need not be done again");
    assert_eq!(wharf(&["verify"], dir.path()), ExitCode::SUCCESS);
}

/// A log that is written, as a daemon has it.
struct Written(Arc<dyn LogReader>, Committer);

impl LogView for Written {
    fn reader(&self) -> Option<Arc<dyn LogReader>> {
        Some(Arc::clone(&self.0))
    }

    fn erase(&self, Wanted { seq, who, why }: Wanted) -> BoxFuture<'_, Result<Erased, Refused>> {
        let daemon = Subject::daemon("prod").expect("a name");
        Box::pin(async move {
            let record = self.1.erase(Erasure { seq, daemon, time_us: 20, who, why }).await?;
            Ok(Erased { seq: seq.0, recorded: record.header.seq.0, archived: Vec::new() })
        })
    }
}
