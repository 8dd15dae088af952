//! What the rest asks of the gateway, and how its refusals are sorted. The real client and the embedded gateway both give it.

use std::collections::BTreeMap;
use std::pin::Pin;

use bytes::Bytes;
use futures_util::Stream;
use futures_util::future::BoxFuture;

use super::judge::NotBelieved;
use crate::ids::AppId;

/// Why the gateway did not give what was asked, sorted by what the caller does next.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum GatewayError {
    /// Nothing is lost: ask again after a pause.
    #[error("{what}: {reason}")]
    Retry {
        /// What was asked.
        what: &'static str,
        /// What went wrong, without any value of the answer.
        reason: String,
        /// The HTTP status; 0 when no answer came.
        status: u16,
    },
    /// It will not be otherwise: the release cannot be had.
    #[error("{what}: {why}")]
    Refused {
        /// What was asked.
        what: &'static str,
        /// Why.
        why: GatewayRefusal,
    },
    /// The gateway does not take our token, or there is none: an operator has to do something; asked again meanwhile.
    #[error("{what}: {reason}")]
    Unauthorised {
        /// What was asked.
        what: &'static str,
        /// What is wrong with the token.
        reason: String,
    },
}

/// Why something can never be had.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum GatewayRefusal {
    /// The gateway does not know it (404).
    #[error("the gateway does not have it (404)")]
    NotThere,
    /// The gateway no longer has it (410).
    #[error("the gateway no longer has it (410)")]
    Gone,
    /// It is larger than it may be.
    #[error("it is larger than {limit} bytes")]
    TooLarge {
        /// The limit, bytes.
        limit: u64,
    },
    /// It is not what its digest says.
    #[error("its SHA-256 is not the release's")]
    BadDigest,
}

impl From<GatewayError> for NotBelieved {
    fn from(error: GatewayError) -> Self {
        match error {
            GatewayError::Retry { status, .. } if status != 0 => Self::Status(status),
            GatewayError::Refused { why: GatewayRefusal::NotThere, .. } => Self::Status(404),
            GatewayError::Refused { why: GatewayRefusal::Gone, .. } => Self::Status(410),
            GatewayError::Retry { .. } | GatewayError::Refused { .. } | GatewayError::Unauthorised { .. } => {
                Self::Transport(error.to_string())
            }
        }
    }
}

/// A package as it arrives.
pub type Chunks = Pin<Box<dyn Stream<Item = Result<Bytes, GatewayError>> + Send>>;

/// The gateway.
pub trait Gateway: Send + Sync + 'static {
    /// Sends a heartbeat; gives the body of a 2xx, not yet judged.
    fn heartbeat(&self, body: Vec<u8>) -> BoxFuture<'_, Result<Bytes, GatewayError>>;

    /// An app's environment. What it holds is secret: never logged, never in an error.
    fn environment<'a>(&'a self, app: &'a AppId) -> BoxFuture<'a, Result<BTreeMap<String, String>, GatewayError>>;

    /// A release's package, not yet verified and not yet bounded.
    fn source<'a>(&'a self, app: &'a AppId, release: u64) -> BoxFuture<'a, Result<Chunks, GatewayError>>;
}
