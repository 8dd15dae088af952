//! A log whose beginning ages out while the daemon works: every subject is what it was, whatever happens in between.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::poison::{At, poison};
use super::support::{Town, app, is};
use crate::app::react::committed;
use crate::app::rules::Rules;
use crate::app::state::App;
use crate::config::Settings;
use crate::events::archive::segments;
use crate::events::backup::file;
use crate::events::check::check;
use crate::events::kinds::operator::Frozen;
use crate::events::log::{EventLog as _, LogReader, OpenOptions};
use crate::events::mem_log::{MemFault, MemLog};
use crate::events::record::{Draft, Event, Reaction, Record};
use crate::events::stored::Body;
use crate::ids::{AppId, Seq, Subject};
use crate::run::snapshot::{load, recover};
use crate::run::verify::verify_decisions;
use crate::sim::api::{Action, Match, Verb};
use crate::sim::node::{Register, Run, Script};
use crate::subject::stored::in_parts;

const KEEP_S: u64 = 600;

fn keeps_ten_minutes(settings: &mut Settings) {
    settings.log.keep_s = KEEP_S;
    settings.log.archive = "archive".to_owned();
    // A row of absences that withdraws nobody.
    (settings.plan.withdraw_after, settings.plan.withdraw_after_mass) = (900, 950);
}

/// Every state as text, by the log alone: no snapshot helps.
fn by_the_log(town: &Town) -> BTreeMap<AppId, String> {
    town.disk.edit_cached(BTreeMap::clear);
    let reader = MemLog::open_for_reading(&town.disk).expect("the log can be read");
    assert!(load(reader.as_ref()).1.is_none());
    let recovered = recover(reader.as_ref()).expect("the log can be folded").0;
    assert!(recovered.apps.broken.is_empty(), "{:?}", recovered.apps.broken);
    town.disk.edit_cached(BTreeMap::clear);
    texts(recovered.apps.states.iter())
}

fn texts<'a>(states: impl Iterator<Item = (&'a AppId, &'a App)>) -> BTreeMap<AppId, String> {
    states.map(|(app, state)| (app.clone(), format!("{state:#?}"))).collect()
}

fn archive(town: &Town) -> PathBuf {
    Path::new(&town.outside.settings.data_dir).join("archive")
}

fn records(reader: &dyn LogReader) -> Vec<Record> {
    let mut records = Vec::new();
    let visit = &mut |item: crate::events::stored::Item| {
        let stored = item.expect("a sound record");
        let Body::Known(event) = stored.body else { panic!("a record of this build") };
        records.push(Record { header: stored.header, event });
        ControlFlow::Continue(())
    };
    reader.scan(Seq(1), visit).expect("the log can be read");
    records
}

/// All that was ever in the log: the archive's segments and what is left.
fn history(town: &Town) -> BTreeMap<Seq, Record> {
    let mut all = BTreeMap::new();
    for segment in segments(&archive(town)).expect("listed") {
        let reader = file::open(&segment.path).expect("a segment opens");
        assert_eq!(check(reader.as_ref()).expect("it can be read").difference, None);
        let verified = verify_decisions(reader.as_ref()).expect("it can be read");
        assert!(verified.difference.is_none() && verified.unverifiable.is_none(), "{verified:?}");
        all.extend(records(reader.as_ref()).into_iter().map(|record| (record.header.seq, record)));
    }
    all.extend(town.records().into_iter().map(|record| (record.header.seq, record)));
    all
}

/// The states by all that was ever in the log.
fn by_history(town: &Town) -> BTreeMap<AppId, String> {
    let mut states: BTreeMap<AppId, App> = BTreeMap::new();
    for record in history(town).into_values() {
        if let Subject::App(app) = &record.header.subject {
            committed(states.entry(app.clone()).or_default(), Rules::CURRENT, std::slice::from_ref(&record));
        }
    }
    texts(states.iter())
}

/// What holds whenever nothing runs: what is left is sound, is decided as it says, and says of every subject what all ever said.
fn holds(town: &Town) -> Seq {
    let reader = MemLog::open_for_reading(&town.disk).expect("the log can be read");
    assert_eq!(check(reader.as_ref()).expect("it can be read").difference, None);
    let verified = verify_decisions(reader.as_ref()).expect("it can be read");
    assert!(verified.difference.is_none() && verified.unverifiable.is_none(), "{verified:?}");
    assert_eq!(verified.from, reader.removed().map(|removed| removed.kept));
    let (kept, all) = (by_the_log(town), by_history(town));
    assert_eq!(kept.keys().collect::<Vec<_>>(), all.keys().collect::<Vec<_>>());
    for (app, state) in kept {
        assert_eq!(state, all[&app], "{app}");
    }
    reader.removed().map_or(Seq::NONE, |removed| removed.kept)
}

/// Freezes an app while nothing runs.
fn freeze(town: &Town, name: &str) {
    let mut log = open(town);
    let settings =
        town.records().iter().rev().find(|record| matches!(record.event, Event::SettingsInForce(_))).map(|record| record.header.seq);
    let reaction = Reaction {
        subject: Subject::App(app(name)),
        time_us: town.outside.clock.now_us(),
        rules: 1,
        settings: settings.expect("settings are in force"),
        drafts: vec![Draft::input(Event::Frozen(Frozen { everything: false }))],
    };
    log.append(&[reaction]).expect("appends");
    Box::new(log).close().expect("closes");
}

/// Apps in many states: live, failed and owed, frozen with a step withheld, quarantined, absent, gone.
async fn many_states(town: &mut Town) {
    town.start().await;
    town.live_app("acme/bot").await;
    town.live_app("acme/bot").await;
    let run = Run { first_lines: vec!["booting".to_owned()], ..Run::ends(Duration::from_millis(50), 3) };
    town.world.scripts.set("bee-r1-", Script { register: Register::Never, ..Script::default().app(run) });
    town.world.gateway.deploy("acme/bee");
    town.until("failed", |town| town.kinds("acme/bee", "VerdictReached") > 0).await;
    let dog = town.live_app("acme/dog").await;
    town.live_app("acme/eel").await;
    town.live_app("acme/fox").await;
    town.stop().await;
    freeze(town, "acme/dog");
    town.start().await;
    town.until("listed", |town| town.live().registry().is_listed()).await;
    town.world.nodes.kill_app(&dog, 1);
    town.until("withheld", |town| town.kinds("acme/dog", "StepWithheld") > 0).await;
    poison(&app("acme/eel"), At::BeforeAppend, 3);
    town.live_app("acme/eel2").await;
    town.world.gateway.deploy("acme/eel");
    town.until("quarantined", |town| town.kinds("acme/eel", "Quarantined") > 0).await;
    town.world.gateway.withdraw("acme/fox");
    town.until("missing", |town| town.kinds("acme/fox", "WantMissing") > 2).await;
}

#[tokio::test(start_paused = true)]
async fn age_out_everything_delete_the_snapshots_restart_every_subject_is_what_it_was() {
    let mut town = Town::with(keeps_ten_minutes).await;
    many_states(&mut town).await;
    let setup = town.records().last().expect("records").header.seq;
    town.run(3 * KEEP_S).await;
    // A step that is under way when everything ends.
    town.world.api.faults().always(Match { verb: Some(Verb::Create), resource: Some("pods"), ..Match::all() }, Action::HangBefore);
    town.world.gateway.deploy("acme/cat");
    town.until("in flight", |town| town.count("acme/cat", is("StepIssued")) > 1).await;
    town.run(3).await;
    let before = texts(town.live().registry().states().iter().map(|(app, state)| (app, &**state)));
    town.crash().await;
    let kept = holds(&town);
    assert!(kept > setup, "all of it aged out: {kept} of {setup}");
    let after = by_the_log(&town);
    for (app, state) in &before {
        assert_eq!(Some(state), after.get(app), "{app}");
    }
    for (name, what) in [
        ("acme/bot", "live_host: Some"),
        ("acme/bee", "Failed"),
        ("acme/dog", "frozen: true"),
        ("acme/dog", "withheld: true"),
        ("acme/eel", "quarantined: true"),
        ("acme/fox", "any_mass"),
        ("acme/cat", "CreatePod"),
    ] {
        assert!(after[&app(name)].contains(what), "{name} {what}: {}", after[&app(name)]);
    }
    let reader = MemLog::open_for_reading(&town.disk).expect("the log can be read");
    let verified = verify_decisions(reader.as_ref()).expect("it can be read");
    assert!(verified.carried > 0, "{verified:?}");
    let incarnations = recover(reader.as_ref()).expect("it can be folded").0.incarnations;
    assert_eq!(incarnations, 2);
    drop(reader);
    town.disk.edit_cached(BTreeMap::clear);
    // And it goes on from there: what served serves, and nothing is done again.
    let pods = town.pods();
    town.start().await;
    town.run(30).await;
    assert!(pods.iter().all(|pod| town.pods().contains(pod)), "{pods:?} {:?}", town.pods());
    assert!(town.records().iter().any(|record| matches!(&record.event, Event::IncarnationStarted(started) if started.number == 3)));
    town.stop().await;
    holds(&town);
}

/// Appends to the log of a town where nothing runs.
fn open(town: &Town) -> MemLog {
    let options = OpenOptions::new(Subject::Daemon("demo".to_owned()));
    MemLog::open(&town.disk, &town.outside.clock, town.outside.entropy.clone(), &options).expect("opens").0
}

#[tokio::test(start_paused = true)]
async fn a_carried_state_that_differs_from_what_the_records_say_is_found() {
    let mut town = Town::with(keeps_ten_minutes).await;
    town.start().await;
    town.live_app("acme/bot").await;
    town.stop().await;
    let records = town.records();
    let state = recover(MemLog::open_for_reading(&town.disk).expect("opens").as_ref()).expect("it can be folded").0.apps.states
        [&app("acme/bot")]
        .clone();
    let settings = records.iter().rev().find(|record| matches!(record.event, Event::SettingsInForce(_))).expect("there").header.seq;
    let mut log = open(&town);
    let mut carry = |state: &App| {
        let drafts = in_parts(state).expect("small").into_iter().map(Draft::input).collect();
        let (subject, time_us) = (Subject::App(app("acme/bot")), town.outside.clock.now_us());
        log.append(&[Reaction { subject, time_us, rules: 1, settings, drafts }]).expect("appended").concat()[0].header.seq
    };
    carry(&state);
    let reader = MemLog::open_for_reading(&town.disk).expect("opens");
    let verified = verify_decisions(reader.as_ref()).expect("it can be read");
    assert!(verified.difference.is_none() && verified.carried == 1, "{verified:?}");
    drop(reader);
    let forged = carry(&App { frozen: true, ..state });
    let reader = MemLog::open_for_reading(&town.disk).expect("opens");
    let (_, difference) = verify_decisions(reader.as_ref()).expect("it can be read").difference.expect("it is found");
    assert_eq!(difference.seq, forged);
    assert!(difference.recorded.is_some() && difference.planned.is_some_and(|planned| Some(planned) != difference.recorded));
}

#[tokio::test(start_paused = true)]
async fn what_aged_out_without_being_carried_is_not_acted_on() {
    let mut town = Town::with(keeps_ten_minutes).await;
    town.start().await;
    town.live_app("acme/bot").await;
    town.stop().await;
    town.disk.edit_cached(BTreeMap::clear);
    let mut log = open(&town);
    let head = log.reader().head();
    while log.remove(head).expect("removed").is_some() {}
    Box::new(log).close().expect("closes");
    let (pods, sent) = (town.pods(), town.sent().len());
    town.start().await;
    town.world.gateway.deploy("acme/bot");
    town.run(300).await;
    assert!(town.state("acme/bot").is_some_and(|state| state.quarantined), "{}", town.story());
    assert_eq!((town.pods(), town.sent().len()), (pods, sent), "{}", town.story());
    // Others are.
    town.live_app("acme/bee").await;
}

#[tokio::test(start_paused = true)]
async fn what_is_under_way_holds_its_record() {
    let mut town = Town::with(keeps_ten_minutes).await;
    town.start().await;
    town.live_app("acme/bot").await;
    // Every write takes a quarter of the time that is kept.
    town.world.api.faults().always(Match { verb: Some(Verb::Create), ..Match::all() }, Action::HangBefore);
    town.world.gateway.deploy("acme/cat");
    for _ in 0..20 {
        town.run(90).await;
        let flying: Vec<Seq> =
            town.state("acme/cat").iter().flat_map(|cat| cat.hosts.values()).flat_map(|host| host.flights.keys().copied()).collect();
        let kept = town.live().reader().removed().map_or(Seq::NONE, |removed| removed.kept);
        assert!(flying.iter().all(|step| *step >= kept), "{flying:?} {kept}");
    }
    assert!(town.live().reader().removed().is_some());
    town.crash().await;
    holds(&town);
}

#[tokio::test(start_paused = true)]
async fn an_archive_that_cannot_be_written_stops_the_removal_and_loses_nothing() {
    let mut town = Town::with(keeps_ten_minutes).await;
    std::fs::write(archive(&town), "a file").expect("written");
    town.start().await;
    town.live_app("acme/bot").await;
    town.run(3 * KEEP_S).await;
    assert_eq!(town.live().reader().removed(), None);
    assert!(town.outside.metrics.text().contains("wharf_log_retention_held 1"), "{}", town.outside.metrics.text());
    std::fs::remove_file(archive(&town)).expect("removed");
    town.run(120).await;
    assert!(town.live().reader().removed().is_some());
    assert!(town.outside.metrics.text().contains("wharf_log_retention_held 0"));
    town.stop().await;
    holds(&town);
}

#[tokio::test(start_paused = true)]
async fn the_size_bounds_the_log_too() {
    let mut town = Town::with(|settings| {
        keeps_ten_minutes(settings);
        (settings.log.keep_s, settings.log.keep_bytes) = (0, 20_000);
    })
    .await;
    town.start().await;
    for _ in 0..8 {
        town.live_app("acme/bot").await;
        town.run(70).await;
    }
    let stored = town.live().reader().stored();
    assert!(town.live().reader().removed().is_some() && stored.block_bytes < 30_000, "{stored:?}");
    town.stop().await;
    holds(&town);
}

#[tokio::test(start_paused = true)]
async fn with_both_off_nothing_ages_out() {
    let mut town = Town::with(|settings| (settings.log.keep_s, settings.log.keep_bytes) = (0, 0)).await;
    town.start().await;
    town.live_app("acme/bot").await;
    town.run(100 * 86_400 / 200).await;
    assert_eq!(town.live().reader().removed(), None);
    town.stop().await;
}

#[tokio::test(start_paused = true)]
async fn the_power_goes_anywhere_between_carrying_archiving_and_removing() {
    let mut town = Town::with(|settings| {
        keeps_ten_minutes(settings);
        settings.log.keep_s = 120;
    })
    .await;
    town.start().await;
    town.live_app("acme/bot").await;
    town.live_app("acme/bee").await;
    town.stop().await;
    let mut kept = Seq::NONE;
    for life in 0..30_u64 {
        town.start().await;
        town.until("live", |town| town.live().registry().is_listed()).await;
        if life % 5 == 0 {
            town.live_app("acme/bot").await;
        }
        // The first look comes after 60 s, and each carried subject takes some milliseconds.
        town.run(60 + life % 3 * 60).await;
        town.run_ms(life * 3 % 47).await;
        if life % 4 == 3 {
            town.disk.fail(if life % 8 == 3 { MemFault::Sync } else { MemFault::Full });
            town.world.gateway.deploy("acme/bee");
            drop(town.ended().await);
            town.disk.crash(crate::events::mem_log::Unsynced::Kept);
        } else {
            town.crash().await;
        }
        let now = holds(&town);
        assert!(now >= kept, "{now} {kept}");
        kept = now;
    }
    assert!(kept > Seq(40), "much aged out: {kept}");
}
