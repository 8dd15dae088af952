//! From a node as the API server shows it to whether it is ready. Nothing else of a node is read.

use super::convert::Odd;
use super::view::NodeView;
use crate::events::kinds::pod::{NodeReady, NodeSeen};
use crate::ids::Word;

/// Whether a node is ready. A condition that is missing or cannot be read is not ready, never ready.
///
/// # Errors
/// When it has no name that can be shown.
pub fn observe(view: &NodeView) -> Result<NodeSeen, Odd> {
    let node = Word::new(view.metadata.name.as_deref().unwrap_or(""));
    if node.is_empty() {
        return Err(Odd::new(&view.metadata, "metadata.name is no node's name"));
    }
    let conditions = view.status.as_ref().and_then(|status| status.conditions.as_deref()).unwrap_or_default();
    let ready = conditions.iter().find(|condition| condition.r#type.as_deref() == Some("Ready"));
    let is_ready = ready.is_some_and(|condition| condition.status.as_deref() == Some("True"));
    Ok(NodeSeen { node, ready: if is_ready { NodeReady::Ready } else { NodeReady::NotReady } })
}
