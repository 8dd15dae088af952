//! `wharf verify`: whether a log is whole, and whether planning again decides what it says was decided.

use std::path::PathBuf;
use std::process::ExitCode;

use serde_json::json;

use super::error::CliError;
use super::log::{Format, open};
use super::{output, words};
use crate::events::check::check;
use crate::events::damage::census;
use crate::run::verify::verify_decisions;

/// Check a log: its numbers and tree, and every decision planned again.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The data folder
    #[arg(long, value_name = "DIR", default_value = "wharf-data")]
    dir: PathBuf,
    /// How it is printed
    #[arg(long, value_enum, default_value = "text")]
    format: Format,
}

/// Runs the command: exit code 1 when something does not hold, 2 when something cannot be verified.
///
/// # Errors
/// When the log cannot be read.
pub fn run(args: &Args) -> Result<ExitCode, CliError> {
    let reader = open(&args.dir)?;
    let unreadable = |error: crate::events::log::ReadError| CliError::refused(error.to_string(), "look at the disk").because(error);
    let integrity = check(reader.as_ref()).map_err(unreadable)?;
    let census = census(reader.as_ref()).map_err(unreadable)?;
    let decisions = verify_decisions(reader.as_ref()).map_err(unreadable)?;
    let whole = integrity.difference.is_none();
    let (code, verdict) = match (&decisions.difference, &decisions.unverifiable) {
        _ if !whole => (1, "does not hold"),
        (Some(_), _) => (1, "does not hold"),
        (None, Some(_)) => (2, "cannot be verified"),
        (None, None) => (0, "holds"),
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
        "unreadable": census.damaged,
        "unreadable_named": census.named.iter().map(ToString::to_string).collect::<Vec<_>>(),
        "newer": census.newer,
        "damaged": integrity.difference.as_ref().map(ToString::to_string),
        "reactions": decisions.reactions,
        "decisions": decisions.decisions,
        "difference": difference,
        "unverifiable": decisions.unverifiable.as_ref().map(|(seq, why)| json!({"seq": seq.0, "why": why})),
    });
    match args.format {
        Format::Json => output::print(&format!("{document}\n"))?,
        Format::Text => output::print(&in_words(&document, verdict))?,
    }
    Ok(ExitCode::from(code))
}

fn in_words(document: &serde_json::Value, verdict: &str) -> String {
    let number = |key: &str| document[key].as_u64().unwrap_or(0);
    let mut text = format!(
        "{verdict}: {} records in {} blocks; {} reactions planned again, {} decisions compared\n",
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
    let said = |value: &serde_json::Value| value.as_str().map_or_else(|| "nothing".to_owned(), str::to_owned);
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
