//! Holds the Lease for the log that acts: claims it before anything is planned, renews it, and tells when it is lost.

use std::sync::Arc;
use std::time::Duration;

use sha2::{Digest as _, Sha256};
use tokio::time::Instant;

use super::guard::{Judged, Ours, judge};
use super::incarnation::{NotBegun, Outside};
use super::recover::Recovered;
use super::snapshot::recover;
use super::window::Window;
use crate::clock;
use crate::events::carried::carried_daemons;
use crate::events::kinds::daemon::{FormerLog, RestartReason};
use crate::events::log::{Beginning, LogReader};
use crate::events::record::Event;
use crate::events::stored::Body;
use crate::events::tree::EMPTY_ROOT;
use crate::ids::{LogId, Seq, Subject, hex};
use crate::kube::lease::{Claim, Held, LeaseApi, LeaseError};

/// How long a Lease holds without being renewed.
const HOLDS: Duration = Duration::from_secs(15);
/// Between two renewals, and two looks at another's.
const RENEW: Duration = Duration::from_secs(5);

/// The Lease of one process; it outlives its incarnations.
pub(super) struct Lease {
    api: LeaseApi,
    holder: String,
    process: String,
    /// It was held and lost to somebody else.
    lost: bool,
}

/// What a log may do.
pub(super) enum Permitted {
    /// Act: the Lease is written.
    Held(Held),
    /// Be followed by a new log, begun so, because an operator wants it.
    TakeOver(Beginning),
}

/// What became of one look.
enum Claimed {
    Held(Held),
    StandBy(Held, String),
    /// Nobody knows yet: look again after a while.
    NotYet(String),
}

/// What looks before this one showed: the Lease, and since when it has been so.
type Seen = Option<(Held, Instant)>;

impl Lease {
    pub(super) fn new(outside: &Outside) -> Self {
        let kubernetes = &outside.settings.kubernetes;
        let limit = Duration::from_secs(u64::from(kubernetes.request_s));
        let name = format!("wharf-{}", outside.settings.instance());
        let api = LeaseApi::new(outside.cluster.client().clone(), outside.cluster.namespace(), &name, limit);
        // Of the data folder's own key, which never leaves it: the digest says nothing of it.
        let folder = Sha256::new().chain_update(b"lease holder").chain_update(outside.digest_key).finalize();
        Self { api, holder: format!("{name}-{}", hex(&folder[..8])), process: hex(&outside.entropy.bytes::<8>()), lost: false }
    }

    /// Waits until this log may act, or an operator's wish decides. What it waits for is shown and said once.
    ///
    /// # Errors
    /// When the log cannot be folded: it could not act either.
    pub(super) async fn await_permission(
        &self,
        outside: &Outside,
        log: &Arc<dyn LogReader>,
        window: &Window,
        take_over: bool,
    ) -> Result<Permitted, NotBegun> {
        let former = former(log.as_ref());
        let (mut seen, mut said) = (None, String::new());
        loop {
            let (why, stands_by) = match self.claim(outside, log.as_ref(), former, &mut seen).await {
                Claimed::Held(held) => return Ok(Permitted::Held(held)),
                Claimed::StandBy(held, _) if take_over => return Ok(Permitted::TakeOver(in_place_of(&held))),
                Claimed::StandBy(_, why) => (why, true),
                Claimed::NotYet(why) => (why, false),
            };
            if why != said {
                tracing::warn!(why, "this daemon does not act; wharf run --take-over begins a log that may");
                if stands_by {
                    let (Recovered { apps, .. }, _) = recover(log.as_ref())?;
                    window.show_log(log);
                    window.show_standing_by(
                        Arc::new(apps.states.into_iter().map(|(app, state)| (app, Arc::new(state))).collect()),
                        why.clone(),
                    );
                }
                said = why;
            }
            tokio::time::sleep(RENEW).await;
        }
    }

    /// One look at the Lease, and the claim to it where this log may have it.
    async fn claim(&self, outside: &Outside, log: &dyn LogReader, former: Option<LogId>, seen: &mut Seen) -> Claimed {
        let held = match self.api.read().await {
            Ok(Some(held)) => held,
            Ok(None) => return self.take(outside, log, None).await,
            Err(error) => return Claimed::NotYet(format!("the lease cannot be read: {error}")),
        };
        let since = match seen {
            Some((before, since)) if *before == held => *since,
            _ => seen.insert((held.clone(), clock::now())).1,
        };
        let at = log.acknowledged();
        let ours = Ours { holder: &self.holder, log: at.log, head: at.head, former };
        match judge(ours, &held, since.elapsed() >= HOLDS, self.lost) {
            Judged::Take => self.take(outside, log, Some(&held)).await,
            Judged::Wait => Claimed::NotYet(format!("another daemon of this log ({}) renewed the lease lately", held.holder)),
            Judged::StandBy(why) => Claimed::StandBy(held, why),
        }
    }

    async fn take(&self, outside: &Outside, log: &dyn LogReader, over: Option<&Held>) -> Claimed {
        match self.write(outside, log, over).await {
            Ok(held) => Claimed::Held(held),
            Err(error) => Claimed::NotYet(format!("the lease cannot be written: {error}")),
        }
    }

    async fn write(&self, outside: &Outside, log: &dyn LogReader, over: Option<&Held>) -> Result<Held, LeaseError> {
        let duration_s = u32::try_from(HOLDS.as_secs()).unwrap_or(u32::MAX);
        let (holder, process) = (self.holder.clone(), self.process.clone());
        let claim = Claim { holder, process, log: log.acknowledged(), duration_s, now_us: outside.clock.now_us() };
        self.api.write(over.map(|held| held.resource_version.as_str()), &claim).await
    }

    /// Takes the Lease from whoever has it, for a log that was begun in its log's place, and waits until that one has noticed.
    pub(super) async fn take_over(&self, outside: &Outside, log: &dyn LogReader) -> Result<Held, LeaseError> {
        let held = self.api.read().await?;
        self.write(outside, log, held.as_ref()).await?;
        tokio::time::sleep(HOLDS).await;
        // Whoever else claims it meanwhile is not known by its log, unless an operator took it over there too.
        let held = self.api.read().await?.filter(|held| held.process == self.process).ok_or(LeaseError::Changed)?;
        self.write(outside, log, Some(&held)).await
    }

    /// Renews the Lease until it is lost; gives the reason.
    pub(super) async fn keep(&mut self, outside: &Outside, log: &Arc<dyn LogReader>, mut held: Held) -> String {
        let mut trouble = false;
        loop {
            tokio::time::sleep(RENEW).await;
            let error = match self.write(outside, log.as_ref(), Some(&held)).await {
                Ok(renewed) => {
                    (held, trouble) = (renewed, false);
                    continue;
                }
                Err(error) => error,
            };
            match self.api.read().await {
                // Ours was written, and its answer lost; or somebody edited it by hand.
                Ok(Some(now)) if now.process == self.process => held = now,
                Ok(Some(now)) => {
                    self.lost = true;
                    return format!("{} ({}) holds the lease now", now.holder, now.process);
                }
                Ok(None) => match self.write(outside, log.as_ref(), None).await {
                    Ok(made) => held = made,
                    Err(LeaseError::Changed | LeaseError::Away(_)) => {}
                    Err(refused @ LeaseError::Refused(_)) => return refused.to_string(),
                },
                Err(refused @ LeaseError::Refused(_)) => return refused.to_string(),
                // Without an API server nobody acts.
                Err(LeaseError::Changed | LeaseError::Away(_)) => {}
            }
            if !std::mem::replace(&mut trouble, true) {
                tracing::warn!(%error, "the lease cannot be renewed");
            }
        }
    }
}

/// A log that follows the one the Lease names.
fn in_place_of(held: &Held) -> Beginning {
    let former = held.log.map(|id| FormerLog { id, last: Seq::NONE, acknowledged: held.head, size: 0, root: EMPTY_ROOT });
    Beginning { reason: RestartReason::TakeOver, former }
}

/// The log whose place this one took, by its first record.
fn former(reader: &dyn LogReader) -> Option<LogId> {
    let log = reader.id();
    let daemons = reader.subjects().into_iter().filter(|subject| matches!(subject, Subject::Daemon(_)));
    let mut former = None;
    for daemon in daemons {
        let read = reader.subject(&daemon, Seq::NONE, &mut |item| match item.map(|stored| stored.body) {
            Ok(Body::Known(Event::LogRestarted(restarted))) if restarted.log == log => {
                former = restarted.former.map(|former| former.id);
                std::ops::ControlFlow::Break(())
            }
            _ => std::ops::ControlFlow::Continue(()),
        });
        if let Err(error) = read {
            tracing::warn!(%error, "the log's beginning cannot be read");
        }
    }
    let carried = carried_daemons(reader).unwrap_or_default().into_iter().rev().find_map(|(_, daemon)| daemon.began);
    former.or_else(|| carried.filter(|began| began.log == log)?.former.map(|former| former.id))
}
