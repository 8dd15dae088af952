//! Order, fairness and bounds of the queue to the API server.

use std::collections::BTreeMap;

use expect_test::expect;

use crate::kube::throttle::{BACKOFF_MAX_US, Depths, Entry, Full, Lane, Limits, Next, Queue, backoff};

const LIMITS: Limits = Limits { per_s: 10, burst: 5, in_flight: 3, queue: 1_000 };
const SECOND: u64 = 1_000_000;

fn entry(id: u64, lane: Lane, tenant: &str) -> Entry<()> {
    Entry { id, lane, tenant: tenant.to_owned(), object: format!("pods/{id}"), not_before: 0, work: () }
}

/// Starts and ends one after the other until nothing starts; what started.
fn run(queue: &mut Queue<()>, now: u64) -> Vec<u64> {
    let mut started = Vec::new();
    while let Next::Start(entry) = queue.next(now) {
        started.push(entry.id);
        queue.done(entry.id);
    }
    started
}

#[test]
fn b43_urgent_lanes_go_first_and_the_bucket_binds() {
    let mut queue = Queue::new(LIMITS, 0);
    for (id, lane) in
        [(1, Lane::Create), (2, Lane::Resume), (3, Lane::Delete), (4, Lane::Drain), (5, Lane::Create), (6, Lane::Drain), (7, Lane::Create)]
    {
        queue.push(entry(id, lane, "a")).expect("room");
    }
    assert_eq!(run(&mut queue, 0), [4, 6, 3, 2, 1], "the burst, by lanes");
    assert_eq!(queue.next(0), Next::Wait(SECOND / 10));
    assert_eq!(queue.next(SECOND / 20), Next::Wait(SECOND / 10));
    assert_eq!(run(&mut queue, SECOND / 10), [5]);
    assert_eq!(run(&mut queue, SECOND), [7]);
    assert_eq!(queue.next(SECOND), Next::Idle);
    assert!(queue.is_empty());
}

#[test]
fn b43_a_drain_behind_500_creates_goes_next() {
    let mut queue = Queue::new(LIMITS, 0);
    for id in 0..500 {
        queue.push(entry(id, Lane::Create, "a")).expect("room");
    }
    assert_eq!(run(&mut queue, 0).len(), 5);
    queue.push(entry(1_000, Lane::Drain, "b")).expect("room");
    assert_eq!(run(&mut queue, SECOND / 10), [1_000]);
}

#[test]
fn one_organisation_does_not_hold_up_another() {
    let mut queue = Queue::new(Limits { burst: 1_000, ..LIMITS }, 0);
    for id in 0..100 {
        queue.push(entry(id, Lane::Create, "large")).expect("room");
    }
    for id in 100..103 {
        queue.push(entry(id, Lane::Create, "small")).expect("room");
    }
    queue.push(entry(200, Lane::Create, "tiny")).expect("room");
    assert_eq!(run(&mut queue, 0)[..8], [0, 100, 200, 1, 101, 2, 102, 3]);
}

#[test]
fn no_lane_starves() {
    let mut queue = Queue::new(Limits { burst: 10_000, queue: 10_000, ..LIMITS }, 0);
    let mut next = 0;
    let mut push = |queue: &mut Queue<()>, lane| {
        next += 1;
        queue.push(entry(next, lane, "a")).expect("room");
    };
    for lane in Lane::ALL {
        push(&mut queue, lane);
        push(&mut queue, lane);
    }
    let mut counts = BTreeMap::<Lane, u32>::new();
    for _ in 0..400 {
        let Next::Start(entry) = queue.next(0) else { panic!("there is always something") };
        *counts.entry(entry.lane).or_default() += 1;
        queue.done(entry.id);
        // Whatever is started comes again: the flood never ends.
        push(&mut queue, entry.lane);
    }
    assert!(counts.values().all(|count| *count >= 10), "{counts:?}");
    assert!(counts[&Lane::Drain] > 350, "{counts:?}");
}

#[test]
fn what_is_under_way_is_bounded_and_one_at_a_time_for_an_object() {
    let mut queue = Queue::new(LIMITS, 0);
    for id in 1..=3 {
        queue.push(Entry { object: "pods/same".to_owned(), ..entry(id, Lane::Create, "a") }).expect("room");
    }
    queue.push(entry(4, Lane::Create, "a")).expect("room");
    let start = |queue: &mut Queue<()>| match queue.next(0) {
        Next::Start(entry) => Some(entry.id),
        Next::Wait(_) | Next::Idle => None,
    };
    assert_eq!((start(&mut queue), start(&mut queue), start(&mut queue)), (Some(1), Some(4), None), "2 and 3 wait for 1");
    queue.push(entry(5, Lane::Create, "b")).expect("room");
    queue.push(entry(6, Lane::Create, "b")).expect("room");
    assert_eq!((start(&mut queue), start(&mut queue)), (Some(5), None), "three are under way");
    queue.done(1);
    assert_eq!(start(&mut queue), Some(2), "the object is free again, in order");
    queue.done(99);
    assert_eq!(queue.depths(), Depths { waiting: [0, 0, 0, 2], delayed: 0, in_flight: 3 });
}

#[test]
fn the_queue_is_bounded_and_a_retry_keeps_its_place() {
    let mut queue = Queue::new(Limits { queue: 2, ..LIMITS }, 0);
    queue.push(entry(1, Lane::Create, "a")).expect("room");
    queue.push(entry(2, Lane::Create, "a")).expect("room");
    assert_eq!(queue.push(entry(3, Lane::Drain, "a")), Err(Full(entry(3, Lane::Drain, "a"))));
    let Next::Start(first) = queue.next(0) else { panic!("something starts") };
    assert!(queue.push(entry(3, Lane::Drain, "a")).is_err(), "what is under way counts");
    queue.retry(Entry { not_before: 5 * SECOND, ..first });
    assert_eq!(queue.depths(), Depths { waiting: [0, 0, 0, 1], delayed: 1, in_flight: 0 });
    assert_eq!(run(&mut queue, SECOND), [2]);
    assert_eq!(queue.next(SECOND), Next::Wait(5 * SECOND));
    assert_eq!(run(&mut queue, 5 * SECOND), [1]);
}

#[test]
fn what_is_unsent_can_be_taken_back() {
    let mut queue = Queue::new(LIMITS, 0);
    queue.push(entry(1, Lane::Drain, "a")).expect("room");
    queue.push(entry(2, Lane::Drain, "a")).expect("room");
    queue.push(Entry { not_before: SECOND, ..entry(3, Lane::Drain, "a") }).expect("room");
    assert_eq!(queue.revoke(2).map(|entry| entry.id), Some(2));
    assert_eq!(queue.revoke(3).map(|entry| entry.id), Some(3));
    assert_eq!(queue.revoke(2), None);
    let Next::Start(first) = queue.next(0) else { panic!("something starts") };
    assert_eq!(queue.revoke(first.id), None, "it is being sent");
    queue.done(first.id);
    assert_eq!(queue.revoke(first.id), None, "it was sent");
    assert!(queue.is_empty());
    queue.push(entry(4, Lane::Create, "a")).expect("room");
    queue.push(Entry { not_before: SECOND, ..entry(5, Lane::Drain, "a") }).expect("room");
    assert_eq!(queue.drain().iter().map(|entry| entry.id).collect::<Vec<_>>(), [5, 4]);
    assert_eq!((queue.is_empty(), queue.next(SECOND)), (true, Next::Idle));
}

#[test]
fn b43_a_pause_holds_everything() {
    let mut queue = Queue::new(LIMITS, 0);
    queue.push(entry(1, Lane::Drain, "a")).expect("room");
    queue.pause(2 * SECOND);
    queue.pause(SECOND);
    assert_eq!(queue.next(0), Next::Wait(2 * SECOND));
    assert_eq!(run(&mut queue, 2 * SECOND), [1]);
}

#[test]
fn calls_besides_the_first_are_paid_for() {
    let mut queue = Queue::new(LIMITS, 0);
    queue.spend(6);
    queue.push(entry(1, Lane::Drain, "a")).expect("room");
    assert_eq!(queue.next(0), Next::Wait(2 * SECOND / 10));
    queue.spend(1_000_000);
    assert_eq!(queue.next(0), Next::Wait(6 * SECOND / 10), "a debt is bounded by the burst");
}

#[test]
fn a_clock_far_ahead_fills_the_bucket_and_no_more() {
    let mut queue = Queue::new(LIMITS, 0);
    for id in 0..20 {
        queue.push(entry(id, Lane::Create, "a")).expect("room");
    }
    assert_eq!(run(&mut queue, u64::MAX / 2).len(), 5);
    assert_eq!(run(&mut queue, 0), Vec::<u64>::new(), "time does not run back");
}

#[test]
fn backoff_grows_is_capped_and_differs_by_step() {
    let pauses: Vec<u64> = (1..=12).map(|attempt| backoff(attempt, 17) / 1_000).collect();
    expect!["[183, 424, 748, 1421, 2286, 6423, 8366, 26856, 55531, 51928, 30750, 36759] ms"].assert_eq(&format!("{pauses:?} ms"));
    for seq in 0..1_000 {
        for attempt in [0, 1, 2, 8, 9, 40, u32::MAX] {
            let whole = 250_000_u64.saturating_mul(1 << attempt.saturating_sub(1).min(20)).min(BACKOFF_MAX_US);
            assert!((whole / 2..whole).contains(&backoff(attempt, seq)), "{attempt} {seq}");
        }
    }
    let differ: std::collections::BTreeSet<u64> = (0..1_000).map(|seq| backoff(4, seq)).collect();
    assert!(differ.len() > 990);
}
