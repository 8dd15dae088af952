//! Durable appends: the log behind the daemon's committer, and the plain file, in rounds by turns, so that both see the same disk.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinSet;

use super::figures::Append;
use super::life::Life;
use super::plain_file::{self, PlainFile, PlainLog};
use crate::actors::{Committer, CommitterThread};
use crate::cli::bench::timed_log::{Commits, TimedLog};
use crate::cli::error::CliError;
use crate::clock::{self, Clock};
use crate::events::log::{EventLog, LogReader};
use crate::events::sled_log::SledLog;
use crate::ids::Seq;
use crate::telemetry::Metrics;

/// How long is measured.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rounds {
    pub(super) count: usize,
    /// Of each, the log's half and the plain file's half.
    pub(super) span: Duration,
}

/// What one half of a round did.
#[derive(Debug, Clone, Copy, Default)]
struct Half {
    records: u64,
    commits: u64,
    syncs: u64,
    took: Duration,
}

impl Half {
    fn per_s(&self) -> f64 {
        self.records as f64 / self.took.as_secs_f64().max(1e-9)
    }
}

/// The log that is measured, behind its committer.
pub(super) struct Bench<'a> {
    dir: &'a Path,
    clock: Clock,
    committer: Committer,
    thread: CommitterThread,
    reader: Arc<dyn LogReader>,
    commits: Commits,
    lives: Vec<Life>,
    /// Whose turn it is.
    turn: usize,
}

impl<'a> Bench<'a> {
    /// On an open log, with so many apps; `dir` is where the plain file goes.
    pub(super) fn new(dir: &'a Path, log: SledLog, clock: &Clock, subjects: usize) -> Result<Self, CliError> {
        let commits = Commits::default();
        let log = TimedLog::new(log, clock.clone(), commits.clone());
        let reader = log.reader();
        let (committer, thread) = CommitterThread::start(Box::new(log), Metrics::default())?;
        let lives = (0..subjects).map(Life::new).collect::<Result<_, _>>().map_err(super::bad_name)?;
        Ok(Self { dir, clock: clock.clone(), committer, thread, reader, commits, lives, turn: 0 })
    }

    /// Ends in order and closes the log.
    pub(super) async fn close(self) -> Result<(), CliError> {
        drop(self.committer);
        let gone = || CliError::refused("the committer failed", "look at the disk");
        self.thread.ended().await.ok_or_else(gone)?.close()?;
        Ok(())
    }

    /// So many records a commit, one commit after the other.
    pub(super) async fn one_after_another(&mut self, commit: usize, rounds: Rounds) -> Result<Append, CliError> {
        let mut halves = Vec::new();
        for _ in 0..rounds.count {
            let log = self.half(commit, rounds.span).await?;
            let plain = self.plain_half(commit, rounds.span)?;
            halves.push((log, plain));
        }
        Ok(figures(commit, 1, &halves))
    }

    async fn half(&mut self, commit: usize, span: Duration) -> Result<Half, CliError> {
        self.commits.take();
        let syncs = self.reader.stored().syncs;
        let mut half = Half::default();
        while half.took < span {
            half.took += self.append(commit).await?;
            half.records += commit as u64;
        }
        half.commits = self.commits.take().len() as u64;
        half.syncs = self.reader.stored().syncs - syncs;
        Ok(half)
    }

    /// Appends one reaction of the next app and says how long that took; making it up does not count.
    pub(super) async fn append(&mut self, commit: usize) -> Result<Duration, CliError> {
        let first = Seq(self.reader.head().0 + 1);
        self.turn = (self.turn + 1) % self.lives.len();
        let reaction = self.lives[self.turn].reaction(commit, first, self.clock.now_us()).map_err(super::bad_name)?;
        let begun = clock::now();
        self.committer.append(reaction).await.map_err(|error| super::not_appended(&error))?;
        Ok(begun.elapsed())
    }

    fn plain_half(&mut self, commit: usize, span: Duration) -> Result<Half, CliError> {
        let path = self.dir.join("plain");
        let mut file = PlainFile::create(&path)?;
        let mut life = self.lives[self.turn].clone();
        let mut half = Half::default();
        while half.took < span {
            let first = Seq(half.records + 1);
            let reaction = life.reaction(commit, first, self.clock.now_us()).map_err(super::bad_name)?;
            let bytes = plain_file::bytes(&reaction, first).map_err(|error| CliError::refused(error.to_string(), ""))?;
            let begun = clock::now();
            file.append(&bytes)?;
            half.took += begun.elapsed();
            half.records += commit as u64;
        }
        std::fs::remove_file(&path)?;
        Ok(half)
    }

    /// All apps append one record each at once, again and again; the plain file stands behind a committer of its own.
    pub(super) async fn all_at_once(&mut self, rounds: Rounds) -> Result<Append, CliError> {
        let mut halves = Vec::new();
        for _ in 0..rounds.count {
            self.commits.take();
            let syncs = self.reader.stored().syncs;
            let mut log = self.crowd(&self.committer.clone(), rounds.span).await?;
            log.commits = self.commits.take().len() as u64;
            log.syncs = self.reader.stored().syncs - syncs;

            let path = self.dir.join("plain");
            let plain_log = PlainLog::new(PlainFile::create(&path)?, Arc::clone(&self.reader));
            let (committer, thread) = CommitterThread::start(Box::new(plain_log), Metrics::default())?;
            let plain = self.crowd(&committer, rounds.span).await?;
            drop(committer);
            thread.ended().await;
            std::fs::remove_file(&path)?;
            halves.push((log, plain));
        }
        Ok(figures(1, self.lives.len(), &halves))
    }

    async fn crowd(&mut self, committer: &Committer, span: Duration) -> Result<Half, CliError> {
        let mut tasks = JoinSet::new();
        let begun = clock::now();
        for mut life in std::mem::take(&mut self.lives) {
            let (committer, clock) = (committer.clone(), self.clock.clone());
            tasks.spawn(async move {
                let mut records = 0;
                while begun.elapsed() < span {
                    let reaction = life.reaction(1, Seq(1), clock.now_us()).map_err(super::bad_name)?;
                    let appended = committer.append(reaction).await.map_err(|error| super::not_appended(&error))?;
                    life.appended(&appended);
                    records += 1;
                }
                Ok::<_, CliError>((life, records))
            });
        }
        let mut half = Half::default();
        while let Some(ended) = tasks.join_next().await {
            let (life, records) = ended.map_err(|error| CliError::refused(error.to_string(), "report it"))??;
            self.lives.push(life);
            half.records += records;
        }
        half.took = begun.elapsed();
        Ok(half)
    }
}

/// The middle of the rounds.
fn figures(commit: usize, subjects: usize, halves: &[(Half, Half)]) -> Append {
    let records_per_s = middle(halves.iter().map(|(log, _)| log.per_s()));
    let plain_file_records_per_s = middle(halves.iter().map(|(_, plain)| plain.per_s()));
    let sum = |of: fn(&Half) -> u64| halves.iter().map(|(log, _)| of(log)).sum::<u64>() as f64;
    let commits = sum(|half| half.commits).max(1.0);
    Append {
        commit,
        subjects,
        records_per_s,
        plain_file_records_per_s,
        ratio: records_per_s / plain_file_records_per_s.max(1e-9),
        records_per_commit: sum(|half| half.records) / commits,
        fdatasyncs_per_commit: sum(|half| half.syncs) / commits,
    }
}

fn middle(rates: impl Iterator<Item = f64>) -> f64 {
    let mut rates: Vec<f64> = rates.collect();
    rates.sort_by(f64::total_cmp);
    rates.get(rates.len() / 2).copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_the_rounds_the_middle_one_counts() {
        assert_eq!(middle([3.0, 1.0, 9.0].into_iter()), 3.0);
        assert_eq!(middle(std::iter::empty()), 0.0);
    }
}
