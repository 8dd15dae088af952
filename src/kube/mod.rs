//! The cluster: what its objects look like, and the one edge through which it is read and changed.

pub mod answer;
pub mod call;
pub mod client;
pub mod convert;
pub mod decode;
pub mod environment;
pub mod frames;
pub mod install;
pub mod labels;
pub mod lease;
pub mod manifest;
pub mod node;
pub mod perform;
pub mod policy;
pub mod redact;
pub mod review;
pub mod session;
pub mod tail;
pub mod throttle;
pub mod view;
pub mod watch;

#[cfg(test)]
mod tests;
