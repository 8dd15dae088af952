//! The environment's file: one `export NAME='value'` a line, sorted, that gives every byte back in dash, busybox sh and bash,
//! also under `set -eu` (case B35). Pure; values never appear in an error or in `Debug`.

use std::collections::BTreeMap;
use std::fmt;

use crate::ids::shown;

/// The largest file, bytes: what a Secret holds (case B37).
pub const FILE_BYTES: usize = 1 << 20;

/// What the container itself sets: the platform's own win over the gateway's.
pub const PLATFORM: [&str; 3] = ["HOME", "NO_COLOR", "TMPDIR"];

/// Names that one of the three shells keeps for itself: an export of them fails, or gives another value.
const SHELLS_OWN: [&str; 30] = [
    "BASHOPTS",
    "BASHPID",
    "BASH_ALIASES",
    "BASH_ARGC",
    "BASH_ARGV",
    "BASH_CMDS",
    "BASH_COMMAND",
    "BASH_LINENO",
    "BASH_MONOSECONDS",
    "BASH_SOURCE",
    "BASH_SUBSHELL",
    "BASH_TRAPSIG",
    "BASH_VERSINFO",
    "DIRSTACK",
    "EPOCHREALTIME",
    "EPOCHSECONDS",
    "EUID",
    "FUNCNAME",
    "GROUPS",
    "HISTCMD",
    "LINENO",
    "OPTIND",
    "PPID",
    "RANDOM",
    "SECONDS",
    "SHELLOPTS",
    "SHLVL",
    "SRANDOM",
    "UID",
    "_",
];

/// Why an environment cannot be given to a release; each names the variable.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EnvironmentFault {
    /// It is no name that a shell takes.
    #[error("\"{name}\" is not an environment variable's name")]
    NotAName {
        /// The name, escaped.
        name: String,
    },
    /// The shell keeps it for itself.
    #[error("{name} is the shell's own variable")]
    ShellsOwn {
        /// The name.
        name: String,
    },
    /// No process can be given a NUL.
    #[error("the value of {name} has a NUL")]
    Nul {
        /// The name.
        name: String,
    },
    /// The file is over [`FILE_BYTES`].
    #[error("the environment is {bytes} bytes, over {FILE_BYTES}; its largest variable is {name}")]
    TooLarge {
        /// The largest variable's name.
        name: String,
        /// The file's size.
        bytes: usize,
    },
}

/// An environment's variables. Shows its names alone.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Environment(BTreeMap<String, String>);

impl fmt::Debug for Environment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

impl Environment {
    /// The environment of these variables.
    #[must_use]
    pub fn new(variables: BTreeMap<String, String>) -> Self {
        Self(variables)
    }

    /// How many variables there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Names and values, for redaction.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// The file that gives the variables to a shell; those that the platform sets are left out.
    ///
    /// # Errors
    /// When a shell, a process or a Secret would not take it.
    pub fn file(&self) -> Result<String, EnvironmentFault> {
        let mut file = String::new();
        let mut largest = (0, "");
        for (name, value) in &self.0 {
            check(name, value)?;
            if PLATFORM.contains(&name.as_str()) {
                continue;
            }
            let before = file.len();
            file.push_str("export ");
            file.push_str(name);
            file.push_str("='");
            file.push_str(&value.replace('\'', "'\\''"));
            file.push_str("'\n");
            largest = largest.max((file.len() - before, name));
        }
        if file.len() > FILE_BYTES {
            return Err(EnvironmentFault::TooLarge { name: largest.1.to_owned(), bytes: file.len() });
        }
        Ok(file)
    }

    /// The variables of a file that [`Environment::file`] wrote; `None` when it is none.
    #[must_use]
    pub fn parse(file: &str) -> Option<Self> {
        let mut variables = BTreeMap::new();
        let mut rest = file;
        while !rest.trim_start_matches('\n').is_empty() {
            let (name, mut after) = rest.trim_start_matches('\n').strip_prefix("export ")?.split_once("='")?;
            let mut value = String::new();
            loop {
                let (part, next) = after.split_once('\'')?;
                value.push_str(part);
                match next.strip_prefix("\\''") {
                    Some(next) => {
                        value.push('\'');
                        after = next;
                    }
                    None => break rest = next,
                }
            }
            variables.insert(name.to_owned(), value);
        }
        Some(Self(variables))
    }
}

fn check(name: &str, value: &str) -> Result<(), EnvironmentFault> {
    let mut bytes = name.bytes();
    let begins = bytes.next().is_some_and(|b| b.is_ascii_alphabetic() || b == b'_');
    if !begins || !bytes.all(|b| b.is_ascii_alphanumeric() || b == b'_') {
        return Err(EnvironmentFault::NotAName { name: shown(name, 80) });
    }
    if SHELLS_OWN.contains(&name) {
        return Err(EnvironmentFault::ShellsOwn { name: name.to_owned() });
    }
    if value.contains('\0') {
        return Err(EnvironmentFault::Nul { name: shown(name, 80) });
    }
    Ok(())
}
