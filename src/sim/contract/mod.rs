//! What every API server we run on must do, asked through a `::kube::Client` alone: the embedded one is held to it by its unit
//! tests, a real kube-apiserver by the cluster tests. Knows neither of them.
//!
//! The namespace must exist, be empty and be nobody else's. Pods are given a scheduler that does not exist, so that nothing
//! touches them.

mod objects;
mod pods;
mod refusals;
mod watching;
mod writes;

use std::sync::Arc;
use std::time::Duration;

use ::kube::Client;
use ::kube::client::Body;
use futures_util::StreamExt as _;
use futures_util::stream::BoxStream;
use http::{HeaderMap, Method, Request};
use serde_json::{Value, json};

/// How long a case waits for what must come.
const PATIENCE: Duration = Duration::from_secs(30);

/// A promise that was not kept: which, what was expected, what came.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Broken(pub String);

type Kept = Result<(), Broken>;

/// The API server under test.
#[derive(Clone)]
pub struct Contract {
    /// A client that may do everything in the namespace, and read cluster-wide.
    pub client: Client,
    /// An empty namespace.
    pub namespace: String,
    /// Forgets the server's history, if that can be done; without it the 410 cases are left out.
    pub compact: Option<Arc<dyn Fn() + Send + Sync>>,
    /// Whether to wait minutes for bookmarks.
    pub slow: bool,
}

impl std::fmt::Debug for Contract {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Contract").field("namespace", &self.namespace).finish_non_exhaustive()
    }
}

/// One answer, whole.
#[derive(Debug)]
struct Answer {
    status: u16,
    headers: HeaderMap,
    body: Value,
    text: String,
}

impl Contract {
    /// Runs all cases, one after the other. Returns their names.
    ///
    /// # Errors
    /// With all cases that are broken, one a line.
    pub async fn check(&self) -> Result<Vec<&'static str>, Broken> {
        let (mut passed, mut broken) = (Vec::new(), Vec::new());
        macro_rules! cases {
            ($($module:ident :: $case:ident),* $(,)?) => {$(
                let name = stringify!($case);
                match Box::pin($module::$case(self)).await {
                    Ok(()) => passed.push(name),
                    Err(why) => broken.push(format!("{name}: {why}")),
                }
            )*};
        }
        cases!(
            objects::what_is_created_is_read,
            objects::a_taken_name_is_a_conflict,
            objects::what_is_not_there_is_not_found,
            objects::bad_objects_are_refused,
            objects::a_dry_run_stores_nothing,
            objects::selectors_select,
            objects::pages_show_one_moment,
            objects::metadata_alone_can_be_read,
            objects::a_list_from_the_future_times_out,
            writes::an_update_is_bound_to_its_version,
            writes::patches_merge,
            writes::a_delete_is_bound_to_its_object,
            writes::finalizers_hold,
            writes::a_lease_is_never_updated_blindly,
            watching::a_watch_goes_on_from_a_list,
            watching::a_selected_watch_sees_objects_come_and_go,
            watching::a_watch_from_zero_begins_with_what_is,
            watching::a_watch_from_the_future_is_silent,
            watching::an_invalid_version_is_refused,
            watching::metadata_alone_can_be_watched,
            watching::a_streamed_list_ends_with_a_mark,
            watching::an_old_version_is_expired,
            watching::bookmarks_come,
            refusals::bad_pods_are_blamed_on_their_fields,
            refusals::policies_are_filled_in_and_checked,
            pods::a_pod_is_filled_in,
            pods::a_pods_spec_is_fixed,
            pods::status_is_a_subresource,
            pods::a_pod_is_bound_once,
            pods::an_unscheduled_pod_goes_at_once,
            pods::a_bound_pod_goes_with_grace,
            pods::an_ended_pod_goes_at_once,
            pods::an_evicted_pod_says_so,
            pods::logs_name_their_container,
        );
        if broken.is_empty() { Ok(passed) } else { Err(Broken(broken.join("\n"))) }
    }

    fn path(&self, plural: &str) -> String {
        match plural {
            "leases" => format!("/apis/coordination.k8s.io/v1/namespaces/{}/leases", self.namespace),
            "networkpolicies" => format!("/apis/networking.k8s.io/v1/namespaces/{}/networkpolicies", self.namespace),
            core => format!("/api/v1/namespaces/{}/{core}", self.namespace),
        }
    }

    async fn ask(&self, method: &str, path: &str, headers: &[(&str, &str)], body: Option<&Value>) -> Result<Answer, Broken> {
        let method = Method::from_bytes(method.as_bytes()).map_err(broken)?;
        let mut request = Request::builder().method(method).uri(path);
        if !headers.iter().any(|(name, _)| *name == "content-type") {
            request = request.header("content-type", "application/json");
        }
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let body = body.map(|body| body.to_string().into_bytes()).unwrap_or_default();
        let response = self.client.send(request.body(Body::from(body)).map_err(broken)?);
        let response = tokio::time::timeout(PATIENCE, response).await.map_err(|_| Broken(format!("{path}: no answer")))?.map_err(broken)?;
        let (parts, body) = response.into_parts();
        let bytes = body.collect_bytes().await.map_err(broken)?;
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let body = serde_json::from_slice(&bytes).unwrap_or_default();
        Ok(Answer { status: parts.status.as_u16(), headers: parts.headers, body, text })
    }

    async fn get(&self, plural: &str, name: &str) -> Result<Answer, Broken> {
        self.ask("GET", &format!("{}/{name}", self.path(plural)), &[], None).await
    }

    async fn create(&self, plural: &str, object: &Value) -> Result<Value, Broken> {
        self.ask("POST", &self.path(plural), &[], Some(object)).await?.expect(201)
    }

    async fn delete(&self, plural: &str, name: &str, options: &Value) -> Result<Answer, Broken> {
        self.ask("DELETE", &format!("{}/{name}", self.path(plural)), &[], Some(options)).await
    }

    async fn list(&self, plural: &str, query: &str) -> Result<Answer, Broken> {
        self.ask("GET", &format!("{}?{query}", self.path(plural)), &[], None).await
    }

    /// Opens a watch; its events come as they are, one a line.
    async fn watch(&self, plural: &str, query: &str, accept: &str) -> Result<Watching, Broken> {
        let path = format!("{}?watch=true&{query}", self.path(plural));
        let mut request = Request::get(path);
        if !accept.is_empty() {
            request = request.header("accept", accept);
        }
        let request = request.body(Vec::new()).map_err(broken)?;
        let events = tokio::time::timeout(PATIENCE, self.client.request_events::<Value>(request)).await.map_err(broken)?.map_err(broken)?;
        Ok(Watching { events: Box::pin(events.map(|event| event.map_err(broken).and_then(shown))) })
    }

    fn pod(&self, name: &str) -> Value {
        let security = json!({"allowPrivilegeEscalation": false, "capabilities": {"drop": ["ALL"]}});
        json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": name, "namespace": self.namespace, "labels": {"case": name}},
            "spec": {
                "schedulerName": "nobody",
                "automountServiceAccountToken": false,
                "terminationGracePeriodSeconds": 20,
                "restartPolicy": "Never",
                "securityContext": {"runAsNonRoot": true, "runAsUser": 1000, "seccompProfile": {"type": "RuntimeDefault"}},
                "initContainers": [{"name": "install", "image": "example.com/i:1", "securityContext": security}],
                "containers": [{"name": "app", "image": "example.com/i:1", "securityContext": security}],
            },
        })
    }

    fn secret(name: &str, labels: &Value) -> Value {
        json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name, "labels": labels}, "stringData": {"env": "A=1"}})
    }
}

impl Answer {
    fn expect(self, status: u16) -> Result<Value, Broken> {
        if self.status == status { Ok(self.body) } else { Err(Broken(format!("expected {status}, came {}: {}", self.status, self.text))) }
    }

    /// The status, reason and message of a refusal.
    fn refusal(&self) -> (u16, &str, &str) {
        (self.status, self.body["reason"].as_str().unwrap_or_default(), self.body["message"].as_str().unwrap_or_default())
    }
}

/// An open watch.
struct Watching {
    events: BoxStream<'static, Result<(String, Value), Broken>>,
}

impl Watching {
    /// The next event that is no bookmark.
    async fn next(&mut self) -> Result<(String, Value), Broken> {
        loop {
            let event = self.any(PATIENCE).await?.ok_or_else(|| Broken("the watch ended early".to_owned()))?;
            if event.0 != "BOOKMARK" {
                return Ok(event);
            }
        }
    }

    /// The next event of any kind; `None` at the end.
    async fn any(&mut self, within: Duration) -> Result<Option<(String, Value)>, Broken> {
        let event = tokio::time::timeout(within, self.events.next()).await;
        event.map_err(|_| Broken(format!("no event within {within:?}")))?.transpose()
    }

    /// The next events as `KIND name`.
    async fn kinds(&mut self, count: usize) -> Result<Vec<String>, Broken> {
        let mut kinds = Vec::new();
        for _ in 0..count {
            let (kind, object) = self.next().await?;
            kinds.push(format!("{kind} {}", object["metadata"]["name"].as_str().unwrap_or_default()));
        }
        Ok(kinds)
    }
}

fn shown(event: ::kube::core::WatchEvent<Value>) -> Result<(String, Value), Broken> {
    let event = serde_json::to_value(event).map_err(broken)?;
    Ok((event["type"].as_str().unwrap_or_default().to_owned(), event["object"].clone()))
}

fn broken(error: impl std::fmt::Display) -> Broken {
    Broken(error.to_string())
}

/// Both have to be equal.
fn same<T: PartialEq + std::fmt::Debug>(what: &str, came: &T, expected: &T) -> Kept {
    if came == expected { Ok(()) } else { Err(Broken(format!("{what}: expected {expected:?}, came {came:?}"))) }
}

/// It has to be so.
fn holds(what: &str, so: bool, evidence: &impl std::fmt::Debug) -> Kept {
    if so { Ok(()) } else { Err(Broken(format!("{what}: {evidence:?}"))) }
}
