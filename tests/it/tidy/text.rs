//! What sources must not say, and what the docs must.

use std::collections::BTreeSet;

use wharfinger::events::record::Kind;

use super::files::is_test;
use super::layers::{PURE, layer};
use super::source::{code, without_tests};
use super::{below, none, read, root};

/// The longest function of pure code, lines.
const FUNCTION_LINES: usize = 70;

/// Files that may not be written yet; once one is there its rule holds, and it is taken off.
const LATER: &[&str] = &["ARCHITECTURE.md", "docs/log-format.md", "tests/data/format/v1"];

/// Whether the rule about a file or folder has to wait for it.
fn waits(path: &str) -> bool {
    let there = root().join(path).exists();
    assert!(there || LATER.contains(&path), "{path} is missing");
    !there
}

#[test]
fn nothing_is_left_open() {
    // Put together, so that this file does not find itself.
    let marks = [["to", "do!"], ["db", "g!"], ["FIX", "ME"], ["unimplemented", "!"]].map(|parts| parts.concat());
    let mut broken = Vec::new();
    for file in below("src", ".rs").into_iter().chain(below("tests", ".rs")).chain(below("xtask/src", ".rs")) {
        let source = read(&root().join(&file));
        for (number, line) in (1..).zip(source.lines()) {
            broken.extend(marks.iter().filter(|mark| line.contains(*mark)).map(|mark| format!("{file}:{number}: {mark}")));
        }
        if !is_test(&file) {
            let code = code(&source);
            let unwraps = (1..).zip(without_tests(&code).lines()).filter(|(_, line)| line.contains(".unwrap()"));
            broken.extend(unwraps.map(|(number, _)| format!("{file}:{number}: unwrap()")));
        }
    }
    none("nothing is left open, and nothing is unwrapped outside tests", &broken);
}

#[test]
fn functions_of_pure_code_are_short() {
    let mut broken = Vec::new();
    for file in below("src", ".rs").into_iter().filter(|file| !is_test(file) && layer(file).is_some_and(|layer| layer <= PURE)) {
        let code = code(&read(&root().join(&file)));
        let lines: Vec<&str> = without_tests(&code).lines().collect();
        for (begin, line) in lines.iter().enumerate() {
            let indent = line.len() - line.trim_start().len();
            let words: Vec<&str> = line.split_whitespace().take_while(|word| !word.contains('(')).collect();
            let named = line.split_whitespace().skip_while(|word| *word != "fn").nth(1);
            let Some(name) = named.filter(|_| words.contains(&"fn")) else { continue };
            let end = lines[begin..].iter().position(|line| line.trim_end() == format!("{}}}", " ".repeat(indent)));
            let length = end.map_or(1, |end| end + 1);
            if length > FUNCTION_LINES && !line.trim_end().ends_with('}') {
                broken.push(format!("{file}:{}: {name} has {length} lines, at most {FUNCTION_LINES}", begin + 1));
            }
        }
    }
    none("functions of pure code are short", &broken);
}

#[test]
fn the_log_format_names_every_kind() {
    if waits("docs/log-format.md") {
        return;
    }
    let text = read(&root().join("docs/log-format.md"));
    let missing: Vec<String> = Kind::ALL.iter().map(|kind| kind.name().to_owned()).filter(|name| !text.contains(name)).collect();
    none("docs/log-format.md names every kind", &missing);
}

#[test]
fn every_kind_has_a_golden_encoding() {
    if waits("tests/data/format/v1") {
        return;
    }
    let missing = Kind::ALL.iter().map(|kind| format!("tests/data/format/v1/{}.hex", kind.name()));
    none("every kind has a golden encoding", &missing.filter(|path| !root().join(path).is_file()).collect::<Vec<_>>());
}

#[test]
fn numbers_of_kinds_are_given_once() {
    let numbers: BTreeSet<u16> = Kind::ALL.iter().map(|kind| *kind as u16).collect();
    assert_eq!(numbers.len(), Kind::ALL.len());
}

#[test]
fn the_architecture_names_files_that_are_there() {
    if waits("ARCHITECTURE.md") {
        return;
    }
    let text = read(&root().join("ARCHITECTURE.md"));
    let named = text.split('`').skip(1).step_by(2).filter(|name| {
        let path = name.chars().all(|c| c.is_ascii_alphanumeric() || "-_./".contains(c));
        let file = [".rs", ".md", ".toml", ".sh", "/"].iter().any(|end| name.ends_with(end));
        path && file
    });
    let missing: Vec<String> =
        named.filter(|name| !root().join(name).exists() && !root().join("src").join(name).exists()).map(str::to_owned).collect();
    none("ARCHITECTURE.md names files that are there", &missing);
}
