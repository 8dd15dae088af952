//! `wharf log`: what happened, in order, a line a record. Knows records as a reader gives them, not where they are stored.

use std::io::{self, BufWriter, StdoutLock, Write};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use serde_json::{Value, json};

use super::error::CliError;
use super::source::Source;
use super::when::When;
use crate::clock::Clock;
use crate::events::backup::about::About;
use crate::events::backup::file;
use crate::events::log::{LogReader, OpenError};
use crate::events::record::{Event, Header, Kind, Role};
use crate::events::sled_log::SledLog;
use crate::events::stored::{Body, Item, StoredRecord};
use crate::events::tree::Hash;
use crate::events::words;
use crate::feed::cloudevent::{self, Around};
use crate::feed::correlation::Correlation;
use crate::ids::{Seq, Subject, shown};
use crate::postmortem::reference::subjects_named;
use crate::run::rescue::{self, Probed};

/// How a command's answer is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Format {
    /// For people
    Text,
    /// For programs, a JSON document a line
    Json,
}

/// Print what happened, in order, a line a record.
#[derive(Debug, Clone, clap::Args)]
pub struct Args {
    /// app/ORG/NAME, session/ID or daemon/INSTANCE, or a part that only one has
    #[arg(value_name = "SUBJECT")]
    pub subject: Option<String>,
    #[command(flatten)]
    pub source: Source,
    /// From the record after this one
    #[arg(long, value_name = "SEQ")]
    pub after: Option<u64>,
    /// To this record, or to this time: RFC 3339, or before now as in -15m
    #[arg(long, value_name = "SEQ|TIME", allow_hyphen_values = true)]
    pub until: Option<String>,
    /// Of this kind alone, for example PodSeen
    #[arg(long, value_name = "KIND")]
    pub kind: Option<String>,
    /// Go on with what is appended, until interrupted; of a running daemon
    #[arg(long, requires = "server", conflicts_with = "until")]
    pub follow: bool,
    /// How it is printed
    #[arg(long, value_enum, default_value = "text")]
    pub format: LogFormat,
}

/// How records are printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum LogFormat {
    /// For people
    Text,
    /// For programs, a JSON document a line
    Json,
    /// As the audit feed has them, an event a line
    Cloudevents,
}

/// What a stored record says, as far as it can be read.
#[derive(Debug, Clone, Copy)]
pub enum Said<'a> {
    /// An event of this build.
    Event(&'a Event),
    /// A newer build wrote it, and it only informs.
    Newer,
    /// A newer build wrote it, and it decides.
    NeedsVersion,
    /// Its payload was erased or is left out.
    Withheld,
}

/// What a filter says of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Take {
    /// It is wanted.
    Yes,
    /// It is not.
    No,
    /// Neither it nor any later one is.
    End,
}

/// Which records are wanted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Filter {
    /// The one subject, when one was named.
    pub subject: Option<Subject>,
    /// The first record that may be wanted.
    pub from: Seq,
    until: Option<When>,
    kind: Option<Kind>,
}

impl Filter {
    /// What the arguments want, of a log that has these subjects; `now_us` is what `-15m` counts from.
    ///
    /// # Errors
    /// Usage: no such subject, several, no such kind, no such time.
    pub fn of(args: &Args, subjects: &[Subject], now_us: i64) -> Result<Self, CliError> {
        let subject = args.subject.as_deref().map(|part| the_subject(part, subjects)).transpose()?;
        let kind = args.kind.as_deref().map(the_kind).transpose()?;
        let until = args.until.as_deref().map(|text| When::parse("--until", text, now_us)).transpose()?;
        Ok(Self { subject, from: Seq(args.after.unwrap_or(0).saturating_add(1)), until, kind })
    }

    /// Whether the record is wanted.
    #[must_use]
    pub fn take(&self, header: &Header) -> Take {
        let in_time = match self.until {
            Some(When::Seq(last)) if header.seq > last => return Take::End,
            // Not the end: what another subject decided a little earlier may come a little later.
            Some(When::TimeUs(last)) => header.time_us <= last,
            Some(When::Seq(_)) | None => true,
        };
        let wanted = in_time
            && header.seq >= self.from
            && self.subject.as_ref().is_none_or(|subject| *subject == header.subject)
            && self.kind.is_none_or(|kind| kind.number() == header.kind);
        if wanted { Take::Yes } else { Take::No }
    }
}

/// The subject that a part of its name stands for.
///
/// # Errors
/// Usage: none has that part, or several have.
pub fn the_subject(part: &str, subjects: &[Subject]) -> Result<Subject, CliError> {
    match subjects_named(subjects, part).as_slice() {
        [subject] => Ok((*subject).clone()),
        [] => Err(CliError::input(format!("no subject of this log has \"{}\" in its name", shown(part, 80)), "without it all are shown")),
        several => {
            let mut names: Vec<String> = several.iter().take(20).map(ToString::to_string).collect();
            if several.len() > names.len() {
                names.push(format!("and {} more", several.len() - names.len()));
            }
            Err(CliError::input(format!("\"{}\" may be {}", shown(part, 80), names.join(", ")), "name one of them"))
        }
    }
}

fn the_kind(name: &str) -> Result<Kind, CliError> {
    Kind::parse(name).ok_or_else(|| {
        let all: Vec<&str> = Kind::ALL.iter().map(|kind| kind.name()).collect();
        CliError::input(format!("--kind {}: there is no such kind", shown(name, 80)), format!("there are {}", all.join(", ")))
    })
}

/// The folder of a data folder's log: its `log`, or itself.
#[must_use]
pub fn folder(dir: &Path) -> PathBuf {
    let inner = dir.join("log");
    if inner.is_dir() { inner } else { dir.to_path_buf() }
}

/// Opens a log for reading: of a data folder, of its `log`, or of a backup file. A folder's log that did not end in order is tried
/// in a child first, as the daemon tries it: a damaged store can kill whoever opens it.
///
/// # Errors
/// When there is none, it is held by a running daemon, the backup is damaged, or the store killed the child.
pub fn open(dir: &Path) -> Result<Arc<dyn LogReader>, CliError> {
    open_tried(dir, rescue::probe_in_a_child)
}

pub(super) fn open_tried(dir: &Path, probe: rescue::Probe) -> Result<Arc<dyn LogReader>, CliError> {
    if dir.is_file() {
        return file::open(dir).map_err(|error| {
            CliError::input(format!("{}: {error}", shown(&dir.display().to_string(), 200)), "take another copy of it").because(error)
        });
    }
    let dir = folder(dir);
    let at = shown(&dir.display().to_string(), 200);
    let tried = rescue::try_first(&dir, probe).map_err(|error| {
        let advice = "the store did not end in order, and is opened in a child of this program first";
        CliError::refused(format!("{at} cannot be tried: {error}"), advice).because(error)
    })?;
    if let Probed::Lost(why) = tried {
        let advice = "a backup has what it had; wharf run sets such a store aside and begins a new log";
        return Err(CliError::refused(format!("{at}: the store cannot be opened: {why}"), advice));
    }
    SledLog::open_for_reading(&dir).map_err(|error| {
        let advice = match &error {
            OpenError::Held => "stop the daemon that runs on it, or read a backup: wharf backup FILE --server URL makes one",
            OpenError::Missing => "--dir names the data folder",
            OpenError::ReadOnly(_) => "the store writes a lock when it is opened: copy the folder to where that is allowed",
            OpenError::Full(_) | OpenError::Damaged { .. } | OpenError::NeedsVersion { .. } | OpenError::Io(_) => "",
        };
        CliError::refused(format!("{at}: {error}"), advice).because(error)
    })
}

/// Runs the command.
///
/// # Errors
/// When the log cannot be read, or the filter names nothing.
pub fn run(args: &Args) -> Result<ExitCode, CliError> {
    if let Some(server) = args.source.server().filter(|_| args.follow) {
        return super::follow::follow(args, server);
    }
    let reader = args.source.open()?;
    let filter = Filter::of(args, &reader.subjects(), Clock::wall_now_us())?;
    if let Some(removed) = reader.removed() {
        super::output::note(&format!("wharf: history is from record {}: what is before it aged out", removed.kept));
    }
    let mut printer = Printer::new(reader.as_ref(), args.format);
    let mut failed = None;
    let mut visit = |item: Item, leaf| {
        let printed = match item {
            Ok(stored) => match filter.take(&stored.header) {
                Take::End => return ControlFlow::Break(()),
                Take::No => return ControlFlow::Continue(()),
                Take::Yes => printer.print(&stored, leaf),
            },
            Err(damage) => {
                super::output::note(&format!("wharf: {damage}"));
                Ok(())
            }
        };
        match printed {
            Ok(()) => ControlFlow::Continue(()),
            Err(error) => {
                failed = Some(error);
                ControlFlow::Break(())
            }
        }
    };
    let read = match &filter.subject {
        // By the index, which knows no leaves.
        Some(subject) if args.format != LogFormat::Cloudevents => reader.subject(subject, filter.from, &mut |item| visit(item, None)),
        Some(_) | None => reader.scan_proved(filter.from, &mut visit),
    };
    read.map_err(|error| CliError::refused(error.to_string(), "look at the disk").because(error))?;
    if let Some(error) = failed {
        return Err(error.into());
    }
    printer.out.flush()?;
    Ok(ExitCode::SUCCESS)
}

/// Prints records as they come.
struct Printer<'a> {
    out: BufWriter<StdoutLock<'static>>,
    reader: &'a dyn LogReader,
    format: LogFormat,
    /// The world of the feed's events.
    world: String,
    correlation: Correlation,
}

impl<'a> Printer<'a> {
    fn new(reader: &'a dyn LogReader, format: LogFormat) -> Self {
        let about = Some(reader).filter(|_| format == LogFormat::Cloudevents);
        let about = about.and_then(|reader| About::of(reader, Clock::wall_now_us()).ok());
        let world = about.and_then(|about| serde_json::from_str(about.settings.get("world")?).ok()).unwrap_or_default();
        Self { out: super::output::stdout(), reader, format, world, correlation: Correlation::default() }
    }

    fn print(&mut self, stored: &StoredRecord, leaf: Option<Hash>) -> io::Result<()> {
        let format = match self.format {
            LogFormat::Text => Format::Text,
            LogFormat::Json => Format::Json,
            LogFormat::Cloudevents => {
                self.correlation.see(self.reader, stored).map_err(|error| error.0)?;
                let around = Around { world: &self.world, tails: true };
                let event = cloudevent::line(stored, leaf, self.correlation.of(stored).as_deref(), around);
                return writeln!(self.out, "{event}");
            }
        };
        print(&mut self.out, format, &stored.header, said(&stored.body))
    }
}

fn said(body: &Body) -> Said<'_> {
    match body {
        Body::Known(event) => Said::Event(event),
        Body::Opaque(_) => Said::Newer,
        Body::NeedsVersion(_) => Said::NeedsVersion,
        Body::Withheld => Said::Withheld,
    }
}

/// Prints one record.
///
/// # Errors
/// When the output does not take it.
pub fn print(out: &mut impl Write, format: Format, header: &Header, said: Said<'_>) -> io::Result<()> {
    match format {
        Format::Text => text(out, header, said),
        Format::Json => writeln!(out, "{}", document(header, said)),
    }
}

fn text(out: &mut impl Write, header: &Header, said: Said<'_>) -> io::Result<()> {
    let words = match said {
        Said::Event(event) => words::line(event),
        Said::Newer => "(written by a newer version)".to_owned(),
        Said::NeedsVersion => "(decides; a newer version is needed to read it)".to_owned(),
        Said::Withheld => "(left out)".to_owned(),
    };
    let cause = if header.cause == Seq::NONE { String::new() } else { format!(" <- {}", header.cause) };
    let (time, kind) = (words::moment(header.time_us), words::kind_name(header));
    let gap = if words.is_empty() { "" } else { " " };
    writeln!(out, "{:<8} {time} {} {kind}{gap}{words}{cause}", header.seq, header.subject)
}

fn document(header: &Header, said: Said<'_>) -> Value {
    let (payload, state) = match said {
        Said::Event(event) => (words::payload(event), "known"),
        Said::Newer => (Value::Null, "newer"),
        Said::NeedsVersion => (Value::Null, "needs_version"),
        Said::Withheld => (Value::Null, "withheld"),
    };
    let role = Kind::from_number(header.kind).map(|kind| match kind.role() {
        Role::Input => "input",
        Role::Decision => "decision",
        Role::Note => "note",
    });
    let number = |seq: Seq| (seq != Seq::NONE).then_some(seq.0);
    json!({
        "seq": header.seq.0,
        "time": words::moment(header.time_us),
        "subject": header.subject.to_string(),
        "subject_seq": header.subject_seq,
        "kind": words::kind_name(header),
        "kind_version": header.kind_version,
        "role": role,
        "rules": header.rules,
        "reaction": header.reaction.0,
        "cause": number(header.cause),
        "settings": number(header.settings),
        "state": state,
        "payload": payload,
    })
}
