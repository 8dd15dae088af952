//! Stories of counts and clocks: the window of own exits, dropped hosts, numbers and times out of bounds.

use expect_test::expect;

use super::story::{Story, check};

#[test]
fn a_former_host_that_was_dropped_does_not_come_back_though_the_wanted_one_stops_serving() {
    check(
        "
start + listed
want r2 bot-r2 live=bot-r1 registered + seen bot-r1 running + seen bot-r2 running
gone bot-r1 deleted
settle ReadSecret done
settle DeleteSecret done
want r2 bot-r2 live=bot-r1
        ",
        &expect![[r#"
            > start + listed
            > want r2 bot-r2 live=bot-r1 registered + seen bot-r1 running + seen bot-r2 running
              verdict bot-r2 Live (wanted.serves)
            > gone bot-r1 deleted
              ended bot-r1 uid-1 DeletedByOther
              ReadSecret bot-r1 (Stop, clean.secret)
            > settle ReadSecret done
              DeleteSecret bot-r1 (Stop, clean.secret)
            > settle DeleteSecret done
            > want r2 bot-r2 live=bot-r1
        "#]],
    );
}

#[test]
fn a_former_host_is_dropped_at_its_sixth_exit_and_leaves_nothing() {
    let five = "
seen bot-r1 exited:1
tail bot-r1
gone bot-r1 deleted
settle PutSecret done
settle CreatePod done
        "
    .repeat(5);
    check(
        &format!(
            "
start + listed
want r2 bot-r2 live=bot-r1 failed + seen bot-r1 running
{five}
seen bot-r1 exited:1
gone bot-r1 deleted
settle DeleteSecret done
tick 10m
        "
        ),
        &expect![[r#"
            > start + listed
            > want r2 bot-r2 live=bot-r1 failed + seen bot-r1 running
            > seen bot-r1 exited:1
              ended bot-r1 uid-1 AppExit counted
              tail? bot-r1 app ended
            > tail bot-r1
              DeletePod bot-r1 uid-1 grace=0 (Revive { counted: true }, former.own_exit)
            > gone bot-r1 deleted
              PutSecret bot-r1 r1 present-will-do (Revive { counted: true }, bring.revive)
            > settle PutSecret done
              CreatePod bot-r1 r1 (Revive { counted: true }, bring.revive)
            > settle CreatePod done
            > seen bot-r1 exited:1
              ended bot-r1 uid-2 AppExit counted
              tail? bot-r1 app ended
            > tail bot-r1
              DeletePod bot-r1 uid-2 grace=0 (Revive { counted: true }, former.own_exit)
            > gone bot-r1 deleted
              PutSecret bot-r1 r1 present-will-do (Revive { counted: true }, bring.revive)
            > settle PutSecret done
              CreatePod bot-r1 r1 (Revive { counted: true }, bring.revive)
            > settle CreatePod done
            > seen bot-r1 exited:1
              ended bot-r1 uid-3 AppExit counted
              tail? bot-r1 app ended
            > tail bot-r1
              DeletePod bot-r1 uid-3 grace=0 (Revive { counted: true }, former.own_exit)
            > gone bot-r1 deleted
              PutSecret bot-r1 r1 present-will-do (Revive { counted: true }, bring.revive)
            > settle PutSecret done
              CreatePod bot-r1 r1 (Revive { counted: true }, bring.revive)
            > settle CreatePod done
            > seen bot-r1 exited:1
              ended bot-r1 uid-4 AppExit counted
              tail? bot-r1 app ended
            > tail bot-r1
              DeletePod bot-r1 uid-4 grace=0 (Revive { counted: true }, former.own_exit)
            > gone bot-r1 deleted
              PutSecret bot-r1 r1 present-will-do (Revive { counted: true }, bring.revive)
            > settle PutSecret done
              CreatePod bot-r1 r1 (Revive { counted: true }, bring.revive)
            > settle CreatePod done
            > seen bot-r1 exited:1
              ended bot-r1 uid-5 AppExit counted
              tail? bot-r1 app ended
            > tail bot-r1
              DeletePod bot-r1 uid-5 grace=0 (Revive { counted: true }, former.own_exit)
            > gone bot-r1 deleted
              PutSecret bot-r1 r1 present-will-do (Revive { counted: true }, bring.revive)
            > settle PutSecret done
              CreatePod bot-r1 r1 (Revive { counted: true }, bring.revive)
            > settle CreatePod done
            > seen bot-r1 exited:1
              ended bot-r1 uid-6 AppExit counted
              tail? bot-r1 app ended
            > gone bot-r1 deleted
              DeleteSecret bot-r1 (Stop, clean.secret)
            > settle DeleteSecret done
            > tick 10m
        "#]],
    );
}

#[test]
fn an_exit_of_exactly_the_windows_age_is_out() {
    let exits = "
seen bot-r1 exited:1
tail bot-r1 + gone bot-r1 deleted
settle PutSecret done
settle CreatePod done
        "
    .repeat(5);
    check(
        &format!(
            "
start + listed
want r1 bot-r1 live=bot-r1 registered + seen bot-r1 running
{exits}
seen bot-r1 running
tick 600s
seen bot-r1 exited:1
tail bot-r1
        "
        ),
        &expect![[r#"
            > start + listed
            > want r1 bot-r1 live=bot-r1 registered + seen bot-r1 running
            > seen bot-r1 exited:1
              ended bot-r1 uid-1 AppExit counted
              tail? bot-r1 app ended
            > tail bot-r1 + gone bot-r1 deleted
              PutSecret bot-r1 r1 present-will-do (Revive { counted: true }, wanted.own_exit)
            > settle PutSecret done
              CreatePod bot-r1 r1 (Revive { counted: true }, bring.revive)
            > settle CreatePod done
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
            > seen bot-r1 exited:1
              ended bot-r1 uid-4 AppExit counted
              tail? bot-r1 app ended
            > tail bot-r1 + gone bot-r1 deleted
              PutSecret bot-r1 r1 present-will-do (Revive { counted: true }, wanted.own_exit)
            > settle PutSecret done
              CreatePod bot-r1 r1 (Revive { counted: true }, bring.revive)
            > settle CreatePod done
            > seen bot-r1 exited:1
              ended bot-r1 uid-5 AppExit counted
              tail? bot-r1 app ended
            > tail bot-r1 + gone bot-r1 deleted
              PutSecret bot-r1 r1 present-will-do (Revive { counted: true }, wanted.own_exit)
            > settle PutSecret done
              CreatePod bot-r1 r1 (Revive { counted: true }, bring.revive)
            > settle CreatePod done
            > seen bot-r1 running
            > tick 600s
            > seen bot-r1 exited:1
              ended bot-r1 uid-6 AppExit counted
              tail? bot-r1 app ended
            > tail bot-r1
              DeletePod bot-r1 uid-6 grace=0 (Revive { counted: true }, wanted.own_exit)
        "#]],
    );
}

#[test]
fn the_kubelets_clock_is_not_believed_of_a_pod_that_was_never_seen_before() {
    check(
        "
start + listed + want r1 bot-r1
seen bot-r1 running started=-1h
tick 120s
        ",
        &expect![[r#"
            > start + listed + want r1 bot-r1
              PutSecret bot-r1 r1 (Start, wanted.absent)
            > seen bot-r1 running started=-1h
            > tick 120s
              alarm waiting
            wake in 0s
        "#]],
    );
}

#[test]
fn a_restart_number_out_of_all_bounds_is_no_flood() {
    let mut story = Story::new();
    for line in ["start + listed", "want r1 bot-r1 live=bot-r1 + seen bot-r1 running", "seen bot-r1 running restarts=4294967295"] {
        let facts = line.split('+').flat_map(|part| story.inputs(part)).collect();
        story.react(facts);
    }
    assert!(story.records.len() < 200, "{} records", story.records.len());
}

/// Ten revivals without fault in the window are an alarm; the next look is when one of them leaves it, not before.
#[test]
fn a_waiting_alarm_of_many_revivals_looks_again_only_when_one_leaves_the_window() {
    let mut story = Story::new();
    let mut tell = |line: &str| {
        let facts = line.split('+').flat_map(|part| story.inputs(part)).collect();
        story.react(facts);
        (story.now_us, story.wake_us)
    };
    tell("start + listed");
    tell("want r1 bot-r1 live=bot-r1 registered + seen bot-r1 running");
    for _ in 0..16 {
        tell("gone bot-r1 deleted");
        tell("tick 60s");
        tell("settle PutSecret done");
        tell("settle CreatePod done");
        let (now_us, wake_us) = tell("seen bot-r1 running");
        assert!(wake_us.is_none_or(|wake_us| wake_us > now_us + 1_000_000), "it looks again at once");
    }
}

#[test]
fn the_fifth_exit_is_revived_though_its_pod_goes_in_the_same_moment() {
    let four = "
seen bot-r1 exited:1
tail bot-r1 + gone bot-r1 deleted
settle PutSecret done
settle CreatePod done
        "
    .repeat(4);
    check(
        &format!(
            "
start + listed
want r1 bot-r1 live=bot-r1 registered + seen bot-r1 running
{four}
seen bot-r1 exited:1 + gone bot-r1 deleted
        "
        ),
        &expect![[r#"
            > start + listed
            > want r1 bot-r1 live=bot-r1 registered + seen bot-r1 running
            > seen bot-r1 exited:1
              ended bot-r1 uid-1 AppExit counted
              tail? bot-r1 app ended
            > tail bot-r1 + gone bot-r1 deleted
              PutSecret bot-r1 r1 present-will-do (Revive { counted: true }, wanted.own_exit)
            > settle PutSecret done
              CreatePod bot-r1 r1 (Revive { counted: true }, bring.revive)
            > settle CreatePod done
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
            > seen bot-r1 exited:1
              ended bot-r1 uid-4 AppExit counted
              tail? bot-r1 app ended
            > tail bot-r1 + gone bot-r1 deleted
              PutSecret bot-r1 r1 present-will-do (Revive { counted: true }, wanted.own_exit)
            > settle PutSecret done
              CreatePod bot-r1 r1 (Revive { counted: true }, bring.revive)
            > settle CreatePod done
            > seen bot-r1 exited:1 + gone bot-r1 deleted
              ended bot-r1 uid-5 AppExit counted
              PutSecret bot-r1 r1 present-will-do (Revive { counted: true }, wanted.own_exit)
        "#]],
    );
}
