//! The table of crash points: every write and every append of what a daemon does, and what came of being killed at it.

use super::output;
use crate::cli::error::CliError;
use crate::trial::points::{At, Point, crash_points};

/// Plays them all and prints the table; whether everything held.
///
/// # Errors
/// When a trial cannot be run, or stdout takes no more.
pub(super) fn table() -> Result<bool, CliError> {
    let points =
        crash_points("").map_err(|error| CliError::refused("a trial cannot be run", "free some memory or files").because(error))?;
    let mut text = String::new();
    let mut scenario = "";
    for point in &points {
        if point.scenario != scenario {
            scenario = point.scenario;
            text.push_str(&format!("{scenario}\n"));
        }
        text.push_str(&line(point));
    }
    let results = || points.iter().flat_map(|point| point.results.iter().map(move |result| (point, result)));
    let broken: Vec<_> = results().filter(|(_, (_, played))| !played.holds()).collect();
    let scenarios: std::collections::BTreeSet<&str> = points.iter().map(|point| point.scenario).collect();
    text.push_str(&format!("\n{} crashes in {} scenarios, {} broken\n", results().count(), scenarios.len(), broken.len()));
    for (point, (at, played)) in broken {
        text.push_str(&format!("\n{}, {} {}, {}:\n", point.scenario, kind(point), point.number + 1, at.name()));
        for broken in &played.broken {
            text.push_str(&format!("  invariant {} at moment {}: {}\n", broken.invariant, broken.moment, broken.why));
        }
        played.last.iter().for_each(|line| text.push_str(&format!("{line}\n")));
    }
    output::print(&text)?;
    Ok(results().all(|(_, (_, played))| played.holds()))
}

fn kind(point: &Point) -> &'static str {
    if point.is_write { "write" } else { "append" }
}

fn line(point: &Point) -> String {
    let word = |(at, played): &(At, crate::trial::Played)| {
        let how = match played.broken.first() {
            None => "ok".to_owned(),
            Some(broken) => format!("BROKEN {}", broken.invariant),
        };
        format!("{} {how}", at.name())
    };
    let results: Vec<String> = point.results.iter().map(word).collect();
    let what: String = point.what.chars().take(60).collect();
    format!("  {:<6} {:>2}  {what:<60}  {}\n", kind(point), point.number + 1, results.join("  "))
}
