//! The gateway's state machine: a request and the time in, an answer out. Knows no socket.

use std::collections::BTreeMap;
use std::time::Duration;

use bytes::Bytes;
use serde_json::{Value, json};

use super::app::App;
use super::fault::{Endpoint, Fault};
use super::seen::{Beat, LogsSeen, ReportSeen, Seen, WHY_MAX};

/// A heartbeat may not be larger, bytes.
const BODY_MAX: usize = 4 << 20;

/// One request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GatewayRequest {
    /// `GET` or `POST`.
    pub method: String,
    /// The path.
    pub path: String,
    /// The `Authorization` header.
    pub authorization: String,
    /// The body.
    pub body: Bytes,
}

/// One answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GatewayAnswer {
    /// HTTP status.
    pub status: u16,
    /// `application/json` or `application/gzip`.
    pub media_type: &'static str,
    /// The body.
    pub body: Bytes,
    /// How long it takes.
    pub after: Duration,
    /// Whether it never comes.
    pub hangs: bool,
}

/// Everything the gateway knows.
#[derive(Debug)]
pub struct State {
    /// The world in its answers.
    pub world: String,
    /// The bearer token it takes.
    pub token: String,
    /// The apps, by `org/name`.
    pub apps: BTreeMap<String, App>,
    /// What it was told.
    pub seen: Seen,
    /// Hosts to the pods of that name that run, and when each is connected, microseconds; `None` is never.
    connected: BTreeMap<String, BTreeMap<String, Option<i64>>>,
    faults: Vec<(Endpoint, u32, Fault)>,
}

impl State {
    /// A gateway of a world, without apps.
    #[must_use]
    pub fn new(world: &str, token: &str) -> Self {
        Self {
            world: world.to_owned(),
            token: token.to_owned(),
            apps: BTreeMap::new(),
            seen: Seen::default(),
            connected: BTreeMap::new(),
            faults: Vec::new(),
        }
    }

    /// A pod of this host runs and connects at that time.
    pub fn connect(&mut self, host: &str, uid: &str, at_us: Option<i64>) {
        self.connected.entry(host.to_owned()).or_default().insert(uid.to_owned(), at_us);
    }

    /// It runs no more.
    pub fn disconnect(&mut self, host: &str, uid: &str) {
        if let Some(pods) = self.connected.get_mut(host) {
            pods.remove(uid);
            if pods.is_empty() {
                self.connected.remove(host);
            }
        }
    }

    /// Whether a process of this host is connected.
    #[must_use]
    pub fn is_registered(&self, host: &str, now_us: i64) -> bool {
        let pods = self.connected.get(host).into_iter().flatten();
        pods.into_iter().any(|(_, at_us)| at_us.is_some_and(|at_us| at_us <= now_us))
    }

    /// The next `times` requests of an endpoint meet this.
    pub fn fail(&mut self, endpoint: Endpoint, times: u32, fault: Fault) {
        if times > 0 {
            self.faults.push((endpoint, times, fault));
        }
    }

    /// Takes all faults back.
    pub fn heal(&mut self) {
        self.faults.clear();
    }

    /// Answers a request.
    pub fn handle(&mut self, request: &GatewayRequest, now_us: i64) -> GatewayAnswer {
        if request.authorization != format!("Bearer {}", self.token) {
            return refusal(401, "this token is not known");
        }
        let Some((endpoint, segments)) = route(request) else { return refusal(404, "no such path") };
        let (after, fault) = self.next_fault(endpoint);
        let hangs = fault == Some(Fault::Hang);
        let mut answer = match fault {
            Some(Fault::Status(status)) => refusal(status, "scripted"),
            Some(Fault::Garbage) => answer(200, "application/json", Bytes::from_static(b"<html>bad gateway</html>")),
            Some(Fault::Body(body)) => answer(200, "application/json", body.into()),
            Some(Fault::Hang) => refusal(503, "never seen"),
            fault => self.answer_well(endpoint, &segments, request, fault, now_us),
        };
        answer.after = after;
        answer.hangs = hangs;
        if endpoint == Endpoint::Heartbeat
            && let Some(beat) = self.seen.beats.last_mut().filter(|beat| beat.time_us == now_us)
        {
            beat.answered = answer.status;
        }
        answer
    }

    fn answer_well(
        &mut self,
        endpoint: Endpoint,
        segments: &[&str],
        request: &GatewayRequest,
        fault: Option<Fault>,
        now_us: i64,
    ) -> GatewayAnswer {
        let mut good = match endpoint {
            Endpoint::Heartbeat => self.heartbeat(&request.body, fault.as_ref(), now_us),
            Endpoint::Source => self.source(segments),
            Endpoint::Environment => self.environment(segments),
        };
        match fault {
            Some(Fault::StatusAfter(status)) => refusal(status, "scripted"),
            Some(Fault::CutOff) => {
                good.body.truncate(good.body.len() / 2);
                good
            }
            _ => good,
        }
    }

    /// The delays before the first other fault, and that fault.
    fn next_fault(&mut self, endpoint: Endpoint) -> (Duration, Option<Fault>) {
        let (mut after, mut met) = (Duration::ZERO, None);
        for (at, times, fault) in &mut self.faults {
            if *at != endpoint || *times == 0 {
                continue;
            }
            *times = if *times == u32::MAX { u32::MAX } else { *times - 1 };
            if let Fault::Delay(delay) = fault {
                after += *delay;
            } else {
                met = Some(fault.clone());
                break;
            }
        }
        self.faults.retain(|(_, times, _)| *times > 0);
        (after, met)
    }

    fn heartbeat(&mut self, body: &Bytes, fault: Option<&Fault>, now_us: i64) -> GatewayAnswer {
        if body.len() > BODY_MAX {
            self.seen.violations.push(format!("a heartbeat of {} bytes", body.len()));
            return refusal(413, "too large");
        }
        let Ok(beat) = serde_json::from_slice::<Value>(body) else {
            self.seen.violations.push("a heartbeat that is no JSON".to_owned());
            return refusal(400, "no JSON");
        };
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let reports: Vec<ReportSeen> = beat["reports"].as_array().into_iter().flatten().map(|report| report_of(report, now_us)).collect();
        for report in &reports {
            self.take_report(report, now_us);
        }
        for logs in beat["logs"].as_array().into_iter().flatten() {
            let logs = LogsSeen { time_us: now_us, app: app_of(logs), host: text(&logs["host"]), lines: logs["lines"].clone() };
            if let Some(app) = self.apps.get_mut(&logs.app) {
                app.logs_wanted = false;
            }
            self.seen.logs.push(logs);
        }
        self.seen.beats.push(Beat { time_us: now_us, runner: text(&beat["runner"]), reports: reports.len(), answered: 0 });
        self.seen.reports.extend(reports);
        let world = if fault == Some(&Fault::WrongWorld) { "another-world" } else { self.world.as_str() };
        let shown = |app: &&App| match fault {
            Some(Fault::Empty) => false,
            Some(Fault::Omit(omitted)) => *omitted != format!("{}/{}", app.org, app.name),
            _ => true,
        };
        let wants: Vec<Value> = self.apps.values().filter(shown).map(|app| self.want(app, now_us)).collect();
        answer(200, "application/json", json!({"world": world, "apps": wants}).to_string().into())
    }

    fn want(&self, app: &App, now_us: i64) -> Value {
        json!({"org": app.org, "name": app.name, "release": app.release, "sha256": app.sha256(), "host": app.host,
            "registered": self.is_registered(&app.host, now_us), "failed": app.failed, "logs_wanted": app.logs_wanted,
            "live_host": app.live_host})
    }

    fn take_report(&mut self, report: &ReportSeen, now_us: i64) {
        if report.why.chars().count() > WHY_MAX {
            self.seen.violations.push(format!("a why of {} characters", report.why.chars().count()));
        }
        let registered = self.is_registered(&report.host, now_us);
        let Some(app) = self.apps.get_mut(&report.app) else { return };
        match report.state.as_str() {
            "live" if app.host == report.host && registered => app.live_host = Some(report.host.clone()),
            "failed" if app.host == report.host => app.failed = true,
            // A report of a host that is wanted no more, or a live one that is between two connections.
            "live" | "failed" => {}
            other => self.seen.violations.push(format!("a report of state {other:?}")),
        }
    }

    fn source(&self, segments: &[&str]) -> GatewayAnswer {
        let [org, name, release] = segments else { return refusal(404, "no such path") };
        let app = self.apps.get(&format!("{org}/{name}"));
        match app.and_then(|app| app.source(release.parse().ok()?)) {
            Some(source) => answer(200, "application/gzip", source.clone()),
            None => refusal(404, "no such release"),
        }
    }

    fn environment(&self, segments: &[&str]) -> GatewayAnswer {
        let [org, name] = segments else { return refusal(404, "no such path") };
        match self.apps.get(&format!("{org}/{name}")) {
            Some(app) => answer(200, "application/json", json!({"environment": app.environment}).to_string().into()),
            None => refusal(404, "no such app"),
        }
    }
}

fn route(request: &GatewayRequest) -> Option<(Endpoint, Vec<&str>)> {
    let segments: Vec<&str> = request.path.split('/').filter(|segment| !segment.is_empty()).collect();
    match (request.method.as_str(), segments.as_slice()) {
        ("POST", ["v1", "runner", "heartbeat"]) => Some((Endpoint::Heartbeat, Vec::new())),
        ("GET", ["v1", "runner", "apps", org, name, "releases", release, "source"]) => Some((Endpoint::Source, vec![org, name, release])),
        ("GET", ["v1", "runner", "apps", org, name, "environment"]) => Some((Endpoint::Environment, vec![org, name])),
        _ => None,
    }
}

fn app_of(value: &Value) -> String {
    format!("{}/{}", value["org"].as_str().unwrap_or_default(), value["name"].as_str().unwrap_or_default())
}

fn report_of(report: &Value, now_us: i64) -> ReportSeen {
    let text = |field: &str| report[field].as_str().unwrap_or_default().to_owned();
    ReportSeen { time_us: now_us, app: app_of(report), host: text("host"), state: text("state"), why: text("why") }
}

fn answer(status: u16, media_type: &'static str, body: Bytes) -> GatewayAnswer {
    GatewayAnswer { status, media_type, body, after: Duration::ZERO, hangs: false }
}

fn refusal(status: u16, why: &str) -> GatewayAnswer {
    answer(status, "application/json", json!({"error": why}).to_string().into())
}
