//! Stories of restarts, doubts, refusals and lost nodes.

use expect_test::expect;

use super::story::check;

#[test]
fn nothing_is_stopped_and_only_a_live_host_is_brought_before_the_first_answer() {
    check(
        "
start + listed
want r2 bot-r2 live=bot-r1 registered + seen bot-r1 running + seen bot-r2 running
start + seen bot-r0 running + gone bot-r1 absent + gone bot-r2 absent + listed
confirm
        ",
        &expect![[r#"
            > start + listed
            > want r2 bot-r2 live=bot-r1 registered + seen bot-r1 running + seen bot-r2 running
              verdict bot-r2 Live (wanted.serves)
            > start + seen bot-r0 running + gone bot-r1 absent + gone bot-r2 absent + listed
              ended bot-r1 uid-1 Vanished
              ended bot-r2 uid-2 Vanished
              PutSecret bot-r2 r2 present-will-do (Revive { counted: false }, wanted.no_fault)
              PutSecret bot-r1 r1 present-will-do (Revive { counted: false }, former.no_fault)
            > confirm
              tail? bot-r0 app
              DeletePod bot-r0 uid-3 grace=45 (Stop, stop.not_kept)
            wake in 30s
        "#]],
    );
}

#[test]
fn a_restart_in_the_middle_of_a_start_goes_on_with_it() {
    check(
        "
start + listed
want r1 bot-r1
settle PutSecret done
start + listed
confirm
settle CreatePod done
        ",
        &expect![[r#"
            > start + listed
            > want r1 bot-r1
              PutSecret bot-r1 r1 (Start, wanted.absent)
            > settle PutSecret done
              CreatePod bot-r1 r1 (Start, bring.start)
            > start + listed
            > confirm
              CreatePod bot-r1 r1 (Start, bring.start)
            > settle CreatePod done
            wake in 300s
        "#]],
    );
}

#[test]
fn b14_a_create_left_without_an_answer_is_found_by_the_list() {
    check(
        "
start + listed
want r1 bot-r1
settle PutSecret done
start + seen bot-r1 created + listed
confirm
        ",
        &expect![[r#"
            > start + listed
            > want r1 bot-r1
              PutSecret bot-r1 r1 (Start, wanted.absent)
            > settle PutSecret done
              CreatePod bot-r1 r1 (Start, bring.start)
            > start + seen bot-r1 created + listed
            > confirm
            wake in 300s
        "#]],
    );
}

#[test]
fn a_create_that_was_never_answered_is_tried_again_at_once() {
    check(
        "
start + listed
want r1 bot-r1
settle PutSecret done
settle CreatePod unknown
settle CreatePod unknown
tick 1s
settle CreatePod already
        ",
        &expect![[r#"
            > start + listed
            > want r1 bot-r1
              PutSecret bot-r1 r1 (Start, wanted.absent)
            > settle PutSecret done
              CreatePod bot-r1 r1 (Start, bring.start)
            > settle CreatePod unknown
              CreatePod bot-r1 r1 (Start, bring.start)
            > settle CreatePod unknown
            > tick 1s
              CreatePod bot-r1 r1 (Start, bring.start)
            > settle CreatePod already
            wake in 300s
        "#]],
    );
}

#[test]
fn a_doubtful_create_that_is_no_longer_wanted_is_read_again_before_it_counts_as_clean() {
    check(
        "
start + listed
want r1 bot-r1
settle PutSecret done
settle CreatePod unknown + missing + missing
settle DeleteSecret done
tick 61s
settle ReadPod gone
        ",
        &expect![[r#"
            > start + listed
            > want r1 bot-r1
              PutSecret bot-r1 r1 (Start, wanted.absent)
            > settle PutSecret done
              CreatePod bot-r1 r1 (Start, bring.start)
            > settle CreatePod unknown + missing + missing
              DeleteSecret bot-r1 (Stop, clean.secret)
            > settle DeleteSecret done
            > tick 61s
              ReadPod bot-r1 (Stop, clean.doubt)
            > settle ReadPod gone
        "#]],
    );
}

#[test]
fn a_delete_left_without_an_answer_is_issued_again() {
    check(
        "
start + listed
want r1 bot-r1 live=bot-r1 registered + seen bot-r1 running + seen bot-r2 running
start + seen bot-r2 running + listed
confirm
settle DeletePod unknown
        ",
        &expect![[r#"
            > start + listed
            > want r1 bot-r1 live=bot-r1 registered + seen bot-r1 running + seen bot-r2 running
              tail? bot-r2 app
              DeletePod bot-r2 uid-2 grace=45 (Stop, stop.not_kept)
            > start + seen bot-r2 running + listed
            > confirm
              tail? bot-r2 app
              DeletePod bot-r2 uid-2 grace=45 (Stop, stop.not_kept)
            > settle DeletePod unknown
              DeletePod bot-r2 uid-2 grace=45 (Stop, stop.not_kept)
            wake in 30s
        "#]],
    );
}

#[test]
fn b24_quota_waits_and_never_fails_the_app() {
    check(
        "
start + listed
want r1 bot-r1
settle PutSecret quota
tick 29s
tick 1s
settle PutSecret done
settle CreatePod done
        ",
        &expect![[r#"
            > start + listed
            > want r1 bot-r1
              PutSecret bot-r1 r1 (Start, wanted.absent)
            > settle PutSecret quota
              alarm waiting
            > tick 29s
            > tick 1s
              PutSecret bot-r1 r1 (Start, bring.start)
            > settle PutSecret done
              CreatePod bot-r1 r1 (Start, bring.start)
              clear waiting
            > settle CreatePod done
            wake in 300s
        "#]],
    );
}

#[test]
fn b24_a_runtime_class_that_is_not_there_fails_at_once() {
    check(
        "
start + listed
want r1 bot-r1
settle PutSecret done
settle CreatePod runtime-class
        ",
        &expect![[r#"
            > start + listed
            > want r1 bot-r1
              PutSecret bot-r1 r1 (Start, wanted.absent)
            > settle PutSecret done
              CreatePod bot-r1 r1 (Start, bring.start)
            > settle CreatePod runtime-class
              verdict bot-r1 Failed(NeverStarted(Runtime)) (wanted.refused)
              DeleteSecret bot-r1 (Stop, clean.secret)
        "#]],
    );
}

#[test]
fn b22_a_pod_that_hangs_on_a_lost_node_is_forced_away_and_made_again() {
    check(
        "
start + listed
want r1 bot-r1 live=bot-r1 registered + seen bot-r1 running + node n1 ready
node n1 lost
seen bot-r1 running deleting by=tainted
tick 300s
tick 1us
settle DeletePod done
gone bot-r1 deleted
        ",
        &expect![[r#"
            > start + listed
            > want r1 bot-r1 live=bot-r1 registered + seen bot-r1 running + node n1 ready
            > node n1 lost
            > seen bot-r1 running deleting by=tainted
            > tick 300s
            > tick 1us
              DeletePod bot-r1 uid-1 grace=0 forced (Revive { counted: false }, force.node_not_ready)
              alarm stuck_terminating
            > settle DeletePod done
            > gone bot-r1 deleted
              ended bot-r1 uid-1 NodeLost
              PutSecret bot-r1 r1 present-will-do (Revive { counted: false }, bring.revive)
              clear stuck_terminating
        "#]],
    );
}

#[test]
fn b53_a_pod_that_does_not_end_on_a_good_node_is_an_alarm_and_no_second_delete() {
    check(
        "
start + listed
want r1 bot-r1 live=bot-r1 registered + seen bot-r1 running + seen bot-r2 running + node n1 ready
settle DeletePod done
seen bot-r2 running deleting
tick 20m
gone bot-r2 deleted
        ",
        &expect![[r#"
            > start + listed
            > want r1 bot-r1 live=bot-r1 registered + seen bot-r1 running + seen bot-r2 running + node n1 ready
              tail? bot-r2 app
              DeletePod bot-r2 uid-2 grace=45 (Stop, stop.not_kept)
            > settle DeletePod done
            > seen bot-r2 running deleting
            > tick 20m
              alarm stuck_terminating
            > gone bot-r2 deleted
              ended bot-r2 uid-2 DeletedByUs
              ReadSecret bot-r2 (Stop, clean.secret)
              clear stuck_terminating
        "#]],
    );
}

#[test]
fn revivals_without_fault_pause_longer_and_longer() {
    check(
        "
start + listed
want r1 bot-r1 live=bot-r1 registered + seen bot-r1 running
gone bot-r1 deleted
settle PutSecret done
settle CreatePod done
gone bot-r1 deleted
tick 1s
settle PutSecret done
settle CreatePod done
gone bot-r1 deleted
tick 1s
tick 1s
        ",
        &expect![[r#"
            > start + listed
            > want r1 bot-r1 live=bot-r1 registered + seen bot-r1 running
            > gone bot-r1 deleted
              ended bot-r1 uid-1 DeletedByOther
              PutSecret bot-r1 r1 present-will-do (Revive { counted: false }, wanted.no_fault)
            > settle PutSecret done
              CreatePod bot-r1 r1 (Revive { counted: false }, bring.revive)
            > settle CreatePod done
            > gone bot-r1 deleted
              ended bot-r1 uid-2 DeletedByOther
            > tick 1s
              PutSecret bot-r1 r1 present-will-do (Revive { counted: false }, wanted.no_fault)
            > settle PutSecret done
              CreatePod bot-r1 r1 (Revive { counted: false }, bring.revive)
            > settle CreatePod done
            > gone bot-r1 deleted
              ended bot-r1 uid-3 DeletedByOther
            > tick 1s
            > tick 1s
              PutSecret bot-r1 r1 present-will-do (Revive { counted: false }, wanted.no_fault)
        "#]],
    );
}

#[test]
fn a_different_pod_of_ours_that_never_served_is_replaced_by_uid() {
    check(
        "
start + listed
want r1 bot-r1
settle PutSecret done
settle CreatePod conflict
settle DeletePod done
gone bot-r1 deleted
        ",
        &expect![[r#"
            > start + listed
            > want r1 bot-r1
              PutSecret bot-r1 r1 (Start, wanted.absent)
            > settle PutSecret done
              CreatePod bot-r1 r1 (Start, bring.start)
            > settle CreatePod conflict
              DeletePod bot-r1 uid-1 grace=45 (Revive { counted: false }, replace.different)
            > settle DeletePod done
            > gone bot-r1 deleted
              ended bot-r1 uid-1 DeletedByUs
              PutSecret bot-r1 r1 present-will-do (Revive { counted: false }, bring.revive)
        "#]],
    );
}

#[test]
fn what_is_withheld_is_decided_once_and_again_after_a_thaw() {
    check(
        "
start + listed
freeze
want r1 bot-r1
withheld
thaw
        ",
        &expect![[r#"
            > start + listed
            > freeze
            > want r1 bot-r1
              PutSecret bot-r1 r1 (Start, wanted.absent)
            > withheld
            > thaw
              PutSecret bot-r1 r1 (Start, bring.start)
        "#]],
    );
}
