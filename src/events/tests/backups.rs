//! Backup files: what is in them is the log, a damaged one is refused by place, and a restored folder is a log again.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::samples;
use super::world::*;
use crate::clock::{Clock, Entropy};
use crate::events::backup::BackupError;
use crate::events::backup::about::About;
use crate::events::backup::entry::{End, Entries, Next};
use crate::events::backup::file;
use crate::events::backup::restore::{RestoreError, restore};
use crate::events::backup::select::{PAGE_MAX, Select, page};
use crate::events::backup::write::NewBackup;
use crate::events::block::Block;
use crate::events::kinds::daemon::RestartReason;
use crate::events::log::{Beginning, EventLog, Found, LogReader, OpenOptions};
use crate::events::record::{Event, Kind};
use crate::events::sled_log::SledLog;
use crate::ids::{Seq, Subject};

const ALL: Select = Select { from: Seq(1), to: Seq(u64::MAX), subject: None };

/// Keeps what is selected, page by page, each page as it goes over the wire.
fn keep(reader: &dyn LogReader, path: &Path, select: &Select) -> Result<End, BackupError> {
    let mut about = About::of(reader, 7).expect("the store answers");
    (about.from, about.to) = (select.from.0, select.to.0);
    about.subject = select.subject.as_ref().map(ToString::to_string);
    let mut new = NewBackup::begin(path, about)?;
    let mut select = select.clone();
    loop {
        let page = page(reader, &select).expect("the store answers");
        let bytes = page.entries();
        assert!(bytes.len() <= PAGE_MAX, "{}", bytes.len());
        let mut entries = Entries::of_page(bytes.as_slice());
        while let Some(Next::Block { key, bytes, .. }) = entries.step()? {
            new.block(key, &bytes)?;
        }
        match page.next {
            Some(next) => select.from = next,
            None => return new.finish(),
        }
    }
}

fn temporary() -> tempfile::TempDir {
    tempfile::tempdir().expect("a temporary folder")
}

/// A log of two log ids, with a gap, reactions of one and of many blocks, of three subjects.
fn a_log(world: &dyn World) -> Box<dyn EventLog> {
    let (mut log, _) = world.open();
    for number in 0..20 {
        let long = if number % 5 == 0 { 40 } else { 2 };
        let texts = (0..long).map(|text| samples::text(text * 100)).collect();
        let subject = app(["bot", "bee", "cat"][number % 3]);
        log.append(&[reaction(&subject, texts)]).expect("appended");
    }
    drop(log);
    let begin = Some(Beginning { reason: RestartReason::TakeOver, former: None });
    let (mut log, _) = world.try_open(&OpenOptions { begin, ..options() }).expect("the log opens");
    for number in 0..3 {
        log.append(&[reaction(&app("bot"), vec![samples::text(number)])]).expect("appended");
    }
    log
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).expect("it is there").permissions().mode() & 0o777
}

#[test]
fn a_backup_reads_as_the_log_it_was_made_of() {
    let (world, place) = (InMemory::new(), temporary());
    let log = a_log(&world);
    let reader = log.reader();
    let path = place.path().join("log.wharf");
    fs::write(&path, "an older one").expect("written");
    let end = keep(&*reader, &path, &ALL).expect("kept");
    assert_eq!((end.last, end.tree, end.records), (reader.head(), reader.tree(), reader.stored().records));
    assert_eq!(mode(&path), 0o600);
    assert_eq!(fs::read_dir(place.path()).expect("a folder").count(), 1, "nothing temporary is left");

    let kept = file::open(&path).expect("it opens");
    assert!(!kept.is_part());
    assert_eq!(kept.acknowledged(), reader.acknowledged());
    assert_eq!(items(&*kept, Seq::NONE), items(&*reader, Seq::NONE));
    assert_eq!(kept.subjects(), reader.subjects());
    assert_eq!(kept.record(Seq(17)).expect("read"), reader.record(Seq(17)).expect("read"));
    let report = sound(&*kept);
    assert_eq!((report.marked, report.logs.len()), (Some(reader.head()), 2));
    let mut of_bee = Vec::new();
    kept.subject(&app("bee"), Seq(1), &mut |item| {
        of_bee.push(item.expect("sound").header.seq);
        std::ops::ControlFlow::Continue(())
    })
    .expect("read");
    assert!(of_bee.len() > 10 && of_bee.is_sorted());

    let again = place.path().join("again.wharf");
    assert_eq!(keep(&*kept, &again, &ALL).expect("kept"), end);
}

#[test]
fn any_cut_and_any_flip_is_refused_and_its_place_named() {
    let (world, place) = (InMemory::new(), temporary());
    let (mut log, _) = world.open();
    log.append(&[reaction(&app("bot"), vec![samples::text(1)])]).expect("appended");
    let path = place.path().join("log.wharf");
    keep(&*log.reader(), &path, &ALL).expect("kept");
    let sound = fs::read(&path).expect("written");
    let open = |bytes: &[u8]| {
        fs::write(&path, bytes).expect("written");
        file::open(&path).map(|_| ())
    };
    open(&sound).expect("sound");
    for length in 0..sound.len() {
        let error = open(&sound[..length]).expect_err("it is cut");
        let named = matches!(&error, BackupError::Damaged { at, .. } if *at <= length as u64);
        assert!(named || length == 0, "{length}: {error}");
    }
    for at in 0..sound.len() {
        let mut flipped = sound.clone();
        flipped[at] ^= 0x04;
        let error = open(&flipped).expect_err("it is changed");
        match error {
            BackupError::Damaged { at: named, .. } => assert!(named <= at as u64, "{at}: {named}"),
            BackupError::NotOne => assert!(at < 4, "{at}"),
            other => panic!("{at}: {other}"),
        }
    }
    let mut longer = sound.clone();
    longer.push(0);
    assert!(open(&longer).expect_err("it is longer").to_string().contains("after the end"));
    fs::write(&path, b"{}").expect("written");
    assert!(matches!(file::open(&path), Err(BackupError::NotOne)));
}

#[test]
fn a_restored_folder_is_the_same_log_and_goes_on_as_another() {
    let (world, place) = (InMemory::new(), temporary());
    let log = a_log(&world);
    let reader = log.reader();
    let path = place.path().join("log.wharf");
    let end = keep(&*reader, &path, &ALL).expect("kept");
    let dir = place.path().join("data");
    assert_eq!(restore(&path, &dir).expect("restored").1, end);
    assert_eq!([mode(&dir), mode(&dir.join("log"))], [0o700; 2]);
    assert!(matches!(restore(&path, &dir), Err(RestoreError::NotEmpty(_))), "it is not empty any more");

    let open = || SledLog::open_for_reading(&dir.join("log")).expect("it opens");
    let restored = open();
    assert_eq!(items(&*restored, Seq::NONE), items(&*reader, Seq::NONE));
    assert_eq!(sound(&*restored).marked, None);
    drop(restored);
    let (mut log, opened) =
        SledLog::open(&dir.join("log"), &Clock::simulated(START_US), Entropy::os(), &options()).expect("it opens for writing");
    assert!(matches!(opened.found, Found::LostTail(_)), "{opened:?}");
    assert!(opened.log != end.log && opened.head > end.last);
    log.append(&[reaction(&app("bot"), vec![samples::text(1)])]).expect("appended");
    assert_eq!(sound(&*log.reader()).logs.len(), 3);
}

#[test]
fn what_is_refused_leaves_an_empty_folder() {
    let (world, place) = (InMemory::new(), temporary());
    let log = a_log(&world);
    let path = place.path().join("log.wharf");
    keep(&*log.reader(), &path, &ALL).expect("kept");
    let mut bytes = fs::read(&path).expect("written");
    let last = bytes.len() - 40;
    bytes[last] ^= 1;
    fs::write(&path, bytes).expect("written");
    let dir = place.path().join("data");
    assert!(matches!(restore(&path, &dir), Err(RestoreError::Backup(BackupError::Damaged { .. }))));
    assert_eq!(fs::read_dir(&dir).expect("a folder").count(), 0);
    keep(&*log.reader(), &path, &Select { from: Seq(30), ..ALL }).expect("kept");
    assert!(matches!(restore(&path, &dir), Err(RestoreError::Backup(BackupError::Part))));
    fs::create_dir(dir.join("lost+found")).expect("made");
    keep(&*log.reader(), &path, &ALL).expect("kept");
    restore(&path, &dir).expect("a new disk is an empty folder");
}

#[test]
fn a_part_is_what_was_asked_for_and_says_that_it_is_one() {
    let (world, place) = (InMemory::new(), temporary());
    let log = a_log(&world);
    let reader = log.reader();
    let path = place.path().join("log.wharf");
    let part = |select: &Select| {
        let end = keep(&*reader, &path, select).expect("kept");
        (end, file::open(&path).expect("it opens"))
    };
    let seqs = |reader: &Arc<dyn LogReader>| -> Vec<Seq> { stored(&**reader).iter().map(|record| record.header.seq).collect() };

    // The reaction of record 3 ends later: it comes whole, and what begins the log is a log.
    let (end, kept) = part(&Select { to: Seq(3), ..ALL });
    assert!(end.whole.is_some() && end.last > Seq(3));
    assert_eq!(stored(&*kept).last().map(|record| record.following), Some(0));
    sound(&*kept);

    let (end, kept) = part(&Select { from: Seq(60), to: Seq(70), ..ALL });
    assert!(end.whole.is_none() && kept.is_part());
    let found = seqs(&kept);
    assert!(found.contains(&Seq(60)) && found.contains(&Seq(70)) && !found.contains(&Seq(1)), "{found:?}");

    let (_, kept) = part(&Select { subject: Some(app("cat")), ..ALL });
    assert!(kept.is_part());
    let subjects = |name: &str| seqs(&kept).len() > 2 && kept.subjects().contains(&Subject::parse(name).expect("a subject"));
    assert!(subjects("app/acme/cat") && subjects("daemon/world"));

    let nothing = keep(&*reader, &path, &Select { from: Seq(u64::MAX), ..ALL });
    assert!(matches!(nothing, Err(BackupError::Nothing)));
}

#[test]
fn a_long_log_comes_in_bounded_pages() {
    let (world, place) = (InMemory::new(), temporary());
    let (mut log, _) = world.open();
    for _ in 0..40 {
        let texts = (0..60).map(|_| samples::text(1_500)).collect();
        log.append(&[reaction(&app("bot"), texts)]).expect("appended");
    }
    let reader = log.reader();
    let (mut select, mut pages) = (ALL, 0);
    while let Some(next) = page(&*reader, &select).expect("read").next {
        select.from = next;
        pages += 1;
    }
    assert!(pages > 2, "{pages}");
    let path = place.path().join("log.wharf");
    assert_eq!(keep(&*reader, &path, &ALL).expect("kept").tree, reader.tree());
    sound(&*file::open(&path).expect("it opens"));
}

#[test]
fn a_damaged_log_is_not_kept_as_a_whole_one() {
    let (world, place) = (InMemory::new(), temporary());
    let log = a_log(&world);
    let mut second = Seq::NONE;
    world.0.edit(|blocks| {
        let (key, block) = blocks.iter_mut().nth(1).expect("a second block");
        *block.last_mut().expect("bytes") ^= 1;
        second = *key;
    });
    let path: PathBuf = place.path().join("log.wharf");
    let refused = keep(&*log.reader(), &path, &ALL);
    assert!(matches!(&refused, Err(BackupError::Source { seq, .. }) if *seq == second), "{refused:?}");
    assert_eq!(fs::read_dir(place.path()).expect("a folder").count(), 0, "nothing is left of it");
    keep(&*log.reader(), &path, &Select { to: Seq(1), ..ALL }).expect("what is before it is sound");
}

#[test]
fn what_a_backup_says_of_itself_is_what_the_log_says() {
    let world = InMemory::new();
    let (mut log, _) = world.open();
    let daemon = Subject::daemon("world").expect("a name");
    let events: Vec<Event> = [samples::events(Kind::IncarnationStarted), samples::events(Kind::SettingsTold)].concat();
    log.append(&[reaction(&daemon, events)]).expect("appended");
    let about = About::of(&*log.reader(), 7).expect("read");
    assert!(about.build.is_some() && !about.settings.is_empty(), "{about:?}");
    assert_eq!(about.tree().map(|(log, tree)| (log, tree.size)), Some((log.reader().id(), log.reader().tree().size)));
    let first = log.reader();
    let mut count = 0;
    first
        .blocks(Seq::NONE, &mut |_, bytes| {
            count += Block::read(bytes).expect("sound").count();
            std::ops::ControlFlow::Continue(())
        })
        .expect("read");
    assert_eq!(count, about.size);
}
