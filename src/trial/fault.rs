//! What can go wrong in a trial: kinds by name, and each with its details. Pure data.

use std::time::Duration;

use crate::events::mem_log::{MemFault, Unsynced};
use crate::sim::api::{Action, Cut, Match};
use crate::sim::gateway::{Endpoint, Fault as GatewayFault};

macro_rules! kinds {
    ($($(#[$doc:meta])* $name:ident = $text:literal;)*) => {
        /// A kind of fault; in every trial some are left out.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Kind {
            $($(#[$doc])* $name,)*
        }

        impl Kind {
            /// Every kind.
            pub const ALL: &'static [Self] = &[$(Self::$name,)*];

            /// Its stable name.
            #[must_use]
            pub fn name(self) -> &'static str {
                match self { $(Self::$name => $text,)* }
            }
        }
    };
}

kinds! {
    /// The API server answers 500 or 503 and does nothing.
    ApiError = "api_error";
    /// It takes its time.
    ApiSlow = "api_slow";
    /// The connection breaks before a request arrives.
    ApiLost = "api_lost";
    /// A request is carried out, and its answer is lost, late or cut off.
    ApiDoubt = "api_doubt";
    /// No answer comes: carried out or not.
    ApiHang = "api_hang";
    /// 429 with a Retry-After.
    ApiThrottle = "api_throttle";
    /// 410 on a list or a watch, or everything old is compacted away.
    ApiGone = "api_gone";
    /// The quota is used up, a webhook is down, or our rights are gone.
    ApiRefusal = "api_refusal";
    /// The API server restarts: all watches are reset.
    ApiRestart = "api_restart";
    /// A list's answer is old when it arrives.
    StaleList = "stale_list";
    /// A watch ends, breaks or goes deaf.
    WatchCut = "watch_cut";
    /// A watch repeats itself, or says what nobody understands.
    WatchOdd = "watch_odd";
    /// A process ends by itself, or the kernel ends it for its memory.
    AppExit = "app_exit";
    /// A node evicts a pod, or shuts down.
    Eviction = "eviction";
    /// A node is cut off or gone, and comes back.
    NodeLoss = "node_loss";
    /// Somebody else deletes a pod, a Secret or a NetworkPolicy.
    OtherDeletes = "other_deletes";
    /// The gateway answers an error, nothing, or too late.
    GatewayError = "gateway_error";
    /// It answers what is no answer, of another world, or without some apps.
    GatewayOdd = "gateway_odd";
    /// It answers what it answered a while ago.
    GatewayStale = "gateway_stale";
    /// A connected process seems gone for a while.
    Flapping = "flapping";
    /// Packages or environments cannot be had.
    Sources = "sources";
    /// The wall clock is stepped.
    Clock = "clock";
    /// The log's disk fails or is full, once.
    Disk = "disk";
    /// The daemon is stopped in order and started again.
    Stop = "stop";
    /// The daemon is killed, at a write, an append, a heartbeat or at any instant.
    Crash = "crash";
    /// Somebody else's pod or Secret has the name of the next host.
    Foreign = "foreign";
}

impl Kind {
    /// The kind of a name.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|kind| kind.name() == name)
    }
}

/// One thing that goes wrong.
#[derive(Debug, Clone)]
pub(super) struct Scheduled {
    /// Its number, by which it can be asked for alone.
    pub(super) number: u32,
    /// When, since the trial's begin.
    pub(super) at: Duration,
    /// How long, where that means something.
    pub(super) lasts: Duration,
    /// Its kind.
    pub(super) kind: Kind,
    /// What.
    pub(super) fault: Fault,
}

/// Which pod of an app is meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Which {
    /// The wanted host's.
    Wanted,
    /// The live host's.
    Live,
}

/// What goes wrong.
#[derive(Debug, Clone)]
pub(super) enum Fault {
    /// After `skip` matching requests, `times` meet this, as long as it lasts.
    Requests { matching: Match, skip: u32, times: u32, action: Action },
    /// The open watches of a kind end so.
    Cut(&'static str, Cut),
    /// They go deaf.
    Mute(&'static str),
    /// They are sent every object once more.
    Repeat(&'static str),
    /// They are sent this line.
    Line(&'static str, String),
    /// Old versions are forgotten.
    Compact,
    /// Versions jump.
    Skip(u64),
    /// The API server restarts.
    Restart,
    /// The processes of an app's pod end with this code.
    Exit { app: usize, which: Which, code: i32 },
    /// The kernel ends them.
    OutOfMemory { app: usize, which: Which },
    /// A node evicts an app's pod.
    Evict { app: usize, which: Which },
    /// A node shuts down in order, and is back when that has lasted.
    ShutDown { node: String, grace: Duration },
    /// A node is lost, and is back when that has lasted.
    Lose { node: String, dead: bool, evict: bool },
    /// Somebody deletes an app's pod, with this grace.
    Delete { app: usize, which: Which, grace_s: u32 },
    /// Somebody removes an app's pod at once, whatever runs.
    Remove { app: usize, which: Which },
    /// Somebody removes an app's Secret.
    RemoveSecret { app: usize, which: Which },
    /// Somebody removes the NetworkPolicies.
    RemovePolicies,
    /// The next `times` requests of an endpoint meet this, as long as it lasts.
    Gateway { endpoint: Endpoint, times: u32, fault: GatewayFault },
    /// The next `times` heartbeats are answered as so many answers ago.
    Stale { answers: usize, times: u32 },
    /// Somebody else's object has the name of the app's next host; of a Secret's, if `secret`.
    Squat { app: usize, secret: bool },
    /// The app's connection seems gone.
    Flap { app: usize, which: Which },
    /// The wall clock is stepped.
    Step(i64),
    /// The log's next write goes wrong.
    Disk(MemFault),
    /// The daemon stops in order.
    Stop { down: Duration },
    /// The daemon is killed.
    Crash { fuse: Fuse, unsynced: Unsynced, down: Duration },
}

/// At what a crash happens; whatever has not happened within a minute happens then.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fuse {
    /// At this instant.
    Now,
    /// At the write after so many, when it is on its way: it is still carried out.
    Sent(u32),
    /// When the answer to it arrives: it was carried out and nobody knows.
    Answered(u32),
    /// At the append after so many, before it is synced.
    Unsynced(u32),
    /// When it is durable and nobody knows.
    Durable(u32),
    /// At the heartbeat after so many, when its answer arrives.
    Beat(u32),
}
