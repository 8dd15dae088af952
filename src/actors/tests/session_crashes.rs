//! The daemon is killed at each of its writes to the cluster: the next life goes on, nothing is doubled, nothing is left.

use super::session_town::{ask, delete, id};
use super::support::Town;
use crate::session::view::State;

/// What is done, one after the other, each until it is so.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Deed {
    Bring,
    End,
    Resume,
    Suspend,
    ResumeAgain,
    Delete,
}

impl Deed {
    const ALL: [Self; 6] = [Self::Bring, Self::End, Self::Resume, Self::Suspend, Self::ResumeAgain, Self::Delete];

    fn is_done(self, town: &Town) -> bool {
        let state = town.state_of("s1");
        match self {
            Self::Bring | Self::Resume | Self::ResumeAgain => state == State::Ready,
            Self::End | Self::Suspend => state == State::Suspended,
            Self::Delete => state == State::Absent && town.objects().is_empty(),
        }
    }

    /// A caller who is not answered asks again.
    fn ask(self, town: &Town) {
        let sessions = town.live().sessions().clone();
        match self {
            Self::Bring | Self::Resume | Self::ResumeAgain => drop(tokio::spawn(async move { sessions.create(&id("s1"), ask()).await })),
            Self::Suspend => drop(tokio::spawn(async move { sessions.delete(&id("s1"), delete(true), None).await })),
            Self::Delete => drop(tokio::spawn(async move { sessions.delete(&id("s1"), delete(false), None).await })),
            Self::End => town.world.nodes.kill_app("pi-session-s1", 1),
        }
    }
}

/// Does everything, and is killed when `at` writes have been seen, `after_ms` later; gives how many there were in all.
async fn play(at: usize, after_ms: u64) -> usize {
    let mut town = Town::of_sessions(|_| {}).await;
    let mut killed = false;
    for deed in Deed::ALL {
        deed.ask(&town);
        for waited_ms in 0..600_000_u64 {
            if !killed && town.sent().len() >= at {
                killed = true;
                town.run_ms(after_ms).await;
                town.crash().await;
                town.run(2).await;
                town.start_listed().await;
                if !deed.is_done(&town) && deed != Deed::End {
                    deed.ask(&town);
                }
            }
            if deed.is_done(&town) {
                break;
            }
            assert!(waited_ms < 599_999, "killed at write {at}: {deed:?} is not done: {:?}\n{}", town.state_of("s1"), town.story());
            town.run_ms(1).await;
        }
    }
    town.run(120).await;
    assert!(town.objects().is_empty(), "killed at write {at}: {:?}\n{}", town.objects(), town.story());
    assert_eq!(town.writes_like("create persistentvolumeclaims"), 1, "killed at write {at}\n{}", town.story());
    let ends = town.records_of_session("s1").into_iter().filter(|record| record.event.kind().name() == "PodEnded").count();
    assert_eq!(ends, 3, "killed at write {at}: each pod ends once\n{}", town.story());
    town.assert_append_before_act();
    town.assert_verifies();
    town.sent().len()
}

#[tokio::test(start_paused = true)]
async fn a_kill_at_any_write_leaves_a_session_whole_or_gone() {
    let writes = play(usize::MAX, 0).await;
    // The policy; claim, pod, Service; a delete of the pod, a pod, twice; then pod, Service, claim.
    assert_eq!(writes, 1 + 3 + 2 + 2 + 3);
    for at in 1..=writes {
        for after_ms in [0, 1, 3] {
            play(at, after_ms).await;
        }
    }
}
