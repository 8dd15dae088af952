//! What was refused for want of a right, counted until it is recorded: whoever asks a thousand times makes one record.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use crate::ids::Word;

/// Different refusals that are kept apart between two records; what is beyond is counted together.
const DIFFERENT: usize = 256;

/// One refusal.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Refusal {
    /// Who asked; empty when the caller is not known.
    pub who: Word,
    /// Method and path of the route, with its parameters in braces; empty for what was counted together.
    pub route: String,
    /// The refusal's code, as the answer has it.
    pub code: &'static str,
}

/// What was refused since it was last recorded.
#[derive(Debug, Clone, Default)]
pub struct Refusals(Arc<Mutex<BTreeMap<Refusal, u64>>>);

impl Refusals {
    /// Counts one; at most one record a code is added for all that are too many to be kept apart.
    pub fn count(&self, refusal: Refusal) {
        let mut counted = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let refusal = if counted.len() < DIFFERENT || counted.contains_key(&refusal) {
            refusal
        } else {
            Refusal { who: Word::default(), route: String::new(), ..refusal }
        };
        let times = counted.entry(refusal).or_default();
        *times = times.saturating_add(1);
    }

    /// Takes what was counted.
    #[must_use]
    pub fn take(&self) -> BTreeMap<Refusal, u64> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_of_refusals_is_a_few_records() {
        let refusals = Refusals::default();
        let one = |name: &str| Refusal { who: Word::new(name), route: "GET /v1/log".to_owned(), code: "forbidden" };
        for _ in 0..3 {
            for number in 0..DIFFERENT + 100 {
                refusals.count(one(&format!("caller-{number}")));
            }
            refusals.count(one("caller-0"));
        }
        let taken = refusals.take();
        assert_eq!(taken.len(), DIFFERENT + 1);
        assert_eq!(taken.get(&one("caller-0")), Some(&6));
        let together = Refusal { who: Word::default(), route: String::new(), code: "forbidden" };
        assert_eq!(taken.get(&together), Some(&300));
        assert!(refusals.take().is_empty());
    }
}
