//! `wharf status`: one screen of a running daemon, asked over HTTP.

use std::fmt::Write as _;
use std::process::ExitCode;

use serde_json::Value;

use super::error::CliError;
use super::output;
use super::remote::{Remote, TokenArgs};
use crate::ids::shown;

/// The most bytes of one answer.
const ANSWER_BYTES: usize = 64 << 20;

/// Apps shown when not all are asked for.
const SCREEN: usize = 40;

/// The columns, as `/v1/apps` names them.
pub(super) const FIELDS: [&str; 6] = ["app", "release", "wanted", "stage", "live", "alarms"];

/// Show a running daemon: apps, queue, watch, gateway, alarms.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Its control listener
    #[arg(long, value_name = "URL", default_value = "http://127.0.0.1:7070")]
    server: String,
    #[command(flatten)]
    token: TokenArgs,
    /// Every app, not only a screen of them
    #[arg(long)]
    all: bool,
}

/// Runs the command: exit code 1 when the daemon is not ready.
///
/// # Errors
/// When the daemon cannot be asked.
pub fn run(args: &Args) -> Result<ExitCode, CliError> {
    super::wait_for(ask(args))
}

async fn ask(args: &Args) -> Result<ExitCode, CliError> {
    let server = args.server.trim_end_matches('/');
    let remote = Remote::new(server, &args.token)?;
    // Not being ready is an answer.
    let (_, ready) = remote.ask("/readyz", &[], ANSWER_BYTES).await?;
    let ready = json(server, &ready.body)?;
    let metrics = remote.get("/metrics", &[], ANSWER_BYTES).await?.body;
    let apps = json(server, &remote.get("/v1/apps", &[], ANSWER_BYTES).await?.body)?;
    let screen = screen(server, &ready, &String::from_utf8_lossy(&metrics), &apps, if args.all { usize::MAX } else { SCREEN });
    output::print(&screen)?;
    Ok(ExitCode::from(u8::from(ready["ready"] != true)))
}

fn json(server: &str, body: &[u8]) -> Result<Value, CliError> {
    serde_json::from_slice(body)
        .map_err(|e| CliError::refused(format!("{server} does not answer JSON"), "is this the control listener?").because(e))
}

/// The screen, from what `/readyz`, `/metrics` and `/v1/apps` say; what one of them leaves out is shown as `-`.
pub(super) fn screen(server: &str, ready: &Value, metrics: &str, apps: &Value, most: usize) -> String {
    let mut out = String::new();
    let state = if ready["ready"] == true { "ready".to_owned() } else { format!("not ready ({})", words(&ready["failing"])) };
    let _ = writeln!(out, "{server}: {state}, {}", words(&ready["role"]));
    let gateway = &ready["gateway"];
    let gateway = match gateway["age_ms"].as_u64() {
        Some(age) => format!("{}, {} ago", words(&gateway["state"]), age_of(age)),
        None => format!("{} {}", words(&gateway["state"]), gateway["reason"].as_str().map(|reason| shown(reason, 200)).unwrap_or_default()),
    };
    let _ = writeln!(out, "gateway  {}", gateway.trim_end());
    let watch = ready["watch_age_ms"].as_u64().map_or_else(|| "no sign of life yet".to_owned(), |age| format!("{} ago", age_of(age)));
    let limit = ready["watch_limit_ms"].as_u64().map(|limit| format!(", limit {}", age_of(limit))).unwrap_or_default();
    let _ = writeln!(out, "watch    {watch}{limit}");
    let _ = writeln!(out, "queue    {}", series(metrics, "wharf_queue_depth", |_| true));
    let _ = writeln!(out, "log      {}", commits(metrics));
    let _ = writeln!(out, "alarms   {}", series(metrics, "wharf_alarms", |value| value != "0"));
    let list = apps["apps"].as_array().map(Vec::as_slice).unwrap_or_default();
    let _ = writeln!(out, "apps     {}", list.len());
    table(&mut out, list, most);
    out
}

fn table(out: &mut String, apps: &[Value], most: usize) {
    const HEAD: [&str; 6] = ["APP", "RELEASE", "HOST", "STAGE", "LIVE", "ALARMS"];
    if apps.is_empty() {
        return;
    }
    let rows: Vec<[String; 6]> = apps.iter().take(most).map(|app| FIELDS.map(|field| words(&app[field]))).collect();
    let mut widths = HEAD.map(str::len);
    for row in &rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(cell.chars().count());
        }
    }
    out.push('\n');
    for row in std::iter::once(HEAD.map(str::to_owned)).chain(rows) {
        let line: Vec<String> = row.iter().zip(widths).map(|(cell, width)| format!("{cell:<width$}")).collect();
        let _ = writeln!(out, "{}", line.join("  ").trim_end());
    }
    if apps.len() > most {
        let _ = writeln!(out, "and {} more: --all shows them", apps.len() - most);
    }
}

/// A value as a cell: text, numbers, or a list of them; nothing is `-`.
fn words(value: &Value) -> String {
    let text = match value {
        Value::String(text) => shown(text, 100),
        Value::Number(number) => number.to_string(),
        Value::Bool(flag) => flag.to_string(),
        Value::Array(items) => items.iter().map(words).collect::<Vec<_>>().join(", "),
        Value::Null | Value::Object(_) => String::new(),
    };
    if text.is_empty() { "-".to_owned() } else { text }
}

/// `label value` of every series of a gauge that `takes` wants; `-` when there is none.
fn series(metrics: &str, name: &str, takes: impl Fn(&str) -> bool) -> String {
    let found: Vec<String> = metrics
        .lines()
        .filter_map(|line| line.strip_prefix(name)?.strip_prefix('{')?.split_once("\"} "))
        .filter(|(_, value)| takes(value))
        .filter_map(|(label, value)| Some(format!("{} {}", shown(label.split_once('"')?.1, 60), shown(value, 20))))
        .collect();
    if found.is_empty() { "-".to_owned() } else { found.join(", ") }
}

/// How many commits there were, and how long one took on average.
fn commits(metrics: &str) -> String {
    let number = |name: &str| metrics.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' ')?.parse::<f64>().ok());
    match (number("wharf_log_commit_seconds_count"), number("wharf_log_commit_seconds_sum")) {
        (Some(count), Some(sum)) if count > 0.0 => format!("{count:.0} commits, {:.2} ms on average", sum / count * 1_000.0),
        _ => "-".to_owned(),
    }
}

fn age_of(ms: u64) -> String {
    format!("{}.{} s", ms / 1_000, ms % 1_000 / 100)
}
