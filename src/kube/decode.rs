//! List pages and watch events from their JSON, item by item: an odd item never costs its neighbours. Knows no HTTP.

use serde::Deserialize;
use serde_json::Value;

use super::answer::ApiStatus;
use super::convert::{self, Observation, Odd};
use super::labels::Scheme;
use super::node;
use super::view::{Meta, NodeView, PodView, Viewed, tolerant};
use crate::events::kinds::pod::NodeSeen;

/// How a resource's objects become observations.
pub trait Decode: Send + Sync {
    /// The part of an object that is read.
    type View: Viewed;
    /// What becomes of it.
    type Seen: Send + 'static;

    /// The resource, for example `pods`.
    fn resource(&self) -> &'static str;

    /// The observation of one object.
    ///
    /// # Errors
    /// When nothing can be concluded about it.
    fn seen(&self, view: &Self::View, odd: Vec<String>) -> Result<Self::Seen, Odd>;
}

/// Pods.
#[derive(Debug, Clone)]
pub struct Pods(pub Scheme);

impl Decode for Pods {
    type View = PodView;
    type Seen = Observation;

    fn resource(&self) -> &'static str {
        "pods"
    }

    fn seen(&self, view: &PodView, odd: Vec<String>) -> Result<Observation, Odd> {
        convert::observe(&self.0, view, odd)
    }
}

/// Nodes.
#[derive(Debug, Clone)]
pub struct Nodes;

impl Decode for Nodes {
    type View = NodeView;
    type Seen = NodeSeen;

    fn resource(&self) -> &'static str {
        "nodes"
    }

    fn seen(&self, view: &NodeView, _odd: Vec<String>) -> Result<NodeSeen, Odd> {
        node::observe(view)
    }
}

/// One page of a list.
#[derive(Debug)]
pub struct Page<S> {
    /// The list's version.
    pub resource_version: u64,
    /// The token of the next page.
    pub next: Option<String>,
    /// Its objects, each observed or odd.
    pub items: Vec<Result<S, Odd>>,
}

/// What a line of a watch says.
#[derive(Debug)]
pub enum WatchLine<S> {
    /// An object was added or changed.
    Seen(Result<S, Odd>),
    /// An object was deleted: its last state.
    Deleted(Result<S, Odd>),
    /// Nothing happened up to there.
    Bookmark,
    /// The server gives up the watch.
    Error(ApiStatus),
    /// Nothing that a watch should say.
    Unknown,
}

#[derive(Deserialize)]
struct ListOf<T> {
    metadata: ListMeta,
    items: Option<Vec<T>>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct ListMeta {
    resource_version: Option<String>,
    r#continue: Option<String>,
}

/// Decodes a page of a list.
///
/// # Errors
/// When it is no JSON of a list, or its version is no number: without it nothing can be watched.
pub fn page<D: Decode>(decode: &D, json: &[u8]) -> Result<Page<D::Seen>, String> {
    let (metadata, items) = match serde_json::from_slice::<ListOf<D::View>>(json) {
        Ok(list) => {
            let items = list.items.unwrap_or_default();
            (list.metadata, items.iter().map(|view| decode.seen(view, Vec::new())).collect())
        }
        Err(_) => slow_page(decode, json)?,
    };
    let version = metadata.resource_version.unwrap_or_default();
    let resource_version = version.parse().map_err(|_| format!("the list's resourceVersion is {version:?}"))?;
    Ok(Page { resource_version, next: metadata.r#continue.filter(|token| !token.is_empty()), items })
}

type Items<S> = Vec<Result<S, Odd>>;

fn slow_page<D: Decode>(decode: &D, json: &[u8]) -> Result<(ListMeta, Items<D::Seen>), String> {
    let mut list: Value = serde_json::from_slice(json).map_err(|error| format!("no JSON: {error}"))?;
    let items = match list.get_mut("items").map(Value::take) {
        None | Some(Value::Null) => Vec::new(),
        Some(Value::Array(items)) => items,
        Some(_) => return Err("items is no list".to_owned()),
    };
    let metadata = list.get_mut("metadata").map(Value::take).ok_or("no list: it has no metadata")?;
    let metadata = ListMeta::deserialize(metadata).map_err(|error| format!("metadata: {error}"))?;
    let observed = items.iter().map(|item| {
        let (view, odd) = tolerant::<D::View>(item);
        decode.seen(&view, odd)
    });
    Ok((metadata, observed.collect()))
}

#[derive(Deserialize)]
struct LineOf<T> {
    r#type: String,
    object: T,
}

/// Decodes one object of a watch's body; with it the version it carries, which counts though the object may be odd.
#[must_use]
pub fn line<D: Decode>(decode: &D, json: &[u8]) -> (WatchLine<D::Seen>, Option<u64>) {
    if let Ok(line) = serde_json::from_slice::<LineOf<D::View>>(json)
        && line.r#type != "ERROR"
    {
        return sorted(decode, &line.r#type, &line.object, Vec::new());
    }
    let Ok(line) = serde_json::from_slice::<Value>(json) else { return (WatchLine::Unknown, None) };
    match (line.get("type").and_then(Value::as_str), line.get("object")) {
        (Some("ERROR"), Some(status)) => (WatchLine::Error(ApiStatus::of(status)), None),
        (Some(kind), Some(object)) => {
            let (view, odd) = tolerant::<D::View>(object);
            sorted(decode, kind, &view, odd)
        }
        // Some servers answer a watch with the bare Status, printed over many lines (case B04).
        (None, _) if line.get("kind").and_then(Value::as_str) == Some("Status") => (WatchLine::Error(ApiStatus::of(&line)), None),
        _ => (WatchLine::Unknown, None),
    }
}

fn sorted<D: Decode>(decode: &D, kind: &str, view: &D::View, odd: Vec<String>) -> (WatchLine<D::Seen>, Option<u64>) {
    let meta: &Meta = view.meta();
    let version = meta.version();
    let line = match kind {
        "ADDED" | "MODIFIED" => WatchLine::Seen(decode.seen(view, odd)),
        "DELETED" => WatchLine::Deleted(decode.seen(view, odd)),
        "BOOKMARK" => WatchLine::Bookmark,
        _ => WatchLine::Unknown,
    };
    (line, version)
}
