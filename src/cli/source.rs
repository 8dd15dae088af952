//! Where a command finds the log it reads: a data folder, a backup file, or a running daemon, whose log is fetched as it is stored
//! and read here.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::download::download;
use super::error::CliError;
use super::log;
use super::remote::TokenArgs;
use crate::clock::Entropy;
use crate::events::backup::file;
use crate::events::backup::select::Select;
use crate::events::log::LogReader;
use crate::ids::{Seq, hex};

/// Where the log is.
#[derive(Debug, Clone, Default, clap::Args)]
pub struct Source {
    /// The data folder, or a backup file
    #[arg(long, value_name = "DIR", default_value = "wharf-data", conflicts_with = "server")]
    dir: PathBuf,
    /// A running daemon's control listener, instead of a folder
    #[arg(long, value_name = "URL")]
    server: Option<String>,
    #[command(flatten)]
    token: TokenArgs,
    /// With what tenants wrote: messages and last lines of containers. Needs the role tails; a folder always has them
    #[arg(long, requires = "server")]
    tails: bool,
}

impl Source {
    /// The folder or the file.
    pub(super) fn dir(&self) -> &Path {
        &self.dir
    }

    /// The daemon, when one is asked.
    pub(super) fn server(&self) -> Option<&str> {
        self.server.as_deref()
    }

    /// As a person names it.
    pub(super) fn name(&self) -> String {
        self.server.clone().unwrap_or_else(|| self.dir.display().to_string())
    }

    /// The token for it.
    pub(super) fn token(&self) -> &TokenArgs {
        &self.token
    }

    /// Whether what tenants wrote is wanted of it.
    pub(super) fn tails(&self) -> bool {
        self.tails
    }

    /// Opens the log for reading. Of a daemon it is as it was when it was fetched, in a file that nobody else sees.
    ///
    /// # Errors
    /// When there is none, it cannot be read, or the daemon does not give it.
    pub(super) fn open(&self) -> Result<Arc<dyn LogReader>, CliError> {
        let Some(server) = self.server() else { return log::open(&self.dir) };
        let folder = Scratch::new()?;
        let path = folder.0.join("log.wharf");
        let all = Select { from: Seq(1), to: Seq(u64::MAX), subject: None };
        super::wait_for(download(&path, self, server, &all))?;
        // Open, the file lives on without its name.
        file::open(&path).map_err(|error| CliError::refused(format!("{server}: {error}"), "try again").because(error))
    }
}

/// A folder of this process's own that goes with it.
struct Scratch(PathBuf);

impl Scratch {
    fn new() -> Result<Self, CliError> {
        use std::os::unix::fs::DirBuilderExt as _;
        let path = std::env::temp_dir().join(format!("wharf-{}", hex(&Entropy::os().bytes::<8>())));
        let made = std::fs::DirBuilder::new().mode(0o700).create(&path);
        made.map_err(|error| {
            CliError::refused(format!("{}: {error}", path.display()), "TMPDIR names a folder that may be written to").because(error)
        })?;
        Ok(Self(path))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
