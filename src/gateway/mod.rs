//! The gateway: its protocol, how its answers are judged, and the packages it hands out.

pub mod api;
pub mod client;
pub mod judge;
pub mod protocol;
pub mod report;
pub mod sources;
pub mod withdrawals;

pub use api::{Gateway, GatewayError, GatewayRefusal};
pub use judge::{Judged, NotBelieved, RefusedWant, judge};
pub use protocol::{Report, ReportState, WHY_CHARS};
pub use report::{Beat, Outbox};
pub use sources::{Kept, SourceError, SourceStore};
pub use withdrawals::Withdrawals;

#[cfg(test)]
mod tests;
