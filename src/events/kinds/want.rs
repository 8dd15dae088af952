//! Payloads about what the gateway wants and gives.

use serde::{Deserialize, Serialize};

use crate::ids::{HostName, PackageDigest, Word};

/// What the gateway says of one app in one answer, validated; recorded when it changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WantSeen {
    /// The answer's number within the incarnation.
    pub answer: u64,
    /// The release to run; at least 1.
    pub release: u64,
    /// The digest of its package.
    pub sha256: PackageDigest,
    /// The host to run it as.
    pub host: HostName,
    /// A process of that host is connected to the gateway.
    pub registered: bool,
    /// This host was reported failed.
    pub failed: bool,
    /// The host that last went live, as this answer says.
    pub live_host: Option<HostName>,
}

/// A good answer named the app as before: the first of an incarnation, or the first after a register deadline.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WantConfirmed {
    /// The answer's number within the incarnation.
    pub answer: u64,
}

/// A counted answer did not name the app.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WantMissing {
    /// The answer's number within the incarnation.
    pub answer: u64,
    /// The answer missed more than half of more than 3 apps, or named none.
    pub mass: bool,
}

/// Why a want was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum WantFault {
    /// The host is no valid name.
    BadHost,
    /// The digest is not 64 lower-case hex digits.
    BadDigest,
    /// The release is below 1.
    BadRelease,
    /// Two wants name this app.
    TwiceNamed,
    /// Another app's want names the same host.
    HostShared,
    /// A field is missing or of another type.
    Malformed,
}

/// A want that could not be believed; the app goes on as it was.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WantRefused {
    /// The answer's number within the incarnation.
    pub answer: u64,
    /// Why.
    pub fault: WantFault,
    /// The host it named, when that is a name.
    pub host: Option<HostName>,
}

/// An environment was fetched for a host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EnvironmentFetched {
    /// For whom.
    pub host: HostName,
    /// SHA-256 of a key of the data folder and the file, first 16 bytes: shows a change, and cannot be guessed without the key.
    pub digest: [u8; 16],
    /// How many variables.
    pub variables: u32,
}

/// A release's package is on disk.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SourceKept {
    /// Its digest, computed from the package.
    pub sha256: PackageDigest,
    /// Its size, bytes.
    pub bytes: u64,
    /// `gateway`: it is what was asked for; `unproved`: the gateway's package of that release, because its digest was not known.
    pub from: Word,
}
