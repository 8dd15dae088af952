//! A disk that refuses, below one folder: what the functions that take libc's place (tests/it/power_cut/recorder.rs) answer
//! there instead of asking the kernel. Knows nothing of logs.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// How a disk refuses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    /// No file can grow; what it has can be written again.
    Full,
    /// Nothing can be written.
    NoWrites,
    /// What was written cannot be synced.
    NoSyncs,
}

/// What a call would do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Call {
    /// Write so that the file has at least this many bytes.
    Write(u64),
    Sync,
}

static ANY: AtomicBool = AtomicBool::new(false);
static FAULTS: Mutex<BTreeMap<PathBuf, Fault>> = Mutex::new(BTreeMap::new());

fn faults() -> MutexGuard<'static, BTreeMap<PathBuf, Fault>> {
    FAULTS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// From now on the disk refuses below that folder; `None`: it is well again.
pub(crate) fn set(folder: &Path, fault: Option<Fault>) {
    let folder = folder.canonicalize().expect("a folder that is there");
    let mut faults = faults();
    match fault {
        Some(fault) => faults.insert(folder, fault),
        None => faults.remove(&folder),
    };
    ANY.store(!faults.is_empty(), Ordering::SeqCst);
}

/// The error number that the call ends with, when it is refused.
pub(crate) fn refused(fd: i32, call: Call) -> Option<i32> {
    if !ANY.load(Ordering::SeqCst) {
        return None;
    }
    let path = fs::read_link(format!("/proc/self/fd/{fd}")).ok()?;
    let fault = faults().iter().find(|(folder, _)| path.starts_with(folder)).map(|(_, fault)| *fault)?;
    match (fault, call) {
        (Fault::Full, Call::Write(end)) => (fs::metadata(&path).ok()?.len() < end).then_some(libc::ENOSPC),
        (Fault::NoWrites, Call::Write(_)) | (Fault::NoSyncs, Call::Sync) => Some(libc::EIO),
        _ => None,
    }
}
