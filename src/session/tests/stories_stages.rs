//! Stories of sessions that do not get ready: every stage has its end.

use expect_test::expect;

use super::story::check;

#[test]
fn b23_each_stage_has_its_deadline() {
    check(
        "
placed
pod created
tick 300s
tick 1us
settle DeletePod done
gone pod
create
        ",
        &expect![[r#"
            > placed
              = provisioning Scheduling
            > pod created
            > tick 300s
            > tick 1us
              ended pod-3 Stuck(Scheduling)
              DeletePod pod-3 grace=30 (session.ended)
              = exited
              ! Ended(Stuck(Scheduling)) at Scheduling
            > settle DeletePod done
            > gone pod
              = failed Ended(Stuck(Scheduling)) at Scheduling
            > create
              CreatePod (session.pod)
              = provisioning Pod
            wake in 1200s
        "#]],
    );
}

#[test]
fn b23_an_image_that_can_not_be_pulled_has_a_grace_and_one_that_never_can_has_none() {
    check(
        "
placed
pod waiting:ImagePullBackOff
tick 90s
pod waiting:InvalidImageName
settle DeletePod done
gone pod
        ",
        &expect![[r#"
            > placed
              = provisioning Scheduling
            > pod waiting:ImagePullBackOff
              = provisioning Pull, waits for Kubelet(Word("ImagePullBackOff"))
            > tick 90s
            > pod waiting:InvalidImageName
              ended pod-3 NeverStarted(Image)
              DeletePod pod-3 grace=30 (session.ended)
              = exited
              ! Ended(NeverStarted(Image)) at Pull
            > settle DeletePod done
            > gone pod
              = failed Ended(NeverStarted(Image)) at Pull
        "#]],
    );
}

#[test]
fn b23_what_never_gets_ready_is_given_up_with_its_last_lines() {
    check(
        "
placed
pod running
tick 121s
tail
settle DeletePod done
pod exited:143 deleting
gone pod
        ",
        &expect![[r#"
            > placed
              = provisioning Scheduling
            > pod running
              = provisioning Starting
            > tick 121s
              ended pod-3 Stuck(Register)
              tail? session
              = exited
              ! Ended(Stuck(Register)) at Starting
            > tail
              DeletePod pod-3 grace=30 (session.ended)
            > settle DeletePod done
            > pod exited:143 deleting
            > gone pod
              = failed Ended(Stuck(Register)) at Starting
        "#]],
    );
}

#[test]
fn an_unschedulable_pod_is_waited_for_and_then_given_up() {
    check(
        "
placed
pod unschedulable
create
tick 301s
        ",
        &expect![[r#"
            > placed
              = provisioning Scheduling
            > pod unschedulable
              alarm waiting
              = provisioning Scheduling, waits for Node
            > create
              joins 3
            > tick 301s
              ended pod-3 NeverStarted(Unschedulable)
              DeletePod pod-3 grace=30 (session.ended)
              clear waiting
              = exited
              ! Ended(NeverStarted(Unschedulable)) at Scheduling
        "#]],
    );
}

#[test]
fn b64_all_stages_together_have_a_deadline() {
    check(
        "
start + listed
create
settle CreateClaim done
settle PutService done
settle CreatePod network-policy
tick 30s
settle CreatePod network-policy
tick 1171s
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
            > settle CreatePod network-policy
              alarm waiting
              = failed Refused(NetworkPolicy) at Policy, retrying
              ! Refused(NetworkPolicy) at Policy, retrying
            > tick 30s
              CreatePod (session.pod)
            > settle CreatePod network-policy
            > tick 1171s
              given up TooLong at Policy (session.too_long)
              clear waiting
              = failed TooLong at Policy
              ! TooLong at Policy
            > create
              CreatePod (session.pod)
              = provisioning Pod
            wake in 1200s
        "#]],
    );
}
