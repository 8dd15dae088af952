//! The actors on paused time, over a log in memory and an embedded world.

mod durability;
mod modes;
pub(super) mod poison;
mod rest;
mod support;
