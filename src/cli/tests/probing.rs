//! A store in doubt is tried in a child before a command opens it, and no other is.

use std::path::Path;

use crate::cli::log::open_tried;
use crate::clock::{Clock, Entropy};
use crate::events::log::{EventLog as _, OpenOptions};
use crate::events::sled_log::SledLog;
use crate::ids::Subject;
use crate::run::rescue::{Probe, Probed};

fn a_log(dir: &Path) -> SledLog {
    let options = OpenOptions::new(Subject::daemon("prod").expect("a name"));
    SledLog::open(&dir.join("log"), &Clock::simulated(1), Entropy::os(), &options).expect("opens").0
}

#[test]
fn a_store_that_kills_the_child_is_not_opened_here() {
    let dir = tempfile::tempdir().expect("a folder");
    drop(a_log(dir.path()));
    let refused = open_tried(dir.path(), |_| Ok(Probed::Lost("it panicked".to_owned()))).map(|_| ()).expect_err("it was not closed");
    assert!(refused.line().contains("cannot be opened: it panicked"), "{}", refused.line());
    assert!(open_tried(dir.path(), |_| Err(std::io::Error::other("killed"))).is_err());
    assert!(open_tried(dir.path(), |_| Ok(Probed::Opens)).is_ok());
    Box::new(a_log(dir.path())).close().expect("closed");
    let not_asked: Probe = |_| panic!("it ended in order");
    assert!(open_tried(dir.path(), not_asked).is_ok());
    std::fs::write(dir.path().join("log/opening"), "").expect("written");
    assert!(open_tried(dir.path(), |_| Ok(Probed::Lost(String::new()))).is_err(), "its last opening did not come through");
    assert_eq!(std::fs::read_dir(dir.path()).expect("a folder").count(), 1, "nothing is set aside");
}
