//! What a request asks for: verb, resource, namespace, name, subresource, query. Knows no storage.

use std::collections::BTreeMap;

use http::Method;

use super::refusal::Refusal;
use super::resources::{Resource, find};

/// What is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verb {
    /// One object is read.
    Get,
    /// Many are read.
    List,
    /// Changes are followed.
    Watch,
    /// POST.
    Create,
    /// PUT.
    Update,
    /// PATCH.
    Patch,
    /// One object is deleted.
    Delete,
    /// Many are deleted.
    DeleteCollection,
}

impl Verb {
    /// As the audit log writes it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Get => "get",
            Self::List => "list",
            Self::Watch => "watch",
            Self::Create => "create",
            Self::Update => "update",
            Self::Patch => "patch",
            Self::Delete => "delete",
            Self::DeleteCollection => "deletecollection",
        }
    }

    /// Whether it may change something.
    #[must_use]
    pub(super) fn writes(self) -> bool {
        !matches!(self, Self::Get | Self::List | Self::Watch)
    }
}

/// One request, understood.
#[derive(Debug, Clone)]
pub(super) struct Call {
    /// What is done.
    pub(super) verb: Verb,
    /// To what kind.
    pub(super) resource: &'static Resource,
    /// Namespace; `None` for cluster-wide kinds and for all namespaces.
    pub(super) namespace: Option<String>,
    /// The object's name; empty for collections.
    pub(super) name: String,
    /// `status`, `log`, `binding`, `eviction`; empty for the object itself.
    pub(super) subresource: String,
    /// The query; of a parameter that is given twice, the last.
    pub(super) query: BTreeMap<String, String>,
}

impl Call {
    /// From method, path and query.
    ///
    /// # Errors
    /// 404 of an unknown path, 405 of a method it does not have.
    pub(super) fn parse(method: &Method, path: &str, query: &str) -> Result<Self, Refusal> {
        let query = parse_query(query);
        let segments: Vec<&str> = path.split('/').filter(|segment| !segment.is_empty()).collect();
        let (group, rest) = match segments.as_slice() {
            ["api", version, rest @ ..] => (("", *version), rest),
            ["apis", group, version, rest @ ..] => ((*group, *version), rest),
            _ => return Err(Refusal::no_such_path()),
        };
        let place = place(group, rest).ok_or_else(Refusal::no_such_path)?;
        let verb = verb(method, &place, &query).ok_or_else(Refusal::method)?;
        let Place { resource, namespace, name, subresource } = place;
        Ok(Self { verb, resource, namespace, name, subresource, query })
    }

    /// A query parameter; an empty one counts as not given.
    #[must_use]
    pub(super) fn parameter(&self, name: &str) -> Option<&str> {
        self.query.get(name).map(String::as_str).filter(|value| !value.is_empty())
    }

    /// Whether nothing is to be stored.
    #[must_use]
    pub(super) fn is_dry(&self) -> bool {
        self.parameter("dryRun").is_some()
    }
}

struct Place {
    resource: &'static Resource,
    namespace: Option<String>,
    name: String,
    subresource: String,
}

fn place(group: (&str, &str), rest: &[&str]) -> Option<Place> {
    let object = |namespace: Option<&str>, plural: &str, tail: &[&str]| {
        let resource = find(Some(group), plural)?;
        if namespace.is_some() && !resource.namespaced {
            return None;
        }
        let text = |index: usize| tail.get(index).map(|part| decoded(part)).unwrap_or_default();
        let (name, subresource) = (text(0), text(1));
        let known = match subresource.as_str() {
            "" => true,
            "status" => resource.has_status,
            "log" | "binding" | "eviction" => resource.plural == "pods",
            _ => false,
        };
        let addressed = name.is_empty() || namespace.is_some() == resource.namespaced;
        (known && addressed && tail.len() <= 2).then(|| Place { resource, namespace: namespace.map(str::to_owned), name, subresource })
    };
    match rest {
        ["namespaces"] => object(None, "namespaces", &[]),
        ["namespaces", name] => object(None, "namespaces", &[name]),
        ["namespaces", name, "status"] => object(None, "namespaces", &[name, "status"]),
        ["namespaces", namespace, plural, tail @ ..] => object(Some(&decoded(namespace)), plural, tail),
        [plural, tail @ ..] => object(None, plural, tail),
        [] => None,
    }
}

fn verb(method: &Method, place: &Place, query: &BTreeMap<String, String>) -> Option<Verb> {
    let watched = query.get("watch").is_some_and(|value| value == "true" || value == "1");
    let one = !place.name.is_empty();
    let placed = place.namespace.is_some() || !place.resource.namespaced;
    let verb = match method.as_str() {
        "GET" if one => Verb::Get,
        "GET" if watched => Verb::Watch,
        "GET" => Verb::List,
        "POST" => Verb::Create,
        "PUT" if one => Verb::Update,
        "PATCH" if one => Verb::Patch,
        "DELETE" if one => Verb::Delete,
        "DELETE" => Verb::DeleteCollection,
        _ => return None,
    };
    let allowed = match place.subresource.as_str() {
        "" => verb != Verb::Create || !one,
        "log" => verb == Verb::Get,
        "status" => matches!(verb, Verb::Get | Verb::Update | Verb::Patch),
        _ => verb == Verb::Create,
    };
    let kept = place.resource.stored || verb == Verb::Create;
    (allowed && kept && (placed || !verb.writes())).then_some(verb)
}

fn parse_query(query: &str) -> BTreeMap<String, String> {
    let pairs = query.split('&').filter(|pair| !pair.is_empty());
    pairs
        .map(|pair| {
            let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
            (decoded(&key.replace('+', " ")), decoded(&value.replace('+', " ")))
        })
        .collect()
}

/// Undoes percent encoding; what is not valid stays as it is.
fn decoded(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut index = 0;
    while let Some(&byte) = bytes.get(index) {
        let digits = bytes.get(index + 1..index + 3).and_then(|pair| std::str::from_utf8(pair).ok());
        let escaped = digits.filter(|_| byte == b'%').and_then(|digits| u8::from_str_radix(digits, 16).ok());
        out.push(escaped.unwrap_or(byte));
        index += if escaped.is_some() { 3 } else { 1 };
    }
    String::from_utf8_lossy(&out).into_owned()
}
