//! Stories of hosts that are brought: started, rolled out, revived, rolled back, stopped.

use expect_test::expect;

use super::story::check;

#[test]
fn a_first_release_goes_live() {
    check(
        "
start + listed
want r1 bot-r1
settle PutSecret done
settle CreatePod done
seen bot-r1 created
seen bot-r1 waiting:ContainerCreating
seen bot-r1 installing
seen bot-r1 initialized
seen bot-r1 running
want r1 bot-r1 registered
want r1 bot-r1 registered live=bot-r1
        ",
        &expect![[r#"
            > start + listed
            > want r1 bot-r1
              PutSecret bot-r1 r1 (Start, wanted.absent)
            > settle PutSecret done
              CreatePod bot-r1 r1 (Start, bring.start)
            > settle CreatePod done
            > seen bot-r1 created
            > seen bot-r1 waiting:ContainerCreating
            > seen bot-r1 installing
            > seen bot-r1 initialized
            > seen bot-r1 running
            > want r1 bot-r1 registered
              verdict bot-r1 Live (wanted.serves)
            > want r1 bot-r1 registered live=bot-r1
        "#]],
    );
}

#[test]
fn a_second_release_replaces_the_first_only_when_the_gateway_names_it() {
    check(
        "
start + listed
want r1 bot-r1 live=bot-r1 registered
settle PutSecret done
settle CreatePod done
seen bot-r1 running
want r2 bot-r2 live=bot-r1
settle PutSecret done
settle CreatePod done
seen bot-r2 running
want r2 bot-r2 live=bot-r1 registered
tick 10m
want r2 bot-r2 live=bot-r2 registered
settle DeletePod done
seen bot-r1 exited:0 deleting
tail bot-r1
gone bot-r1 deleted
settle DeleteSecret done
        ",
        &expect![[r#"
            > start + listed
            > want r1 bot-r1 live=bot-r1 registered
              PutSecret bot-r1 r1 (Start, wanted.absent)
            > settle PutSecret done
              CreatePod bot-r1 r1 (Start, bring.start)
            > settle CreatePod done
            > seen bot-r1 running
            > want r2 bot-r2 live=bot-r1
              PutSecret bot-r2 r2 (Start, wanted.absent)
            > settle PutSecret done
              CreatePod bot-r2 r2 (Start, bring.start)
            > settle CreatePod done
            > seen bot-r2 running
            > want r2 bot-r2 live=bot-r1 registered
              verdict bot-r2 Live (wanted.serves)
            > tick 10m
            > want r2 bot-r2 live=bot-r2 registered
              tail? bot-r1 app
              DeletePod bot-r1 uid-1 grace=45 (Stop, stop.not_kept)
            > settle DeletePod done
            > seen bot-r1 exited:0 deleting
              ended bot-r1 uid-1 DeletedByUs
              tail? bot-r1 app ended
            > tail bot-r1
            > gone bot-r1 deleted
              DeleteSecret bot-r1 (Stop, clean.secret)
            > settle DeleteSecret done
        "#]],
    );
}

#[test]
fn a_roll_back_cancels_a_stop_that_still_waits() {
    check(
        "
start + listed
want r1 bot-r1 live=bot-r1 registered + seen bot-r1 running + seen bot-r2 running
want r2 bot-r2 live=bot-r2 registered
want r1 bot-r1 live=bot-r2
settle DeletePod revoked
        ",
        &expect![[r#"
            > start + listed
            > want r1 bot-r1 live=bot-r1 registered + seen bot-r1 running + seen bot-r2 running
              tail? bot-r2 app
              DeletePod bot-r2 uid-2 grace=45 (Stop, stop.not_kept)
            > want r2 bot-r2 live=bot-r2 registered
              tail? bot-r1 app
              DeletePod bot-r1 uid-1 grace=45 (Stop, stop.not_kept)
              revoke 7 (stop.wanted_again)
            > want r1 bot-r1 live=bot-r2
              revoke 10 (stop.wanted_again)
            > settle DeletePod revoked
            wake in 30s
        "#]],
    );
}

#[test]
fn a_roll_back_that_comes_too_late_brings_the_host_again() {
    check(
        "
start + listed
want r1 bot-r1 live=bot-r1 registered + seen bot-r1 running + seen bot-r2 running
want r2 bot-r2 live=bot-r2 registered
want r1 bot-r1 live=bot-r2
settle DeletePod done
seen bot-r1 running deleting
gone bot-r1 deleted
        ",
        &expect![[r#"
            > start + listed
            > want r1 bot-r1 live=bot-r1 registered + seen bot-r1 running + seen bot-r2 running
              tail? bot-r2 app
              DeletePod bot-r2 uid-2 grace=45 (Stop, stop.not_kept)
            > want r2 bot-r2 live=bot-r2 registered
              tail? bot-r1 app
              DeletePod bot-r1 uid-1 grace=45 (Stop, stop.not_kept)
              revoke 7 (stop.wanted_again)
            > want r1 bot-r1 live=bot-r2
              revoke 10 (stop.wanted_again)
            > settle DeletePod done
            > seen bot-r1 running deleting
            > gone bot-r1 deleted
              ended bot-r1 uid-1 DeletedByUs
              PutSecret bot-r1 r1 (Start, wanted.absent)
            wake in 30s
        "#]],
    );
}

#[test]
fn a_third_release_during_a_start_takes_the_second_back() {
    check(
        "
start + listed
want r1 bot-r1 live=bot-r1 registered + seen bot-r1 running
want r2 bot-r2 live=bot-r1
want r3 bot-r3 live=bot-r1
settle PutSecret revoked
        ",
        &expect![[r#"
            > start + listed
            > want r1 bot-r1 live=bot-r1 registered + seen bot-r1 running
            > want r2 bot-r2 live=bot-r1
              PutSecret bot-r2 r2 (Start, wanted.absent)
            > want r3 bot-r3 live=bot-r1
              PutSecret bot-r3 r3 (Start, wanted.absent)
              revoke 6 (stop.not_kept)
            > settle PutSecret revoked
              ReadSecret bot-r2 (Stop, clean.secret)
            wake in 30s
        "#]],
    );
}

#[test]
fn a_want_that_changes_while_a_create_is_in_flight_stops_the_pod_that_came() {
    check(
        "
start + listed
want r1 bot-r1
settle PutSecret done
want r2 bot-r2
settle CreatePod done
seen bot-r1 installing
        ",
        &expect![[r#"
            > start + listed
            > want r1 bot-r1
              PutSecret bot-r1 r1 (Start, wanted.absent)
            > settle PutSecret done
              CreatePod bot-r1 r1 (Start, bring.start)
            > want r2 bot-r2
              PutSecret bot-r2 r2 (Start, wanted.absent)
              revoke 6 (stop.not_kept)
            > settle CreatePod done
              DeletePod bot-r1 uid-1 grace=45 (Stop, stop.not_kept)
            > seen bot-r1 installing
            wake in 30s
        "#]],
    );
}

#[test]
fn a_changed_secret_is_a_new_host_of_the_same_release() {
    check(
        "
start + listed
want r1 bot-r1-a live=bot-r1-a registered + seen bot-r1-a running
want r1 bot-r1-b live=bot-r1-a
        ",
        &expect![[r#"
            > start + listed
            > want r1 bot-r1-a live=bot-r1-a registered + seen bot-r1-a running
            > want r1 bot-r1-b live=bot-r1-a
              PutSecret bot-r1-b r1 (Start, wanted.absent)
        "#]],
    );
}

#[test]
fn b13_a_pod_refused_after_its_secret_leaves_no_secret() {
    check(
        "
start + listed
want r1 bot-r1
settle PutSecret done
settle CreatePod invalid
settle DeleteSecret done
        ",
        &expect![[r#"
            > start + listed
            > want r1 bot-r1
              PutSecret bot-r1 r1 (Start, wanted.absent)
            > settle PutSecret done
              CreatePod bot-r1 r1 (Start, bring.start)
            > settle CreatePod invalid
              verdict bot-r1 Failed(Refused(Invalid)) (wanted.refused)
              DeleteSecret bot-r1 (Stop, clean.secret)
            > settle DeleteSecret done
        "#]],
    );
}

#[test]
fn b37_an_environment_that_is_not_usable_fails_the_release() {
    check(
        "
start + listed
want r1 bot-r1
settle PutSecret environment
        ",
        &expect![[r#"
            > start + listed
            > want r1 bot-r1
              PutSecret bot-r1 r1 (Start, wanted.absent)
            > settle PutSecret environment
              verdict bot-r1 Failed(Refused(Environment)) (wanted.refused)
              ReadSecret bot-r1 (Stop, clean.secret)
        "#]],
    );
}

#[test]
fn b09_a_name_held_by_a_dying_pod_is_tried_again_when_it_is_free() {
    check(
        "
start + listed
want r1 bot-r1
settle PutSecret done
settle CreatePod name-held
tick 999ms
tick 1s
settle CreatePod done
        ",
        &expect![[r#"
            > start + listed
            > want r1 bot-r1
              PutSecret bot-r1 r1 (Start, wanted.absent)
            > settle PutSecret done
              CreatePod bot-r1 r1 (Start, bring.start)
            > settle CreatePod name-held
            > tick 999ms
            > tick 1s
              CreatePod bot-r1 r1 (Start, bring.start)
            > settle CreatePod done
            wake in 300s
        "#]],
    );
}

#[test]
fn a_retry_of_an_operator_covers_the_failure() {
    check(
        "
start + listed
want r1 bot-r1
settle PutSecret environment
settle ReadSecret gone
want r1 bot-r1 failed
retry bot-r1
        ",
        &expect![[r#"
            > start + listed
            > want r1 bot-r1
              PutSecret bot-r1 r1 (Start, wanted.absent)
            > settle PutSecret environment
              verdict bot-r1 Failed(Refused(Environment)) (wanted.refused)
              ReadSecret bot-r1 (Stop, clean.secret)
            > settle ReadSecret gone
            > want r1 bot-r1 failed
            > retry bot-r1
              PutSecret bot-r1 r1 (Start, bring.start)
        "#]],
    );
}

#[test]
fn a_failure_that_the_gateway_takes_back_is_a_retry() {
    check(
        "
start + listed
want r1 bot-r1
settle PutSecret environment
settle ReadSecret gone
want r1 bot-r1 failed
want r1 bot-r1
        ",
        &expect![[r#"
            > start + listed
            > want r1 bot-r1
              PutSecret bot-r1 r1 (Start, wanted.absent)
            > settle PutSecret environment
              verdict bot-r1 Failed(Refused(Environment)) (wanted.refused)
              ReadSecret bot-r1 (Stop, clean.secret)
            > settle ReadSecret gone
            > want r1 bot-r1 failed
            > want r1 bot-r1
              PutSecret bot-r1 r1 (Start, bring.start)
        "#]],
    );
}
