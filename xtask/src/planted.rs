//! Faults that are planted in the product, one at a time, to see that the simulation finds each: `hack/planted/NN-name.patch`.
//!
//! A scratch copy of the sources and its build are kept below `target/planted/`, so that each fault costs an incremental build.
//! The checkout is never changed.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

use crate::patch::{Patch, applied};
use crate::{root, say, tools};

/// Where the faults are.
const FOLDER: &str = "hack/planted";

/// What the scratch copy is made of: all that the program is built from.
const COPIED: &[&str] = &["Cargo.toml", "Cargo.lock", "src", "benches", "xtask", "tests/it/main.rs"];

/// The most trials that are run for one fault.
const SEEDS: u64 = 250;

/// What became of one fault.
struct Planted {
    name: String,
    about: String,
    /// The trial that showed it, and how.
    found: Option<Found>,
    took_s: u64,
}

/// What a trial said.
struct Found {
    seed: String,
    invariant: String,
    why: String,
}

/// Plants every fault, or those whose names begin so.
///
/// # Errors
/// When a patch does not apply, nothing can be built, or a fault is not found.
pub(crate) fn run(named: Option<&str>) -> Result<(), String> {
    let patches: Vec<(String, Patch)> = patches()?.into_iter().filter(|(name, _)| named.is_none_or(|named| name.contains(named))).collect();
    if patches.is_empty() {
        return Err(format!("no fault in {FOLDER} is named so"));
    }
    for (name, patch) in &patches {
        changed(patch).map_err(|why| format!("{FOLDER}/{name}.patch does not apply: {why}"))?;
    }
    let mut all = Vec::new();
    for (name, patch) in patches {
        say::line(&format!("{name}: {}", patch.about.lines().next().unwrap_or_default()));
        let planted = plant(&name, &patch)?;
        say::line(&outcome(&planted));
        all.push(planted);
    }
    println!("{}", table(&all));
    let missed: Vec<&str> = all.iter().filter(|planted| planted.found.is_none()).map(|planted| planted.name.as_str()).collect();
    if missed.is_empty() { Ok(()) } else { Err(format!("not found in {SEEDS} trials: {}", missed.join(", "))) }
}

/// All faults, by name.
pub(crate) fn patches() -> Result<BTreeMap<String, Patch>, String> {
    let folder = root().join(FOLDER);
    let entries = fs::read_dir(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    let mut found = BTreeMap::new();
    for path in entries.filter_map(|entry| entry.ok().map(|entry| entry.path())) {
        let Some(name) = path.file_name().and_then(|name| name.to_str()).and_then(|name| name.strip_suffix(".patch")) else { continue };
        let read = fs::read_to_string(&path).map_err(|e| e.to_string());
        let patch = read.and_then(|text| Patch::parse(&text)).map_err(|why| format!("{FOLDER}/{name}.patch: {why}"))?;
        found.insert(name.to_owned(), patch);
    }
    Ok(found)
}

/// The files that a patch changes, as they are with it.
///
/// # Errors
/// When it does not fit today's sources.
pub(crate) fn changed(patch: &Patch) -> Result<BTreeMap<String, String>, String> {
    let with = |(name, hunks): (&String, &Vec<_>)| {
        let text = fs::read_to_string(root().join(name)).map_err(|e| format!("{name}: {e}"))?;
        Ok((name.clone(), applied(&text, hunks).map_err(|why| format!("{name}: {why}"))?))
    };
    patch.files.iter().map(with).collect()
}

fn plant(name: &str, patch: &Patch) -> Result<Planted, String> {
    let begun = now();
    let base = root().join("target/planted");
    let source = base.join("source");
    copy(&source, &changed(patch)?)?;
    let manifest = source.join("Cargo.toml").display().to_string();
    let build = base.join("build");
    let arguments = ["build", "--quiet", "--locked", "--bin", "wharf", "--manifest-path", &manifest];
    let (built, told) = tools::output(&tools::cargo(), &arguments, &[("CARGO_TARGET_DIR", &build)])?;
    if !built {
        return Err(format!("{name}: the sources cannot be built with it:\n{told}"));
    }
    let wharf = build.join("debug/wharf");
    let (held, told) = tools::output(&wharf, &["sim", "--seed", "1", "--seeds", &SEEDS.to_string(), "--whole"], &[])?;
    let found = if held { None } else { Some(found(&told).ok_or_else(|| format!("{name}: the simulation failed otherwise:\n{told}"))?) };
    Ok(Planted { name: name.to_owned(), about: patch.about.clone(), found, took_s: begun.elapsed().as_secs() })
}

/// The first finding in what the simulation printed: `seed 17 fails:`, and then `invariant 5 at moment 99: why`.
fn found(told: &str) -> Option<Found> {
    let (_, rest) = told.split_once("\nseed ")?;
    let (seed, rest) = rest.split_once(" fails:\n")?;
    let line = rest.lines().next()?.trim().strip_prefix("invariant ")?;
    let (invariant, rest) = line.split_once(" at moment ")?;
    let (_, why) = rest.split_once(": ")?;
    Some(Found { seed: seed.to_owned(), invariant: invariant.to_owned(), why: why.to_owned() })
}

/// Makes the scratch copy be the checkout's sources with these changes. What is the same is not written: it need not be built again.
fn copy(source: &Path, changed: &BTreeMap<String, String>) -> Result<(), String> {
    let mut wanted = Vec::new();
    for part in COPIED {
        below(Path::new(part), &mut wanted)?;
    }
    for file in &wanted {
        let bytes = match file.to_str().and_then(|name| changed.get(name)) {
            Some(text) => text.clone().into_bytes(),
            None => fs::read(root().join(file)).map_err(|e| format!("{}: {e}", file.display()))?,
        };
        let copy = source.join(file);
        if fs::read(&copy).is_ok_and(|there| there == bytes) {
            continue;
        }
        let folder = copy.parent().unwrap_or(source);
        fs::create_dir_all(folder).and_then(|()| fs::write(&copy, bytes)).map_err(|e| format!("{}: {e}", copy.display()))?;
    }
    Ok(())
}

/// All files below a path of the checkout, by their paths in it.
fn below(path: &Path, found: &mut Vec<PathBuf>) -> Result<(), String> {
    let whole = root().join(path);
    if whole.is_file() {
        found.push(path.to_owned());
        return Ok(());
    }
    let entries = fs::read_dir(&whole).map_err(|e| format!("{}: {e}", whole.display()))?;
    for entry in entries.filter_map(Result::ok) {
        below(&path.join(entry.file_name()), found)?;
    }
    Ok(())
}

fn outcome(planted: &Planted) -> String {
    match &planted.found {
        Some(found) => {
            format!("{}: seed {}, invariant {}: {} ({} s)", planted.name, found.seed, found.invariant, found.why, planted.took_s)
        }
        None => format!("{}: NOT FOUND in {SEEDS} trials ({} s)", planted.name, planted.took_s),
    }
}

fn table(all: &[Planted]) -> String {
    let mut lines = vec!["| fault | what | seed | invariant |".to_owned(), "| --- | --- | --- | --- |".to_owned()];
    for planted in all {
        let (seed, invariant) = planted.found.as_ref().map_or(("not found", ""), |found| (&found.seed, &found.invariant));
        let about = planted.about.replace('\n', " ");
        lines.push(format!("| `{}` | {about} | {seed} | {invariant} |", planted.name));
    }
    lines.join("\n")
}

#[expect(clippy::disallowed_methods, reason = "progress for people, no part of the program")]
fn now() -> Instant {
    Instant::now()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_planted_fault_applies_to_todays_sources() {
        let patches = patches().unwrap_or_else(|why| panic!("{why}"));
        assert!(patches.len() >= 15, "{} faults", patches.len());
        for (name, patch) in &patches {
            let files = changed(patch).unwrap_or_else(|why| panic!("{name} does not apply: {why}"));
            assert!(files.keys().all(|file| file.starts_with("src/")), "{name} changes more than the program");
            assert!(!patch.about.is_empty(), "{name} does not say what it is");
        }
    }

    #[test]
    fn a_finding_is_read_from_what_the_simulation_prints() {
        let told =
            "seed 1\n2 seeds in 1.0 s\n\nseed 2 fails:\n  invariant 5 at moment 99: delete pods a-r1: without a uid\n  12.0 a line\n";
        let found = found(told).expect("a finding");
        assert_eq!((found.seed.as_str(), found.invariant.as_str()), ("2", "5"));
        assert_eq!(found.why, "delete pods a-r1: without a uid");
        assert!(super::found("seed 1\n1 seeds in 1.0 s\n").is_none());
    }
}
