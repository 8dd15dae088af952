//! `wharf backup`: a log, or a part of it, as one file to hand on; of a folder at rest, or of a running daemon.

use std::path::PathBuf;
use std::process::ExitCode;

use super::download::{download, failed, selected};
use super::error::CliError;
use super::log::{open, the_subject};
use super::output;
use super::source::Source;
use crate::clock::Clock;
use crate::events::backup::BackupError;
use crate::events::backup::about::About;
use crate::events::backup::entry::End;
use crate::events::backup::select::{Select, page};
use crate::events::backup::write::NewBackup;
use crate::ids::{Seq, Subject, hex, shown};

/// Keep the log, or a part of it, as one file to hand on.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The file; one that is there is replaced when the new one is whole
    #[arg(value_name = "FILE")]
    file: PathBuf,
    #[command(flatten)]
    source: Source,
    /// From the block of this record
    #[arg(long, value_name = "SEQ", default_value_t = 1)]
    from: u64,
    /// To this record, with the rest of its block and of its reaction
    #[arg(long, value_name = "SEQ", default_value_t = u64::MAX, hide_default_value = true)]
    to: u64,
    /// Only the blocks with records of this subject or of the daemon; a running daemon takes its whole name
    #[arg(long, value_name = "SUBJECT")]
    subject: Option<String>,
}

/// Runs the command.
///
/// # Errors
/// When the log cannot be read, or the file cannot be written.
pub fn run(args: &Args) -> Result<ExitCode, CliError> {
    let made = match args.source.server() {
        Some(server) => super::wait_for(download(&args.file, &args.source, server, &of_daemon(args)?))?,
        None => from_folder(args)?,
    };
    let what = if made.whole.is_some() { "whole" } else { "a part of the log" };
    output::print(&format!(
        "{}: {what}, {} records in {} blocks; log {} to {}, tree of {}, root {}\n",
        shown(&args.file.display().to_string(), 200),
        made.records,
        made.blocks,
        made.log,
        made.last,
        made.tree.size,
        hex(&made.tree.root),
    ))?;
    Ok(ExitCode::SUCCESS)
}

fn of_daemon(args: &Args) -> Result<Select, CliError> {
    let subject = args.subject.as_deref().map(Subject::parse).transpose();
    let subject =
        subject.map_err(|bad| CliError::input(format!("--subject: {bad}"), "with --server it is the whole name: app/ORG/NAME"))?;
    Ok(Select { from: Seq(args.from.max(1)), to: Seq(args.to), subject })
}

fn from_folder(args: &Args) -> Result<End, CliError> {
    let reader = open(args.source.dir())?;
    if reader.is_part() {
        return Err(CliError::input("--dir: it holds a part of a log", "copy that file, or keep a whole one"));
    }
    let subject = args.subject.as_deref().map(|part| the_subject(part, &reader.subjects())).transpose()?;
    let about = About::of(reader.as_ref(), Clock::wall_now_us()).map_err(|error| failed(&args.file, BackupError::Io(error.0)))?;
    let mut select = Select { from: Seq(args.from.max(1)), to: Seq(args.to), subject };
    let about = selected(about, &mut select);
    let whole = about.is_whole();
    let mut new = NewBackup::begin(&args.file, about).map_err(|error| failed(&args.file, error))?;
    if whole {
        new.aged_out(reader.as_ref()).map_err(|error| failed(&args.file, error))?;
    }
    loop {
        let page = page(reader.as_ref(), &select).map_err(|error| failed(&args.file, BackupError::Io(error.0)))?;
        for (key, block) in &page.blocks {
            new.block(*key, block).map_err(|error| failed(&args.file, error))?;
        }
        match page.next {
            Some(next) => select.from = next,
            None => return new.finish().map_err(|error| failed(&args.file, error)),
        }
    }
}
