//! `wharf sessions`: create, list, show and delete the sessions of a running daemon, asked over HTTP.

use std::fmt::Write as _;
use std::process::ExitCode;
use std::time::Duration;

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use super::error::CliError;
use super::log::Format;
use super::output;
use super::remote::{Remote, TokenArgs};
use crate::ids::{SessionId, Tenant, shown};

/// The most bytes of one answer.
const ANSWER_BYTES: usize = 16 << 20;

/// How long an answer may take beside what the daemon waits for.
const ANSWER_WITHIN: Duration = Duration::from_secs(30);

/// The longest that a daemon waits for, unless it is told otherwise, seconds.
const LONGEST_S: u32 = 3_600;

/// Sessions that are asked for at once.
const PAGE: u32 = 500;

/// Create, list, show or delete sessions of a running daemon.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(subcommand)]
    act: Act,
}

#[derive(Debug, clap::Subcommand)]
enum Act {
    /// Create or resume a session, and wait until it is ready
    Create(Create),
    /// List sessions, by id
    List(List),
    /// Show one session
    Show(Show),
    /// Delete a session with its workspace, or suspend it, and wait until that is gone
    Delete(Delete),
}

/// Which daemon, by whose token, and how to say it.
#[derive(Debug, clap::Args)]
struct Where {
    /// The daemon's control listener
    #[arg(long, value_name = "URL", default_value = "http://127.0.0.1:7070")]
    server: String,
    #[command(flatten)]
    token: TokenArgs,
    /// How to print
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
}

#[derive(Debug, clap::Args)]
struct Create {
    /// The session's id: 1 to 40 of a-z, 0-9 and -
    #[arg(value_name = "ID", value_parser = id)]
    id: SessionId,
    /// Whose it is; without it the token's only tenant, else `default`
    #[arg(long, value_name = "NAME", value_parser = tenant)]
    tenant: Option<Tenant>,
    #[command(flatten)]
    patience: Patience,
    #[command(flatten)]
    daemon: Where,
}

#[derive(Debug, clap::Args)]
struct Patience {
    /// How long to wait; 0: not at all. At most, and without it, the daemon's sessions.ready_s
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u32).range(0..=3600))]
    wait: Option<u32>,
    /// Have a pod that does not end forced away after so long, though it may still write to the workspace
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u32).range(1..=86400))]
    force_after: Option<u32>,
}

#[derive(Debug, clap::Args)]
struct List {
    /// Only this tenant's
    #[arg(long, value_name = "NAME", value_parser = tenant)]
    tenant: Option<Tenant>,
    /// Only those in this state; without it all but deleted ones
    #[arg(long, value_name = "STATE", value_parser = STATES)]
    state: Option<String>,
    #[command(flatten)]
    daemon: Where,
}

#[derive(Debug, clap::Args)]
struct Show {
    /// The session's id
    #[arg(value_name = "ID", value_parser = id)]
    id: SessionId,
    /// With the last lines of its last pod; needs the role tails
    #[arg(long)]
    tail: bool,
    #[command(flatten)]
    daemon: Where,
}

#[derive(Debug, clap::Args)]
struct Delete {
    /// The session's id
    #[arg(value_name = "ID", value_parser = id)]
    id: SessionId,
    /// Keep the workspace: the session is suspended
    #[arg(long)]
    keep_workspace: bool,
    #[command(flatten)]
    patience: Patience,
    #[command(flatten)]
    daemon: Where,
}

/// The states, as the daemon names them.
const STATES: [&str; 7] = ["absent", "provisioning", "ready", "exited", "suspended", "deleting", "failed"];

fn id(text: &str) -> Result<SessionId, String> {
    SessionId::new(text).map_err(|error| error.to_string())
}

fn tenant(text: &str) -> Result<Tenant, String> {
    Tenant::new(text).map_err(|error| error.to_string())
}

/// Runs the command: exit code 1 when the answer is no, or not yet.
///
/// # Errors
/// When the daemon cannot be asked, or refuses.
pub fn run(args: &Args) -> Result<ExitCode, CliError> {
    super::wait_for(async {
        match &args.act {
            Act::Create(args) => create(args).await,
            Act::List(args) => list(args).await,
            Act::Show(args) => show(args).await,
            Act::Delete(args) => delete(args).await,
        }
    })
}

impl Patience {
    fn query(&self) -> Vec<(&'static str, String)> {
        let both = [("wait", self.wait), ("force_after", self.force_after)];
        both.into_iter().filter_map(|(name, seconds)| Some((name, seconds?.to_string()))).collect()
    }

    fn within(&self) -> Duration {
        ANSWER_WITHIN + Duration::from_secs(u64::from(self.wait.unwrap_or(LONGEST_S)))
    }
}

impl Where {
    fn remote(&self) -> Result<Remote, CliError> {
        Remote::new(&self.server, &self.token)
    }

    async fn get(&self, path: &str, query: &[(&str, String)]) -> Result<Value, CliError> {
        let remote = self.remote()?;
        Ok(good(remote.call(Method::GET, path, query, None, ANSWER_BYTES, ANSWER_WITHIN * 2).await?)?.1)
    }

    fn print(&self, session: &Value, text: impl FnOnce(&Value) -> String) -> Result<(), CliError> {
        let line = match self.format {
            Format::Json => format!("{session}\n"),
            Format::Text => text(session),
        };
        Ok(output::print(&line)?)
    }
}

async fn create(args: &Create) -> Result<ExitCode, CliError> {
    let body = args.tenant.as_ref().map_or_else(|| json!({}), |tenant| json!({"tenant": tenant.to_string()}));
    let path = format!("/v1/sessions/{}", args.id);
    let remote = args.daemon.remote()?;
    let answer = remote.call(Method::PUT, &path, &args.patience.query(), Some(&body), ANSWER_BYTES, args.patience.within()).await?;
    let (status, session) = good(answer)?;
    args.daemon.print(&session, |session| {
        let how = match (status, session["resumed"] == true) {
            (StatusCode::ACCEPTED, _) => "is being brought",
            (_, true) => "ready, resumed",
            (_, false) => "ready, on a new workspace",
        };
        format!("{} {how}: {}\n", cell(&session["session_id"]), cell(&session["svc_dns"]))
    })?;
    Ok(ExitCode::SUCCESS)
}

async fn delete(args: &Delete) -> Result<ExitCode, CliError> {
    let mut query = args.patience.query();
    if args.keep_workspace {
        query.push(("keep_workspace", "1".to_owned()));
    }
    let path = format!("/v1/sessions/{}", args.id);
    let remote = args.daemon.remote()?;
    let answer = remote.call(Method::DELETE, &path, &query, None, ANSWER_BYTES, args.patience.within()).await?;
    let (status, left) = good(answer)?;
    if status == StatusCode::NO_CONTENT {
        let (state, done) = if args.keep_workspace { ("suspended", "suspended") } else { ("absent", "deleted") };
        args.daemon.print(&json!({"session_id": args.id.to_string(), "state": state}), |_| format!("{} {done}\n", args.id))?;
        return Ok(ExitCode::SUCCESS);
    }
    args.daemon.print(&left, |left| format!("{} is going; still there: {}\n", args.id, cell(&left["left"])))?;
    // Whoever wanted to wait has waited in vain.
    Ok(ExitCode::from(u8::from(args.patience.wait != Some(0))))
}

async fn show(args: &Show) -> Result<ExitCode, CliError> {
    let query = if args.tail { vec![("include", "tail".to_owned())] } else { Vec::new() };
    let session = args.daemon.get(&format!("/v1/sessions/{}", args.id), &query).await?;
    args.daemon.print(&session, whole)?;
    Ok(ExitCode::SUCCESS)
}

async fn list(args: &List) -> Result<ExitCode, CliError> {
    let mut after = None;
    let mut rows = Vec::new();
    loop {
        let mut query = vec![("limit", PAGE.to_string())];
        query.extend(args.tenant.as_ref().map(|tenant| ("tenant", tenant.to_string())));
        query.extend(args.state.as_ref().map(|state| ("state", state.clone())));
        query.extend(after.take().map(|after| ("after", after)));
        let page = args.daemon.get("/v1/sessions", &query).await?;
        for session in page["sessions"].as_array().map(Vec::as_slice).unwrap_or_default() {
            match args.daemon.format {
                Format::Json => output::print(&format!("{session}\n"))?,
                Format::Text => rows.push(COLUMNS.map(|(_, field)| cell(&session[field]))),
            }
        }
        // What a daemon says is checked like what a person says.
        after = page["next"].as_str().and_then(|next| SessionId::new(next).ok()).map(|next| next.to_string());
        if after.is_none() {
            break;
        }
    }
    if args.daemon.format == Format::Text {
        output::print(&table(&rows))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// The columns of a list: heading, and field of a session.
const COLUMNS: [(&str, &str); 6] = [
    ("SESSION", "session_id"),
    ("TENANT", "tenant"),
    ("STATE", "state"),
    ("STAGE", "stage"),
    ("REASON", "reason"),
    ("ACTIVE", "last_active_at"),
];

fn table(rows: &[[String; 6]]) -> String {
    let mut widths = COLUMNS.map(|(heading, _)| heading.len());
    for row in rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(cell.chars().count());
        }
    }
    let mut out = String::new();
    for row in std::iter::once(&COLUMNS.map(|(heading, _)| heading.to_owned())).chain(rows) {
        let line: Vec<String> = row.iter().zip(widths).map(|(cell, width)| format!("{cell:<width$}")).collect();
        let _ = writeln!(out, "{}", line.join("  ").trim_end());
    }
    out
}

/// A session, a line a field; what it has not is left out.
fn whole(session: &Value) -> String {
    let mut out = String::new();
    for (name, value) in session.as_object().into_iter().flatten() {
        match value {
            Value::Null => {}
            Value::Array(items) if items.is_empty() => {}
            Value::Object(fields) => {
                let told = fields.iter().filter(|(_, value)| !value.is_null() && *value != "");
                let told: Vec<String> = told.map(|(name, value)| format!("{name}={}", cell(value))).collect();
                let _ = writeln!(out, "{name:<15} {}", told.join(" "));
            }
            Value::String(text) if name == "tail" => {
                let _ = writeln!(out, "{name}");
                for line in text.lines() {
                    let _ = writeln!(out, "  {}", shown(line, 2_000));
                }
            }
            Value::String(_) | Value::Bool(_) | Value::Number(_) | Value::Array(_) => {
                let _ = writeln!(out, "{name:<15} {}", cell(value));
            }
        }
    }
    out
}

/// A value as people read it: nothing is `-`.
fn cell(value: &Value) -> String {
    let text = match value {
        Value::String(text) => shown(text, 300),
        Value::Number(number) => number.to_string(),
        Value::Bool(flag) => flag.to_string(),
        Value::Array(items) => items.iter().map(cell).collect::<Vec<_>>().join(", "),
        Value::Null | Value::Object(_) => String::new(),
    };
    if text.is_empty() { "-".to_owned() } else { text }
}

/// The document of a good answer; a refusal as an error by what it means to whoever called.
fn good((status, answer): (StatusCode, super::remote::Answer)) -> Result<(StatusCode, Value), CliError> {
    let document = serde_json::from_slice::<Value>(&answer.body);
    if status == StatusCode::NO_CONTENT {
        return Ok((status, Value::Null));
    }
    let document = document.map_err(|error| {
        CliError::refused(format!("the daemon answers {status} and no JSON"), "is this its control listener?").because(error)
    })?;
    if status.is_success() {
        return Ok((status, document));
    }
    let text = |name: &str| document[name].as_str().map(|text| shown(text, 300)).unwrap_or_default();
    let mut what = format!("{} ({status} {})", text("detail"), text("code"));
    for name in ["stage", "reason"] {
        if document[name].is_string() {
            let _ = write!(what, ", {name} {}", text(name));
        }
    }
    Err(match status.as_u16() {
        400 => CliError::input(what, ""),
        401 => CliError::refused(what, "name the token's file: --token-file FILE"),
        404 | 409 | 502 | 504 => CliError::no(what, ""),
        _ => CliError::refused(what, "docs/sessions.md has the codes"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::remote::Answer;

    fn answered(status: u16, body: &str) -> Result<(StatusCode, Value), CliError> {
        let answer = Answer { headers: reqwest::header::HeaderMap::new(), body: body.as_bytes().to_vec() };
        good((StatusCode::from_u16(status).expect("a status"), answer))
    }

    #[test]
    fn a_refusal_is_one_line_and_its_exit_code_says_what_it_means() {
        let problem = |code: &str| format!(r#"{{"code": "{code}", "detail": "so it\u001b[2J is", "stage": "pull", "reason": null}}"#);
        for (status, code, exit) in [
            (400, "bad_session_id", 2),
            (401, "unauthorized", 3),
            (403, "forbidden", 3),
            (404, "not_found", 1),
            (409, "other_tenant", 1),
            (429, "too_fast", 3),
            (502, "pod_ended", 1),
            (503, "too_many_waiting", 3),
            (504, "not_ready", 1),
        ] {
            let error = answered(status, &problem(code)).expect_err("a refusal");
            assert_eq!(error.exit_code(), ExitCode::from(exit), "{code}");
            let line = error.line();
            assert!(line.contains(code) && line.contains("stage pull") && !line.contains('\u{1b}'), "{line}");
        }
        assert_eq!(answered(200, "<html>").expect_err("no JSON").exit_code(), ExitCode::from(3));
        assert_eq!(answered(204, "").expect("gone").0, StatusCode::NO_CONTENT);
    }

    #[test]
    fn a_session_is_told_without_what_it_has_not() {
        let session = json!({
            "session_id": "s1", "tenant": null, "state": "suspended", "alarms": [], "frozen": false,
            "last_end": {"cause": "app_exit", "exit_code": 1, "signal": null, "reason": ""},
            "tail": "one\n\u{1b}[2Jtwo",
        });
        let told = whole(&session);
        assert!(told.contains("last_end        cause=app_exit exit_code=1\n"), "{told}");
        assert!(told.contains("tail\n  one\n") && !told.contains('\u{1b}') && !told.contains("tenant"), "{told}");
        let rows = [["s1", "acme", "ready", "-", "-", "now"].map(str::to_owned)];
        assert_eq!(table(&rows), "SESSION  TENANT  STATE  STAGE  REASON  ACTIVE\ns1       acme    ready  -      -       now\n");
    }
}
