//! When checkpoints are made, that each holds, and that one leads to the next by a proof.

use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::clock::{Clock, Entropy};
use crate::config::Settings;
use crate::events::kinds::operator::OperatorSaid;
use crate::events::log::{EventLog as _, OpenOptions};
use crate::events::mem_log::{MemDisk, MemLog};
use crate::events::record::{Draft, Event, Reaction};
use crate::http::proofs::{Asked, Leaf, NotProved, ProofsView as _, ProvedOf};
use crate::ids::{Seq, Subject, Word};
use crate::proof::checkpoint::Checkpoint;
use crate::proof::key::VerifierKey;
use crate::proof::merkle::{check_consistency, check_inclusion};
use crate::proof::note::Note;
use crate::run::checkpoints::{Checkpoints, FILE, kept};

struct Daemon {
    dir: tempfile::TempDir,
    disk: MemDisk,
    said: Arc<Mutex<Vec<String>>>,
}

fn open(disk: &MemDisk) -> MemLog {
    let options = OpenOptions::new(Subject::daemon("prod").expect("a name"));
    MemLog::open(disk, &Clock::simulated(1), Entropy::os(), &options).expect("opens").0
}

fn append(log: &mut MemLog, records: usize) {
    let said = Event::OperatorSaid(OperatorSaid { who: Word::new("x"), why: "y".to_owned() });
    let drafts = vec![Draft::input(said); records];
    let subject = Subject::daemon("prod").expect("a name");
    log.append(&[Reaction { subject, time_us: 10, rules: 0, settings: Seq::NONE, drafts }]).expect("appended");
}

impl Daemon {
    fn new() -> Self {
        Self { dir: tempfile::tempdir().expect("a folder"), disk: MemDisk::new(), said: Arc::default() }
    }

    fn checkpoints(&self) -> Checkpoints {
        let data_dir = self.dir.path().display().to_string();
        let settings = Settings { world: "prod".to_owned(), data_dir, ..Settings::default() };
        let said = Arc::clone(&self.said);
        let announce = Arc::new(move |note: &str| said.lock().expect("not poisoned").push(note.to_owned()));
        Checkpoints::open(&settings, &Entropy::os(), announce).expect("a key")
    }

    /// The sizes of the checkpoints that were said so far; each is signed, and the last is the one that is kept.
    fn sizes(&self, key: &str) -> Vec<u64> {
        let key = VerifierKey::parse(key).expect("a key");
        let said = self.said.lock().expect("not poisoned");
        if let Some(last) = said.last() {
            assert_eq!(std::fs::read_to_string(self.dir.path().join(FILE)).expect("kept"), *last);
        }
        let size = |note: &String| {
            let note = Note::parse(note.as_bytes()).expect("a note");
            assert_eq!(note.verify(&key), Ok(()));
            Checkpoint::parse(note.text).expect("a checkpoint").tree.size
        };
        said.iter().map(size).collect()
    }
}

#[tokio::test(start_paused = true)]
async fn one_is_due_after_a_thousand_records_or_a_minute() {
    let daemon = Daemon::new();
    let checkpoints = daemon.checkpoints();
    assert_eq!((checkpoints.checkpoint(), checkpoints.make(Duration::ZERO).await), (None, true), "no log is open");
    let mut log = open(&daemon.disk);
    checkpoints.show(Some(log.reader()));
    let making = tokio::spawn({
        let checkpoints = checkpoints.clone();
        async move { checkpoints.keep_making().await }
    });
    let pass = async |seconds: u64| tokio::time::sleep(Duration::from_secs(seconds)).await;
    pass(2).await;
    let key = checkpoints.key();
    assert_eq!(daemon.sizes(&key), [1], "a log has one from its beginning");
    append(&mut log, 999);
    pass(30).await;
    assert_eq!(daemon.sizes(&key), [1]);
    append(&mut log, 1);
    pass(2).await;
    assert_eq!(daemon.sizes(&key), [1, 1_001]);
    append(&mut log, 1);
    pass(50).await;
    assert_eq!(daemon.sizes(&key), [1, 1_001]);
    pass(12).await;
    assert_eq!(daemon.sizes(&key), [1, 1_001, 1_002]);
    pass(600).await;
    assert_eq!(daemon.sizes(&key).len(), 3, "what did not grow is not signed again");
    append(&mut log, 1);
    assert!(checkpoints.make(Duration::ZERO).await);
    assert_eq!(daemon.sizes(&key).last(), Some(&1_003), "at the end there is one of all records");
    making.abort();
}

#[tokio::test]
async fn one_leads_to_the_next_by_a_proof() {
    let daemon = Daemon::new();
    let checkpoints = daemon.checkpoints();
    let mut log = open(&daemon.disk);
    checkpoints.show(Some(log.reader()));
    let mut heads = Vec::new();
    for records in [0, 5, 1_500] {
        append(&mut log, records);
        checkpoints.make(Duration::ZERO).await;
        let note = checkpoints.checkpoint().expect("one");
        heads.push(Checkpoint::parse(Note::parse(note.as_bytes()).expect("a note").text).expect("a checkpoint").tree);
    }
    // The same when what they are about has aged out.
    for aged_out in [false, true] {
        if aged_out {
            while log.remove(Seq(900)).expect("removed").is_some() {}
            assert_eq!(log.reader().removed().map(|removed| removed.to), Some(Seq(6)));
        }
        for (first, second) in [(0, 1), (0, 2), (1, 2)] {
            let asked = Asked::Consistency { first: heads[first].size, second: Some(heads[second].size) };
            let proved = checkpoints.prove(asked).await.expect("a proof");
            assert_eq!(proved.of, ProvedOf::Consistency(heads[first], heads[second]));
            assert_eq!(check_consistency(&heads[first], &heads[second], &proved.hashes), Ok(()));
        }
        for leaf in [Leaf::Position(3), Leaf::Seq(Seq(4))] {
            let proved = checkpoints.prove(Asked::Inclusion { leaf, size: None }).await.expect("a proof");
            let ProvedOf::Inclusion(3, hash, tree) = proved.of else { panic!("{proved:?}") };
            assert_eq!((tree, check_inclusion(&hash, 3, &heads[2], &proved.hashes)), (heads[2], Ok(())));
        }
    }
    let (log_id, size) = (log.reader().id(), log.reader().tree().size);
    let ask = async |asked: Asked| checkpoints.prove(asked).await.expect_err("no proof");
    assert_eq!(ask(Asked::Consistency { first: size + 1, second: None }).await, NotProved::Ahead { log: log_id, size });
    assert_eq!(ask(Asked::Consistency { first: 6, second: Some(5) }).await, NotProved::Outside(5));
    assert_eq!(ask(Asked::Inclusion { leaf: Leaf::Position(5), size: Some(5) }).await, NotProved::Outside(5));
    assert_eq!(
        ask(Asked::Inclusion { leaf: Leaf::Seq(Seq(9_999)), size: None }).await,
        NotProved::NoRecord { log: log_id, seq: Seq(9_999) }
    );
    checkpoints.show(None);
    assert_eq!(ask(Asked::Consistency { first: 1, second: None }).await, NotProved::NoLog);
    assert_eq!(checkpoints.checkpoint(), None);
}

#[tokio::test]
async fn the_key_stays_and_another_log_has_another_origin() {
    let daemon = Daemon::new();
    let mut origins = Vec::new();
    let mut keys = Vec::new();
    for lost in [true, false] {
        let checkpoints = daemon.checkpoints();
        let mut log = open(&daemon.disk);
        append(&mut log, 3);
        checkpoints.show(Some(log.reader()));
        assert!(checkpoints.make(Duration::ZERO).await);
        keys.push(checkpoints.key());
        let origin = kept(daemon.dir.path()).expect("read").expect("kept").origin;
        assert_eq!(origin, format!("wharfinger/prod/prod/{}", log.reader().id()));
        origins.push(origin);
        drop(log);
        if lost {
            daemon.disk.edit(|blocks| drop(blocks.pop_last()));
        }
    }
    assert!(keys[0] == keys[1] && origins[0] != origins[1], "{origins:?}");
}

#[tokio::test]
async fn what_contradicts_an_earlier_checkpoint_is_not_signed() {
    let daemon = Daemon::new();
    let mut log = open(&daemon.disk);
    append(&mut log, 3);
    let checkpoints = daemon.checkpoints();
    checkpoints.show(Some(log.reader()));
    assert!(checkpoints.make(Duration::ZERO).await);
    let before = std::fs::read(daemon.dir.path().join(FILE)).expect("kept");
    drop(log);
    // A disk that lost the end and the marks with it: the log goes on, and nobody but the checkpoint knows.
    daemon.disk.edit(|blocks| drop(blocks.pop_last()));
    daemon.disk.tear_marks();
    let log = open(&daemon.disk);
    let checkpoints = daemon.checkpoints();
    checkpoints.show(Some(log.reader()));
    assert!(!checkpoints.make(Duration::ZERO).await);
    assert_eq!((checkpoints.checkpoint(), std::fs::read(daemon.dir.path().join(FILE)).expect("kept")), (None, before));
    assert!(kept(Path::new("/nowhere")).is_ok_and(|kept| kept.is_none()));
}
