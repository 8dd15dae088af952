//! Draws the schedule of faults. Pure.

use std::collections::BTreeSet;
use std::time::Duration;

use super::dice::Dice;
use super::fault::{Fault, Fuse, Kind, Scheduled, Which};
use super::plan::app_name;
use crate::events::mem_log::{MemFault, Unsynced};
use crate::sim::api::{Action, Canned, Cut, Match, Refusal, Verb};
use crate::sim::gateway::{Endpoint, Fault as GatewayFault};

/// The schedule: some faults of each kind, by time. Numbers are given before any kind is left out, so that they stay.
pub(super) fn draw(seed: u64, safety: Duration, apps: usize, nodes: &[String], kinds: &BTreeSet<Kind>) -> Vec<Scheduled> {
    let last_s = safety.as_secs().saturating_sub(60);
    let mut faults = Vec::new();
    for (at, kind) in Kind::ALL.iter().copied().enumerate() {
        let dice = Dice::new(seed, 1_000 + at as u64);
        let count = if kind == Kind::Crash { dice.between(2, 6) } else { dice.between(1, 4) };
        for _ in 0..count {
            let at = dice.seconds(2, last_s);
            let lasts = dice.seconds(5, *dice.pick(&[20, 60, 150]));
            faults.push(Scheduled { number: 0, at, lasts, kind, fault: fault(&dice, kind, apps, nodes) });
        }
    }
    number(&mut faults);
    faults.retain(|fault| kinds.contains(&fault.kind));
    faults
}

/// One fault of every kind within so many seconds, by time.
pub(super) fn draw_once(seed: u64, purpose: u64, last_s: u64, apps: usize, nodes: &[String]) -> Vec<Scheduled> {
    let one = |(at, kind): (usize, &Kind)| {
        let dice = Dice::new(seed, purpose + 1_000 + at as u64);
        let (at, lasts) = (dice.seconds(2, last_s), dice.seconds(5, 40));
        Scheduled { number: 0, at, lasts, kind: *kind, fault: fault(&dice, *kind, apps, nodes) }
    };
    let mut faults: Vec<Scheduled> = Kind::ALL.iter().enumerate().map(one).collect();
    number(&mut faults);
    faults
}

fn number(faults: &mut [Scheduled]) {
    faults.sort_by_key(|fault| fault.at);
    for (number, fault) in (0..).zip(faults) {
        fault.number = number;
    }
}

fn fault(dice: &Dice, kind: Kind, apps: usize, nodes: &[String]) -> Fault {
    match kind {
        Kind::ApiError => requests(dice, any_request(dice), Action::Answer(server_error(dice))),
        Kind::ApiSlow => requests(dice, any_request(dice), Action::Delay(dice.millis(50, 20_000))),
        Kind::ApiLost => requests(dice, any_request(dice), Action::DropBefore),
        Kind::ApiDoubt => {
            let action = match dice.below(4) {
                0 | 1 => Action::DropAfter,
                2 => Action::DelayAfter(dice.seconds(1, 80)),
                _ => Action::CutBody,
            };
            requests(dice, write(dice), action)
        }
        Kind::ApiHang => {
            let action = if dice.percent(50) { Action::HangBefore } else { Action::HangAfter };
            requests(dice, any_request(dice), action)
        }
        Kind::ApiThrottle => {
            let after_s = u32::try_from(dice.between(1, 15)).unwrap_or(1);
            requests(dice, any_request(dice), Action::Answer(Canned::overloaded(after_s)))
        }
        Kind::ApiGone => match dice.below(4) {
            0 => Fault::Compact,
            1 => Fault::Skip(dice.between(1, 100_000)),
            2 => requests(dice, Match::on(Verb::Watch, watched(dice)), Action::Answer(Canned::gone())),
            _ => requests(dice, Match::on(Verb::List, watched(dice)), Action::Answer(Canned::gone())),
        },
        Kind::ApiRefusal => {
            let (verb, canned) = match dice.below(5) {
                0 => (Verb::Create, Canned::quota("app")),
                1 => (Verb::Create, Canned::webhook_down()),
                2 => (Verb::Get, Canned::refusal(&rights_lost())),
                3 => (Verb::Create, Canned::refusal(&rights_lost())),
                _ => (Verb::Delete, Canned::webhook_down()),
            };
            requests(dice, Match::on(verb, dice.word(&["pods", "pods", "secrets"])), Action::Answer(canned))
        }
        Kind::ApiRestart => Fault::Restart,
        Kind::StaleList => requests(dice, Match::on(Verb::List, watched(dice)), Action::DelayAfter(dice.seconds(2, 55))),
        Kind::WatchCut => match dice.below(4) {
            0 => Fault::Mute(watched(dice)),
            1 => Fault::Cut(watched(dice), Cut::Reset),
            2 => Fault::Cut(watched(dice), Cut::HalfLine),
            _ => Fault::Cut(watched(dice), Cut::End),
        },
        Kind::WatchOdd => match dice.below(3) {
            0 => Fault::Line(watched(dice), "{\"type\":\"MODIFIED\",\"object\":{\"metadata\":{\"name\":7}}}".to_owned()),
            1 => Fault::Line(watched(dice), "no json".to_owned()),
            _ => Fault::Repeat(watched(dice)),
        },
        Kind::AppExit | Kind::Eviction | Kind::NodeLoss | Kind::OtherDeletes => of_cluster(dice, kind, apps, nodes),
        Kind::GatewayError | Kind::GatewayOdd | Kind::Sources => of_gateway(dice, kind, apps),
        Kind::GatewayStale => Fault::Stale { answers: usize::try_from(dice.between(1, 30)).unwrap_or(1), times: small(dice, 6) },
        Kind::Flapping => Fault::Flap { app: app(dice, apps), which: which(dice) },
        Kind::Foreign => Fault::Squat { app: app(dice, apps), secret: dice.percent(30) },
        Kind::Clock => {
            let by_us = i64::try_from(dice.between(2_000_000, 7_200_000_000)).unwrap_or(0);
            Fault::Step(if dice.percent(50) { by_us } else { -by_us })
        }
        Kind::Disk => Fault::Disk(if dice.percent(50) { MemFault::Full } else { MemFault::Sync }),
        Kind::Stop => Fault::Stop { down: down(dice) },
        Kind::Crash => {
            let count = small(dice, 12);
            let fuse = match dice.below(12) {
                0..2 => Fuse::Now,
                2..4 => Fuse::Sent(count),
                4..6 => Fuse::Answered(count),
                6..8 => Fuse::Unsynced(count),
                8..11 => Fuse::Durable(count),
                _ => Fuse::Beat(count),
            };
            let unsynced = *dice.pick(&[Unsynced::Lost, Unsynced::Lost, Unsynced::MarksKept, Unsynced::Kept]);
            Fault::Crash { fuse, unsynced, down: down(dice) }
        }
    }
}

fn of_cluster(dice: &Dice, kind: Kind, apps: usize, nodes: &[String]) -> Fault {
    let (app, which) = (app(dice, apps), which(dice));
    match (kind, dice.below(4)) {
        (Kind::AppExit, 0) => Fault::OutOfMemory { app, which },
        (Kind::AppExit, _) => Fault::Exit { app, which, code: *dice.pick(&[0, 1, 1, 139]) },
        (Kind::Eviction, 0) => Fault::ShutDown { node: dice.pick(nodes).clone(), grace: dice.seconds(0, 30) },
        (Kind::Eviction, _) => Fault::Evict { app, which },
        (Kind::NodeLoss, roll) => Fault::Lose { node: dice.pick(nodes).clone(), dead: roll % 2 == 0, evict: roll / 2 == 0 },
        (_, 0) => Fault::Remove { app, which },
        (_, 1) => Fault::RemoveSecret { app, which },
        (_, 2) if dice.percent(50) => Fault::RemovePolicies,
        _ => Fault::Delete { app, which, grace_s: *dice.pick(&[0, 1, 30]) },
    }
}

fn of_gateway(dice: &Dice, kind: Kind, apps: usize) -> Fault {
    let times = small(dice, 12);
    let app_name = app_name(app(dice, apps));
    let status = *dice.pick(&[500, 502, 503, 429, 401, 404, 302]);
    let fault = match (kind, dice.below(5)) {
        (Kind::GatewayOdd, 0) => GatewayFault::Garbage,
        (Kind::GatewayOdd, 1) => GatewayFault::WrongWorld,
        (Kind::GatewayOdd, 2) => GatewayFault::Omit(app_name),
        (Kind::GatewayOdd, 3) => GatewayFault::Empty,
        (Kind::GatewayOdd, _) => GatewayFault::CutOff,
        (_, 0) => GatewayFault::Hang,
        (_, 1) => GatewayFault::Delay(dice.seconds(1, 40)),
        (_, 2) => GatewayFault::StatusAfter(status),
        (Kind::Sources, 3) => GatewayFault::Garbage,
        _ => GatewayFault::Status(status),
    };
    let endpoint = if kind == Kind::Sources { *dice.pick(&[Endpoint::Source, Endpoint::Environment]) } else { Endpoint::Heartbeat };
    Fault::Gateway { endpoint, times, fault }
}

fn requests(dice: &Dice, matching: Match, action: Action) -> Fault {
    Fault::Requests { matching, skip: small(dice, 3), times: *dice.pick(&[1, 1, 2, 5, 40]), action }
}

/// From 0 to `most`.
fn small(dice: &Dice, most: u64) -> u32 {
    u32::try_from(dice.between(0, most)).unwrap_or(0)
}

fn app(dice: &Dice, apps: usize) -> usize {
    usize::try_from(dice.below(apps as u64)).unwrap_or(0)
}

fn which(dice: &Dice) -> Which {
    if dice.percent(50) { Which::Wanted } else { Which::Live }
}

fn down(dice: &Dice) -> Duration {
    match dice.below(4) {
        0 => Duration::from_millis(1),
        1 | 2 => dice.seconds(1, 20),
        _ => dice.seconds(20, 120),
    }
}

fn watched(dice: &Dice) -> &'static str {
    dice.word(&["pods", "pods", "secrets", "nodes"])
}

fn write(dice: &Dice) -> Match {
    match dice.below(5) {
        0 | 1 => Match::on(Verb::Create, "pods"),
        2 => Match::on(Verb::Create, "secrets"),
        3 => Match::on(Verb::Update, "secrets"),
        _ => Match::on(Verb::Delete, dice.word(&["pods", "secrets"])),
    }
}

fn any_request(dice: &Dice) -> Match {
    match dice.below(8) {
        0 => Match::all(),
        1 => Match::on(Verb::List, watched(dice)),
        2 => Match::on(Verb::Watch, watched(dice)),
        3 => Match::logs(),
        4 => Match::on(Verb::Get, dice.word(&["pods", "secrets", "networkpolicies"])),
        _ => write(dice),
    }
}

fn rights_lost() -> Refusal {
    let details = serde_json::Value::Null;
    Refusal::new(403, "Forbidden", "pods is forbidden: User \"wharf\" cannot do that in the namespace", details)
}

fn server_error(dice: &Dice) -> Canned {
    match dice.below(4) {
        0 => Canned::text(503, "upstream connect error or disconnect/reset before headers"),
        1 => Canned::refusal(&Refusal::internal("Internal error occurred: context deadline exceeded")),
        _ => Canned::internal(),
    }
}
