//! The world as a whole: a pod that runs is registered; the same seed gives the same history, to the byte.

use std::time::Duration;

use serde_json::{Value, json};

use super::support::ask;
use crate::sim::node::{Register, Run, Script};
use crate::sim::world::{World, WorldOptions};

fn pod(name: &str) -> Value {
    let security = json!({"allowPrivilegeEscalation": false, "capabilities": {"drop": ["ALL"]}});
    json!({"metadata": {"name": name}, "spec": {
        "restartPolicy": "Never", "runtimeClassName": "gvisor",
        "securityContext": {"runAsNonRoot": true, "seccompProfile": {"type": "RuntimeDefault"}},
        "containers": [{"name": "app", "image": "a:1", "securityContext": security}],
    }})
}

#[tokio::test(start_paused = true)]
async fn a_pod_that_runs_is_registered_as_its_script_says() {
    let world = World::start(WorldOptions::default()).await.expect("a world");
    let client = world.client();
    let hosts: Vec<String> = ["acme/a", "acme/b", "acme/c"].iter().map(|app| world.gateway.deploy(app)).collect();
    world.scripts.set("b-", Script { register: Register::Never, ..Script::default() });
    world.scripts.times("c-", 1, Script::default().app(Run::ends(Duration::from_secs(1), 1)));
    for host in &hosts {
        assert_eq!(ask(&client, "POST", "/api/v1/namespaces/apps/pods", &pod(host)).await.0, 201);
    }
    tokio::time::sleep(Duration::from_secs(30)).await;
    let now_us = world.clock.now_us();
    let registered: Vec<bool> = hosts.iter().map(|host| world.gateway.lock().is_registered(host, now_us)).collect();
    assert_eq!(registered, [true, false, false]);
    world.nodes.kill_app(&hosts[0], 1);
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert!(!world.gateway.lock().is_registered(&hosts[0], world.clock.now_us()));
}

/// Everything that was asked and answered in a busy minute.
async fn history(seed: u64) -> Vec<String> {
    let world = World::start(WorldOptions { seed, latency: Duration::from_millis(3), ..WorldOptions::default() }).await.expect("a world");
    let client = world.client();
    let mut tasks = tokio::task::JoinSet::new();
    for index in 0..30_u64 {
        let client = client.clone();
        tasks.spawn(async move {
            tokio::time::sleep(Duration::from_millis(index * 7 % 50)).await;
            let name = format!("h{index}");
            ask(&client, "POST", "/api/v1/namespaces/apps/pods", &pod(&name)).await;
            tokio::time::sleep(Duration::from_secs(3 + index % 9)).await;
            ask(&client, "DELETE", &format!("/api/v1/namespaces/apps/pods/{name}"), &json!({"gracePeriodSeconds": index % 4})).await;
        });
    }
    while tasks.join_next().await.is_some() {}
    tokio::time::sleep(Duration::from_secs(10)).await;
    assert!(world.api.objects("pods", None).is_empty(), "all are gone");
    world.api.audit().since(0).iter().map(|entry| format!("{entry:?}")).collect()
}

#[test]
fn a_seed_gives_the_same_history() {
    let run = |seed| {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().expect("a runtime");
        runtime.block_on(history(seed))
    };
    let first = run(1);
    assert!(first.len() > 200, "{}", first.len());
    for _ in 0..5 {
        assert!(run(1) == first, "a second run differs");
    }
    assert!(run(2) != first, "another seed gives other uids");
}
