//! Who may call the API server next: a token bucket, four lanes, fairness between organisations, bounds. Pure: time comes in.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ops::Bound;

/// Which queue a call waits in; earlier ones go first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Lane {
    /// Stops that a roll-out or a withdrawal waits for.
    Drain,
    /// Other removals.
    Delete,
    /// What brings back a host that served.
    Resume,
    /// Everything new.
    Create,
}

impl Lane {
    /// All lanes, the most urgent first.
    pub const ALL: [Self; 4] = [Self::Drain, Self::Delete, Self::Resume, Self::Create];
}

/// Starts from more urgent lanes after which a waiting lane gets one: urgent work must not stop the rest for ever.
const PASSED_OVER: u32 = 32;

const TOKEN: i64 = 1_000_000;

/// The bounds, all at least 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Calls a second, on average.
    pub per_s: u32,
    /// Calls at once before the average binds.
    pub burst: u32,
    /// Work under way at once.
    pub in_flight: u32,
    /// Work queued and under way.
    pub queue: u32,
}

/// Something that waits for its turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry<T> {
    /// Its name, unique: the step's seq.
    pub id: u64,
    /// Its lane.
    pub lane: Lane,
    /// Whose it is: the organisation.
    pub tenant: String,
    /// What it writes: one at a time for an object.
    pub object: String,
    /// Not before this time, microseconds.
    pub not_before: u64,
    /// What is to be done.
    pub work: T,
}

/// What to do now.
#[derive(Debug, PartialEq, Eq)]
pub enum Next<T> {
    /// Do this; say [`Queue::done`] or [`Queue::retry`] when it is over.
    Start(Entry<T>),
    /// Ask again at this time, microseconds, or after the next push or done.
    Wait(u64),
    /// Ask again after the next push or done.
    Idle,
}

/// How much waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Depths {
    /// By lane, in [`Lane::ALL`]'s order.
    pub waiting: [usize; 4],
    /// Waiting for their time.
    pub delayed: usize,
    /// Under way.
    pub in_flight: usize,
}

/// The queue was full: what was offered comes back.
#[derive(Debug, PartialEq, Eq)]
pub struct Full<T>(pub Entry<T>);

#[derive(Debug)]
struct LaneQueue<T> {
    tenants: BTreeMap<String, VecDeque<Entry<T>>>,
    count: usize,
    /// The tenant that was served last.
    last: String,
    /// Starts from more urgent lanes since this one had something to start.
    passed: u32,
}

/// The queue of everything that is to be sent to the API server.
#[derive(Debug)]
pub struct Queue<T> {
    limits: Limits,
    lanes: [LaneQueue<T>; 4],
    delayed: BTreeMap<(u64, u64), Entry<T>>,
    /// Objects under way, by the id of their work.
    busy: BTreeMap<u64, String>,
    objects: BTreeSet<String>,
    /// Millionths of a call; below zero when work made more calls than one.
    tokens: i64,
    filled_us: u64,
    paused_until: u64,
}

impl<T> Queue<T> {
    /// An empty queue with a full bucket.
    #[must_use]
    pub fn new(limits: Limits, now: u64) -> Self {
        let lane = || LaneQueue { tenants: BTreeMap::new(), count: 0, last: String::new(), passed: 0 };
        Self {
            limits,
            lanes: [lane(), lane(), lane(), lane()],
            delayed: BTreeMap::new(),
            busy: BTreeMap::new(),
            objects: BTreeSet::new(),
            tokens: i64::from(limits.burst) * TOKEN,
            filled_us: now,
            paused_until: 0,
        }
    }

    /// Adds work.
    ///
    /// # Errors
    /// When as much is queued and under way as may be.
    pub fn push(&mut self, entry: Entry<T>) -> Result<(), Full<T>> {
        if self.len() >= self.limits.queue as usize {
            return Err(Full(entry));
        }
        self.put(entry);
        Ok(())
    }

    fn put(&mut self, entry: Entry<T>) {
        if entry.not_before > self.filled_us {
            self.delayed.insert((entry.not_before, entry.id), entry);
        } else {
            self.enqueue(entry);
        }
    }

    fn enqueue(&mut self, entry: Entry<T>) {
        let lane = &mut self.lanes[entry.lane as usize];
        lane.count += 1;
        lane.tenants.entry(entry.tenant.clone()).or_default().push_back(entry);
    }

    /// Work queued and under way.
    #[must_use]
    pub fn len(&self) -> usize {
        let waiting: usize = self.lanes.iter().map(|lane| lane.count).sum();
        waiting + self.delayed.len() + self.busy.len()
    }

    /// Whether nothing is queued or under way.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// What may be started at `now`, microseconds; called again until it says no more.
    pub fn next(&mut self, now: u64) -> Next<T> {
        self.fill(now);
        while let Some(due) = self.delayed.first_entry().filter(|first| first.key().0 <= now) {
            let entry = due.remove();
            self.enqueue(entry);
        }
        if self.busy.len() >= self.limits.in_flight as usize {
            return Next::Idle;
        }
        let Some((lane, tenant, index)) = self.choose() else {
            return self.delayed.keys().next().map_or(Next::Idle, |(at, _)| Next::Wait(*at));
        };
        if now < self.paused_until {
            return Next::Wait(self.paused_until);
        }
        if self.tokens < TOKEN {
            let missing = u64::try_from(TOKEN - self.tokens).unwrap_or(0);
            return Next::Wait(now + missing.div_ceil(u64::from(self.limits.per_s.max(1))));
        }
        self.start(lane, &tenant, index).map_or(Next::Idle, Next::Start)
    }

    fn fill(&mut self, now: u64) {
        let elapsed = now.saturating_sub(self.filled_us);
        let gained = i64::try_from(elapsed.saturating_mul(u64::from(self.limits.per_s))).unwrap_or(i64::MAX);
        self.tokens = self.tokens.saturating_add(gained).min(i64::from(self.limits.burst) * TOKEN);
        self.filled_us = self.filled_us.max(now);
    }

    /// The lane, the tenant and the place in its queue that comes next.
    fn choose(&self) -> Option<(usize, String, usize)> {
        let startable = |lane: usize| {
            let (tenant, index) = self.lanes[lane].first(&self.objects)?;
            Some((lane, tenant, index))
        };
        let starved = (0..4).rev().find(|lane| self.lanes[*lane].passed >= PASSED_OVER).and_then(startable);
        starved.or_else(|| (0..4).find_map(startable))
    }

    fn start(&mut self, lane: usize, tenant: &str, index: usize) -> Option<Entry<T>> {
        let entry = self.lanes[lane].take(tenant, index)?;
        tenant.clone_into(&mut self.lanes[lane].last);
        self.lanes[lane].passed = 0;
        for other in &mut self.lanes[lane + 1..] {
            other.passed = if other.count > 0 { other.passed + 1 } else { 0 };
        }
        self.tokens -= TOKEN;
        self.objects.insert(entry.object.clone());
        self.busy.insert(entry.id, entry.object.clone());
        Some(entry)
    }

    /// The work is over.
    pub fn done(&mut self, id: u64) {
        if let Some(object) = self.busy.remove(&id) {
            self.objects.remove(&object);
        }
    }

    /// The work is over and is to be tried again at `entry.not_before`: it keeps its place within the bound.
    pub fn retry(&mut self, entry: Entry<T>) {
        self.done(entry.id);
        self.put(entry);
    }

    /// The work made this many calls besides its first.
    pub fn spend(&mut self, calls: u32) {
        self.tokens = self.tokens.saturating_sub(i64::from(calls) * TOKEN).max(-i64::from(self.limits.burst) * TOKEN);
    }

    /// Takes back what is still waiting; `None` when it is under way, over, or unknown.
    pub fn revoke(&mut self, id: u64) -> Option<Entry<T>> {
        if let Some(key) = self.delayed.keys().find(|(_, of)| *of == id).copied() {
            return self.delayed.remove(&key);
        }
        for lane in &mut self.lanes {
            let found =
                lane.tenants.iter().find_map(|(tenant, entries)| Some((tenant.clone(), entries.iter().position(|entry| entry.id == id)?)));
            if let Some((tenant, index)) = found {
                return lane.take(&tenant, index);
            }
        }
        None
    }

    /// Takes back everything that is still waiting: the daemon stops.
    pub fn drain(&mut self) -> Vec<Entry<T>> {
        let delayed = std::mem::take(&mut self.delayed).into_values();
        let lanes = self.lanes.iter_mut().flat_map(|lane| {
            lane.count = 0;
            std::mem::take(&mut lane.tenants).into_values().flatten()
        });
        delayed.chain(lanes).collect()
    }

    /// Starts nothing before `until`, microseconds: the server asked everybody to slow down.
    pub fn pause(&mut self, until: u64) {
        self.paused_until = self.paused_until.max(until);
    }

    /// How much waits.
    #[must_use]
    pub fn depths(&self) -> Depths {
        Depths { waiting: std::array::from_fn(|lane| self.lanes[lane].count), delayed: self.delayed.len(), in_flight: self.busy.len() }
    }
}

impl<T> LaneQueue<T> {
    fn take(&mut self, tenant: &str, index: usize) -> Option<Entry<T>> {
        let entries = self.tenants.get_mut(tenant)?;
        let entry = entries.remove(index)?;
        if entries.is_empty() {
            self.tenants.remove(tenant);
        }
        self.count -= 1;
        Some(entry)
    }

    /// The first entry whose object is free, of the tenant after the one that was served last.
    fn first(&self, busy: &BTreeSet<String>) -> Option<(String, usize)> {
        let after = self.tenants.range::<str, _>((Bound::Excluded(self.last.as_str()), Bound::Unbounded));
        let before = self.tenants.range::<str, _>((Bound::Unbounded, Bound::Included(self.last.as_str())));
        after.chain(before).find_map(|(tenant, entries)| {
            let index = entries.iter().position(|entry| !busy.contains(&entry.object))?;
            Some((tenant.clone(), index))
        })
    }
}

/// The longest pause between two tries, microseconds.
pub const BACKOFF_MAX_US: u64 = 60_000_000;

/// The pause before try `attempt` + 1, microseconds: 250 ms, doubled with each attempt (from 1), at most [`BACKOFF_MAX_US`], of
/// which a part between a half and all is taken. The part is the step's own, by its seq: no randomness, and no two alike.
#[must_use]
pub fn backoff(attempt: u32, seq: u64) -> u64 {
    let whole = 250_000_u64.saturating_mul(1 << attempt.saturating_sub(1).min(20)).min(BACKOFF_MAX_US);
    whole / 2 + mix(seq ^ u64::from(attempt).rotate_left(32)) % (whole / 2)
}

/// Spreads numbers that are close to each other (the finishing step of splitmix64).
fn mix(number: u64) -> u64 {
    let mut z = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}
