//! What a trial consists of, drawn from its seed: apps with their fates, what is deployed when, and the schedule of faults.
//! Pure: the same options give the same plan, and leaving a part of it out changes no other.

use std::collections::BTreeSet;
use std::time::Duration;

use super::dice::Dice;
use super::fates::{Character, draw_character};
use super::fault::{Kind, Scheduled};
use super::weather;
use crate::sim::node::Script;

/// Which trial.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// Everything is drawn from it.
    pub seed: u64,
    /// The kinds of fault that may be drawn; `None`: those the seed draws.
    pub kinds: Option<BTreeSet<Kind>>,
    /// The faults of the schedule that happen, by number; `None`: all.
    pub only: Option<BTreeSet<u32>>,
    /// The apps that there are, by their place; `None`: all.
    pub apps: Option<BTreeSet<usize>>,
}

impl Options {
    /// All that the seed draws.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self { seed, kinds: None, only: None, apps: None }
    }
}

/// What happens to an app from outside.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Deed {
    /// Its next release is wanted, with pods of this character.
    Deploy(Character),
    /// Its secret changes: a new host of the same release.
    ChangeSecret,
    /// Its release before this one is wanted again.
    RollBack,
    /// Its failure is taken back.
    Retry,
    /// Its log is wanted.
    WantLogs,
    /// It is named no more.
    Withdraw,
}

/// One deed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Story {
    /// When, since the trial's begin.
    pub(super) at: Duration,
    /// The app, by its place.
    pub(super) app: usize,
    /// What.
    pub(super) deed: Deed,
}

/// How an app ends up in the liveness phase.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ending {
    /// It is left as it is: whatever it is must be so in the cluster too.
    Left,
    /// A new release that comes up.
    Healthy,
    /// A new release that does not come up.
    Fails(Character),
}

/// A trial.
#[derive(Debug, Clone)]
pub(super) struct Plan {
    /// The apps, `org/name`.
    pub(super) apps: Vec<String>,
    /// What happens, by time.
    pub(super) stories: Vec<Story>,
    /// How each app ends up.
    pub(super) endings: Vec<Ending>,
    /// What goes wrong, by time.
    pub(super) faults: Vec<Scheduled>,
    /// How long things go wrong.
    pub(super) safety: Duration,
    /// The nodes.
    pub(super) nodes: Vec<String>,
    /// How long a request to the API server takes.
    pub(super) latency: Duration,
    /// Between two heartbeats, milliseconds.
    pub(super) beat_ms: u64,
    /// Pods that no story names.
    pub(super) otherwise: Script,
    /// The kinds of fault there are.
    pub(super) kinds: BTreeSet<Kind>,
    /// What it was drawn with; `None`: it was written down, and has no further rounds.
    pub(super) options: Option<Options>,
}

impl Plan {
    /// Draws a trial.
    pub(super) fn draw(options: &Options) -> Self {
        let seed = options.seed;
        let dice = Dice::new(seed, 1);
        let safety = dice.seconds(240, 480);
        let count = usize::try_from(dice.between(3, 5)).unwrap_or(4);
        let apps: Vec<String> = (0..count).map(app_name).collect();
        let nodes: Vec<String> = (1..=dice.between(2, 3)).map(|at| format!("node{at}")).collect();
        let latency = *dice.pick(&[1, 2, 5, 20, 80].map(Duration::from_millis));
        let beat_ms = *dice.pick(&[2_000, 5_000, 5_000, 5_000]);
        let kinds = options.kinds.clone().unwrap_or_else(|| draw_kinds(seed));
        let mut faults = weather::draw(seed, safety, count, &nodes, &kinds);
        if let Some(only) = &options.only {
            faults.retain(|fault| only.contains(&fault.number));
        }
        let mut stories = Vec::new();
        let mut endings = Vec::new();
        for app in 0..count {
            let dice = Dice::new(seed, 100 + app as u64);
            let there = options.apps.as_ref().is_none_or(|apps| apps.contains(&app));
            let drawn = draw_story(&dice, app, safety);
            let ending = draw_ending(&dice);
            if there {
                stories.extend(drawn);
            }
            endings.push(if there { ending } else { Ending::Left });
        }
        stories.sort_by_key(|story| (story.at, story.app));
        let options = Some(options.clone());
        Self { apps, stories, endings, faults, safety, nodes, latency, beat_ms, otherwise: Script::default(), kinds, options }
    }

    /// Whether the seed alone says which faults there are: then there must be enough of them.
    pub(super) fn is_free(&self) -> bool {
        self.options.as_ref().is_some_and(|options| options.kinds.is_none() && options.only.is_none())
    }
}

/// The app of a place, `org/name`.
pub(super) fn app_name(at: usize) -> String {
    let org = ["acme", "beta", "corp"][at % 3];
    format!("{org}/app{at}")
}

/// The kinds of this seed: a crash always, and some of the others, at least six.
fn draw_kinds(seed: u64) -> BTreeSet<Kind> {
    let dice = Dice::new(seed, 2);
    let chance = *dice.pick(&[30, 50, 70]);
    let mut kinds: BTreeSet<Kind> = Kind::ALL.iter().copied().filter(|_| dice.percent(chance)).collect();
    while kinds.len() < 6 {
        kinds.insert(*dice.pick(Kind::ALL));
    }
    kinds.insert(Kind::Crash);
    kinds
}

fn draw_story(dice: &Dice, app: usize, safety: Duration) -> Vec<Story> {
    let mut stories = vec![Story { at: dice.seconds(0, 30), app, deed: Deed::Deploy(draw_character(dice)) }];
    let last = safety.as_secs().saturating_sub(30);
    for _ in 0..dice.between(2, 4) {
        let at = dice.seconds(20, last);
        let deed = match dice.below(100) {
            0..50 => Deed::Deploy(draw_character(dice)),
            50..62 => Deed::ChangeSecret,
            62..72 => Deed::RollBack,
            72..84 => Deed::Retry,
            84..92 => Deed::WantLogs,
            _ => Deed::Withdraw,
        };
        stories.push(Story { at, app, deed });
    }
    stories
}

fn draw_ending(dice: &Dice) -> Ending {
    match dice.below(100) {
        0..35 => Ending::Left,
        35..80 => Ending::Healthy,
        _ => Ending::Fails(*dice.pick(&[Character::InstallFails, Character::NeverRegisters, Character::ExitsAtOnce, Character::BadImage])),
    }
}
