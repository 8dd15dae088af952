//! The marks that hardly any trial reaches, each by the story that does.

use super::story::Story;
use crate::app::marks::{OF_STORIES, taken};

/// Each mark, and a story whose last line reaches it.
const STORIES: &[(&str, &[&str])] = &[
    (
        "clean.doubt_waits",
        &[
            "start + listed",
            "want r1 bot-r1",
            "settle PutSecret done",
            "settle CreatePod unknown + missing + missing",
            "settle DeleteSecret done",
        ],
    ),
    (
        "force.node_is_there",
        &[
            "start + listed",
            "want r1 bot-r1 live=bot-r1 registered + seen bot-r1 running + seen bot-r2 running + node n1 ready",
            "settle DeletePod done",
            "seen bot-r2 running deleting",
            "tick 20m",
        ],
    ),
    (
        "hindered.for_good",
        &[
            "start + listed",
            "want r1 bot-r1 live=bot-r1 registered + seen bot-r1 running",
            "gone bot-r1 deleted",
            "settle PutSecret invalid",
        ],
    ),
    ("hindered.name_held", &["start + listed", "want r1 bot-r1", "settle PutSecret done", "settle CreatePod name-held"]),
    (
        "start.hindered",
        &[
            "start + listed",
            "want r2 bot-r2 live=bot-r2 registered + seen bot-r2 running + seen bot-r1 running",
            "settle DeletePod done",
            "gone bot-r1 deleted",
            "settle ReadSecret forbidden",
            "want r1 bot-r1 live=bot-r2",
        ],
    ),
    (
        "start.losing_secret",
        &[
            "start + listed",
            "want r1 bot-r1",
            "settle PutSecret done",
            "settle CreatePod invalid",
            "want r1 bot-r1 failed",
            "want r1 bot-r1",
        ],
    ),
];

#[test]
fn what_hardly_any_trial_reaches_is_reached_by_a_story() {
    let told: Vec<&str> = STORIES.iter().map(|(mark, _)| *mark).collect();
    assert_eq!(told, OF_STORIES);
    for (mark, lines) in STORIES {
        let mut story = Story::new();
        let mut reached = taken();
        for line in *lines {
            let inputs = line.split('+').flat_map(|part| story.inputs(part)).collect();
            let _ = taken();
            story.react(inputs);
            reached = taken();
        }
        assert!(reached.contains(mark), "{mark} is not reached: {reached:?}");
    }
}
