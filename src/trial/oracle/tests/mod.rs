//! The judge, judged: what breaks an invariant is found, what looks like it is not.

mod doubt;
mod story;

use serde_json::json;

use self::story::{Say, Story, create};
use crate::ids::Seq;
use crate::trial::history::Fate;

const R1: &str = "bot-r1-aaaaaaaa";
const R2: &str = "bot-r2-bbbbbbbb";

const REGISTERED: Say = Say { registered: true, failed: false, live: None };
const LIVE: Say = Say { registered: true, failed: false, live: Some(R1) };
const STARTING: Say = Say { registered: false, failed: false, live: Some(R1) };
const SECOND: Say = Say { registered: true, failed: false, live: Some(R1) };

/// A first host that is live.
fn live() -> Story {
    let mut story = Story::begun();
    story.answer(R1, Say::default());
    story.secret(R1);
    story.start(R1, "u1");
    story.answer(R1, REGISTERED);
    story.report(R1, "live", "");
    story.answer(R1, LIVE);
    story
}

fn none(story: Story) {
    assert_eq!(story.found(), Vec::<String>::new());
}

fn one(story: Story, begins: &str) {
    let found = story.found();
    assert!(found.len() == 1 && found[0].starts_with(begins), "{found:#?}");
}

#[test]
fn a_rollout_as_it_should_be() {
    let mut story = live();
    story.answer(R2, STARTING);
    story.secret(R2);
    story.start(R2, "u2");
    story.answer(R2, SECOND);
    story.report(R2, "live", "");
    story.answer(R2, Say { live: Some(R2), ..SECOND });
    story.delete(R1, "u1", 45);
    story.store("pods", R1, None);
    story.store("secrets", &format!("{R1}-env"), None);
    story.rest(Fate::Healthy);
    none(story);
}

#[test]
fn the_former_host_is_stopped_before_the_next_is_live() {
    let mut story = live();
    story.answer(R2, STARTING);
    story.secret(R2);
    story.start(R2, "u2");
    story.answer(R2, SECOND);
    story.delete(R1, "u1", 45);
    one(story, "4: bot-r1-aaaaaaaa of acme/bot was removed while it runs");
}

#[test]
fn a_write_without_a_step_or_before_it() {
    let mut story = live();
    story.write(Seq(99), "create", "pods", R2, |entry| entry.code = 409);
    one(story, "1: create pods bot-r2-bbbbbbbb was sent without a durable step");
    let mut story = live();
    story.answer(R2, STARTING);
    let step = story.issue(create(R2));
    story.write(step, "create", "pods", R1, |entry| entry.code = 409);
    one(story, "1: create pods bot-r1-aaaaaaaa is not what its step");
}

#[test]
fn a_number_that_is_lost_used_twice_or_left_out() {
    let mut story = live();
    story.crash();
    story.begin(Seq(2));
    one(story, "1: record 3 was durable and is lost");
    let mut story = live();
    story.issue_as(Seq(3), create(R1));
    let found = story.found();
    assert!(found[0].starts_with("1: record 3 is written after record 3"), "{found:?}");
    let mut story = live();
    story.issue_as(Seq(9), create(R1));
    one(story, "1: record 9 follows where record 4 must");
}

#[test]
fn a_delete_without_a_uid_and_of_what_is_not_ours() {
    let mut story = live();
    let step = story
        .issue(crate::events::kinds::step::Step::DeleteSecret { host: story::name(R1), uid: crate::ids::Uid::new("s").expect("a uid") });
    story.write(step, "delete", "secrets", &format!("{R1}-env"), |entry| {
        entry.uid_precondition = None;
        entry.code = 500;
    });
    one(story, "5: delete secrets bot-r1-aaaaaaaa-env was sent without a uid");
    let mut story = live();
    let mut pod = story.object("pods", R1).expect("a pod");
    pod["metadata"]["labels"] = json!({"app": "theirs"});
    story.store("pods", R1, Some(pod));
    story.exits(R1, "u1");
    story.delete(R1, "u1", 0);
    one(story, "5: delete pods bot-r1-aaaaaaaa changed an object that is not ours");
}

#[test]
fn a_life_that_acts_too_early() {
    let mut story = live();
    story.answer(R2, Say { live: Some(R2), ..SECOND });
    story.restart();
    story.delete(R1, "u1", 45);
    one(story, "4: delete pods bot-r1-aaaaaaaa was sent in life 2 before its first good answer");
    let mut story = live();
    story.crash();
    story.begin(Seq(3));
    story.answer(R1, Say { live: Some(R1), ..Say::default() });
    story.exits(R1, "u1");
    story.delete(R1, "u1", 0);
    one(story, "3: delete pods bot-r1-aaaaaaaa was sent in life 2 before the cluster was listed");
}

#[test]
fn a_pod_without_its_fence() {
    let mut story = Story::begun();
    story.answer(R1, Say::default());
    story.start_unfenced(R1, "u1");
    one(story, "8: the pod bot-r1-aaaaaaaa was made before there was a NetworkPolicy");
}

#[test]
fn a_running_pod_is_forced_away() {
    let mut story = live();
    story.answer(R2, Say { live: Some(R2), ..SECOND });
    story.wait(60);
    story.delete(R1, "u1", 0);
    one(story, "3: the pod bot-r1-aaaaaaaa (u1) was forced away");
}

#[test]
fn b19_an_eviction_is_no_exit() {
    let ended = json!([{"name": "app", "state": {"terminated": {"exitCode": 137, "reason": "Error"}}}]);
    let mut story = Story::begun();
    story.answer(R1, Say::default());
    story.start(R1, "u1");
    story.show(R1, &json!({"phase": "Failed", "reason": "Evicted", "containerStatuses": ended}));
    story.report(R1, "failed", "the process ended before it was registered (exit code 137, Error)");
    one(story, "6: bot-r1-aaaaaaaa was reported failed (the process ended before it was registered");
    let mut story = Story::begun();
    story.answer(R1, Say::default());
    story.start(R1, "u1");
    story.exits(R1, "u1");
    story.report(R1, "failed", "the process ended before it was registered (exit code 1, Error)");
    none(story);
}

/// So many own exits, each revived.
fn revived(exits: u32) -> Story {
    let mut story = live();
    for number in 1..=exits {
        let (uid, next) = (format!("u{number}"), format!("u{}", number + 1));
        story.wait(20);
        story.exits(R1, &uid);
        story.delete(R1, &uid, 0);
        story.start(R1, &next);
        if number == 3 {
            story.restart();
            story.answer(R1, LIVE);
        }
    }
    story
}

#[test]
fn the_sixth_exit_of_a_window_is_the_last() {
    none(revived(5));
    one(revived(6), "6: bot-r1-aaaaaaaa was run again after 6 exits of its own within the window");
    let mut story = revived(5);
    story.exits(R1, "u6");
    story.report(R1, "failed", "the process keeps exiting and is not run again (exit code 1, Error)");
    none(story);
    let mut story = revived(4);
    story.exits(R1, "u5");
    story.report(R1, "failed", "the process keeps exiting and is not run again (exit code 1, Error)");
    one(story, "6: bot-r1-aaaaaaaa was reported failed (the process keeps exiting");
}

#[test]
fn a_report_that_is_void() {
    let mut story = live();
    story.answer(R2, STARTING);
    story.wait(30);
    story.report(R1, "live", "");
    one(story, "12: bot-r1-aaaaaaaa was reported live, which is void");
    let mut story = live();
    story.answer(R2, STARTING);
    story.wait(30);
    story.report(R2, "live", "");
    one(story, "12: bot-r2-bbbbbbbb was reported live, but the gateway's last word is");
}

#[test]
fn what_a_life_may_have_forgotten_is_no_word_to_the_next() {
    let mut story = Story::begun();
    story.answer(R1, Say::default());
    story.wait(30);
    story.answer(R2, Say::default());
    story.restart();
    story.wait(5);
    story.report(R1, "failed", "its package cannot be used");
    none(story);
    let mut story = Story::begun();
    story.answer(R1, Say::default());
    story.wait(30);
    story.answer(R2, Say::default());
    story.wait(30);
    story.restart();
    story.wait(5);
    story.report(R1, "failed", "its package cannot be used");
    one(story, "12: bot-r1-aaaaaaaa was reported failed, which is void");
}

/// A former host ends while the next one comes up, and is taken away for its revival.
fn ended_former() -> Story {
    let mut story = live();
    story.answer(R2, STARTING);
    story.secret(R2);
    story.start(R2, "u2");
    story.exits(R1, "u1");
    story.delete(R1, "u1", 0);
    story.store("pods", R1, None);
    story.store("secrets", &format!("{R1}-env"), None);
    story
}

#[test]
fn a_former_host_that_a_withdrawal_drops_need_not_come_back() {
    let mut story = ended_former();
    story.wait(30);
    story.answer(R2, STARTING);
    story.rest(Fate::Left);
    assert!(story.found().iter().any(|found| found.ends_with("the former live host of acme/bot, has no pod at rest")));
    let mut story = ended_former();
    for _ in 0..5 {
        story.wait(5);
        story.answer_empty();
    }
    story.answer(R2, STARTING);
    story.rest(Fate::Left);
    assert!(!story.found().iter().any(|found| found.contains("the former live host")));
}

#[test]
fn what_is_left_over_or_lacking_at_rest() {
    let mut story = live();
    story.rest(Fate::Healthy);
    none(story);
    let mut story = live();
    story.secret(R2);
    story.rest(Fate::Healthy);
    one(story, "11: the Secret bot-r2-bbbbbbbb-env of acme/bot is left over at rest");
    let mut story = live();
    story.exits(R1, "u1");
    story.rest(Fate::Healthy);
    one(story, "11: bot-r1-aaaaaaaa, the wanted host of acme/bot, does not run at rest");
    let mut story = Story::begun();
    story.answer(R1, Say::default());
    story.secret(R1);
    story.start(R1, "u1");
    story.answer(R1, REGISTERED);
    story.rest(Fate::Healthy);
    one(story, "12: bot-r1-aaaaaaaa of acme/bot runs at rest, and nobody told that it is live");
}
