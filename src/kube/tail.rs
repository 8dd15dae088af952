//! A container's last words, from raw bytes to what may be kept: decoded, redacted, cut, in parts. Pure.
//!
//! The limits are the page's (hosted-apps.md, "Around the table"). Redaction comes before every cut of ours, so that no cut can
//! leave a part of a value; what was cut before us is said by the caller.

use super::convert::cut;
use super::redact::{Cut, Redactor};

/// Lines that are kept.
pub const LINES: usize = 300;

/// The longest line that is kept, bytes, without the marker.
pub const LINE_BYTES: usize = 2048;

/// All lines together, bytes.
pub const TAIL_BYTES: usize = 96 << 10;

/// The longest part, bytes: with the record's other fields below the log's 16 KiB.
pub const PART_BYTES: usize = 16_000;

/// What stands at the end of a line that was cut.
const MARKER: &str = " [cut]";

/// What may be kept.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Tail {
    /// The text in order, each at most [`PART_BYTES`].
    pub parts: Vec<String>,
    /// How many lines.
    pub lines: u32,
    /// How many bytes.
    pub bytes: u32,
    /// Whether lines or bytes are missing.
    pub cut: bool,
}

/// Makes a tail of a container's output. `ends` says which end of `raw` the reader cut off.
#[must_use]
pub fn tail(raw: &[u8], ends: Cut, redactor: &Redactor) -> Tail {
    let text = redactor.redact(&String::from_utf8_lossy(raw), ends);
    let body = text.strip_suffix('\n').unwrap_or(&text);
    let mut kept = Vec::new();
    let mut bytes = 0;
    let mut lost = ends.begin || ends.end;
    if !body.is_empty() {
        for line in body.rsplit('\n') {
            let (line, was_cut) = shortened(line.strip_suffix('\r').unwrap_or(line));
            if kept.len() == LINES || bytes + line.len() + 1 > TAIL_BYTES {
                lost = true;
                break;
            }
            lost |= was_cut;
            bytes += line.len() + 1;
            kept.push(line);
        }
    }
    let lines = kept.len();
    kept.reverse();
    let mut text = kept.join("\n");
    if lines > 0 {
        text.push('\n');
    }
    Tail { parts: parts(&text), lines: count(lines), bytes: count(text.len()), cut: lost }
}

fn count(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

fn shortened(line: &str) -> (String, bool) {
    if line.len() <= LINE_BYTES { (line.to_owned(), false) } else { (cut(line, LINE_BYTES) + MARKER, true) }
}

fn parts(text: &str) -> Vec<String> {
    let mut parts = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        let (part, after) = rest.split_at(rest.floor_char_boundary(PART_BYTES));
        parts.push(part.to_owned());
        rest = after;
    }
    parts
}

/// Whether `raw`, as the API server answered it, may lack its beginning or end: the request asked for the last `lines` lines and
/// at most `limit` bytes.
#[must_use]
pub fn ends(raw: &[u8], lines: usize, limit: usize) -> Cut {
    let seen = raw.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()).count();
    Cut { begin: seen >= lines, end: raw.len() >= limit }
}
