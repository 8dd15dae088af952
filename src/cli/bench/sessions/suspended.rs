//! A log of sessions that were made, ended and suspended, as the daemon would have written it; and what opening it costs, in a
//! process that does nothing else.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

use tokio::task::JoinSet;

use super::figures::Suspended;
use crate::actors::CommitterThread;
use crate::cli::bench::process::resident_bytes;
use crate::cli::error::CliError;
use crate::cli::output;
use crate::cli::run::failed;
use crate::clock::{self, Clock, Entropy};
use crate::config::Sessions;
use crate::events::kinds::daemon::{IncarnationStarted, Listed};
use crate::events::kinds::pod::{Container, ContainerEnd, ContainerState, GoneHow, Phase, PodGone, PodSeen, Scheduling};
use crate::events::kinds::session::{ClaimPhase, ClaimSeen, ServiceSeen, SessionAsked, SessionDoing, SessionObject, SessionPlanSettings};
use crate::events::kinds::step::{ObjectSeen, Outcome, StepSettled};
use crate::events::kinds::tail::{TailLack, TailUnavailable};
use crate::events::log::OpenOptions;
use crate::events::record::{Draft, Event};
use crate::events::sled_log::SledLog;
use crate::ids::{BadName, HostName, Seq, SessionId, Subject, Tenant, Uid, Word};
use crate::run::recover::{Recovered, fold_on};
use crate::run::serve::ServeError;
use crate::session::state::Session;
use crate::session::view::{State, view};
use crate::subject::react::{Under, committed, react};
use crate::subject::rules::Rules;
use crate::telemetry::Metrics;

/// The subcommand of `wharf bench` that the child is started with.
pub(in crate::cli::bench) const OPEN: &str = "open-sessions";

/// Reactions that are appended together: what a busy daemon's group commits hold.
const TOGETHER: usize = 500;

/// Open a log and print what is resident before and after, bytes, and how long it took, milliseconds
#[derive(Debug, clap::Args)]
#[command(hide = true)]
pub(in crate::cli::bench) struct Args {
    /// The log's folder
    log: PathBuf,
}

/// The child's side.
pub(in crate::cli::bench) fn open(args: &Args) -> Result<ExitCode, CliError> {
    let (before, opened) = (resident_bytes(), clock::now());
    let recovered = recover(&args.log)?;
    let took_ms = opened.elapsed().as_secs_f64() * 1_000.0;
    // What the states take, and not what reading them took.
    let resident = before.zip(resident_bytes()).map(|(before, after)| after.saturating_sub(before));
    let told = serde_json::json!({"sessions": recovered.sessions.states.len(), "resident": resident, "took_ms": took_ms});
    output::print(&format!("{told}\n"))?;
    Ok(ExitCode::SUCCESS)
}

fn recover(log: &Path) -> Result<Recovered, CliError> {
    let reader = SledLog::open_for_reading(log).map_err(|error| failed(ServeError::Open(error)))?;
    let mut recovered = Recovered::default();
    fold_on(&mut recovered, &*reader, Seq(1), reader.head()).map_err(|error| CliError::refused(error.to_string(), "report it"))?;
    Ok(recovered)
}

/// Writes so many and opens them: in a child where there is a program for it.
pub(super) async fn measure(dir: &Path, count: usize, program: Option<&Path>) -> Result<Suspended, CliError> {
    std::fs::create_dir_all(dir)?;
    let log = dir.join("log");
    write(&log, count).await?;
    let Some(program) = program else {
        let opened = clock::now();
        let recovered = recover(&log)?;
        let open_ms = opened.elapsed().as_secs_f64() * 1_000.0;
        let suspended = recovered.sessions.states.values().filter(|session| view(session).state == State::Suspended).count();
        return Ok(Suspended { count: suspended, rss_bytes_each: None, open_ms });
    };
    let child = Command::new(program).args(["bench", OPEN]).arg(&log).stdin(Stdio::null()).stderr(Stdio::inherit()).output()?;
    let told: serde_json::Value = serde_json::from_slice(&child.stdout).unwrap_or_default();
    let (Some(open_ms), Some(known)) = (told["took_ms"].as_f64(), told["sessions"].as_u64()) else {
        return Err(CliError::refused("the log of suspended sessions could not be opened", "report it"));
    };
    let known = usize::try_from(known).unwrap_or(0);
    Ok(Suspended { count: known, rss_bytes_each: told["resident"].as_u64().map(|bytes| bytes / known.max(1) as u64), open_ms })
}

async fn write(log: &Path, count: usize) -> Result<(), CliError> {
    let (clock, options) = (Clock::real(), OpenOptions::new(Subject::Daemon("bench".to_owned())));
    let (log, _) = SledLog::open(log, &clock, Entropy::os(), &options).map_err(|error| failed(ServeError::Open(error)))?;
    let (committer, thread) = CommitterThread::start(Box::new(log), Metrics::default())?;
    let bad_name = |error: BadName| CliError::refused(error.to_string(), "report it");
    for begin in (0..count).step_by(TOGETHER) {
        let ids = begin..count.min(begin + TOGETHER);
        let mut lives: Vec<Life> = ids.map(Life::new).collect::<Result<_, _>>().map_err(bad_name)?;
        for part in Part::ALL {
            let mut appending = JoinSet::new();
            for mut life in lives.drain(..) {
                let (committer, now_us) = (committer.clone(), clock.now_us());
                let reaction = life.reaction(part, now_us).map_err(bad_name)?;
                appending.spawn(async move {
                    let records = committer.append(reaction).await.map_err(|error| error.to_string())?;
                    committed(&mut life.session, Rules::CURRENT, &records);
                    Ok::<Life, String>(life)
                });
            }
            while let Some(appended) = appending.join_next().await {
                let gone = |why: String| CliError::refused(format!("the log does not take it: {why}"), "look at the disk");
                lives.push(appended.map_err(|error| gone(error.to_string()))?.map_err(gone)?);
            }
        }
    }
    drop(committer);
    let gone = || CliError::refused("the committer failed", "look at the disk");
    thread.ended().await.ok_or_else(gone)?.close()?;
    Ok(())
}

/// The parts of a session's life until it is suspended, a reaction each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    Asked,
    Made,
    Ready,
    Ended,
    Gone,
}

impl Part {
    const ALL: [Self; 5] = [Self::Asked, Self::Made, Self::Ready, Self::Ended, Self::Gone];
}

/// One session with all that becomes of it.
struct Life {
    id: SessionId,
    session: Session,
    version: u64,
}

impl Life {
    fn new(number: usize) -> Result<Self, BadName> {
        Ok(Self { id: SessionId::new(&format!("0b0e6f5c-74a1-4d35-9f0a-{number:012}"))?, session: Session::default(), version: 1 })
    }

    /// The next part: every step in flight is done, and the cluster shows what it made.
    fn reaction(&mut self, part: Part, now_us: i64) -> Result<crate::events::record::Reaction, BadName> {
        let settings = SessionPlanSettings::from(&Sessions::default());
        let under = Under { rules: Rules::CURRENT, settings: &settings, settings_seq: Seq::NONE };
        let mut events = self.settled()?;
        match part {
            Part::Asked => {
                let (version, world) = ("bench".to_owned(), "bench".to_owned());
                events.push(Event::IncarnationStarted(IncarnationStarted { number: 1, version, world, acts: true }));
                events.push(Event::Listed(Listed { resource_version: 1, pods: 0 }));
                let tenant = Tenant::new("acme")?;
                events.push(Event::SessionAsked(SessionAsked { by: Word::new("bench"), tenant, force_after_us: None }));
            }
            Part::Made => {}
            Part::Ready => events.push(self.pod(now_us, ContainerState::Running { started_us: now_us })?),
            Part::Ended => {
                let end = ContainerEnd { exit_code: 0, signal: 0, reason: Word::new("Completed"), started_us: now_us, finished_us: now_us };
                events.push(self.pod(now_us, ContainerState::Ended(end))?);
            }
            Part::Gone => {
                let lacks = self.session.tails.iter().filter(|(_, tail)| !tail.settled);
                events.extend(lacks.map(|(of, _)| Event::TailUnavailable(TailUnavailable { of: of.clone(), why: TailLack::Gone })));
                let (host, uid) = (HostName::new(&format!("pi-session-{}", self.id))?, self.uid(SessionObject::Pod)?);
                events.push(Event::PodGone(PodGone { host, uid, resource_version: self.version + 1, how: GoneHow::Deleted }));
            }
        }
        let drafts = events.into_iter().map(Draft::input).collect();
        Ok(react(&self.session, &Subject::Session(self.id.clone()), drafts, under, now_us).reaction)
    }

    fn uid(&self, object: SessionObject) -> Result<Uid, BadName> {
        let kind = match object {
            SessionObject::Claim => 1,
            SessionObject::Pod => 2,
            SessionObject::Service => 3,
        };
        let id = self.id.as_str();
        Uid::new(&format!("{kind}{}", id.get(1..).unwrap_or(id)))
    }

    fn settled(&mut self) -> Result<Vec<Event>, BadName> {
        let mut events = Vec::new();
        for (step, flight) in &self.session.flights {
            self.version += 1;
            let (object, doing) = flight.step.act();
            let (uid, resource_version) = (self.uid(object)?, self.version);
            let shows = doing == SessionDoing::Make;
            let shown = shows.then(|| ObjectSeen { uid: uid.clone(), resource_version });
            let settled = StepSettled {
                step: *step,
                outcome: Outcome::Done,
                object: shown,
                attempts: 1,
                audit_id: [1; 16],
                status: 201,
                took_us: 900,
            };
            events.push(Event::StepSettled(settled));
            let (name, tenant) = (Word::new(flight.step.object()), Some(Tenant::new("acme")?));
            match object {
                SessionObject::Claim if shows => {
                    let phase = ClaimPhase::Pending;
                    events.push(Event::ClaimSeen(ClaimSeen { name, uid, resource_version, step: None, tenant, deleting: false, phase }));
                }
                SessionObject::Service if shows => {
                    let address = Some(std::net::IpAddr::from([10, 96, 0, 7]));
                    let seen = ServiceSeen { name, uid, resource_version, step: None, tenant, deleting: false, address, as_made: true };
                    events.push(Event::ServiceSeen(seen));
                }
                SessionObject::Claim | SessionObject::Service | SessionObject::Pod => {}
            }
        }
        Ok(events)
    }

    fn pod(&mut self, now_us: i64, state: ContainerState) -> Result<Event, BadName> {
        self.version += 1;
        let ready = matches!(state, ContainerState::Running { .. });
        Ok(Event::PodSeen(PodSeen {
            host: HostName::new(&format!("pi-session-{}", self.id))?,
            uid: self.uid(SessionObject::Pod)?,
            resource_version: self.version,
            release: 0,
            sha256: None,
            step: None,
            phase: if ready { Phase::Running } else { Phase::Succeeded },
            reason: Word::default(),
            deleting: false,
            node: Word::new("node1"),
            scheduling: Scheduling::Done,
            disruption: None,
            ready,
            created_us: now_us,
            install: Container { state: ContainerState::Absent, restarts: 0, last_end: None },
            app: Container { state, restarts: 0, last_end: None },
        }))
    }
}
