//! Nodes that are lost, come back or shut down; logs and missing Secrets.

use std::time::Duration;

use serde_json::{Value, json};

use super::support::{cluster, cluster_of, pod, shown};
use crate::sim::node::{Loss, Pull, Run, Script};

#[tokio::test(start_paused = true)]
async fn a_node_that_is_cut_off_is_noticed_and_its_pods_go_on() {
    let cluster = cluster(Script::default());
    cluster.create(&pod("h")).await;
    cluster.after(10).await;
    cluster.nodes.lose("node1", Loss::Unreachable, false);
    cluster.after(41).await;
    let ready = |object: &Value| {
        let conditions = object["status"]["conditions"].as_array().expect("conditions").iter();
        conditions.filter(|known| known["type"] == "Ready").map(|known| known["status"].clone()).next()
    };
    let node = cluster.api.object("nodes", "", "node1").expect("the node");
    assert_eq!(ready(&node), Some(json!("Unknown")));
    assert_eq!(node["spec"]["taints"][0]["key"], "node.kubernetes.io/unreachable");
    let lost = cluster.pod("h").expect("nobody is evicted");
    assert_eq!((&lost["status"]["phase"], ready(&lost)), (&json!("Running"), Some(json!("False"))));
    let (code, _) = cluster.ask("GET", "/api/v1/namespaces/apps/pods/h/log?container=app", &Value::Null).await;
    assert_eq!(code, 500, "the kubelet does not answer");
    cluster.delete("h", &json!({})).await;
    cluster.after(600).await;
    assert!(cluster.pod("h").is_some(), "it is stuck: only its node could end it");
    cluster.nodes.bring_back("node1");
    cluster.after(3).await;
    assert!(cluster.pod("h").is_none(), "the node ends it at once");
    assert_eq!(cluster.heard.all(), ["h runs", "h ended"]);
    let node = cluster.api.object("nodes", "", "node1").expect("the node");
    assert_eq!((ready(&node), &node["spec"]["taints"]), (Some(json!("True")), &Value::Null));
}

#[tokio::test(start_paused = true)]
async fn a_forced_delete_leaves_an_orphan_until_the_node_is_back() {
    let cluster = cluster_of(&["node1", "node2"], Script::default());
    cluster.create(&pod("h")).await;
    cluster.after(10).await;
    cluster.nodes.lose("node1", Loss::Unreachable, true);
    cluster.after(45).await;
    let stuck = cluster.pod("h").expect("stuck");
    assert_eq!(stuck["metadata"]["deletionGracePeriodSeconds"], 45, "{}", shown(&stuck));
    cluster.delete("h", &json!({"gracePeriodSeconds": 0})).await;
    assert!(cluster.pod("h").is_none());
    cluster.create(&pod("h")).await;
    cluster.after(10).await;
    let second = cluster.pod("h").expect("created again");
    assert_eq!(second["spec"]["nodeName"], "node2", "a lost node takes no pods");
    assert_eq!(cluster.heard.all(), ["h runs", "h runs"], "the orphan still runs beside its successor");
    cluster.nodes.bring_back("node1");
    cluster.after(3).await;
    assert_eq!(cluster.heard.all(), ["h runs", "h runs", "h ended"]);
    assert_eq!(cluster.pod("h").expect("the successor")["metadata"]["uid"], second["metadata"]["uid"]);
}

#[tokio::test(start_paused = true)]
async fn a_machine_that_dies_takes_its_processes_with_it() {
    let cluster = cluster(Script::default());
    cluster.create(&pod("h")).await;
    cluster.after(10).await;
    cluster.nodes.lose("node1", Loss::Dead, false);
    cluster.create(&pod("later")).await;
    cluster.after(10).await;
    assert_eq!(cluster.heard.all(), ["h runs", "h ended"]);
    assert_eq!(cluster.pod("h").expect("not noticed yet")["status"]["phase"], "Running");
    let waits = cluster.pod("later").expect("it waits");
    assert_eq!(waits["status"]["conditions"][0]["reason"], "Unschedulable");
    cluster.nodes.bring_back("node1");
    cluster.after(10).await;
    let ended = cluster.pod("h").expect("it ended");
    assert_eq!(shown(&ended), "Failed [Initialized PodScheduled] install terminated Completed 0, app terminated Unknown 255");
    assert_eq!(cluster.pod("later").expect("it runs")["status"]["phase"], "Running");
}

#[tokio::test(start_paused = true)]
async fn a_node_that_shuts_down_ends_its_pods() {
    let cluster = cluster(Script::default().app(Run::forever().ignoring_term()));
    cluster.create(&pod("h")).await;
    cluster.after(10).await;
    cluster.nodes.shut_down("node1", Duration::from_secs(5));
    cluster.after(10).await;
    let ended = cluster.pod("h").expect("it ended");
    let expected = "Failed Terminated [DisruptionTarget Initialized PodScheduled] install terminated Completed 0, app terminated Error 137";
    assert_eq!(shown(&ended), expected);
}

#[tokio::test(start_paused = true)]
async fn an_evicted_app_that_ends_well_is_a_success_that_only_the_condition_gives_away() {
    let quick = Run { term_after: Some(Duration::ZERO), ..Run::forever() };
    let cluster = cluster(Script::default().app(quick));
    cluster.create(&pod("h")).await;
    cluster.after(10).await;
    cluster.nodes.evict("h");
    cluster.after(1).await;
    let ended = cluster.pod("h").expect("it ended");
    let expected = "Succeeded [DisruptionTarget Initialized PodScheduled] install terminated Completed 0, app terminated Completed 0";
    assert_eq!(shown(&ended), expected);
}

#[tokio::test(start_paused = true)]
async fn a_pod_waits_for_its_secret() {
    let cluster = cluster(Script::default());
    let mut waits = pod("h");
    waits["spec"]["volumes"] = json!([{"name": "tmp", "secret": {"secretName": "h-env"}}]);
    cluster.create(&waits).await;
    cluster.after(60).await;
    assert_eq!(cluster.pod("h").expect("it waits")["status"]["initContainerStatuses"][0]["state"]["waiting"]["reason"], "PodInitializing");
    let secret = json!({"metadata": {"name": "h-env"}, "stringData": {"env": ""}});
    assert_eq!(cluster.ask("POST", "/api/v1/namespaces/apps/secrets", &secret).await.0, 201);
    cluster.after(10).await;
    assert_eq!(cluster.pod("h").expect("it runs")["status"]["phase"], "Running");
}

#[tokio::test(start_paused = true)]
async fn logs_are_read_from_the_node() {
    let cluster = cluster(Script::default().app(Run::ends(Duration::from_secs(10), 3)));
    cluster.create(&pod("h")).await;
    let log = async |query: &str| {
        let (code, body) = cluster.ask("GET", &format!("/api/v1/namespaces/apps/pods/h/log?{query}"), &Value::Null).await;
        (code, body["message"].as_str().or(body.as_str()).unwrap_or_default().to_owned())
    };
    cluster.after(1).await;
    let waiting = "container \"app\" in pod \"h\" is waiting to start: PodInitializing";
    assert_eq!(log("container=app").await, (400, waiting.to_owned()));
    assert_eq!(log("container=install").await, (200, "installing\n".to_owned()));
    cluster.after(5).await;
    cluster.nodes.print("h", "one line");
    cluster.after(1).await;
    assert_eq!(log("container=app").await, (200, "started\none line\n".to_owned()));
    assert_eq!(log("").await, (200, "started\none line\n".to_owned()), "the only container needs no name");
    assert_eq!(log("container=install").await, (200, "installing\ninstalled\n".to_owned()));
    let previous = "previous terminated container \"app\" in pod \"h\" not found";
    assert_eq!(log("container=app&previous=true").await, (400, previous.to_owned()));
    cluster.after(20).await;
    assert_eq!(log("container=app&tailLines=2").await, (200, "one line\nending with 3\n".to_owned()));
    assert_eq!(log("container=app&tailLines=2&limitBytes=4").await, (200, "one ".to_owned()));
}

#[tokio::test(start_paused = true)]
async fn a_pod_is_deleted_at_every_stage() {
    for (milliseconds, pull) in [(0, 400), (200, 400), (1_000, 400), (2_700, 400), (4_000, 400), (1_000, 60_000)] {
        let script = Script { pull: Pull::Takes(Duration::from_millis(pull)), ..Script::default() };
        let cluster = cluster(script);
        cluster.create(&pod("h")).await;
        tokio::time::sleep(Duration::from_millis(milliseconds)).await;
        cluster.delete("h", &json!({})).await;
        cluster.after(2).await;
        assert!(cluster.pod("h").is_none(), "deleted after {milliseconds} ms");
        let heard = cluster.heard.all();
        assert!(heard.is_empty() || heard == ["h runs", "h ended"], "{heard:?}");
    }
}
