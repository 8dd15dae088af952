//! The packages on disk.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use futures_util::StreamExt as _;
use futures_util::future::BoxFuture;
use sha2::{Digest as _, Sha256};

use crate::gateway::api::{Chunks, Gateway, GatewayError, GatewayRefusal};
use crate::gateway::sources::{Kept, SourceError, SourceStore};
use crate::ids::{AppId, PackageDigest};

/// Gives the same package for every release, in three chunks, a second after it was asked.
struct Given {
    package: Vec<u8>,
    error: Option<GatewayError>,
    asked: AtomicUsize,
}

impl Given {
    fn package(package: &[u8]) -> Arc<Self> {
        Arc::new(Self { package: package.to_vec(), error: None, asked: AtomicUsize::new(0) })
    }

    fn error(error: GatewayError) -> Arc<Self> {
        Arc::new(Self { package: Vec::new(), error: Some(error), asked: AtomicUsize::new(0) })
    }

    fn asked(&self) -> usize {
        self.asked.load(Ordering::Relaxed)
    }
}

impl Gateway for Given {
    fn heartbeat(&self, _: Vec<u8>) -> BoxFuture<'_, Result<Bytes, GatewayError>> {
        Box::pin(async { Ok(Bytes::new()) })
    }

    fn environment<'a>(&'a self, _: &'a AppId) -> BoxFuture<'a, Result<BTreeMap<String, String>, GatewayError>> {
        Box::pin(async { Ok(BTreeMap::new()) })
    }

    fn source<'a>(&'a self, _: &'a AppId, _: u64) -> BoxFuture<'a, Result<Chunks, GatewayError>> {
        Box::pin(async move {
            self.asked.fetch_add(1, Ordering::Relaxed);
            tokio::time::sleep(std::time::Duration::from_secs(1)).await;
            if let Some(error) = &self.error {
                return Err(error.clone());
            }
            let chunks: Vec<_> = self.package.chunks(self.package.len().div_ceil(3).max(1)).map(Bytes::copy_from_slice).map(Ok).collect();
            Ok(futures_util::stream::iter(chunks).boxed())
        })
    }
}

fn digest(package: &[u8]) -> PackageDigest {
    PackageDigest::from_bytes(Sha256::digest(package).into())
}

fn store(folder: &Path) -> SourceStore {
    SourceStore::open(folder, 100).expect("a folder")
}

async fn ensure(store: &SourceStore, given: &Arc<Given>, digest: PackageDigest) -> Result<Kept, SourceError> {
    let gateway: Arc<dyn Gateway> = Arc::clone(given) as Arc<dyn Gateway>;
    let app = AppId::new("acme", "bot").expect("a name");
    store.ensure(&gateway, &app, 1, digest).await
}

fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> = std::fs::read_dir(folder.join("sources"))
        .expect("a folder")
        .map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}

#[tokio::test(start_paused = true)]
async fn callers_of_one_digest_share_one_fetch() {
    let folder = tempfile::tempdir().expect("a folder");
    let (store, given) = (store(folder.path()), Given::package(b"package"));
    let digest = digest(b"package");
    let all = futures_util::future::join_all((0..20).map(|_| ensure(&store, &given, digest))).await;
    assert!(all.into_iter().all(|kept| kept.expect("kept") == Kept { bytes: 7, fetched: true }));
    assert_eq!(ensure(&store, &given, digest).await.expect("kept"), Kept { bytes: 7, fetched: false });
    assert_eq!(given.asked(), 1);
    let (path, bytes) = store.file(digest).expect("it is kept");
    assert_eq!((std::fs::read(path).expect("a file"), bytes), (b"package".to_vec(), 7));
}

#[tokio::test(start_paused = true)]
async fn callers_share_a_failure_too_and_the_next_one_tries_again() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = store(folder.path());
    let failing = Given::error(GatewayError::Retry { what: "source", reason: "down".to_owned(), status: 503 });
    let all = futures_util::future::join_all((0..20).map(|_| ensure(&store, &failing, digest(b"package")))).await;
    assert!(all.into_iter().all(|kept| matches!(kept, Err(SourceError::Gateway(GatewayError::Retry { .. })))));
    assert_eq!(failing.asked(), 1);
    assert!(ensure(&store, &Given::package(b"package"), digest(b"package")).await.expect("kept").fetched);
}

#[tokio::test(start_paused = true)]
async fn a_caller_that_goes_away_takes_nothing_from_the_others() {
    let folder = tempfile::tempdir().expect("a folder");
    let (store, given) = (store(folder.path()), Given::package(b"package"));
    let digest = digest(b"package");
    let mut first = Box::pin(ensure(&store, &given, digest));
    let second = ensure(&store, &given, digest);
    assert!(futures_util::poll!(&mut first).is_pending());
    drop(first);
    assert!(second.await.expect("kept").fetched);
}

#[tokio::test(start_paused = true)]
async fn b66_what_is_too_large_or_something_else_never_reaches_the_disk() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = store(folder.path());
    let exact = vec![b'x'; 100];
    assert!(ensure(&store, &Given::package(&exact), digest(&exact)).await.is_ok());
    let over = vec![b'y'; 101];
    let too_large = ensure(&store, &Given::package(&over), digest(&over)).await;
    assert!(matches!(too_large, Err(SourceError::Gateway(GatewayError::Refused { why: GatewayRefusal::TooLarge { limit: 100 }, .. }))));
    let other = ensure(&store, &Given::package(b"another"), digest(b"package")).await;
    assert!(matches!(other, Err(SourceError::Gateway(GatewayError::Refused { why: GatewayRefusal::BadDigest, .. }))));
    assert_eq!(names(folder.path()), [digest(&exact).to_string()]);
    assert_eq!(store.kept(), BTreeSet::from([digest(&exact)]));
}

#[tokio::test(start_paused = true)]
async fn packages_are_kept_over_restarts_and_leftovers_are_not() {
    let folder = tempfile::tempdir().expect("a folder");
    let (good, damaged) = (digest(b"package"), digest(b"what it was"));
    let sources = folder.path().join("sources");
    std::fs::create_dir(&sources).expect("a folder");
    for (name, content) in [
        (good.to_string(), b"package".as_slice()),
        (damaged.to_string(), b"what it is"),
        (format!("{good}.0.partial"), b"pack"),
        ("..evil".to_owned(), b""),
        (good.to_string().to_uppercase(), b"package"),
    ] {
        std::fs::write(sources.join(name), content).expect("a file");
    }
    let store = store(folder.path());
    assert_eq!(store.kept(), BTreeSet::from([good, damaged]));
    assert_eq!(names(folder.path()).len(), 2);
    let silent = Given::error(GatewayError::Retry { what: "source", reason: "down".to_owned(), status: 0 });
    assert_eq!(ensure(&store, &silent, good).await.expect("kept"), Kept { bytes: 7, fetched: false });
    assert_eq!(silent.asked(), 0, "the gateway is not needed for it");
    let given = Given::package(b"what it was");
    assert!(ensure(&store, &given, damaged).await.expect("kept").fetched, "what is not what its name says is fetched again");
    assert_eq!(std::fs::read(store.file(damaged).expect("kept").0).expect("a file"), b"what it was");
}

#[tokio::test(start_paused = true)]
async fn what_nobody_names_is_removed() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = store(folder.path());
    for package in [b"one", b"two"] {
        ensure(&store, &Given::package(package), digest(package)).await.expect("kept");
    }
    store.retain(&BTreeSet::from([digest(b"two"), digest(b"never seen")])).expect("the disk");
    assert_eq!(names(folder.path()), [digest(b"two").to_string()]);
    assert_eq!((store.file(digest(b"one")), store.kept().len()), (None, 1));
}

#[tokio::test(start_paused = true)]
async fn a_package_of_unknown_digest_is_bounded_and_kept_until_the_end() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = store(folder.path());
    let app = AppId::new("acme", "bot").expect("a name");
    let gateway: Arc<dyn Gateway> = Given::package(b"whatever it is");
    let (adopted, kept) = store.adopt(&gateway, &app, 1).await.expect("kept");
    assert_eq!((adopted, kept.bytes), (digest(b"whatever it is"), 14));
    store.retain(&BTreeSet::new()).expect("the disk");
    let (path, _) = store.file(adopted).expect("nobody can name it before its pod is seen");
    assert_eq!(std::fs::read(path).expect("a file"), b"whatever it is");
    let gateway: Arc<dyn Gateway> = Given::package(&[7; 101]);
    let refused = store.adopt(&gateway, &app, 1).await;
    assert!(
        matches!(refused, Err(SourceError::Gateway(GatewayError::Refused { why: GatewayRefusal::TooLarge { limit: 100 }, .. }))),
        "{refused:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_disk_that_refuses_is_no_fault_of_the_release() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = store(folder.path());
    std::fs::remove_dir(folder.path().join("sources")).expect("an empty folder");
    let refused = ensure(&store, &Given::package(b"package"), digest(b"package")).await;
    assert!(matches!(refused, Err(SourceError::Disk { .. })), "{refused:?}");
}
