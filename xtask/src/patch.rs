//! Unified diffs: read, and applied to sources that may have moved. Only whole files of text, only changes in place.
//!
//! A hunk goes where its lines stand as they are written, at the place it names or at the nearest one; there is no fuzz: a patch
//! whose lines were changed says so.

use std::collections::BTreeMap;

/// A patch: what it is for, and the files it changes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Patch {
    /// What stands before the first file, trimmed.
    pub(crate) about: String,
    /// The changed files with their hunks.
    pub(crate) files: BTreeMap<String, Vec<Hunk>>,
}

/// Consecutive lines that become others.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Hunk {
    /// Where it begins, from 1.
    at: usize,
    /// What stands there.
    before: Vec<String>,
    /// What is to stand there.
    after: Vec<String>,
}

impl Patch {
    /// Reads a patch.
    ///
    /// # Errors
    /// With the line that is none of a unified diff.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let mut patch = Self { about: String::new(), files: BTreeMap::new() };
        let mut file: Option<String> = None;
        for (number, line) in text.lines().enumerate() {
            let wrong = |why: &str| format!("line {}: {why}: {line}", number + 1);
            if line.starts_with("--- ") {
                file = Some(String::new());
            } else if let Some(name) = line.strip_prefix("+++ ") {
                let name = name.strip_prefix("b/").ok_or_else(|| wrong("the file's name does not begin with b/"))?;
                patch.files.insert(name.to_owned(), Vec::new());
                file = Some(name.to_owned());
            } else if let Some(name) = &file {
                let hunks = patch.files.get_mut(name).ok_or_else(|| wrong("a hunk before its file"))?;
                if let Some(head) = line.strip_prefix("@@ -") {
                    let at = head.split([',', ' ']).next().and_then(|at| at.parse().ok());
                    hunks.push(Hunk { at: at.ok_or_else(|| wrong("no place"))?, ..Hunk::default() });
                    continue;
                }
                let hunk = hunks.last_mut().ok_or_else(|| wrong("a line before the first hunk"))?;
                match line.split_at_checked(1) {
                    Some(("-", rest)) => hunk.before.push(rest.to_owned()),
                    Some(("+", rest)) => hunk.after.push(rest.to_owned()),
                    Some((" ", rest)) => {
                        hunk.before.push(rest.to_owned());
                        hunk.after.push(rest.to_owned());
                    }
                    None => {
                        hunk.before.push(String::new());
                        hunk.after.push(String::new());
                    }
                    Some(_) => return Err(wrong("neither context nor change")),
                }
            } else {
                patch.about.push_str(line);
                patch.about.push('\n');
            }
        }
        patch.about = patch.about.trim().to_owned();
        if patch.files.is_empty() { Err("it changes no file".to_owned()) } else { Ok(patch) }
    }
}

/// A file's text with these hunks applied.
///
/// # Errors
/// With the hunk that does not fit.
pub(crate) fn applied(text: &str, hunks: &[Hunk]) -> Result<String, String> {
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    let mut moved = 0_isize;
    for hunk in hunks {
        let meant = hunk.at.saturating_sub(1).saturating_add_signed(moved);
        let fits = |at: &usize| lines[*at..].starts_with(&hunk.before);
        let places = (0..=lines.len()).filter(fits);
        let at = places.min_by_key(|at| at.abs_diff(meant)).ok_or_else(|| {
            let first = hunk.before.iter().find(|line| !line.trim().is_empty()).map_or("", |line| line.trim());
            format!("the lines at {} are not there any more, from: {first}", hunk.at)
        })?;
        moved += (at.cast_signed() - meant.cast_signed()) + hunk.after.len().cast_signed() - hunk.before.len().cast_signed();
        lines.splice(at..at + hunk.before.len(), hunk.after.iter().cloned());
    }
    Ok(lines.join("\n") + "\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATCH: &str = "What it is for.\n\n--- a/src/x.rs\n+++ b/src/x.rs\n@@ -2,3 +2,2 @@\n two\n-three\n-four\n+THREE\n@@ -7,1 +6,2 @@\n seven\n+eight\n";

    fn hunks() -> Vec<Hunk> {
        let patch = Patch::parse(PATCH).unwrap_or_else(|why| panic!("{why}"));
        assert_eq!(patch.about, "What it is for.");
        patch.files["src/x.rs"].clone()
    }

    #[test]
    fn a_patch_is_applied_where_its_lines_stand() {
        let text = "one\ntwo\nthree\nfour\nfive\nsix\nseven\n";
        assert_eq!(applied(text, &hunks()), Ok("one\ntwo\nTHREE\nfive\nsix\nseven\neight\n".to_owned()));
        let moved = format!("zero\nzero\n{text}");
        assert_eq!(applied(&moved, &hunks()), Ok("zero\nzero\none\ntwo\nTHREE\nfive\nsix\nseven\neight\n".to_owned()));
    }

    #[test]
    fn a_patch_that_does_not_fit_says_so() {
        let why = applied("one\ntwo\nthree!\nfour\n", &hunks()).expect_err("it does not fit");
        assert_eq!(why, "the lines at 2 are not there any more, from: two");
        assert!(Patch::parse("only words\n").is_err());
        assert!(Patch::parse("--- a/x\n+++ b/x\n@@ -1 +1 @@\n*what\n").is_err());
    }
}
