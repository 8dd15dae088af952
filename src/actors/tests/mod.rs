//! The actors on paused time, over a log in memory and an embedded world.

mod admission;
mod crashes;
mod durability;
mod failures;
mod fixtures;
mod modes;
pub(super) mod poison;
mod rest;
mod sending;
mod stopping;
mod support;
mod wants;
mod watching;
