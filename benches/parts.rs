//! `cargo bench`: what the parts of the log cost a record, on one core and in memory. What they cost together, on a disk, is
//! `wharf bench log`.

use std::hint::black_box;
use std::time::{Duration, Instant};

use wharfinger::app::fold::fold;
use wharfinger::app::rules::Rules;
use wharfinger::app::state::App;
use wharfinger::events::block::{Block, BlockHead, BlockWriter};
use wharfinger::events::codec;
use wharfinger::events::frame::{self, Frame};
use wharfinger::events::record::{Header, Reaction, Record};
use wharfinger::events::tree::Tree;
use wharfinger::ids::{LogId, Seq};
use wharfinger::{app, events, ids};

#[expect(dead_code, reason = "the measurement beside the plain file uses the rest of it")]
#[path = "../src/cli/bench/log/life.rs"]
mod life;

/// Records a pass: a few lives of an app, more than a processor's first cache.
const RECORDS: usize = 1_300;
/// How long a part is measured, and how long it is warmed up before.
const SPAN: Duration = Duration::from_secs(2);
const WARM_UP: Duration = Duration::from_millis(300);

fn main() {
    let reaction = life::Life::new(1).and_then(|mut life| life.reaction(RECORDS, Seq(1), 1_780_000_000_000_000)).expect("names");
    let records = records(&reaction);
    let subject = reaction.subject.to_string();
    let payloads: Vec<Vec<u8>> = records.iter().map(|record| codec::encode(&record.event).expect("small")).collect();
    let frames: Vec<Vec<u8>> = records.iter().zip(&payloads).map(|(record, payload)| framed(record, &subject, payload)).collect();
    let bytes = payloads.iter().map(Vec::len).sum::<usize>() / RECORDS;
    println!("{RECORDS} records a pass, {bytes} bytes of payload each on average");

    let mut out = Vec::new();
    measure("encode", || {
        out.clear();
        for record in &records {
            codec::encode_into(&record.event, &mut out).expect("small");
        }
        black_box(&out);
    });
    measure("decode", || {
        for (record, payload) in records.iter().zip(&payloads) {
            black_box(codec::decode(record.event.kind(), record.header.kind_version, payload).expect("sound"));
        }
    });
    measure("frame and leaf", || {
        for (record, payload) in records.iter().zip(&payloads) {
            out.clear();
            black_box(frame::write(&record.header, &subject, 0, &[7; 16], payload, &mut out));
        }
    });
    measure("check frame", || {
        for frame in &frames {
            black_box(Frame::read(frame).expect("sound"));
        }
    });
    measure("leaf and tree", || {
        let mut tree = Tree::default();
        for frame in &frames {
            tree.push(Frame::read(frame).expect("sound").leaf());
        }
        black_box(tree.head());
    });
    measure("block", || {
        let head = BlockHead { log: LogId([1; 16]), first: Seq(1), previous: Seq::NONE, before: Tree::default().head() };
        let mut block = BlockWriter::new(head);
        for frame in &frames {
            if !block.has_room(frame.len()) {
                let full = std::mem::replace(&mut block, BlockWriter::new(head)).finish();
                black_box(Block::read(&full).expect("sound").count());
            }
            block.push(frame);
        }
    });
    measure("fold", || {
        let mut app = App::default();
        for record in &records {
            fold(&mut app, Rules::CURRENT, record);
        }
        black_box(app);
    });
}

fn records(reaction: &Reaction) -> Vec<Record> {
    let record = |(index, draft): (u64, &events::record::Draft)| {
        let kind = draft.event.kind();
        let header = Header {
            kind: kind.number(),
            kind_version: kind.version(),
            rules: reaction.rules,
            seq: Seq(index + 1),
            subject: reaction.subject.clone(),
            subject_seq: index + 1,
            time_us: reaction.time_us,
            reaction: Seq(1),
            cause: draft.cause.resolved(Seq(1)),
            settings: reaction.settings,
        };
        Record { header, event: draft.event.clone() }
    };
    (0..).zip(&reaction.drafts).map(record).collect()
}

fn framed(record: &Record, subject: &str, payload: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    frame::write(&record.header, subject, 0, &[7; 16], payload, &mut out);
    out
}

/// Runs passes until the time is over and prints the fastest: what disturbs a pass only makes it slower.
#[expect(clippy::disallowed_methods, reason = "no part of the program: a stop watch")]
fn measure(part: &str, mut pass: impl FnMut()) {
    let begun = Instant::now();
    while begun.elapsed() < WARM_UP {
        pass();
    }
    let (begun, mut fastest) = (Instant::now(), Duration::MAX);
    while begun.elapsed() < SPAN {
        let begun = Instant::now();
        pass();
        fastest = fastest.min(begun.elapsed());
    }
    let each = fastest.as_secs_f64() / RECORDS as f64;
    println!("{part:<16} {:>6.0} ns a record, {:>6.2} M records/s", each * 1e9, 1e-6 / each);
}
