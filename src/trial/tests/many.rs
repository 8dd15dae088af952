//! Two hundred trials, which reach every row of the table and every branch of the plan that refuses or waits; and, when they are asked
//! for, seeds that nobody played before.

use std::collections::BTreeSet;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::seeds::BROKE;
use crate::app::{marks, table};
use crate::clock::Entropy;
use crate::trial::{Options, Played, run};

/// Those that are played always.
const FIXED: usize = 200;
/// How many that nobody played before are played besides: about one in a hundred shows something that is open (docs/simulation.md).
const FRESH: &str = "WHARF_FRESH_SEEDS";

/// What came of many.
#[derive(Default)]
struct Sum {
    /// Marks that were reached.
    reached: BTreeSet<&'static str>,
    /// Those that do not hold, and how to play them again.
    wrong: Vec<String>,
}

#[test]
#[expect(clippy::disallowed_methods, reason = "how many are played is for whoever runs the tests to say")]
fn two_hundred_seeds_hold_and_the_fixed_ones_reach_each_refusal_and_each_delay_of_the_plan() {
    let kept: Vec<u64> = BROKE.iter().map(|(seed, _)| *seed).collect();
    let others = (0..).filter(|seed| !kept.contains(seed));
    let fixed: Vec<u64> = kept.iter().copied().chain(others).take(FIXED).collect();
    let first = u64::from(u32::from_le_bytes(Entropy::os().bytes()));
    let more = std::env::var(FRESH).ok().and_then(|more| more.parse().ok()).unwrap_or(0);
    println!("{more} fresh seeds from {first} on");
    let fresh: Vec<u64> = (first..).take(more).collect();

    let (of_fixed, of_fresh) = (play(&fixed), play(&fresh));
    let wrong: Vec<String> = of_fixed.wrong.into_iter().chain(of_fresh.wrong).collect();
    assert!(wrong.is_empty(), "{} of {} do not hold\n{}", wrong.len(), FIXED + more, wrong.join("\n"));
    let besides: Vec<&&str> = marks::OF_STORIES.iter().filter(|mark| of_fixed.reached.contains(**mark)).collect();
    println!("of the marks that stories reach these do too: {besides:?}");
    let mut missing: BTreeSet<&str> = table::rules().into_iter().chain(marks::OF_PLAN.iter().copied()).collect();
    missing.retain(|mark| !marks::OF_STORIES.contains(mark) && !of_fixed.reached.contains(mark));
    assert!(missing.is_empty(), "the fixed ones do not reach {missing:?}");
}

/// Plays them on every core; a trial is one thread's.
fn play(seeds: &[u64]) -> Sum {
    let (next, sum) = (AtomicUsize::new(0), Mutex::new(Sum::default()));
    let work = || {
        let _ = marks::taken();
        while let Some(seed) = seeds.get(next.fetch_add(1, Ordering::Relaxed)) {
            let played = run(&Options::new(*seed)).expect("it runs");
            let mut sum = sum.lock().expect("no thread panics with it");
            sum.reached.extend(marks::taken());
            sum.wrong.extend(wrong(*seed, &played));
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, std::num::NonZero::get) {
            scope.spawn(work);
        }
    });
    sum.into_inner().expect("no thread panicked with it")
}

fn wrong(seed: u64, played: &Played) -> Option<String> {
    let Played { broken, last, records, writes, kinds, crashes, .. } = played;
    if !played.holds() {
        return Some(format!("wharf sim --seed {seed}\n{broken:#?}\n{}", last.join("\n")));
    }
    let poor = !played.is_rich();
    poor.then(|| format!("wharf sim --seed {seed}\nonly {records} records, {writes} writes, {} kinds, {crashes} crashes", kinds.len()))
}
