//! Child processes that end with this process, however it ends: each runs under a shell that reads from a pipe of ours, and kills
//! its whole process group when the pipe closes. Knows nothing of what is run.

use std::fs::File;
use std::io;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// Ends the group when the program ends, and when nobody holds the pipe any more.
const GUARD: &str = r#"{ "$@"; kill -9 0; } & read -r _; kill -9 0"#;

/// Removes a folder when nobody holds the pipe any more. Programs that write into it are killed by then, but may not be dead.
const SWEEPER: &str = r#"read -r _; n=0; until rm -rf -- "$1" 2>/dev/null || [ $n = 50 ]; do n=$((n+1)); sleep 0.1; done"#;

/// A process and those that it starts.
pub(crate) struct Guarded {
    shell: Child,
    log: PathBuf,
}

impl Guarded {
    /// Runs a program with nothing in its environment but PATH and TMPDIR; what it prints is appended to `log`.
    pub(crate) fn start(program: &Path, arguments: &[String], log: PathBuf) -> io::Result<Self> {
        let output = File::options().create(true).append(true).open(&log)?;
        let mut command = shell(GUARD);
        command.arg(program).args(arguments).stdout(output.try_clone()?).stderr(output);
        command.env_clear().env("PATH", "/usr/local/bin:/usr/bin:/bin").env("TMPDIR", std::env::temp_dir());
        Ok(Self { shell: command.spawn()?, log })
    }

    /// Whether it still runs.
    pub(crate) fn runs(&mut self) -> bool {
        matches!(self.shell.try_wait(), Ok(None))
    }

    /// The end of what it has printed.
    pub(crate) fn printed(&self) -> String {
        let text = std::fs::read(&self.log).unwrap_or_default();
        let text = String::from_utf8_lossy(&text);
        let lines: Vec<&str> = text.lines().collect();
        lines.get(lines.len().saturating_sub(20)..).unwrap_or_default().join("\n")
    }
}

impl Drop for Guarded {
    fn drop(&mut self) {
        drop(self.shell.stdin.take());
        // It ends itself, and its children with it.
        let _ = self.shell.wait();
    }
}

/// Removes a folder when this process ends. Drop nothing: the handle's pipe is what counts.
pub(crate) fn sweep_at_the_end(folder: &Path) -> io::Result<Child> {
    shell(SWEEPER).arg(folder).stdout(Stdio::null()).stderr(Stdio::null()).spawn()
}

/// A shell in a process group of its own, so that an interrupt at the terminal leaves it time to clean up.
fn shell(script: &str) -> Command {
    let mut command = Command::new("/bin/sh");
    command.args(["-c", script, "guard"]).stdin(Stdio::piped()).process_group(0);
    command
}
