//! Stories of answers that never come, and of restarts.

use expect_test::expect;

use super::story::check;

#[test]
fn b14_a_create_that_is_not_answered_is_tried_at_once_and_again() {
    check(
        "
start + listed
create
settle CreateClaim done
settle PutService done
settle CreatePod unknown
settle CreatePod unknown
tick 1s
settle CreatePod unknown
tick 1s
tick 1s
pod running
service
pod ready
        ",
        &expect![[r#"
            > start + listed
            > create
              CreateClaim (session.claim)
              PutService (session.service)
              = provisioning Claim
            > settle CreateClaim done
              CreatePod (session.pod)
              = provisioning Pod
            > settle PutService done
            > settle CreatePod unknown
              CreatePod (session.pod)
              = provisioning Pod, waits for Api
            > settle CreatePod unknown
            > tick 1s
              CreatePod (session.pod)
            > settle CreatePod unknown
            > tick 1s
            > tick 1s
              CreatePod (session.pod)
            > pod running
              = provisioning Starting
            > service
            > pod ready
              = ready
              ! 201 fresh
        "#]],
    );
}

#[test]
fn a_delete_of_what_may_still_appear_is_done_when_a_reading_shows_nothing() {
    check(
        "
start + listed
create
settle CreateClaim unknown
delete
settle PutService revoked
settle CreateClaim revoked
tick 60s
tick 1us
settle ReadClaim gone
        ",
        &expect![[r#"
            > start + listed
            > create
              CreateClaim (session.claim)
              PutService (session.service)
              = provisioning Claim
            > settle CreateClaim unknown
              CreateClaim (session.claim)
              = provisioning Claim, waits for Api
            > delete
              revoke 5 (session.taken_back)
              revoke 7 (session.taken_back)
              = deleting
              ! left [Service, Claim]
            > settle PutService revoked
              ! left [Claim]
            > settle CreateClaim revoked
            > tick 60s
            > tick 1us
              ReadClaim (session.doubt)
            > settle ReadClaim gone
              removed
              = absent
              ! Removed at Claim
        "#]],
    );
}

#[test]
fn and_takes_away_what_the_reading_shows() {
    check(
        "
start + listed
create
settle CreateClaim done
settle PutService done
settle CreatePod unknown
delete
settle DeleteClaim done
settle DeleteService done
gone claim + gone service
settle CreatePod revoked
tick 61s
settle ReadPod done
settle DeletePod done
gone pod
create
        ",
        &expect![[r#"
            > start + listed
            > create
              CreateClaim (session.claim)
              PutService (session.service)
              = provisioning Claim
            > settle CreateClaim done
              CreatePod (session.pod)
              = provisioning Pod
            > settle PutService done
            > settle CreatePod unknown
              CreatePod (session.pod)
              = provisioning Pod, waits for Api
            > delete
              DeleteService service-2 (session.deleted)
              DeleteClaim claim-1 (session.deleted)
              revoke 10 (session.taken_back)
              = deleting
              ! left [Pod, Service, Claim]
            > settle DeleteClaim done
            > settle DeleteService done
            > gone claim + gone service
              ! left [Pod]
            > settle CreatePod revoked
            > tick 61s
              ReadPod (session.doubt)
            > settle ReadPod done
              DeletePod pod-3 grace=30 (session.deleted)
            > settle DeletePod done
            > gone pod
              ended pod-3 DeletedByUs
              removed
              = absent
              ! Removed at Claim
            > create
              CreateClaim (session.claim)
              PutService (session.service)
              = provisioning Claim
            wake in 1200s
        "#]],
    );
}

#[test]
fn b55_what_appears_after_it_was_given_up_is_stopped() {
    check(
        "
start + listed
create
settle CreateClaim done
settle PutService done
settle CreatePod invalid
service
pod running
settle DeletePod done
gone pod
        ",
        &expect![[r#"
            > start + listed
            > create
              CreateClaim (session.claim)
              PutService (session.service)
              = provisioning Claim
            > settle CreateClaim done
              CreatePod (session.pod)
              = provisioning Pod
            > settle PutService done
            > settle CreatePod invalid
              given up Refused(Invalid) at Pod (session.refused)
              = failed Refused(Invalid) at Pod
              ! Refused(Invalid) at Pod
            > service
            > pod running
              DeletePod pod-3 grace=30 (session.not_wanted)
              = exited
            > settle DeletePod done
            > gone pod
              ended pod-3 DeletedByUs
              = failed Refused(Invalid) at Pod
        "#]],
    );
}

#[test]
fn b30_a_restart_in_the_middle_goes_on_from_the_lists() {
    check(
        "
start + listed
create
settle CreateClaim done
start
claim + listed
settle PutService already
settle CreatePod already
service
pod ready
        ",
        &expect![[r#"
            > start + listed
            > create
              CreateClaim (session.claim)
              PutService (session.service)
              = provisioning Claim
            > settle CreateClaim done
              CreatePod (session.pod)
              = provisioning Pod
            > start
            > claim + listed
              PutService (session.service)
              CreatePod (session.pod)
            > settle PutService already
            > settle CreatePod already
              = provisioning Scheduling
            > service
            > pod ready
              = ready
              ! 201 fresh
        "#]],
    );
}

#[test]
fn b55_a_restart_in_the_middle_of_a_delete_goes_on_too() {
    check(
        "
made
delete
settle DeleteService done
start
pod ready + claim + gone service absent + listed
settle DeletePod gone
settle DeleteClaim gone
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
            > settle DeleteService done
            > start
            > pod ready + claim + gone service absent + listed
              DeletePod pod-3 grace=30 (session.deleted)
              DeleteClaim claim-1 (session.deleted)
              ! left [Pod, Claim]
            > settle DeletePod gone
              ended pod-3 DeletedByUs
              ! left [Claim]
            > settle DeleteClaim gone
              removed
              = absent
              ! Removed at Claim
        "#]],
    );
}

#[test]
fn what_is_only_found_is_left_alone_and_resumed_by_a_call() {
    check(
        "
start
claim + service + pod ready + listed
create
delete keep
        ",
        &expect![[r#"
            > start
            > claim + service + pod ready + listed
              alarm unclaimed
              = ready
            > create
              clear unclaimed
              ! 200 resumed
            > delete keep
              DeletePod pod-3 grace=30 (session.suspended)
              = deleting
              ! left [Pod]
        "#]],
    );
}

#[test]
fn a_found_pod_that_has_ended_is_reaped_and_its_claim_kept() {
    check(
        "
start
claim + service + pod exited:0 + listed
tail
settle DeletePod done
gone pod
create
        ",
        &expect![[r#"
            > start
            > claim + service + pod exited:0 + listed
              ended pod-3 AppExit exit=0
              tail? session ended
              alarm unclaimed
              = exited
            > tail
              DeletePod pod-3 grace=0 (session.ended)
            > settle DeletePod done
            > gone pod
              = suspended
            > create
              CreatePod (session.pod)
              clear unclaimed
              = provisioning Pod
            wake in 1200s
        "#]],
    );
}

#[test]
fn nothing_is_sent_while_frozen() {
    check(
        "
start + listed
freeze
create
withheld
tick 10m
thaw
        ",
        &expect![[r#"
            > start + listed
            > freeze
            > create
              CreateClaim (session.claim)
              PutService (session.service)
              = provisioning Claim
            > withheld
            > tick 10m
            > thaw
              CreateClaim (session.claim)
              PutService (session.service)
            wake in 600s
        "#]],
    );
}

#[test]
fn nothing_is_planned_before_the_lists() {
    check(
        "
start
create
listed
        ",
        &expect![[r#"
            > start
            > create
              = provisioning Claim
            > listed
              CreateClaim (session.claim)
              PutService (session.service)
            wake in 1200s
        "#]],
    );
}

#[test]
fn a_step_that_nobody_answers_is_an_alarm() {
    check(
        "
start + listed
create
tick 31s
settle CreateClaim done
settle PutService done
        ",
        &expect![[r#"
            > start + listed
            > create
              CreateClaim (session.claim)
              PutService (session.service)
              = provisioning Claim
            > tick 31s
              alarm waiting
            > settle CreateClaim done
              CreatePod (session.pod)
              = provisioning Pod
            > settle PutService done
              clear waiting
            wake in 30s
        "#]],
    );
}
