//! A data folder from a backup file: the log appears in it whole or not at all.

use std::fs::{self, File, Permissions};
use std::io::{self, BufReader};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use super::BackupError;
use super::about::About;
use super::entry::{End, Entries, Next};
use super::file::about;
use super::follow::Follow;
use crate::events::log::OpenError;
use crate::events::sled_log::{self, SledStore};
use crate::events::store::{Removal, Store};

/// Blocks are stored in batches of this, bytes.
const BATCH: usize = 1 << 20;

/// What a disk has at its top, and what does not make a folder a used one.
const OF_THE_DISK: &str = "lost+found";

/// The folder's log, and its name until it is whole.
const LOG: &str = "log";
const RESTORING: &str = "log.restoring";

/// Why a backup was not restored. Nothing is left of a try, unless it says so.
#[derive(Debug, thiserror::Error)]
pub enum RestoreError {
    /// The backup file.
    #[error(transparent)]
    Backup(#[from] BackupError),
    /// Something is in the folder.
    #[error("it is not empty: {0} is there")]
    NotEmpty(String),
    /// The store cannot be made.
    #[error(transparent)]
    Store(#[from] OpenError),
    /// Writing failed.
    #[error("cannot write: {0}")]
    Io(#[from] io::Error),
}

/// Makes a data folder whose log has the blocks of the backup, and no mark: whoever goes on writing begins a new log id, because
/// nobody knows how far the log went after the backup was made.
///
/// # Errors
/// See [`RestoreError`].
pub fn restore(file: &Path, dir: &Path) -> Result<(About, End), RestoreError> {
    if let Some(used) = first_entry(dir)? {
        return Err(RestoreError::NotEmpty(used));
    }
    let file = File::open(file).map_err(BackupError::Io)?;
    let (entries, document) = Entries::of_file(BufReader::with_capacity(256 << 10, file))?;
    let about = about(&document).map_err(|what| entries.damaged(what))?;
    if !about.is_whole() {
        return Err(BackupError::Part.into());
    }
    let restoring = dir.join(RESTORING);
    let filled = fill(entries, &restoring).and_then(|end| {
        fs::set_permissions(dir, Permissions::from_mode(0o700))?;
        fs::rename(&restoring, dir.join(LOG))?;
        File::open(dir)?.sync_all()?;
        Ok(end)
    });
    if filled.is_err() {
        // The reason that it failed says more than that something is left.
        let _ = fs::remove_dir_all(&restoring);
    }
    Ok((about, filled?))
}

fn first_entry(dir: &Path) -> io::Result<Option<String>> {
    let entries = match fs::read_dir(dir) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        entries => entries?,
    };
    for entry in entries {
        let name = entry?.file_name().to_string_lossy().into_owned();
        if name != OF_THE_DISK {
            return Ok(Some(name));
        }
    }
    Ok(None)
}

fn fill(mut entries: Entries<BufReader<File>>, dir: &Path) -> Result<End, RestoreError> {
    let store = sled_log::make_store(dir)?;
    let mut follow = Follow::default();
    let (mut batch, mut bytes, mut aged_out) = (Vec::new(), 0, Removal::default());
    let said = loop {
        match entries.step()? {
            Some(Next::Block { key, bytes: block, .. }) => {
                follow.take(key, &block).map_err(|what| entries.damaged(what))?;
                bytes += block.len();
                batch.push((key, SledStore::pack(block)));
                if bytes >= BATCH {
                    store.put(std::mem::take(&mut batch))?;
                    bytes = 0;
                }
            }
            Some(Next::Removed { key, bytes: leaves, .. }) => {
                follow.removed(key, &leaves).map_err(|what| entries.damaged(what))?;
                bytes += leaves.len();
                aged_out.blocks.push((key, leaves));
                if bytes >= BATCH {
                    store.remove(std::mem::take(&mut aged_out))?;
                    bytes = 0;
                }
            }
            Some(Next::Numbers { subject, bytes }) => aged_out.numbers.push((subject, bytes)),
            // What is before it is not in the file.
            Some(Next::Base(_)) => return Err(BackupError::Part.into()),
            Some(Next::End(end)) => break end,
            None => return Err(entries.damaged("the file ends before its end").into()),
        }
    };
    store.remove(aged_out)?;
    store.put(batch)?;
    store.sync()?;
    sled_log::leave_store(store, dir)?;
    let end = follow.end().map_err(|what| entries.damaged(what))?;
    match end {
        Some(end) if end == said => Ok(end),
        Some(_) | None => Err(entries.damaged("the end says another tree than its records give").into()),
    }
}
