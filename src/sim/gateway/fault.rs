//! Scripted faults of the gateway. Pure data.

use std::time::Duration;

/// What a request asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Endpoint {
    /// The heartbeat.
    Heartbeat,
    /// A package.
    Source,
    /// An environment.
    Environment,
}

/// What happens to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fault {
    /// This status, and nothing is taken in.
    Status(u16),
    /// All is taken in, but the answer is this status.
    StatusAfter(u16),
    /// 200 and no JSON.
    Garbage,
    /// 200 and these bytes.
    Body(Vec<u8>),
    /// A good answer that breaks off.
    CutOff,
    /// A heartbeat for another world.
    WrongWorld,
    /// A heartbeat without this app, `org/name`.
    Omit(String),
    /// A heartbeat that names no app.
    Empty,
    /// It takes this much longer; further faults apply.
    Delay(Duration),
    /// No answer ever comes.
    Hang,
}
