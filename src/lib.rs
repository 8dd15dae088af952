//! wharfinger runs untrusted code on Kubernetes and can say, for everything it ever did, why.

// A test's match looks for one thing in a closed list of forty; and it compares whole values, so it clones them.
#![cfg_attr(test, allow(clippy::wildcard_enum_match_arm, clippy::cloned_ref_to_slice_refs))]

pub mod actors;
pub mod app;
pub mod cli;
pub mod clock;
pub mod config;
pub mod events;
pub mod feed;
pub mod gateway;
pub mod http;
pub mod ids;
pub mod kube;
pub mod postmortem;
pub mod proof;
pub mod run;
pub mod session;
pub mod sim;
pub mod subject;
pub mod telemetry;
pub mod trial;
