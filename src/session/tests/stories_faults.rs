//! Stories of what goes wrong: refusals, answers that never come, restarts, strangers.

use expect_test::expect;

use super::story::check;

#[test]
fn b24_quota_is_answered_at_once_and_tried_on() {
    check(
        "
start + listed
create
settle PutService done
settle CreateClaim quota
create
tick 30s
settle CreateClaim done
settle CreatePod done
service
pod ready
        ",
        &expect![[r#"
            > start + listed
            > create
              CreateClaim (session.claim)
              PutService (session.service)
              = provisioning Claim
            > settle PutService done
            > settle CreateClaim quota
              alarm waiting
              = failed Refused(Quota) at Claim, retrying
              ! Refused(Quota) at Claim, retrying
            > create
              joins 3
            > tick 30s
              CreateClaim (session.claim)
            > settle CreateClaim done
              CreatePod (session.pod)
              clear waiting
              = provisioning Pod
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
fn b24_what_is_invalid_is_answered_at_once_and_given_up() {
    check(
        "
start + listed
create
settle PutService done
settle CreateClaim done
settle CreatePod invalid
create
settle CreatePod done
service
pod ready
        ",
        &expect![[r#"
            > start + listed
            > create
              CreateClaim (session.claim)
              PutService (session.service)
              = provisioning Claim
            > settle PutService done
            > settle CreateClaim done
              CreatePod (session.pod)
              = provisioning Pod
            > settle CreatePod invalid
              given up Refused(Invalid) at Pod (session.refused)
              = failed Refused(Invalid) at Pod
              ! Refused(Invalid) at Pod
            > create
              CreatePod (session.pod)
              = provisioning Pod
            > settle CreatePod done
              = provisioning Scheduling
            > service
            > pod ready
              = ready
              ! 200 resumed
        "#]],
    );
}

#[test]
fn b24_a_missing_right_is_an_alarm() {
    check(
        "
start + listed
create
settle PutService forbidden
settle CreateClaim forbidden
        ",
        &expect![[r#"
            > start + listed
            > create
              CreateClaim (session.claim)
              PutService (session.service)
              = provisioning Claim
            > settle PutService forbidden
              alarm waiting
              = failed Refused(Forbidden) at Pod, retrying
              ! Refused(Forbidden) at Pod, retrying
            > settle CreateClaim forbidden
              = failed Refused(Forbidden) at Claim, retrying
              ! Refused(Forbidden) at Claim, retrying
            wake in 30s
        "#]],
    );
}

#[test]
fn b11_a_name_that_is_taken_is_refused() {
    check(
        "
start + listed
create
settle CreateClaim foreign
settle PutService revoked
        ",
        &expect![[r#"
            > start + listed
            > create
              CreateClaim (session.claim)
              PutService (session.service)
              = provisioning Claim
            > settle CreateClaim foreign
              given up Refused(Foreign) at Claim (session.refused)
              revoke 5 (session.taken_back)
              = failed Refused(Foreign) at Claim
              ! Refused(Foreign) at Claim
            > settle PutService revoked
        "#]],
    );
}

#[test]
fn b11_a_service_of_somebody_else_leaves_nothing_half_made() {
    check(
        "
start + listed
create
settle CreateClaim done
settle PutService foreign
settle CreatePod done
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
            > settle PutService foreign
              given up Refused(Foreign) at Pod (session.refused)
              revoke 7 (session.taken_back)
              = failed Refused(Foreign) at Pod
              ! Refused(Foreign) at Pod
            > settle CreatePod done
              DeletePod pod-2 grace=30 (session.not_wanted)
              = exited
            > settle DeletePod done
            > gone pod
              ended pod-2 DeletedByUs
              = failed Refused(Foreign) at Pod
        "#]],
    );
}

#[test]
fn b49_no_pod_before_the_policy_and_the_stage_says_so() {
    check(
        "
start + listed
create
settle CreateClaim done
settle PutService done
settle CreatePod network-policy
create
tick 30s
settle CreatePod done
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
            > settle CreatePod network-policy
              alarm waiting
              = failed Refused(NetworkPolicy) at Policy, retrying
              ! Refused(NetworkPolicy) at Policy, retrying
            > create
              joins 3
            > tick 30s
              CreatePod (session.pod)
            > settle CreatePod done
              clear waiting
              = provisioning Scheduling
            > service
            > pod ready
              = ready
              ! 201 fresh
        "#]],
    );
}

#[test]
fn b54_a_missing_runtime_class_is_never_done_without() {
    check(
        "
start + listed
create
settle CreateClaim done
settle PutService done
settle CreatePod runtime-class
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
            > settle CreatePod runtime-class
              given up Refused(RuntimeClass) at Pod (session.refused)
              = failed Refused(RuntimeClass) at Pod
              ! Refused(RuntimeClass) at Pod
        "#]],
    );
}

#[test]
fn b09_a_name_that_is_held_is_waited_for() {
    check(
        "
start + listed
create
settle CreateClaim name-held
claim deleting
settle PutService done
gone claim
settle CreateClaim done
settle CreatePod name-held
pod running deleting
gone pod
settle CreatePod done
service
pod ready
        ",
        &expect![[r#"
            > start + listed
            > create
              CreateClaim (session.claim)
              PutService (session.service)
              = provisioning Claim
            > settle CreateClaim name-held
            > claim deleting
              = provisioning Claim, waits for OldClaim
            > settle PutService done
            > gone claim
              CreateClaim (session.claim)
              = provisioning Claim
            > settle CreateClaim done
              CreatePod (session.pod)
              = provisioning Pod
            > settle CreatePod name-held
            > pod running deleting
              = provisioning Pod, waits for OldPod
            > gone pod
              ended pod-4 DeletedByOther
              CreatePod (session.pod)
              = provisioning Pod
            > settle CreatePod done
              = provisioning Scheduling
            > service
            > pod ready
              = ready
              ! 201 fresh
        "#]],
    );
}
