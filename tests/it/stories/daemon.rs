//! The real binary as a child: started on a settings file, ended in order or killed.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

/// The binary under test.
pub(super) const WHARF: &str = env!("CARGO_BIN_EXE_wharf");

/// A running daemon; killed when dropped.
pub(super) struct Daemon {
    child: Child,
    log: PathBuf,
}

impl Daemon {
    pub(super) fn start(settings: &Path, log: PathBuf) -> Self {
        let stderr = std::fs::File::options().create(true).append(true).open(&log).expect("a file for the daemon's lines");
        let child = Command::new(WHARF)
            .args(["run", "--config"])
            .arg(settings)
            .env_remove("KUBECONFIG")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(stderr)
            .spawn()
            .expect("the daemon starts");
        Self { child, log }
    }

    /// SIGKILL, in the middle of whatever goes on.
    pub(super) fn kill(mut self) {
        self.child.kill().expect("it can be killed");
        self.child.wait().expect("it is gone");
    }

    /// SIGKILL, for whoever only borrows it.
    pub(super) fn kill_now(&self) {
        let _ = Command::new("kill").args(["-KILL", &self.child.id().to_string()]).status();
        // The folder is free when the process has let go of its files.
        while Path::new(&format!("/proc/{}/fd/0", self.child.id())).exists() {
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// SIGTERM; it has to end by itself, in order.
    pub(super) fn terminate(mut self) {
        let pid = self.child.id().to_string();
        assert!(Command::new("kill").args(["-TERM", &pid]).status().expect("kill runs").success());
        let begun = wharfinger::clock::now();
        let status = loop {
            match self.child.try_wait().expect("it can be waited for") {
                Some(status) => break status,
                None if begun.elapsed() > Duration::from_secs(30) => panic!("the daemon does not end:\n{}", self.lines()),
                None => std::thread::sleep(Duration::from_millis(10)),
            }
        };
        assert!(status.success(), "{status}:\n{}", self.lines());
    }

    /// Whether it still runs; a daemon that ended by itself fails the test with its lines.
    pub(super) fn must_run(&mut self) {
        if let Some(status) = self.child.try_wait().expect("it can be waited for") {
            panic!("the daemon ended: {status}:\n{}", self.lines());
        }
    }

    pub(super) fn lines(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap_or_default()
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Runs a command of the binary to its end.
pub(super) fn wharf(args: &[&str]) -> Output {
    Command::new(WHARF).args(args).stdin(Stdio::null()).output().expect("wharf runs")
}
