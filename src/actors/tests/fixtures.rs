//! Logs that earlier builds have written, one for each record format and `rules` number: every build opens them, replays them to
//! the same states and verifies them.
//!
//! `tests/data/logs/v<format>-rules<number>/` holds `log.hex`, the store's blocks and the marks file's slots, and `states.json`,
//! what the apps then were. They are never changed. `WHARF_BLESS_FORMAT=1` writes those of this build's format and rules, when
//! there are none, from a story on the embedded world.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::Value;

use super::support::Town;
use crate::app::react::{Under, react};
use crate::app::rules::Rules;
use crate::app::show;
use crate::clock::{Clock, Entropy};
use crate::events::check::check;
use crate::events::frame::RECORD_VERSION;
use crate::events::kinds::operator::RetryAsked;
use crate::events::log::{EventLog as _, Found, LogReader, OpenOptions};
use crate::events::marks::SLOT;
use crate::events::mem_log::{MemDisk, MemLog};
use crate::events::record::{Draft, Event, Kind};
use crate::ids::{HostName, Seq, Subject, hex, unhex};
use crate::run::recover::{NotRecovered, Recovered, fold_on};
use crate::run::verify::{verify_decisions, verify_decisions_under};
use crate::sim::node::{Register, Run, Script};

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/data/logs")
}

/// The fixtures there are, by name.
fn fixtures() -> Vec<PathBuf> {
    let mut found: Vec<_> = std::fs::read_dir(root()).expect("there").map(|entry| entry.expect("readable").path()).collect();
    found.sort();
    found
}

/// The disk that a fixture was.
fn disk(fixture: &Path) -> MemDisk {
    let text = std::fs::read_to_string(fixture.join("log.hex")).expect("a log");
    let disk = MemDisk::new();
    for line in text.lines() {
        let mut words = line.split(' ');
        let (what, number, bytes) = (words.next(), words.next(), words.next().and_then(unhex));
        let (number, bytes) = (number.and_then(|number| number.parse().ok()).expect("a number"), bytes.expect("hex"));
        match what {
            Some("block") => disk.edit(|blocks| drop(blocks.insert(Seq(number), bytes))),
            Some("slot") => disk.edit_marks(|marks| {
                let at = usize::try_from(number).expect("small");
                marks.resize(marks.len().max(at + SLOT), 0);
                marks[at..at + bytes.len()].copy_from_slice(&bytes);
            }),
            _ => panic!("no line of a fixture: {line}"),
        }
    }
    disk
}

fn recover(reader: &dyn LogReader) -> Result<Recovered, NotRecovered> {
    let mut recovered = Recovered::default();
    fold_on(&mut recovered, reader, Seq(1), reader.head())?;
    Ok(recovered)
}

fn states(recovered: &Recovered) -> Value {
    let plan = crate::events::kinds::daemon::PlanSettings::from(&crate::config::Settings::default().plan);
    recovered.apps.states.iter().map(|(app, state)| show::whole(app, state, &plan, None)).collect()
}

/// Whether all that is said in `old` is said in `new`, which may say more.
fn says(new: &Value, old: &Value) -> bool {
    match (new, old) {
        (Value::Object(new), Value::Object(old)) => old.iter().all(|(key, old)| new.get(key).is_some_and(|new| says(new, old))),
        (Value::Array(new), Value::Array(old)) => new.len() == old.len() && new.iter().zip(old).all(|(new, old)| says(new, old)),
        _ => new == old,
    }
}

#[test]
fn b60_the_log_of_every_release_opens_replays_and_verifies() {
    let fixtures = fixtures();
    assert!(!fixtures.is_empty());
    for fixture in fixtures {
        let name = fixture.display();
        let disk = disk(&fixture);
        let reader = MemLog::open_for_reading(&disk).expect("it opens for reading");
        let report = check(&*reader).expect("the store answers");
        assert_eq!(report.difference, None, "{name}");
        assert!(report.records > 100 && report.logs.len() == 2 && !report.gaps.is_empty(), "{name}: {report:?}");
        let verified = verify_decisions(&*reader).expect("the store answers");
        assert!(verified.difference.is_none() && verified.unverifiable.is_none(), "{name}: {verified:?}");
        assert!(verified.decisions > 30, "{name}: {verified:?}");
        let recovered = recover(&*reader).expect("it can be folded");
        let golden = std::fs::read_to_string(fixture.join("states.json")).expect("states");
        let golden: Value = serde_json::from_str(&golden).expect("JSON");
        let now = states(&recovered);
        assert!(recovered.apps.broken.is_empty() && says(&now, &golden), "{name}: {now:#}");
        let options = OpenOptions::new(Subject::daemon("demo").expect("a name"));
        let (_, opened) = MemLog::open(&disk, &Clock::simulated(1), Entropy::seeded(1), &options).expect("it opens");
        assert_eq!((opened.found, opened.log), (Found::Clean, reader.id()), "{name}");
    }
}

#[test]
fn what_was_decided_under_rules_1_verifies_when_new_ones_are_the_default() {
    let disk = disk(&root().join("v1-rules1"));
    let next = Rules::numbered(2);
    let knows_both = |number| Rules::of(number).or((number == 2).then_some(next));
    let options = OpenOptions::new(Subject::daemon("demo").expect("a name"));
    let (mut log, _) = MemLog::open(&disk, &Clock::simulated(1), Entropy::seeded(1), &options).expect("it opens");
    let reader = log.reader();
    let old = verify_decisions_under(&*reader, &knows_both).expect("the store answers");
    assert!(old.difference.is_none() && old.unverifiable.is_none() && old.reactions > 10, "{old:?}");

    // A reaction that is decided under the new default, on top of what was decided under the old one.
    let recovered = recover(&*reader).expect("it can be folded");
    let (app, state) = recovered.apps.states.iter().next().expect("an app");
    let (settings_seq, settings) = settings_in_force(&*reader);
    let under = Under { rules: next, settings: &settings, settings_seq };
    let asked = Event::RetryAsked(RetryAsked { host: HostName::new("bot-r1-00000000").expect("a host") });
    let reacted = react(state, &Subject::App(app.clone()), vec![Draft::input(asked)], under, recovered.last_us + 1);
    let appended = log.append(&[reacted.reaction]).expect("appended").concat();
    assert_eq!(appended[0].header.rules, 2);
    let both = verify_decisions_under(&*reader, &knows_both).expect("the store answers");
    assert!(both.difference.is_none() && both.unverifiable.is_none(), "{both:?}");
    assert_eq!((both.reactions, both.decisions), (old.reactions + 1, old.decisions + appended.len() as u64 - 1));

    // Whoever does not know the new ones says so, and takes it for no difference.
    let unknown = verify_decisions(&*reader).expect("the store answers");
    let (seq, why) = unknown.unverifiable.expect("it cannot be verified");
    assert!(unknown.difference.is_none() && seq == appended[0].header.seq && why.contains("rules 2"), "{seq} {why}");
    assert!(recover(&*reader).expect_err("it cannot be folded").to_string().contains("rules 2"));
}

fn settings_in_force(reader: &dyn LogReader) -> (Seq, crate::events::kinds::daemon::PlanSettings) {
    let mut found = None;
    let visit = &mut |item: crate::events::stored::Item| {
        let record = item.expect("sound");
        if let crate::events::stored::Body::Known(Event::SettingsInForce(settings)) = record.body {
            found = Some((record.header.seq, settings.plan));
        }
        std::ops::ControlFlow::Continue(())
    };
    reader.scan(Seq::NONE, visit).expect("the store answers");
    found.expect("settings were in force")
}

/// A log with releases that go well and badly, ends, a withdrawal, a crash and a lost tail.
async fn told() -> MemDisk {
    let mut town = Town::new().await;
    town.start().await;
    town.live_app("acme/bot").await;
    let bot = town.live_app("acme/bot").await;
    let run = Run { first_lines: vec!["booting".to_owned()], ..Run::ends(Duration::from_millis(50), 3) };
    let fails = Script { register: Register::Never, ..Script::default().app(run) };
    town.world.scripts.set("bee-r1-", fails);
    town.world.gateway.deploy("acme/bee");
    town.until("failed", |town| town.kinds("acme/bee", "VerdictReached") > 0).await;
    town.live_app("acme/cat").await;
    town.world.nodes.kill_app(&bot, 7);
    town.until("back", |town| town.writes_like(&format!("create pods {bot}")) == 2).await;
    town.crash().await;
    town.start().await;
    town.world.gateway.withdraw("acme/cat");
    town.until("withdrawn", |town| !town.pods().iter().any(|pod| pod.starts_with("cat-"))).await;
    town.run(60).await;
    town.stop().await;
    town.disk.edit(|blocks| drop(blocks.pop_last()));
    town.start().await;
    town.live_app("acme/bot").await;
    town.run(60).await;
    town.stop().await;
    town.disk.clone()
}

#[tokio::test(start_paused = true)]
#[expect(clippy::disallowed_methods, reason = "a switch for whoever adds a format or rules, read by this test alone")]
async fn there_is_a_log_of_this_builds_format_and_rules() {
    let folder = root().join(format!("v{RECORD_VERSION}-rules{}", Rules::CURRENT.number()));
    if folder.is_dir() {
        return;
    }
    assert!(std::env::var_os("WHARF_BLESS_FORMAT").is_some(), "{} is missing: run with WHARF_BLESS_FORMAT=1", folder.display());
    let disk = told().await;
    let recovered = recover(&*MemLog::open_for_reading(&disk).expect("it opens")).expect("it can be folded");
    let mut text = String::new();
    disk.edit(|blocks| {
        for (seq, block) in blocks {
            let _ = writeln!(text, "block {seq} {}", hex(block));
        }
    });
    disk.edit_marks(|marks| {
        for (number, slot) in marks.chunks(SLOT).enumerate() {
            let used = slot.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
            let _ = writeln!(text, "slot {} {}", number * SLOT, hex(&slot[..used]));
        }
    });
    std::fs::create_dir_all(&folder).expect("made");
    std::fs::write(folder.join("log.hex"), text).expect("written");
    std::fs::write(folder.join("states.json"), format!("{:#}\n", states(&recovered))).expect("written");
}

/// What has a fixture must be what can be in one: each kind that decides was written by some release.
#[test]
fn a_fixture_holds_many_kinds() {
    let reader = MemLog::open_for_reading(&disk(&root().join("v1-rules1"))).expect("it opens for reading");
    let mut kinds = std::collections::BTreeSet::new();
    let visit = &mut |item: crate::events::stored::Item| {
        kinds.insert(item.expect("sound").header.kind);
        std::ops::ControlFlow::Continue(())
    };
    reader.scan(Seq::NONE, visit).expect("the store answers");
    for kind in [Kind::PodEnded, Kind::TailText, Kind::StepSettled, Kind::WantMissing, Kind::LogRestarted, Kind::VerdictReached] {
        assert!(kinds.contains(&kind.number()), "{}", kind.name());
    }
}
