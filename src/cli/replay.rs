//! `wharf replay`: what was known of a subject at a moment, by its records alone.

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;

use serde_json::{Value, json};

use super::error::CliError;
use super::log::{Format, open, the_subject};
use super::output;
use super::when::When;
use crate::app::state::App;
use crate::clock::Clock;
use crate::events::words;
use crate::ids::{Subject, shown};
use crate::postmortem::document::Documented;
use crate::postmortem::history::{Entry, History};
use crate::postmortem::replay::{Change, Until, changes, replay};
use crate::session::state::Session;

/// Print what was known of an app or a session at a moment, by its records alone.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// app/ORG/NAME or session/ID, or a part that only one has
    #[arg(value_name = "SUBJECT")]
    subject: String,
    /// With this record, or at this time: RFC 3339, or before now as in -15m; without it, at the end
    #[arg(long, value_name = "SEQ|TIME", allow_hyphen_values = true)]
    at: Option<String>,
    /// Record by record, with what each changed
    #[arg(long)]
    step: bool,
    /// The data folder, or a backup file
    #[arg(long, value_name = "DIR", default_value = "wharf-data")]
    dir: PathBuf,
    /// How it is printed
    #[arg(long, value_enum, default_value = "text")]
    format: Format,
}

/// Runs the command: exit code 2 when a record cannot be folded.
///
/// # Errors
/// When the log cannot be read, or there is no such subject.
pub fn run(args: &Args) -> Result<ExitCode, CliError> {
    let reader = open(&args.dir)?;
    let subject = the_subject(&args.subject, &reader.subjects())?;
    let until = match args.at.as_deref().map(|text| When::parse("--at", text, Clock::wall_now_us())).transpose()? {
        None => Until::Head,
        Some(When::Seq(seq)) => Until::Seq(seq),
        Some(When::TimeUs(time_us)) => Until::TimeUs(time_us),
    };
    let history = History::of(reader.as_ref(), &subject);
    let history = history.map_err(|error| CliError::refused(error.to_string(), "look at the disk").because(error))?;
    for damage in &history.damage {
        output::note(&format!("wharf: {damage}"));
    }
    match &subject {
        Subject::App(_) => show::<App>(args, &history, until),
        Subject::Session(_) => show::<Session>(args, &history, until),
        Subject::Daemon(_) => Err(CliError::input(format!("{subject} is folded into no state"), "wharf log shows its records")),
    }
}

fn show<M: Documented>(args: &Args, history: &History, until: Until) -> Result<ExitCode, CliError> {
    let subject = &history.subject;
    let mut shown =
        Shown { out: output::stdout(), format: args.format, stepwise: args.step, before: Value::Null, last: None, failed: None };
    let replayed = replay(history, until, |entry, state: &M| shown.see(entry, state));
    let Shown { mut out, last, failed, .. } = shown;
    if let Some(error) = failed {
        return Err(error.into());
    }
    match replayed {
        Ok(state) if !args.step => out.write_all(whole(subject, last, &state.document(), args.format).as_bytes())?,
        Ok(_) => {}
        Err(error) => {
            out.flush()?;
            return Err(CliError::input(format!("{subject}: {error}"), "--at a record before it shows what was known then"));
        }
    }
    out.flush()?;
    Ok(ExitCode::SUCCESS)
}

/// What has been shown so far.
struct Shown<'a, W> {
    out: W,
    format: Format,
    stepwise: bool,
    before: Value,
    last: Option<&'a Entry>,
    failed: Option<std::io::Error>,
}

impl<'a, W: std::io::Write> Shown<'a, W> {
    fn see(&mut self, entry: &'a Entry, state: &impl Documented) {
        self.last = Some(entry);
        if !self.stepwise || self.failed.is_some() {
            return;
        }
        let after = state.document();
        let changes = changes(&self.before, &after);
        self.before = after;
        self.failed = self.out.write_all(one(entry, &changes, self.format).as_bytes()).err();
    }
}

/// One record with what it changed.
fn one(entry: &Entry, changes: &[Change], format: Format) -> String {
    let (time, kind) = (words::moment(entry.header.time_us), words::kind_name(&entry.header));
    if format == Format::Json {
        let changes: Vec<Value> =
            changes.iter().map(|change| json!({"path": change.path, "before": change.before, "after": change.after})).collect();
        return format!("{}\n", json!({"seq": entry.header.seq.0, "time": time, "kind": kind, "changes": changes}));
    }
    let said = entry.event.as_ref().map(words::line).unwrap_or_default();
    let mut out = format!("{}\n", format!("{} {time} {kind} {said}", entry.header.seq).trim_end());
    for change in changes {
        let value = |value: &Option<String>| value.as_deref().map_or_else(|| "-".to_owned(), |value| shown(value, 200));
        let _ = writeln!(out, "    {}: {} -> {}", shown(&change.path, 200), value(&change.before), value(&change.after));
    }
    out
}

fn whole(subject: &Subject, last: Option<&Entry>, document: &Value, format: Format) -> String {
    let (seq, time) = (last.map(|entry| entry.header.seq.0), last.map(|entry| words::moment(entry.header.time_us)));
    if format == Format::Json {
        return format!("{}\n", json!({"subject": subject.to_string(), "seq": seq, "time": time, "state": document}));
    }
    let mut out = match (seq, time) {
        (Some(seq), Some(time)) => format!("{subject} with record {seq}, {time}\n"),
        _ => format!("{subject}: no record until then\n"),
    };
    for change in changes(&Value::Null, document) {
        let _ = writeln!(out, "    {}: {}", shown(&change.path, 200), shown(&change.after.unwrap_or_default(), 200));
    }
    out
}
