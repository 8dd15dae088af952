//! Cuts the power at any point of a log's life, and opens what the disk then holds: nothing that was acknowledged may be lost,
//! no number used twice, no reaction torn. And shows that it would be, were it not for the sync that the log adds to sled's.
//!
//! The workload runs in a child: this test binary again, with [`FOLDER`] set. Everything it tells the kernel is recorded; each
//! image is opened by the real store.

mod images;
mod recorder;

use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::process::Command;

use images::{Call, Disk, PAGE, SECTOR, Unsynced, WRITE};
use wharfinger::clock::{Clock, Entropy};
use wharfinger::events::check::check;
use wharfinger::events::extends::{Extends, extends};
use wharfinger::events::kinds::daemon::IncarnationStopped;
use wharfinger::events::kinds::step::StepExplained;
use wharfinger::events::log::{Acknowledged, EventLog, OpenOptions, Opened};
use wharfinger::events::record::{Draft, Event, Reaction};
use wharfinger::events::sled_log::{SledLog, Tuning};
use wharfinger::events::tree::TreeHead;
use wharfinger::ids::{LogId, Seq, Subject, Word};

use crate::support::random::{Random, letters, number, seed};

const FOLDER: &str = "WHARF_POWER_CUT";
const NO_EXTRA_SYNC: &str = "WHARF_POWER_CUT_NO_EXTRA_SYNC";
const SMALL: &str = "WHARF_POWER_CUT_SMALL";
const SEED: &str = "WHARF_POWER_CUT_SEED";
const POINTS: &str = "WHARF_POWER_CUT_POINTS";

/// Points of a usual run, for each way of losing.
const FEW: u64 = 30;

/// A store whose files are reused many times within a short recording: segments that a few commits fill, and garbage collected
/// between any two.
const SMALL_FILES: Tuning = Tuning { segment: 64 << 10, collect_every_ms: 1 };

fn options() -> OpenOptions {
    OpenOptions::new(Subject::daemon("world").expect("a name"))
}

fn open(root: &Path, options: &OpenOptions, tuning: Tuning) -> Result<(Box<SledLog>, Opened), String> {
    let clock = Clock::simulated(1_700_000_000_000_000);
    let opened = SledLog::open_tuned(&root.join("data/log"), &clock, Entropy::os(), options, tuning);
    let (log, opened) = opened.map_err(|error| format!("it does not open: {error}"))?;
    Ok((Box::new(log), opened))
}

fn reaction(subject: &str, bytes: usize, records: usize) -> Reaction {
    let subject = Subject::parse(subject).expect("a subject");
    let long = Event::StepExplained(StepExplained { step: Seq(1), text: letters(&mut Random::new(bytes as u64), bytes) });
    let short = Event::IncarnationStopped(IncarnationStopped { reason: Word::new("power") });
    let event = if bytes == 0 { short } else { long };
    Reaction { subject, time_us: 0, rules: 1, settings: Seq(1), drafts: vec![Draft::input(event); records] }
}

/// As it is noted in the recording.
fn note(promise: Acknowledged) {
    let Acknowledged { log, head, tree } = promise;
    recorder::acknowledged(&[&log.0[..], &head.0.to_le_bytes(), &tree.size.to_le_bytes(), &tree.root].concat());
}

fn noted(bytes: &[u8]) -> Acknowledged {
    let number = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"));
    let root = bytes[32..].try_into().expect("thirty-two bytes");
    let log = LogId(bytes[..16].try_into().expect("sixteen bytes"));
    Acknowledged { log, head: Seq(number(16)), tree: TreeHead { size: number(24), root } }
}

/// The child's part; does nothing in a test run.
#[test]
#[expect(clippy::disallowed_methods, reason = "how a test tells itself, run again as a child, what to do")]
fn workload() {
    let Some(folder) = std::env::var_os(FOLDER) else { return };
    let folder = Path::new(&folder);
    let options = OpenOptions { extra_sync: std::env::var_os(NO_EXTRA_SYNC).is_none(), ..options() };
    let small = std::env::var_os(SMALL).is_some();
    let (tuning, rounds) = if small { (SMALL_FILES, 80) } else { (Tuning::USUAL, 8) };
    recorder::start(&folder.join("root"), &folder.join("recording"));
    for life in 0..4 {
        let (mut log, _) = open(&folder.join("root"), &options, tuning).expect("opens");
        let reader = log.reader();
        note(reader.acknowledged());
        for round in 0..rounds {
            // A full leaf of small segments stays below a quarter of one: past it sled makes a file that is never synced.
            let (records, bytes) = if small { (1 + round % 3, 60) } else { (1 + round % 8, 200) };
            let short = [reaction("app/acme/bot", 0, records), reaction("app/acme/bee", bytes, 2)];
            // Now and then a reaction of several blocks.
            let large = [reaction("app/acme/cat", 9_000, 2 + life * 2)];
            log.append(if round % 4 == 3 && !small { &large } else { &short }).expect("appended");
            note(reader.acknowledged());
            // The beginning ages out: of it the leaves are promised.
            if round % 5 == 4 {
                log.remove(Seq(reader.head().0 / 2)).expect("removed");
            }
            assert_eq!(reader.stored().blobs, 0);
        }
        if life % 2 == 0 {
            log.close().expect("closed");
        }
    }
}

/// A recording, and how its store's files are kept.
struct Recorded {
    calls: Vec<Call>,
    tuning: Tuning,
}

/// Runs the workload in a child and gives what it told the kernel.
fn recorded(folder: &Path, small: bool, extra_sync: bool) -> Recorded {
    fs::create_dir(folder.join("root")).expect("made");
    let mut child = Command::new(std::env::current_exe().expect("this test"));
    child.args(["power_cut::workload", "--exact"]).env(FOLDER, folder);
    let switches = [(SMALL, small), (NO_EXTRA_SYNC, !extra_sync)];
    child.envs(switches.into_iter().filter(|(_, on)| *on).map(|(name, _)| (name, "1")));
    let ended = child.output().expect("the child runs");
    assert!(ended.status.success(), "{}", String::from_utf8_lossy(&ended.stdout));
    let calls = images::read(&fs::read(folder.join("recording")).expect("a recording"));
    Recorded { calls, tuning: if small { SMALL_FILES } else { Tuning::USUAL } }
}

/// Opens an image and compares it with what was promised.
fn verify(root: &Path, tuning: Tuning, promised: Option<Acknowledged>) -> Result<(), String> {
    let (mut log, opened) = open(root, &options(), tuning)?;
    let reader = log.reader();
    if let Some(difference) = check(&*reader).map_err(|error| error.to_string())?.difference {
        return Err(format!("{opened:?}: {difference}"));
    }
    let Some(promised) = promised else { return Ok(()) };
    let extends = extends(&*reader, promised.log, &promised.tree).map_err(|error| error.to_string())?;
    if opened.log != promised.log || !matches!(extends, Extends::Yes { .. }) {
        return Err(format!("{opened:?}: {promised:?} is lost"));
    }
    let next = log.append(&[reaction("app/acme/bot", 0, 1)]).map_err(|error| error.to_string())?[0][0].header.seq;
    if next <= promised.head { Err(format!("{next} was used before")) } else { Ok(()) }
}

/// A folder in memory where there is one: what is durable is told by the recording, and real syncs only take time.
fn temporary() -> tempfile::TempDir {
    let memory = Path::new("/dev/shm");
    let made = if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() };
    made.expect("a temporary folder")
}

/// Cuts the power after each chosen call and gives what went wrong, and how many points there were.
fn cut(recorded: &Recorded, unsynced: Unsynced, strict_names: bool, mut chosen: impl FnMut(usize, &Call) -> bool) -> (Vec<String>, usize) {
    let mut disk = Disk::default();
    let mut promised = None;
    let (mut wrong, mut points) = (Vec::new(), 0);
    for (number, call) in recorded.calls.iter().enumerate() {
        disk.apply(call);
        promised = call.acknowledged().map(noted).or(promised);
        if chosen(number, call) {
            points += 1;
            let image = temporary();
            let lost = unsynced.at(number);
            disk.image(lost, strict_names, image.path());
            if let Err(why) = verify(image.path(), recorded.tuning, promised) {
                wrong.push(format!("after call {number}, {lost:?}, strict names {strict_names}: {why}"));
            }
        }
    }
    (wrong, points)
}

/// Every file below a folder with its content.
fn content(folder: &Path) -> Vec<(String, Vec<u8>)> {
    let mut files = Vec::new();
    let mut folders = vec![folder.to_path_buf()];
    while let Some(next) = folders.pop() {
        for entry in fs::read_dir(next).expect("readable") {
            let path = entry.expect("readable").path();
            if path.is_dir() {
                folders.push(path);
            } else {
                let name = path.strip_prefix(folder).expect("below").to_string_lossy().into_owned();
                files.push((name, fs::read(path).expect("readable")));
            }
        }
    }
    files.sort();
    files
}

/// Cuts the power at points of chance, in every way of losing, and gives how many points there were.
fn loses_nothing(name: &str, small: bool) -> usize {
    let folder = temporary();
    let recorded = recorded(folder.path(), small, true);
    let (seed, few) = (seed(SEED), number(POINTS).unwrap_or(FEW));
    let mut random = Random::new(seed);
    let (mut all, calls) = (0, recorded.calls.len());
    for (unsynced, strict_names) in [
        (Unsynced::Lost, false),
        (Unsynced::Lost, true),
        (Unsynced::Some { piece: WRITE, seed }, false),
        (Unsynced::Some { piece: PAGE, seed }, true),
        (Unsynced::Some { piece: PAGE, seed: !seed }, false),
        (Unsynced::Some { piece: SECTOR, seed }, true),
        (Unsynced::Kept, false),
    ] {
        let (wrong, points) = cut(&recorded, unsynced, strict_names, |_, _| random.below(calls as u64) < few);
        assert_eq!(wrong, Vec::<String>::new(), "{} of {points}; {SEED}={seed}", wrong.len());
        all += points;
    }
    let line = format!("{all} power cuts ({SEED}={seed}) in {calls} calls of {name}: nothing is lost\n");
    std::io::stderr().write_all(line.as_bytes()).expect("stderr can be written");
    all
}

#[test]
fn a_power_cut_loses_nothing_that_was_acknowledged() {
    let points = loses_nothing("the usual store", false);
    assert!(points > 50, "{points}");
}

#[test]
fn nor_while_the_store_uses_its_files_again() {
    let points = loses_nothing("a store of small segments", true);
    assert!(points > 50, "{points}");
}

#[test]
fn without_the_extra_sync_the_same_check_finds_the_loss() {
    for small in [false, true] {
        let folder = temporary();
        let recorded = recorded(folder.path(), small, false);
        let mut number = 0;
        let (wrong, points) = cut(&recorded, Unsynced::Lost, false, |_, call| {
            number += usize::from(call.acknowledged().is_some());
            call.acknowledged().is_some() && (!small || number % 4 == 0)
        });
        assert!(points > 20, "{points} of {} calls", recorded.calls.len());
        let lost = wrong.iter().filter(|why| why.contains("is lost")).count();
        assert!(lost * 2 > points, "{lost} of {points} lose something: {wrong:#?}");
    }
}

#[test]
fn the_recording_is_complete() {
    for small in [false, true] {
        let folder = temporary();
        let calls = recorded(folder.path(), small, true).calls;
        let mut disk = Disk::default();
        calls.iter().for_each(|call| disk.apply(call));
        let image = folder.path().join("image");
        fs::create_dir(&image).expect("made");
        disk.image(Unsynced::Kept, false, &image);
        let (recorded, real) = (content(&image), content(&folder.path().join("root")));
        let names = |files: &[(String, Vec<u8>)]| files.iter().map(|(name, _)| name.clone()).collect::<Vec<_>>();
        assert_eq!(names(&recorded), names(&real));
        assert!(recorded == real, "a file has another content than was recorded");
        assert!(names(&real).contains(&"data/log/store/db".to_owned()));
        if small {
            let mut end = 0;
            let again = calls.iter().filter_map(Call::wrote_data).filter(|(at, length)| {
                let before = *at < end;
                end = end.max(at + *length as u64);
                before && *length > SMALL_FILES.segment / 8
            });
            assert!(again.count() > 0, "no part of the file was used again");
        }
    }
}
