//! Where a command's data goes: stdout, in large pieces. Notes for people go to stderr.

use std::io::{self, BufWriter, IsTerminal as _, StdoutLock, Write as _};

/// Stdout, buffered; to be flushed by whoever made it, so that an error is seen.
#[must_use]
pub fn stdout() -> BufWriter<StdoutLock<'static>> {
    BufWriter::with_capacity(64 << 10, io::stdout().lock())
}

/// Writes a document to stdout.
///
/// # Errors
/// When stdout does not take it.
pub fn print(text: &str) -> io::Result<()> {
    let mut out = stdout();
    out.write_all(text.as_bytes())?;
    out.flush()
}

/// Says a line on stderr. Nobody to hear it is no failure.
pub fn note(line: &str) {
    let _ = writeln!(io::stderr(), "{line}");
}

/// Whether stderr is a terminal.
#[must_use]
pub fn is_terminal() -> bool {
    io::stderr().is_terminal()
}
