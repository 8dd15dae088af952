//! `wharf backup`: a log, or a part of it, as one file to hand on; of a folder at rest, or of a running daemon.

use std::path::PathBuf;
use std::process::ExitCode;

use super::error::CliError;
use super::log::{open, the_subject};
use super::output;
use super::remote::{Remote, TokenArgs};
use crate::clock::Clock;
use crate::events::backup::BackupError;
use crate::events::backup::about::About;
use crate::events::backup::entry::{End, Entries, Next};
use crate::events::backup::select::{PAGE_MAX, Select, page};
use crate::events::backup::write::NewBackup;
use crate::ids::{Seq, Subject, hex, shown};

/// The most bytes of what a daemon says of its log.
const ABOUT_MAX: usize = 1 << 20;

/// Where the next page begins; as the daemon sends it.
const NEXT: &str = "wharf-next";

/// Keep the log, or a part of it, as one file to hand on.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The file; one that is there is replaced when the new one is whole
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// The data folder, or a backup file
    #[arg(long, value_name = "DIR", default_value = "wharf-data", conflicts_with = "server")]
    dir: PathBuf,
    /// A running daemon's control listener, instead of a folder
    #[arg(long, value_name = "URL")]
    server: Option<String>,
    #[command(flatten)]
    token: TokenArgs,
    /// With what tenants wrote: messages and last lines of containers. Needs the role tails; a folder's backup always has them
    #[arg(long, requires = "server")]
    tails: bool,
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
    let made = match &args.server {
        Some(server) => super::wait_for(from_daemon(args, server)),
        None => from_folder(args),
    }?;
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

/// What is asked for, and what is said of it.
fn asked(args: &Args, mut about: About, subject: Option<Subject>) -> (About, Select) {
    let select = Select { from: Seq(args.from.max(1)), to: Seq(args.to.min(about.head)), subject };
    (about.from, about.to) = (select.from.0, select.to.0);
    about.subject = select.subject.as_ref().map(ToString::to_string);
    (about, select)
}

fn from_folder(args: &Args) -> Result<End, CliError> {
    let reader = open(&args.dir)?;
    if reader.is_part() {
        return Err(CliError::input("--dir: it holds a part of a log", "copy that file, or keep a whole one"));
    }
    let subject = args.subject.as_deref().map(|part| the_subject(part, &reader.subjects())).transpose()?;
    let about = About::of(reader.as_ref(), Clock::wall_now_us()).map_err(|error| failed(args, BackupError::Io(error.0)))?;
    let (about, mut select) = asked(args, about, subject);
    let whole = about.is_whole();
    let mut new = NewBackup::begin(&args.file, about).map_err(|error| failed(args, error))?;
    if whole {
        new.aged_out(reader.as_ref()).map_err(|error| failed(args, error))?;
    }
    loop {
        let page = page(reader.as_ref(), &select).map_err(|error| failed(args, BackupError::Io(error.0)))?;
        for (key, block) in &page.blocks {
            new.block(*key, block).map_err(|error| failed(args, error))?;
        }
        match page.next {
            Some(next) => select.from = next,
            None => return new.finish().map_err(|error| failed(args, error)),
        }
    }
}

async fn from_daemon(args: &Args, server: &str) -> Result<End, CliError> {
    let subject = args.subject.as_deref().map(Subject::parse).transpose();
    let subject =
        subject.map_err(|bad| CliError::input(format!("--subject: {bad}"), "with --server it is the whole name: app/ORG/NAME"))?;
    let remote = Remote::new(server, &args.token)?;
    let foreign = |what: &str| CliError::refused(format!("{} {what}", shown(server, 80)), "is it a daemon of this version?");
    let about = remote.get("/v1/log", &[], ABOUT_MAX).await?.body;
    let about: About = serde_json::from_slice(&about).map_err(|error| foreign("does not say what its log is").because(error))?;
    let kept = about.kept.unwrap_or(1);
    let (mut about, mut select) = asked(args, about, subject);
    if select.from < Seq(kept) {
        super::output::note(&format!(
            "wharf: history is from record {kept}; the leaves of what aged out are in a backup of the folder alone, and this one is a part"
        ));
        (select.from, about.from) = (Seq(kept), kept);
    }
    if !args.tails {
        output::note("wharf: messages and last lines of containers are left out; --tails, with the role for them, keeps them");
    }
    let mut new = NewBackup::begin(&args.file, about).map_err(|error| failed(args, error))?;
    loop {
        let mut query = vec![("from", select.from.to_string()), ("to", select.to.to_string())];
        query.extend(args.tails.then(|| ("include", "tails".to_owned())));
        query.extend(select.subject.as_ref().map(|subject| ("subject", subject.to_string())));
        let answer = remote.get("/v1/log/records", &query, PAGE_MAX).await?;
        let mut entries = Entries::of_page(answer.body.as_slice());
        while let Some(next) = entries.step().map_err(|error| foreign("sends no blocks").because(error))? {
            match next {
                Next::Block { key, bytes, .. } => new.block(key, &bytes).map_err(|error| failed(args, error))?,
                Next::Removed { .. } | Next::Numbers { .. } | Next::Base(_) | Next::End(_) => {
                    return Err(foreign("sends a file instead of blocks"));
                }
            }
        }
        let next = answer.headers.get(NEXT).map(|next| next.to_str().ok().and_then(|next| next.parse().ok()).map(Seq));
        match next {
            Some(Some(next)) if next > select.from => select.from = next,
            Some(_) => return Err(foreign("names no next page")),
            None => return new.finish().map_err(|error| failed(args, error)),
        }
    }
}

fn failed(args: &Args, error: BackupError) -> CliError {
    let advice = match &error {
        BackupError::Source { .. } => "wharf verify says what holds; --to keeps what is before it",
        BackupError::Nothing => "wharf log shows what there is",
        BackupError::Io(_) => "look at the disk",
        BackupError::NotOne | BackupError::Newer(_) | BackupError::Damaged { .. } | BackupError::Part => "",
    };
    CliError::refused(format!("{}: {error}", shown(&args.file.display().to_string(), 200)), advice).because(error)
}
