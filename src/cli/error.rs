//! How a command fails: one line, what and what to do; the chain of causes only when asked for.

use std::error::Error;
use std::fmt;
use std::io;
use std::process::ExitCode;

/// What a failure is to whoever called the command; the number is the exit code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Failure {
    /// The answer is no.
    No = 1,
    /// Usage, or input that cannot be read.
    Input = 2,
    /// The other side or the disk refused, or is not there.
    Refused = 3,
}

/// A command's failure.
#[derive(Debug)]
pub struct CliError {
    failure: Failure,
    what: String,
    advice: String,
    cause: Option<Box<dyn Error + Send + Sync>>,
    /// Whoever read our output has gone: nothing is said.
    quiet: bool,
}

impl CliError {
    fn new(failure: Failure, what: impl Into<String>, advice: impl Into<String>) -> Self {
        Self { failure, what: what.into(), advice: advice.into(), cause: None, quiet: false }
    }

    /// Usage or unreadable input: what is wrong, and what to do.
    #[must_use]
    pub fn input(what: impl Into<String>, advice: impl Into<String>) -> Self {
        Self::new(Failure::Input, what, advice)
    }

    /// The other side or the disk refused: what is wrong, and what to do.
    #[must_use]
    pub fn refused(what: impl Into<String>, advice: impl Into<String>) -> Self {
        Self::new(Failure::Refused, what, advice)
    }

    /// The answer is no: what is so, and what to do.
    #[must_use]
    pub fn no(what: impl Into<String>, advice: impl Into<String>) -> Self {
        Self::new(Failure::No, what, advice)
    }

    /// With its cause, for `-v`.
    #[must_use]
    pub fn because(mut self, cause: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        self.cause = Some(cause.into());
        self
    }

    /// The exit code.
    #[must_use]
    pub fn exit_code(&self) -> ExitCode {
        if self.quiet { ExitCode::SUCCESS } else { ExitCode::from(self.failure as u8) }
    }

    /// Says it on stderr and gives the exit code.
    pub(super) fn tell(&self, verbose: bool) -> ExitCode {
        if !self.quiet {
            super::output::note(&self.line());
            let mut cause = self.cause.as_deref().map(|cause| cause as &dyn Error).filter(|_| verbose);
            while let Some(next) = cause {
                super::output::note(&format!("  because: {}", crate::ids::shown(&next.to_string(), 1_000)));
                cause = next.source();
            }
        }
        self.exit_code()
    }

    /// The one line.
    #[must_use]
    pub fn line(&self) -> String {
        if self.advice.is_empty() { format!("wharf: {}", self.what) } else { format!("wharf: {}; {}", self.what, self.advice) }
    }
}

impl fmt::Display for CliError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.line())
    }
}

impl Error for CliError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.cause.as_deref().map(|cause| cause as &dyn Error)
    }
}

/// Writing to stdout failed: a broken pipe ends quietly.
impl From<io::Error> for CliError {
    fn from(error: io::Error) -> Self {
        let quiet = error.kind() == io::ErrorKind::BrokenPipe;
        Self { quiet, ..Self::refused(format!("cannot write to stdout: {error}"), "make room, or write elsewhere") }
    }
}
