//! The feed in files: an event a line, for a collector that reads files. The files themselves are the cursor: what is in them whole
//! and on disk is delivered.
//!
//! `events.ndjson` is written to; grown large enough it is renamed after its first record, so that a collector which follows a file
//! by its inode reads it to its end. The first line of each names the log, the segment and the position that it begins behind.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufRead as _, BufReader, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::cloudevent::EVENT_MAX;
use crate::ids::RecordId;

/// The file that is written to.
pub const CURRENT: &str = "events.ndjson";

/// The first line of a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FirstLine {
    /// The log that is being written.
    pub log: String,
    /// Which file of this folder, from 1.
    pub segment: u64,
    /// The position that it begins behind.
    pub after: String,
}

/// Records that a reader of these files does not get: they aged out before they were written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Gap {
    /// The last position that is there.
    pub requested: String,
    /// The position before the first record that was left.
    pub minimum: String,
}

/// A folder of files.
#[derive(Debug)]
pub struct FileSink {
    folder: PathBuf,
    most: u64,
    keep: usize,
    open: Option<Segment>,
}

#[derive(Debug)]
struct Segment {
    file: File,
    bytes: u64,
    segment: u64,
    /// The position that its lines end behind.
    last: RecordId,
    /// The position that it begins behind.
    after: RecordId,
}

impl FileSink {
    /// The folder; files are renamed past `most` bytes, and of those that were the newest `keep` stay, all of them when it is 0.
    #[must_use]
    pub fn new(folder: &Path, most: u64, keep: usize) -> Self {
        Self { folder: folder.to_path_buf(), most, keep, open: None }
    }

    /// Opens the folder: the position behind what is whole in it; `None` when nothing is.
    ///
    /// # Errors
    /// When it cannot be read or written.
    pub fn position(&mut self) -> io::Result<Option<RecordId>> {
        if self.open.is_none() {
            fs::create_dir_all(&self.folder)?;
            self.open = self.read_current()?;
        }
        Ok(self.open.as_ref().map(|segment| segment.last))
    }

    /// Writes events behind `after` and up to `upto`; returns when they are on disk.
    ///
    /// # Errors
    /// When the disk refuses: what is in the files is read again before the next write.
    pub fn write(&mut self, after: RecordId, events: &[(RecordId, String)], upto: RecordId) -> io::Result<()> {
        let lines = events.iter().map(|(_, event)| event.as_str());
        let written = self.append(after, lines, upto);
        if written.is_err() {
            self.open = None;
        }
        written
    }

    /// Writes that records are missing, and goes on behind them.
    ///
    /// # Errors
    /// As [`Self::write`].
    pub fn gap(&mut self, requested: RecordId, minimum: RecordId) -> io::Result<()> {
        let gap = Gap { requested: requested.to_string(), minimum: minimum.to_string() };
        let line = serde_json::json!({ "gap": gap }).to_string();
        let written = self.append(requested, std::iter::once(line.as_str()), minimum);
        if written.is_err() {
            self.open = None;
        }
        written
    }

    fn append<'a>(&mut self, after: RecordId, lines: impl Iterator<Item = &'a str>, upto: RecordId) -> io::Result<()> {
        let mut segment = match self.open.take() {
            Some(full) if full.bytes >= self.most => {
                let number = full.segment + 1;
                self.put_away(full)?;
                self.begin(number, after)?
            }
            Some(segment) => segment,
            None => self.begin(1, after)?,
        };
        let mut text = String::new();
        for line in lines {
            text += line;
            text.push('\n');
        }
        segment.file.write_all(text.as_bytes())?;
        segment.file.sync_data()?;
        segment.bytes += text.len() as u64;
        segment.last = upto;
        self.open = Some(segment);
        Ok(())
    }

    fn begin(&self, segment: u64, after: RecordId) -> io::Result<Segment> {
        let first = FirstLine { log: after.log.to_string(), segment, after: after.to_string() };
        let line = format!("{}\n", serde_json::json!(first));
        let mut file = OpenOptions::new().create_new(true).append(true).open(self.folder.join(CURRENT))?;
        file.write_all(line.as_bytes())?;
        file.sync_data()?;
        File::open(&self.folder)?.sync_all()?;
        Ok(Segment { file, bytes: line.len() as u64, segment, last: after, after })
    }

    /// A full file gets its name for good, and the oldest ones go.
    fn put_away(&self, full: Segment) -> io::Result<()> {
        let name = format!("events-{:08}-{:020}.ndjson", full.segment, full.after.seq.0);
        fs::rename(self.folder.join(CURRENT), self.folder.join(name))?;
        let mut names = Vec::new();
        for entry in fs::read_dir(&self.folder)? {
            let name = entry?.file_name();
            if name.to_str().is_some_and(|name| name.starts_with("events-") && name.ends_with(".ndjson")) {
                names.push(name);
            }
        }
        names.sort();
        let too_many = if self.keep == 0 { 0 } else { names.len().saturating_sub(self.keep) };
        names[..too_many].iter().try_for_each(|name| fs::remove_file(self.folder.join(name)))
    }

    /// What is in the file that is written to; a last line that is not whole is taken away.
    fn read_current(&self) -> io::Result<Option<Segment>> {
        let path = self.folder.join(CURRENT);
        let mut file = match OpenOptions::new().read(true).append(true).open(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return self.behind_those_put_away(),
            Err(error) => return Err(error),
        };
        let Some((first, last, whole)) = scan(&mut file)? else {
            // Not even its first line: begun, and not written.
            fs::remove_file(&path)?;
            return self.behind_those_put_away();
        };
        file.set_len(whole)?;
        file.sync_data()?;
        let after = RecordId::parse(&first.after).ok_or_else(|| foreign(&path))?;
        Ok(Some(Segment { file, bytes: whole, segment: first.segment, last, after }))
    }

    /// Put away, and nothing begun behind it yet: the next file goes on behind its last line.
    fn behind_those_put_away(&self) -> io::Result<Option<Segment>> {
        let mut newest: Option<PathBuf> = None;
        for entry in fs::read_dir(&self.folder)? {
            let path = entry?.path();
            let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            if name.starts_with("events-") && name.ends_with(".ndjson") && newest.as_ref().is_none_or(|newest| path > *newest) {
                newest = Some(path);
            }
        }
        let Some(path) = newest else { return Ok(None) };
        let (first, last, _) = scan(&mut File::open(&path)?)?.ok_or_else(|| foreign(&path))?;
        self.begin(first.segment + 1, last).map(Some)
    }
}

fn foreign(path: &Path) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("{} is no file of the feed", path.display()))
}

/// The first line, the position behind the last whole line, and the length up to there; `None` without a first line.
fn scan(file: &mut File) -> io::Result<Option<(FirstLine, RecordId, u64)>> {
    let no_file = || io::Error::new(io::ErrorKind::InvalidData, "its first line is not the feed's");
    file.seek(SeekFrom::Start(0))?;
    let mut reader = BufReader::new(&*file);
    let (mut line, mut whole) = (Vec::new(), 0);
    reader.by_ref().take(EVENT_MAX as u64).read_until(b'\n', &mut line)?;
    if !line.ends_with(b"\n") {
        return Ok(None);
    }
    let first: FirstLine = serde_json::from_slice(&line).map_err(|_| no_file())?;
    let mut last = RecordId::parse(&first.after).ok_or_else(no_file)?;
    let mut newest = Vec::new();
    loop {
        whole += line.len() as u64;
        line.clear();
        reader.read_until(b'\n', &mut line)?;
        if !line.ends_with(b"\n") {
            break;
        }
        newest.clone_from(&line);
    }
    if !newest.is_empty() {
        let event: Value = serde_json::from_slice(&newest).map_err(|_| no_file())?;
        // Positions are of the log that is written, also behind a record of the one before it.
        let of = |id: &str| RecordId::parse(id).map(|id| RecordId { log: last.log, ..id });
        let behind = event["id"].as_str().and_then(of).or_else(|| event["gap"]["minimum"].as_str().and_then(RecordId::parse));
        last = behind.ok_or_else(no_file)?;
    }
    Ok(Some((first, last, whole)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::{LogId, Seq};

    fn at(seq: u64) -> RecordId {
        RecordId { log: LogId([7; 16]), seq: Seq(seq) }
    }

    fn events(seqs: std::ops::RangeInclusive<u64>) -> Vec<(RecordId, String)> {
        seqs.map(|seq| (at(seq), format!("{{\"id\":\"{}\"}}", at(seq)))).collect()
    }

    /// Every id in the folder, in order, and each file's first line.
    fn read(folder: &Path) -> (Vec<String>, Vec<FirstLine>) {
        let mut names: Vec<PathBuf> = fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path()).collect();
        names.sort_by_key(|path| (path.ends_with(CURRENT), path.clone()));
        let (mut ids, mut firsts) = (Vec::new(), Vec::new());
        for name in names {
            let text = fs::read_to_string(name).expect("text");
            let mut lines = text.lines();
            firsts.push(serde_json::from_str(lines.next().expect("a first line")).expect("a first line"));
            ids.extend(lines.map(|line| {
                let event: Value = serde_json::from_str(line).expect("JSON");
                event["id"].as_str().map_or_else(|| "gap".to_owned(), str::to_owned)
            }));
        }
        (ids, firsts)
    }

    #[test]
    fn files_are_renamed_by_size_and_go_on_where_they_were() {
        let folder = tempfile::tempdir().expect("a folder");
        for (from, to) in [(1, 3), (4, 6), (7, 9)] {
            let mut sink = FileSink::new(folder.path(), 100, 0);
            let position = sink.position().expect("readable");
            assert_eq!(position, (from > 1).then(|| at(from - 1)), "each life goes on behind the last");
            sink.write(at(from - 1), &events(from..=to), at(to)).expect("written");
        }
        let (ids, firsts) = read(folder.path());
        assert_eq!(ids, (1..=9).map(|seq| at(seq).to_string()).collect::<Vec<_>>());
        let expected = |segment, after| FirstLine { log: at(0).log.to_string(), segment, after: at(after).to_string() };
        assert_eq!(firsts, [expected(1, 0), expected(2, 3), expected(3, 6)]);
    }

    #[test]
    fn a_line_that_is_not_whole_is_written_again() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut sink = FileSink::new(folder.path(), 1 << 20, 0);
        sink.write(at(0), &events(1..=3), at(3)).expect("written");
        drop(sink);
        let path = folder.path().join(CURRENT);
        let length = fs::metadata(&path).expect("there").len();
        for torn in 1..40 {
            OpenOptions::new().write(true).open(&path).expect("there").set_len(length - torn).expect("cut");
            let mut sink = FileSink::new(folder.path(), 1 << 20, 0);
            assert_eq!(sink.position().expect("readable"), Some(at(2)), "{torn} bytes are missing");
            sink.write(at(2), &events(3..=3), at(3)).expect("written");
            assert_eq!(read(folder.path()).0.len(), 3);
        }
    }

    #[test]
    fn killed_between_renaming_and_beginning_nothing_is_lost() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut sink = FileSink::new(folder.path(), 1 << 20, 0);
        sink.write(at(0), &events(1..=3), at(3)).expect("written");
        drop(sink);
        let put_away = folder.path().join("events-00000001-00000000000000000000.ndjson");
        fs::rename(folder.path().join(CURRENT), put_away).expect("renamed");
        for begun in [None, Some(""), Some("{\"log\":")] {
            if let Some(text) = begun {
                fs::write(folder.path().join(CURRENT), text).expect("written");
            }
            let mut sink = FileSink::new(folder.path(), 1 << 20, 0);
            assert_eq!(sink.position().expect("readable"), Some(at(3)), "{begun:?}");
            fs::remove_file(folder.path().join(CURRENT)).expect("begun");
        }
    }

    #[test]
    fn what_aged_out_is_a_line_and_the_oldest_files_go() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut sink = FileSink::new(folder.path(), 1, 2);
        sink.write(at(0), &events(1..=1), at(1)).expect("written");
        sink.gap(at(1), at(9)).expect("written");
        drop(sink);
        let mut sink = FileSink::new(folder.path(), 1, 2);
        assert_eq!(sink.position().expect("readable"), Some(at(9)));
        for seq in 10..=14 {
            sink.write(at(seq - 1), &events(seq..=seq), at(seq)).expect("written");
        }
        let (ids, firsts) = read(folder.path());
        assert_eq!(ids, (12..=14).map(|seq| at(seq).to_string()).collect::<Vec<_>>(), "two that are put away, and the one that is written");
        assert_eq!(firsts.last().map(|first| first.segment), Some(7));
    }

    #[test]
    fn a_file_of_somebody_else_is_left_alone() {
        let folder = tempfile::tempdir().expect("a folder");
        fs::write(folder.path().join(CURRENT), "something else\n").expect("written");
        let mut sink = FileSink::new(folder.path(), 1, 0);
        assert!(sink.position().is_err());
        assert_eq!(fs::read_to_string(folder.path().join(CURRENT)).expect("there"), "something else\n");
    }
}
