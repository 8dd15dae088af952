//! The folder of a log: made, locked, closed to others, and rid of what a crash left in it before the store is opened. Knows no
//! record and no store, but the names of the store's files.

use std::fs::{self, DirBuilder, File, Permissions, TryLockError};
use std::io::{self, Read as _};
use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _};
use std::path::Path;
use std::time::Duration;

use super::engine;
use super::log::OpenError;

/// How often sled's lock is tried, and the pause between two: two seconds in all.
const LOCK_TRIES: u32 = 1_000;
const LOCK_PAUSE: Duration = Duration::from_millis(2);

/// Makes a folder and those above it, with mode 0700, and syncs each new name.
///
/// # Errors
/// When one cannot be made.
pub fn make_folder(dir: &Path) -> io::Result<()> {
    if dir.is_dir() {
        return Ok(());
    }
    let above = parent(dir);
    make_folder(above)?;
    match DirBuilder::new().mode(0o700).create(dir) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
        _ => sync_path(above),
    }
}

/// Leaves a folder to its owner alone.
pub(super) fn close_to_others(dir: &Path) -> io::Result<()> {
    let open = fs::metadata(dir)?.permissions().mode() & 0o077 != 0;
    if open { fs::set_permissions(dir, Permissions::from_mode(0o700)) } else { Ok(()) }
}

/// The folder that a path lies in.
pub(super) fn parent(path: &Path) -> &Path {
    path.parent().filter(|above| !above.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Returns when what a path names is on the disk: for a folder, its names.
pub(super) fn sync_path(path: &Path) -> io::Result<()> {
    File::open(path)?.sync_all()
}

/// Our own lock beside sled's: sled's error does not say that it is about a lock.
pub(super) fn lock(dir: &Path) -> Result<File, OpenError> {
    let lock = File::options().create(true).truncate(false).write(true).open(dir.join("lock")).map_err(engine::open_error)?;
    match lock.try_lock() {
        Ok(()) => Ok(lock),
        Err(TryLockError::WouldBlock) => Err(OpenError::Held),
        Err(TryLockError::Error(error)) => Err(engine::open_error(error)),
    }
}

/// Waits until nobody holds sled's own lock: a store that was just dropped in this process keeps it until sled's threads have
/// let go of it, some milliseconds. We hold ours already, so that another holder is no log.
pub(super) fn wait_for_threads(db: &Path) -> Result<(), OpenError> {
    let file = match File::open(db) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        file => file.map_err(engine::open_error)?,
    };
    for _ in 0..LOCK_TRIES {
        match file.try_lock() {
            Ok(()) => return file.unlock().map_err(engine::open_error),
            Err(TryLockError::WouldBlock) => std::thread::sleep(LOCK_PAUSE),
            Err(TryLockError::Error(error)) => return Err(engine::open_error(error)),
        }
    }
    Err(OpenError::Held)
}

/// Removes sled's `conf` when its checksum does not hold: sled writes it once and never syncs it, so that a power cut can tear
/// it, and all it says is the constants of this file. sled then writes it again.
pub(super) fn repair_conf(conf: &Path) -> io::Result<()> {
    let mut bytes = Vec::new();
    match File::open(conf) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
        Ok(file) => file.take(4096).read_to_end(&mut bytes)?,
    };
    let sound = bytes.split_last_chunk::<4>().is_some_and(|(text, sum)| crc32fast::hash(text) == u32::from_le_bytes(*sum));
    if sound { Ok(()) } else { fs::remove_file(conf) }
}

/// Removes a snapshot that sled had not finished when its life ended, or whose checksum does not hold: at the next opening sled
/// would take it for one, find it damaged, and refuse to open for ever. The one before it, or none, serves as well: it is a start
/// into the file that is read anyway. A file that is damaged itself stays as it is.
pub(super) fn remove_unusable_snapshots(store: &Path) -> io::Result<()> {
    let entries = match fs::read_dir(store) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        entries => entries?,
    };
    for entry in entries {
        let entry = entry?;
        let is_snapshot = entry.file_name().to_str().is_some_and(|name| name.starts_with("snap."));
        if is_snapshot && (entry.path().extension().is_some_and(|end| end == "generating") || !is_sound(&fs::read(entry.path())?)) {
            fs::remove_file(entry.path())?;
        }
    }
    Ok(())
}

/// A snapshot's bytes, then their length in 8, then their CRC-32.
fn is_sound(snapshot: &[u8]) -> bool {
    let split = snapshot.split_last_chunk::<4>().and_then(|(rest, sum)| Some((rest.split_last_chunk::<8>()?.0, sum)));
    split.is_some_and(|(bytes, sum)| crc32fast::hash(bytes) == u32::from_le_bytes(*sum))
}
