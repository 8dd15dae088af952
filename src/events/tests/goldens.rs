//! The encoding that is for ever: tests/data/format/v1 holds one file for each kind, one line for each sample, and each line is
//! `NUMBER FRAME LEAF` in hex. A line is never changed. `WHARF_BLESS_FORMAT=1` adds lines that are missing and nothing else.

use std::fmt::Write as _;
use std::path::PathBuf;

use super::samples;
use super::world::{START_US, app, options};
use crate::events::block::{Block, BlockHead, BlockWriter};
use crate::events::codec;
use crate::events::frame::{self, Frame, FrameBody};
use crate::events::marks::{Ceiling, Mark, Marks};
use crate::events::record::{Event, Header, Kind};
use crate::events::tree::{EMPTY_ROOT, Tree, TreeHead};
use crate::ids::{LogId, Seq, hex, unhex};

const SALT: [u8; 16] = *b"0123456789abcdef";

fn header(event: &Event, number: u64) -> Header {
    let about_daemon = [Kind::LogRestarted, Kind::SettingsInForce, Kind::ClockStepped, Kind::CallRefused].contains(&event.kind());
    Header {
        kind: event.kind().number(),
        kind_version: event.kind().version(),
        rules: 1,
        seq: Seq(70_001 + number),
        subject: if about_daemon { options().daemon } else { app("bot") },
        subject_seq: 258 + number,
        time_us: START_US + 1,
        reaction: Seq(70_001),
        cause: Seq(number),
        settings: Seq(3),
    }
}

/// The frame of a sample, and its leaf.
fn encoded(event: &Event, number: u64) -> (Vec<u8>, [u8; 32]) {
    let header = header(event, number);
    let payload = codec::encode(event).expect("a sample is small");
    let mut out = Vec::new();
    let leaf = frame::write(&header, &header.subject.to_string(), 2, &SALT, &payload, &mut out);
    (out, leaf)
}

#[expect(clippy::disallowed_methods, reason = "a switch for whoever adds a kind, read by this test alone")]
fn compare(name: &str, lines: &[String]) {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/data/format/v1").join(format!("{name}.hex"));
    let golden = std::fs::read_to_string(&path).unwrap_or_default();
    let kept: Vec<_> = golden.lines().collect();
    for (number, line) in kept.iter().enumerate() {
        assert_eq!(Some(*line), lines.get(number).map(String::as_str), "{name}, line {number}: a stored encoding changed");
    }
    if kept.len() < lines.len() {
        assert!(std::env::var_os("WHARF_BLESS_FORMAT").is_some(), "{} lacks lines: run with WHARF_BLESS_FORMAT=1", path.display());
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("made");
        let all = lines.iter().fold(String::new(), |mut all, line| {
            let _ = writeln!(all, "{line}");
            all
        });
        std::fs::write(&path, all).expect("written");
    }
}

#[test]
fn every_kind_is_encoded_as_it_always_was() {
    for kind in Kind::ALL {
        let events = samples::events(*kind);
        assert!(!events.is_empty(), "{} has no sample", kind.name());
        let line = |(number, event): (u64, &Event)| {
            let (frame, leaf) = encoded(event, number);
            format!("{number} {} {}", hex(&frame), hex(&leaf))
        };
        compare(kind.name(), &(0..).zip(&events).map(line).collect::<Vec<_>>());
    }
}

#[test]
fn every_golden_decodes_to_the_same_bytes() {
    for kind in Kind::ALL {
        for (number, event) in (0..).zip(samples::events(*kind)) {
            let (bytes, leaf) = encoded(&event, number);
            let frame = Frame::read(&bytes).expect("sound");
            assert_eq!((frame.decoded(), frame.following(), frame.leaf()), (Some(header(&event, number)), 2, leaf));
            let FrameBody::Whole { salt: &SALT, payload } = frame.body else { panic!("whole, with its salt") };
            assert_eq!(codec::decode(*kind, kind.version(), payload), Ok(event.clone()), "{}", kind.name());
            assert_eq!(codec::encode(&event).as_deref(), Ok(payload));
        }
    }
}

/// The version that each kind had when its golden was made: a new one needs new goldens beside the old.
#[test]
fn no_golden_is_of_a_kind_that_is_gone() {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/data/format/v1");
    for entry in std::fs::read_dir(folder).expect("there") {
        let name = entry.expect("readable").file_name().into_string().expect("a name");
        let stem = name.strip_suffix(".hex").expect("a golden");
        assert!(Kind::parse(stem).is_some() || ["block", "marks", "withheld"].contains(&stem), "{name}");
    }
}

#[test]
fn a_withheld_record_keeps_its_header_and_its_leaf() {
    let (whole, leaf) = encoded(&samples::events(Kind::TailText)[0], 0);
    let withheld = frame::withhold(&Frame::read(&whole).expect("sound"));
    let read = Frame::read(&withheld).expect("sound");
    assert_eq!((read.leaf(), read.header), (leaf, Frame::read(&whole).expect("sound").header));
    assert_eq!(frame::withhold(&read), withheld);
    compare("withheld", &[format!("0 {} {}", hex(&withheld), hex(&leaf))]);
}

#[test]
fn blocks_and_marks_are_encoded_as_they_always_were() {
    let mut tree = Tree::default();
    let first =
        BlockHead { log: LogId([0xab; 16]), first: Seq(70_001), previous: Seq(300), before: TreeHead { size: 0, root: EMPTY_ROOT } };
    let mut block = BlockWriter::new(first);
    for (number, event) in (0..).zip(samples::events(Kind::LogRestarted).into_iter().take(4)) {
        let (frame, leaf) = encoded(&event, number);
        block.push(&frame);
        tree.push(leaf);
    }
    let bytes = block.finish();
    let read = Block::read(&bytes).expect("sound");
    assert_eq!((read.head, read.count(), read.last()), (first, 4, Seq(70_004)));
    let next = BlockHead { log: first.log, first: Seq(70_005), previous: Seq(70_004), before: tree.head() };
    let mut block = BlockWriter::new(next);
    let (frame, leaf) = encoded(&samples::text(3), 4);
    block.push(&frame);
    tree.push(leaf);
    compare("block", &[format!("0 {}", hex(&bytes)), format!("1 {}", hex(&block.finish()))]);

    let mut marks = Marks::default();
    let ceiling = marks.set_ceiling(Ceiling { log: first.log, seq: Seq(135_537) });
    let mark = marks.set_mark(Mark { log: first.log, last: Seq(70_005), clean: true, tree });
    compare("marks", &[ceiling, mark].map(|slot| format!("{} {}", slot.offset, hex(&slot.bytes))));
    assert!(unhex(&hex(&bytes)).is_some());
}
