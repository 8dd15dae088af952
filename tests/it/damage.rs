//! A store whose files are damaged, each time in another way of chance: opening it ends no daemon and takes no memory; what it
//! serves is what was written; and whatever became of it, a daemon can begin.
//!
//! Each store is opened in a child first, as `wharf run` does it: `wharf probe-log`, under 256 MiB.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Write as _};
use std::ops::ControlFlow;
use std::path::Path;
use std::process::Stdio;

use wharfinger::clock::{Clock, Entropy};
use wharfinger::events::check::check;
use wharfinger::events::kinds::step::StepExplained;
use wharfinger::events::log::{EventLog, Found, LogReader, OpenError, OpenOptions};
use wharfinger::events::record::{Draft, Event, Reaction};
use wharfinger::events::sled_log::SledLog;
use wharfinger::ids::{Seq, Subject};
use wharfinger::run::rescue::{Probed, child, rescue};

use crate::support::random::{Random, letters, number, seed};

const SEED: &str = "WHARF_DAMAGE_SEED";
const COUNT: &str = "WHARF_DAMAGE";

/// Stores damaged in a usual run.
const FEW: u64 = 100;

/// What opening any of them may take, bytes.
const MEMORY: u64 = 256 << 20;

type Files = BTreeMap<String, Vec<u8>>;

fn options() -> OpenOptions {
    OpenOptions::new(Subject::daemon("world").expect("a name"))
}

fn append(log: &mut dyn EventLog, length: usize) -> Seq {
    let event = Event::StepExplained(StepExplained { step: Seq(1), text: letters(&mut Random::new(length as u64), length) });
    let subject = Subject::parse("app/acme/bot").expect("a subject");
    let drafts = vec![Draft::input(event); 3];
    let reaction = Reaction { subject, time_us: 0, rules: 1, settings: Seq(1), drafts };
    log.append(&[reaction]).expect("appended").concat()[2].header.seq
}

/// The files of a sound log, closed or not.
fn sound(closed: bool) -> Files {
    let folder = temporary();
    let dir = folder.path().join("log");
    for life in 0..3 {
        let (mut log, _) = SledLog::open(&dir, &Clock::simulated(1), Entropy::os(), &options()).expect("opens");
        for round in 0..40 {
            append(&mut log, if round % 10 == 0 { 5_000 } else { 60 });
        }
        if closed || life == 0 {
            Box::new(log).close().expect("closed");
        }
    }
    let mut files = Files::new();
    for inside in ["", "store"] {
        for entry in fs::read_dir(dir.join(inside)).expect("there") {
            let entry = entry.expect("readable");
            if entry.path().is_file() {
                let name = Path::new(inside).join(entry.file_name()).display().to_string();
                files.insert(name, fs::read(entry.path()).expect("readable"));
            }
        }
    }
    files
}

fn write(files: &Files, dir: &Path) {
    fs::create_dir_all(dir.join("store/blobs")).expect("made");
    for (name, bytes) in files {
        fs::write(dir.join(name), bytes).expect("written");
    }
}

fn temporary() -> tempfile::TempDir {
    let memory = Path::new("/dev/shm");
    let made = if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() };
    made.expect("a temporary folder")
}

/// Damages one file in one way, and says which.
fn damage(files: &mut Files, random: &mut Random) -> String {
    // The data file is most of what there is, and most of what breaks.
    let names: Vec<String> = files.keys().filter(|name| *name != "lock").cloned().collect();
    let name = if random.coin() { "store/db".to_owned() } else { names[random.below(names.len() as u64) as usize].clone() };
    let bytes = files.get_mut(&name).expect("there");
    bytes.resize(bytes.len().max(1), 0);
    let used = bytes.iter().rposition(|byte| *byte != 0).map_or(1, |last| last + 1) as u64;
    let mut at = || random.below(used) as usize;
    let way = match at() % 8 {
        0..3 => {
            let at = at();
            bytes[at] ^= 1 << (used % 8);
            format!("byte {at} flipped")
        }
        3 => {
            let places: Vec<usize> = (0..64).map(|_| at()).collect();
            places.into_iter().for_each(|at| bytes[at] = !bytes[at]);
            "64 bytes flipped".to_owned()
        }
        4 => {
            let at = at();
            bytes.iter_mut().skip(at).take(8).for_each(|byte| *byte = 0xff);
            format!("a giant number at {at}")
        }
        5 => {
            let at = at();
            bytes.truncate(at);
            format!("cut to {at}")
        }
        6 => {
            let (at, length) = (at(), 1 + at());
            bytes.iter_mut().skip(at).take(length).for_each(|byte| *byte = 0);
            format!("{length} bytes from {at} never written")
        }
        _ => {
            files.remove(&name);
            "missing".to_owned()
        }
    };
    format!("{name}: {way}")
}

/// As `run::rescue::probe_in_a_child` does, with the real program and a fixed limit.
fn probe(log: &Path) -> io::Result<Probed> {
    let ended = child(Path::new(env!("CARGO_BIN_EXE_wharf")), log, MEMORY).stdin(Stdio::null()).output()?;
    Ok(match ended.status.code() {
        Some(0 | 3) => Probed::Opens,
        _ => Probed::Lost(format!("{}: {}", ended.status, String::from_utf8_lossy(&ended.stderr))),
    })
}

/// Every record that a reader serves, by number; it may end early, when the store does.
fn served(reader: &dyn LogReader) -> BTreeMap<u64, String> {
    let mut found = BTreeMap::new();
    let _ = reader.scan(Seq::NONE, &mut |item| {
        if let Ok(record) = item {
            found.insert(record.header.seq.0, format!("{record:?}"));
        }
        ControlFlow::Continue(())
    });
    found
}

#[test]
fn b56_whatever_is_damaged_a_daemon_can_begin() {
    let (seed, count) = (seed(SEED), number(COUNT).unwrap_or(FEW));
    let mut random = Random::new(seed);
    let mut became: BTreeMap<&str, u64> = BTreeMap::new();
    let images = [sound(true), sound(false)];
    let whole = images.each_ref().map(|files| {
        let folder = temporary();
        write(files, folder.path());
        let all = served(&*SledLog::open_for_reading(folder.path()).expect("a sound one opens"));
        assert_eq!(all.len(), 1 + 3 * 120);
        all
    });
    for round in 0..count {
        let which = (round % 2) as usize;
        let mut files = images[which].clone();
        let what = format!("{} ({SEED}={seed}, round {round})", damage(&mut files, &mut random));
        let folder = temporary();
        let log = folder.path().join("log");
        write(&files, &log);
        // Whether it was closed or not, somebody doubts it.
        fs::write(log.join("opening"), []).expect("written");
        let begin = rescue(&log, probe).unwrap_or_else(|error| panic!("{what}: {error}"));
        let aside = fs::read_dir(folder.path()).expect("readable").count() == 2;
        assert_eq!(begin.is_some(), aside, "{what}");
        let options = OpenOptions { begin: begin.clone(), ..options() };
        let opened = SledLog::open(&log, &Clock::simulated(1), Entropy::os(), &options);
        let (mut log, opened) = opened.unwrap_or_else(|error| panic!("{what}: {error}"));
        let all = served(&*log.reader());
        let old = all.iter().filter(|(seq, _)| whole[which].contains_key(seq)).count();
        for (seq, leaf) in whole[which].iter().filter(|(seq, _)| all.contains_key(seq)) {
            assert!(all[seq] == *leaf || begin.is_some() || opened.found == Found::Fresh, "{what}: record {seq} is another");
        }
        let next = append(&mut log, 1);
        assert!(!whole[which].contains_key(&next.0) || opened.found == Found::Fresh, "{what}: {next} was used");
        assert_eq!(check(&*log.reader()).expect("the store answers").difference, None, "{what}");
        let kind = match (&begin, &opened.found) {
            (Some(_), _) => "set aside",
            (None, Found::LostTail(_)) => "a lost tail",
            (None, Found::Fresh) => "nothing left",
            (None, _) if old == whole[which].len() => "whole",
            (None, _) => panic!("{what}: {opened:?} with {old} records"),
        };
        *became.entry(kind).or_default() += 1;
    }
    let line = format!("{count} damaged stores ({SEED}={seed}): {became:?}\n");
    io::stderr().write_all(line.as_bytes()).expect("stderr can be written");
}

#[test]
fn a_store_that_cannot_be_opened_says_so_and_not_more() {
    let files = sound(true);
    for name in ["store/db", "store/conf"] {
        let folder = temporary();
        let mut files = files.clone();
        let bytes = files.get_mut(name).expect("there");
        bytes.iter_mut().for_each(|byte| *byte = 0xff);
        write(&files, folder.path());
        match SledLog::open(folder.path(), &Clock::simulated(1), Entropy::os(), &options()) {
            Ok((_, opened)) => assert!(matches!(opened.found, Found::LostTail(_) | Found::Clean), "{name}: {opened:?}"),
            Err(error) => assert!(matches!(error, OpenError::Damaged { .. }), "{name}: {error}"),
        }
    }
}
