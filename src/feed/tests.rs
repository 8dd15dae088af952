//! Every kind of record as an event, and pages over logs with more than one id and with damage.

use std::ops::ControlFlow;

use boon::{Compiler, Schemas};
use serde_json::Value;

use super::cloudevent::{Around, EVENT_MAX, dotted};
use super::correlation::Correlation;
use super::filter::Filter;
use super::page::{Page, page};
use crate::clock::{Clock, Entropy};
use crate::events::kinds::tail::{TailOf, TailText};
use crate::events::log::{EventLog as _, LogReader, OpenOptions};
use crate::events::mem_log::{MemDisk, MemLog};
use crate::events::record::{Draft, Event, Kind, Reaction};
use crate::events::tests::samples;
use crate::ids::{HostName, Seq, Subject, Uid, Word};

const ALL: Around<'_> = Around { world: "prod", tails: true };

fn log() -> (MemDisk, MemLog) {
    let disk = MemDisk::new();
    let options = OpenOptions::new(Subject::daemon("prod").expect("a name"));
    let (log, _) = MemLog::open(&disk, &Clock::simulated(1), Entropy::seeded(1), &options).expect("it opens");
    (disk, log)
}

fn append(log: &mut MemLog, event: Event) {
    let subject = Subject::parse("app/acme/bot").expect("a subject");
    log.append(&[Reaction { subject, time_us: 1, rules: 1, settings: Seq::NONE, drafts: vec![Draft::input(event)] }]).expect("appended");
}

fn read(reader: &dyn LogReader, after: u64, limit: usize) -> Page {
    page(reader, Seq(after), &Filter::default(), ALL, limit, &mut Correlation::default()).expect("readable")
}

#[test]
fn each_kind_is_an_event_by_the_public_schema() {
    let (mut schemas, mut compiler) = (Schemas::new(), Compiler::new());
    compiler.enable_format_assertions();
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/cloudevents/schema.json");
    let schema = compiler.compile(path, &mut schemas).expect("a schema");
    let (_disk, mut log) = log();
    let samples: Vec<Event> = Kind::ALL.iter().flat_map(|kind| samples::events(*kind)).collect();
    for sample in &samples {
        append(&mut log, sample.clone());
    }
    let reader = log.reader();
    let (mut after, mut seen) = (1, Vec::new());
    while after < reader.head().0 {
        let page = read(reader.as_ref(), after, usize::MAX);
        after = page.position.seq.0;
        for (_, line) in page.events {
            assert!(line.len() <= EVENT_MAX && !line.contains('\n'));
            let event: Value = serde_json::from_str(&line).expect("JSON");
            if let Err(error) = schemas.validate(&event, schema) {
                panic!("{error}: {line}");
            }
            for (name, value) in event.as_object().expect("an object").iter().filter(|(name, _)| *name != "data") {
                let well_named = name.len() <= 20 && name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit());
                assert!(well_named, "{name} is no name of an attribute");
                assert!(value.is_string() || value.as_i64().is_some_and(|number| i32::try_from(number).is_ok()), "{name}: {value}");
            }
            seen.push(event["type"].as_str().expect("text").to_owned());
        }
    }
    let expected: Vec<String> =
        samples.iter().map(|event| format!("dev.wharfinger.{}.v{}", dotted(event.kind().name()), event.kind().version())).collect();
    assert_eq!(seen, expected);
}

#[test]
fn what_does_not_fit_an_event_is_delivered_without_it() {
    let of = TailOf {
        host: HostName::new("bot-r1").expect("a name"),
        uid: Uid::new("u").expect("a uid"),
        container: Word::new("app"),
        ended: true,
    };
    let (_disk, mut log) = log();
    append(&mut log, Event::TailText(TailText { of, part: 0, text: "\u{1}".repeat(15_000) }));
    let line = read(log.reader().as_ref(), 1, 1).events.remove(0).1;
    let event: Value = serde_json::from_str(&line).expect("JSON");
    assert!(line.len() <= EVENT_MAX);
    assert_eq!((&event["withheld"], event.get("data")), (&"size".into(), None));
}

#[test]
fn what_cannot_be_read_is_told() {
    let (disk, mut log) = log();
    for event in samples::events(Kind::OperatorSaid).into_iter().cycle().take(3) {
        append(&mut log, event);
    }
    disk.edit(|blocks| {
        if let Some(byte) = blocks.get_mut(&Seq(3)).and_then(|block| block.last_mut()) {
            *byte ^= 1;
        }
    });
    let page = read(log.reader().as_ref(), 0, usize::MAX);
    let types: Vec<Value> =
        page.events.iter().map(|(_, line)| serde_json::from_str::<Value>(line).expect("JSON")["type"].clone()).collect();
    let said = "dev.wharfinger.operator.said.v1";
    assert_eq!(types, ["dev.wharfinger.log.restarted.v1", said, "dev.wharfinger.damaged.v1", said]);
}

#[test]
fn a_page_ends_at_its_limit_and_says_how_far_it_is() {
    let (_disk, mut log) = log();
    for event in samples::events(Kind::OperatorSaid).into_iter().cycle().take(5) {
        append(&mut log, event);
    }
    let reader = log.reader();
    let first = read(reader.as_ref(), 0, 2);
    assert_eq!((first.events.len(), first.position.seq, first.at_head), (2, Seq(2), false));
    let rest = read(reader.as_ref(), 2, usize::MAX);
    assert_eq!((rest.events.len(), rest.position.seq, rest.at_head), (4, Seq(6), true));
    let mut leaves = 0;
    reader
        .leaves(Seq(1), &mut |_, _| {
            leaves += 1;
            ControlFlow::Continue(())
        })
        .expect("readable");
    assert_eq!(leaves, 6);
}
