//! `wharf plan`: the decision table alone, JSON lines in, JSON lines out (hosted-apps.md, "`wharf plan`").

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, Write};
use std::process::ExitCode;

use serde::{Deserialize, Serialize};

use super::error::CliError;

use crate::app::table::{HostRow, Life, Limits, Move, Wanted, What, Why, moves};
use crate::config::Plan;
use crate::ids::{AppId, HostName};

/// One line of input; times in seconds.
#[derive(Debug, Deserialize)]
struct Question {
    now: f64,
    wanted: Vec<Want>,
    hosts: Vec<Host>,
}

#[derive(Debug, Deserialize)]
struct Want {
    org: String,
    name: String,
    host: HostName,
    registered: bool,
    failed: bool,
    #[serde(default)]
    live_host: Option<String>,
}

#[derive(Debug, Deserialize)]
struct Host {
    name: HostName,
    app: String,
    state: State,
    started_at: f64,
    exits: Vec<f64>,
    #[serde(default)]
    deleting: bool,
    /// Any end by no fault of its own.
    #[serde(default)]
    evicted: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
enum State {
    Pending,
    Running,
    Succeeded,
    Failed,
    Unknown,
    Gone,
}

/// One step of the answer.
#[derive(Debug, Serialize)]
struct Step<'a> {
    step: &'static str,
    host: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    why: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    counted: Option<bool>,
}

/// Why a line cannot be answered.
#[derive(Debug, thiserror::Error)]
pub enum PlanError {
    /// The line is no question; with its number.
    #[error("line {line}: {what}")]
    Unreadable {
        /// Counts from 1.
        line: usize,
        /// What is wrong with it.
        what: String,
    },
    /// The input or output broke.
    #[error(transparent)]
    Io(#[from] std::io::Error),
}

/// Answer the planner's questions: JSON lines on stdin, one JSON line out for each.
#[derive(Debug, clap::Args)]
pub struct Args {}

/// Runs the command.
///
/// # Errors
/// At the first line that is no question.
pub fn run(_args: &Args) -> Result<ExitCode, CliError> {
    match answer_lines(std::io::stdin().lock(), super::output::stdout()) {
        Ok(()) => Ok(ExitCode::SUCCESS),
        Err(PlanError::Io(error)) => Err(error.into()),
        Err(error @ PlanError::Unreadable { .. }) => Err(CliError::input(error.to_string(), "a question is {now, wanted, hosts}")),
    }
}

/// Answers each line of `input` with one line on `output`.
///
/// # Errors
/// At the first line that is no question, and when input or output break.
pub fn answer_lines(input: impl BufRead, mut output: impl Write) -> Result<(), PlanError> {
    for (index, line) in input.split(b'\n').enumerate() {
        let unreadable = |what: String| PlanError::Unreadable { line: index + 1, what };
        let line = String::from_utf8(line?).map_err(|_| unreadable("it is not UTF-8".to_owned()))?;
        if line.trim().is_empty() {
            continue;
        }
        let question: Question = serde_json::from_str(&line).map_err(|e| unreadable(e.to_string()))?;
        let moves = answer(&question, moves).map_err(unreadable)?;
        let shown: BTreeMap<&str, Vec<Step<'_>>> =
            moves.iter().map(|(app, moves)| (app.as_str(), moves.iter().map(step_of).collect())).collect();
        serde_json::to_writer(&mut output, &shown).map_err(std::io::Error::from)?;
        output.write_all(b"\n")?;
        // Whoever asks line by line waits for the answer before the next.
        output.flush()?;
    }
    Ok(())
}

fn answer(
    question: &Question,
    decide: impl Fn(Option<&Wanted>, &[HostRow], &Limits, i64) -> Vec<Move>,
) -> Result<BTreeMap<String, Vec<Move>>, String> {
    let defaults = Plan::default();
    let limits = Limits {
        crash_limit: defaults.crash_limit,
        crash_window_us: u64::from(defaults.crash_window_s) * 1_000_000,
        register_us: u64::from(defaults.register_s) * 1_000_000,
    };
    let now_us = micros(question.now)?;
    let mut wants = BTreeMap::new();
    for want in &question.wanted {
        let app = AppId::new(&want.org, &want.name).map_err(|e| e.to_string())?.to_string();
        let live_host = want.live_host.as_deref().filter(|name| !name.is_empty()).map(HostName::new).transpose();
        let wanted = Wanted {
            host: want.host.clone(),
            registered: want.registered,
            answered_us: now_us,
            failed: want.failed,
            live_verdict: false,
            live_host: live_host.map_err(|e| e.to_string())?,
        };
        if wants.insert(app.clone(), wanted).is_some() {
            return Err(format!("{app} is wanted twice"));
        }
    }
    let mut apps: BTreeSet<&str> = wants.keys().map(String::as_str).collect();
    apps.extend(question.hosts.iter().map(|host| host.app.as_str()));
    let mut answers = BTreeMap::new();
    for app in apps {
        let rows: Result<Vec<HostRow>, String> = question.hosts.iter().filter(|host| host.app == app).map(row_of).collect();
        let moves = decide(wants.get(app), &rows?, &limits, now_us);
        if !moves.is_empty() {
            answers.insert(app.to_owned(), moves);
        }
    }
    Ok(answers)
}

fn row_of(host: &Host) -> Result<HostRow, String> {
    Ok(HostRow {
        name: host.name.clone(),
        life: match host.state {
            State::Pending => Life::Pending,
            State::Running => Life::Running,
            State::Succeeded | State::Failed => Life::Ended,
            State::Unknown => Life::Unknown,
            State::Gone => Life::Gone,
        },
        registering_since_us: Some(micros(host.started_at)?),
        exits_us: host.exits.iter().map(|at| micros(*at)).collect::<Result<_, _>>()?,
        deleting: host.deleting,
        no_fault: host.evicted,
    })
}

/// Seconds as microseconds; the vectors' times have millisecond steps.
fn micros(seconds: f64) -> Result<i64, String> {
    let us = (seconds * 1e6).round();
    if us.is_finite() && us.abs() < 9e18 {
        #[expect(clippy::cast_possible_truncation, reason = "checked against the bounds above")]
        let us = us as i64;
        Ok(us)
    } else {
        Err(format!("{seconds} is no time in seconds"))
    }
}

fn step_of(step: &Move) -> Step<'_> {
    let (name, why, counted) = match step.what {
        What::Start => ("start", None, None),
        What::Revive { counted } => ("revive", None, Some(counted)),
        What::Stop => ("stop", None, None),
        What::WentLive => ("went_live", None, None),
        What::Failed(Why::Exited) => ("failed", Some("exited"), None),
        What::Failed(Why::NeverRegistered) => ("failed", Some("never_registered"), None),
        What::Failed(Why::KeepsExiting) => ("failed", Some("keeps_exiting"), None),
    };
    Step { step: name, host: step.host.as_str(), why, counted }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::app::table::{moves_without, rules};

    /// Every line of a vector file is answered exactly as it expects.
    fn check(vectors: &str) {
        let mut wrong = Vec::new();
        for (index, line) in vectors.lines().enumerate() {
            let mut case: serde_json::Value = serde_json::from_str(line).expect("a vector is JSON");
            let expect = case["expect"].take();
            let mut out = Vec::new();
            answer_lines(line.as_bytes(), &mut out).expect("a vector is a question");
            let got: serde_json::Value = serde_json::from_slice(&out).expect("an answer is JSON");
            if got != expect {
                wrong.push(format!("line {}: {got} instead of {expect}", index + 1));
            }
        }
        assert!(wrong.is_empty(), "{} wrong, first: {}", wrong.len(), wrong[0]);
    }

    #[test]
    fn all_of_the_seeds_vectors_are_answered() {
        check(include_str!("../../tests/data/vectors/plan-seed.jsonl"));
    }

    #[test]
    fn all_of_our_vectors_are_answered() {
        check(include_str!("../../tests/data/vectors/plan-ours.jsonl"));
    }

    #[test]
    fn every_row_of_the_table_is_needed_by_a_vector() {
        let vectors =
            concat!(include_str!("../../tests/data/vectors/plan-seed.jsonl"), include_str!("../../tests/data/vectors/plan-ours.jsonl"));
        let questions: Vec<Question> = vectors.lines().map(|line| serde_json::from_str(line).expect("a question")).collect();
        for rule in rules() {
            let needed = questions.iter().any(|question| {
                let without = |wanted: Option<&Wanted>, hosts: &[HostRow], limits: &Limits, now_us: i64| {
                    moves_without(rule, wanted, hosts, limits, now_us)
                };
                let words = |answer: BTreeMap<String, Vec<Move>>| {
                    answer.into_iter().map(|(app, moves)| (app, moves.into_iter().map(|one| (one.host, one.what)).collect())).collect()
                };
                let whole: BTreeMap<String, Vec<(HostName, What)>> = words(answer(question, moves).expect("an answer"));
                whole != words(answer(question, without).expect("an answer"))
            });
            assert!(needed, "no vector fails without {rule}");
        }
    }

    #[test]
    fn a_line_that_is_no_question_is_named() {
        let mut out = Vec::new();
        let refused = answer_lines("\n{\"now\":1}\n".as_bytes(), &mut out).expect_err("it lacks fields");
        assert!(refused.to_string().starts_with("line 2: missing field"), "{refused}");
    }
}
