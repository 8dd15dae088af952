//! Writes a store anew beside the old one and puts it in its place. Knows folders and their names, not what is stored.
//!
//! The database appends: what is taken out of a block stays in its file until the room is needed again. A copy holds only what is
//! there now. `store.partial` is being written; once it is whole and synced it is called `store.renewed`, and from then on it is the
//! store: whoever opens the folder next finishes what a crash left.

use std::fs::{self, File};
use std::io;
use std::path::Path;

use super::engine::open_error;
use super::folder::{sync_path, wait_for_threads};
use super::log::OpenError;
use super::sled_log::{Access, SledStore, Tuning};

const STORE: &str = "store";
const PARTIAL: &str = "store.partial";
const RENEWED: &str = "store.renewed";
const OLD: &str = "store.old";

/// There from before something is taken out until the store is written anew without it.
const ASKED: &str = "renew";

/// Has the store written anew at the next opening for writing, or by [`renew`].
pub(super) fn ask(dir: &Path) -> io::Result<()> {
    File::create(dir.join(ASKED))?.sync_all()?;
    sync_path(dir)
}

/// Nothing was taken out, or what was is nowhere any more.
pub(super) fn not_any_more(dir: &Path) -> io::Result<()> {
    match fs::remove_file(dir.join(ASKED)) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => sync_path(dir),
    }
}

/// Whether that was asked for and is not done.
pub(super) fn is_asked(dir: &Path) -> bool {
    dir.join(ASKED).exists()
}

/// Whether a whole copy waits to become the store.
pub(super) fn is_begun(dir: &Path) -> bool {
    dir.join(RENEWED).exists()
}

/// Renews the store of that folder, whose lock the caller holds.
pub(super) fn renew(dir: &Path, lock: &File) -> Result<(), OpenError> {
    finish(dir).map_err(open_error)?;
    let (store, partial) = (dir.join(STORE), dir.join(PARTIAL));
    if !store.join("db").exists() {
        return Err(OpenError::Missing);
    }
    let holder = || lock.try_clone().map_err(open_error);
    let from = SledStore::open_at(dir, &store, holder()?, Access::Reading, Tuning::USUAL)?;
    let to = SledStore::open_at(dir, &partial, holder()?, Access::Writing { extra_sync: true }, Tuning::USUAL)?;
    from.copy_to(&to).map_err(open_error)?;
    drop((from, to));
    // A folder is renamed when none of the database's threads writes to it any more.
    wait_for_threads(&store.join("db"))?;
    wait_for_threads(&partial.join("db"))?;
    fs::rename(&partial, dir.join(RENEWED)).and_then(|()| sync_path(dir)).map_err(open_error)?;
    finish(dir).and_then(|()| not_any_more(dir)).map_err(open_error)
}

/// Puts a whole copy in the store's place, and removes what was left of an earlier one.
pub(super) fn finish(dir: &Path) -> io::Result<()> {
    let (store, renewed, old) = (dir.join(STORE), dir.join(RENEWED), dir.join(OLD));
    if renewed.exists() {
        remove(&old)?;
        if store.exists() {
            fs::rename(&store, &old)?;
            sync_path(dir)?;
        }
        fs::rename(&renewed, &store)?;
        sync_path(dir)?;
    }
    remove(&old)?;
    remove(&dir.join(PARTIAL))
}

fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_dir_all(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        removed => removed,
    }
}
