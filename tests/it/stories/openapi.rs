//! The running daemon by its OpenAPI document: schemathesis asks what the document allows and forbids, and holds each answer to it.

use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

use wharfinger::sim::node::{Pull, Run, Schedule, Script, Start};

use super::stage::{Stage, healthy};
use crate::support::skipped;

#[expect(clippy::disallowed_methods, reason = "tests are told where things are by the environment")]
fn variable(name: &str) -> Option<PathBuf> {
    std::env::var(name).ok().filter(|value| !value.is_empty()).map(PathBuf::from)
}

/// Where schemathesis is: `cargo xtask test` installs it and says so.
fn program() -> Option<PathBuf> {
    let cache = || variable("XDG_CACHE_HOME").or_else(|| Some(variable("HOME")?.join(".cache")));
    let program = variable("SCHEMATHESIS").or_else(|| Some(cache()?.join("wharfinger/schemathesis/bin/st")))?;
    program.is_file().then_some(program)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_daemon_answers_as_its_document_says() {
    let Some(program) = program() else {
        return skipped("no schemathesis: set SCHEMATHESIS, or run cargo xtask test");
    };
    let mut stage = Stage::with_sessions("openapi").await;
    // Hundreds of sessions are made one after the other: each is up, and gone, at once.
    let (at_once, usual) = (Duration::ZERO, healthy());
    let app = Run { term_after: Some(at_once), ..usual.app };
    stage.scripts.set(
        "pi-session-",
        Script { schedule: Schedule::After(at_once), pull: Pull::Takes(at_once), start: Start::Takes(at_once), app, ..usual },
    );
    let control = stage.control().await;
    stage.ready().await;
    let folder = tempfile::tempdir().expect("a folder");
    let config = concat!(env!("CARGO_MANIFEST_DIR"), "/hack/schemathesis/schemathesis.toml");
    let mut command = Command::new(program);
    command.args(["--config-file", config, "run", "--no-color", "--max-examples", "50", "--url", &control]);
    command.arg(format!("{control}/openapi.json")).current_dir(folder.path()).stdin(Stdio::null());
    let output = tokio::task::spawn_blocking(move || command.output()).await.expect("no panic").expect("it runs");
    let said = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    stage.end();
}
