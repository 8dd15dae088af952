//! Pods on the embedded node: every stage of a life, in the shapes that a real kubelet was recorded with.

use std::time::Duration;

use expect_test::{Expect, expect};
use futures_util::StreamExt as _;
use serde_json::{Value, json};

use super::support::{Cluster, cluster, pod, shown};
use crate::sim::node::{Pull, Run, Schedule, Script, Start};

/// Every event of a pod's life, one a line, while `play` is played.
async fn life(script: Script, play: impl AsyncFn(&Cluster), expected: Expect) {
    let cluster = cluster(script);
    let path = "/api/v1/namespaces/apps/pods?watch=true&resourceVersion=0&timeoutSeconds=200";
    let request = http::Request::get(path).body(Vec::new()).expect("a valid request");
    let mut events = std::pin::pin!(cluster.client.request_events::<Value>(request).await.expect("a watch"));
    cluster.create(&pod("h")).await;
    play(&cluster).await;
    let mut lines = String::new();
    while let Some(event) = events.next().await {
        let event = serde_json::to_value(event.expect("an event")).expect("it came from JSON");
        let grace = event["object"]["metadata"]["deletionGracePeriodSeconds"].as_i64();
        let grace = grace.map(|grace| format!(" grace={grace}")).unwrap_or_default();
        lines.push_str(&format!("{}{grace} {}\n", event["type"].as_str().expect("a kind"), shown(&event["object"])));
    }
    lines.push_str(&cluster.heard.all().join(", "));
    expected.assert_eq(&lines);
}

#[tokio::test(start_paused = true)]
async fn a_healthy_pod_runs_and_is_stopped() {
    let stop = async |cluster: &Cluster| {
        cluster.after(10).await;
        cluster.delete("h", &json!({})).await;
    };
    life(Script::default(), stop, expect![[r#"
        ADDED Pending []
        MODIFIED Pending [PodScheduled]
        MODIFIED Pending [PodScheduled] install waiting PodInitializing, app waiting PodInitializing
        MODIFIED Pending [PodReadyToStartContainers PodScheduled] install running, app waiting PodInitializing
        MODIFIED Pending [Initialized PodReadyToStartContainers PodScheduled] install terminated Completed 0, app waiting PodInitializing
        MODIFIED Running [ContainersReady Initialized PodReadyToStartContainers PodScheduled Ready] install terminated Completed 0, app running
        MODIFIED grace=45 Running [ContainersReady Initialized PodReadyToStartContainers PodScheduled Ready] install terminated Completed 0, app running
        MODIFIED grace=45 Succeeded [Initialized PodScheduled] install terminated Completed 0, app terminated Completed 0
        MODIFIED grace=0 Succeeded [Initialized PodScheduled] install terminated Completed 0, app terminated Completed 0
        DELETED grace=0 Succeeded [Initialized PodScheduled] install terminated Completed 0, app terminated Completed 0
        h runs, h ended"#]]).await;
}

#[tokio::test(start_paused = true)]
async fn a_pod_that_ignores_term_is_killed_when_its_grace_is_over() {
    let stop = async |cluster: &Cluster| {
        cluster.after(10).await;
        cluster.delete("h", &json!({"gracePeriodSeconds": 7})).await;
        cluster.after(6).await;
        assert!(cluster.pod("h").is_some(), "still in its grace");
        cluster.after(2).await;
        assert!(cluster.pod("h").is_none(), "killed");
    };
    life(Script::default().app(Run::forever().ignoring_term()), stop, expect![[r#"
        ADDED Pending []
        MODIFIED Pending [PodScheduled]
        MODIFIED Pending [PodScheduled] install waiting PodInitializing, app waiting PodInitializing
        MODIFIED Pending [PodReadyToStartContainers PodScheduled] install running, app waiting PodInitializing
        MODIFIED Pending [Initialized PodReadyToStartContainers PodScheduled] install terminated Completed 0, app waiting PodInitializing
        MODIFIED Running [ContainersReady Initialized PodReadyToStartContainers PodScheduled Ready] install terminated Completed 0, app running
        MODIFIED grace=7 Running [ContainersReady Initialized PodReadyToStartContainers PodScheduled Ready] install terminated Completed 0, app running
        MODIFIED grace=7 Failed [Initialized PodScheduled] install terminated Completed 0, app terminated Error 137
        MODIFIED grace=0 Failed [Initialized PodScheduled] install terminated Completed 0, app terminated Error 137
        DELETED grace=0 Failed [Initialized PodScheduled] install terminated Completed 0, app terminated Error 137
        h runs, h ended"#]]).await;
}

#[tokio::test(start_paused = true)]
async fn an_install_fails() {
    let script = Script::default().install_fails(Duration::from_secs(1), 3);
    life(
        script,
        async |_: &Cluster| {},
        expect![[r#"
            ADDED Pending []
            MODIFIED Pending [PodScheduled]
            MODIFIED Pending [PodScheduled] install waiting PodInitializing, app waiting PodInitializing
            MODIFIED Pending [PodReadyToStartContainers PodScheduled] install running, app waiting PodInitializing
            MODIFIED Pending [PodReadyToStartContainers PodScheduled] install terminated Error 3, app waiting PodInitializing
            MODIFIED Failed [PodScheduled] install terminated Error 3, app waiting PodInitializing
        "#]],
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn an_app_exits_by_itself() {
    life(Script::default().app(Run::ends(Duration::from_secs(5), 1)), async |_: &Cluster| {}, expect![[r#"
        ADDED Pending []
        MODIFIED Pending [PodScheduled]
        MODIFIED Pending [PodScheduled] install waiting PodInitializing, app waiting PodInitializing
        MODIFIED Pending [PodReadyToStartContainers PodScheduled] install running, app waiting PodInitializing
        MODIFIED Pending [Initialized PodReadyToStartContainers PodScheduled] install terminated Completed 0, app waiting PodInitializing
        MODIFIED Running [ContainersReady Initialized PodReadyToStartContainers PodScheduled Ready] install terminated Completed 0, app running
        MODIFIED Running [Initialized PodReadyToStartContainers PodScheduled] install terminated Completed 0, app terminated Error 1
        MODIFIED Failed [Initialized PodScheduled] install terminated Completed 0, app terminated Error 1
        h runs, h ended"#]]).await;
}

#[tokio::test(start_paused = true)]
async fn an_app_runs_out_of_memory() {
    life(Script::default().app(Run::out_of_memory(Duration::from_secs(5))), async |_: &Cluster| {}, expect![[r#"
        ADDED Pending []
        MODIFIED Pending [PodScheduled]
        MODIFIED Pending [PodScheduled] install waiting PodInitializing, app waiting PodInitializing
        MODIFIED Pending [PodReadyToStartContainers PodScheduled] install running, app waiting PodInitializing
        MODIFIED Pending [Initialized PodReadyToStartContainers PodScheduled] install terminated Completed 0, app waiting PodInitializing
        MODIFIED Running [ContainersReady Initialized PodReadyToStartContainers PodScheduled Ready] install terminated Completed 0, app running
        MODIFIED Running [Initialized PodReadyToStartContainers PodScheduled] install terminated Completed 0, app terminated OOMKilled 137
        MODIFIED Failed [Initialized PodScheduled] install terminated Completed 0, app terminated OOMKilled 137
        h runs, h ended"#]]).await;
}

#[tokio::test(start_paused = true)]
async fn a_pod_is_evicted_by_its_node() {
    let evict = async |cluster: &Cluster| {
        cluster.after(10).await;
        cluster.nodes.evict("h");
    };
    life(Script::default(), evict, expect![[r#"
        ADDED Pending []
        MODIFIED Pending [PodScheduled]
        MODIFIED Pending [PodScheduled] install waiting PodInitializing, app waiting PodInitializing
        MODIFIED Pending [PodReadyToStartContainers PodScheduled] install running, app waiting PodInitializing
        MODIFIED Pending [Initialized PodReadyToStartContainers PodScheduled] install terminated Completed 0, app waiting PodInitializing
        MODIFIED Running [ContainersReady Initialized PodReadyToStartContainers PodScheduled Ready] install terminated Completed 0, app running
        MODIFIED Failed Evicted [DisruptionTarget Initialized PodScheduled] install terminated Completed 0, app terminated Error 137
        h runs, h ended"#]]).await;
}

#[tokio::test(start_paused = true)]
async fn an_image_cannot_be_pulled() {
    let script = Script { pull: Pull::BackOff, ..Script::default() };
    life(
        script,
        async |_: &Cluster| {},
        expect![[r#"
            ADDED Pending []
            MODIFIED Pending [PodScheduled]
            MODIFIED Pending [PodScheduled] install waiting PodInitializing, app waiting PodInitializing
            MODIFIED Pending [PodReadyToStartContainers PodScheduled] install waiting ErrImagePull, app waiting PodInitializing
            MODIFIED Pending [PodReadyToStartContainers PodScheduled] install waiting ImagePullBackOff, app waiting PodInitializing
            MODIFIED Pending [PodReadyToStartContainers PodScheduled] install waiting ErrImagePull, app waiting PodInitializing
            MODIFIED Pending [PodReadyToStartContainers PodScheduled] install waiting ImagePullBackOff, app waiting PodInitializing
            MODIFIED Pending [PodReadyToStartContainers PodScheduled] install waiting ErrImagePull, app waiting PodInitializing
            MODIFIED Pending [PodReadyToStartContainers PodScheduled] install waiting ImagePullBackOff, app waiting PodInitializing
            MODIFIED Pending [PodReadyToStartContainers PodScheduled] install waiting ErrImagePull, app waiting PodInitializing
            MODIFIED Pending [PodReadyToStartContainers PodScheduled] install waiting ImagePullBackOff, app waiting PodInitializing
            MODIFIED Pending [PodReadyToStartContainers PodScheduled] install waiting ErrImagePull, app waiting PodInitializing
            MODIFIED Pending [PodReadyToStartContainers PodScheduled] install waiting ImagePullBackOff, app waiting PodInitializing
        "#]],
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_process_cannot_be_started() {
    let script = Script { start: Start::Error("no such file or directory".to_owned()), ..Script::default() };
    life(
        script,
        async |_: &Cluster| {},
        expect![[r#"
            ADDED Pending []
            MODIFIED Pending [PodScheduled]
            MODIFIED Pending [PodScheduled] install waiting PodInitializing, app waiting PodInitializing
            MODIFIED Pending [PodReadyToStartContainers PodScheduled] install running, app waiting PodInitializing
            MODIFIED Pending [Initialized PodReadyToStartContainers PodScheduled] install terminated Completed 0, app terminated StartError 128
            MODIFIED Failed [Initialized PodScheduled] install terminated Completed 0, app terminated StartError 128
        "#]],
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_pod_finds_no_node() {
    let script = Script { schedule: Schedule::Never("0/1 nodes are available: 1 Insufficient memory.".to_owned()), ..Script::default() };
    let stop = async |cluster: &Cluster| {
        cluster.after(60).await;
        cluster.delete("h", &json!({})).await;
    };
    life(
        script,
        stop,
        expect![[r#"
            ADDED Pending []
            MODIFIED Pending []
            MODIFIED grace=0 Pending []
            DELETED grace=0 Pending []
        "#]],
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_kubelet_refuses_a_pod() {
    let refused = Pull::Refused("OutOfcpu".to_owned(), "Node didn't have enough resource: cpu".to_owned());
    life(
        Script { pull: refused, ..Script::default() },
        async |_: &Cluster| {},
        expect![[r#"
            ADDED Pending []
            MODIFIED Pending [PodScheduled]
            MODIFIED Failed OutOfcpu [Initialized PodScheduled]
        "#]],
    )
    .await;
}
