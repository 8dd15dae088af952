//! From the state to the table's rows, and from the table's moves to steps and verdicts.

use std::collections::BTreeMap;

use super::Planner;
use super::ends::LastWords;
use crate::app::marks::mark;
use crate::app::state::{Host, Pod, Work};
use crate::app::table::{self, HostRow, Life, Move, Wanted, What, Why};
use crate::events::kinds::pod::Phase;
use crate::events::kinds::step::{Purpose, Step};
use crate::events::kinds::verdict::{EndCause, FailedWhy, Verdict, VerdictReached};
use crate::events::record::Event;
use crate::ids::{HostName, Seq, Uid, Word};

impl Planner<'_> {
    /// Asks the table. Before the first good answer only the revival of a live host is left of what it says; pods of an app
    /// that this log has never seen wanted are nobody's to stop.
    pub(super) fn decide(&mut self) -> Vec<Move> {
        let rows: Vec<HostRow> = self.app.hosts.iter().filter_map(|(name, host)| self.row(name, host)).collect();
        let never_wanted = self.app.want.is_none() && self.app.stop_asked.is_none();
        if never_wanted {
            return Vec::new();
        }
        let wanted = self.want.map(|want| self.overlaid(&want.host));
        for row in &rows {
            self.look_again_at_register(row, wanted.as_ref());
        }
        let (mut moves, kept) = table::moves_and_kept(wanted.as_ref(), &rows, &self.limits(), self.now_us);
        self.kept = kept;
        if !self.app.may_stop() {
            mark!("decide.may_not_stop");
            moves.retain(|one| matches!(one.what, What::Revive { .. }) && self.is_live(&one.host));
        }
        moves
    }

    /// The want with verdicts overlaid; Keep and the former live host go by the gateway's word alone.
    fn overlaid(&self, name: &HostName) -> Wanted {
        let host = self.app.hosts.get(name);
        let want = self.app.want.as_ref();
        let failed = want.is_some_and(|want| want.failed) && !host.is_some_and(|host| host.retried);
        Wanted {
            host: name.clone(),
            registered: want.is_some_and(|want| want.registered),
            answered_us: want.map_or(self.now_us, |want| want.answered_us),
            failed: failed || host.is_some_and(Host::has_failed) || self.condemned.as_ref() == Some(name),
            live_verdict: host.is_some_and(Host::says_live),
            live_host: want.and_then(|want| want.live_host.clone()),
        }
    }

    /// A host as the table sees it; `None` when it has no pod, is not ended, and nothing brings it.
    fn row(&self, name: &HostName, host: &Host) -> Option<HostRow> {
        let given_up = self.given_up.get(name).copied();
        let cause = given_up.or_else(|| host.pod.as_ref().and_then(|pod| pod.end.as_ref()).or(host.gone.as_ref()).map(|end| end.cause));
        let present = host.pod.as_ref().and_then(|pod| pod.end.as_ref()).or(host.gone.as_ref());
        let is_present = |uid: &Uid, container: &Word, restart: u32| {
            present.is_some_and(|end| *uid == end.uid && *container == end.container && restart == end.restart)
        };
        let recorded = host.exits.iter().filter(|exit| !is_present(&exit.uid, &exit.container, exit.restart)).map(|exit| exit.at_us);
        // What this very pass records counts as recorded.
        let recording = host.unrecorded.iter().filter(|end| end.counts() && !is_present(&end.uid, &end.container, end.restart));
        let blameless = |cause: EndCause| {
            let counts = matches!(cause, EndCause::AppExit | EndCause::Oom);
            let own_fault = matches!(cause, EndCause::InstallFailed | EndCause::NeverStarted(_) | EndCause::Stuck(_));
            // What went live and cannot come back is tried again, never blamed.
            !counts && (!own_fault || self.is_live(name))
        };
        let life = match (&host.pod, &host.gone) {
            (Some(_), _) if cause.is_some() => Life::Ended,
            (Some(pod), _) => life_of(pod),
            (None, Some(end)) if end.own_fault() => Life::Ended,
            (None, Some(_)) => Life::Gone,
            (None, None) if host.is_being_brought() => Life::Pending,
            (None, None) => return None,
        };
        Some(HostRow {
            name: name.clone(),
            life,
            registering_since_us: host.registering_since_us(),
            exits_us: recorded.chain(recording.map(|end| end.at_us)).collect(),
            // A pod that is to be replaced is as good as being deleted: it never goes live.
            deleting: host
                .pod
                .as_ref()
                .is_some_and(|pod| pod.is_deleting() || pod.delete_stands() || (pod.different && cause.is_none() && !self.is_live(name))),
            no_fault: cause.is_some_and(blameless),
        })
    }

    fn look_again_at_register(&mut self, row: &HostRow, wanted: Option<&Wanted>) {
        let waits = wanted.is_some_and(|wanted| wanted.host == row.name && !wanted.registered && !wanted.failed);
        if let Some(since_us) = row.registering_since_us.filter(|_| waits && !self.is_live(&row.name)) {
            let limit_us = self.settings.register_us;
            self.over(since_us, limit_us);
        }
    }

    /// Turns the table's moves into decisions, minus what is in flight or done.
    pub(super) fn carry_out(&mut self, moves: &[Move]) {
        let app = self.app;
        let nothing = Host::default();
        for one in moves {
            let host = app.hosts.get(&one.host).unwrap_or(&nothing);
            match one.what {
                What::Start => self.start(&one.host, host, one.rule),
                What::Revive { counted } => self.revive(&one.host, host, counted, one.rule),
                What::Stop => self.stop(&one.host, host, one.rule),
                What::WentLive => {
                    let uid = host.pod.as_ref().map(|pod| pod.uid.clone());
                    let reached = VerdictReached { host: one.host.clone(), uid, verdict: Verdict::Live, rule: Word::new(one.rule) };
                    let cause = self.want_cause().max(host.pod.as_ref().map_or(Seq::NONE, |pod| pod.seq));
                    self.decide_event(Event::VerdictReached(reached), cause);
                }
                What::Failed(why) => self.fail(&one.host, host, why, one.rule),
            }
        }
    }

    fn start(&mut self, name: &HostName, host: &Host, rule: &'static str) {
        if let Some(want) = self.want {
            if self.is_hindered(host) {
                mark!("start.hindered");
                return;
            }
            if is_losing_secret(host) {
                mark!("start.losing_secret");
                return;
            }
            let step = Step::PutSecret { host: name.clone(), release: want.release, sha256: Some(want.sha256), present_will_do: false };
            self.issue(step, Purpose::Start, rule, want.seq);
        }
    }

    fn revive(&mut self, name: &HostName, host: &Host, counted: bool, rule: &'static str) {
        let cause = self.end_cause(name, host);
        if !counted && self.no_fault_pause(host) {
            mark!("revive.no_fault_pause");
            return;
        }
        let purpose = Purpose::Revive { counted };
        match &host.pod {
            Some(pod) => {
                if self.last_words(name, host, pod, cause) == LastWords::Awaited {
                    mark!("revive.last_words");
                } else if self.is_hindered(host) {
                    mark!("revive.hindered");
                } else {
                    self.delete(name, pod, purpose, rule, cause);
                }
            }
            None => self.put_again(name, host, purpose, rule, cause),
        }
    }

    fn stop(&mut self, name: &HostName, host: &Host, rule: &'static str) {
        let cause = self.want_cause();
        let bringing: Vec<Seq> = host
            .flights
            .iter()
            .filter(|(_, flight)| !flight.revoking && matches!(flight.step, Step::PutSecret { .. } | Step::CreatePod { .. }))
            .map(|(seq, _)| *seq)
            .collect();
        for step in bringing {
            self.revoke(step, rule, cause);
        }
        let Some(pod) = host.pod.as_ref().filter(|pod| !pod.delete_stands()) else { return };
        let words = self.last_words(name, host, pod, cause);
        // What still runs goes at once; what has ended keeps until its last words are read.
        if words == LastWords::Awaited && pod.process_ended() {
            mark!("stop.last_words");
        } else if self.is_awaiting_verdict(name) {
            mark!("stop.awaiting_verdict");
        } else if self.is_hindered(host) {
            mark!("stop.hindered");
        } else {
            self.delete(name, pod, Purpose::Stop, rule, cause);
        }
    }

    /// A failed host's pod stays until the verdict is reached, which waits for its last words.
    fn is_awaiting_verdict(&self, name: &HostName) -> bool {
        self.want.is_some_and(|want| want.host == *name) && !self.overlaid(name).failed && !self.has_just_failed(name)
    }

    /// Whether this very pass reached a verdict of failure.
    pub(super) fn has_just_failed(&self, name: &HostName) -> bool {
        self.just_reached(name).is_some_and(|verdict| verdict != Verdict::Live)
    }

    /// The verdict that this very pass reached of a host.
    pub(super) fn just_reached(&self, name: &HostName) -> Option<Verdict> {
        let verdicts = self.decisions.iter().rev().filter_map(|draft| {
            let Event::VerdictReached(reached) = &draft.event else { return None };
            Some(reached)
        });
        verdicts.filter(|reached| reached.host == *name).map(|reached| reached.verdict).next()
    }

    fn delete(&mut self, name: &HostName, pod: &Pod, purpose: Purpose, rule: &str, cause: Seq) {
        let grace_s = self.grace_s(pod);
        let step = Step::DeletePod { host: name.clone(), uid: pod.uid.clone(), grace_s, forced: false };
        self.issue(step, purpose, rule, cause);
    }

    fn fail(&mut self, name: &HostName, host: &Host, why: Why, rule: &'static str) {
        let cause = self.end_cause(name, host);
        if let Some(pod) = &host.pod
            && self.last_words(name, host, pod, cause) == LastWords::Awaited
        {
            mark!("fail.last_words");
            return;
        }
        let ended = self.given_up.get(name).copied();
        let ended = ended.or_else(|| host.pod.as_ref().and_then(|pod| pod.end.as_ref()).or(host.gone.as_ref()).map(|end| end.cause));
        let why = match (why, ended) {
            (Why::KeepsExiting, _) => FailedWhy::KeepsExiting,
            (Why::NeverRegistered, _) => FailedWhy::NeverRegistered,
            (Why::Exited, Some(EndCause::InstallFailed)) => FailedWhy::InstallFailed,
            (Why::Exited, Some(EndCause::Stuck(stage))) => FailedWhy::Stuck(stage),
            (Why::Exited, Some(EndCause::NeverStarted(never))) => FailedWhy::NeverStarted(never),
            (Why::Exited, _) => FailedWhy::Exited,
        };
        let uid = host.pod.as_ref().map(|pod| pod.uid.clone()).or(host.gone.as_ref().map(|end| end.uid.clone()));
        let reached = VerdictReached { host: name.clone(), uid, verdict: Verdict::Failed(why), rule: Word::new(rule) };
        self.decide_event(Event::VerdictReached(reached), cause);
    }

    /// The record that the host's end, or its state, rests on.
    fn end_cause(&self, name: &HostName, host: &Host) -> Seq {
        let pod_seq = host.pod.as_ref().map_or(Seq::NONE, |pod| pod.seq);
        match host.pod.as_ref().and_then(|pod| pod.end.as_ref()).or(host.gone.as_ref()) {
            Some(end) if !self.given_up.contains_key(name) => end.seq,
            _ => pod_seq,
        }
    }

    /// Asks back the stops of hosts that the table would not stop any more.
    pub(super) fn take_back_stops(&mut self) {
        let app = self.app;
        let Some(want) = self.want.filter(|_| app.confirmed) else { return };
        let waits = |step: &Step| matches!(step, Step::DeletePod { forced: false, .. });
        let stopping = app.hosts.iter().filter(|(_, host)| host.work == Work::Stopping);
        let waiting: BTreeMap<&HostName, Seq> = stopping
            .filter(|(_, host)| !host.pod.as_ref().is_some_and(Pod::is_deleting))
            .filter_map(|(name, host)| Some((name, host.flying(waits)?.0)))
            .collect();
        if waiting.is_empty() {
            return;
        }
        let rows: Vec<HostRow> = app.hosts.iter().filter_map(|(name, host)| self.row(name, host)).collect();
        let wanted = self.overlaid(&want.host);
        for (name, step) in waiting {
            let mut rows = rows.clone();
            for row in rows.iter_mut().filter(|row| row.name == *name) {
                row.deleting = false;
            }
            let moves = table::moves(Some(&wanted), &rows, &self.limits(), self.now_us);
            if !moves.iter().any(|one| one.host == *name && one.what == What::Stop) {
                self.revoke(step, "stop.wanted_again", want.seq);
            }
        }
    }
}

/// Whether a delete of its Secret is under way: one that is put now could be the one that goes.
fn is_losing_secret(host: &Host) -> bool {
    host.flying(|step| matches!(step, Step::DeleteSecret { .. })).is_some()
}

fn life_of(pod: &Pod) -> Life {
    match &pod.view {
        Some(_) if pod.runs() => Life::Running,
        Some(view) if view.phase == Phase::Unknown => Life::Unknown,
        Some(_) | None => Life::Pending,
    }
}
