//! What every log promises, asked of each of them.

use std::collections::BTreeSet;
use std::ops::ControlFlow;

use ct_merkle::mem_backed_tree::MemoryBackedTree;
use sha2::{Digest as _, Sha256};

use super::samples;
use super::world::*;
use crate::events::block::{BLOCK_MAX, Block};
use crate::events::codec::PAYLOAD_MAX;
use crate::events::kinds::daemon::{FormerLog, LogBefore, LogRestarted, RestartReason};
use crate::events::log::{AppendError, Beginning, Found, Gap, OpenError, Refused};
use crate::events::marks::CEILING_AHEAD;
use crate::events::record::{Draft, Event, Kind, Reaction, Record};
use crate::events::tree::{Tree, TreeHead};
use crate::ids::{LogId, Seq};

fn seqs(records: &[Record]) -> Vec<u64> {
    records.iter().map(|record| record.header.seq.0).collect()
}

fn order_and_places(world: &dyn World) {
    let (mut log, opened) = world.open();
    assert_eq!((opened.found, opened.head, opened.gap), (Found::Fresh, Seq(1), None));
    let (bot, bee) = (app("bot"), app("bee"));
    let mut first = reaction(&bot, vec![samples::text(1), samples::text(2), samples::text(3)]);
    first.drafts[2].cause = Seq::provisional(1);
    first.drafts[1].cause = Seq(1);
    let answer = log.append(&[first, reaction(&bee, vec![samples::text(4)]), reaction(&bot, vec![])]).expect("appended");
    assert_eq!(answer.iter().map(|records| seqs(records)).collect::<Vec<_>>(), [vec![2, 3, 4], vec![5], vec![]]);
    let header = &answer[0][2].header;
    assert_eq!((header.cause, header.reaction, header.subject_seq, header.rules, header.settings), (Seq(3), Seq(2), 3, 1, Seq(1)));
    assert_eq!(answer[0][1].header.cause, Seq(1));
    assert_eq!((answer[1][0].header.subject_seq, answer[1][0].header.reaction), (1, Seq(5)));

    let more = log.append(&[reaction(&bee, vec![samples::text(5)]), reaction(&bot, vec![samples::text(6)])]).expect("appended");
    assert_eq!((more[0][0].header.subject_seq, more[1][0].header.subject_seq), (2, 4));

    let reader = log.reader();
    let all = stored(&*reader);
    assert_eq!(records(&all)[1..], [answer.concat(), more.concat()].concat());
    assert_eq!(all.iter().map(|record| record.following).collect::<Vec<_>>(), [0, 2, 1, 0, 0, 0, 0]);
    assert_eq!(all.iter().map(|record| record.position).collect::<Vec<_>>(), (0..7).collect::<Vec<_>>());
    assert!(matches!(&records(&all)[0].event, Event::LogRestarted(began) if began.reason == RestartReason::NewFolder));
    assert_eq!((reader.head(), reader.id(), reader.stored().records, reader.stored().blocks), (Seq(7), opened.log, 7, 3));
    sound(&*reader);
}

fn the_time_of_a_decision_is_kept(world: &dyn World) {
    let (mut log, _) = world.open();
    let mut late = reaction(&app("bot"), vec![samples::text(1)]);
    late.time_us = START_US + 3_600_000_000;
    let early = reaction(&app("bee"), vec![samples::text(2)]);
    let again = reaction(&app("bot"), vec![samples::text(3)]);
    let mut before = reaction(&app("cat"), vec![samples::text(4)]);
    before.time_us = START_US - 1;
    let times = |log: &mut Box<dyn crate::events::log::EventLog>, reactions: &[Reaction]| {
        let answer = log.append(reactions).expect("appended").concat();
        answer.iter().map(|record| record.header.time_us - START_US).collect::<Vec<_>>()
    };
    // Another subject's later time moves nothing: planning again needs the time at which it was planned.
    assert_eq!(times(&mut log, &[late, early.clone(), again.clone(), before]), [3_600_000_000, 10, 3_600_000_000, -1]);
    assert_eq!(times(&mut log, &[again, early.clone()]), [3_600_000_000, 10]);
    log.close().expect("closed");
    // Whatever an earlier life decided was before.
    let (mut log, _) = world.open();
    assert_eq!(times(&mut log, &[early]), [3_600_000_000]);
    sound(&*log.reader());
}

fn subjects_are_found(world: &dyn World) {
    let (mut log, _) = world.open();
    for round in 0..40 {
        let names = ["bot", "bee", "cat"].map(|name| reaction(&app(name), vec![samples::text(3_000 + round)]));
        log.append(&names[round % 2..]).expect("appended");
    }
    let reader = log.reader();
    let all = records(&stored(&*reader));
    assert_eq!(reader.subjects(), [app("bee"), app("bot"), app("cat"), options().daemon]);
    for from in [0, 30, 60, 1_000] {
        for name in ["bot", "bee", "cat", "nobody"] {
            let mut found = Vec::new();
            let visit = &mut |item: crate::events::stored::Item| {
                found.push(item.expect("sound").header);
                ControlFlow::Continue(())
            };
            reader.subject(&app(name), Seq(from), visit).expect("the store answers");
            let wanted = all.iter().map(|record| &record.header).filter(|header| header.subject == app(name) && header.seq.0 >= from);
            assert_eq!(found.iter().collect::<Vec<_>>(), wanted.collect::<Vec<_>>(), "{name} {from}");
        }
        assert_eq!(items(&*reader, Seq(from)).len() as u64, (reader.head().0 + 1).saturating_sub(from.max(1)), "{from}");
    }
    let one = reader.record(Seq(31)).expect("the store answers").expect("there").expect("sound");
    assert_eq!(one.header, all[30].header);
    assert_eq!(reader.record(Seq(10_000)).expect("the store answers"), None);
}

fn closed_and_opened_again_it_is_the_same(world: &dyn World) {
    let mut all = Vec::new();
    let mut id = None;
    for life in 0..3_u64 {
        let (mut log, opened) = world.open();
        assert_eq!(opened.found, if life == 0 { Found::Fresh } else { Found::Clean });
        assert_eq!((opened.gap, opened.head), (None, Seq(1 + 2 * life)));
        assert_eq!(*id.get_or_insert(opened.log), opened.log);
        let answer = log.append(&[reaction(&app("bot"), vec![samples::text(1), samples::text(2)])]).expect("appended").concat();
        assert_eq!(answer[0].header.subject_seq, 1 + 2 * life);
        all.extend(answer);
        let tree = log.reader().tree();
        log.close().expect("closed");
        let reader = world.read().expect("opens for reading");
        assert_eq!(records(&stored(&*reader))[1..], all);
        assert_eq!((reader.tree(), reader.head(), reader.id()), (tree, Seq(3 + 2 * life), opened.log));
        assert!(reader.mark().expect("a mark").clean);
        assert!(sound(&*reader).gaps.is_empty());
    }
}

fn not_closed_it_leaves_a_named_gap_and_uses_no_number_twice(world: &dyn World) {
    let mut used = BTreeSet::from([1]);
    let mut gaps = Vec::new();
    let (mut log, opened) = world.open();
    let id = opened.log;
    for life in 0..4 {
        let answer = log.append(&[reaction(&app("bot"), vec![samples::text(1)])]).expect("appended").concat();
        assert!(used.insert(answer[0].header.seq.0), "{} was used", answer[0].header.seq);
        assert_eq!(answer[0].header.subject_seq, 1 + life, "a gap is none in the subject's own count");
        let last = answer[0].header.seq;
        drop(log);
        let (next, opened) = world.open();
        log = next;
        assert_eq!((opened.found, opened.log, opened.head), (Found::Unclean, id, last));
        let gap = opened.gap.expect("a gap");
        assert_eq!(gap.after, last);
        assert!(gap.before.0 > last.0 + CEILING_AHEAD / 2 && gap.before.0 <= last.0 + 2 * CEILING_AHEAD, "{gap:?}");
        gaps.push(gap);
    }
    // Opened twice without an append between: the gap is one.
    drop(log);
    let (mut log, opened) = world.open();
    let last = gaps.pop().expect("the last").after;
    let gap = opened.gap.expect("a gap");
    assert_eq!(gap.after, last);
    log.append(&[reaction(&app("bot"), vec![samples::text(1)])]).expect("appended");
    gaps.push(gap);
    assert_eq!(sound(&*log.reader()).gaps, gaps);
}

fn reading_changes_nothing(world: &dyn World) {
    assert!(matches!(world.read(), Err(OpenError::Missing)));
    let (mut log, _) = world.open();
    log.append(&[reaction(&app("bot"), vec![samples::text(1)])]).expect("appended");
    log.close().expect("closed");
    for _ in 0..2 {
        sound(&*world.read().expect("opens for reading"));
    }
    let (_, opened) = world.open();
    assert_eq!((opened.found, opened.gap, opened.head), (Found::Clean, None, Seq(2)));
}

fn what_cannot_be_stored_is_refused_and_the_log_goes_on(world: &dyn World) {
    let (mut log, _) = world.open();
    let before = log.reader().tree();
    let good = || reaction(&app("bot"), vec![samples::text(1)]);
    let mut ahead = reaction(&app("bot"), vec![samples::text(1), samples::text(1)]);
    ahead.drafts[0].cause = Seq::provisional(1);
    let mut own = good();
    own.drafts[0].cause = Seq::provisional(0);
    let huge = reaction(&app("bot"), vec![samples::text(PAYLOAD_MAX - 100); 65]);
    let mut odd = good();
    odd.subject = crate::ids::Subject::Daemon("no name".to_owned());
    let bad = [reaction(&app("bot"), vec![samples::text(1), samples::text(PAYLOAD_MAX)]), ahead, own, huge, odd];
    for (number, bad) in bad.into_iter().enumerate() {
        let refused = log.append(&[good(), bad]);
        let Err(AppendError::Refused { reaction: 1, why }) = refused else { panic!("{number}: {refused:?}") };
        match (number, &why) {
            (0, Refused::Payload(1, _)) | (1 | 2, Refused::Cause(0)) | (3, Refused::TooLarge { .. }) | (4, Refused::Subject) => {}
            other => panic!("{other:?}"),
        }
    }
    assert_eq!((log.reader().tree(), log.reader().head()), (before, Seq(1)));
    assert_eq!(seqs(&log.append(&[good()]).expect("appended").concat()), [2]);
    sound(&*log.reader());
}

fn a_reaction_spans_blocks_and_a_commit_batches(world: &dyn World) {
    let (mut log, _) = world.open();
    let long = |name: &str| reaction(&app(name), vec![samples::text(10_000); 90]);
    let answer = log.append(&[long("bot"), long("bee"), long("cat")]).expect("appended");
    assert_eq!(answer.concat().len(), 270);
    let reader = log.reader();
    assert_eq!(records(&stored(&*reader))[1..], answer.concat());
    let report = sound(&*reader);
    assert_eq!((report.records, report.blocks), (271, 136));
    let mut largest = 0;
    let measure = &mut |_, bytes: &[u8]| {
        largest = largest.max(bytes.len());
        ControlFlow::Continue(())
    };
    reader.blocks(Seq::NONE, measure).expect("the store answers");
    assert!(largest <= BLOCK_MAX, "{largest}");
}

fn the_root_is_the_one_of_another_program(world: &dyn World) {
    let (mut log, _) = world.open();
    for round in 0..30 {
        let events = samples::events(Kind::ALL[round % Kind::ALL.len()]);
        log.append(&[reaction(&app("bot"), events), reaction(&app("bee"), vec![samples::text(round)])]).expect("appended");
    }
    let reader = log.reader();
    let mut tree = MemoryBackedTree::<Sha256, Vec<u8>>::new();
    let leaves = &mut |_, bytes: &[u8]| {
        for (_, frame) in Block::read(bytes).expect("sound").records() {
            let frame = frame.expect("sound");
            let crate::events::frame::FrameBody::Whole { salt, payload } = frame.body else { panic!("nothing is withheld") };
            let body = Sha256::digest([salt.as_slice(), payload].concat());
            tree.push([frame.header, body.as_slice()].concat());
        }
        ControlFlow::Continue(())
    };
    reader.blocks(Seq::NONE, leaves).expect("the store answers");
    assert_eq!((reader.tree().size, reader.tree().root.as_slice()), (tree.len(), tree.root().as_bytes().as_slice()));
    let mut ours = Tree::default();
    let push = &mut |log, leaf| {
        assert_eq!(log, reader.id());
        ours.push(leaf);
        ControlFlow::Continue(())
    };
    reader.leaves(Seq::NONE, push).expect("the store answers");
    assert_eq!(ours.head(), reader.tree());
    let all = stored(&*reader);
    assert_eq!(all.len() as u64, tree.len());
}

fn a_log_can_be_begun(world: &dyn World) {
    let (mut log, first) = world.open();
    log.append(&[reaction(&app("bot"), vec![samples::text(1)])]).expect("appended");
    log.close().expect("closed");
    let former = FormerLog { id: LogId([9; 16]), last: Seq(40), acknowledged: Seq(41), size: 12, root: [3; 32] };
    let begin = Beginning { reason: RestartReason::TakeOver, former: Some(former.clone()) };
    let TreeHead { size, root } = world.read().expect("opens for reading").tree();
    let taking = crate::events::log::OpenOptions { begin: Some(begin), ..options() };
    let (mut log, opened) = world.try_open(&taking).expect("opens");
    assert_ne!(opened.log, first.log);
    assert_eq!((opened.found, opened.gap, opened.head), (Found::Clean, None, Seq(3)));
    let answer = log.append(&[reaction(&app("bot"), vec![samples::text(1)])]).expect("appended").concat();
    assert_eq!((answer[0].header.seq, answer[0].header.subject_seq), (Seq(4), 1), "a subject counts anew in a new log id");
    let reader = log.reader();
    let before = Some(LogBefore { id: first.log, last: Seq(2), size, root });
    let began = LogRestarted { log: opened.log, reason: RestartReason::TakeOver, former: Some(former), before };
    assert_eq!(records(&stored(&*reader))[2].event, Event::LogRestarted(began));
    assert_eq!(reader.tree().size, 2);
    assert_eq!(sound(&*reader).logs.len(), 2);
    drop((log, reader));
    let (log, opened) = world.open();
    let gap = opened.gap.expect("a gap");
    assert_eq!((opened.found, gap.after), (Found::Unclean, Seq(4)));
    assert_eq!(gap, Gap { after: Seq(4), before: gap.before });
    sound(&*log.reader());
}

fn the_ceiling_is_raised_in_time(world: &dyn World) {
    let (mut log, _) = world.open();
    let note = Draft::input(samples::events(Kind::StepWithheld).remove(0));
    let mut many = reaction(&app("bot"), vec![]);
    many.drafts = vec![note; 5_000];
    // In one commit more than half of what the ceiling is ahead.
    let commit = vec![many; 7];
    let mut last = 0;
    for _ in 0..2 {
        last = log.append(&commit).expect("appended").concat().last().expect("some").header.seq.0;
    }
    assert_eq!(last, 70_001);
    drop(log);
    let (_, opened) = world.open();
    let gap = opened.gap.expect("a gap");
    assert!(gap.after.0 == last && gap.before.0 > last + CEILING_AHEAD / 2, "{gap:?}");
}

macro_rules! contract {
    ($($test:ident)*) => {
        mod sled {
            $(#[test] fn $test() { super::$test(&super::OnDisk::new()); })*
        }
        mod mem {
            $(#[test] fn $test() { super::$test(&super::InMemory::new()); })*
        }
    };
}
contract! {
    order_and_places
    the_time_of_a_decision_is_kept
    subjects_are_found
    closed_and_opened_again_it_is_the_same
    not_closed_it_leaves_a_named_gap_and_uses_no_number_twice
    reading_changes_nothing
    what_cannot_be_stored_is_refused_and_the_log_goes_on
    a_reaction_spans_blocks_and_a_commit_batches
    the_root_is_the_one_of_another_program
    a_log_can_be_begun
    the_ceiling_is_raised_in_time
}
