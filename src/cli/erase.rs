//! `wharf erase`: takes away what a record says, in a folder that no daemon has open or of a daemon that runs. That it was erased is
//! a record.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use reqwest::Method;
use serde_json::{Value, json};

use super::error::CliError;
use super::remote::{ANSWER_WITHIN, Remote, TokenArgs};
use super::{log, output};
use crate::clock::{Clock, Entropy};
use crate::events::archive::{Segment, holding};
use crate::events::backup::about::About;
use crate::events::erase::{Erasure, NotErased, WHY_MAX};
use crate::events::log::{EventLog as _, LogReader, OpenOptions};
use crate::events::sled_log::SledLog;
use crate::http::erase::Erased;
use crate::ids::{Seq, Subject, Word, shown};

/// Erase what a record says; that it was there, and all proofs, stay.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The record's number
    #[arg(value_name = "SEQ")]
    seq: u64,
    /// Why, in your words; recorded
    #[arg(long, value_name = "TEXT", value_parser = reason)]
    reason: String,
    /// The data folder; the daemon is stopped
    #[arg(long, value_name = "DIR", default_value = "wharf-data", conflicts_with = "server")]
    dir: PathBuf,
    /// A running daemon's control listener, instead of a folder
    #[arg(long, value_name = "URL")]
    server: Option<String>,
    #[command(flatten)]
    token: TokenArgs,
}

/// The most bytes of a daemon's answer.
const ANSWER_MAX: usize = 1 << 20;

fn reason(text: &str) -> Result<String, String> {
    if (1..=WHY_MAX).contains(&text.len()) { Ok(text.to_owned()) } else { Err(format!("1 to {WHY_MAX} bytes")) }
}

/// Runs the command: exit code 1 when the record may not be erased, or is not there.
///
/// # Errors
/// When the log cannot be opened or written to.
pub fn run(args: &Args) -> Result<ExitCode, CliError> {
    super::wait_for(async {
        match &args.server {
            Some(server) => erase_there(args, server).await,
            None => erase(args),
        }
    })
}

/// Has a running daemon erase it.
async fn erase_there(args: &Args, server: &str) -> Result<ExitCode, CliError> {
    const PATH: &str = "/v1/log/erase";
    let remote = Remote::new(server, &args.token)?;
    let wanted = json!({"seq": args.seq, "reason": args.reason});
    let (status, answer) = remote.call(Method::POST, PATH, &[], Some(&wanted), ANSWER_MAX, ANSWER_WITHIN).await?;
    let foreign = || CliError::refused(format!("{} answers something else", shown(server, 80)), "is it a daemon of this version?");
    match status.as_u16() {
        200 => {
            let Erased { seq, recorded, archived } = serde_json::from_slice(&answer.body).map_err(|error| foreign().because(error))?;
            archived.iter().for_each(|path| note_of_archived(path, seq));
            output::note("wharf: its bytes may be in the database's file until the daemon's next start, which writes that anew");
            told(seq, recorded)
        }
        404 | 409 | 410 => {
            let problem: Value = serde_json::from_slice(&answer.body).map_err(|error| foreign().because(error))?;
            let detail = problem["detail"].as_str().ok_or_else(foreign)?;
            output::note(&format!("wharf: {}", shown(detail, 400)));
            Ok(ExitCode::from(1))
        }
        _ => Err(remote.no_good(PATH, status)),
    }
}

fn told(seq: u64, recorded: u64) -> Result<ExitCode, CliError> {
    output::print(&format!("record {seq} says nothing any more; that it was erased is record {recorded}\n"))?;
    Ok(ExitCode::SUCCESS)
}

fn note_of_archived(path: &str, seq: u64) {
    let at = shown(path, 200);
    output::note(&format!("wharf: {at} holds what record {seq} said, and is not changed: remove it, or keep it as you keep backups"));
}

fn erase(args: &Args) -> Result<ExitCode, CliError> {
    // Read first: what is not a sound log is left as it is, and a log knows whose it is.
    let (daemon, archived, removed) = {
        let reader = log::open(&args.dir)?;
        (daemon(reader.as_ref())?, archived(&args.dir, args.seq, reader.as_ref()), reader.removed())
    };
    for segment in &archived {
        note_of_archived(&segment.path.display().to_string(), args.seq);
    }
    if let Some(removed) = removed.filter(|removed| args.seq <= removed.to.0) {
        output::note(&format!("wharf: record {} aged out: the log from record {} on says nothing of it", args.seq, removed.kept));
        return Ok(ExitCode::from(1));
    }
    let options = OpenOptions::new(daemon.clone());
    let (clock, dir) = (Clock::real(), log::folder(&args.dir));
    let refused = |error: &dyn std::fmt::Display| {
        CliError::refused(format!("{}: {error}", shown(&dir.display().to_string(), 200)), "wharf verify names what is wrong with a log")
    };
    let (mut log, _) = SledLog::open(&dir, &clock, Entropy::os(), &options).map_err(|error| refused(&error).because(error))?;
    let erasure = Erasure { seq: Seq(args.seq), daemon, time_us: clock.now_us(), who: Word::default(), why: args.reason.clone() };
    let erased = log.erase(&erasure);
    let closed = Box::new(log).close();
    match erased {
        Ok(record) => {
            closed.map_err(|error| refused(&error).because(error))?;
            renew(&dir)?;
            told(args.seq, record.header.seq.0)
        }
        Err(error @ (NotErased::Append(_) | NotErased::Read(_) | NotErased::Block(_) | NotErased::Frame(_))) => {
            Err(refused(&error).because(error))
        }
        Err(error) => {
            if matches!(error, NotErased::Already(_)) {
                renew(&dir)?;
            }
            output::note(&format!("wharf: {error}"));
            Ok(ExitCode::from(1))
        }
    }
}

/// The segments of the archive that hold the record, as the log last told where the archive is.
pub(super) fn archived(data_dir: &Path, seq: u64, reader: &dyn LogReader) -> Vec<Segment> {
    let told = About::of(reader, 0).ok().and_then(|about| about.settings.get("log.archive").cloned());
    // As it is told: between quotes.
    let dir: Option<String> = told.and_then(|told| serde_json::from_str(&told).ok());
    let Some(dir) = dir.filter(|dir| !dir.is_empty()) else { return Vec::new() };
    holding(&data_dir.join(dir), Seq(seq)).unwrap_or_else(|error| {
        output::note(&format!("wharf: the archive cannot be read, and may hold what the record said: {error}"));
        Vec::new()
    })
}

/// The database's file keeps what was taken out of it until it needs the room: it is written anew.
fn renew(dir: &Path) -> Result<(), CliError> {
    SledLog::renew(dir).map_err(|error| {
        let what = "the record is erased, and its bytes may still be in the database's file, which could not be written anew";
        CliError::refused(format!("{what}: {error}"), "make room for a second copy of it and erase the record again").because(error)
    })
}

/// The daemon whose log it is: its first record is about it.
fn daemon(reader: &dyn LogReader) -> Result<Subject, CliError> {
    let mut daemons = reader.subjects().into_iter().filter(|subject| matches!(subject, Subject::Daemon(_)));
    daemons.next().ok_or_else(|| CliError::input("the log says of no daemon that it is its", "wharf verify names what is wrong with it"))
}
