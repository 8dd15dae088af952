//! Making a backup file: under a temporary name, synced, then renamed, so that a file of that name is always whole.

use std::fs::{self, File};
use std::io::{BufWriter, Write as _};
use std::ops::ControlFlow;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use sha2::{Digest as _, Sha256};

use super::BackupError;
use super::about::About;
use super::entry::{self, End};
use super::follow::Follow;
use crate::events::log::LogReader;
use crate::events::retention::Base;
use crate::ids::Seq;

/// A backup file that is being made; dropped before its end it leaves nothing.
#[derive(Debug)]
pub struct NewBackup {
    path: PathBuf,
    /// Taken when the file has its name.
    temporary: Option<PathBuf>,
    file: BufWriter<File>,
    sum: Sha256,
    about: About,
    follow: Follow,
    buffer: Vec<u8>,
}

impl NewBackup {
    /// Begins the file beside its place, readable by its owner alone.
    ///
    /// # Errors
    /// [`BackupError::Io`].
    pub fn begin(path: &Path, about: About) -> Result<Self, BackupError> {
        let mut name = std::ffi::OsString::from(".");
        name.push(path.file_name().ok_or_else(|| std::io::Error::from(std::io::ErrorKind::IsADirectory))?);
        name.push(".partial");
        let temporary = path.with_file_name(name);
        // One that an earlier run left may be another's, or open to others: never written to.
        match fs::remove_file(&temporary) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error.into()),
            _ => {}
        }
        let file = File::options().create_new(true).write(true).mode(0o600).open(&temporary)?;
        let document = serde_json::to_vec(&about).map_err(std::io::Error::other)?;
        let mut new = Self {
            path: path.to_owned(),
            temporary: Some(temporary),
            file: BufWriter::with_capacity(256 << 10, file),
            sum: Sha256::new(),
            about,
            follow: Follow::default(),
            buffer: entry::head(&document),
        };
        new.flush()?;
        Ok(new)
    }

    /// Adds the next block.
    ///
    /// # Errors
    /// [`BackupError::Source`] when a whole log was asked for and the block is damaged or does not follow; [`BackupError::Io`].
    pub fn block(&mut self, key: Seq, bytes: &[u8]) -> Result<(), BackupError> {
        if self.about.is_followed() {
            self.follow.take(key, bytes).map_err(|what| BackupError::Source { seq: key, what })?;
        } else {
            self.follow.count(bytes);
        }
        entry::block(key, bytes, &mut self.buffer);
        self.flush()
    }

    /// Adds what stays of the blocks that aged out, and where the subjects' numbers stand after them: before every block.
    ///
    /// # Errors
    /// As [`Self::block`].
    pub fn aged_out(&mut self, reader: &dyn LogReader) -> Result<(), BackupError> {
        let mut failed = Ok(());
        let flow = |failed: &Result<(), BackupError>| if failed.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) };
        reader.removed_blocks(Seq::NONE, &mut |key, bytes| {
            failed = self.removed(key, bytes);
            flow(&failed)
        })?;
        failed?;
        self.numbers_of(reader)
    }

    /// Adds where the subjects' numbers stand after what aged out.
    ///
    /// # Errors
    /// [`BackupError::Io`].
    pub fn numbers_of(&mut self, reader: &dyn LogReader) -> Result<(), BackupError> {
        let mut failed = Ok(());
        reader.removed_numbers(&mut |subject, bytes| {
            failed = self.numbers(subject, bytes);
            if failed.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        })?;
        failed
    }

    /// Adds what stays of a block.
    ///
    /// # Errors
    /// As [`Self::block`].
    pub fn removed(&mut self, key: Seq, bytes: &[u8]) -> Result<(), BackupError> {
        self.follow.removed(key, bytes).map_err(|what| BackupError::Source { seq: key, what })?;
        entry::removed(key, bytes, &mut self.buffer);
        self.flush()
    }

    /// Adds a subject's numbers.
    ///
    /// # Errors
    /// [`BackupError::Io`].
    pub fn numbers(&mut self, subject: &str, bytes: &[u8]) -> Result<(), BackupError> {
        entry::numbers(subject, bytes, &mut self.buffer);
        self.flush()
    }

    /// Says what is before the first block of a segment.
    ///
    /// # Errors
    /// [`BackupError::Io`].
    pub fn base(&mut self, base: Base) -> Result<(), BackupError> {
        entry::base(&base, &mut self.buffer);
        self.follow.base(base);
        self.flush()
    }

    /// Ends it, syncs it, and gives it its name.
    ///
    /// # Errors
    /// See [`BackupError`].
    pub fn finish(mut self) -> Result<End, BackupError> {
        let end = self.end()?;
        entry::end(&end, &mut self.buffer);
        self.flush()?;
        let sum = self.sum.clone().finalize();
        self.file.write_all(&sum)?;
        self.file.flush()?;
        self.file.get_ref().sync_all()?;
        if let Some(temporary) = self.temporary.take() {
            fs::rename(temporary, &self.path)?;
        }
        let above = self.path.parent().filter(|above| !above.as_os_str().is_empty()).unwrap_or(Path::new("."));
        File::open(above)?.sync_all()?;
        Ok(end)
    }

    fn end(&mut self) -> Result<End, BackupError> {
        let broken = |what: &str| BackupError::Source { seq: Seq(self.about.head), what: what.to_owned() };
        let (log, tree) = self.about.tree().ok_or_else(|| broken("its root does not read"))?;
        let follow = std::mem::take(&mut self.follow);
        if follow.blocks == 0 {
            return Err(BackupError::Nothing);
        }
        if !self.about.is_followed() {
            let (blocks, records) = (follow.blocks, follow.records);
            return Ok(End { blocks, records, log, last: Seq(self.about.head), tree, whole: None });
        }
        let end = follow.end().map_err(|what| broken(&what))?.ok_or(BackupError::Nothing)?;
        if end.last.0 == self.about.head && (end.log, end.tree) != (log, tree) {
            return Err(broken("its root is another than its records give"));
        }
        Ok(end)
    }

    fn flush(&mut self) -> Result<(), BackupError> {
        self.sum.update(&self.buffer);
        self.file.write_all(&self.buffer)?;
        self.buffer.clear();
        Ok(())
    }
}

impl Drop for NewBackup {
    fn drop(&mut self) {
        if let Some(temporary) = &self.temporary {
            // What cannot be removed is replaced by the next run.
            let _ = fs::remove_file(temporary);
        }
    }
}
