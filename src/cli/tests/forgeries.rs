//! What `wharf verify --checkpoint` says of each forgery that spec and docs/proof.md name. The forger here is the strongest there is:
//! whoever can write to the folder builds the log anew, with every checksum, number and root right, and removes the marks.

use crate::cli::seen::Seen;
use crate::cli::verify::judge;
use crate::clock::{Clock, Entropy};
use crate::events::erase::Erasure;
use crate::events::kinds::operator::OperatorSaid;
use crate::events::log::{EventLog, OpenOptions};
use crate::events::mem_log::{MemDisk, MemLog};
use crate::events::record::{Draft, Event, Reaction};
use crate::ids::{LogId, Seq, Subject, Word};
use crate::proof::checkpoint::Checkpoint;
use crate::proof::key::{SigningKey, VerifierKey};

const NAME: &str = "wharfinger/prod/prod";

/// A log of what operators said of their daemons; on paused time the same seed gives the same bytes.
struct Folder {
    disk: MemDisk,
    log: LogId,
    checkpoint: Checkpoint,
}

fn daemon(name: &str) -> Subject {
    Subject::daemon(name).expect("a name")
}

fn say(log: &mut MemLog, (about, why): (&str, &str)) {
    let said = Event::OperatorSaid(OperatorSaid { who: Word::new("on-call"), why: why.to_owned() });
    let reaction = Reaction { subject: daemon(about), time_us: 10, rules: 0, settings: Seq::NONE, drafts: vec![Draft::input(said)] };
    log.append(&[reaction]).expect("appended");
}

fn open(disk: &MemDisk, seed: u64) -> MemLog {
    MemLog::open(disk, &Clock::simulated(1), Entropy::seeded(seed), &OpenOptions::new(daemon("prod"))).expect("opens").0
}

fn folder(seed: u64, said: &[(&str, &str)]) -> Folder {
    let disk = MemDisk::new();
    let mut log = open(&disk, seed);
    said.iter().for_each(|said| say(&mut log, *said));
    let of = log.reader().acknowledged();
    Box::new(log).close().expect("closed");
    Folder { disk, log: of.log, checkpoint: Checkpoint::new(NAME, of.log, of.tree) }
}

fn key(seed: u8) -> SigningKey {
    SigningKey::new(NAME, [seed; 32]).expect("a name")
}

/// The exit code, and what is said of the log and of the signature.
fn verify(folder: &Folder, checkpoint: Option<&str>, key: Option<&VerifierKey>) -> (u8, String) {
    let reader = MemLog::open_for_reading(&folder.disk).expect("opens for reading");
    let seen = checkpoint.map(|note| Seen::parse(note.as_bytes(), key).expect("a checkpoint"));
    let (code, document) = judge(reader.as_ref(), seen.as_ref(), None).expect("the store answers");
    let said = &document["checkpoint"];
    let said = if said.is_object() { format!("{}; signature {}", said["log"], said["signature"]).replace('"', "") } else { String::new() };
    (code, said)
}

const SAID: [(&str, &str); 4] = [("prod", "first"), ("a", "second"), ("b", "third"), ("prod", "fourth")];

#[tokio::test(start_paused = true)]
async fn a_log_that_went_on_extends_what_was_seen() {
    let seen = folder(7, &SAID[..2]);
    let whole = folder(7, &SAID);
    assert_eq!(seen.log, whole.log);
    let key = key(1);
    let (code, said) = verify(&whole, Some(&seen.checkpoint.signed(&key)), Some(key.verifier()));
    assert_eq!((code, said.as_str()), (0, "extends it by 2 records; signature holds"));
    assert_eq!(verify(&whole, Some(&whole.checkpoint.signed(&key)), Some(key.verifier())).0, 0);
    let (code, said) = verify(&whole, Some(&seen.checkpoint.signed(&key)), None);
    assert_eq!((code, said.as_str()), (0, "extends it by 2 records; signature not checked: no --key was given"));
}

#[tokio::test(start_paused = true)]
async fn what_was_rewritten_without_a_trace_is_found_by_a_checkpoint() {
    let true_one = folder(7, &SAID);
    let key = key(1);
    let held = true_one.checkpoint.signed(&key);
    for (what, said) in [
        ("changed", [("prod", "first"), ("a", "seconD"), ("b", "third"), ("prod", "fourth")].as_slice()),
        ("removed", &[("prod", "first"), ("b", "third"), ("prod", "fourth"), ("prod", "fifth")]),
        ("swapped", &[("prod", "first"), ("b", "third"), ("a", "second"), ("prod", "fourth")]),
        ("added", &[("prod", "first"), ("a", "second"), ("a", "more"), ("b", "third"), ("prod", "fourth")]),
        ("cut tail", &SAID[..3]),
    ] {
        let forged = folder(7, said);
        assert_eq!(forged.log, true_one.log);
        assert_eq!(verify(&forged, None, None).0, 0, "{what}: nothing in the folder shows it");
        let (code, said) = verify(&forged, Some(&held), Some(key.verifier()));
        let expected = if what == "cut tail" { "has 4 records: what came after them is gone" } else { "begins with other records" };
        assert!(code == 1 && said.starts_with(expected) && said.ends_with("signature holds"), "{what}: {said}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_flipped_bit_is_found_with_and_without_a_checkpoint() {
    let true_one = folder(7, &SAID);
    let length = {
        let mut length = 0;
        true_one.disk.edit(|blocks| length = blocks.values().nth(2).map_or(0, Vec::len));
        length
    };
    for at in (0..length).step_by(7) {
        let forged = folder(7, &SAID);
        forged.disk.edit(|blocks| {
            if let Some(byte) = blocks.values_mut().nth(2).and_then(|block| block.get_mut(at)) {
                *byte ^= 0x10;
            }
        });
        let held = true_one.checkpoint.signed(&key(1));
        assert_eq!((verify(&forged, None, None).0, verify(&forged, Some(&held), None).0), (1, 1), "byte {at}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_tail_that_was_cut_off_is_found_though_the_marks_went_with_it() {
    let cut = folder(7, &SAID);
    cut.disk.edit(|blocks| drop(blocks.pop_last()));
    assert_eq!(verify(&cut, None, None).0, 1, "the mark shows it");
    cut.disk.tear_marks();
    assert_eq!(verify(&cut, None, None).0, 0, "without the mark nothing in the folder does");
    let (code, said) = verify(&cut, Some(&cut.checkpoint.signed(&key(1))), Some(key(1).verifier()));
    assert!(code == 1 && said.starts_with("has 4 records"), "{said}");
}

#[tokio::test(start_paused = true)]
async fn a_log_rewritten_and_signed_with_another_key_is_found_by_the_key() {
    let forged = folder(7, &[("prod", "something else")]);
    let (ours, theirs) = (key(1), key(2));
    let presented = forged.checkpoint.signed(&theirs);
    assert_eq!(verify(&forged, Some(&presented), Some(theirs.verifier())).0, 0, "for whoever believes that key");
    let (code, said) = verify(&forged, Some(&presented), Some(ours.verifier()));
    assert_eq!((code, said.as_str()), (1, "extends it by 0 records; signature does not hold: none of its signatures is of that key"));
    // The true key's id on the forger's signature.
    let true_line = forged.checkpoint.signed(&ours);
    let lied = true_line.replace(forged.checkpoint.text().lines().nth(2).expect("a root"), "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=");
    assert!(verify(&forged, Some(&lied), Some(ours.verifier())).1.ends_with("its signature does not hold"));
    let of_another = SigningKey::new("wharfinger/other/other", [1; 32]).expect("a name");
    let (code, said) = verify(&forged, Some(&forged.checkpoint.signed(&of_another)), Some(of_another.verifier()));
    assert!(code == 1 && said.contains("the key is wharfinger/other/other's"), "{said}");
}

#[tokio::test(start_paused = true)]
async fn a_log_rewritten_and_signed_with_the_same_key_is_found_only_by_a_checkpoint_held_elsewhere() {
    let true_one = folder(7, &SAID);
    let forged = folder(7, &[("prod", "first"), ("a", "nothing"), ("b", "third"), ("prod", "fourth")]);
    let key = key(1);
    let presented = forged.checkpoint.signed(&key);
    assert_eq!(verify(&forged, Some(&presented), Some(key.verifier())).0, 0, "the forger has the key: nothing here is wrong");
    let held = true_one.checkpoint.signed(&key);
    let (code, said) = verify(&forged, Some(&held), Some(key.verifier()));
    assert!(code == 1 && said.starts_with("begins with other records") && said.ends_with("signature holds"), "{said}");
    // What came after the last checkpoint that somebody holds is as good as the folder.
    let early = folder(7, &SAID[..1]);
    assert_eq!(verify(&forged, Some(&early.checkpoint.signed(&key)), Some(key.verifier())).0, 0);
}

#[tokio::test(start_paused = true)]
async fn another_log_in_the_place_of_the_one_that_was_seen_is_found() {
    let (seen, replaced) = (folder(7, &SAID), folder(8, &SAID));
    let (code, said) = verify(&replaced, Some(&seen.checkpoint.signed(&key(1))), None);
    assert!(code == 1 && said.starts_with("is not in this folder"), "{said}");
}

#[tokio::test(start_paused = true)]
async fn an_erased_record_breaks_no_checkpoint() {
    let seen = folder(7, &SAID);
    let mut log = open(&seen.disk, 9);
    let erasure = Erasure { seq: Seq(3), daemon: daemon("prod"), time_us: 20, who: Word::default(), why: "asked for".to_owned() };
    log.erase(&erasure).expect("erased");
    Box::new(log).close().expect("closed");
    let (code, said) = verify(&seen, Some(&seen.checkpoint.signed(&key(1))), Some(key(1).verifier()));
    assert_eq!((code, said.as_str()), (0, "extends it by 1 records; signature holds"));
}

#[tokio::test(start_paused = true)]
async fn the_folders_own_checkpoint_counts_as_a_second_mark() {
    let cut = folder(7, &SAID);
    cut.disk.edit(|blocks| drop(blocks.pop_last()));
    cut.disk.tear_marks();
    let kept = Seen::parse(cut.checkpoint.signed(&key(1)).as_bytes(), None).expect("a checkpoint");
    let judged = |disk: &MemDisk| {
        let reader = MemLog::open_for_reading(disk).expect("opens for reading");
        judge(reader.as_ref(), None, Some(&kept)).expect("the store answers").0
    };
    assert_eq!((judged(&cut.disk), judged(&folder(7, &SAID).disk)), (1, 0));
    // A log that begins after the loss names it.
    let mut log = open(&cut.disk, 9);
    say(&mut log, ("prod", "on we go"));
    drop(log);
    assert_eq!(judged(&cut.disk), 0);
}

#[tokio::test(start_paused = true)]
async fn what_is_no_checkpoint_of_ours_is_unreadable_input() {
    let foreign = Checkpoint { origin: "example.com/log".to_owned(), ..folder(7, &SAID).checkpoint };
    let refused = |bytes: &[u8]| Seen::parse(bytes, None).err().expect("no checkpoint of ours");
    assert!(refused(foreign.signed(&key(1)).as_bytes()).contains("no log of a wharf"));
    assert!(refused(b"nothing").contains("no signed note"));
    assert!(refused(crate::proof::note::sign("only\ntwo\n", &key(1)).as_bytes()).contains("no checkpoint"));
}
