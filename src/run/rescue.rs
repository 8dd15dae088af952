//! A store that cannot be opened must not keep the daemon from starting for ever: it is tried in a child first, and set aside when
//! it kills the child. Knows no subjects, and removes nothing.
//!
//! The child is this program again, with a limit on its memory. It is asked only when the last life did not end in order, or
//! did not come through its own opening: then [`OPENING`] is still there.

use std::fs::{self, File};
use std::io::{self, Read as _};
use std::os::unix::fs::MetadataExt as _;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use jiff::Timestamp;

use crate::clock::{self, Clock};
use crate::events::kinds::daemon::{FormerLog, RestartReason};
use crate::events::log::Beginning;
use crate::events::marks::Marks;
use crate::events::tree::EMPTY_ROOT;
use crate::ids::{Seq, shown};

/// The command that the child is given; nobody else needs it.
pub const PROBE: &str = "probe-log";

/// The child's memory, bytes; it gets as much more as the store has on disk, where the blocks are packed.
const MEMORY: u64 = 256 << 20;

/// How long the child may take, and a second more for each MiB of the store.
const LIMIT: Duration = Duration::from_secs(60);
const PAUSE: Duration = Duration::from_millis(5);

/// What is read of its last words, bytes.
const SAID: u64 = 4_096;

/// SIGHUP, SIGINT, SIGQUIT, SIGKILL, SIGTERM: no program sends them to itself.
const FROM_OUTSIDE: &[i32] = &[1, 2, 3, 9, 15];

/// A file that is there while the log is opened.
const OPENING: &str = "opening";

/// What trying to open a log gave.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Probed {
    /// It opens, or does not for a reason that another place would not change: its opening says which.
    Opens,
    /// It is damaged, or killed whoever opened it.
    Lost(String),
}

/// Tries to open the log of a folder.
pub type Probe = fn(&Path) -> io::Result<Probed>;

/// Makes a log's folder one that can be opened: tries it when it is in doubt, and sets the store aside when it cannot be.
/// Gives how the log must begin then.
///
/// # Errors
/// When files cannot be read, written or renamed.
pub fn rescue(log: &Path, probe: Probe) -> io::Result<Option<Beginning>> {
    let opening = log.join(OPENING);
    if !log.join("store").exists() {
        return Ok(None);
    }
    let marks = Marks::read(&fs::read(log.join("marks")).unwrap_or_default());
    let probed = match (log.join("store/db").exists(), &marks.mark) {
        (true, _) if in_doubt(log, &marks) => probe(log)?,
        (false, Some(_)) => Probed::Lost("its data file is missing".to_owned()),
        // Orderly, or ended while it was made.
        (true, _) | (false, None) => Probed::Opens,
    };
    File::create(&opening)?;
    let Probed::Lost(why) = probed else { return Ok(None) };
    let aside = set_aside(log)?;
    tracing::error!(
        alarm = "log_set_aside", aside = %aside.display(), why,
        "the store cannot be opened and was set aside: a new log begins, and history before it is in the other folder"
    );
    let former = marks.mark.map(|mark| FormerLog { id: mark.log, last: Seq::NONE, acknowledged: mark.last, size: 0, root: EMPTY_ROOT });
    Ok(Some(Beginning { reason: RestartReason::SetAside, former }))
}

/// Whether a store did not end in order, or did not come through its own opening.
fn in_doubt(log: &Path, marks: &Marks) -> bool {
    log.join(OPENING).exists() || marks.mark.as_ref().is_none_or(|mark| !mark.clean)
}

/// Tries the log of a folder that is only to be read, when it is in doubt: changes nothing, and sets nothing aside.
///
/// # Errors
/// As the probe's.
pub fn try_first(log: &Path, probe: Probe) -> io::Result<Probed> {
    if !log.join("store/db").exists() {
        return Ok(Probed::Opens);
    }
    let marks = Marks::read(&fs::read(log.join("marks")).unwrap_or_default());
    if in_doubt(log, &marks) { probe(log) } else { Ok(Probed::Opens) }
}

/// The log is open: the next start need not doubt it.
pub fn came_through(log: &Path) {
    if let Err(error) = fs::remove_file(log.join(OPENING))
        && error.kind() != io::ErrorKind::NotFound
    {
        tracing::warn!(%error, "the next start will try the store in a child first");
    }
}

/// Moves the store beside the log's folder, under a name with a date, with a copy of the marks: a folder that can be read and
/// verified as far as it can be opened. The marks stay where they are too, so that no number is used twice.
fn set_aside(log: &Path) -> io::Result<PathBuf> {
    let second = Timestamp::from_microsecond(Clock::wall_now_us()).map_err(io::Error::other)?;
    let date = second.strftime("%Y%m%dT%H%M%SZ");
    let name = log.file_name().map_or_else(|| "log".into(), |name| name.to_string_lossy().into_owned());
    let beside = |number: u32| {
        let more = if number == 0 { String::new() } else { format!("-{number}") };
        log.with_file_name(format!("{name}-set-aside-{date}{more}"))
    };
    let aside = (0..).map(beside).find(|path| !path.exists()).unwrap_or_else(|| beside(0));
    crate::events::folder::make_folder(&aside)?;
    if log.join("marks").exists() {
        fs::copy(log.join("marks"), aside.join("marks"))?;
    }
    fs::rename(log.join("store"), aside.join("store"))?;
    for folder in [log, &aside] {
        File::open(folder)?.sync_all()?;
    }
    Ok(aside)
}

/// The child: `program` on that log, which may take so many bytes of memory.
#[must_use]
pub fn child(program: &Path, log: &Path, memory: u64) -> Command {
    let mut child = Command::new(program);
    child.arg(PROBE).arg(log).arg(memory.to_string());
    // The allocator takes a gigabyte in advance where it costs nothing; under a limit it does.
    child.env("MIMALLOC_ARENA_EAGER_COMMIT", "0");
    child
}

/// Opens the log in a child of this program.
///
/// # Errors
/// When the child cannot be started, or was ended by somebody: that says nothing of the store.
pub fn probe_in_a_child(log: &Path) -> io::Result<Probed> {
    let bytes = fs::metadata(log.join("store/db")).map_or(0, |db| db.blocks().saturating_mul(512));
    let memory = MEMORY + bytes;
    let limit = LIMIT + Duration::from_secs(bytes >> 20);
    tracing::info!(memory, "the log was not closed in order: it is opened in a child first");
    let mut child = child(&std::env::current_exe()?, log, memory);
    let mut child = child.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn()?;
    let begun = clock::now();
    let status = loop {
        match child.try_wait()? {
            Some(status) => break status,
            None if begun.elapsed() > limit => {
                child.kill()?;
                child.wait()?;
                return Ok(Probed::Lost(format!("it did not open within {} s", limit.as_secs())));
            }
            None => std::thread::sleep(PAUSE),
        }
    };
    let mut said = String::new();
    if let Some(stderr) = child.stderr.take() {
        // What it said is for people: it may be cut, and need not be text.
        let _ = stderr.take(SAID).read_to_string(&mut said);
    }
    match (status.code(), status.signal()) {
        (Some(0 | 3), _) => Ok(Probed::Opens),
        (None, Some(signal)) if FROM_OUTSIDE.contains(&signal) => Err(io::Error::other(format!("the child that tried it: {status}"))),
        _ => Ok(Probed::Lost(format!("{status}: {}", shown(said.trim(), 500)))),
    }
}
