//! Hosts that end by no fault of their own.

use std::time::Duration;

use wharfinger::sim::gateway::{Endpoint, Fault};
use wharfinger::sim::node::{Register, Run};

use super::stage::{Stage, healthy};

const BOT: &str = "acme/bot";

async fn live(stage: &mut Stage) -> (String, String) {
    let host = stage.deploy(BOT, healthy());
    stage.until_live(BOT, &host).await;
    let uid = stage.uid(&host).await.expect("a live host has a pod");
    (host, uid)
}

pub(super) async fn evicted(mut stage: Stage) {
    let (host, first) = live(&mut stage).await;
    stage.nodes().evict(&host);
    stage.until_back(&host, &first).await;
    let second = stage.uid(&host).await.expect("a pod");
    stage.nodes().delete_by_other(&host, 0).await.expect("it can be deleted");
    stage.until_back(&host, &second).await;
    assert!(stage.is_live(BOT, &host) && !stage.is_failed(BOT));
    stage.end();
    let ends: Vec<_> = stage.records("acme/bot").into_iter().filter(|record| record["kind"] == "PodEnded").collect();
    let told: Vec<_> = ends.iter().map(|end| (end["payload"]["cause"].as_str().unwrap_or(""), end["payload"]["counted"] == true)).collect();
    assert_eq!(told, [("Evicted", false), ("DeletedByOther", false)]);
}

pub(super) async fn former(mut stage: Stage) {
    let (host, uid) = live(&mut stage).await;
    // A second release that takes long to register, so that the first is the former live host for a while.
    let slow = healthy().app(Run::forever());
    let slow = wharfinger::sim::node::Script { register: Register::After(Duration::from_millis(2_500)), ..slow };
    let second = stage.deploy(BOT, slow);
    stage.until("the second release runs", |stage| async { stage.serves(&second).await }).await;
    stage.gateway.fail(Endpoint::Source, u32::MAX, Fault::Status(503));
    stage.gateway.fail(Endpoint::Environment, u32::MAX, Fault::Status(503));
    stage.nodes().delete_by_other(&host, 0).await.expect("it can be deleted");
    stage
        .until("the former live host is made again", |stage| async {
            stage.uid(&host).await.is_some_and(|now| now != uid) || stage.is_live(BOT, &second)
        })
        .await;
    assert!(!stage.is_live(BOT, &second), "it is revived while the second is not live yet");
    stage.gateway.heal();
    stage.until_live(BOT, &second).await;
    stage.until_nothing_left(&host).await;
    stage.end();
}

pub(super) async fn killed(mut stage: Stage) {
    let (host, mut uid) = live(&mut stage).await;
    for round in 0..3 {
        stage.nodes().kill_app(&host, 1);
        // Killed when the end is seen, when the pod is being replaced, and when its successor is there.
        stage
            .until("the revive goes on", |stage| async {
                let pod = stage.pod(&host).await;
                match round {
                    0 => pod.is_none_or(|pod| pod["status"]["phase"] == "Failed" || pod["metadata"]["uid"] != uid.as_str()),
                    1 => pod.is_none_or(|pod| pod["metadata"]["uid"] != uid.as_str()),
                    _ => pod.is_some_and(|pod| pod["metadata"]["uid"] != uid.as_str()),
                }
            })
            .await;
        stage.kill();
        stage.start();
        stage.until_back(&host, &uid).await;
        assert_eq!(stage.package(BOT).await, 200, "an install that starts after the restart gets its sources");
        uid = stage.uid(&host).await.expect("a pod");
        assert_eq!(stage.creates_of(&host), round + 2, "nothing is doubled in round {round}");
    }
    stage.end();
    let records = stage.records("acme/bot");
    let counted = records.iter().filter(|record| record["kind"] == "PodEnded" && record["payload"]["counted"] == true).count();
    assert_eq!(counted, 3, "each exit counts once");
}
