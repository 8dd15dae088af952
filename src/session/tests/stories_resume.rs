//! Stories of sessions that are resumed, and of what they are resumed from.

use expect_test::expect;

use super::story::{check, check_under, settings};
use crate::events::kinds::session::SessionPlanSettings;

#[test]
fn b47_a_pod_that_is_gone_is_made_again_on_its_claim_by_the_next_call() {
    check(
        "
made
gone pod
create
settle CreatePod done
pod ready
        ",
        &expect![[r#"
            > made
              = ready
              ! 201 fresh
            > gone pod
              ended pod-3 DeletedByOther
              = suspended
              ! Ended(DeletedByOther) at Starting
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
fn b47_a_claim_that_is_gone_too_is_said_to_be_fresh() {
    check(
        "
made
gone pod + gone claim
create
settle DeleteService done
gone service
settle CreateClaim done
settle PutService done
settle CreatePod done
service
pod ready
        ",
        &expect![[r#"
            > made
              = ready
              ! 201 fresh
            > gone pod + gone claim
              ended pod-3 DeletedByOther
              DeleteService service-2 (session.left_over)
              = absent
              ! Ended(DeletedByOther) at Starting
            > create
              CreateClaim (session.claim)
              = provisioning Claim
            > settle DeleteService done
            > gone service
              PutService (session.service)
            > settle CreateClaim done
              CreatePod (session.pod)
              = provisioning Pod
            > settle PutService done
            > settle CreatePod done
              = provisioning Scheduling
            > service
            > pod ready
              = ready
              ! 201 fresh
        "#]],
    );
}

#[test]
fn b47_a_pod_replaced_by_hand_answers_with_its_own_uid() {
    check(
        "
made
other + pod ready
        ",
        &expect![[r#"
            > made
              = ready
              ! 201 fresh
            > other + pod ready
              ended pod-3 Vanished
        "#]],
    );
}

#[test]
fn a_terminating_claim_is_not_reused() {
    check(
        "
made
pod exited:0
tail
settle DeletePod done
gone pod
claim deleting
create
tick 10s
gone claim
settle CreateClaim done
settle CreatePod done
pod ready
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
            > claim deleting
            > create
              = provisioning Claim, waits for OldClaim
            > tick 10s
            > gone claim
              CreateClaim (session.claim)
              = provisioning Claim
            > settle CreateClaim done
              CreatePod (session.pod)
              = provisioning Pod
            > settle CreatePod done
              = provisioning Scheduling
            > pod ready
              = ready
              ! 201 fresh
        "#]],
    );
}

#[test]
fn b51_a_service_with_an_old_selector_is_repaired_on_resume() {
    check(
        "
start
claim + service differs + listed
create
settle PutService conflict
service differs
tick 1s
settle PutService done
service
settle CreatePod done
pod ready
        ",
        &expect![[r#"
            > start
            > claim + service differs + listed
              alarm unclaimed
              = suspended
            > create
              PutService in place of service-2 (session.service_differs)
              CreatePod (session.pod)
              clear unclaimed
              = provisioning Pod
            > settle PutService conflict
              = provisioning Pod, waits for Api
            > service differs
            > tick 1s
              PutService in place of service-2 (session.service_differs)
            > settle PutService done
              = provisioning Pod
            > service
            > settle CreatePod done
              = provisioning Scheduling
            > pod ready
              = ready
              ! 200 resumed
        "#]],
    );
}

#[test]
fn a_claim_of_another_tenant_is_not_used() {
    check(
        "
start
claim tenant=other + listed
create
delete
create tenant=other
        ",
        &expect![[r#"
            > start
            > claim tenant=other + listed
              alarm unclaimed
              = suspended
            > create
              refused OtherTenant
            > delete
              DeleteClaim claim-1 (session.deleted)
              clear unclaimed
              = deleting
              ! left [Claim]
            > create tenant=other
            wake in 30s
        "#]],
    );
}

#[test]
fn a_claim_of_another_tenant_that_appears_meanwhile_is_not_used() {
    check(
        "
start + listed
create
claim tenant=other
settle PutService revoked
create
        ",
        &expect![[r#"
            > start + listed
            > create
              CreateClaim (session.claim)
              PutService (session.service)
              = provisioning Claim
            > claim tenant=other
              given up Refused(Foreign) at Claim (session.other_tenant)
              revoke 5 (session.taken_back)
              = failed Refused(Foreign) at Claim
              ! Refused(Foreign) at Claim
            > settle PutService revoked
            > create
              given up Refused(Foreign) at Claim (session.other_tenant)
        "#]],
    );
}

#[test]
fn a_touch_is_recorded_at_most_once_a_minute() {
    check(
        "
start + listed
touch
create
touch
tick 60s
touch
touch
        ",
        &expect![[r#"
            > start + listed
            > touch
              refused Unknown
            > create
              CreateClaim (session.claim)
              PutService (session.service)
              = provisioning Claim
            > touch
              already so
            > tick 60s
              alarm waiting
            > touch
            > touch
              already so
            wake in 1140s
        "#]],
    );
}

#[test]
fn retention_counts_from_the_last_use_and_a_call_in_time_keeps_the_claim() {
    check_under(
        SessionPlanSettings { retain_us: Some(3_600_000_000), ..settings() },
        "
made
delete keep
settle DeletePod done
gone pod
tick 30m
touch
tick 59m
create
settle CreatePod done
pod ready
pod exited:0
tail
settle DeletePod done
gone pod
tick 60m
tick 1us
settle DeleteClaim done
gone claim
settle DeleteService done
gone service
        ",
        &expect![[r#"
            > made
              = ready
              ! 201 fresh
            > delete keep
              DeletePod pod-3 grace=30 (session.suspended)
              = deleting
              ! left [Pod]
            > settle DeletePod done
            > gone pod
              ended pod-3 DeletedByUs
              removed, the claim stays
              = suspended
              ! Removed at Pod
            > tick 30m
            > touch
            > tick 59m
            > create
              CreatePod (session.pod)
              = provisioning Pod
            > settle CreatePod done
              = provisioning Scheduling
            > pod ready
              = ready
              ! 200 resumed
            > pod exited:0
              ended pod-4 AppExit exit=0
              tail? session ended
              = exited
              ! Ended(AppExit) at Starting
            > tail
              DeletePod pod-4 grace=0 (session.ended)
            > settle DeletePod done
            > gone pod
              = suspended
            > tick 60m
            > tick 1us
              DeleteClaim claim-1 (session.expired)
            > settle DeleteClaim done
            > gone claim
              DeleteService service-2 (session.left_over)
              = absent
            > settle DeleteService done
            > gone service
        "#]],
    );
}
