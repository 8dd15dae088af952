//! Apps that the gateway no longer names, or seems not to.

use wharfinger::sim::gateway::{Endpoint, Fault};

use super::stage::{Stage, healthy};

const BOT: &str = "acme/bot";

pub(super) async fn withdrawn(mut stage: Stage) {
    let others = ["acme/a", "acme/b", "acme/c"];
    for other in others {
        stage.deploy(other, healthy());
    }
    let host = stage.deploy(BOT, healthy());
    stage.until_live(BOT, &host).await;
    stage.gateway.withdraw(BOT);
    stage.until_nothing_left(&host).await;
    stage.end();
    let records = stage.records("acme/bot");
    let missing = records.iter().filter(|record| record["kind"] == "WantMissing").count();
    assert_eq!(missing, 2, "two answers in a row withdraw it");
}

pub(super) async fn odd(mut stage: Stage) {
    let host = stage.deploy(BOT, healthy());
    stage.until_live(BOT, &host).await;
    let uid = stage.uid(&host).await;
    let faults = [
        Fault::StatusAfter(500),
        Fault::Garbage,
        Fault::CutOff,
        Fault::WrongWorld,
        Fault::Empty,
        Fault::Omit(BOT.to_owned()),
        Fault::Body(b"{\"world\":\"story\"}".to_vec()),
        Fault::Body(b"{\"world\":\"story\",\"apps\":[{\"org\":\"acme\",\"name\":\"bot\"}]}".to_vec()),
    ];
    for fault in faults {
        stage.gateway.fail(Endpoint::Heartbeat, 1, fault.clone());
        stage.beats(3).await;
        assert!(stage.serves(&host).await, "{fault:?}");
    }
    assert_eq!(stage.uid(&host).await, uid);
    stage.end();
    let records = stage.records("acme/bot");
    assert!(!records.iter().any(|record| record["payload"]["purpose"] == "Stop"), "no step stops anything");
}
