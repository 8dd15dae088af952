//! One request and its answer: faults, latency, dispatch, headers, audit.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response, StatusCode, header};
use http_body_util::{BodyExt as _, StreamBody};
use serde_json::{Value, json};

use super::audit::Entry;
use super::body::{Answer, ApiBody, Content, cut_off, endless, reset, whole};
use super::call::{Call, Verb};
use super::faults::{Action, Canned};
use super::refusal::Refusal;
use super::remove::{DeleteOptions, bad_option};
use super::{ClusterApi, Inner, stamps};

const AUDIT_ID: &str = "audit-id";

impl ClusterApi {
    /// Answers one request of a user.
    ///
    /// # Errors
    /// When a fault breaks the connection.
    pub async fn exchange(&self, user: &str, request: Request<Bytes>) -> io::Result<Response<ApiBody>> {
        let inner = &self.0;
        let asked_us = inner.options.clock.now_us();
        let text = |name: &str| request.headers().get(name).and_then(|value| value.to_str().ok()).unwrap_or_default().to_owned();
        let audit_id = Some(text(AUDIT_ID)).filter(|id| !id.is_empty());
        let audit_id = audit_id.unwrap_or_else(|| stamps::uid(&inner.options.entropy));
        pause(inner.options.latency).await;
        if let Some(answer) = plain_path(request.uri().path()) {
            return response(Ok(answer), &audit_id, whole);
        }
        let call = match Call::parse(request.method(), request.uri().path(), request.uri().query().unwrap_or_default()) {
            Ok(call) => call,
            Err(refusal) => return response(Err(refusal), &audit_id, whole),
        };
        let mut entry = Entry { asked_us, ..entry(user, &audit_id, &call, request.body()) };
        let met = inner.faults.take(user, &call, &entry.name);
        entry.fault = met.name;
        pause(met.delay).await;
        let mut shape: fn(Bytes) -> ApiBody = whole;
        match &met.action {
            Some(Action::Answer(canned)) => {
                entry.code = canned.status;
                inner.record(entry, None);
                return canned_response(canned, &audit_id);
            }
            Some(Action::DropBefore) => {
                inner.record(entry, None);
                return Err(reset());
            }
            Some(Action::HangBefore) => {
                inner.record(entry, None);
                return std::future::pending().await;
            }
            Some(Action::Mute) => {
                entry.code = 200;
                inner.record(entry, None);
                let silent = Canned { status: 200, headers: Vec::new(), body: Vec::new(), open: true };
                return canned_response(&silent, &audit_id);
            }
            Some(Action::CutBody) => shape = cut_off,
            Some(Action::Delay(_) | Action::DropAfter | Action::HangAfter | Action::DelayAfter(_)) | None => {}
        }
        let (accept, media_type) = (text("accept"), text("content-type"));
        let result = inner.dispatch(user, &call, &accept, &media_type, request.body());
        if let Err(refusal) = &result {
            pause(refusal.after).await;
        }
        inner.record(entry, Some(&result));
        match met.action {
            Some(Action::DropAfter) => Err(reset()),
            Some(Action::HangAfter) => std::future::pending().await,
            Some(Action::DelayAfter(delay)) => {
                pause(delay).await;
                response(result, &audit_id, shape)
            }
            _ => response(result, &audit_id, shape),
        }
    }
}

impl Inner {
    fn dispatch(self: &Arc<Self>, user: &str, call: &Call, accept: &str, media_type: &str, body: &[u8]) -> Result<Answer, Refusal> {
        if !(accept.is_empty() || accept.contains("application/json") || accept.contains("*/*")) {
            return Err(not_acceptable());
        }
        if matches!(call.verb, Verb::Create | Verb::Update) && !media_type.starts_with("application/json") {
            return Err(Refusal::body_type());
        }
        if call.verb == Verb::Create && call.is_dry() && call.parameter("dryRun") != Some("All") {
            let why = format!("{}: supported values: \"All\"", json!([call.parameter("dryRun")]));
            return Err(bad_option("CreateOptions", "dryRun", &why));
        }
        let metadata_only = accept.contains("as=PartialObjectMetadata");
        match (call.verb, call.subresource.as_str()) {
            (Verb::Get, "log") => self.log(call),
            (Verb::Get, _) => self.get(call, metadata_only),
            (Verb::List, _) => self.list(call, metadata_only),
            (Verb::Watch, _) => self.watch(user, call, metadata_only),
            (Verb::Create, "binding") => self.bind(call, body),
            (Verb::Create, "eviction") => self.evict(call, body),
            (Verb::Create, _) => self.create(call, body),
            (Verb::Update, _) => self.update(call, body),
            (Verb::Patch, _) => self.patch(call, media_type, body),
            (Verb::Delete, _) => self.delete(call, body),
            (Verb::DeleteCollection, _) => self.delete_collection(call, body),
        }
    }

    fn record(&self, mut entry: Entry, result: Option<&Result<Answer, Refusal>>) {
        entry.time_us = self.options.clock.now_us();
        match result {
            Some(Ok(answer)) => {
                entry.code = answer.code;
                entry.object.clone_from(&answer.object);
                entry.unknown_fields.clone_from(&answer.unknown);
                // A generated name is known only now.
                if entry.name.is_empty() {
                    let named = answer.object.as_ref().and_then(|object| object["metadata"]["name"].as_str());
                    entry.name = named.unwrap_or_default().to_owned();
                }
            }
            Some(Err(refusal)) => entry.code = refusal.code,
            None => {}
        }
        if let Some(witness) = self.witness.get() {
            witness.requested(&entry);
        }
        self.audit.push(entry);
    }
}

/// The audit entry of a call, before its outcome.
fn entry(user: &str, audit_id: &str, call: &Call, body: &[u8]) -> Entry {
    let body: Value = if call.verb.writes() { serde_json::from_slice(body).unwrap_or_default() } else { Value::Null };
    let options = match (call.verb, call.subresource.as_str()) {
        (Verb::Delete | Verb::DeleteCollection, _) => DeleteOptions::parse(call, &body),
        (Verb::Create, "eviction") => DeleteOptions::parse(call, &body["deleteOptions"]),
        (Verb::Update | Verb::Patch, _) => {
            let given = |field: &str| body["metadata"][field].as_str().map(str::to_owned);
            DeleteOptions { uid: given("uid"), version: given("resourceVersion"), grace_s: None, dry: call.is_dry() }
        }
        _ => DeleteOptions { dry: call.is_dry(), ..DeleteOptions::default() },
    };
    let named = body["metadata"]["name"].as_str().filter(|_| call.name.is_empty());
    Entry {
        asked_us: 0,
        time_us: 0,
        user: user.to_owned(),
        verb: call.verb.as_str(),
        resource: call.resource.plural,
        subresource: call.subresource.clone(),
        namespace: call.namespace.clone().unwrap_or_default(),
        name: named.map_or_else(|| call.name.clone(), str::to_owned),
        audit_id: audit_id.to_owned(),
        uid_precondition: options.uid,
        version_precondition: options.version,
        grace_s: options.grace_s,
        dry_run: options.dry,
        code: 0,
        fault: None,
        unknown_fields: Vec::new(),
        object: None,
    }
}

/// Paths that are no objects: what a client asks to see who it talks to.
fn plain_path(path: &str) -> Option<Answer> {
    match path {
        "/version" => Some(Answer::json(
            200,
            &json!({"major": "1", "minor": "36", "gitVersion": "v1.36.2", "gitCommit": "", "gitTreeState": "",
                "buildDate": "1970-01-01T00:00:00Z", "goVersion": "go1.26.6", "compiler": "gc", "platform": "linux/amd64"}),
        )),
        "/healthz" | "/livez" | "/readyz" => Some(Answer::text(200, "ok".to_owned())),
        _ => None,
    }
}

fn not_acceptable() -> Refusal {
    let message = "406: Not Acceptable\n\nAvailable representations: application/json, application/yaml, \
                   application/vnd.kubernetes.protobuf, application/json;stream=watch, \
                   application/vnd.kubernetes.protobuf;stream=watch";
    Refusal::new(406, "NotAcceptable", message, json!({}))
}

async fn pause(time: Duration) {
    if !time.is_zero() {
        tokio::time::sleep(time).await;
    }
}

fn response(result: Result<Answer, Refusal>, audit_id: &str, shape: fn(Bytes) -> ApiBody) -> io::Result<Response<ApiBody>> {
    let mut builder = Response::builder().header(AUDIT_ID, audit_id);
    let (code, media_type, body) = match result {
        Ok(Answer { code, content, unknown, .. }) => {
            for path in unknown {
                builder = builder.header(header::WARNING, format!("299 - \"unknown field \\\"{path}\\\"\""));
            }
            match content {
                Content::Json(bytes) => (code, "application/json", shape(bytes)),
                Content::Text(text) => (code, "text/plain", shape(text.into())),
                Content::Watch(watch) => (code, "application/json", StreamBody::new(watch.into_stream()).boxed_unsync()),
            }
        }
        // A watch that is too old is told so by an event, not by the status.
        Err(refusal) if refusal.code == 410 && refusal.body["message"].as_str().is_some_and(|text| text.starts_with("too old")) => {
            let line = format!("{{\"type\":\"ERROR\",\"object\":{}}}\n", refusal.body);
            (200, "application/json", whole(line))
        }
        Err(refusal) => {
            for (name, value) in refusal.headers {
                builder = builder.header(name, value);
            }
            (refusal.code, "application/json", shape(refusal.body.to_string().into()))
        }
    };
    finish(builder, code, media_type, body)
}

fn canned_response(canned: &Canned, audit_id: &str) -> io::Result<Response<ApiBody>> {
    let mut builder = Response::builder().header(AUDIT_ID, audit_id);
    for (name, value) in &canned.headers {
        builder = builder.header(*name, value);
    }
    let body = if canned.open { endless(canned.body.clone()) } else { whole(canned.body.clone()) };
    finish(builder, canned.status, "", body)
}

fn finish(mut builder: http::response::Builder, code: u16, media_type: &str, body: ApiBody) -> io::Result<Response<ApiBody>> {
    if !media_type.is_empty() {
        builder = builder.header(header::CONTENT_TYPE, media_type);
    }
    let code = StatusCode::from_u16(code).map_err(io::Error::other)?;
    builder.status(code).body(body).map_err(io::Error::other)
}
