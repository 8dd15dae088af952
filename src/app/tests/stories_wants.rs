//! Stories of wants: withdrawn, blinking, never seen, shown and taken back.

use expect_test::expect;

use super::story::check;

#[test]
fn a_withdrawn_app_stops_after_two_answers() {
    check(
        "
start + listed
want r1 bot-r1 live=bot-r1 registered + seen bot-r1 running
missing
missing
settle DeletePod done
gone bot-r1 deleted
settle ReadSecret gone
        ",
        &expect![[r#"
            > start + listed
            > want r1 bot-r1 live=bot-r1 registered + seen bot-r1 running
            > missing
            > missing
              tail? bot-r1 app
              DeletePod bot-r1 uid-1 grace=45 (Stop, stop.withdrawn)
            > settle DeletePod done
            > gone bot-r1 deleted
              ended bot-r1 uid-1 DeletedByUs
              ReadSecret bot-r1 (Stop, clean.secret)
            > settle ReadSecret gone
        "#]],
    );
}

#[test]
fn an_app_that_blinks_is_not_stopped() {
    check(
        "
start + listed
want r1 bot-r1 live=bot-r1 registered + seen bot-r1 running
missing
want r1 bot-r1 live=bot-r1 registered
missing
        ",
        &expect![[r#"
            > start + listed
            > want r1 bot-r1 live=bot-r1 registered + seen bot-r1 running
            > missing
            > want r1 bot-r1 live=bot-r1 registered
            > missing
        "#]],
    );
}

#[test]
fn a_refused_want_ends_a_row_of_absences() {
    check(
        "
start + listed
want r1 bot-r1 live=bot-r1 registered + seen bot-r1 running
missing
refused
missing
refused
want r1 bot-r1 live=bot-r1 registered
missing
        ",
        &expect![[r#"
            > start + listed
            > want r1 bot-r1 live=bot-r1 registered + seen bot-r1 running
            > missing
            > refused
            > missing
            > refused
            > want r1 bot-r1 live=bot-r1 registered
            > missing
        "#]],
    );
}

#[test]
fn a_refused_want_brings_nothing_back_that_is_withdrawn() {
    check(
        "
start + listed
want r1 bot-r1 live=bot-r1 registered + seen bot-r1 exited:1 + missing + missing
tail bot-r1
refused
settle DeletePod done
gone bot-r1 deleted
settle ReadSecret gone
want r1 bot-r1 live=bot-r1
        ",
        &expect![[r#"
            > start + listed
            > want r1 bot-r1 live=bot-r1 registered + seen bot-r1 exited:1 + missing + missing
              ended bot-r1 uid-1 AppExit counted
              tail? bot-r1 app ended
            > tail bot-r1
              DeletePod bot-r1 uid-1 grace=0 (Stop, stop.withdrawn)
            > refused
            > settle DeletePod done
            > gone bot-r1 deleted
              ReadSecret bot-r1 (Stop, clean.secret)
            > settle ReadSecret gone
            > want r1 bot-r1 live=bot-r1
              PutSecret bot-r1 r1 (Start, wanted.absent)
        "#]],
    );
}

#[test]
fn an_answer_that_misses_most_apps_needs_five() {
    check(
        "
start + listed
want r1 bot-r1 live=bot-r1 registered + seen bot-r1 running
missing mass
missing
missing
missing
missing
        ",
        &expect![[r#"
            > start + listed
            > want r1 bot-r1 live=bot-r1 registered + seen bot-r1 running
            > missing mass
            > missing
            > missing
            > missing
            > missing
              tail? bot-r1 app
              DeletePod bot-r1 uid-1 grace=45 (Stop, stop.withdrawn)
        "#]],
    );
}

#[test]
fn a_pod_of_an_app_that_was_never_wanted_is_left_alone() {
    check(
        "
start + seen bot-r1 running + listed
tick 60m
stop
settle DeletePod done
        ",
        &expect![[r#"
            > start + seen bot-r1 running + listed
              alarm unclaimed
            > tick 60m
            > stop
              tail? bot-r1 app
              DeletePod bot-r1 uid-1 grace=45 (Stop, stop.withdrawn)
              clear unclaimed
            > settle DeletePod done
        "#]],
    );
}

#[test]
fn a_null_live_host_keeps_the_last_named_one() {
    check(
        "
start + listed
want r1 bot-r1 live=bot-r1 registered + seen bot-r1 running
want r2 bot-r2
        ",
        &expect![[r#"
            > start + listed
            > want r1 bot-r1 live=bot-r1 registered + seen bot-r1 running
            > want r2 bot-r2
              PutSecret bot-r2 r2 (Start, wanted.absent)
        "#]],
    );
}

#[test]
fn b28_a_host_that_served_and_is_not_registered_is_between_two_connections() {
    check(
        "
start + listed
want r1 bot-r1 live=bot-r1 registered + seen bot-r1 running
want r1 bot-r1 live=bot-r1
tick 60m
        ",
        &expect![[r#"
            > start + listed
            > want r1 bot-r1 live=bot-r1 registered + seen bot-r1 running
            > want r1 bot-r1 live=bot-r1
            > tick 60m
        "#]],
    );
}

#[test]
fn a_failed_release_leaves_the_live_one_alone() {
    check(
        "
start + listed
want r2 bot-r2 live=bot-r1 failed + seen bot-r1 running + seen bot-r2 running
        ",
        &expect![[r#"
            > start + listed
            > want r2 bot-r2 live=bot-r1 failed + seen bot-r1 running + seen bot-r2 running
              tail? bot-r2 app
              DeletePod bot-r2 uid-2 grace=45 (Stop, stop.not_kept)
        "#]],
    );
}
