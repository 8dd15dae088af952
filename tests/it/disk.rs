//! A daemon whose disk refuses: it stops acting, goes on answering, says why, and goes on when the disk does; or ends, once, with
//! the reason. The cluster and the gateway are embedded, the daemon and its store are the real ones, in this process.

use std::path::Path;
use std::time::Duration;

use serde_json::Value;
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use wharfinger::clock::now;
use wharfinger::events::check::check;
use wharfinger::events::sled_log::SledLog;
use wharfinger::run::embedded::{outside, outside_inline, settings};
use wharfinger::run::serve::{Listeners, Place, ServeError, serve};
use wharfinger::run::{Checkpoints, Outside};
use wharfinger::sim::node::{Pull, Register, Run, Schedule, Script, Start};
use wharfinger::sim::world::{World, WorldOptions};

use crate::support::faults::{self, Fault};

const TOKEN: &str = "a-token";

/// How long anything may take.
const LIMIT: Duration = Duration::from_secs(30);

/// A daemon on its disk.
struct House {
    world: World,
    folder: tempfile::TempDir,
    control: String,
    stop: Option<oneshot::Sender<()>>,
    served: JoinHandle<Result<(), ServeError>>,
}

/// A pod that is well in no time.
fn quick() -> Script {
    let ms = Duration::from_millis;
    let usual = Script::default();
    Script {
        schedule: Schedule::After(ms(10)),
        pull: Pull::Takes(ms(10)),
        install: Run { lasts: Some(ms(20)), ..usual.install },
        start: Start::Takes(ms(10)),
        app: Run { term_after: Some(ms(50)), ..usual.app },
        register: Register::After(ms(50)),
    }
}

/// Signed, and said to nobody.
fn checkpoints(outside: &Outside) -> Checkpoints {
    Checkpoints::open(&outside.settings, &outside.entropy, std::sync::Arc::new(|_| ())).expect("a key")
}

async fn listeners() -> Listeners {
    let listen = || async { TcpListener::bind("127.0.0.1:0").await.expect("a port") };
    Listeners { control: listen().await, sources: listen().await }
}

impl House {
    async fn new() -> Self {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let options =
            WorldOptions { started_us: None, token: TOKEN.to_owned(), script: quick(), serve_gateway: true, ..WorldOptions::default() };
        let world = World::start(options).await.expect("a world");
        let folder = tempfile::tempdir().expect("a folder");
        let mut settings = settings(&world, folder.path());
        settings.gateway.beat_ms = 200;
        let outside = outside(&world, settings, TOKEN).expect("the world is joined");
        let listeners = listeners().await;
        let control = format!("http://{}", listeners.control.local_addr().expect("an address"));
        let (stop, stopped) = oneshot::channel::<()>();
        let log = folder.path().join("log");
        let served = tokio::spawn(async move {
            let stop = async {
                let _ = stopped.await;
                "test"
            };
            let checkpoints = checkpoints(&outside);
            serve(outside, Place { dir: &log, probe: None }, listeners, checkpoints, false, stop).await
        });
        Self { world, folder, control, stop: Some(stop), served }
    }

    fn log(&self) -> std::path::PathBuf {
        self.folder.path().join("log")
    }

    async fn ask(&self, path: &str) -> Value {
        let answer = reqwest::get(format!("{}{path}", self.control)).await.expect("it answers");
        answer.json().await.expect("JSON")
    }

    async fn until(&self, what: &str, holds: impl AsyncFn() -> bool) {
        let begun = now();
        while !holds().await {
            assert!(begun.elapsed() < LIMIT, "waited for \"{what}\" in vain: {}", self.ask("/readyz").await);
            assert!(!self.served.is_finished(), "the daemon ended while waiting for \"{what}\"");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    async fn until_live(&self, app: &str, host: &str) {
        let live = || self.world.gateway.app(app).is_some_and(|app| app.live_host.as_deref() == Some(host));
        self.until("it is live", async || live()).await;
    }

    fn pods(&self) -> Vec<(String, String)> {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let pods = self.world.api.objects("pods", Some(&self.world.namespace));
        pods.iter().map(|pod| (text(&pod["metadata"]["name"]), text(&pod["metadata"]["uid"]))).collect()
    }

    /// Ends the daemon in order and checks its log.
    async fn end(mut self) {
        let _ = self.stop.take().expect("it runs").send(());
        self.served.await.expect("it does not panic").expect("it ends in order");
        sound(&self.folder.path().join("log"));
    }
}

fn sound(log: &Path) {
    let reader = SledLog::open_for_reading(log).expect("it can be read");
    assert_eq!(check(&*reader).expect("the store answers").difference, None);
}

/// The disk refuses while an app is wanted and another one ends; then it is well again.
async fn stops_and_goes_on(fault: Fault, reason: &str) {
    let house = House::new().await;
    let bot = house.world.gateway.deploy("acme/bot");
    house.until_live("acme/bot", &bot).await;
    let before = house.pods();
    faults::set(&house.log(), Some(fault));
    let bee = house.world.gateway.deploy("acme/bee");
    house.until("it is not ready", async || house.ask("/readyz").await["ready"] == false).await;
    let ready = house.ask("/readyz").await;
    assert_eq!((&ready["failing"][0], &ready["log_writable"]), (&"log_writable".into(), &false.into()), "{ready}");
    assert!(ready["log_failed"].as_str().is_some_and(|why| why.contains(reason)), "{ready}");
    // The end of an app cannot be recorded: its pod, the only evidence, stays.
    house.world.nodes.kill_app(&bot, 7);
    tokio::time::sleep(Duration::from_secs(6)).await;
    assert_eq!(house.pods(), before, "nothing is created and nothing removed");
    let apps = house.ask("/v1/apps").await;
    let shown = apps["apps"].as_array().expect("a list").iter().any(|app| app["app"] == "acme/bot" && app["stage"] == "running");
    assert!(shown, "what was known is still shown: {apps}");
    assert_eq!(house.ask("/readyz").await["ready"], false);
    faults::set(&house.log(), None);
    house.until_live("acme/bee", &bee).await;
    house.until("it is ready", async || house.ask("/readyz").await["ready"] == true).await;
    house.until("the other is back", async || house.pods().iter().any(|(name, uid)| *name == bot && *uid != before[0].1)).await;
    house.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn b25_a_full_disk_stops_acting_and_it_goes_on_when_there_is_room() {
    stops_and_goes_on(Fault::Full, "no room").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn b25_writes_that_fail_stop_acting_and_it_goes_on_when_they_work() {
    stops_and_goes_on(Fault::NoWrites, "cannot append").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn b25_syncs_that_fail_stop_acting_and_it_goes_on_when_they_work() {
    stops_and_goes_on(Fault::NoSyncs, "cannot append").await;
}

#[tokio::test(start_paused = true)]
async fn a_disk_that_stays_full_ends_the_daemon_once_with_the_reason() {
    let world = World::start(WorldOptions::default()).await.expect("a world");
    let folder = tempfile::tempdir().expect("a folder");
    let outside = outside_inline(&world, settings(&world, folder.path()), "token", 7).expect("the world is joined");
    let clock = outside.clock.clone();
    let log = folder.path().join("log");
    let place = Place { dir: &log, probe: None };
    let fills = async {
        tokio::time::sleep(Duration::from_secs(30)).await;
        faults::set(&log, Some(Fault::Full));
        world.gateway.deploy("acme/bot");
        std::future::pending::<()>().await;
    };
    let begun = clock.now_us();
    let signs = checkpoints(&outside);
    let ended = tokio::select! {
        biased;
        ended = serve(outside, place, listeners().await, signs, false, std::future::pending()) => ended,
        () = fills => unreachable!("it waits for ever"),
    };
    faults::set(&log, None);
    let took_s = (clock.now_us() - begun) / 1_000_000;
    assert!((600..700).contains(&took_s), "ten minutes of trying, not {took_s} s");
    let why = ended.expect_err("it cannot go on").to_string();
    assert!(why.contains("no room"), "{why}");
    assert!(world.api.objects("pods", Some(&world.namespace)).is_empty());
    sound(&log);
}
