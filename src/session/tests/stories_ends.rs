//! Stories of pods that end: reaped, resumable, forced, stuck.

use expect_test::expect;

use super::story::{check, check_under, settings};
use crate::events::kinds::session::SessionPlanSettings;

#[test]
fn b25_a_pod_that_has_ended_is_reaped_at_once_after_its_last_words() {
    check(
        "
made
pod exited:0
tail
settle DeletePod done
gone pod
        ",
        &expect![[r#"
            > made
              = ready
              ! 201 fresh
            > pod exited:0
              ended pod-3 AppExit exit=0
              tail? session ended
              = exited
              ! Ended(AppExit) at Starting
            > tail
              DeletePod pod-3 grace=0 (session.ended)
            > settle DeletePod done
            > gone pod
              = suspended
        "#]],
    );
}

#[test]
fn b26_an_end_is_seen_though_a_sidecar_runs_on() {
    check(
        "
made
pod sidecar:1
tail
settle DeletePod done
gone pod
        ",
        &expect![[r#"
            > made
              = ready
              ! 201 fresh
            > pod sidecar:1
              ended pod-3 AppExit exit=1
              tail? session ended
              = exited
              ! Ended(AppExit) at Starting
            > tail
              DeletePod pod-3 grace=0 (session.ended)
            > settle DeletePod done
            > gone pod
              = suspended
        "#]],
    );
}

#[test]
fn b18_a_pod_that_a_node_refused_is_resumable() {
    check(
        "
placed
pod failed:OutOfpods
settle DeletePod done
gone pod
create
settle CreatePod done
pod ready
        ",
        &expect![[r#"
            > placed
              = provisioning Scheduling
            > pod failed:OutOfpods
              ended pod-3 NodeRefused
              DeletePod pod-3 grace=0 (session.ended)
              = exited
              ! Ended(NodeRefused) at Pull
            > settle DeletePod done
            > gone pod
              = suspended
            > create
              CreatePod (session.pod)
              = provisioning Pod
            > settle CreatePod done
              = provisioning Scheduling
            > pod ready
              = ready
              ! 200 resumed
        "#]],
    );
}

#[test]
fn b21_any_end_is_resumable_and_says_its_code() {
    check(
        "
made
pod oom:137
create
tail
settle DeletePod done
gone pod
settle CreatePod done
pod ready
        ",
        &expect![[r#"
            > made
              = ready
              ! 201 fresh
            > pod oom:137
              ended pod-3 Oom exit=137
              tail? session ended
              = exited
              ! Ended(Oom) at Starting
            > create
              = provisioning Pod, waits for OldPod
            > tail
              DeletePod pod-3 grace=0 (session.ended)
            > settle DeletePod done
            > gone pod
              CreatePod (session.pod)
              = provisioning Pod
            > settle CreatePod done
              = provisioning Scheduling
            > pod ready
              = ready
              ! 200 resumed
        "#]],
    );
}

#[test]
fn b30_what_ended_while_nobody_watched_is_reaped_and_what_runs_is_left() {
    check(
        "
made
start
pod exited:1 + claim + service + listed
tail
settle DeletePod done
gone pod
start
listed
        ",
        &expect![[r#"
            > made
              = ready
              ! 201 fresh
            > start
            > pod exited:1 + claim + service + listed
              ended pod-3 AppExit exit=1
              tail? session ended
              = exited
              ! Ended(AppExit) at Starting
            > tail
              DeletePod pod-3 grace=0 (session.ended)
            > settle DeletePod done
            > gone pod
              = suspended
            > start
            > listed
        "#]],
    );
}

#[test]
fn b22_grace_0_is_for_what_has_ended_and_a_lost_node_has_not() {
    check(
        "
made
node lost
pod failed:NodeLost by=tainted
settle DeletePod done
pod failed:NodeLost by=tainted deleting
create
tick 301s
create
        ",
        &expect![[r#"
            > made
              = ready
              ! 201 fresh
            > node lost
            > pod failed:NodeLost by=tainted
              ended pod-3 NodeLost
              DeletePod pod-3 grace=30 (session.ended)
              = exited
              ! Ended(NodeLost) at Pull
            > settle DeletePod done
            > pod failed:NodeLost by=tainted deleting
            > create
              = provisioning Pod, waits for OldPod
            > tick 301s
              alarm stuck_terminating
            > create
              joins 19
            wake in 899s
        "#]],
    );
}

#[test]
fn b22_force_after_is_the_callers_explicit_word() {
    check(
        "
made
pod unknown deleting
create
tick 120s
create force=120s
tick 1us
settle DeletePod done
gone pod
settle CreatePod done
pod ready
        ",
        &expect![[r#"
            > made
              = ready
              ! 201 fresh
            > pod unknown deleting
              = provisioning Pod, waits for OldPod
            > create
            > tick 120s
            > create force=120s
            > tick 1us
              DeletePod pod-3 grace=0 forced (session.force)
            > settle DeletePod done
            > gone pod
              ended pod-3 NodeLost
              CreatePod (session.pod)
              = provisioning Pod
            > settle CreatePod done
              = provisioning Scheduling
            > pod ready
              = ready
              ! 200 resumed
        "#]],
    );
}

#[test]
fn b53_or_the_operators() {
    check_under(
        SessionPlanSettings { force_after_us: Some(600_000_000), ..settings() },
        "
made
delete
settle DeletePod done
settle DeleteService done
settle DeleteClaim done
pod running deleting + gone service
tick 301s
tick 300s
settle DeletePod done
gone pod
gone claim
        ",
        &expect![[r#"
            > made
              = ready
              ! 201 fresh
            > delete
              DeletePod pod-3 grace=30 (session.deleted)
              DeleteService service-2 (session.deleted)
              DeleteClaim claim-1 (session.deleted)
              = deleting
              ! left [Pod, Service, Claim]
            > settle DeletePod done
            > settle DeleteService done
            > settle DeleteClaim done
            > pod running deleting + gone service
              ! left [Pod, Claim]
            > tick 301s
              alarm stuck_terminating
            > tick 300s
              DeletePod pod-3 grace=0 forced (session.force)
            > settle DeletePod done
            > gone pod
              ended pod-3 NodeLost
              clear stuck_terminating
              ! left [Claim]
            > gone claim
              removed
              = absent
              ! Removed at Claim
        "#]],
    );
}

#[test]
fn b53_without_it_one_delete_and_an_alarm() {
    check(
        "
made
delete
settle DeletePod done
settle DeleteService done
settle DeleteClaim done
gone service
pod exited:0 deleting + claim deleting
tick 301s
tick 20m
gone pod
gone claim
        ",
        &expect![[r#"
            > made
              = ready
              ! 201 fresh
            > delete
              DeletePod pod-3 grace=30 (session.deleted)
              DeleteService service-2 (session.deleted)
              DeleteClaim claim-1 (session.deleted)
              = deleting
              ! left [Pod, Service, Claim]
            > settle DeletePod done
            > settle DeleteService done
            > settle DeleteClaim done
            > gone service
              ! left [Pod, Claim]
            > pod exited:0 deleting + claim deleting
              ended pod-3 DeletedByUs exit=0
            > tick 301s
              alarm stuck_terminating
            > tick 20m
            > gone pod
              ! left [Claim]
            > gone claim
              removed
              clear stuck_terminating
              = absent
              ! Removed at Claim
        "#]],
    );
}

#[test]
fn b15_a_refused_delete_is_said_and_tried_on() {
    check(
        "
made
delete
settle DeletePod done
settle DeleteService forbidden
settle DeleteClaim forbidden
gone pod
tick 10s
delete
tick 20s
settle DeleteService gone
settle DeleteClaim done
gone claim
        ",
        &expect![[r#"
            > made
              = ready
              ! 201 fresh
            > delete
              DeletePod pod-3 grace=30 (session.deleted)
              DeleteService service-2 (session.deleted)
              DeleteClaim claim-1 (session.deleted)
              = deleting
              ! left [Pod, Service, Claim]
            > settle DeletePod done
            > settle DeleteService forbidden
              alarm waiting
              ! left [Pod, Service, Claim], refused Forbidden
            > settle DeleteClaim forbidden
            > gone pod
              ended pod-3 DeletedByUs
              ! left [Service, Claim], refused Forbidden
            > tick 10s
            > delete
              joins 13
            > tick 20s
              DeleteService service-2 (session.deleted)
              DeleteClaim claim-1 (session.deleted)
            > settle DeleteService gone
              ! left [Claim], refused Forbidden
            > settle DeleteClaim done
              clear waiting
              ! left [Claim]
            > gone claim
              removed
              = absent
        "#]],
    );
}

#[test]
fn b47_an_end_before_ready_fails_the_call_and_heals_on_the_next() {
    check(
        "
placed
pod running
pod exited:3
tail
settle DeletePod done
gone pod
create
        ",
        &expect![[r#"
            > placed
              = provisioning Scheduling
            > pod running
              = provisioning Starting
            > pod exited:3
              ended pod-3 AppExit exit=3
              tail? session ended
              = exited
              ! Ended(AppExit) at Starting
            > tail
              DeletePod pod-3 grace=0 (session.ended)
            > settle DeletePod done
            > gone pod
              = suspended
            > create
              CreatePod (session.pod)
              = provisioning Pod
            wake in 1200s
        "#]],
    );
}
