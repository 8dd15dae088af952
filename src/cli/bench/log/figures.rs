//! What `wharf bench log` found, as JSON and in words. Pure.

use std::fmt::Write as _;

use serde::Serialize;

/// Durable appends of one kind, beside the plain file's.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct Append {
    /// Records that are appended as one.
    pub(super) commit: usize,
    /// Subjects that append at once.
    pub(super) subjects: usize,
    pub(super) records_per_s: f64,
    pub(super) plain_file_records_per_s: f64,
    pub(super) ratio: f64,
    /// Records that shared a commit, on average.
    pub(super) records_per_commit: f64,
    pub(super) fdatasyncs_per_commit: f64,
}

/// The states of all subjects from the log alone, on one core.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct Replay {
    /// Read from the store, checksums compared, decoded, folded.
    pub(super) records_per_s: f64,
    /// The same payloads decoded from memory, and nothing else.
    pub(super) plain_decode_records_per_s: f64,
    pub(super) ratio: f64,
}

/// All of it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct Figures {
    pub(super) append: Vec<Append>,
    /// Records in the log that was opened, replayed and verified.
    pub(super) records: u64,
    /// Header and payload of one, bytes, on average.
    pub(super) record_bytes: f64,
    /// Opening it for writing: every header read, every checksum compared.
    pub(super) open_ms: f64,
    pub(super) replay: Replay,
    /// Integrity: every checksum, number, leaf and root.
    pub(super) verify_records_per_s: f64,
    /// The store's bytes for each of the records' headers and payloads, 100 records a commit.
    pub(super) disk_ratio: f64,
    /// Values that the store put into files of their own.
    pub(super) blob_files: u64,
    /// The most that was resident in a process that opened and replayed it and did nothing else, 10^6 bytes.
    pub(super) rss_mb: Option<f64>,
    pub(super) cores: usize,
    pub(super) file_system: String,
    /// Every commit was synced to the disk.
    pub(super) synced: bool,
}

impl Figures {
    /// For people.
    #[must_use]
    pub(super) fn text(&self) -> String {
        let file_system = if self.file_system.is_empty() { "unknown file system" } else { &self.file_system };
        let mut text = format!("machine  {} cores; {file_system}, every commit synced\n", self.cores);
        for append in &self.append {
            let Append { commit, subjects, records_per_s, plain_file_records_per_s, ratio, .. } = append;
            let what = if *subjects > 1 { format!("{subjects} subjects at once") } else { format!("{commit} a commit") };
            let _ = writeln!(
                text,
                "append   {what:<22} {records_per_s:>9.0} records/s, the plain file {plain_file_records_per_s:>9.0}: {ratio:.2} of it; {:.1} records and {:.2} fdatasync a commit",
                append.records_per_commit, append.fdatasyncs_per_commit
            );
        }
        let memory = self.rss_mb.map_or_else(|| "unknown".to_owned(), |mb| format!("{mb:.0} MB"));
        let _ = write!(
            text,
            "\
open     {open:.0} ms for {records} records of {bytes:.0} bytes
replay   {replay:.0} records/s; decoding alone {plain:.0}: {ratio:.2} of it; {memory} resident
verify   {verify:.0} records/s
disk     {disk:.2} times the records; {blobs} files outside the store's own
",
            open = self.open_ms,
            records = self.records,
            bytes = self.record_bytes,
            replay = self.replay.records_per_s,
            plain = self.replay.plain_decode_records_per_s,
            ratio = self.replay.ratio,
            verify = self.verify_records_per_s,
            disk = self.disk_ratio,
            blobs = self.blob_files,
        );
        text
    }
}
