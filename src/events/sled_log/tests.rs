//! What of a newer build is in a store.

use super::*;
use crate::ids::Subject;

#[test]
fn what_a_newer_build_stored_is_ignored_or_needs_that_build() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let open = || {
        let options = OpenOptions::new(Subject::daemon("world").expect("a name"));
        SledLog::open(folder.path(), &Clock::simulated(1), Entropy::os(), &options).map(|(_, opened)| opened.head)
    };
    let put = |key: &[u8]| {
        let access = Access::Writing { extra_sync: true };
        let store = SledStore::open(folder.path(), lock(folder.path())?, access, Tuning::USUAL)?;
        store.db().insert(key, &[1]).map_err(|error| engine::open_error(from_sled(error)))?;
        store.sync().map_err(engine::open_error)
    };
    assert!(matches!(open(), Ok(Seq(1))));
    put(b"a small letter").expect("stored");
    put(b"zz").expect("stored");
    assert!(matches!(open(), Ok(Seq(1))));
    put(b"Tree at 7").expect("stored");
    assert!(matches!(open(), Err(OpenError::NeedsVersion { seq: Seq::NONE, .. })));
    assert!(SledLog::open_for_reading(folder.path()).is_ok());
}
