//! Stories of sessions that are brought: made, joined, resumed.

use expect_test::expect;

use super::story::check;

#[test]
fn a_create_costs_three_writes_and_is_ready_by_the_watch() {
    check(
        "
start + listed
create
settle CreateClaim done
settle PutService done
settle CreatePod done
claim
service
pod created
pod waiting:ContainerCreating
pod running
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
            > settle CreatePod done
              = provisioning Scheduling
            > claim
            > service
            > pod created
            > pod waiting:ContainerCreating
              = provisioning Pull, waits for Kubelet(Word("ContainerCreating"))
            > pod running
              = provisioning Starting
            > pod ready
              = ready
              ! 201 fresh
        "#]],
    );
}

#[test]
fn a_resume_costs_one_write() {
    check(
        "
made
delete keep
settle DeletePod done
pod exited:0 deleting
gone pod
tick 1h
create
settle CreatePod done
pod ready
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
            > pod exited:0 deleting
              ended pod-3 DeletedByUs exit=0
            > gone pod
              removed, the claim stays
              = suspended
              ! Removed at Pod
            > tick 1h
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
fn b17_many_calls_are_one_provisioning_with_one_answer() {
    check(
        "
start + listed
create
create
create tenant=other
settle CreateClaim done
create
settle PutService done
settle CreatePod done
service
pod ready
create
        ",
        &expect![[r#"
            > start + listed
            > create
              CreateClaim (session.claim)
              PutService (session.service)
              = provisioning Claim
            > create
              joins 3
            > create tenant=other
              refused OtherTenant
            > settle CreateClaim done
              CreatePod (session.pod)
              = provisioning Pod
            > create
              joins 3
            > settle PutService done
            > settle CreatePod done
              = provisioning Scheduling
            > service
            > pod ready
              = ready
              ! 201 fresh
            > create
              already so
        "#]],
    );
}

#[test]
fn b27_ready_is_this_uid_with_no_deletion_and_a_flap_does_not_undo_it() {
    check(
        "
start + listed
create
settle CreateClaim done
settle PutService done
settle CreatePod done
pod running
pod ready
service
pod running
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
            > settle CreatePod done
              = provisioning Scheduling
            > pod running
              = provisioning Starting
            > pod ready
              = provisioning Pod
            > service
              = ready
              ! 201 fresh
            > pod running
            > pod ready
        "#]],
    );
}

#[test]
fn b45_the_claim_is_not_waited_for_and_an_existing_one_is_used_as_it_is() {
    check(
        "
start
claim + listed
create
settle PutService done
service
settle CreatePod done
pod ready
        ",
        &expect![[r#"
            > start
            > claim + listed
              alarm unclaimed
              = suspended
            > create
              PutService (session.service)
              CreatePod (session.pod)
              clear unclaimed
              = provisioning Pod
            > settle PutService done
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
fn a_claim_that_was_there_after_all_is_no_fresh_one() {
    check(
        "
start + listed
create
settle CreateClaim already
settle PutService already
settle CreatePod already
pod ready
service
        ",
        &expect![[r#"
            > start + listed
            > create
              CreateClaim (session.claim)
              PutService (session.service)
              = provisioning Claim
            > settle CreateClaim already
              CreatePod (session.pod)
              = provisioning Pod
            > settle PutService already
            > settle CreatePod already
              = provisioning Scheduling
            > pod ready
              = provisioning Pod
            > service
              = ready
              ! 200 resumed
        "#]],
    );
}

#[test]
fn a_claim_that_an_unanswered_try_made_is_fresh() {
    check(
        "
start + listed
create
settle CreateClaim unknown
settle CreateClaim already
settle PutService done
service
settle CreatePod unknown
pod ready
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
            > settle CreateClaim already
              CreatePod (session.pod)
              = provisioning Pod
            > settle PutService done
            > service
            > settle CreatePod unknown
              CreatePod (session.pod)
              = provisioning Pod, waits for Api
            > pod ready
              = ready
              ! 201 fresh
        "#]],
    );
}

#[test]
fn b09_b46_a_resume_waits_for_the_old_pod_to_be_gone() {
    check(
        "
made
pod ready deleting
create
create
pod exited:143 deleting
gone pod
settle CreatePod done
pod ready
        ",
        &expect![[r#"
            > made
              = ready
              ! 201 fresh
            > pod ready deleting
              = provisioning Pod, waits for OldPod
            > create
            > create
              joins 14
            > pod exited:143 deleting
              ended pod-3 DeletedByOther exit=143
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
