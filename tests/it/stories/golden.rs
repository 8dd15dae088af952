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

/// What the gateway and the process did, in order.
const TOLD: &[&str] = &["IncarnationStarted", "WantSeen", "WantConfirmed", "WantMissing"];

/// What was concluded and done about a host, in order. Observations, outcomes and reads race with each other: they are told as
/// causes.
const DONE: &[&str] = &["StepIssued", "StepRevoked", "VerdictReached", "PodEnded", "AlarmRaised", "AlarmCleared"];

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
    expect![[r#"
        app/acme/bot:
          IncarnationStarted 1
          WantSeen r1 FIRST
          WantSeen r1 FIRST registered
          WantSeen r1 FIRST live=FIRST registered
          IncarnationStarted 2
          WantConfirmed
          WantMissing mass=true
          WantSeen r1 FIRST live=FIRST registered
          IncarnationStarted 3
          WantConfirmed
          WantSeen r1 FIRST live=FIRST
          WantSeen r1 FIRST live=FIRST registered
          WantSeen r2 SECOND live=FIRST
          WantSeen r2 SECOND live=FIRST failed
          IncarnationStarted 4
          WantConfirmed
          WantSeen r3 THIRD live=FIRST
          WantSeen r3 THIRD live=FIRST registered
          WantSeen r3 THIRD live=THIRD registered
        FIRST:
          StepIssued PutSecret FIRST (Start, wanted.absent) <- WantSeen
          StepIssued CreatePod FIRST (Start, bring.start) <- StepSettled
          VerdictReached FIRST Live <- WantSeen
          PodEnded FIRST DeletedByOther <- PodGone
          StepIssued PutSecret FIRST (Revive counted=false, wanted.no_fault) <- PodGone
          StepIssued CreatePod FIRST (Revive counted=false, bring.revive) <- StepSettled
          StepIssued DeletePod FIRST (Stop, stop.not_kept) <- WantSeen
          PodEnded FIRST DeletedByUs <- PodSeen
          StepIssued DeleteSecret FIRST (Stop, clean.secret) <- PodGone
        SECOND:
          StepIssued PutSecret SECOND (Start, wanted.absent) <- WantSeen
          StepIssued CreatePod SECOND (Start, bring.start) <- StepSettled
          PodEnded SECOND InstallFailed <- PodSeen
          VerdictReached SECOND {"Failed":"InstallFailed"} <- PodSeen
          StepIssued DeletePod SECOND (Stop, stop.not_kept) <- WantSeen
          StepIssued DeleteSecret SECOND (Stop, clean.secret) <- PodGone
        THIRD:
          StepIssued PutSecret THIRD (Start, wanted.absent) <- WantSeen
          StepIssued CreatePod THIRD (Start, bring.start) <- StepSettled
          VerdictReached THIRD Live <- WantSeen
    "#]]
    .assert_eq(&listed(&stage.records(BOT), &names));
}

/// The gateway's side, then each host's: a line a record, with kind, what it is about, and the kind of its cause.
fn listed(records: &[Value], names: &[(String, &str)]) -> String {
    let mut told = format!("app/acme/bot:\n{}", lines(records, names, TOLD, ""));
    for (_, label) in names {
        let _ = write!(told, "{label}:\n{}", lines(records, names, DONE, label));
    }
    told
}

/// The records of these kinds that name the host.
fn lines(records: &[Value], names: &[(String, &str)], which: &[&str], host: &str) -> String {
    let kinds: BTreeMap<u64, &str> =
        records.iter().filter_map(|record| Some((record["seq"].as_u64()?, record["kind"].as_str()?))).collect();
    let mut told = String::new();
    for record in records.iter().filter(|record| which.iter().any(|kind| record["kind"] == *kind)) {
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
            "PodEnded" => format!(" {} {}", text(&payload["host"]), text(&payload["cause"])),
            "VerdictReached" => format!(" {} {}", text(&payload["host"]), text(&payload["verdict"])),
            "WantMissing" => format!(" mass={}", payload["mass"]),
            "IncarnationStarted" => format!(" {}", payload["number"]),
            _ => String::new(),
        };
        let cause = record["cause"].as_u64().and_then(|cause| kinds.get(&cause)).map(|kind| format!(" <- {kind}")).unwrap_or_default();
        let mut line = format!("{}{about}{cause}", text(&record["kind"]));
        for (name, label) in names {
            line = line.replace(name, label);
        }
        if line.contains(host) {
            let _ = writeln!(told, "  {line}");
        }
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
