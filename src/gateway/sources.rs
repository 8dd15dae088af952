//! The releases' packages on disk, by digest: fetched once, bounded and verified before they are written, kept over restarts.
//!
//! The folder holds one file a digest, named by its 64 hex digits. A file under that name is whole: it is written under
//! another name, synced, then renamed. What is named otherwise is a leftover and is removed at open.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::{Bytes, BytesMut};
use futures_util::FutureExt as _;
use futures_util::StreamExt as _;
use futures_util::future::{BoxFuture, Shared, WeakShared};
use sha2::{Digest as _, Sha256};
use tokio::sync::Semaphore;

use super::api::{Gateway, GatewayError, GatewayRefusal};
use crate::ids::{AppId, PackageDigest};

/// Packages fetched at once; each is held in memory until it is verified.
const FETCHES: usize = 4;

/// Why a package is not there, sorted by what the caller does next.
#[derive(Debug, Clone, thiserror::Error)]
pub enum SourceError {
    /// The gateway did not give it, or gave something else.
    #[error(transparent)]
    Gateway(#[from] GatewayError),
    /// The disk refused: try again after a pause, and say so loudly.
    #[error("package {digest}: {reason}")]
    Disk {
        /// Which, in short.
        digest: String,
        /// What the disk said.
        reason: String,
    },
}

impl SourceError {
    fn disk(digest: PackageDigest, error: &io::Error) -> Self {
        Self::Disk { digest: digest.short(), reason: error.to_string() }
    }
}

/// A package that is on disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Kept {
    /// Its size, bytes.
    pub bytes: u64,
    /// Whether it came from the gateway just now, not from the folder.
    pub fetched: bool,
}

type Fetch = BoxFuture<'static, Result<Kept, SourceError>>;

#[derive(Debug, Clone, Copy)]
struct Entry {
    bytes: u64,
    /// Its digest was computed by this process; a file that an earlier one left is read once before it is trusted.
    proved: bool,
    /// Its digest is known from the package alone: nobody names it before its pod is seen, so this process does not remove it.
    adopted: bool,
}

#[derive(Default)]
struct State {
    kept: BTreeMap<PackageDigest, Entry>,
    fetching: BTreeMap<PackageDigest, WeakShared<Fetch>>,
}

/// The packages on disk; cheap to clone, all clones are one.
#[derive(Clone)]
pub struct SourceStore(Arc<Inner>);

struct Inner {
    folder: PathBuf,
    max_bytes: u64,
    /// Whether the disk is used on the caller's own thread: for the simulation, whose order must not depend on threads.
    inline: bool,
    slots: Semaphore,
    /// Numbers the partial files: an abandoned write must not share its file with the next one.
    written: AtomicU64,
    state: Mutex<State>,
}

impl SourceStore {
    /// Opens `<data_dir>/sources`, makes it when it is not there, and removes leftovers. `max_bytes` is `sources.max_bytes`.
    ///
    /// # Errors
    /// When the folder cannot be made or read.
    pub fn open(data_dir: &Path, max_bytes: u64) -> io::Result<Self> {
        Self::open_as(data_dir, max_bytes, false)
    }

    /// The same, with every use of the disk on the caller's thread.
    ///
    /// # Errors
    /// As [`SourceStore::open`].
    pub fn open_inline(data_dir: &Path, max_bytes: u64) -> io::Result<Self> {
        Self::open_as(data_dir, max_bytes, true)
    }

    fn open_as(data_dir: &Path, max_bytes: u64, inline: bool) -> io::Result<Self> {
        let folder = data_dir.join("sources");
        fs::create_dir_all(&folder)?;
        sync_folder(data_dir)?;
        let mut kept = BTreeMap::new();
        for entry in fs::read_dir(&folder)? {
            let entry = entry?;
            let digest = entry.file_name().to_str().and_then(|name| PackageDigest::parse(name).ok());
            let found = entry.metadata()?;
            match digest {
                Some(digest) if found.is_file() => {
                    kept.insert(digest, Entry { bytes: found.len(), proved: false, adopted: false });
                }
                _ if found.is_file() => fs::remove_file(entry.path())?,
                _ => tracing::warn!(path = %entry.path().display(), "not a package: left where it is"),
            }
        }
        let state = Mutex::new(State { kept, fetching: BTreeMap::new() });
        Ok(Self(Arc::new(Inner { folder, max_bytes, inline, slots: Semaphore::new(FETCHES), written: AtomicU64::new(0), state })))
    }

    /// Makes sure that a release's package is on disk and is what its digest says. Callers of one digest share one fetch, and
    /// its failure; the next call after a failure tries again.
    ///
    /// # Errors
    /// When the gateway does not give it, it is too large, it has another digest, or the disk refuses.
    pub async fn ensure(&self, gateway: &Arc<dyn Gateway>, app: &AppId, release: u64, digest: PackageDigest) -> Result<Kept, SourceError> {
        let shared = {
            let mut state = self.0.state();
            match state.kept.get(&digest) {
                Some(entry) if entry.proved => return Ok(Kept { bytes: entry.bytes, fetched: false }),
                Some(_) | None => {}
            }
            match state.fetching.get(&digest).and_then(WeakShared::upgrade) {
                Some(shared) => shared,
                None => {
                    let (inner, gateway, app) = (Arc::clone(&self.0), Arc::clone(gateway), app.clone());
                    let shared: Shared<Fetch> = async move { inner.obtain(gateway, app, release, digest).await }.boxed().shared();
                    if let Some(weak) = shared.downgrade() {
                        state.fetching.insert(digest, weak);
                    }
                    shared
                }
            }
        };
        let result = shared.await;
        let mut state = self.0.state();
        if state.fetching.get(&digest).is_some_and(|weak| weak.upgrade().is_none_or(|fetch| fetch.peek().is_some())) {
            state.fetching.remove(&digest);
        }
        result
    }

    /// Takes what the gateway gives for a release whose digest nobody knows any more, bounded, and keeps it under the digest that
    /// it has (hosted-apps.md, "unproved").
    ///
    /// # Errors
    /// As [`SourceStore::ensure`], but for the digest.
    pub async fn adopt(&self, gateway: &Arc<dyn Gateway>, app: &AppId, release: u64) -> Result<(PackageDigest, Kept), SourceError> {
        let _slot = self.0.slots.acquire().await.expect("the semaphore is never closed");
        let package = read_bounded(gateway.source(app, release).await?, self.0.max_bytes).await?;
        let digest = PackageDigest::from_bytes(Sha256::digest(&package).into());
        let bytes = package.len() as u64;
        self.0.write(digest, package).await?;
        self.0.state().kept.insert(digest, Entry { bytes, proved: true, adopted: true });
        Ok((digest, Kept { bytes, fetched: true }))
    }

    /// The package's file and its size; `None` when it is not kept.
    #[must_use]
    pub fn file(&self, digest: PackageDigest) -> Option<(PathBuf, u64)> {
        self.0.state().kept.get(&digest).map(|entry| (self.0.path(digest), entry.bytes))
    }

    /// Which packages are kept.
    #[must_use]
    pub fn kept(&self) -> BTreeSet<PackageDigest> {
        self.0.state().kept.keys().copied().collect()
    }

    /// Removes what nobody names. `named` must hold every digest that a want or a pod of ours names, also of a want that is
    /// being acted on; what is on its way here is not touched.
    ///
    /// # Errors
    /// When the disk refuses; the others are removed nevertheless.
    pub fn retain(&self, named: &BTreeSet<PackageDigest>) -> io::Result<()> {
        let mut state = self.0.state();
        let unnamed = state.kept.iter().filter(|(digest, entry)| !entry.adopted && !named.contains(digest));
        let unnamed: Vec<PackageDigest> = unnamed.map(|(digest, _)| *digest).collect();
        let mut result = Ok(());
        for digest in unnamed {
            if state.fetching.contains_key(&digest) {
                continue;
            }
            state.kept.remove(&digest);
            match fs::remove_file(self.0.path(digest)) {
                Ok(()) => {}
                Err(e) if e.kind() == io::ErrorKind::NotFound => {}
                Err(e) => result = Err(e),
            }
        }
        result
    }
}

impl Inner {
    /// Never held over an await, and nothing under it panics half-way: a poisoned lock still guards a whole state.
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn path(&self, digest: PackageDigest) -> PathBuf {
        self.folder.join(digest.to_string())
    }

    async fn obtain(
        self: Arc<Self>,
        gateway: Arc<dyn Gateway>,
        app: AppId,
        release: u64,
        digest: PackageDigest,
    ) -> Result<Kept, SourceError> {
        let disk = |error| SourceError::disk(digest, &error);
        let left = self.state().kept.get(&digest).copied();
        if let Some(entry) = left {
            let path = self.path(digest);
            if self.on_disk(move || read_proved(&path, digest)).await.map_err(disk)? {
                self.state().kept.insert(digest, Entry { proved: true, ..entry });
                return Ok(Kept { bytes: entry.bytes, fetched: false });
            }
            tracing::warn!(package = digest.short(), "the package on disk is not what its name says: fetched again");
            self.state().kept.remove(&digest);
        }
        let _slot = self.slots.acquire().await.expect("the semaphore is never closed");
        let package = read_bounded(gateway.source(&app, release).await?, self.max_bytes).await?;
        let bytes = package.len() as u64;
        let offered = package.clone();
        let is_it = move || Ok(<[u8; 32]>::from(Sha256::digest(&offered)) == *digest.as_bytes());
        if !self.on_disk(is_it).await.map_err(disk)? {
            return Err(GatewayError::Refused { what: "source", why: GatewayRefusal::BadDigest }.into());
        }
        self.write(digest, package).await?;
        self.state().kept.insert(digest, Entry { bytes, proved: true, adopted: false });
        Ok(Kept { bytes, fetched: true })
    }

    async fn write(&self, digest: PackageDigest, package: Bytes) -> Result<(), SourceError> {
        let (folder, path) = (self.folder.clone(), self.path(digest));
        let partial = folder.join(format!("{digest}.{}.partial", self.written.fetch_add(1, Ordering::Relaxed)));
        let written = self.on_disk(move || write_whole(&folder, &partial, &path, &package)).await;
        written.map_err(|error| SourceError::disk(digest, &error))
    }

    async fn on_disk<T: Send + 'static>(&self, work: impl FnOnce() -> io::Result<T> + Send + 'static) -> io::Result<T> {
        if self.inline {
            return work();
        }
        tokio::task::spawn_blocking(work).await.map_err(io::Error::other)?
    }
}

async fn read_bounded(mut chunks: super::api::Chunks, limit: u64) -> Result<Bytes, GatewayError> {
    let mut package = BytesMut::new();
    while let Some(chunk) = chunks.next().await {
        let chunk = chunk?;
        if (package.len() + chunk.len()) as u64 > limit {
            return Err(GatewayError::Refused { what: "source", why: GatewayRefusal::TooLarge { limit } });
        }
        package.extend_from_slice(&chunk);
    }
    Ok(package.freeze())
}

fn read_proved(path: &Path, digest: PackageDigest) -> io::Result<bool> {
    match fs::read(path) {
        Ok(package) => Ok(<[u8; 32]>::from(Sha256::digest(&package)) == *digest.as_bytes()),
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(e) => Err(e),
    }
}

/// Under its name there is either nothing or all of it, also after a power cut.
fn write_whole(folder: &Path, partial: &Path, path: &Path, package: &[u8]) -> io::Result<()> {
    let written = fs::write(partial, package)
        .and_then(|()| fs::File::open(partial)?.sync_all())
        .and_then(|()| fs::rename(partial, path))
        .and_then(|()| sync_folder(folder));
    if written.is_err() {
        // The disk has refused already; a leftover is removed at the next open.
        let _ = fs::remove_file(partial);
    }
    written
}

fn sync_folder(folder: &Path) -> io::Result<()> {
    fs::File::open(folder)?.sync_all()
}
