//! Releases that come and go.

use wharfinger::sim::gateway::{Endpoint, Fault};

use super::stage::{Stage, healthy};

const BOT: &str = "acme/bot";

pub(super) async fn goes_live(mut stage: Stage) {
    let host = stage.deploy(BOT, healthy());
    stage.until_live(BOT, &host).await;
    assert_eq!(stage.gateway.reported(), [format!("live {host}")]);
    stage.end();
    assert_eq!(stage.creates_of(&host), 1);
}

pub(super) async fn replaces(mut stage: Stage) {
    let first = stage.deploy(BOT, healthy());
    stage.until_live(BOT, &first).await;
    let second = stage.deploy(BOT, healthy());
    stage.until("the second release has a pod", |stage| async { stage.pod(&second).await.is_some() }).await;
    // From its registration on the gateway takes reports in and answers with an error: nobody is told that it is live.
    stage.until("it is registered", |stage| std::future::ready(stage.is_registered(&second))).await;
    stage.gateway.fail(Endpoint::Heartbeat, u32::MAX, Fault::StatusAfter(500));
    stage.beats(6).await;
    assert!(stage.serves(&first).await, "the first goes on running while the gateway does not name the second");
    stage.gateway.heal();
    stage.until_live(BOT, &second).await;
    stage.until_nothing_left(&first).await;
    assert!(stage.serves(&second).await);
    stage.end();
}

pub(super) async fn changed_secret(mut stage: Stage) {
    let first = stage.deploy(BOT, healthy());
    stage.until_live(BOT, &first).await;
    let second = stage.gateway.change_secret(BOT, None);
    assert_ne!(first, second, "a changed secret is a new host of the same release");
    stage.until_live(BOT, &second).await;
    stage.until_nothing_left(&first).await;
    stage.end();
}

pub(super) async fn killed(mut stage: Stage) {
    let first = stage.deploy(BOT, healthy());
    stage.until_live(BOT, &first).await;
    let mut hosts = vec![first];
    // Killed as soon as the second release is wanted, as soon as it has a Secret or pod, and while it installs.
    for moment in ["wanted", "pod", "installing"] {
        let host = stage.deploy(BOT, healthy());
        match moment {
            "wanted" => stage.beats(1).await,
            "pod" => stage.until("it has a pod", |stage| async { stage.pod(&host).await.is_some() }).await,
            _ => {
                stage
                    .until("it installs", |stage| async {
                        let pod = stage.pod(&host).await;
                        pod.is_some_and(|pod| pod["status"]["initContainerStatuses"][0]["state"]["running"].is_object())
                    })
                    .await;
            }
        }
        stage.kill();
        stage.start();
        stage.until_live(BOT, &host).await;
        assert_eq!(stage.package(BOT).await, 200, "an install that starts after the restart gets its sources");
        for former in &hosts {
            stage.until_nothing_left(former).await;
        }
        assert_eq!(stage.creates_of(&host), 1, "nothing is doubled: {moment}");
        hosts = vec![host];
    }
    stage.end();
}
