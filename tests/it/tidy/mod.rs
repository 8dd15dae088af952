//! The repository's rules that no compiler knows (DESIGN.md, "Layers"): layers, crates, dead files, sizes, docs and goldens.
//!
//! Each rule collects all that breaks it and says it at once. An exception stands in a list here, with its reason.

mod docs;
mod files;
mod imports;
mod layers;
mod source;
mod text;

use std::path::{Path, PathBuf};

/// The checkout's root.
fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// A file's text.
fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// Every file below a folder of the root whose name ends so, by its path from the root, in order; none when there is no such
/// folder.
fn below(folder: &str, end: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut todo = vec![root().join(folder)];
    while let Some(folder) = todo.pop() {
        let Ok(entries) = std::fs::read_dir(&folder) else { continue };
        for entry in entries {
            let path = entry.expect("a folder that can be listed").path();
            if path.is_dir() {
                todo.push(path);
            } else if path.to_string_lossy().ends_with(end) {
                found.push(path.strip_prefix(root()).expect("below the root").to_string_lossy().into_owned());
            }
        }
    }
    found.sort();
    found
}

/// Fails with every line that breaks a rule.
fn none(rule: &str, broken: &[String]) {
    assert!(broken.is_empty(), "{rule}:\n  {}\n", broken.join("\n  "));
}
