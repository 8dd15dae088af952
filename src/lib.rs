//! wharfinger runs untrusted code on Kubernetes and can say, for everything it ever did, why.

pub mod actors;
pub mod app;
pub mod cli;
pub mod clock;
pub mod config;
pub mod events;
pub mod gateway;
pub mod http;
pub mod ids;
pub mod kube;
pub mod run;
pub mod sim;
pub mod telemetry;
