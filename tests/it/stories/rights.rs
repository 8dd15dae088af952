//! What the daemon does with fewer rights than are shipped: only a real API server refuses.

use super::stage::{Stage, healthy};

const BOT: &str = "acme/bot";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_the_cluster_role_it_runs_and_says_so() {
    let Some(mut stage) = Stage::real_with("without-cluster-role", false).await else { return };
    let host = stage.deploy(BOT, healthy());
    stage.until_live(BOT, &host).await;
    stage.until("it says so", |stage| std::future::ready(stage.said().contains("nodes cannot be watched"))).await;
    let readiness = stage.readiness().await;
    assert_eq!(readiness["ready"], true, "{readiness}");
    assert_eq!(readiness["nodes_unknown"], true, "{readiness}");
    stage.end();
    let forced = stage.records(BOT).iter().filter(|record| record["payload"]["step"]["DeletePod"]["forced"] == true).count();
    assert_eq!(forced, 0);
}
