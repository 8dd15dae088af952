//! `wharf sim`: the whole daemon in a simulated world with faults, from a seed; the same seed is the same run.

use std::collections::BTreeSet;
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use super::error::CliError;
use super::output;
use crate::clock::{self, Entropy};
use crate::trial::history::Broken;
use crate::trial::{Kind, LEAST, Options, Played, run as play, run_and_keep, shrink, tell};

/// Run the daemon in a simulated world with faults, from a seed
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The first seed; drawn when not given
    #[arg(long)]
    seed: Option<u64>,
    /// How many seeds, one after another
    #[arg(long, default_value_t = 1)]
    seeds: u64,
    /// Only these: kinds of fault by name, single faults of the seed by number
    #[arg(long, value_delimiter = ',')]
    faults: Option<Vec<String>>,
    /// Only these apps of the seed, by place from 0
    #[arg(long, value_delimiter = ',')]
    apps: Option<Vec<usize>>,
    /// Print the digest of each log
    #[arg(long)]
    print_digest: bool,
    /// Show a failing seed as it is, with all that happened
    #[arg(long)]
    whole: bool,
    /// Play the other seeds too when one fails, and say of each what is broken, and in which too little happened
    #[arg(long)]
    go_on: bool,
    /// Play each seed twice; a second log that differs from the first is a failure
    #[arg(long)]
    twice: bool,
    /// Instead of seeds: kill the daemon at every write and every append of what it does, and print each with what came of it
    #[arg(long, conflicts_with_all = ["seed", "seeds", "faults", "apps", "print_digest", "whole", "go_on", "twice"])]
    crash_points: bool,
}

/// Runs the command.
///
/// # Errors
/// When a fault is not known, or nothing can be run.
pub fn run(args: &Args) -> Result<ExitCode, CliError> {
    if args.crash_points {
        return Ok(if super::points::table()? { ExitCode::SUCCESS } else { ExitCode::from(1) });
    }
    let first = args.seed.unwrap_or_else(|| u64::from(u32::from_le_bytes(Entropy::os().bytes())));
    output::print(&format!("seed {first}\n"))?;
    let (kinds, only) = faults(args.faults.as_deref().unwrap_or_default())?;
    let apps = args.apps.as_ref().map(|apps| apps.iter().copied().collect());
    let options = |seed| Options { seed, kinds: kinds.clone(), only: only.clone(), apps: Option::clone(&apps) };
    let begun = clock::now();
    let (sum, failed) = play_all(first, args, &options)?;
    output::print(&sum.text(begun.elapsed(), args.twice))?;
    match failed {
        None => Ok(ExitCode::SUCCESS),
        Some((options, played)) => {
            let as_it_is = args.whole || args.go_on;
            let (options, played) = if as_it_is { (options, played) } else { shrink(options, played) };
            output::print(&told(&options, &played, args.whole))?;
            Ok(ExitCode::from(1))
        }
    }
}

type Chosen = (Option<BTreeSet<Kind>>, Option<BTreeSet<u32>>);

/// The kinds and the numbers of a list.
fn faults(list: &[String]) -> Result<Chosen, CliError> {
    let (mut kinds, mut only) = (BTreeSet::new(), BTreeSet::new());
    for word in list.iter().map(|word| word.trim()).filter(|word| !word.is_empty() && *word != "none") {
        if let Ok(number) = word.parse() {
            only.insert(number);
        } else if let Some(kind) = Kind::parse(word) {
            kinds.insert(kind);
        } else {
            let known: Vec<&str> = Kind::ALL.iter().map(|kind| kind.name()).collect();
            return Err(CliError::input(format!("--faults: {word} is no kind of fault"), format!("none, or of {}", known.join(", "))));
        }
    }
    // Numbers are of the whole schedule of the seed, whatever kinds it leaves out.
    let kinds = if list.is_empty() {
        None
    } else if kinds.is_empty() && !only.is_empty() {
        Some(Kind::ALL.iter().copied().collect())
    } else {
        Some(kinds)
    };
    Ok((kinds, Some(only).filter(|only| !only.is_empty())))
}

/// What came of many trials.
#[derive(Debug, Default)]
struct Sum {
    trials: u64,
    records: Vec<u64>,
    writes: Vec<u64>,
    crashes: Vec<u64>,
    kinds: Vec<u64>,
    simulated: Duration,
    /// Trials in which less happened than in every trial should.
    poor: u64,
    /// Trials in which each kind happened.
    met: std::collections::BTreeMap<Kind, u64>,
}

impl Sum {
    fn add(&mut self, played: &Played) {
        self.trials += 1;
        self.records.push(played.records);
        self.writes.push(played.writes);
        self.crashes.push(u64::from(played.crashes));
        self.kinds.push(played.kinds.len() as u64);
        self.simulated += played.simulated;
        self.poor += u64::from(!played.is_rich());
        for kind in &played.kinds {
            *self.met.entry(*kind).or_default() += 1;
        }
    }

    fn text(&self, took: Duration, twice: bool) -> String {
        let hours = self.simulated.as_secs_f64() / 3_600.0;
        let took_s = took.as_secs_f64().max(0.001);
        let mut text = format!(
            "{} seeds in {took_s:.1} s, {:.1} a second; {hours:.1} simulated hours, {:.1} a second\n",
            self.trials,
            self.trials as f64 / took_s,
            hours / took_s
        );
        text.push_str("per seed        least  median    most\n");
        for (name, values) in
            [("records", &self.records), ("API writes", &self.writes), ("kinds of fault", &self.kinds), ("crashes", &self.crashes)]
        {
            let mut sorted = values.clone();
            sorted.sort_unstable();
            let at = |index: usize| sorted.get(index).copied().unwrap_or(0);
            text.push_str(&format!("{name:<14}{:>7}{:>8}{:>8}\n", at(0), at(sorted.len() / 2), at(sorted.len().saturating_sub(1))));
        }
        let met: Vec<String> = self.met.iter().map(|(kind, count)| format!("{} {count}", kind.name())).collect();
        text.push_str(&format!("seeds with each kind: {}\n", met.join(", ")));
        if self.poor > 0 {
            text.push_str(&format!(
                "{} seeds have less than {} records, {} API writes, {} kinds of fault or {} crash\n",
                self.poor, LEAST.records, LEAST.writes, LEAST.kinds, LEAST.crashes
            ));
        }
        if twice {
            text.push_str("each was played twice; what did not give the same log failed\n");
        }
        text
    }
}

type Failed = Option<(Options, Played)>;

/// Plays the seeds on every core; stops at the first that fails, by number as far as they run.
fn play_all(first: u64, args: &Args, options: &(dyn Fn(u64) -> Options + Sync)) -> Result<(Sum, Failed), CliError> {
    let seeds = args.seeds;
    let (next, stop) = (AtomicU64::new(0), AtomicBool::new(false));
    let done = Mutex::new((Sum::default(), None::<(Options, Played)>, None::<std::io::Error>));
    let work = || {
        loop {
            let at = next.fetch_add(1, Ordering::Relaxed);
            if at >= seeds || stop.load(Ordering::Relaxed) {
                return;
            }
            let options = options(first.wrapping_add(at));
            let played = play(&options).and_then(|first| if args.twice { same_again(first, &play(&options)?) } else { Ok(first) });
            let played = played.and_then(|played| if args.whole && !played.holds() { play_whole(&options) } else { Ok(played) });
            let mut done = done.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
            match played {
                Ok(played) => {
                    if args.print_digest {
                        // Where nobody reads it is no failure of the trial.
                        let _ = output::print(&format!("{} {}\n", options.seed, played.digest));
                    }
                    done.0.add(&played);
                    if args.go_on && !played.is_rich() {
                        let _ = output::print(&format!("seed {} has too little in it\n", options.seed));
                    }
                    if !played.holds() {
                        stop.store(!args.go_on, Ordering::Relaxed);
                        if args.go_on {
                            let first = played.broken.first().map(|broken| format!("invariant {}: {}", broken.invariant, broken.why));
                            let _ = output::print(&format!("seed {} fails: {}\n", options.seed, first.unwrap_or_default()));
                        }
                        if done.1.as_ref().is_none_or(|(failed, _)| failed.seed > options.seed) {
                            done.1 = Some((options, played));
                        }
                    }
                }
                Err(error) => {
                    stop.store(true, Ordering::Relaxed);
                    done.2 = Some(error);
                }
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, std::num::NonZero::get).min(usize::try_from(seeds).unwrap_or(1)) {
            scope.spawn(work);
        }
    });
    let (sum, failed, error) = done.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
    match error {
        Some(error) => Err(CliError::refused("a trial cannot be run", "free some memory or files").because(error)),
        None => Ok((sum, failed)),
    }
}

/// The first of two trials of one seed; broken, if their logs differ.
fn same_again(mut first: Played, second: &Played) -> std::io::Result<Played> {
    if first.digest != second.digest {
        let why = format!("played twice, it gives two logs: {} and {}", first.digest, second.digest);
        first.broken.push(Broken { invariant: 0, moment: 0, why });
    }
    Ok(first)
}

/// Plays it and keeps all that happened, in words.
fn play_whole(options: &Options) -> std::io::Result<Played> {
    let (mut played, history) = run_and_keep(options)?;
    played.last.clear();
    history.each(|moment| played.last.extend(tell(moment)));
    Ok(played)
}

fn told(options: &Options, played: &Played, whole: bool) -> String {
    let mut text = format!("\nseed {} fails:\n", options.seed);
    for broken in &played.broken {
        text.push_str(&format!("  invariant {} at moment {}: {}\n", broken.invariant, broken.moment, broken.why));
    }
    text.push_str("the last that happened:\n");
    for line in &played.last {
        let cut: String = if whole { line.clone() } else { line.chars().take(400).collect() };
        text.push_str(&format!("{cut}\n"));
    }
    text.push_str(&format!("run it again: {}\n", again(options)));
    text
}

/// The command that plays it again.
fn again(options: &Options) -> String {
    let mut command = format!("wharf sim --seed {}", options.seed);
    let numbers = options.only.iter().flatten().map(u32::to_string);
    let kinds = options.kinds.iter().flatten().map(|kind| kind.name().to_owned());
    let faults: Vec<String> = if options.only.is_some() { numbers.collect() } else { kinds.collect() };
    if options.only.is_some() || options.kinds.is_some() {
        let list = if faults.is_empty() { "none".to_owned() } else { faults.join(",") };
        command.push_str(&format!(" --faults {list}"));
    }
    if let Some(apps) = &options.apps {
        let apps: Vec<String> = apps.iter().map(usize::to_string).collect();
        command.push_str(&format!(" --apps {}", apps.join(",")));
    }
    command
}
