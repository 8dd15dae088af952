//! The log as a listed golden: kind, subject and cause of everything that was wanted, decided and done, in order, with three
//! restarts and a want that blinks in it.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::Duration;

use expect_test::expect;
use serde_json::Value;
use wharfinger::sim::gateway::{Endpoint, Fault};

use super::stage::{Stage, healthy};

const BOT: &str = "acme/bot";

/// Kinds whose number depends on how quickly the cluster was looked at, or that only inform.
const LEFT_OUT: &[&str] = &["PodSeen", "ApiCalled", "TailText", "MessageText", "NodeSeen", "SecretSeen", "TailKept", "TailUnavailable"];

pub(super) async fn told(mut stage: Stage) {
    let first = stage.deploy(BOT, healthy());
    stage.until_live(BOT, &first).await;
    stage.beats(2).await;
    stage.kill();
    stage.start();
    stage.beats(3).await;
    stage.gateway.fail(Endpoint::Heartbeat, 1, Fault::Omit(BOT.to_owned()));
    stage.beats(3).await;
    stage.kill();
    stage.start();
    stage.beats(3).await;
    let uid = stage.uid(&first).await.expect("a live host has a pod");
    stage.nodes().delete_by_other(&first, 0).await.expect("it can be deleted");
    stage.until_back(&first, &uid).await;
    stage.beats(3).await;
    let second = stage.deploy(BOT, healthy().install_fails(Duration::from_millis(50), 1));
    stage.until_failed(BOT).await;
    stage.until_nothing_left(&second).await;
    stage.beats(3).await;
    stage.kill();
    stage.start();
    stage.beats(3).await;
    let third = stage.deploy(BOT, healthy());
    stage.until_live(BOT, &third).await;
    stage.until_nothing_left(&first).await;
    stage.beats(3).await;
    stage.end();
    let names = [(first, "FIRST"), (second, "SECOND"), (third, "THIRD")];
    expect![[""]].assert_eq(&listed(&stage.records(BOT), &names));
}

/// A line a record: kind, what it is about, and the kind of its cause.
fn listed(records: &[Value], names: &[(String, &str)]) -> String {
    let kinds: BTreeMap<u64, &str> =
        records.iter().filter_map(|record| Some((record["seq"].as_u64()?, record["kind"].as_str()?))).collect();
    let mut told = String::new();
    for record in records.iter().filter(|record| !LEFT_OUT.iter().any(|kind| record["kind"] == *kind)) {
        let payload = &record["payload"];
        let about = match record["kind"].as_str().unwrap_or("") {
            "WantSeen" => {
                let flags = ["registered", "failed"].into_iter().filter(|flag| payload[*flag] == true).map(|flag| format!(" {flag}"));
                let live = payload["live_host"].as_str().map(|live| format!(" live={live}")).unwrap_or_default();
                format!(" r{} {}{live}{}", payload["release"], text(&payload["host"]), flags.collect::<String>())
            }
            "StepIssued" => {
                let step = payload["step"].as_object().and_then(|step| step.iter().next());
                let (name, fields) = step.expect("a step has a name");
                format!(" {name} {} ({}, {})", text(&fields["host"]), purpose(&payload["purpose"]), text(&payload["rule"]))
            }
            "StepSettled" => format!(" {}", text(&payload["outcome"])),
            "PodEnded" => format!(" {} {}", text(&payload["host"]), text(&payload["cause"])),
            "VerdictReached" => format!(" {} {}", text(&payload["host"]), text(&payload["verdict"])),
            "PodGone" => format!(" {} {}", text(&payload["host"]), text(&payload["how"])),
            "TailAsked" => format!(" {} {}", text(&payload["of"]["host"]), text(&payload["of"]["container"])),
            "WantMissing" => format!(" mass={}", payload["mass"]),
            "IncarnationStarted" => format!(" {}", payload["number"]),
            _ => String::new(),
        };
        let cause = record["cause"].as_u64().and_then(|cause| kinds.get(&cause)).map(|kind| format!(" <- {kind}")).unwrap_or_default();
        let mut line = format!("{}{about}{cause}", text(&record["kind"]));
        for (name, label) in names {
            line = line.replace(name, label);
        }
        let _ = writeln!(told, "{line}");
    }
    told
}

fn text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

fn purpose(value: &Value) -> String {
    match value.as_object().and_then(|fields| fields.iter().next()) {
        Some((name, fields)) => format!("{name} counted={}", fields["counted"]),
        None => text(value),
    }
}
