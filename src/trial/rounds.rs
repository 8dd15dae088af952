//! Further rounds of a trial's safety phase, for as long as too little has happened in it. Pure: a round is drawn from the seed and
//! its number, whatever came before it.

use std::time::Duration;

use super::dice::Dice;
use super::fates::draw_character;
use super::fault::{Kind, Scheduled};
use super::plan::{Deed, Plan, Story};
use super::weather;

/// What must have happened in a trial for it to say anything.
#[derive(Debug, Clone, Copy)]
pub struct Least {
    /// Durable records.
    pub records: u64,
    /// Writes of the daemon to the API server.
    pub writes: u64,
    /// Kinds of fault that happened to somebody.
    pub kinds: usize,
    /// Crashes of the daemon.
    pub crashes: u32,
}

/// The least of every trial.
pub const LEAST: Least = Least { records: 200, writes: 20, kinds: 3, crashes: 1 };

/// Rounds of a trial at most: with some faults or some apps alone there may never be enough.
pub(super) const MOST: u32 = 12;

/// In so many of them things go wrong as before; after those the daemon crashes and nothing else, so that it comes to do something.
const ROUGH: u32 = 6;

/// The numbers of a round's faults begin at so many times its number.
const NUMBERS: u32 = 1_000;

/// One round.
#[derive(Debug, Clone)]
pub(super) struct Round {
    /// How long it takes.
    pub(super) lasts: Duration,
    /// What happens, since its begin.
    pub(super) stories: Vec<Story>,
    /// What goes wrong, since its begin.
    pub(super) faults: Vec<Scheduled>,
}

impl Round {
    /// The round of this number, from 1: every app has new wants, and each of the trial's kinds of fault comes once more.
    pub(super) fn draw(plan: &Plan, number: u32) -> Self {
        let Some(options) = &plan.options else { return Self { lasts: Duration::ZERO, stories: Vec::new(), faults: Vec::new() } };
        let purpose = 1_000_000 * u64::from(number);
        let lasts = Dice::new(options.seed, purpose).seconds(60, 120);
        let last_s = lasts.as_secs().saturating_sub(20);
        let mut faults = weather::draw_once(options.seed, purpose, last_s, plan.apps.len(), &plan.nodes);
        for fault in &mut faults {
            fault.number += NUMBERS * number;
        }
        let comes = |kind: Kind| plan.kinds.contains(&kind) && (number <= ROUGH || kind == Kind::Crash);
        faults.retain(|fault| comes(fault.kind) && options.only.as_ref().is_none_or(|only| only.contains(&fault.number)));
        let mut stories = Vec::new();
        for app in 0..plan.apps.len() {
            let dice = Dice::new(options.seed, purpose + 100 + app as u64);
            let drawn = [
                Story { at: dice.seconds(0, 20), app, deed: Deed::Deploy(draw_character(&dice)) },
                Story { at: dice.seconds(30, last_s), app, deed: draw_deed(&dice) },
            ];
            if options.apps.as_ref().is_none_or(|apps| apps.contains(&app)) {
                stories.extend(drawn);
            }
        }
        stories.sort_by_key(|story| (story.at, story.app));
        Self { lasts, stories, faults }
    }
}

fn draw_deed(dice: &Dice) -> Deed {
    match dice.below(100) {
        0..60 => Deed::Deploy(draw_character(dice)),
        60..80 => Deed::ChangeSecret,
        80..90 => Deed::RollBack,
        _ => Deed::Retry,
    }
}
