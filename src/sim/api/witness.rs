//! Who is told of everything that the API server does, as it does it: for a history that nothing is missing from.

use std::sync::Arc;

use super::audit::Entry;
use super::object::Object;

/// A change of one object.
#[derive(Debug, Clone)]
pub struct Stored {
    /// The kind's plural, for example `pods`.
    pub resource: &'static str,
    /// Empty for cluster-wide kinds.
    pub namespace: String,
    /// The name.
    pub name: String,
    /// The revision of the change: the object's new resourceVersion.
    pub revision: u64,
    /// As it was; `None`: it was created.
    pub before: Option<Arc<Object>>,
    /// As it is; `None`: it was removed.
    pub after: Option<Arc<Object>>,
}

/// Is told inside whatever it is told of, so it must not call the API server back.
pub trait Witness: Send + Sync {
    /// An object changed; the request that did it is told of next.
    fn stored(&self, change: Stored);

    /// A request was answered, or met its fault.
    fn requested(&self, entry: &Entry);
}
