//! Which files there are: each reachable, none too long, each beginning with what it is.

use std::collections::{BTreeMap, BTreeSet};

use super::source::code;
use super::{below, none, read, root};

/// The longest source file, lines.
const LINES: usize = 400;

/// The longest file of tests: a harness may be long, and stories are short but many.
const TEST_LINES: usize = 600;

/// Longer files, with the reason.
const LONGER: &[(&str, &str)] = &[
    ("src/ids.rs", "the names are one vocabulary, and a sixth of it is their tests"),
    ("src/events/sled_log.rs", "no other file may name sled"),
];

/// Whether a file holds tests alone.
pub(super) fn is_test(file: &str) -> bool {
    file.starts_with("tests/") || file.contains("/tests/") || file.ends_with("/tests.rs")
}

/// Every Rust file of ours.
fn all() -> Vec<String> {
    ["src", "tests", "xtask/src"].into_iter().flat_map(|folder| below(folder, ".rs")).collect()
}

/// Every module that is reached from a root file, by its file: `src/app/plan/mod.rs` is `app::plan`.
pub(super) fn reached(roots: &[&str]) -> BTreeMap<String, Vec<String>> {
    let mut found = BTreeMap::new();
    let mut todo: Vec<(String, Vec<String>)> = roots.iter().map(|file| ((*file).to_owned(), Vec::new())).collect();
    while let Some((file, module)) = todo.pop() {
        let source = read(&root().join(&file));
        let (folder, name) = file.rsplit_once('/').expect("a file in a folder");
        let children = if roots.contains(&file.as_str()) || name == "mod.rs" {
            folder.to_owned()
        } else {
            format!("{folder}/{}", name.trim_end_matches(".rs"))
        };
        for child in declared(&code(&source)) {
            let path = [format!("{children}/{child}.rs"), format!("{children}/{child}/mod.rs")];
            let path = path.into_iter().find(|path| root().join(path).is_file());
            let mut module = module.clone();
            module.push(child);
            todo.push((path.unwrap_or_else(|| panic!("{file}: mod {} has no file", module.join("::"))), module));
        }
        found.insert(file, module);
    }
    found
}

/// The modules that a file declares without a body.
fn declared(code: &str) -> Vec<String> {
    let declaration = |line: &str| {
        let line = line.trim().strip_suffix(';')?;
        let line =
            line.strip_prefix("pub").map_or(line, |rest| rest.trim_start_matches("(super)").trim_start_matches("(crate)").trim_start());
        line.strip_prefix("mod ").map(str::to_owned)
    };
    code.lines().filter_map(declaration).collect()
}

#[test]
fn every_file_is_reached() {
    let reached: BTreeSet<String> = [["src/lib.rs", "src/main.rs"].as_slice(), &["tests/it/main.rs"], &["xtask/src/main.rs"]]
        .into_iter()
        .flat_map(|roots| reached(roots).into_keys())
        .collect();
    let dead: Vec<String> = all().into_iter().filter(|file| !reached.contains(file)).collect();
    none("no module declares these files, so nothing compiles them", &dead);
}

#[test]
fn every_file_begins_with_what_it_is() {
    let broken: Vec<String> = all().into_iter().filter(|file| !read(&root().join(file)).starts_with("//! ")).collect();
    none("a file begins with //! and what it is", &broken);
}

#[test]
fn no_file_is_too_long() {
    let mut broken = Vec::new();
    for file in all() {
        let lines = read(&root().join(&file)).lines().count();
        let most = if is_test(&file) { TEST_LINES } else { LINES };
        let listed = LONGER.iter().any(|(longer, _)| *longer == file);
        if lines > most && !listed {
            broken.push(format!("{file}: {lines} lines, at most {most}"));
        } else if lines <= most && listed {
            broken.push(format!("{file}: {lines} lines, it need not be listed any more"));
        }
    }
    broken.extend(LONGER.iter().filter(|(file, _)| !root().join(file).is_file()).map(|(file, _)| format!("{file}: listed and not there")));
    none("files are short, longer ones are listed with a reason", &broken);
}
