//! What must never be decided, held against every decision of a random life (DESIGN.md, "Invariants" 4 to 6).

use super::story::shown;
use super::world::World;
use crate::events::kinds::step::{Purpose, Step, StepIssued};
use crate::events::record::Event;
use crate::ids::Uid;

impl World {
    /// What must hold of every decision (DESIGN.md, "Invariants" 4 to 6, and "The loop").
    pub(super) fn safe(&mut self, decided: &[Event]) {
        let app = self.story.app.clone();
        let settings = &self.story.settings;
        let want = app.wanted(settings.withdraw_after, settings.withdraw_after_mass);
        for event in decided {
            match event {
                Event::StepIssued(StepIssued { step, purpose, .. }) => {
                    let host = app.hosts.get(step.host());
                    if !app.may_stop() {
                        let live = app.want.as_ref().is_some_and(|want| want.live_host.as_ref() == Some(step.host()));
                        let live = live || host.is_some_and(|host| host.says_live());
                        assert!(live && *purpose != Purpose::Stop, "before the first answer: {}", shown(event));
                    }
                    let Step::DeletePod { uid, forced, grace_s, .. } = step else { continue };
                    let pod = host.and_then(|host| host.pod.as_ref()).expect("a delete is of a known pod");
                    assert_eq!(pod.uid, *uid, "a delete carries the uid it was decided on");
                    let named = want.is_some_and(|want| want.live_host.as_ref() == Some(step.host()));
                    let failed =
                        want.is_some_and(|want| want.host == *step.host() && (want.failed || host.is_some_and(|host| host.has_failed())));
                    assert!(*forced || !pod.runs() || !named || failed, "the host that serves is removed: {}", shown(event));
                    if pod.process_ended() && !*forced {
                        assert!(self.is_told(uid), "{} goes before its end and its last words are kept", step.host());
                    } else {
                        assert!(*forced || *grace_s > 0, "what still runs is given no grace");
                    }
                }
                Event::PodEnded(ended) if ended.counted => {
                    let key = (ended.uid.clone(), ended.container.clone(), ended.restart);
                    assert!(self.counted.insert(key), "counted twice: {}", shown(event));
                    assert!(self.cluster.own_exits.contains(&ended.uid), "not an exit of its own: {}", shown(event));
                }
                _ => {}
            }
        }
    }

    fn is_told(&self, uid: &Uid) -> bool {
        let records = &self.story.records;
        let ended = records.iter().any(|record| matches!(&record.event, Event::PodEnded(ended) if ended.uid == *uid));
        let asked = records.iter().any(|record| matches!(&record.event, Event::TailAsked(asked) if asked.of.uid == *uid && asked.of.ended));
        let kept = records.iter().any(|record| matches!(&record.event, Event::TailKept(kept) if kept.of.uid == *uid && kept.of.ended));
        ended && (kept || !asked)
    }
}
