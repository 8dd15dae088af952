//! The actors on paused time, over a log in memory and an embedded world.

mod admission;
mod crashes;
mod durability;
mod edges;
mod erasing;
mod failures;
mod fixtures;
mod leases;
mod modes;
pub(super) mod poison;
mod rest;
mod retention;
mod sending;
mod session_crashes;
mod session_policy;
mod session_town;
mod sessions;
mod snapshots;
mod stopping;
pub(crate) mod support;
mod wants;
mod watching;
