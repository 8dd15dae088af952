//! Tests of the gateway's edge.

mod client;
mod judge;
mod report;
mod sources;
mod withdrawals;
