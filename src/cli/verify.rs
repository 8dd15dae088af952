//! `wharf verify`: whether a log is whole, whether it extends what an auditor saw of it, and whether planning again decides what it
//! says was decided.

use std::path::PathBuf;
use std::process::ExitCode;

use serde_json::{Value, json};

use super::error::CliError;
use super::log::Format;
use super::output;
use super::seen::{self, Seen, Verdict};
use super::source::Source;
use crate::events::check::{Report, check};
use crate::events::damage::census;
use crate::events::log::{LogReader, ReadError};
use crate::events::words;
use crate::proof::key::VerifierKey;
use crate::run::checkpoints;
use crate::run::verify::verify_decisions;

/// Check a log: its numbers and tree, and every decision planned again.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(flatten)]
    source: Source,
    /// Prove that the log extends this checkpoint, which was kept where the folder's owner cannot change it
    #[arg(long, value_name = "FILE")]
    checkpoint: Option<PathBuf>,
    /// Prove that this key signed it
    #[arg(long, value_name = "VKEY", requires = "checkpoint", value_parser = |text: &str| VerifierKey::parse(text))]
    key: Option<VerifierKey>,
    /// How it is printed
    #[arg(long, value_enum, default_value = "text")]
    format: Format,
}

/// Runs the command: exit code 1 when something does not hold, 2 when something cannot be verified.
///
/// # Errors
/// When the log cannot be read.
pub fn run(args: &Args) -> Result<ExitCode, CliError> {
    let seen = args.checkpoint.as_ref().map(|path| Seen::read(path, args.key.as_ref())).transpose()?;
    // One that cannot be read is written again by the daemon, and proves nothing.
    let kept = Seen::read(&args.source.dir().join(checkpoints::FILE), None).ok().filter(|_| args.source.server().is_none());
    let reader = args.source.open()?;
    if reader.is_part() {
        let at = crate::ids::shown(&args.source.name(), 200);
        let advice = "its checksums hold; verify a whole backup, or the folder";
        return Err(CliError::input(format!("{at}: a part of a log cannot be verified"), advice));
    }
    let (code, document) = judge(reader.as_ref(), seen.as_ref(), kept.as_ref())
        .map_err(|error| CliError::refused(error.to_string(), "look at the disk").because(error))?;
    match args.format {
        Format::Json => output::print(&format!("{document}\n"))?,
        Format::Text => output::print(&in_words(&document))?,
    }
    Ok(ExitCode::from(code))
}

/// The exit code and all that was found, of a log, of the checkpoint that an auditor holds, and of the one that the folder keeps.
///
/// # Errors
/// When the store does not answer.
pub(super) fn judge(reader: &dyn LogReader, seen: Option<&Seen>, kept: Option<&Seen>) -> Result<(u8, Value), ReadError> {
    let integrity = check(reader)?;
    let census = census(reader)?;
    let seen = seen.map(|seen| seen.compare(reader)).transpose()?;
    let kept = kept.map(|kept| the_folders_own(kept, reader, &integrity)).transpose()?;
    let decisions = verify_decisions(reader)?;
    let compared = || [&seen, &kept].into_iter().flatten().map(|(verdict, _)| *verdict);
    let differs =
        integrity.difference.is_some() || decisions.difference.is_some() || compared().any(|verdict| verdict == Verdict::DoesNotHold);
    let unknown = decisions.unverifiable.is_some() || compared().any(|verdict| verdict == Verdict::CannotBeVerified);
    let (code, verdict) = match (differs, unknown) {
        (true, _) => (1, "does not hold"),
        (false, true) => (2, "cannot be verified"),
        (false, false) => (0, "holds"),
    };
    let difference = decisions.difference.as_ref().map(|(subject, difference)| {
        json!({
            "seq": difference.seq.0,
            "subject": subject.to_string(),
            "recorded": difference.recorded.as_ref().map(words::line),
            "planned": difference.planned.as_ref().map(words::line),
        })
    });
    let document = json!({
        "verdict": verdict,
        "records": integrity.records,
        "blocks": integrity.blocks,
        "withheld": integrity.withheld,
        "logs": integrity.logs.iter().map(|part| json!({
            "log": part.log.to_string(), "first": part.first.0, "last": part.last.0, "size": part.tree.size,
            "root": crate::ids::hex(&part.tree.root),
        })).collect::<Vec<_>>(),
        "gaps": integrity.gaps.iter().map(|gap| json!({"after": gap.after.0, "before": gap.before.0})).collect::<Vec<_>>(),
        "marked": integrity.marked.map(|seq| seq.0),
        "checkpoint": seen.map(|(_, document)| document),
        "kept_checkpoint": kept.map(|(_, document)| document),
        "from": integrity.removed.map(|removed| removed.kept.0),
        "aged_out": integrity.aged_out,
        "passed_over": decisions.passed_over,
        "carried": decisions.carried,
        "unreadable": census.damaged,
        "unreadable_named": census.named.iter().map(ToString::to_string).collect::<Vec<_>>(),
        "newer": census.newer,
        "damaged": integrity.difference.as_ref().map(ToString::to_string),
        "reactions": decisions.reactions,
        "decisions": decisions.decisions,
        "difference": difference,
        "unverifiable": decisions.unverifiable.as_ref().map(|(seq, why)| json!({"seq": seq.0, "why": why})),
    });
    Ok((code, document))
}

/// The checkpoint in the data folder is no more than a second mark: whoever can write to the log can write to it.
fn the_folders_own(kept: &Seen, reader: &dyn LogReader, integrity: &Report) -> Result<(Verdict, Value), ReadError> {
    let (verdict, document) = kept.compare(reader)?;
    // Of a log that another one followed: what it lost, if anything, is named there.
    let followed = integrity.logs.last().is_some_and(|last| last.log != kept.log());
    Ok((if followed { Verdict::Holds } else { verdict }, document))
}

fn in_words(document: &Value) -> String {
    let number = |key: &str| document[key].as_u64().unwrap_or(0);
    let mut text = format!(
        "{}: {} records in {} blocks; {} reactions planned again, {} decisions compared\n",
        document["verdict"].as_str().unwrap_or_default(),
        number("records"),
        number("blocks"),
        number("reactions"),
        number("decisions"),
    );
    for log in document["logs"].as_array().into_iter().flatten() {
        text.push_str(&format!("log {} {}-{}, tree of {}, root {}\n", log["log"], log["first"], log["last"], log["size"], log["root"]));
    }
    for gap in document["gaps"].as_array().into_iter().flatten() {
        text.push_str(&format!("named gap between {} and {}\n", gap["after"], gap["before"]));
    }
    if let Some(from) = document["from"].as_u64() {
        text.push_str(&format!(
            "history is from record {from}: the leaves of {} before it hold; {} reactions are before the state that was carried\n",
            number("aged_out"),
            number("passed_over"),
        ));
    }
    if number("carried") > 0 {
        text.push_str(&format!("{} carried states compared\n", number("carried")));
    }
    if document["checkpoint"].is_object() {
        text.push_str(&seen::in_words("checkpoint", &document["checkpoint"]));
        text.push_str(&seen::signature_in_words(&document["checkpoint"]));
    }
    if document["kept_checkpoint"].is_object() {
        text.push_str(&seen::in_words("the folder's own checkpoint", &document["kept_checkpoint"]));
    }
    if document["marked"].is_null() {
        text.push_str("no mark is there: a missing end would not be seen\n");
    }
    if let Some(damaged) = document["damaged"].as_str() {
        text.push_str(&format!("damaged {damaged}\n"));
    }
    if number("unreadable") > 0 {
        text.push_str(&format!("unreadable: {}\n", number("unreadable")));
    }
    for damage in document["unreadable_named"].as_array().into_iter().flatten() {
        text.push_str(&format!("  {damage}\n"));
    }
    let said = |value: &Value| value.as_str().map_or_else(|| "nothing".to_owned(), str::to_owned);
    let difference = &document["difference"];
    if difference.is_object() {
        text.push_str(&format!(
            "record {} of {}:\n  recorded: {}\n  planned:  {}\n",
            difference["seq"],
            said(&difference["subject"]),
            said(&difference["recorded"]),
            said(&difference["planned"]),
        ));
    }
    let unverifiable = &document["unverifiable"];
    if unverifiable.is_object() {
        text.push_str(&format!("record {} {}\n", unverifiable["seq"], said(&unverifiable["why"])));
    }
    text.replace('"', "")
}
