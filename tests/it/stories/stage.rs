//! Where a story is told: a cluster, a gateway and nodes in this process, the daemon as a child, and what can be asked of them.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use wharfinger::clock::Clock;
use wharfinger::sim::api::http::Served;
use wharfinger::sim::gateway::Gateway;
use wharfinger::sim::node::{Kubelet, NodeOptions, Nodes, Pull, Register, Requests, Run, Schedule, Script, Start};
use wharfinger::sim::world::{ScriptBook, World, WorldOptions};

use super::daemon::{Daemon, wharf};
use crate::support::control_plane::ControlPlane;

pub(super) const TOKEN: &str = "a-token";

/// How long anything may take before the story is said to hang.
const LIMIT: Duration = Duration::from_secs(20);

/// Between two beats of the daemons under test.
pub(super) const BEAT: Duration = Duration::from_millis(300);

/// Seconds until a running app that does not register is failed.
pub(super) const REGISTER_S: u32 = 3;

/// Settings of a daemon that serves sessions, quickly.
const SESSIONS: &str = "[sessions]\nserve = \"on\"\nready_s = 15\ncreates_per_s = 1000\nfrontend_selector = [\"app=front\"]\n\
                        image = \"registry.example/session@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef\"\n";

/// A caller of a daemon.
pub(super) fn client() -> reqwest::Client {
    // Another test may have installed it.
    let _ = rustls::crypto::ring::default_provider().install_default();
    reqwest::Client::builder().no_proxy().build().expect("a client")
}

/// A cluster as far as a story asks it.
enum Cluster {
    Embedded { world: Box<World>, _served: Served },
    Real { plane: &'static ControlPlane, nodes: Nodes, _gateway: Served },
}

/// A stage with its daemon.
pub(super) struct Stage {
    pub(super) gateway: Gateway,
    pub(super) scripts: ScriptBook,
    cluster: Cluster,
    requests: Requests,
    namespace: String,
    clock: Clock,
    more_settings: &'static str,
    dir: tempfile::TempDir,
    daemon: Option<Daemon>,
}

/// A pod that is well: running after half a second, registered a moment later.
pub(super) fn healthy() -> Script {
    let ms = Duration::from_millis;
    let usual = Script::default();
    Script {
        schedule: Schedule::After(ms(20)),
        pull: Pull::Takes(ms(50)),
        install: Run { lasts: Some(ms(200)), ..usual.install },
        start: Start::Takes(ms(50)),
        app: Run { term_after: Some(ms(300)), ..usual.app },
        register: Register::After(ms(150)),
    }
}

impl Stage {
    /// On the embedded cluster, its API served over HTTP to the daemon.
    pub(super) async fn embedded(name: &str) -> Self {
        Self::embedded_with(name, "").await
    }

    /// The same, with a daemon that serves sessions too.
    pub(super) async fn with_sessions(name: &str) -> Self {
        Self::embedded_with(name, SESSIONS).await
    }

    async fn embedded_with(name: &str, more_settings: &'static str) -> Self {
        let options = WorldOptions {
            started_us: None,
            world: "story".to_owned(),
            token: TOKEN.to_owned(),
            script: healthy(),
            serve_gateway: true,
            ..WorldOptions::default()
        };
        let world = World::start(options).await.expect("the world starts");
        let served = world.api.serve().await.expect("the API is served");
        let dir = tempfile::Builder::new().prefix(&format!("wharf-{name}-")).tempdir().expect("a folder");
        let kubeconfig = format!(
            "apiVersion: v1\nkind: Config\ncurrent-context: x\nclusters: [{{name: c, cluster: {{server: '{}'}}}}]\n\
             contexts: [{{name: x, context: {{cluster: c, user: u}}}}]\nusers: [{{name: u, user: {{}}}}]\n",
            served.url()
        );
        std::fs::write(dir.path().join("kubeconfig"), kubeconfig).expect("written");
        let gateway_url = world.gateway_url();
        let stage = Self {
            gateway: world.gateway.clone(),
            scripts: world.scripts.clone(),
            requests: Requests::new(world.api.client_as("test", &world.namespace)),
            namespace: world.namespace.clone(),
            clock: world.clock.clone(),
            cluster: Cluster::Embedded { world: Box::new(world), _served: served },
            more_settings,
            dir,
            daemon: None,
        };
        stage.raise(&gateway_url)
    }

    /// On a real API server, in a namespace of its own that enforces Pod Security `restricted`; the daemon has the rights that
    /// are shipped and no others. `None` when there is no API server to be had: said loudly, and counted as skipped.
    pub(super) async fn real(name: &str) -> Option<Self> {
        Self::real_with(name, true).await
    }

    /// The same, with or without the shipped cluster-wide rights.
    pub(super) async fn real_with(name: &str, cluster_role: bool) -> Option<Self> {
        let plane = ControlPlane::shared().await?;
        let namespace = plane.namespace(name).await;
        plane.install_rights(&namespace, cluster_role).await;
        plane.register_runtime_class("gvisor").await;
        let dir = tempfile::Builder::new().prefix(&format!("wharf-{name}-")).tempdir().expect("a folder");
        std::fs::copy(plane.daemon_kubeconfig(&namespace).await, dir.path().join("kubeconfig")).expect("copied");
        let clock = Clock::real();
        let gateway = Gateway::new("story", TOKEN, clock.clone());
        let served = gateway.serve().await.expect("the gateway listens");
        let scripts = ScriptBook::new(healthy());
        let client = plane.admin_client(&namespace).await;
        let nodes = Nodes::start(NodeOptions {
            client: client.clone(),
            namespace: namespace.clone(),
            names: vec![format!("node-{namespace}")],
            clock: clock.clone(),
            scripts: scripts.chooser(),
            hooks: Arc::new(gateway.clone()),
            unknown_after: Duration::from_secs(40),
            kubelet: Some(Arc::new(Kubelet::start(&plane.kubelet_identity()).await.expect("a port"))),
        });
        let gateway_url = served.url();
        let stage = Self {
            gateway,
            scripts,
            requests: Requests::new(client),
            namespace,
            clock,
            cluster: Cluster::Real { plane, nodes, _gateway: served },
            more_settings: "",
            dir,
            daemon: None,
        };
        Some(stage.raise(&gateway_url))
    }

    fn raise(mut self, gateway_url: &str) -> Self {
        self.write_settings(gateway_url);
        self.start();
        self
    }

    fn write_settings(&self, gateway_url: &str) {
        let dir = self.dir.path().display();
        std::fs::write(self.dir.path().join("token"), TOKEN).expect("written");
        let settings = format!(
            "world = \"story\"\ndata_dir = \"{dir}/data\"\n\
             [kubernetes]\nkubeconfig = \"{dir}/kubeconfig\"\nnamespace = \"{}\"\n\
             [gateway]\nurl = \"{gateway_url}\"\ntoken_file = \"{dir}/token\"\nbeat_ms = {}\n\
             [sources]\nlisten = \"127.0.0.1:0\"\nurl = \"http://10.96.0.7:7071\"\n\
             [control]\nlisten = \"127.0.0.1:0\"\n\
             [pod]\nimage = \"registry.example/agent:1\"\n\
             [plan]\nregister_s = {REGISTER_S}\n\
             [telemetry]\nformat = \"text\"\n{}",
            self.namespace,
            BEAT.as_millis(),
            self.more_settings,
        );
        std::fs::write(self.settings(), settings).expect("written");
    }

    fn settings(&self) -> PathBuf {
        self.dir.path().join("wharf.toml")
    }

    /// The daemon's data folder.
    pub(super) fn data(&self) -> PathBuf {
        self.dir.path().join("data")
    }

    fn data_text(&self) -> String {
        self.data().display().to_string()
    }

    /// Starts the daemon on what it left.
    pub(super) fn start(&mut self) {
        self.daemon = Some(Daemon::start(&self.settings(), self.dir.path().join("daemon.log")));
    }

    /// SIGKILL.
    pub(super) fn kill(&mut self) {
        self.daemon.take().expect("a daemon runs").kill();
    }

    /// SIGTERM, and the log must hold.
    pub(super) fn end(&mut self) {
        self.daemon.take().expect("a daemon runs").terminate();
        self.verify();
    }

    /// `wharf verify` on the stopped daemon's folder.
    pub(super) fn verify(&self) {
        let verified = wharf(&["verify", "--dir", &self.data_text()]);
        let said = String::from_utf8_lossy(&verified.stdout).into_owned() + &String::from_utf8_lossy(&verified.stderr);
        assert!(verified.status.success(), "{said}");
    }

    /// The log of the stopped daemon, a JSON document a record.
    pub(super) fn records(&self, subject: &str) -> Vec<Value> {
        let read = wharf(&["log", "--dir", &self.data_text(), "--format", "json", subject]);
        assert!(read.status.success(), "{}", String::from_utf8_lossy(&read.stderr));
        let text = String::from_utf8(read.stdout).expect("UTF-8");
        text.lines().map(|line| serde_json::from_str(line).expect("a JSON document a line")).collect()
    }

    /// Waits until the condition holds.
    #[track_caller]
    pub(super) fn until<'a, F>(&'a mut self, what: &'a str, holds: impl Fn(&'a Self) -> F + 'a) -> impl Future<Output = ()> + 'a
    where
        F: Future<Output = bool> + 'a,
    {
        let caller = std::panic::Location::caller();
        self.daemon.as_mut().expect("a daemon runs").must_run();
        let stage: &'a Self = self;
        async move {
            let begun = wharfinger::clock::now();
            while !holds(stage).await {
                if begun.elapsed() > LIMIT {
                    panic!("{caller}: waited for \"{what}\" in vain; reported: {:?}\n{}", stage.gateway.reported(), stage.evidence());
                }
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        }
    }

    /// What the daemon said and recorded: for a story that hangs. Ends the daemon, whose folder is read.
    fn evidence(&self) -> String {
        let Some(daemon) = &self.daemon else { return String::new() };
        daemon.kill_now();
        let log = wharf(&["log", "--dir", &self.data_text()]);
        let log = String::from_utf8_lossy(&log.stdout).into_owned();
        let last: Vec<&str> = log.lines().rev().take(60).collect();
        format!("{}\n{}", daemon.lines(), last.into_iter().rev().collect::<Vec<_>>().join("\n"))
    }

    /// Waits until the host is live for the gateway.
    pub(super) async fn until_live(&mut self, app: &str, host: &str) {
        self.until("the host goes live", |stage| std::future::ready(stage.is_live(app, host))).await;
    }

    /// Waits until the app's wanted host is reported failed, and gives the report's words.
    pub(super) async fn until_failed(&mut self, app: &str) -> String {
        self.until("the release is reported failed", |stage| std::future::ready(stage.is_failed(app))).await;
        let seen = self.gateway.lock().seen.reports.clone();
        seen.iter().rev().find(|report| report.app == app && report.state == "failed").expect("a report").why.clone()
    }

    /// Waits until there is neither pod nor Secret of the host.
    pub(super) async fn until_nothing_left(&mut self, host: &str) {
        self.until("nothing is left of it", |stage| async {
            stage.pod(host).await.is_none() && stage.get("secrets", &format!("{host}-env")).await.is_none()
        })
        .await;
    }

    /// Waits until the host has a pod of another uid that is registered.
    pub(super) async fn until_back(&mut self, host: &str, former: &str) {
        self.until("it is back under its name", |stage| async {
            stage.uid(host).await.is_some_and(|uid| uid != former) && stage.is_registered(host)
        })
        .await;
    }

    /// Lets some beats pass: to see that nothing happens.
    pub(super) async fn beats(&mut self, count: u32) {
        let before = self.gateway.lock().seen.beats.len();
        let wanted = before + count as usize;
        self.until("beats pass", |stage| std::future::ready(stage.gateway.lock().seen.beats.len() >= wanted)).await;
    }

    pub(super) fn is_live(&self, app: &str, host: &str) -> bool {
        self.gateway.app(app).is_some_and(|app| app.live_host.as_deref() == Some(host))
    }

    pub(super) fn is_failed(&self, app: &str) -> bool {
        self.gateway.app(app).is_some_and(|app| app.failed)
    }

    pub(super) fn is_registered(&self, host: &str) -> bool {
        self.gateway.lock().is_registered(host, self.clock.now_us())
    }

    /// Wants the app's next release, whose pods follow this script.
    pub(super) fn deploy(&self, app: &str, script: Script) -> String {
        let name = app.split_once('/').map_or(app, |(_, name)| name);
        let release = self.gateway.app(app).map_or(1, |app| app.release + 1);
        self.scripts.set(&format!("{name}-r{release}-"), script);
        self.gateway.deploy(app)
    }

    async fn get(&self, resource: &str, name: &str) -> Option<Value> {
        self.requests.get(&format!("/api/v1/namespaces/{}/{resource}/{name}", self.namespace)).await.ok()
    }

    pub(super) async fn pod(&self, host: &str) -> Option<Value> {
        self.get("pods", host).await
    }

    pub(super) async fn uid(&self, host: &str) -> Option<String> {
        self.pod(host).await?["metadata"]["uid"].as_str().map(str::to_owned)
    }

    /// The claim of that name.
    pub(super) async fn claim(&self, name: &str) -> Option<Value> {
        self.get("persistentvolumeclaims", name).await
    }

    /// Where the daemon's control listener is.
    pub(super) async fn control(&mut self) -> String {
        const LISTENS: &str = "listener=\"control.listen\" address=";
        self.until("the daemon listens", |stage| std::future::ready(stage.lines().contains(LISTENS))).await;
        let lines = self.lines();
        let (_, address) = lines.rsplit_once(LISTENS).expect("it listens");
        format!("http://{}", address.split_whitespace().next().unwrap_or_default())
    }

    /// Waits until the daemon is ready.
    pub(super) async fn ready(&mut self) {
        let control = self.control().await;
        let client = client();
        let asked = || client.get(format!("{control}/readyz")).send();
        self.until("the daemon is ready", |_| async { asked().await.is_ok_and(|answer| answer.status().is_success()) }).await;
    }

    fn lines(&self) -> String {
        self.daemon.as_ref().map(Daemon::lines).unwrap_or_default()
    }

    /// How many writes the cluster has seen on a session's objects.
    pub(super) fn writes_of(&self, session: &str) -> usize {
        let Cluster::Embedded { world, .. } = &self.cluster else { return 0 };
        let writes = ["create", "update", "patch", "delete"];
        let all = world.api.audit().since(0).into_iter();
        all.filter(|entry| {
            writes.contains(&entry.verb) && entry.subresource.is_empty() && entry.name.ends_with(&format!("session-{session}"))
        })
        .filter(|entry| ["pods", "services", "persistentvolumeclaims"].contains(&entry.resource))
        .count()
    }

    /// Whether the host's app runs and nobody deletes it.
    pub(super) async fn serves(&self, host: &str) -> bool {
        let Some(pod) = self.pod(host).await else { return false };
        pod["status"]["phase"] == "Running" && pod["metadata"]["deletionTimestamp"].is_null()
    }

    pub(super) fn nodes(&self) -> &Nodes {
        match &self.cluster {
            Cluster::Embedded { world, .. } => &world.nodes,
            Cluster::Real { nodes, .. } => nodes,
        }
    }

    /// How often a pod of that name was created, by the cluster's own history.
    pub(super) fn creates_of(&self, host: &str) -> usize {
        match &self.cluster {
            Cluster::Embedded { world, .. } => {
                let made = world.api.audit().since(0).into_iter();
                made.filter(|entry| {
                    entry.resource == "pods"
                        && entry.subresource.is_empty()
                        && entry.verb == "create"
                        && entry.name == host
                        && entry.code == 201
                })
                .count()
            }
            Cluster::Real { plane, .. } => {
                let made = plane.audit_entries(|entry| {
                    let object = &entry["objectRef"];
                    object["namespace"] == self.namespace.as_str()
                        && object["resource"] == "pods"
                        && object["subresource"].is_null()
                        && entry["verb"] == "create"
                        && object["name"] == host
                        && entry["responseStatus"]["code"] == 201
                });
                made.len()
            }
        }
    }

    /// What the daemon has said so far.
    pub(super) fn said(&self) -> String {
        self.daemon.as_ref().map(Daemon::lines).unwrap_or_default()
    }

    /// What `/readyz` answers.
    pub(super) async fn readiness(&self) -> Value {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let url = format!("http://{}/readyz", self.listener("control.listen"));
        reqwest::get(url).await.expect("an answer").json().await.expect("JSON")
    }

    /// The address of a listener, as the daemon's lines say it.
    pub(super) fn listener(&self, key: &str) -> String {
        let lines = self.daemon.as_ref().expect("a daemon runs").lines();
        let said = lines.lines().rev().find(|line| line.contains("listening") && line.contains(key)).expect("it says where it listens");
        let address = said.split("address=").nth(1).expect("an address").split_whitespace().next().expect("an address");
        address.to_owned()
    }

    /// A package as a pod would fetch it now.
    pub(super) async fn package(&self, app: &str) -> u16 {
        let digest = self.gateway.app(app).expect("the app is known").sha256();
        let url = format!("http://{}/sources/{digest}", self.listener("sources.listen"));
        let _ = rustls::crypto::ring::default_provider().install_default();
        reqwest::get(url).await.expect("an answer").status().as_u16()
    }
}
