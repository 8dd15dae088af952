//! A town: an embedded world, a log on a disk in memory, and the daemon in between. Nothing here asserts but what holds always.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::actors::Ended;
use crate::app::state::App;
use crate::config::Settings;
use crate::events::erase::{Erasure, NotErased};
use crate::events::log::{AppendError, EventLog, LogReader, OpenOptions, Opened};
use crate::events::mem_log::{MemDisk, MemLog, Unsynced};
use crate::events::record::{Event, Reaction, Record};
use crate::events::retention::{NotRemoved, Removed};
use crate::events::stored::Body;
use crate::ids::{AppId, HostName, RecordId, Seq, Subject, hex};
use crate::kube::call::audit_id;
use crate::run::embedded::{outside_inline, settings};
use crate::run::{Incarnation, Outside};
use crate::sim::api::{DAEMON, Entry};
use crate::sim::world::{World, WorldOptions};

/// For each record that became durable: how many requests the API server had been asked by then.
type Durable = Arc<Mutex<BTreeMap<Seq, usize>>>;

pub(crate) struct Town {
    pub(crate) world: World,
    pub(crate) disk: MemDisk,
    pub(crate) outside: Outside,
    live: Option<Incarnation>,
    durable: Durable,
    _dir: tempfile::TempDir,
}

/// A log that notes what the API server had been asked when each append came back.
struct Witness {
    log: MemLog,
    api: crate::sim::api::ClusterApi,
    durable: Durable,
}

impl EventLog for Witness {
    fn append(&mut self, reactions: &[Reaction]) -> Result<Vec<Vec<Record>>, AppendError> {
        let appended = self.log.append(reactions)?;
        let asked = self.api.audit().len();
        let mut durable = self.durable.lock().unwrap();
        durable.extend(appended.iter().flatten().map(|record| (record.header.seq, asked)));
        Ok(appended)
    }

    fn erase(&mut self, erasure: &Erasure) -> Result<Record, NotErased> {
        self.log.erase(erasure)
    }

    fn remove(&mut self, upto: Seq) -> Result<Option<Removed>, NotRemoved> {
        self.log.remove(upto)
    }

    fn reader(&self) -> Arc<dyn LogReader> {
        self.log.reader()
    }

    fn close(self: Box<Self>) -> std::io::Result<()> {
        Box::new(self.log).close()
    }
}

pub(crate) fn app(name: &str) -> AppId {
    AppId::parse(name).expect("an app's name")
}

impl Town {
    pub(crate) async fn new() -> Self {
        Self::with(|_| {}).await
    }

    pub(crate) async fn with(change: impl FnOnce(&mut Settings)) -> Self {
        let dir = tempfile::tempdir().expect("a folder");
        let world = World::start(WorldOptions { latency: Duration::from_millis(2), ..WorldOptions::default() }).await.expect("a world");
        let mut settings = settings(&world, dir.path());
        change(&mut settings);
        let outside = outside_inline(&world, settings, "token", 7).expect("the data folder is there");
        Self { world, disk: MemDisk::new(), outside, live: None, durable: Durable::default(), _dir: dir }
    }

    /// Begins an incarnation over the disk.
    pub(crate) async fn start(&mut self) -> Opened {
        let options = OpenOptions::new(Subject::Daemon(self.outside.settings.instance().to_owned()));
        let opened = MemLog::open(&self.disk, &self.outside.clock, self.outside.entropy.clone(), &options);
        let (log, opened) = opened.expect("the log opens");
        let witness = Witness { log, api: self.world.api.clone(), durable: Arc::clone(&self.durable) };
        self.live = Some(Incarnation::begin(&self.outside, Box::new(witness)).await.expect("an incarnation"));
        opened
    }

    pub(crate) fn live(&self) -> &Incarnation {
        self.live.as_ref().expect("an incarnation runs")
    }

    /// The machine's power goes.
    pub(crate) async fn crash(&mut self) {
        self.live.take().expect("an incarnation runs").crash().await;
        self.disk.crash(Unsynced::Lost);
    }

    pub(crate) async fn stop(&mut self) {
        self.live.take().expect("an incarnation runs").stop("test").await.expect("the log closes");
    }

    /// Waits for the incarnation's own end, and ends it as the daemon does.
    pub(crate) async fn ended(&mut self) -> Ended {
        let mut live = self.live.take().expect("an incarnation runs");
        let ended = live.ended().await;
        drop(live.stop_and_keep("log_failed").await);
        ended
    }

    pub(crate) async fn run(&self, seconds: u64) {
        tokio::time::sleep(Duration::from_secs(seconds)).await;
    }

    pub(crate) async fn run_ms(&self, ms: u64) {
        tokio::time::sleep(Duration::from_millis(ms)).await;
    }

    /// Runs until it is so, at most ten simulated minutes.
    pub(crate) async fn until(&self, what: &str, is: impl Fn(&Self) -> bool) {
        for _ in 0..60_000 {
            if is(self) {
                return;
            }
            self.run_ms(10).await;
        }
        panic!("not within ten minutes: {what}\n{}", self.story());
    }

    /// Deploys an app and runs until its host is live.
    pub(crate) async fn live_app(&self, name: &str) -> String {
        let host = self.world.gateway.deploy(name);
        self.until("live", |town| town.is_live(name, &host)).await;
        host
    }

    pub(crate) fn is_live(&self, name: &str, host: &str) -> bool {
        self.state(name)
            .is_some_and(|state| state.want.as_ref().and_then(|want| want.live_host.as_ref()).is_some_and(|it| it.as_str() == host))
    }

    pub(crate) fn state(&self, name: &str) -> Option<Arc<App>> {
        self.live().registry().state(&app(name))
    }

    pub(crate) fn host(&self, name: &str, host: &str) -> Option<crate::app::state::Host> {
        self.state(name)?.hosts.get(&HostName::new(host).expect("a host's name")).cloned()
    }

    /// Every record of the log, in order.
    pub(crate) fn records(&self) -> Vec<Record> {
        let reader = MemLog::open_for_reading(&self.disk).expect("the log can be read");
        let mut records = Vec::new();
        reader
            .scan(Seq(1), &mut |item| {
                let stored = item.expect("a sound record");
                let Body::Known(event) = stored.body else { panic!("a record of this build") };
                records.push(Record { header: stored.header, event });
                ControlFlow::Continue(())
            })
            .expect("the log can be read");
        records
    }

    pub(crate) fn records_of(&self, name: &str) -> Vec<Record> {
        let subject = Subject::App(app(name));
        self.records().into_iter().filter(|record| record.header.subject == subject).collect()
    }

    /// How many records of an app are so.
    pub(crate) fn count(&self, name: &str, is: impl Fn(&Event) -> bool) -> usize {
        self.records_of(name).iter().filter(|record| is(&record.event)).count()
    }

    /// How many records of that kind an app has.
    pub(crate) fn kinds(&self, name: &str, kind: &str) -> usize {
        self.count(name, |event| event.kind().name() == kind)
    }

    /// The daemon's writes that changed something, as `verb resource name`.
    pub(crate) fn writes(&self) -> Vec<String> {
        let writes = self.world.api.audit().writes_of(DAEMON).into_iter();
        writes.map(|entry| format!("{} {} {}", entry.verb, entry.resource, entry.name)).collect()
    }

    pub(crate) fn writes_like(&self, like: &str) -> usize {
        self.writes().iter().filter(|write| write.starts_with(like)).count()
    }

    pub(crate) fn pods(&self) -> Vec<String> {
        let pods = self.world.api.objects("pods", Some(&self.world.namespace));
        pods.iter().map(|pod| pod["metadata"]["name"].as_str().unwrap_or_default().to_owned()).collect()
    }

    pub(crate) fn secrets(&self) -> Vec<String> {
        let secrets = self.world.api.objects("secrets", Some(&self.world.namespace));
        secrets.iter().map(|secret| secret["metadata"]["name"].as_str().unwrap_or_default().to_owned()).collect()
    }

    /// Every request of the daemon that was to change something, with its place in the server's history.
    pub(crate) fn sent(&self) -> Vec<(usize, Entry)> {
        let all = self.world.api.audit().since(0).into_iter().enumerate();
        all.filter(|(_, entry)| entry.user == DAEMON && matches!(entry.verb, "create" | "update" | "patch" | "delete")).collect()
    }

    /// What holds always: every write belongs to a step whose record was durable before the server was asked (invariant 1).
    pub(crate) fn assert_append_before_act(&self) {
        let reader = MemLog::open_for_reading(&self.disk).expect("the log can be read");
        let log = reader.id();
        let mut steps = BTreeMap::new();
        for record in self.records() {
            if matches!(record.event, Event::StepIssued(_) | Event::SessionStepIssued(_) | Event::SessionPolicyRepairIssued(_)) {
                for attempt in 1..=64 {
                    let id = audit_id(RecordId { log, seq: record.header.seq }, attempt);
                    steps.insert(hex(&id), record.header.seq);
                }
            }
        }
        let durable = self.durable.lock().unwrap();
        for (place, entry) in self.sent() {
            let id = entry.audit_id.replace('-', "");
            let step = steps.get(&id).unwrap_or_else(|| panic!("{} {} {} has no step", entry.verb, entry.resource, entry.name));
            let asked = durable.get(step).unwrap_or_else(|| panic!("step {step} was never durable"));
            assert!(*asked <= place, "step {step} was sent as request {place}, and was durable only at {asked}");
        }
    }

    /// Everything, for a failure's message.
    pub(crate) fn story(&self) -> String {
        let lines = self.records().into_iter().map(|record| {
            let Record { header, event } = record;
            format!(
                "{} {} {}.{:06} {event:?}",
                header.seq,
                header.subject,
                header.time_us / 1_000_000 % 100_000,
                header.time_us % 1_000_000
            )
        });
        lines
            .chain(self.sent().iter().map(|(at, e)| format!("{at} {} {} {} {}", e.verb, e.resource, e.name, e.code)))
            .collect::<Vec<_>>()
            .join("\n")
    }
}

/// How many of the records are of that kind.
pub(crate) fn is(kind: &'static str) -> impl Fn(&Event) -> bool {
    move |event| event.kind().name() == kind
}
