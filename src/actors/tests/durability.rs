//! Append before act: nothing is sent whose record is not durable, and a failed append sends nothing.

use super::support::Town;
use crate::actors::Ended;
use crate::events::mem_log::MemFault;

#[tokio::test(start_paused = true)]
async fn every_write_has_a_step_that_was_durable_before_it() {
    let mut town = Town::new().await;
    town.start().await;
    let first = town.live_app("acme/bot").await;
    let second = town.live_app("acme/bot").await;
    town.until("only the second", |town| town.pods() == [second.clone()]).await;
    town.world.gateway.withdraw("acme/bot");
    town.until("nothing is left", |town| town.pods().is_empty() && town.secrets().is_empty()).await;
    assert!(town.writes().len() >= 9, "{:?}", town.writes());
    assert_eq!(town.writes_like(&format!("create pods {first}")), 1);
    town.assert_append_before_act();
    assert!(town.world.gateway.lock().seen.violations.is_empty());
}

async fn a_failed_append_sends_nothing(fault: MemFault) {
    let mut town = Town::new().await;
    town.start().await;
    town.live_app("acme/first").await;
    let host = town.world.gateway.deploy("acme/bot");
    let sent = town.sent().len();
    town.disk.fail(fault);
    let ended = town.ended().await;
    assert!(matches!(ended, Ended::LogFailed(_)), "{ended:?}");
    assert_eq!(town.sent().len(), sent, "{}", town.story());
    town.disk.crash(crate::events::mem_log::Unsynced::Lost);
    town.start().await;
    town.until("live", |town| town.is_live("acme/bot", &host)).await;
    assert_eq!(town.writes_like(&format!("create pods {host}")), 1);
    assert_eq!(town.writes_like("create pods first"), 1);
    town.assert_append_before_act();
}

#[tokio::test(start_paused = true)]
async fn a_full_disk_sends_nothing_and_a_new_incarnation_goes_on() {
    a_failed_append_sends_nothing(MemFault::Full).await;
}

#[tokio::test(start_paused = true)]
async fn a_failed_sync_sends_nothing_and_a_new_incarnation_goes_on() {
    a_failed_append_sends_nothing(MemFault::Sync).await;
}

#[tokio::test(start_paused = true)]
async fn b25_an_end_that_cannot_be_recorded_leaves_the_pod() {
    let mut town = Town::new().await;
    town.start().await;
    let host = town.live_app("acme/bot").await;
    town.disk.fail(MemFault::Full);
    town.world.nodes.kill_app(&host, 7);
    let ended = town.ended().await;
    assert!(matches!(ended, Ended::LogFailed(_)), "{ended:?}");
    town.run(60).await;
    assert_eq!((town.pods(), town.writes_like("delete")), (vec![host.clone()], 0));
    town.disk.crash(crate::events::mem_log::Unsynced::Lost);
    town.start().await;
    town.until("revived", |town| town.writes_like(&format!("create pods {host}")) == 2).await;
    assert_eq!(town.kinds("acme/bot", "PodEnded"), 1, "{}", town.story());
}
