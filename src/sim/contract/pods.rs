//! What only pods have.

use serde_json::{Value, json};

use super::{Broken, Contract, Kept, holds, same};

const STRATEGIC: [(&str, &str); 1] = [("content-type", "application/strategic-merge-patch+json")];

async fn created(on: &Contract, name: &str) -> Result<Value, Broken> {
    on.create("pods", &on.pod(name)).await
}

async fn bound(on: &Contract, name: &str) -> Result<Value, Broken> {
    created(on, name).await?;
    let path = format!("{}/{name}/binding", on.path("pods"));
    let binding = json!({"apiVersion": "v1", "kind": "Binding", "metadata": {"name": name},
        "target": {"apiVersion": "v1", "kind": "Node", "name": "nowhere"}});
    on.ask("POST", &path, &[], Some(&binding)).await?.expect(201)?;
    on.get("pods", name).await?.expect(200)
}

async fn report(on: &Contract, name: &str, status: &Value) -> Result<Value, Broken> {
    let path = format!("{}/{name}/status", on.path("pods"));
    on.ask("PATCH", &path, &STRATEGIC, Some(&json!({"status": status}))).await?.expect(200)
}

async fn gone(on: &Contract, name: &str) -> Kept {
    on.delete("pods", name, &json!({"gracePeriodSeconds": 0})).await?.expect(200)?;
    same("gone", &on.get("pods", name).await?.status, &404)
}

pub(super) async fn a_pod_is_filled_in(on: &Contract) -> Kept {
    let pod = created(on, "filled").await?;
    let spec = &pod["spec"];
    same("dnsPolicy", &spec["dnsPolicy"], &json!("ClusterFirst"))?;
    same("enableServiceLinks", &spec["enableServiceLinks"], &json!(true))?;
    same("imagePullPolicy", &spec["containers"][0]["imagePullPolicy"], &json!("IfNotPresent"))?;
    same("terminationMessagePolicy", &spec["containers"][0]["terminationMessagePolicy"], &json!("File"))?;
    same("tolerations", &spec["tolerations"].as_array().map(Vec::len), &Some(2))?;
    same("phase", &pod["status"]["phase"], &json!("Pending"))?;
    same("class", &pod["status"]["qosClass"], &json!("BestEffort"))?;
    same("generation", &pod["metadata"]["generation"], &json!(1))?;
    gone(on, "filled").await
}

pub(super) async fn a_pods_spec_is_fixed(on: &Contract) -> Kept {
    let pod = created(on, "fixed").await?;
    let path = format!("{}/fixed", on.path("pods"));
    let mut changed = pod.clone();
    changed["spec"]["containers"][0]["command"] = json!(["x"]);
    let answer = on.ask("PUT", &path, &[], Some(&changed)).await?;
    let cause = (answer.status, &answer.body["details"]["causes"][0]["field"]);
    same("the command", &cause, &(422, &json!("spec")))?;
    let mut changed = pod.clone();
    changed["spec"]["containers"][0]["image"] = json!("example.com/i:2");
    on.ask("PUT", &path, &[], Some(&changed)).await?.expect(200)?;
    gone(on, "fixed").await
}

pub(super) async fn status_is_a_subresource(on: &Contract) -> Kept {
    let pod = created(on, "status").await?;
    let path = format!("{}/status", on.path("pods"));
    let mut changed = pod.clone();
    changed["status"]["phase"] = json!("Running");
    let put = on.ask("PUT", &path, &[], Some(&changed)).await?.expect(200)?;
    same("the object does not take it", &put["status"]["phase"], &json!("Pending"))?;
    let condition = |kind: &str, status: &str| json!({"type": kind, "status": status, "lastTransitionTime": "2026-11-30T12:00:00Z"});
    report(on, "status", &json!({"phase": "Running", "conditions": [condition("Ready", "False"), condition("Initialized", "True")]}))
        .await?;
    let after = report(on, "status", &json!({"conditions": [condition("Ready", "True")]})).await?;
    same("the subresource takes it", &after["status"]["phase"], &json!("Running"))?;
    let conditions = after["status"]["conditions"].as_array().into_iter().flatten();
    let mut conditions: Vec<String> = conditions.map(|known| format!("{}={}", known["type"], known["status"])).collect();
    conditions.sort();
    let expected = ["\"Initialized\"=\"True\"", "\"Ready\"=\"True\""].map(str::to_owned).to_vec();
    same("conditions merge by type", &conditions, &expected)?;
    let path = format!("{path}/status");
    let other = json!({"metadata": {"uid": "00000000-0000-0000-0000-000000000000"}, "status": {"phase": "Failed"}});
    same("another uid", &on.ask("PATCH", &path, &STRATEGIC, Some(&other)).await?.status, &422)?;
    let spec = json!({"spec": {"activeDeadlineSeconds": 5}});
    let kept = on.ask("PATCH", &path, &STRATEGIC, Some(&spec)).await?.expect(200)?;
    holds("and nothing else", kept["spec"]["activeDeadlineSeconds"].is_null(), &kept["spec"])?;
    gone(on, "status").await
}

pub(super) async fn a_pod_is_bound_once(on: &Contract) -> Kept {
    let pod = bound(on, "bound").await?;
    same("the node", &pod["spec"]["nodeName"], &json!("nowhere"))?;
    let scheduled = &pod["status"]["conditions"][0];
    same("the condition", &(&scheduled["type"], &scheduled["status"]), &(&json!("PodScheduled"), &json!("True")))?;
    let path = format!("{}/bound/binding", on.path("pods"));
    let binding = json!({"metadata": {"name": "bound"}, "target": {"kind": "Node", "name": "elsewhere"}});
    same("again", &on.ask("POST", &path, &[], Some(&binding)).await?.refusal().0, &409)?;
    let list = on.list("pods", "fieldSelector=spec.nodeName%3Dnowhere").await?.expect(200)?;
    same("found by its node", &list["items"].as_array().map(Vec::len), &Some(1))?;
    gone(on, "bound").await
}

pub(super) async fn an_unscheduled_pod_goes_at_once(on: &Contract) -> Kept {
    let pod = created(on, "unscheduled").await?;
    let from = pod["metadata"]["resourceVersion"].as_str().unwrap_or_default();
    let mut watch = on.watch("pods", &format!("resourceVersion={from}&timeoutSeconds=60"), "").await?;
    on.delete("pods", "unscheduled", &json!({"gracePeriodSeconds": 30})).await?.expect(200)?;
    same("gone", &on.get("pods", "unscheduled").await?.status, &404)?;
    let expected = ["MODIFIED unscheduled", "DELETED unscheduled"].map(str::to_owned).to_vec();
    same("the events", &watch.kinds(2).await?, &expected)
}

pub(super) async fn a_bound_pod_goes_with_grace(on: &Contract) -> Kept {
    let pod = bound(on, "graceful").await?;
    let uid = &pod["metadata"]["uid"];
    let marked = on.delete("pods", "graceful", &json!({"preconditions": {"uid": uid}})).await?.expect(200)?;
    same("the answer is the pod", &marked["kind"], &json!("Pod"))?;
    same("its own grace", &marked["metadata"]["deletionGracePeriodSeconds"], &json!(20))?;
    same("generation", &marked["metadata"]["generation"], &json!(2))?;
    let longer = on.delete("pods", "graceful", &json!({"gracePeriodSeconds": 45})).await?.expect(200)?;
    same("no longer grace", &longer["metadata"]["deletionGracePeriodSeconds"], &json!(20))?;
    let shorter = on.delete("pods", "graceful", &json!({"gracePeriodSeconds": 5})).await?.expect(200)?;
    same("a shorter one", &shorter["metadata"]["deletionGracePeriodSeconds"], &json!(5))?;
    let from = shorter["metadata"]["resourceVersion"].as_str().unwrap_or_default();
    let mut watch = on.watch("pods", &format!("resourceVersion={from}&timeoutSeconds=60"), "").await?;
    gone(on, "graceful").await?;
    let (kind, last) = watch.next().await?;
    let grace = &last["metadata"]["deletionGracePeriodSeconds"];
    same("marked with none left", &(kind.as_str(), grace), &("MODIFIED", &json!(0)))?;
    same("then gone", &watch.kinds(1).await?, &vec!["DELETED graceful".to_owned()])
}

pub(super) async fn an_ended_pod_goes_at_once(on: &Contract) -> Kept {
    bound(on, "ended").await?;
    report(on, "ended", &json!({"phase": "Succeeded"})).await?;
    on.delete("pods", "ended", &json!({"gracePeriodSeconds": 45})).await?.expect(200)?;
    same("gone", &on.get("pods", "ended").await?.status, &404)
}

pub(super) async fn an_evicted_pod_says_so(on: &Contract) -> Kept {
    bound(on, "evicted").await?;
    let path = format!("{}/evicted/eviction", on.path("pods"));
    let eviction = json!({"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "evicted", "namespace": on.namespace}});
    let done = on.ask("POST", &path, &[], Some(&eviction)).await?.expect(201)?;
    same("the answer", &done["status"], &json!("Success"))?;
    let pod = on.get("pods", "evicted").await?.expect(200)?;
    holds("marked", pod["metadata"]["deletionTimestamp"].is_string(), &pod["metadata"])?;
    let conditions = pod["status"]["conditions"].as_array().into_iter().flatten();
    let reasons: Vec<&Value> = conditions.filter(|known| known["type"] == "DisruptionTarget").map(|known| &known["reason"]).collect();
    same("the condition", &reasons, &vec![&json!("EvictionByEvictionAPI")])?;
    gone(on, "evicted").await
}

pub(super) async fn logs_name_their_container(on: &Contract) -> Kept {
    created(on, "logs").await?;
    let log = |query: &str| format!("{}/logs/log?{query}", on.path("pods"));
    let answer = on.ask("GET", &log("container=app"), &[], None).await?;
    same("of a pod without a node", &(answer.status, answer.text.as_str()), &(204, ""))?;
    let answer = on.ask("GET", &log("container=nope"), &[], None).await?;
    same("of no container", &answer.refusal(), &(400, "BadRequest", "container nope is not valid for pod logs"))?;
    gone(on, "logs").await?;
    same("of no pod", &on.ask("GET", &log("container=app"), &[], None).await?.status, &404)
}
