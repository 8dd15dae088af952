//! Releases that do not work: each reported failed with its cause and last lines, while the live one serves.

use std::time::Duration;

use wharfinger::sim::node::{Register, Run, Script};

use super::stage::{Stage, healthy};

const BOT: &str = "acme/bot";

/// A live release, then one that fails: gives what was reported of it.
async fn fails(stage: &mut Stage, script: Script) -> String {
    let live = stage.deploy(BOT, healthy());
    stage.until_live(BOT, &live).await;
    let bad = stage.deploy(BOT, script);
    let why = stage.until_failed(BOT).await;
    stage.until_nothing_left(&bad).await;
    assert!(stage.serves(&live).await, "the live one serves");
    assert!(stage.is_live(BOT, &live));
    assert_eq!(stage.gateway.reported(), [format!("live {live}"), format!("failed {bad}")]);
    assert_eq!(stage.creates_of(&bad), 1, "a failed release is not tried again");
    stage.end();
    why
}

pub(super) async fn exits(mut stage: Stage) {
    let run = Run { first_lines: vec!["booting".to_owned()], ..Run::ends(Duration::from_millis(50), 3) };
    let why = fails(&mut stage, Script { register: Register::Never, ..healthy().app(run) }).await;
    assert_eq!(why, "the process ended before it was registered (exit code 3, Error):\nbooting\nending with 3");
    let end = stage.records("acme/bot").into_iter().find(|record| record["kind"] == "PodEnded").expect("an end");
    assert_eq!((&end["payload"]["cause"], &end["payload"]["exit_code"]), (&"AppExit".into(), &3.into()), "{end}");
}

pub(super) async fn never_registers(mut stage: Stage) {
    let run = Run { first_lines: vec!["waiting for nothing".to_owned()], ..healthy().app };
    let why = fails(&mut stage, Script { register: Register::Never, ..healthy().app(run) }).await;
    assert_eq!(why, "nothing registered in time:\nwaiting for nothing");
}

pub(super) async fn install_fails(mut stage: Stage) {
    let why = fails(&mut stage, healthy().install_fails(Duration::from_millis(100), 7)).await;
    assert_eq!(why, "the install failed (exit code 7, Error):\ninstalling\nending with 7");
}

pub(super) async fn keeps_exiting(mut stage: Stage) {
    let run = Run::ends(Duration::from_millis(500), 1);
    let host = stage.deploy(BOT, healthy().app(run));
    stage.until_live(BOT, &host).await;
    let why = stage.until_failed(BOT).await;
    assert!(why.starts_with("the process keeps exiting and is not run again (exit code 1, Error):\n"), "{why}");
    stage.until_nothing_left(&host).await;
    stage.end();
    assert_eq!(stage.creates_of(&host), 6, "started once, revived five times");
    let records = stage.records("acme/bot");
    let counted = records.iter().filter(|record| record["kind"] == "PodEnded" && record["payload"]["counted"] == true).count();
    assert_eq!(counted, 6);
}
