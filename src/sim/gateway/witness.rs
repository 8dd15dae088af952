//! Who is told of every request to the gateway, as it is handled.

use super::state::{GatewayAnswer, GatewayRequest};

/// Is told after the request was handled and before its answer is on its way; may look at the gateway.
pub trait Witness: Send + Sync {
    /// A request was handled. `taken`: it was a heartbeat, and what it reports counts.
    fn asked(&self, request: &GatewayRequest, answer: &GatewayAnswer, taken: bool);
}
