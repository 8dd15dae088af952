//! Kills a process that writes, at any moment, again and again on the same folder: what it had acknowledged to its parent is
//! there, where it was said to be, in the tree, and no number is ever used twice.
//!
//! The writer is this test binary again, as a child with [`FOLDER`] set; it acknowledges over its standard output, a pipe. The
//! page cache survives a SIGKILL, so that this is about the process's own memory and the order of its writes; what a power cut
//! takes is tests/it/power_cut's.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Write as _};
use std::ops::ControlFlow;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use wharfinger::clock::{Clock, Entropy};
use wharfinger::events::check::check;
use wharfinger::events::kinds::step::StepExplained;
use wharfinger::events::log::{EventLog, OpenOptions};
use wharfinger::events::record::{Draft, Event, Reaction};
use wharfinger::events::sled_log::SledLog;
use wharfinger::events::stored::Body;
use wharfinger::events::tree::Tree;
use wharfinger::ids::{Seq, Subject, hex};

use crate::support::random::{Random, letters, number, seed};

const FOLDER: &str = "WHARF_KILLS_FOLDER";
const SEED: &str = "WHARF_KILLS_SEED";
const COUNT: &str = "WHARF_KILLS";

/// Kills in a usual run.
const FEW: u64 = 40;
/// Kills on one folder, before the next is begun: reading it all again takes longer each time.
const LIVES: u64 = 20;
/// Before an acknowledgement, so that it is told from what the harness prints.
const ACKNOWLEDGED: &str = "acknowledged ";

fn options() -> OpenOptions {
    OpenOptions::new(Subject::daemon("world").expect("a name"))
}

fn reaction(name: &str, texts: Vec<String>) -> Reaction {
    let said = |text| Draft::input(Event::StepExplained(StepExplained { step: Seq(1), text }));
    let subject = Subject::parse(name).expect("a subject");
    Reaction { subject, time_us: 0, rules: 1, settings: Seq(1), drafts: texts.into_iter().map(said).collect() }
}

/// The child's part: writes until it is killed. Does nothing in a test run.
#[test]
#[expect(clippy::disallowed_methods, reason = "how a test tells itself, run again as a child, what to do")]
fn writer() {
    let Some(folder) = std::env::var_os(FOLDER) else { return };
    let mut random = Random::new(number(SEED).expect("the parent says it"));
    let mut said = 0;
    loop {
        let clock = Clock::simulated(1_700_000_000_000_000);
        let (mut log, opened) = SledLog::open(Path::new(&folder), &clock, Entropy::os(), &options()).expect("opens");
        acknowledge(&format!("{} opened", opened.log));
        for _ in 0..random.below(40) {
            let more = 1 + random.below(5);
            let mut text = || {
                said += 1;
                let length = if random.below(20) == 0 { 9_000 } else { 20 };
                format!("{:016x} {said} {}", random.next(), letters(&mut random, length))
            };
            let one = reaction("app/acme/bot", vec![text(), text()]);
            let other = reaction("app/acme/bee", (0..more).map(|_| text()).collect());
            let appended = log.append(&[one, other]).expect("appended").concat();
            let head = log.reader().acknowledged();
            let each = appended.iter().map(|record| {
                let Event::StepExplained(explained) = &record.event else { panic!("nothing else was appended") };
                format!("{}={}", record.header.seq, &explained.text[..16])
            });
            let each = each.collect::<Vec<_>>().join(",");
            acknowledge(&format!("{} {} {} {each}", head.log, head.tree.size, hex(&head.tree.root)));
        }
        if random.coin() {
            Box::new(log).close().expect("closed");
        }
    }
}

fn acknowledge(what: &str) {
    let line = format!("{ACKNOWLEDGED}{what}\n");
    std::io::stdout().write_all(line.as_bytes()).and_then(|()| std::io::stdout().flush()).expect("the parent reads");
}

/// What the parent was told, and what it read after each kill.
#[derive(Default)]
struct Promised {
    log: Option<String>,
    /// Of each acknowledged record the beginning of its text.
    texts: BTreeMap<u64, String>,
    /// The tree's size and root at each acknowledgement.
    roots: Vec<(u64, String)>,
    /// The leaf of every record that was ever read: it stays what and where it was.
    leaves: BTreeMap<u64, [u8; 32]>,
    opened: u64,
}

impl Promised {
    fn take(&mut self, line: &str) {
        let words: Vec<&str> = line.split(' ').collect();
        let log = self.log.get_or_insert_with(|| words[0].to_owned());
        assert_eq!(log, words[0], "nothing was lost, so that no other log may be begun");
        let [_, size, root, each] = words[..] else {
            self.opened += 1;
            return;
        };
        self.roots.push((size.parse().expect("a number"), root.to_owned()));
        for pair in each.split(',') {
            let (seq, text) = pair.split_once('=').expect("a number and a text");
            let seq = seq.parse().expect("a number");
            assert!(!self.leaves.contains_key(&seq), "{seq} was read before it was given away");
            assert_eq!(self.texts.insert(seq, text.to_owned()), None, "{seq} was acknowledged twice");
        }
    }

    /// Opens the folder as whoever comes next, and compares.
    fn verify(&mut self, folder: &Path) {
        if self.log.is_none() && !folder.join("store/db").exists() {
            return;
        }
        let clock = Clock::simulated(1_700_000_000_000_000);
        let (log, opened) = SledLog::open(folder, &clock, Entropy::os(), &options()).expect("opens");
        let log_id = self.log.get_or_insert_with(|| opened.log.to_string());
        assert_eq!(*log_id, opened.log.to_string(), "{opened:?}");
        let reader = log.reader();
        assert_eq!(check(&*reader).expect("the store answers").difference, None);
        let (mut tree, mut roots) = (Tree::default(), self.roots.iter().peekable());
        let mut leaves = Vec::new();
        let each = &mut |_, leaf| {
            leaves.push(leaf);
            ControlFlow::Continue(())
        };
        reader.leaves(Seq::NONE, each).expect("the store answers");
        let mut leaves = leaves.into_iter();
        let mut found = BTreeMap::new();
        let visit = &mut |item: wharfinger::events::stored::Item| {
            let record = item.expect("sound");
            let seq = record.header.seq.0;
            let leaf = leaves.next().expect("a leaf for each record");
            tree.push(leaf);
            while let Some((_, root)) = roots.next_if(|(size, _)| *size == tree.size()) {
                assert_eq!(*root, hex(&tree.head().root), "the tree that was acknowledged at {seq}");
            }
            if let Body::Known(Event::StepExplained(explained)) = &record.body
                && let Some(text) = self.texts.get(&seq)
            {
                assert_eq!(*text, explained.text[..16], "{seq} says what it said");
            }
            found.insert(seq, leaf);
            ControlFlow::Continue(())
        };
        reader.scan(Seq::NONE, visit).expect("the store answers");
        assert_eq!(roots.next(), None, "a tree that was acknowledged is not reached");
        let lost: Vec<_> = self.texts.keys().filter(|seq| !found.contains_key(seq)).collect();
        assert!(lost.is_empty(), "acknowledged and lost: {lost:?}");
        let changed: Vec<_> = self.leaves.iter().filter(|(seq, leaf)| found.get(seq) != Some(leaf)).collect();
        assert!(changed.is_empty(), "read before, and now another or none: {changed:?}");
        self.leaves = found;
    }
}

fn start(folder: &Path, seed: u64) -> Child {
    let mut child = Command::new(std::env::current_exe().expect("this test"));
    child.args(["kills::writer", "--exact", "--nocapture"]).env(FOLDER, folder).env(SEED, seed.to_string());
    child.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("the child runs")
}

/// When a child is killed: after that many acknowledgements, and a moment.
struct Moment {
    after: u64,
    moment: Duration,
}

impl Moment {
    /// A third of them while the log is opened, the others anywhere in a good number of commits and further openings.
    fn random(random: &mut Random) -> Self {
        let (after, most_us) = if random.below(3) == 0 { (0, 60_000) } else { (1 + random.below(80), 6_000) };
        Self { after, moment: Duration::from_micros(random.below(most_us)) }
    }
}

/// Lets a child write until that moment, kills it, and gives what came whole.
fn killed(folder: &Path, seed: u64, moment: &Moment) -> Vec<String> {
    let mut child = start(folder, seed);
    let mut pipe = BufReader::new(child.stdout.take().expect("a pipe"));
    let (send, lines) = mpsc::channel();
    // Read all the time, so that a full pipe never holds the writer up.
    let reading = std::thread::spawn(move || {
        let mut line = String::new();
        // What has no end was not acknowledged. The harness leaves a line of its own open before the first.
        while pipe.read_line(&mut line).is_ok_and(|_| line.ends_with('\n')) {
            if let Some((_, acknowledged)) = line.trim_end().split_once(ACKNOWLEDGED) {
                send.send(acknowledged.to_owned()).expect("the parent takes all");
            }
            line.clear();
        }
    });
    let mut taken: Vec<String> = (0..moment.after).map_while(|_| lines.recv().ok()).collect();
    std::thread::sleep(moment.moment);
    child.kill().expect("it can be killed");
    let status = child.wait().expect("it is gone");
    reading.join().expect("it does not panic");
    taken.extend(lines.try_iter());
    assert!(status.code().is_none(), "it ended by itself: {status}, after {:?}", taken.last());
    taken
}

/// A folder in memory where there is one: the page cache survives this process's death either way.
fn temporary() -> tempfile::TempDir {
    let memory = Path::new("/dev/shm");
    let made = if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() };
    made.expect("a temporary folder")
}

#[test]
fn nothing_that_was_acknowledged_is_lost_when_the_writer_is_killed() {
    let (seed, count) = (seed(SEED), number(COUNT).unwrap_or(FEW));
    let mut random = Random::new(seed);
    let (mut records, mut commits, mut openings, mut early) = (0, 0, 0, 0);
    let mut left = count;
    while left > 0 {
        let folder = temporary();
        let log = folder.path().join("log");
        let mut promised = Promised::default();
        for _ in 0..LIVES.min(left) {
            let moment = Moment::random(&mut random);
            let lines = killed(&log, random.next(), &moment);
            early += u64::from(lines.is_empty());
            lines.iter().for_each(|line| promised.take(line));
            promised.verify(&log);
        }
        left -= LIVES.min(left);
        records += promised.texts.len();
        commits += promised.roots.len();
        openings += promised.opened;
    }
    let line = format!(
        "{count} SIGKILLs ({SEED}={seed}), {early} before the log was open: {records} records in {commits} commits of {openings} openings \
         were acknowledged, none is lost\n"
    );
    std::io::stderr().write_all(line.as_bytes()).expect("stderr can be written");
    assert!(commits as u64 > count, "{line}");
}
