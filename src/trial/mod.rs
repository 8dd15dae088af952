//! Trials: the whole daemon on paused time against the embedded world, with faults drawn from a seed and an oracle that judges.
//! The same seed gives the same trial, byte for byte.

mod apply;
mod dice;
mod fates;
mod fault;
pub mod history;
mod ledger;
mod line;
mod lives;
pub mod oracle;
mod plan;
mod play;
pub mod points;
mod report;
mod rest;
mod rounds;
mod shrink;
mod stage;
#[cfg(test)]
mod tests;
mod weather;

use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};

pub use fault::Kind;
pub use plan::Options;
pub use report::{Played, tell};
pub use rounds::{LEAST, Least};
pub use shrink::shrink;

use history::History;
use oracle::{Judge, Promises};

/// Runs a trial on this thread, to its end.
///
/// # Errors
/// When no runtime or no folder for the packages can be made.
pub fn run(options: &Options) -> std::io::Result<Played> {
    Ok(run_and_keep(options)?.0)
}

/// The same, with everything that happened.
///
/// # Errors
/// As [`run`].
pub fn run_and_keep(options: &Options) -> std::io::Result<(Played, History)> {
    play_plan(options.seed, &plan::Plan::draw(options))
}

/// Plays a plan under the eyes of the judge.
fn play_plan(seed: u64, plan: &plan::Plan) -> std::io::Result<(Played, History)> {
    let history = History::new(Box::new(Judge::new(Promises::of(&lives::settings(plan)))));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build()?;
    let folder = Folder::new()?;
    let played = runtime.block_on(play::play(seed, plan, history.clone(), &folder.0));
    Ok((played, history))
}

/// A folder for packages, in memory where there is such; it goes with this.
struct Folder(PathBuf);

impl Folder {
    fn new() -> std::io::Result<Self> {
        static MADE: AtomicU64 = AtomicU64::new(0);
        let memory = PathBuf::from("/dev/shm");
        let parent = if memory.is_dir() { memory } else { std::env::temp_dir() };
        let number = MADE.fetch_add(1, Ordering::Relaxed);
        let folder = parent.join(format!("wharf-trial-{}-{number}", std::process::id()));
        std::fs::create_dir_all(&folder)?;
        Ok(Self(folder))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // What is left behind is found by the folder's name.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
