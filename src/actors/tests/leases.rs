//! Two daemons on one cluster: only the one whose log the Lease names acts.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use super::support::Town;
use crate::config::Settings;
use crate::events::kinds::daemon::RestartReason;
use crate::events::record::Event;
use crate::events::sled_log::SledLog;
use crate::events::stored::Body;
use crate::ids::Seq;
use crate::run::serve::{Listeners, Place, ServeError, serve};
use crate::run::{Checkpoints, Outside};

/// A daemon with a data folder of its own.
struct Daemon {
    stop: oneshot::Sender<()>,
    running: JoinHandle<Result<(), ServeError>>,
}

impl Daemon {
    async fn start(town: &Town, dir: &Path, folder: u8, take_over: bool) -> Self {
        let outside = Outside { digest_key: [folder; 32], ..town.outside.clone() };
        let listen = || async { tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port") };
        let listeners = Listeners { control: listen().await, sources: listen().await };
        let (stop, stopped) = oneshot::channel::<()>();
        let stop_it = async move {
            let _ = stopped.await;
            "SIGTERM"
        };
        let dir = dir.to_path_buf();
        let settings = Settings { data_dir: dir.display().to_string(), ..outside.settings.clone() };
        let checkpoints = Checkpoints::open(&settings, &outside.entropy, Arc::new(|_| ())).expect("a key");
        let running =
            tokio::spawn(async move { serve(outside, Place { dir: &dir, probe: None }, listeners, checkpoints, take_over, stop_it).await });
        Self { stop, running }
    }

    async fn stop(self) {
        let _ = self.stop.send(());
        self.running.await.expect("no panic").expect("it ends in order");
    }
}

fn events(dir: &Path) -> Vec<Event> {
    let reader = SledLog::open_for_reading(dir).expect("nobody holds it");
    let mut events = Vec::new();
    let read = reader.scan(Seq(1), &mut |item| {
        if let Body::Known(event) = item.expect("sound").body {
            events.push(event);
        }
        std::ops::ControlFlow::Continue(())
    });
    read.expect("it can be read");
    events
}

fn live_host(town: &Town) -> Option<String> {
    town.world.gateway.app("acme/bot").and_then(|bot| bot.live_host)
}

#[tokio::test(start_paused = true)]
async fn a_daemon_of_another_log_stands_by_until_it_is_told_to_take_over() {
    let town = Town::new().await;
    let (first, second) = (tempfile::tempdir().expect("a folder"), tempfile::tempdir().expect("a folder"));
    let one = Daemon::start(&town, first.path(), 1, false).await;
    let host = town.world.gateway.deploy("acme/bot");
    town.until("live", |town| live_host(town).as_ref() == Some(&host)).await;

    let other = Daemon::start(&town, second.path(), 2, false).await;
    tokio::time::sleep(Duration::from_secs(60)).await;
    one.stop().await;
    let next = town.world.gateway.deploy("acme/bot");
    tokio::time::sleep(Duration::from_secs(120)).await;
    assert_eq!(town.pods(), [host.clone()], "another log's lease is not taken, however old it is");
    other.stop().await;
    assert!(!events(second.path()).iter().any(|event| matches!(event, Event::IncarnationStarted(_))), "it never began");

    let other = Daemon::start(&town, second.path(), 2, true).await;
    town.until("the next is live", |town| live_host(town).as_ref() == Some(&next) && town.pods() == [next.clone()]).await;
    assert_eq!(town.writes_like(&format!("create pods {host}")), 1, "the first host was taken over, not made again");
    other.stop().await;
    let began = events(second.path()).into_iter().any(|event| {
        matches!(event, Event::LogRestarted(restarted) if restarted.reason == RestartReason::TakeOver && restarted.former.is_some())
    });
    assert!(began);
    // A restart of the one that took over needs no telling.
    let other = Daemon::start(&town, second.path(), 2, false).await;
    let last = town.world.gateway.deploy("acme/bot");
    town.until("the last is live", |town| live_host(town).as_ref() == Some(&last)).await;
    other.stop().await;
}

#[tokio::test(start_paused = true)]
async fn whose_lease_is_taken_acts_no_more() {
    let town = Town::new().await;
    let (first, second) = (tempfile::tempdir().expect("a folder"), tempfile::tempdir().expect("a folder"));
    let one = Daemon::start(&town, first.path(), 1, false).await;
    let host = town.world.gateway.deploy("acme/bot");
    town.until("live", |town| live_host(town).as_ref() == Some(&host)).await;
    let other = Daemon::start(&town, second.path(), 2, true).await;
    tokio::time::sleep(Duration::from_secs(60)).await;
    let next = town.world.gateway.deploy("acme/bot");
    town.until("the next is live", |town| live_host(town).as_ref() == Some(&next) && town.pods() == [next.clone()]).await;
    assert_eq!(town.writes_like(&format!("create pods {next}")), 1, "one of them made it");
    other.stop().await;
    tokio::time::sleep(Duration::from_secs(60)).await;
    let last = town.world.gateway.deploy("acme/bot");
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(town.pods(), [next], "the first one does not act again by itself: {last} waits");
    one.stop().await;
    assert!(
        events(first.path())
            .iter()
            .any(|event| matches!(event, Event::IncarnationStopped(stopped) if stopped.reason.as_str() == "lease_lost"))
    );
}

#[tokio::test(start_paused = true)]
async fn a_copy_of_a_folder_that_knows_less_stands_by() {
    let town = Town::new().await;
    let (first, copy) = (tempfile::tempdir().expect("a folder"), tempfile::tempdir().expect("a folder"));
    let one = Daemon::start(&town, first.path(), 1, false).await;
    let host = town.world.gateway.deploy("acme/bot");
    town.until("live", |town| live_host(town).as_ref() == Some(&host)).await;
    one.stop().await;
    copy_folder(first.path(), copy.path());
    let one = Daemon::start(&town, first.path(), 1, false).await;
    let next = town.world.gateway.deploy("acme/bot");
    town.until("the next is live", |town| live_host(town).as_ref() == Some(&next)).await;
    tokio::time::sleep(Duration::from_secs(20)).await;
    one.stop().await;
    let old = Daemon::start(&town, copy.path(), 1, false).await;
    let last = town.world.gateway.deploy("acme/bot");
    tokio::time::sleep(Duration::from_secs(120)).await;
    assert_eq!(town.pods(), [next], "{last} waits");
    old.stop().await;
    let one = Daemon::start(&town, first.path(), 1, false).await;
    town.until("the last is live", |town| live_host(town).as_ref() == Some(&last)).await;
    one.stop().await;
}

fn copy_folder(from: &Path, to: &Path) {
    for entry in std::fs::read_dir(from).expect("a folder") {
        let entry = entry.expect("an entry");
        let target = to.join(entry.file_name());
        if entry.file_type().expect("known").is_dir() {
            std::fs::create_dir_all(&target).expect("made");
            copy_folder(&entry.path(), &target);
        } else {
            std::fs::copy(entry.path(), &target).expect("copied");
        }
    }
}
