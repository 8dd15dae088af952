//! Stories of sessions that go: deleted and suspended.

use expect_test::expect;

use super::story::check;

#[test]
fn a_delete_removes_pod_service_and_claim_by_uid_at_once() {
    check(
        "
made
delete
delete
settle DeletePod done
settle DeleteService done
settle DeleteClaim done
claim deleting
pod exited:0 deleting
gone service
gone pod
gone claim
delete
delete keep
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
            > delete
              joins 13
            > settle DeletePod done
            > settle DeleteService done
            > settle DeleteClaim done
            > claim deleting
            > pod exited:0 deleting
              ended pod-3 DeletedByUs exit=0
            > gone service
              ! left [Pod, Claim]
            > gone pod
              ! left [Claim]
            > gone claim
              removed
              = absent
            > delete
              already so
            > delete keep
              already so
        "#]],
    );
}

#[test]
fn a_delete_of_what_was_never_known_is_refused() {
    check(
        "
start + listed
delete
touch
        ",
        &expect![[r#"
            > start + listed
            > delete
              refused Unknown
            > touch
              refused Unknown
        "#]],
    );
}

#[test]
fn a_delete_during_a_create_wins_and_nothing_is_left() {
    check(
        "
start + listed
create
settle CreateClaim done
delete
settle PutService revoked
settle CreatePod done
settle DeletePod done
settle DeleteClaim done
gone pod
gone claim
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
            > delete
              DeleteClaim claim-1 (session.deleted)
              revoke 5 (session.taken_back)
              revoke 7 (session.taken_back)
              = deleting
              ! left [Pod, Service, Claim]
            > settle PutService revoked
              ! left [Pod, Claim]
            > settle CreatePod done
              DeletePod pod-2 grace=30 (session.deleted)
            > settle DeletePod done
            > settle DeleteClaim done
            > gone pod
              ended pod-2 DeletedByUs
              ! left [Claim]
            > gone claim
              removed
              = absent
              ! Removed at Claim
        "#]],
    );
}

#[test]
fn a_create_after_a_delete_waits_for_the_old_and_starts_fresh() {
    check(
        "
made
delete
create
settle DeletePod done
settle DeleteService done
settle DeleteClaim done
claim deleting
pod exited:143 deleting
gone pod
gone service
gone claim
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
            > delete
              DeletePod pod-3 grace=30 (session.deleted)
              DeleteService service-2 (session.deleted)
              DeleteClaim claim-1 (session.deleted)
              = deleting
              ! left [Pod, Service, Claim]
            > create
            > settle DeletePod done
            > settle DeleteService done
            > settle DeleteClaim done
            > claim deleting
            > pod exited:143 deleting
              ended pod-3 DeletedByUs exit=143
            > gone pod
              ! left [Service, Claim]
            > gone service
              ! left [Claim]
            > gone claim
              removed
              CreateClaim (session.claim)
              PutService (session.service)
              = provisioning Claim
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
fn a_delete_after_that_create_wins_again() {
    check(
        "
made
delete
create
delete
settle DeletePod done
settle DeleteService done
settle DeleteClaim done
gone pod
gone service
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
            > create
            > delete
            > settle DeletePod done
            > settle DeleteService done
            > settle DeleteClaim done
            > gone pod
              ended pod-3 DeletedByUs
              ! left [Service, Claim]
            > gone service
              ! left [Claim]
            > gone claim
              removed
              = absent
              ! Removed at Claim
        "#]],
    );
}

#[test]
fn a_suspend_keeps_claim_and_service() {
    check(
        "
made
delete keep
settle DeletePod done
pod exited:143 deleting
gone pod
delete keep
delete
settle DeleteService done
settle DeleteClaim done
gone service
gone claim
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
            > pod exited:143 deleting
              ended pod-3 DeletedByUs exit=143
            > gone pod
              removed, the claim stays
              = suspended
              ! Removed at Pod
            > delete keep
              already so
            > delete
              DeleteService service-2 (session.deleted)
              DeleteClaim claim-1 (session.deleted)
              = deleting
              ! left [Service, Claim]
            > settle DeleteService done
            > settle DeleteClaim done
            > gone service
              ! left [Claim]
            > gone claim
              removed
              = absent
              ! Removed at Claim
        "#]],
    );
}

#[test]
fn a_delete_takes_more_than_a_suspend_under_way_and_not_the_other_way() {
    check(
        "
made
delete keep
delete
delete keep
settle DeletePod done
settle DeleteService done
settle DeleteClaim done
gone pod
gone service
gone claim
        ",
        &expect![[r#"
            > made
              = ready
              ! 201 fresh
            > delete keep
              DeletePod pod-3 grace=30 (session.suspended)
              = deleting
              ! left [Pod]
            > delete
              DeleteService service-2 (session.deleted)
              DeleteClaim claim-1 (session.deleted)
              ! left [Pod, Service, Claim]
            > delete keep
              joins 15
            > settle DeletePod done
            > settle DeleteService done
            > settle DeleteClaim done
            > gone pod
              ended pod-3 DeletedByUs
              ! left [Service, Claim]
            > gone service
              ! left [Claim]
            > gone claim
              removed
              = absent
        "#]],
    );
}
