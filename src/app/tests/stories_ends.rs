//! Stories of ends: whose fault they are, what is counted, and what is read before a pod goes.

use expect_test::expect;

use super::story::check;

#[test]
fn a_release_that_exits_is_failed_with_its_last_lines_while_the_live_one_serves() {
    check(
        "
start + listed
want r1 bot-r1 live=bot-r1 registered + seen bot-r1 running
want r2 bot-r2 live=bot-r1
settle PutSecret done
settle CreatePod done
seen bot-r2 running
seen bot-r2 exited:3
tail bot-r2
gone bot-r2 deleted
settle DeleteSecret done
want r2 bot-r2 live=bot-r1 failed
        ",
        &expect![[r#"
            > start + listed
            > want r1 bot-r1 live=bot-r1 registered + seen bot-r1 running
            > want r2 bot-r2 live=bot-r1
              PutSecret bot-r2 r2 (Start, wanted.absent)
            > settle PutSecret done
              CreatePod bot-r2 r2 (Start, bring.start)
            > settle CreatePod done
            > seen bot-r2 running
            > seen bot-r2 exited:3
              ended bot-r2 uid-2 AppExit counted
              tail? bot-r2 app ended
            > tail bot-r2
              verdict bot-r2 Failed(Exited) (wanted.exited)
              DeletePod bot-r2 uid-2 grace=0 (Stop, stop.not_kept)
            > gone bot-r2 deleted
              DeleteSecret bot-r2 (Stop, clean.secret)
            > settle DeleteSecret done
            > want r2 bot-r2 live=bot-r1 failed
        "#]],
    );
}

#[test]
fn b31_a_release_that_never_registers_is_failed_just_after_its_deadline() {
    check(
        "
start + listed
want r1 bot-r1
settle PutSecret done
settle CreatePod done
seen bot-r1 running
tick 120s
confirm
tick 1us
confirm
tail bot-r1
settle DeletePod done
        ",
        &expect![[r#"
            > start + listed
            > want r1 bot-r1
              PutSecret bot-r1 r1 (Start, wanted.absent)
            > settle PutSecret done
              CreatePod bot-r1 r1 (Start, bring.start)
            > settle CreatePod done
            > seen bot-r1 running
            > tick 120s
            > confirm
            > tick 1us
            > confirm
              tail? bot-r1 app
            > tail bot-r1
              verdict bot-r1 Failed(NeverRegistered) (wanted.never_registered)
              DeletePod bot-r1 uid-1 grace=45 (Stop, stop.not_kept)
            > settle DeletePod done
        "#]],
    );
}

#[test]
fn a_release_whose_install_fails_is_failed_with_the_install_lines() {
    check(
        "
start + listed
want r1 bot-r1
settle PutSecret done
settle CreatePod done
seen bot-r1 installing
seen bot-r1 install-failed
tail bot-r1
        ",
        &expect![[r#"
            > start + listed
            > want r1 bot-r1
              PutSecret bot-r1 r1 (Start, wanted.absent)
            > settle PutSecret done
              CreatePod bot-r1 r1 (Start, bring.start)
            > settle CreatePod done
            > seen bot-r1 installing
            > seen bot-r1 install-failed
              ended bot-r1 uid-1 InstallFailed
              tail? bot-r1 install ended
            > tail bot-r1
              verdict bot-r1 Failed(InstallFailed) (wanted.exited)
              DeletePod bot-r1 uid-1 grace=0 (Stop, stop.not_kept)
        "#]],
    );
}

#[test]
fn b08_one_end_is_counted_once_however_often_it_is_shown() {
    check(
        "
start + listed
want r1 bot-r1 live=bot-r1 registered + seen bot-r1 running
seen bot-r1 exited:1
seen bot-r1 exited:1 deleting
start + listed
tail bot-r1
gone bot-r1 deleted
        ",
        &expect![[r#"
            > start + listed
            > want r1 bot-r1 live=bot-r1 registered + seen bot-r1 running
            > seen bot-r1 exited:1
              ended bot-r1 uid-1 AppExit counted
              tail? bot-r1 app ended
            > seen bot-r1 exited:1 deleting
            > start + listed
              tail? bot-r1 app ended
            > tail bot-r1
            > gone bot-r1 deleted
              PutSecret bot-r1 r1 present-will-do (Revive { counted: true }, wanted.own_exit)
        "#]],
    );
}

#[test]
fn b08_restarts_by_the_kubelet_count_each_and_never_backwards() {
    check(
        "
start + listed
want r1 bot-r1 live=bot-r1 registered + seen bot-r1 running
seen bot-r1 running restarts=1
seen bot-r1 running restarts=3
seen bot-r1 running restarts=2
seen bot-r1 running restarts=3
seen bot-r1 running restarts=4
        ",
        &expect![[r#"
            > start + listed
            > want r1 bot-r1 live=bot-r1 registered + seen bot-r1 running
            > seen bot-r1 running restarts=1
              ended bot-r1 uid-1 AppExit counted
            > seen bot-r1 running restarts=3
              ended bot-r1 uid-1 AppExit counted
              ended bot-r1 uid-1 AppExit counted
            > seen bot-r1 running restarts=2
            > seen bot-r1 running restarts=3
            > seen bot-r1 running restarts=4
              ended bot-r1 uid-1 AppExit counted
        "#]],
    );
}

#[test]
fn five_own_exits_are_revived_and_the_sixth_fails() {
    check(
        "
start + listed
want r1 bot-r1 live=bot-r1 registered + seen bot-r1 running
seen bot-r1 exited:1
tail bot-r1
gone bot-r1 deleted
settle PutSecret done
settle CreatePod done
seen bot-r1 running
seen bot-r1 exited:1
tail bot-r1 + gone bot-r1 deleted
settle PutSecret done
settle CreatePod done
seen bot-r1 exited:1
tail bot-r1 + gone bot-r1 deleted
settle PutSecret done
settle CreatePod done
seen bot-r1 oom:137
tail bot-r1 + gone bot-r1 deleted
settle PutSecret done
settle CreatePod done
seen bot-r1 exited:1
tail bot-r1
gone bot-r1 deleted
settle PutSecret done
settle CreatePod done
seen bot-r1 exited:1
tail bot-r1
        ",
        &expect![[r#"
            > start + listed
            > want r1 bot-r1 live=bot-r1 registered + seen bot-r1 running
            > seen bot-r1 exited:1
              ended bot-r1 uid-1 AppExit counted
              tail? bot-r1 app ended
            > tail bot-r1
              DeletePod bot-r1 uid-1 grace=0 (Revive { counted: true }, wanted.own_exit)
            > gone bot-r1 deleted
              PutSecret bot-r1 r1 present-will-do (Revive { counted: true }, bring.revive)
            > settle PutSecret done
              CreatePod bot-r1 r1 (Revive { counted: true }, bring.revive)
            > settle CreatePod done
            > seen bot-r1 running
            > seen bot-r1 exited:1
              ended bot-r1 uid-2 AppExit counted
              tail? bot-r1 app ended
            > tail bot-r1 + gone bot-r1 deleted
              PutSecret bot-r1 r1 present-will-do (Revive { counted: true }, wanted.own_exit)
            > settle PutSecret done
              CreatePod bot-r1 r1 (Revive { counted: true }, bring.revive)
            > settle CreatePod done
            > seen bot-r1 exited:1
              ended bot-r1 uid-3 AppExit counted
              tail? bot-r1 app ended
            > tail bot-r1 + gone bot-r1 deleted
              PutSecret bot-r1 r1 present-will-do (Revive { counted: true }, wanted.own_exit)
            > settle PutSecret done
              CreatePod bot-r1 r1 (Revive { counted: true }, bring.revive)
            > settle CreatePod done
            > seen bot-r1 oom:137
              ended bot-r1 uid-4 Oom counted
              tail? bot-r1 app ended
            > tail bot-r1 + gone bot-r1 deleted
              PutSecret bot-r1 r1 present-will-do (Revive { counted: true }, wanted.own_exit)
            > settle PutSecret done
              CreatePod bot-r1 r1 (Revive { counted: true }, bring.revive)
            > settle CreatePod done
            > seen bot-r1 exited:1
              ended bot-r1 uid-5 AppExit counted
              tail? bot-r1 app ended
            > tail bot-r1
              DeletePod bot-r1 uid-5 grace=0 (Revive { counted: true }, wanted.own_exit)
            > gone bot-r1 deleted
              PutSecret bot-r1 r1 present-will-do (Revive { counted: true }, bring.revive)
            > settle PutSecret done
              CreatePod bot-r1 r1 (Revive { counted: true }, bring.revive)
            > settle CreatePod done
            > seen bot-r1 exited:1
              ended bot-r1 uid-6 AppExit counted
              tail? bot-r1 app ended
            > tail bot-r1
              verdict bot-r1 Failed(KeepsExiting) (wanted.keeps_exiting)
              DeletePod bot-r1 uid-6 grace=0 (Stop, stop.not_kept)
        "#]],
    );
}

#[test]
fn b19_ends_by_the_platform_are_revived_and_not_counted() {
    check(
        "
start + listed
want r1 bot-r1 live=bot-r1 registered + seen bot-r1 running
seen bot-r1 running by=preempted deleting
seen bot-r1 exited:137 by=preempted deleting
gone bot-r1 deleted
settle PutSecret done
settle CreatePod done
seen bot-r1 running
gone bot-r1 deleted
tick 1s
settle PutSecret done
        ",
        &expect![[r#"
            > start + listed
            > want r1 bot-r1 live=bot-r1 registered + seen bot-r1 running
            > seen bot-r1 running by=preempted deleting
            > seen bot-r1 exited:137 by=preempted deleting
              ended bot-r1 uid-1 Preempted
              tail? bot-r1 app ended
            > gone bot-r1 deleted
              PutSecret bot-r1 r1 present-will-do (Revive { counted: false }, wanted.no_fault)
            > settle PutSecret done
              CreatePod bot-r1 r1 (Revive { counted: false }, bring.revive)
            > settle CreatePod done
            > seen bot-r1 running
            > gone bot-r1 deleted
              ended bot-r1 uid-2 DeletedByOther
            > tick 1s
              PutSecret bot-r1 r1 present-will-do (Revive { counted: false }, wanted.no_fault)
            > settle PutSecret done
              CreatePod bot-r1 r1 (Revive { counted: false }, bring.revive)
        "#]],
    );
}

#[test]
fn b18_a_pod_that_the_node_refused_is_made_again_without_a_count() {
    check(
        "
start + listed
want r1 bot-r1
settle PutSecret done
settle CreatePod done
seen bot-r1 failed:OutOfpods
gone bot-r1 deleted
        ",
        &expect![[r#"
            > start + listed
            > want r1 bot-r1
              PutSecret bot-r1 r1 (Start, wanted.absent)
            > settle PutSecret done
              CreatePod bot-r1 r1 (Start, bring.start)
            > settle CreatePod done
            > seen bot-r1 failed:OutOfpods
              ended bot-r1 uid-1 NodeRefused
              DeletePod bot-r1 uid-1 grace=0 (Revive { counted: false }, wanted.no_fault)
            > gone bot-r1 deleted
              PutSecret bot-r1 r1 present-will-do (Revive { counted: false }, bring.revive)
        "#]],
    );
}

#[test]
fn the_former_live_host_is_revived_while_the_wanted_one_is_not_there_yet() {
    check(
        "
start + listed
want r1 bot-r1 live=bot-r1 registered + seen bot-r1 running
want r2 bot-r2 live=bot-r1
gone bot-r1 deleted
settle PutSecret done
        ",
        &expect![[r#"
            > start + listed
            > want r1 bot-r1 live=bot-r1 registered + seen bot-r1 running
            > want r2 bot-r2 live=bot-r1
              PutSecret bot-r2 r2 (Start, wanted.absent)
            > gone bot-r1 deleted
              ended bot-r1 uid-1 DeletedByOther
              PutSecret bot-r1 r1 present-will-do (Revive { counted: false }, former.no_fault)
            > settle PutSecret done
              CreatePod bot-r1 r1 (Revive { counted: false }, bring.revive)
            wake in 30s
        "#]],
    );
}

#[test]
fn b19_a_pod_of_ours_that_exits_on_our_stop_is_no_crash() {
    check(
        "
start + listed
want r1 bot-r1 live=bot-r1 registered + seen bot-r1 running + seen bot-r2 running
settle DeletePod done
seen bot-r2 exited:143 deleting
tail bot-r2
gone bot-r2 deleted
        ",
        &expect![[r#"
            > start + listed
            > want r1 bot-r1 live=bot-r1 registered + seen bot-r1 running + seen bot-r2 running
              tail? bot-r2 app
              DeletePod bot-r2 uid-2 grace=45 (Stop, stop.not_kept)
            > settle DeletePod done
            > seen bot-r2 exited:143 deleting
              ended bot-r2 uid-2 DeletedByUs
              tail? bot-r2 app ended
            > tail bot-r2
            > gone bot-r2 deleted
              ReadSecret bot-r2 (Stop, clean.secret)
        "#]],
    );
}

#[test]
fn b23_an_image_that_can_never_be_pulled_fails_at_once() {
    check(
        "
start + listed
want r1 bot-r1
settle PutSecret done
settle CreatePod done
seen bot-r1 waiting:InvalidImageName
settle DeletePod done
        ",
        &expect![[r#"
            > start + listed
            > want r1 bot-r1
              PutSecret bot-r1 r1 (Start, wanted.absent)
            > settle PutSecret done
              CreatePod bot-r1 r1 (Start, bring.start)
            > settle CreatePod done
            > seen bot-r1 waiting:InvalidImageName
              ended bot-r1 uid-1 NeverStarted(Image)
              verdict bot-r1 Failed(NeverStarted(Image)) (wanted.exited)
              DeletePod bot-r1 uid-1 grace=45 (Stop, stop.not_kept)
            > settle DeletePod done
        "#]],
    );
}

#[test]
fn b23_a_pull_that_backs_off_fails_at_its_deadline() {
    check(
        "
start + listed
want r1 bot-r1
settle PutSecret done
settle CreatePod done
seen bot-r1 waiting:ImagePullBackOff
tick 300s
tick 1us
        ",
        &expect![[r#"
            > start + listed
            > want r1 bot-r1
              PutSecret bot-r1 r1 (Start, wanted.absent)
            > settle PutSecret done
              CreatePod bot-r1 r1 (Start, bring.start)
            > settle CreatePod done
            > seen bot-r1 waiting:ImagePullBackOff
            > tick 300s
            > tick 1us
              ended bot-r1 uid-1 Stuck(Pull)
              verdict bot-r1 Failed(Stuck(Pull)) (wanted.exited)
              DeletePod bot-r1 uid-1 grace=45 (Stop, stop.not_kept)
        "#]],
    );
}

#[test]
fn b23_a_pod_that_no_node_takes_waits_and_is_not_failed() {
    check(
        "
start + listed
want r1 bot-r1
settle PutSecret done
settle CreatePod done
seen bot-r1 unschedulable
tick 60m
seen bot-r1 waiting:ContainerCreating
        ",
        &expect![[r#"
            > start + listed
            > want r1 bot-r1
              PutSecret bot-r1 r1 (Start, wanted.absent)
            > settle PutSecret done
              CreatePod bot-r1 r1 (Start, bring.start)
            > settle CreatePod done
            > seen bot-r1 unschedulable
              alarm waiting
            > tick 60m
            > seen bot-r1 waiting:ContainerCreating
              clear waiting
            wake in 300s
        "#]],
    );
}

#[test]
fn a_live_host_that_cannot_come_back_is_tried_again_and_never_failed() {
    check(
        "
start + listed
want r1 bot-r1 live=bot-r1 registered + seen bot-r1 running
seen bot-r1 failed:Evicted
gone bot-r1 deleted
settle PutSecret done
settle CreatePod done
seen bot-r1 install-failed
tail bot-r1
tick 1s
gone bot-r1 deleted
settle PutSecret done
settle CreatePod done
seen bot-r1 running
        ",
        &expect![[r#"
            > start + listed
            > want r1 bot-r1 live=bot-r1 registered + seen bot-r1 running
            > seen bot-r1 failed:Evicted
              ended bot-r1 uid-1 Evicted
              DeletePod bot-r1 uid-1 grace=0 (Revive { counted: false }, wanted.no_fault)
            > gone bot-r1 deleted
              PutSecret bot-r1 r1 present-will-do (Revive { counted: false }, bring.revive)
            > settle PutSecret done
              CreatePod bot-r1 r1 (Revive { counted: false }, bring.revive)
            > settle CreatePod done
            > seen bot-r1 install-failed
              ended bot-r1 uid-2 InstallFailed
              tail? bot-r1 install ended
              alarm live_not_back
            > tail bot-r1
            > tick 1s
              DeletePod bot-r1 uid-2 grace=0 (Revive { counted: false }, wanted.no_fault)
            > gone bot-r1 deleted
              PutSecret bot-r1 r1 present-will-do (Revive { counted: false }, bring.revive)
            > settle PutSecret done
              CreatePod bot-r1 r1 (Revive { counted: false }, bring.revive)
            > settle CreatePod done
            > seen bot-r1 running
              clear live_not_back
        "#]],
    );
}

#[test]
fn a_delete_that_nobody_answered_is_not_the_cause_of_an_end() {
    check(
        "
start + listed
want r1 bot-r1 live=bot-r1 registered + seen bot-r1 running
missing + missing
settle DeletePod unknown
settle DeletePod unknown
want r1 bot-r1 live=bot-r1 registered
seen bot-r1 failed:NodeLost deleting
tick 1s
        ",
        &expect![[r#"
            > start + listed
            > want r1 bot-r1 live=bot-r1 registered + seen bot-r1 running
            > missing + missing
              tail? bot-r1 app
              DeletePod bot-r1 uid-1 grace=45 (Stop, stop.withdrawn)
            > settle DeletePod unknown
              DeletePod bot-r1 uid-1 grace=45 (Stop, stop.withdrawn)
            > settle DeletePod unknown
            > want r1 bot-r1 live=bot-r1 registered
            > seen bot-r1 failed:NodeLost deleting
              ended bot-r1 uid-1 NodeLost
            > tick 1s
            wake in 29s
        "#]],
    );
}
