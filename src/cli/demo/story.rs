//! The demo's story: what is done to the cluster and the gateway, each part waiting for what must come of it.

use std::sync::Arc;
use std::time::Duration;

use super::{Demo, healthy};
use crate::cli::error::CliError;
use crate::clock;
use crate::events::kinds::session::SessionAsked;
use crate::ids::{SessionId, Tenant, Word};
use crate::session::state::Session;
use crate::session::view::{State, view};
use crate::sim::node::{Run, Script};

/// How long a part of the story may take: far longer than it does.
const PART_LIMIT: Duration = Duration::from_secs(60);

const BOT: &str = "acme/bot";
const LOOP: &str = "acme/loop";
const SESSION: &str = "7f3a";

/// Tells the whole story.
pub(super) async fn tell(demo: &mut Demo) -> Result<(), CliError> {
    demo.narrator.say("A first release.")?;
    let first = demo.world.gateway.deploy(BOT);
    goes_live(demo, BOT, &first).await?;

    demo.narrator.say("A rollout, and the daemon is killed in the middle of it.")?;
    let second = demo.world.gateway.deploy(BOT);
    until(demo, "the second release is being started", |demo| demo.has_pod(&second)).await?;
    demo.crash_and_restart().await?;
    goes_live(demo, BOT, &second).await?;
    until(demo, "the first release is stopped", |demo| !demo.has_pod(&first)).await?;

    demo.narrator.say("The node evicts the live host.")?;
    let uid = demo.uid(&second);
    demo.world.nodes.evict(&second);
    until(demo, "the host is back under its name", |demo| demo.uid(&second).is_some() && demo.uid(&second) != uid).await?;
    until(demo, "it is registered again", |demo| demo.is_registered(&second)).await?;

    demo.narrator.say("A release whose install fails: the live one goes on serving.")?;
    let third = demo.next_release(BOT, healthy(demo.speed).install_fails(Duration::from_millis(400), 7));
    until(demo, "the release is reported failed", |demo| demo.is_failed(BOT)).await?;
    until(demo, "nothing of it is left", |demo| !demo.has_pod(&third)).await?;

    demo.narrator.say("A crash loop: five exits are revived, the sixth fails. Meanwhile a session exits, and is resumed on its claim.")?;
    let crashing = healthy(demo.speed).app(Run::ends(Duration::from_millis(600), 3));
    let looping = demo.next_release(LOOP, crashing);
    session(demo).await?;
    until(demo, "it keeps exiting", |demo| demo.is_failed(LOOP)).await?;
    until(demo, "nothing of it is left", |demo| !demo.has_pod(&looping)).await
}

/// A session is asked for, its pod exits, and the next call has another pod on the same claim.
async fn session(demo: &mut Demo) -> Result<(), CliError> {
    let id = SessionId::new(SESSION).expect("an id");
    let is = |demo: &Demo, wanted: &State| demo.session(&id).is_some_and(|session| view(&session).state == *wanted);
    until(demo, "sessions can be asked for", |demo| demo.incarnation.as_ref().is_some_and(|daemon| daemon.sessions().is_ready())).await?;
    demo.ask(&id).await?;
    until(demo, "the session is ready", |demo| is(demo, &State::Ready)).await?;
    demo.world.nodes.kill_app(&format!("pi-session-{SESSION}"), 0);
    until(demo, "the session is suspended", |demo| is(demo, &State::Suspended)).await?;
    demo.ask(&id).await?;
    until(demo, "the session is ready again", |demo| is(demo, &State::Ready)).await
}

async fn goes_live(demo: &mut Demo, app: &str, host: &str) -> Result<(), CliError> {
    let live = |demo: &Demo| demo.world.gateway.app(app).is_some_and(|app| app.live_host.as_deref() == Some(host));
    until(demo, &format!("{host} goes live"), live).await
}

/// Tells what happens until the condition holds.
async fn until(demo: &mut Demo, what: &str, holds: impl Fn(&Demo) -> bool) -> Result<(), CliError> {
    let begun = clock::now();
    loop {
        demo.narrator.tell()?;
        if holds(demo) {
            return Ok(());
        }
        if begun.elapsed() > PART_LIMIT {
            return Err(CliError::refused(format!("the story hangs: waiting for \"{what}\""), "report it with the log"));
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

impl Demo {
    fn session(&self, id: &SessionId) -> Option<Arc<Session>> {
        self.incarnation.as_ref()?.sessions().state(id)
    }

    /// Asks for the session to run.
    async fn ask(&self, id: &SessionId) -> Result<(), CliError> {
        let Some(daemon) = &self.incarnation else { return Ok(()) };
        let ask = SessionAsked { by: Word::new("demo"), tenant: Tenant::new("default").expect("a tenant"), force_after_us: None };
        let called = daemon.sessions().create(id, ask).await;
        called.map(drop).map_err(|why| CliError::refused(format!("the session is refused: {why:?}"), "report it with the log"))
    }

    /// Wants the app's next release, whose pods follow this script.
    fn next_release(&self, app: &str, script: Script) -> String {
        let name = app.split_once('/').map_or(app, |(_, name)| name);
        let release = self.world.gateway.app(app).map_or(1, |app| app.release + 1);
        self.world.scripts.set(&format!("{name}-r{release}-"), script);
        self.world.gateway.deploy(app)
    }

    fn uid(&self, host: &str) -> Option<String> {
        let pod = self.world.api.object("pods", &self.world.namespace, host)?;
        pod["metadata"]["uid"].as_str().map(str::to_owned)
    }

    fn has_pod(&self, host: &str) -> bool {
        self.uid(host).is_some()
    }

    fn is_failed(&self, app: &str) -> bool {
        self.world.gateway.app(app).is_some_and(|app| app.failed)
    }

    fn is_registered(&self, host: &str) -> bool {
        self.world.gateway.lock().is_registered(host, self.world.clock.now_us())
    }
}
