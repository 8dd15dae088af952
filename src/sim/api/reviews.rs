//! Reviews: who a bearer token is, and whether the caller may do something. Answered, never stored.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use super::resources::Resource;
use super::rules::{at, list, text};

/// Whose tokens there are and what is denied.
#[derive(Debug, Default)]
pub(super) struct Reviewer {
    /// Token to user name and audiences.
    pub(super) tokens: BTreeMap<String, (String, Vec<String>)>,
    /// Verbs on resources that the caller is denied; everything else is allowed.
    pub(super) denied: BTreeSet<(String, String)>,
}

impl Reviewer {
    /// Fills in a review's status.
    pub(super) fn answer(&self, resource: &Resource, mut review: Value) -> Value {
        review["status"] = match resource.plural {
            "tokenreviews" => self.token(&review["spec"]),
            _ => self.access(&review["spec"]),
        };
        review
    }

    fn token(&self, spec: &Value) -> Value {
        let invalid = |why: &str| json!({"user": {}, "error": why});
        let Some((name, audiences)) = self.tokens.get(text(spec, &["token"])) else {
            return invalid("[invalid bearer token, token lookup failed]");
        };
        let wanted = list(spec, &["audiences"]);
        let shared: Vec<&String> = audiences.iter().filter(|audience| wanted.is_empty() || wanted.contains(&json!(audience))).collect();
        if shared.is_empty() {
            return invalid("[invalid bearer token, token audiences are not those wanted]");
        }
        json!({"authenticated": true, "user": {"username": name, "groups": ["system:authenticated"]}, "audiences": shared})
    }

    fn access(&self, spec: &Value) -> Value {
        let attributes = at(spec, &["resourceAttributes"]);
        let asked = (text(attributes, &["verb"]).to_owned(), text(attributes, &["resource"]).to_owned());
        json!({"allowed": !self.denied.contains(&asked)})
    }
}
