//! Plays a trial: the safety phase, in which things go wrong, then the liveness phase, in which nothing does and everything that
//! is wanted must come to be.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use sha2::{Digest as _, Sha256};

use super::apply::{Undo, Weather};
use super::fates::Character;
use super::fault::{Kind, Scheduled};
use super::history::{Fate, Happening, History, Phase};
use super::lives::{Came, Lives};
use super::plan::{Deed, Ending, Plan, Story};
use super::report::Played;
use super::rest::unrest;
use super::rounds::{self, LEAST, Round};
use super::stage::Stage;
use crate::ids::hex;
use crate::sim::gateway::App;

/// Everything must be at rest within so long of the last fault: the longest chain of limits is an unseen pod's 60 s, a start's
/// 300 s in a stage, its tries a minute apart, and a watch that is deaf for 150 s.
const BOUND: Duration = Duration::from_secs(2_400);
/// Between two looks whether it is.
const LOOK: Duration = Duration::from_secs(10);
/// It must have been so for so long.
const STEADY: Duration = Duration::from_secs(60);

/// What is to be done at a time.
enum Todo {
    Begin(Box<Scheduled>),
    End(u32, Kind, Undo),
    Deed(Story),
}

struct Play<'a> {
    plan: &'a Plan,
    stage: Stage,
    lives: Lives,
    weather: Weather,
    /// By log time and order.
    agenda: BTreeMap<(i64, u64), Todo>,
    order: u64,
    /// Further rounds of the safety phase so far.
    rounds: u32,
    /// What the pods of each release that was ever wanted are like, by app and release.
    characters: BTreeMap<(String, u64), Character>,
    /// Apps that are withdrawn, as they were.
    withdrawn: BTreeMap<String, App>,
    /// The live hosts of apps that were withdrawn: a gateway does not forget them.
    remembered: BTreeMap<String, String>,
}

enum Woken {
    Broken,
    Came(Came),
    Due,
}

/// Plays the trial of this plan; its packages lie in `dir`.
pub(super) async fn play(seed: u64, plan: &Plan, history: History, dir: &Path) -> Played {
    let stage = Stage::new(seed, plan, history);
    let begun_us = stage.clock.now_us();
    let lives = Lives::new(seed, plan, dir, begun_us);
    let mut play = Play {
        plan,
        stage,
        lives,
        weather: Weather::new(),
        agenda: BTreeMap::new(),
        order: 0,
        rounds: 0,
        characters: BTreeMap::new(),
        withdrawn: BTreeMap::new(),
        remembered: BTreeMap::new(),
    };
    play.stage.note(Happening::Phase(Phase::Safety));
    for fault in &plan.faults {
        play.put(begun_us + micros(fault.at), Todo::Begin(Box::new(fault.clone())));
    }
    for story in &plan.stories {
        play.put(begun_us + micros(story.at), Todo::Deed(story.clone()));
    }
    let mut safe = play.until(begun_us + micros(plan.safety)).await;
    while safe && play.rounds < rounds::MOST && !play.is_enough() {
        safe = play.further().await;
    }
    if safe {
        play.live().await;
    }
    play.played(begun_us)
}

impl Play<'_> {
    fn put(&mut self, at_us: i64, todo: Todo) {
        self.order += 1;
        self.agenda.insert((at_us, self.order), todo);
    }

    /// Whether so much has happened that the safety phase can end; a trial that was written down has no more than it says.
    fn is_enough(&self) -> bool {
        let tally = self.stage.history.tally();
        let rich = tally.records >= LEAST.records && tally.writes >= LEAST.writes;
        let rough = self.weather.met(&self.stage).len() >= LEAST.kinds && self.lives.crashes >= LEAST.crashes;
        self.plan.options.is_none() || (rich && (rough || !self.plan.is_free()))
    }

    /// A further round of the safety phase; false when something broke.
    async fn further(&mut self) -> bool {
        self.rounds += 1;
        let round = Round::draw(self.plan, self.rounds);
        let now_us = self.stage.clock.now_us();
        for fault in round.faults {
            self.put(now_us + micros(fault.at), Todo::Begin(Box::new(fault)));
        }
        for story in round.stories {
            self.put(now_us + micros(story.at), Todo::Deed(story));
        }
        self.until(now_us + micros(round.lasts)).await
    }

    /// Plays until that time; false when something broke.
    async fn until(&mut self, end_us: i64) -> bool {
        loop {
            let due_us = self.agenda.first_key_value().map_or(end_us, |((at_us, _), _)| (*at_us).min(end_us));
            let (history, stage) = (&self.stage.history, &self.stage);
            let woken = tokio::select! {
                biased;
                () = history.until_broken() => Woken::Broken,
                came = self.lives.next(stage) => Woken::Came(came),
                () = stage.clock.sleep_until(due_us) => Woken::Due,
            };
            match woken {
                Woken::Broken => return false,
                Woken::Came(came) => self.lives.take(&self.stage, came).await,
                Woken::Due => {
                    let now_us = self.stage.clock.now_us();
                    let due = self.agenda.first_entry().filter(|entry| entry.key().0 <= now_us).map(|entry| entry.remove());
                    match due {
                        Some(todo) => self.act(todo).await,
                        None if now_us >= end_us => return true,
                        None => {}
                    }
                }
            }
        }
    }

    async fn act(&mut self, todo: Todo) {
        match todo {
            Todo::Begin(scheduled) => {
                let undo = self.weather.begin(&self.stage, self.plan, &mut self.lives, &scheduled).await;
                if let Some((after, undo)) = undo {
                    let at_us = self.stage.clock.now_us() + micros(after);
                    self.put(at_us, Todo::End(scheduled.number, scheduled.kind, undo));
                }
            }
            Todo::End(number, kind, undo) => {
                self.stage.note(Happening::Fault { number, kind: kind.name(), what: String::new(), begins: false });
                self.weather.end(&self.stage, &mut self.lives, undo);
            }
            Todo::Deed(story) => self.act_out(&story),
        }
    }

    fn act_out(&mut self, story: &Story) {
        let Some(name) = self.plan.apps.get(story.app) else { return };
        let gateway = self.stage.gateway.clone();
        if matches!(story.deed, Deed::Deploy(_)) {
            self.undo_withdrawal(name);
        }
        let known = gateway.app(name);
        match (&story.deed, known) {
            (Deed::Deploy(character), _) => self.deploy(name, self.fresh(name), *character),
            // What is not there cannot be changed.
            (_, None) => {}
            (Deed::ChangeSecret, Some(_)) => drop(gateway.change_secret(name, None)),
            (Deed::RollBack, Some(app)) if app.source(app.release - 1).is_some() => {
                drop(gateway.deploy_release(name, app.release - 1, None))
            }
            (Deed::RollBack, Some(_)) => {}
            (Deed::Retry, Some(_)) => gateway.take_back_failure(name),
            (Deed::WantLogs, Some(_)) => gateway.want_logs(name),
            (Deed::Withdraw, Some(app)) => {
                self.remembered.extend(app.live_host.clone().map(|live| (name.clone(), live)));
                self.withdrawn.insert(name.clone(), app);
                gateway.withdraw(name);
            }
        }
        self.stage.onlooker.note_truth();
    }

    /// A release that nobody ever saw, also when the app was withdrawn meanwhile: a gateway gives a host's name once, and what was
    /// live under it before would be live at once.
    fn fresh(&self, name: &str) -> u64 {
        self.characters.keys().filter(|(app, _)| app == name).map(|(_, release)| *release).max().unwrap_or(0) + 1
    }

    /// A withdrawal of which the daemon never heard was none: what was live is live.
    fn undo_withdrawal(&mut self, name: &str) {
        if let Some(app) = self.withdrawn.remove(name)
            && !self.lives.heard().knows_withdrawn(name)
        {
            self.stage.gateway.lock().apps.entry(name.to_owned()).or_insert(app);
        }
    }

    fn deploy(&mut self, name: &str, release: u64, character: Character) {
        self.characters.insert((name.to_owned(), release), character);
        let plain = name.split_once('/').map_or(name, |(_, plain)| plain);
        self.stage.scripts.set(&format!("{plain}-r{release}-"), character.script());
        self.stage.gateway.deploy_release(name, release, None);
        if let (Some(live), Some(app)) = (self.remembered.remove(name), self.stage.gateway.lock().apps.get_mut(name)) {
            app.live_host.get_or_insert(live);
        }
        self.stage.onlooker.note_truth();
    }

    /// Whether no node takes the wanted pods: nobody's fault, so that it is tried for ever.
    fn waits_for_room(&self, name: &str) -> bool {
        let character = self.stage.gateway.app(name).and_then(|app| self.characters.get(&(name.to_owned(), app.release)));
        matches!(character, Some(Character::Refused | Character::Unschedulable))
    }

    /// The liveness phase.
    async fn live(&mut self) {
        let now_us = self.stage.clock.now_us();
        for (_, todo) in std::mem::take(&mut self.agenda) {
            if let Todo::End(_, _, undo) = todo {
                self.weather.end(&self.stage, &mut self.lives, undo);
            }
        }
        self.weather.clear(&self.stage);
        self.stage.note(Happening::Phase(Phase::Liveness));
        self.lives.hurry(now_us);
        let mut fates = BTreeMap::new();
        let plan = self.plan;
        for (name, ending) in plan.apps.iter().zip(&plan.endings) {
            let fresh = self.fresh(name);
            if *ending != Ending::Left {
                self.undo_withdrawal(name);
            }
            let fate = match ending {
                Ending::Left if !self.waits_for_room(name) => Fate::Left,
                Ending::Left | Ending::Healthy => {
                    self.deploy(name, fresh, Character::Healthy);
                    Fate::Healthy
                }
                Ending::Fails(character) => {
                    self.deploy(name, fresh, *character);
                    Fate::Fails
                }
            };
            fates.insert(name.clone(), fate);
        }
        let end_us = now_us + micros(BOUND);
        let (mut steady_us, mut writes) = (None, 0);
        loop {
            let look_us = self.stage.clock.now_us() + micros(LOOK);
            if !self.until(look_us).await {
                return;
            }
            let wrong = unrest(&self.stage.rest(fates.clone()));
            let made = self.stage.history.tally().writes;
            let is_steady = wrong.is_empty() && made == writes && self.lives.runs();
            writes = made;
            let since_us = *steady_us.get_or_insert(look_us);
            if !is_steady {
                steady_us = None;
            } else if look_us - since_us >= micros(STEADY) {
                break;
            }
            if look_us >= end_us {
                self.stage.note(Happening::AtRest(Box::new(self.stage.rest(fates))));
                // What the oracle says of it comes first.
                let wrong = if wrong.is_empty() { "the daemon goes on writing".to_owned() } else { wrong.join("; ") };
                self.stage.history.break_now(11, format!("not at rest after {} s: {wrong}", BOUND.as_secs()));
                return;
            }
        }
        self.stage.note(Happening::AtRest(Box::new(self.stage.rest(fates))));
    }

    fn played(&self, begun_us: i64) -> Played {
        for (invariant, why) in self.lives.judge_log() {
            self.stage.history.break_now(invariant, why);
        }
        let mut hash = Sha256::new();
        let mut bytes = 0_u64;
        self.lives.blocks(&mut |block| {
            bytes += block.len() as u64;
            hash.update(block);
        });
        let mut played = Played {
            digest: hex(&hash.finalize()),
            log_bytes: bytes,
            lives: self.lives.count,
            crashes: self.lives.crashes,
            kinds: self.weather.met(&self.stage).into_iter().collect(),
            rounds: self.rounds,
            simulated: Duration::from_micros(u64::try_from(self.stage.clock.now_us() - begun_us).unwrap_or(0)),
            broken: self.stage.history.broken(),
            ..Played::default()
        };
        played.count(&self.stage.history);
        played
    }
}

fn micros(time: Duration) -> i64 {
    i64::try_from(time.as_micros()).unwrap_or(i64::MAX / 4)
}
