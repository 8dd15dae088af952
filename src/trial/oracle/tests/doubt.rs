//! What the daemon cannot know is not held against it; and what it cannot know, it must not say.

use serde_json::json;

use super::story::{Say, create};
use super::{LIVE, R1, R2, STARTING, live, none, one};
use crate::trial::history::Happening;

#[test]
fn an_answer_that_leaves_the_app_out_makes_no_report_void() {
    let mut story = live();
    story.answer(R2, STARTING);
    story.answer_empty();
    story.wait(10);
    story.report(R2, "failed", "refused");
    none(story);
}

#[test]
fn a_report_of_a_withdrawn_app_is_void() {
    let mut story = live();
    for _ in 0..9 {
        story.answer_empty();
        story.wait(10);
    }
    story.report(R1, "failed", "refused");
    one(story, "12: bot-r1-aaaaaaaa was reported failed, which is void");
}

#[test]
fn a_host_whose_pod_before_this_one_ended_may_be_live() {
    let mut story = live();
    story.exits(R1, "u1");
    story.delete(R1, "u1", 0);
    story.start(R1, "u2");
    story.list();
    story.tell(Happening::Exited { host: R1.to_owned(), uid: "u2".to_owned() });
    story.answer(R1, Say { registered: true, ..Say::default() });
    story.wait(10);
    story.report(R1, "live", "");
    none(story);
}

#[test]
fn a_pod_that_never_said_that_it_runs_may_be_stuck() {
    let mut story = live();
    story.exits(R1, "u1");
    story.delete(R1, "u1", 0);
    story.make(R1, "u2");
    story.runs(R1, "u2");
    story.wait(2_000);
    story.answer(R1, LIVE);
    story.delete(R1, "u2", 45);
    none(story);
}

#[test]
fn a_pod_of_another_is_not_what_a_step_made() {
    let mut story = live();
    story.answer(R2, STARTING);
    story.secret(R2);
    let step = story.issue(create(R2));
    let metadata = json!({"name": R2, "uid": "theirs", "labels": {"app": "theirs"}});
    story.store("pods", R2, Some(json!({"metadata": metadata, "spec": {}, "status": {"phase": "Pending"}})));
    story.settle(step, "theirs");
    one(story, "5: step");
}

#[test]
fn a_pod_that_nobody_ever_saw_is_not_what_a_step_made() {
    let mut story = live();
    story.answer(R2, STARTING);
    story.secret(R2);
    let step = story.issue(create(R2));
    story.settle(step, "u9");
    one(story, "5: step");
}
