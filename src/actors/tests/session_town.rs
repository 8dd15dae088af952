//! A town that serves sessions: calls as a caller makes them, and what of a session is on the cluster.

use std::sync::Arc;

use super::support::Town;
use crate::actors::{Called, NotCalled};
use crate::config::{Settings, Switch};
use crate::events::kinds::session::{SessionAsked, SessionDeleteAsked};
use crate::events::mem_log::MemLog;
use crate::events::record::Record;
use crate::ids::{Seq, SessionId, Subject, Tenant, Word};
use crate::run::recover::{Recovered, fold_on};
use crate::run::verify::verify_decisions;
use crate::session::state::Session;
use crate::session::view::{Answer, State, answer, view};
use crate::sim::api::DAEMON;

pub(super) fn id(text: &str) -> SessionId {
    SessionId::new(text).expect("an id")
}

pub(super) fn ask() -> SessionAsked {
    SessionAsked { by: Word::new("test"), tenant: Tenant::new("acme").expect("a tenant"), force_after_us: None }
}

pub(super) fn delete(keep_workspace: bool) -> SessionDeleteAsked {
    SessionDeleteAsked { by: Word::new("test"), keep_workspace, force_after_us: None }
}

fn serve(settings: &mut Settings) {
    let sessions = &mut settings.sessions;
    sessions.serve = Switch::On;
    sessions.image = format!("registry.test/session@sha256:{}", "5a".repeat(32));
    sessions.frontend_selector = vec!["app=front".to_owned()];
    sessions.runtime_class.clone_from(&settings.pod.runtime_class);
    sessions.grace_s = 5;
}

impl Town {
    /// A town with sessions, started and listed.
    pub(super) async fn of_sessions(change: impl FnOnce(&mut Settings)) -> Self {
        let mut town = Self::with(|settings| {
            serve(settings);
            change(settings);
        })
        .await;
        town.start_listed().await;
        town
    }

    /// Begins an incarnation, and waits until sessions can be asked for.
    pub(super) async fn start_listed(&mut self) {
        self.start().await;
        self.until("sessions are ready", |town| town.live().sessions().is_ready()).await;
    }

    pub(super) fn session(&self, name: &str) -> Arc<Session> {
        self.live().sessions().state(&id(name)).unwrap_or_default()
    }

    pub(super) fn state_of(&self, name: &str) -> State {
        view(&self.session(name)).state
    }

    pub(super) async fn create(&self, name: &str) -> Result<Called, NotCalled> {
        self.live().sessions().create(&id(name), ask()).await
    }

    pub(super) async fn delete(&self, name: &str, keep_workspace: bool) -> Result<Called, NotCalled> {
        self.live().sessions().delete(&id(name), delete(keep_workspace), None).await
    }

    /// Asks for a session and waits for the answer, as a caller does.
    pub(super) async fn bring(&self, name: &str) -> Answer {
        let called = self.create(name).await.expect("the call is made");
        let demand = called.demand.unwrap_or_default();
        let mut changes = self.live().sessions().changes(&id(name)).expect("it is known");
        loop {
            let answered = answer(&changes.borrow_and_update(), demand);
            if answered != Answer::Wait {
                return answered;
            }
            if tokio::time::timeout(std::time::Duration::from_secs(120), changes.changed()).await.is_err() {
                panic!("{name} does not come: {:?}\n{}", self.state_of(name), self.story());
            }
        }
    }

    /// The objects of sessions that are there, as `resource name`.
    pub(super) fn objects(&self) -> Vec<String> {
        let mut found = Vec::new();
        for resource in ["persistentvolumeclaims", "pods", "services"] {
            for object in self.world.api.objects(resource, Some(&self.world.namespace)) {
                found.push(format!("{resource} {}", object["metadata"]["name"].as_str().unwrap_or_default()));
            }
        }
        found
    }

    /// Requests of the daemon for objects in the sessions' namespace that read, without watches and what a list begins with.
    pub(super) fn reads(&self, resource: &str) -> Vec<String> {
        let all = self.world.api.audit().since(0).into_iter();
        let reads = all.filter(|entry| entry.user == DAEMON && matches!(entry.verb, "get" | "list") && entry.resource == resource);
        reads.map(|entry| format!("{} {} {}", entry.verb, entry.resource, entry.name)).collect()
    }

    /// What holds at rest: every decision of the log is planned again as it was, and the log alone gives the states.
    pub(super) fn assert_verifies(&self) {
        let reader = MemLog::open_for_reading(&self.disk).expect("the log can be read");
        let verified = verify_decisions(&*reader).expect("the store answers");
        assert!(verified.difference.is_none() && verified.unverifiable.is_none(), "{verified:?}\n{}", self.story());
        let mut recovered = Recovered::default();
        fold_on(&mut recovered, &*reader, Seq(1), reader.head()).expect("it can be folded");
        for (id, state) in self.live().sessions().registry().states() {
            assert_eq!(recovered.sessions.states.get(&id), Some(&*state), "{id}");
        }
    }

    pub(super) fn records_of_session(&self, name: &str) -> Vec<Record> {
        let subject = Subject::Session(id(name));
        self.records().into_iter().filter(|record| record.header.subject == subject).collect()
    }
}
