//! Makes a failing trial smaller: fewer faults, fewer apps, as long as the same invariant breaks.

use std::collections::BTreeSet;

use super::plan::{Options, Plan};
use super::report::Played;
use super::rounds::Round;
use super::run;

/// Trials that are played at most.
const TRIES: u32 = 80;

/// A smaller trial that fails as this one does, and what came of it.
#[must_use]
pub fn shrink(options: Options, played: Played) -> (Options, Played) {
    let plan = Plan::draw(&options);
    let further = (1..=played.rounds).flat_map(|number| Round::draw(&plan, number).faults);
    let faults: Vec<u32> = plan.faults.iter().cloned().chain(further).map(|fault| fault.number).collect();
    let mut best = Best { invariants: invariants(&played), options, played, tries: 0 };
    let apps: Vec<usize> = best.options.apps.as_ref().map_or_else(|| (0..plan.apps.len()).collect(), |apps| apps.iter().copied().collect());
    let all_kinds = Some(super::Kind::ALL.iter().copied().collect());
    let kept = best.without(faults, &|options, faults| Options {
        only: Some(faults.iter().copied().collect()),
        kinds: all_kinds.clone(),
        ..options.clone()
    });
    let apps = best.without(apps, &|options, apps| Options { apps: Some(apps.iter().copied().collect()), ..options.clone() });
    // With fewer apps more of the faults may be of no effect.
    if apps {
        best.without(kept_faults(&best.options, kept), &|options, faults| Options {
            only: Some(faults.iter().copied().collect()),
            ..options.clone()
        });
    }
    (best.options, best.played)
}

fn kept_faults(options: &Options, shrunk: bool) -> Vec<u32> {
    if shrunk { options.only.iter().flatten().copied().collect() } else { Vec::new() }
}

struct Best {
    invariants: BTreeSet<u8>,
    options: Options,
    played: Played,
    tries: u32,
}

impl Best {
    /// Leaves parts out, halves first, as long as it still fails; whether anything could be.
    fn without<T: Copy + PartialEq>(&mut self, mut parts: Vec<T>, with: &dyn Fn(&Options, &[T]) -> Options) -> bool {
        let mut chunk = parts.len().div_ceil(2);
        let mut any = false;
        while chunk > 0 && !parts.is_empty() {
            let mut at = 0;
            while at < parts.len() {
                let mut fewer = parts.clone();
                fewer.drain(at..(at + chunk).min(parts.len()));
                if self.try_this(with(&self.options, &fewer)) {
                    (parts, any) = (fewer, true);
                } else {
                    at += chunk;
                }
                if self.tries >= TRIES {
                    return any;
                }
            }
            chunk = if chunk == 1 { 0 } else { chunk.div_ceil(2) };
        }
        any
    }

    fn try_this(&mut self, options: Options) -> bool {
        self.tries += 1;
        let Ok(played) = run(&options) else { return false };
        let fails = !invariants(&played).is_disjoint(&self.invariants);
        if fails {
            (self.options, self.played) = (options, played);
        }
        fails
    }
}

fn invariants(played: &Played) -> BTreeSet<u8> {
    played.broken.iter().map(|broken| broken.invariant).collect()
}
