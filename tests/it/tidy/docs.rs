//! The documents against the code: rules, alarms, metrics and dependencies by name, and the example settings.

use std::collections::BTreeSet;

use wharfinger::app::show::ALARMS;
use wharfinger::config::check::{Cluster, check};
use wharfinger::config::load::Origins;
use wharfinger::events::kinds::step::Outcome;
use wharfinger::events::kinds::verdict::{EndCause, Stage};
use wharfinger::http::access::routes::ROUTES;
use wharfinger::http::openapi::codes::{CODES, find};
use wharfinger::http::openapi::operations::OPERATIONS;
use wharfinger::postmortem::rules::RULES;
use wharfinger::telemetry::Metrics;

use super::files::is_test;
use super::{below, none, read, root};

/// What a rule's name begins with.
const FAMILIES: &[&str] = &["wanted", "former", "stop", "bring", "clean", "force", "replace", "session"];

fn is_rule(text: &str) -> bool {
    let lower = |word: &str| !word.is_empty() && word.bytes().all(|b| b.is_ascii_lowercase() || b == b'_');
    text.split_once('.').is_some_and(|(family, rest)| FAMILIES.contains(&family) && lower(rest))
}

fn document(name: &str) -> String {
    read(&root().join(name))
}

/// What stands between two of these marks.
fn between(text: &str, mark: char) -> BTreeSet<String> {
    text.lines().flat_map(|line| line.split(mark).skip(1).step_by(2)).map(str::to_owned).collect()
}

/// The names in the first column of a document's tables.
fn first_column(text: &str) -> BTreeSet<String> {
    text.lines().filter_map(|line| line.strip_prefix("| `")?.split_once('`')).map(|(name, _)| name.to_owned()).collect()
}

fn differences(written: &BTreeSet<String>, there: &BTreeSet<String>) -> Vec<String> {
    let missing = there.difference(written).map(|name| format!("{name}: not in the document"));
    let invented = written.difference(there).map(|name| format!("{name}: not in the code"));
    missing.chain(invented).collect()
}

#[test]
fn docs_rules_names_every_rule_of_the_plan_and_no_other() {
    let sources = ["src/app", "src/session"].into_iter().flat_map(|folder| below(folder, ".rs")).filter(|file| !is_test(file));
    // What the tests count is named alike, and is no rule.
    let marks = between(&read(&root().join("src/app/marks.rs")), '"');
    let in_code = sources.flat_map(|file| between(&read(&root().join(file)), '"'));
    let in_code: BTreeSet<String> = in_code.filter(|text| is_rule(text) && !marks.contains(text)).collect();
    assert!(in_code.len() > 20, "rules are found by how they look: {in_code:?}");
    let written: BTreeSet<String> = first_column(&document("docs/rules.md"));
    none("docs/rules.md and the code name the same rules", &differences(&written, &in_code));
    let told = RULES.iter().map(|(name, _)| (*name).to_owned()).collect();
    none("wharf why has a sentence for every rule", &differences(&told, &in_code));
}

#[test]
fn docs_operations_has_every_route_with_who_may_ask_it() {
    let document = document("docs/operations.md");
    let written: BTreeSet<String> = document
        .lines()
        .filter(|line| line.starts_with("| `GET ") || line.starts_with("| `P") || line.starts_with("| `D"))
        .map(|line| {
            let mut cells = line.split('|').map(str::trim).skip(1);
            let (route, who) = (cells.next().unwrap_or_default(), cells.next().unwrap_or_default());
            format!("{} for {}", route.trim_matches('`'), who.split(';').next().unwrap_or_default())
        })
        .collect();
    let there = ROUTES.iter().map(|route| format!("{} {} for {}", route.method, route.path, route.need.words())).collect();
    none("docs/operations.md and the code let in the same", &differences(&written, &there));
}

/// The codes that a file of the control listener refuses with: the first text after what makes a refusal.
fn refused_with(source: &str) -> Vec<String> {
    let made = ["Problem::new(", "Self::new(", "busy(", "bad("].into_iter().flat_map(|begin| source.split(begin).skip(1));
    let text = |after: &str| after.split([';', ')']).next()?.split('"').nth(1).map(str::to_owned);
    let is_code = |code: &String| !code.is_empty() && code.bytes().all(|b| b.is_ascii_lowercase() || b == b'_');
    made.filter_map(text).filter(is_code).collect()
}

#[test]
fn every_code_is_in_the_table_of_codes_and_those_of_sessions_are_in_their_document() {
    // The other listener is none that people ask.
    let files = below("src/http", ".rs").into_iter().filter(|file| !is_test(file) && !file.ends_with("/sources.rs"));
    let used: BTreeSet<String> = files.flat_map(|file| refused_with(&read(&root().join(file)))).collect();
    assert!(used.len() > 20, "codes are found by how they look: {used:?}");
    let unknown: Vec<String> = used.iter().filter(|code| find(code).is_none()).cloned().collect();
    none("src/http/openapi/codes.rs has every code", &unknown);
    let written = first_column(&document("docs/sessions.md"));
    let of_sessions = OPERATIONS.iter().filter(|operation| operation.id.contains("session")).flat_map(|operation| operation.codes);
    let missing: BTreeSet<String> =
        of_sessions.filter(|code| **code != "busy" && !written.contains(**code)).map(|code| (*code).to_owned()).collect();
    none("docs/sessions.md has every code of its routes", &missing.into_iter().collect::<Vec<_>>());
    assert!(CODES.iter().all(|code| (400..600).contains(&code.status)));
}

/// One of everything: a family of metrics is there when it has a member.
fn counted() -> Metrics {
    let metrics = Metrics::default();
    metrics.step("CreatePod", Outcome::Done);
    metrics.api_call("create", 1);
    metrics.queue_depth("drain", 0);
    metrics.started(Stage::Pull, 1);
    metrics.ended(EndCause::Oom);
    metrics.alarms("waiting", 0);
    metrics.feed_lag("file", 0);
    metrics
}

#[test]
fn every_alarm_and_metric_has_a_row_for_the_operator() {
    let metrics = counted().text();
    let described = metrics.lines().filter_map(|line| line.strip_prefix("# HELP ")?.split_once(' '));
    let counters: BTreeSet<&str> = metrics.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.strip_suffix(" counter")).collect();
    let shown = described.map(|(name, _)| if counters.contains(name) { format!("{name}_total") } else { name.to_owned() });
    let there: BTreeSet<String> = shown.chain(ALARMS.iter().map(|alarm| (*alarm).to_owned())).collect();
    let written = first_column(&document("docs/operations.md"));
    let missing = there.difference(&written).map(|name| format!("{name}: not in the document"));
    let invented = written.difference(&there).filter(|name| name.starts_with("wharf_")).map(|name| format!("{name}: not in the code"));
    none("docs/operations.md has a row for every metric and alarm", &missing.chain(invented).collect::<Vec<_>>());
}

#[test]
fn a_daemon_could_start_with_the_example_settings() {
    let name = "deploy/wharf.toml";
    let origins = Origins { file: Some((name.to_owned(), document(name))), ..Origins::default() };
    let settings = origins.settings().unwrap_or_else(|bad| panic!("{bad}"));
    assert_eq!(check(&settings, Cluster::Real), Ok(Vec::new()));
}

#[test]
fn the_config_map_holds_the_example_settings() {
    let deployment = document("deploy/wharf.yaml");
    let (_, after) = deployment.split_once("  wharf.toml: |\n").expect("a ConfigMap with the settings");
    let (held, _) = after.split_once("---\n").expect("another object after it");
    let held: String = held.lines().map(|line| format!("{}\n", line.strip_prefix("    ").unwrap_or(line))).collect();
    assert_eq!(held, document("deploy/wharf.toml"));
}

#[test]
fn every_dependency_has_a_reason_in_the_architecture() {
    let manifest = document("Cargo.toml");
    let sections = manifest.split("\n[").filter(|section| section.starts_with("dependencies]") || section.starts_with("dev-dependencies]"));
    let names = sections.flat_map(|section| section.lines().skip(1).filter_map(|line| line.split_once(" = ")));
    let text = document("ARCHITECTURE.md");
    let (_, reasons) = text.split_once("\n## Dependencies\n").expect("a section about them");
    let (reasons, _) = reasons.split_once("\n## ").expect("another section after it");
    let words: BTreeSet<&str> = reasons.split(|c: char| !(c.is_ascii_alphanumeric() || "-_".contains(c))).collect();
    let missing: Vec<String> = names.map(|(name, _)| name.to_owned()).filter(|name| !words.contains(name.as_str())).collect();
    none("ARCHITECTURE.md says of every dependency why it is there", &missing);
}
