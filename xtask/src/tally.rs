//! How many tests passed, failed and were skipped, from what cargo prints. Pure.

use std::fmt;

/// A count over all test binaries.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct Tally {
    passed: u64,
    failed: u64,
    skipped: u64,
    /// Tests that said by themselves that they were skipped: the harness counts them as passed.
    said: u64,
}

impl Tally {
    /// Counts by a line of output: a binary's result, or a test that says `skipped: WHICH: WHY` on stderr.
    pub(crate) fn take(&mut self, line: &str) {
        if line.starts_with("skipped: ") {
            self.said += 1;
        }
        let Some((_, counts)) = line.strip_prefix("test result: ").and_then(|result| result.split_once(". ")) else { return };
        for count in counts.split("; ") {
            let Some((number, what)) = count.split_once(' ') else { continue };
            let number: u64 = number.parse().unwrap_or(0);
            match what {
                "passed" => self.passed += number,
                "failed" => self.failed += number,
                "ignored" => self.skipped += number,
                _ => {}
            }
        }
    }

    /// Whether no test ran.
    pub(crate) fn is_empty(&self) -> bool {
        self.passed + self.failed == 0
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let passed = self.passed.saturating_sub(self.said);
        write!(f, "{passed} passed, {} failed, {} skipped", self.failed, self.skipped + self.said)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_of_all_binaries_are_added() {
        let mut tally = Tally::default();
        for line in [
            "running 60 tests",
            "test gateway::tests::judge::a ... ok",
            "test result: ok. 60 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.63s",
            "skipped: b09_relist: KUBEBUILDER_ASSETS is not set",
            "test result: FAILED. 5 passed; 2 failed; 0 ignored; 0 measured; 0 filtered out; finished in 12.00s",
            "test result: ok. 0 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s",
            "test result: nonsense",
        ] {
            tally.take(line);
        }
        assert_eq!(tally.to_string(), "64 passed, 2 failed, 2 skipped");
        assert!(!tally.is_empty());
        assert!(Tally::default().is_empty());
    }
}
