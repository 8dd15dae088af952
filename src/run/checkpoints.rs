//! Checkpoints of the log that is being written: when one is due, signing it, keeping it, saying it. Proofs are made in proving.rs.
//!
//! One is due when the log has grown by 1,000 records, or has grown at all and the last is a minute old; looked at once a second,
//! and at the end. Each is on disk before anybody is told of it.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Semaphore;
use tokio::time::Instant;

use super::{checkpoint_key, keys};
use crate::clock::{self, Entropy};
use crate::config::Settings;
use crate::events::leaves::Leaves;
use crate::events::log::{Acknowledged, LogReader};
use crate::proof::checkpoint::{Checkpoint, key_name};
use crate::proof::key::SigningKey;
use crate::proof::note::Note;

/// The newest checkpoint, in the data folder.
pub const FILE: &str = "checkpoint";

/// How many records make a checkpoint due.
const RECORDS: u64 = 1_000;
/// How long a log that grows goes without one.
const AGE: Duration = Duration::from_secs(60);
/// Between two looks at whether one is due.
const LOOK: Duration = Duration::from_secs(1);

/// Takes each new checkpoint, to say it where others keep it.
pub type Announce = Arc<dyn Fn(&str) + Send + Sync>;

/// The checkpoints of one data folder; cheap to clone, all clones are one.
#[derive(Clone)]
pub struct Checkpoints(pub(super) Arc<Inner>);

pub(super) struct Inner {
    pub(super) key: SigningKey,
    data_dir: PathBuf,
    announce: Announce,
    /// The log that is open now.
    log: Mutex<Option<Arc<dyn LogReader>>>,
    last: Mutex<Option<Issued>>,
    /// Held while one is made: the last one at the end does not meet one that is due.
    making: Mutex<()>,
    /// One proof at a time: the first one reads the whole log.
    pub(super) proving: Arc<Semaphore>,
    pub(super) leaves: Mutex<Option<Leaves>>,
}

/// A checkpoint that was made.
#[derive(Clone)]
struct Issued {
    of: Acknowledged,
    note: Arc<str>,
    at: Instant,
}

/// Why a checkpoint is not made.
#[derive(Debug, thiserror::Error)]
enum NotIssued {
    #[error("the log of {there} records does not extend its last checkpoint, of {kept}: what would contradict it is not signed")]
    Contradicts { kept: u64, there: u64 },
    #[error("the checkpoint cannot be kept: {0}")]
    NotKept(#[from] io::Error),
}

impl Checkpoints {
    /// Of that data folder; its key is made at the first start.
    ///
    /// # Errors
    /// When the key cannot be read or made, or is damaged.
    pub fn open(settings: &Settings, entropy: &Entropy, announce: Announce) -> io::Result<Self> {
        let data_dir = Path::new(&settings.data_dir).to_path_buf();
        let key = checkpoint_key::open(&data_dir, &key_name(&settings.world, settings.instance()), entropy)
            .map_err(|error| io::Error::new(error.kind(), format!("{}: {error}", checkpoint_key::FILE)))?;
        tracing::info!(vkey = %key.verifier(), "checkpoints are signed with this key");
        Ok(Self(Arc::new(Inner {
            key,
            data_dir,
            announce,
            log: Mutex::default(),
            last: Mutex::default(),
            making: Mutex::default(),
            proving: Arc::new(Semaphore::new(1)),
            leaves: Mutex::default(),
        })))
    }

    /// From now on of this log; `None`: of none, and nothing of it is held any more.
    pub fn show(&self, log: Option<Arc<dyn LogReader>>) {
        *lock(&self.0.log) = log;
    }

    /// The log that is open now.
    pub(super) fn log(&self) -> Option<Arc<dyn LogReader>> {
        lock(&self.0.log).clone()
    }

    /// Makes checkpoints as they are due, for ever.
    pub async fn keep_making(&self) {
        loop {
            let made = self.make(AGE).await;
            tokio::time::sleep(if made { LOOK } else { AGE }).await;
        }
    }

    /// Makes a checkpoint if the log has grown and the last is at least `age` old, or it has grown by 1,000 records. Whether that
    /// went well, or nothing was to be done.
    pub async fn make(&self, age: Duration) -> bool {
        let Some(of) = self.log().map(|log| log.acknowledged()) else { return true };
        let last = lock(&self.0.last).clone();
        if last.is_some_and(|last| last.of.log == of.log && !is_due(&last, &of, age)) {
            return true;
        }
        let this = self.clone();
        let issued = tokio::task::spawn_blocking(move || this.issue(of)).await;
        let failed = issued.map_or_else(|panicked| Some(panicked.to_string()), |issued| issued.err().map(|error| error.to_string()));
        if let Some(error) = &failed {
            tracing::error!(error, "no checkpoint is made");
        }
        failed.is_none()
    }

    fn issue(&self, of: Acknowledged) -> Result<(), NotIssued> {
        let _making = lock(&self.0.making);
        if lock(&self.0.last).as_ref().is_some_and(|last| last.of.log == of.log && last.of.tree.size >= of.tree.size) {
            return Ok(());
        }
        let checkpoint = Checkpoint::new(self.0.key.verifier().name(), of.log, of.tree);
        // Nothing is signed that contradicts what was signed before, perhaps in an earlier life.
        let kept = kept(&self.0.data_dir)?.filter(|kept| kept.origin == checkpoint.origin).map(|kept| kept.tree);
        if let Some(kept) = kept.filter(|kept| kept.size > of.tree.size || (kept.size == of.tree.size && kept.root != of.tree.root)) {
            return Err(NotIssued::Contradicts { kept: kept.size, there: of.tree.size });
        }
        let note = checkpoint.signed(&self.0.key);
        keys::replace(&self.0.data_dir, FILE, note.as_bytes())?;
        tracing::debug!(log = %of.log, size = of.tree.size, "a checkpoint is made");
        (self.0.announce)(&note);
        *lock(&self.0.last) = Some(Issued { of, note: note.into(), at: clock::now() });
        Ok(())
    }

    /// The newest checkpoint of the log that is open, and what it says.
    pub(super) fn newest(&self) -> Option<(Acknowledged, Arc<str>)> {
        let log = self.log()?.id();
        lock(&self.0.last).as_ref().filter(|last| last.of.log == log).map(|last| (last.of, Arc::clone(&last.note)))
    }
}

fn is_due(last: &Issued, of: &Acknowledged, age: Duration) -> bool {
    let grown = of.tree.size.saturating_sub(last.of.tree.size);
    grown >= RECORDS || (grown > 0 && last.at.elapsed() >= age)
}

/// The checkpoint that a data folder keeps: what it says, whoever signed it.
///
/// # Errors
/// When it cannot be read. One that is damaged counts as none: it is written again.
pub fn kept(data_dir: &Path) -> io::Result<Option<Checkpoint>> {
    let bytes = match std::fs::read(data_dir.join(FILE)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        bytes => bytes?,
    };
    let note = Note::parse(&bytes).ok();
    Ok(note.and_then(|note| Checkpoint::parse(note.text).ok()))
}

pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
