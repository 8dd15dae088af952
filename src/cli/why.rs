//! `wharf why`: the chain of causes of a record, a host, a pod or a subject, newest first.

use std::fmt::Write as _;
use std::process::ExitCode;

use super::error::CliError;
use super::log::Format;
use super::output;
use super::source::Source;
use crate::events::words;
use crate::ids::shown;
use crate::postmortem::because::Because;
use crate::postmortem::history::{Entry, History};
use crate::postmortem::reference::{NotFound, find};
use crate::postmortem::why::{Link, document, rule, why};

/// Say why: the chain of causes, newest first, down to what came from outside.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// A record's number, a host, a pod's uid, or a subject or a part of its name
    #[arg(value_name = "SEQ|HOST|POD-UID|SUBJECT")]
    reference: String,
    #[command(flatten)]
    source: Source,
    /// How it is printed
    #[arg(long, value_enum, default_value = "text")]
    format: Format,
}

/// Runs the command.
///
/// # Errors
/// When the log cannot be read, or nothing in it has that name.
pub fn run(args: &Args) -> Result<ExitCode, CliError> {
    let reader = args.source.open()?;
    let found = find(reader.as_ref(), &args.reference).map_err(|error| not_found(&args.reference, error))?;
    let unreadable = |error: crate::events::log::ReadError| CliError::refused(error.to_string(), "look at the disk").because(error);
    let history = History::of(reader.as_ref(), &found.subject).map_err(unreadable)?;
    let chain = why(&history, found.seq);
    match args.format {
        Format::Json => output::print(&format!("{}\n", document(&history, &chain)))?,
        Format::Text => output::print(&in_words(&history, &chain))?,
    }
    Ok(ExitCode::SUCCESS)
}

fn not_found(reference: &str, error: NotFound) -> CliError {
    let what = format!("{}: {error}", shown(reference, 100));
    match error {
        NotFound::Read(_) => CliError::refused(what, "look at the disk").because(error),
        NotFound::Several(_) => CliError::input(what, "name one of them"),
        NotFound::NoRecord(_) | NotFound::Unreadable(_) | NotFound::Nothing => CliError::input(what, "wharf log shows what there is"),
    }
}

/// The chain for people.
pub(super) fn in_words(history: &History, chain: &[Link<'_>]) -> String {
    let mut out = format!("{}\n", history.subject);
    for (at, link) in chain.iter().enumerate() {
        let _ = writeln!(out, "\n{}", line(link.entry));
        for entry in &link.told {
            let _ = writeln!(out, "    {}", line(entry));
        }
        if let Some((name, says)) = rule(link.entry) {
            let _ = writeln!(out, "    rule {name}: {}", says.unwrap_or("of a newer version"));
        }
        for belief in &link.beliefs {
            let version = belief.resource_version.map(|version| format!(", resourceVersion {version}")).unwrap_or_default();
            let _ = writeln!(out, "    believed: the {} of record {}, {} old{version}", belief.of.name(), belief.seq, age(belief.age_us));
        }
        let _ = writeln!(out, "  {}", hangs(link, chain.get(at + 1)));
    }
    out
}

fn hangs(link: &Link<'_>, next: Option<&Link<'_>>) -> &'static str {
    match (link.because, next) {
        (Because::Decided, Some(_)) => "because of",
        (Because::OutcomeOf, Some(_)) => "which is what became of",
        (Because::Shows, Some(_)) => "which shows what was done by",
        (Because::Input, _) => "which came from outside",
        (Because::Decided | Because::OutcomeOf | Because::Shows, None) => "the record before it is not in this log any more",
    }
}

fn line(entry: &Entry) -> String {
    let said = entry.event.as_ref().map_or_else(|| "(cannot be shown)".to_owned(), words::line);
    let (at, kind) = (words::moment(entry.header.time_us), words::kind_name(&entry.header));
    format!("{} {at} {kind} {said}", entry.header.seq).trim_end().to_owned()
}

fn age(us: i64) -> String {
    format!("{:.3} s", us as f64 / 1_000_000.0)
}
