//! The table of answers: what a call gets for each state, told as the stories of `session/`.

use std::fmt::Write as _;

use expect_test::expect;

use super::answer::{Answered, Patience, created, gone};
use super::document::Names;
use crate::config::Sessions;
use crate::ids::SessionId;
use crate::session::tests::story::Story;

const MADE: &str = "create; settle CreateClaim done; claim; settle PutService done; service; settle CreatePod done; pod running; pod ready";

fn told(answered: Option<Answered>) -> String {
    match answered {
        None => "waits".to_owned(),
        Some(Ok(reply)) => {
            let body = reply.body.unwrap_or_default();
            let fields = ["state", "stage", "resumed", "fresh_data", "left"];
            let said = fields.iter().filter(|name| !body[**name].is_null()).map(|name| format!("{name}={}", body[*name]));
            format!("{} {}", reply.status.as_u16(), said.collect::<Vec<_>>().join(" ")).trim_end().to_owned()
        }
        Some(Err(problem)) => {
            let fields = ["state", "stage", "reason", "retrying", "cause", "left"];
            let said =
                fields.iter().filter_map(|name| Some(format!("{name}={}", problem.more.get(*name).filter(|value| !value.is_null())?)));
            let after = problem.retry_after_s.map(|seconds| format!(" again={seconds}")).unwrap_or_default();
            format!("{} {} {}{after}", problem.status.as_u16(), problem.code, said.collect::<Vec<_>>().join(" "))
        }
    }
}

/// What callers of the story's last call get: at once, waiting, and at their deadline.
fn answers(lines: &str) -> String {
    let names = Names::new(&Sessions::default(), "ns");
    let id = SessionId::new("s1").expect("an id");
    let mut story = Story::new();
    let mut deletes = false;
    let made = lines.replace("made", MADE);
    for line in ["start", "listed"].into_iter().chain(made.split(';').map(str::trim)) {
        let inputs = story.inputs(line);
        story.react(inputs);
        deletes = (deletes || line.starts_with("delete")) && !line.starts_with("create");
    }
    let answer = |patience| {
        told(if deletes {
            gone(&id, &story.session, patience)
        } else {
            created(&names, &id, &story.session, story.demand.expect("somebody asked"), patience)
        })
    };
    let all = [Patience::None, Patience::Waits, Patience::Over].map(answer);
    if all.iter().all(|one| *one == all[0]) {
        return format!("{lines}\n    {}\n", all[0]);
    }
    let mut out = format!("{lines}\n");
    for (when, answer) in ["wait=0", "meanwhile", "deadline"].iter().zip(all) {
        let _ = writeln!(out, "    {when}: {answer}");
    }
    out
}

#[test]
fn each_state_has_its_answer() {
    let told: String = [
        "create",
        "create; settle CreateClaim done; claim; settle PutService done; service",
        "create; settle CreateClaim done; claim; settle PutService done; settle CreatePod done; pod unschedulable",
        "create; settle CreateClaim done; claim; settle PutService done; settle CreatePod done; pod waiting:ImagePullBackOff",
        "create; settle CreateClaim unknown",
        "made",
        "made; pod exited:0; gone pod; create; settle CreatePod done; pod ready",
        "made; pod ready deleting; create",
        "made; freeze; pod exited:0; gone pod; create",
        "create; settle CreateClaim quota",
        "create; settle CreateClaim forbidden",
        "create; settle CreateClaim invalid",
        "create; settle CreateClaim foreign",
        "create; settle CreateClaim done; claim; settle PutService done; service; settle CreatePod network-policy",
        "create; settle CreateClaim done; claim; settle PutService done; service; settle CreatePod done; pod waiting:InvalidImageName",
        "create; settle CreateClaim done; claim; settle PutService done; service; settle CreatePod done; pod exited:1",
        "create; tick 1201s",
        "create; delete; create tenant=other",
        "create; delete; settle CreateClaim done",
        "made; delete",
        "made; delete; settle DeletePod done; settle DeleteService done; settle DeleteClaim done; gone pod; gone service; gone claim",
        "made; delete keep",
        "made; delete; settle DeletePod forbidden",
    ]
    .into_iter()
    .map(answers)
    .collect();
    expect![[r#"
        create
            wait=0: 202 state="provisioning" stage="claim" resumed=false fresh_data=true
            meanwhile: waits
            deadline: 504 not_ready state="provisioning" stage="claim" again=5
        create; settle CreateClaim done; claim; settle PutService done; service
            wait=0: 202 state="provisioning" stage="pod" resumed=false fresh_data=true
            meanwhile: waits
            deadline: 504 not_ready state="provisioning" stage="pod" again=5
        create; settle CreateClaim done; claim; settle PutService done; settle CreatePod done; pod unschedulable
            wait=0: 202 state="provisioning" stage="scheduling" resumed=false fresh_data=true
            meanwhile: waits
            deadline: 504 not_ready state="provisioning" stage="scheduling" reason="no_node" again=5
        create; settle CreateClaim done; claim; settle PutService done; settle CreatePod done; pod waiting:ImagePullBackOff
            wait=0: 202 state="provisioning" stage="pull" resumed=false fresh_data=true
            meanwhile: waits
            deadline: 504 not_ready state="provisioning" stage="pull" reason="ImagePullBackOff" again=5
        create; settle CreateClaim unknown
            wait=0: 202 state="provisioning" stage="claim" resumed=false fresh_data=true
            meanwhile: waits
            deadline: 504 not_ready state="provisioning" stage="claim" reason="api_unanswered" again=5
        made
            201 state="ready" resumed=false fresh_data=true
        made; pod exited:0; gone pod; create; settle CreatePod done; pod ready
            200 state="ready" resumed=true fresh_data=false
        made; pod ready deleting; create
            wait=0: 202 state="provisioning" stage="pod" resumed=true fresh_data=false
            meanwhile: waits
            deadline: 503 old_pod state="provisioning" stage="pod" reason="old_pod" again=5
        made; freeze; pod exited:0; gone pod; create
            wait=0: 202 state="provisioning" stage="pod" resumed=true fresh_data=false
            meanwhile: waits
            deadline: 504 not_ready state="provisioning" stage="pod" reason="frozen" again=5
        create; settle CreateClaim quota
            503 refused_quota stage="claim" retrying=true again=30
        create; settle CreateClaim forbidden
            503 refused_forbidden stage="claim" retrying=true again=30
        create; settle CreateClaim invalid
            502 refused_invalid stage="claim" retrying=false
        create; settle CreateClaim foreign
            409 refused_foreign stage="claim" retrying=false
        create; settle CreateClaim done; claim; settle PutService done; service; settle CreatePod network-policy
            503 refused_network_policy stage="policy" retrying=true again=30
        create; settle CreateClaim done; claim; settle PutService done; service; settle CreatePod done; pod waiting:InvalidImageName
            502 pod_never_started stage="pull" retrying=false cause="never_started(image)"
        create; settle CreateClaim done; claim; settle PutService done; service; settle CreatePod done; pod exited:1
            502 pod_ended stage="starting" retrying=false cause="app_exit"
        create; tick 1201s
            504 too_long stage="claim" retrying=false
        create; delete; create tenant=other
            409 removed stage="claim" retrying=false
        create; delete; settle CreateClaim done
            wait=0: 202 state="deleting" left=["service","claim"]
            meanwhile: waits
            deadline: 202 state="deleting" left=["service","claim"]
        made; delete
            wait=0: 202 state="deleting" left=["pod","service","claim"]
            meanwhile: waits
            deadline: 202 state="deleting" left=["pod","service","claim"]
        made; delete; settle DeletePod done; settle DeleteService done; settle DeleteClaim done; gone pod; gone service; gone claim
            204
        made; delete keep
            wait=0: 202 state="deleting" left=["pod"]
            meanwhile: waits
            deadline: 202 state="deleting" left=["pod"]
        made; delete; settle DeletePod forbidden
            503 refused_forbidden left=["pod","service","claim"] again=30
    "#]]
    .assert_eq(&told);
}
