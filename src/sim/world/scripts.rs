//! Which pod gets which script: rules by name, first match, each for so many pods.

use std::sync::{Arc, Mutex, PoisonError};

use crate::sim::node::{PodFacts, Script, Scripts};

/// The rules in force; cheap to clone, all clones are one.
#[derive(Debug, Clone)]
pub struct ScriptBook(Arc<Mutex<Rules>>);

#[derive(Debug)]
struct Rules {
    /// Name prefix, how many pods yet, script.
    rules: Vec<(String, u32, Script)>,
    otherwise: Script,
}

impl ScriptBook {
    /// Every pod gets this script.
    #[must_use]
    pub fn new(otherwise: Script) -> Self {
        Self(Arc::new(Mutex::new(Rules { rules: Vec::new(), otherwise })))
    }

    /// All later pods whose names begin so get this script, before the rules that were there.
    pub fn set(&self, prefix: &str, script: Script) {
        self.times(prefix, u32::MAX, script);
    }

    /// The next `times` pods whose names begin so get this script, before the rules that were there.
    pub fn times(&self, prefix: &str, times: u32, script: Script) {
        let mut rules = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        rules.rules.insert(0, (prefix.to_owned(), times, script));
    }

    /// All later pods that no rule names get this script.
    pub fn otherwise(&self, script: Script) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).otherwise = script;
    }

    /// Takes all rules back.
    pub fn clear(&self) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).rules.clear();
    }

    /// As the nodes take it.
    #[must_use]
    pub fn chooser(&self) -> Scripts {
        let book = self.clone();
        Arc::new(move |pod: &PodFacts| book.choose(pod))
    }

    fn choose(&self, pod: &PodFacts) -> Script {
        let mut rules = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let found = rules.rules.iter_mut().find(|(prefix, times, _)| *times > 0 && pod.name.starts_with(prefix.as_str()));
        match found {
            Some((_, times, script)) => {
                *times = if *times == u32::MAX { u32::MAX } else { *times - 1 };
                script.clone()
            }
            None => rules.otherwise.clone(),
        }
    }
}
