//! The OpenAPI document against the tables that it is made of, and against itself.

use std::collections::BTreeSet;

use serde_json::Value;

use super::control::served;
use super::get;
use crate::http::access::routes::ROUTES;
use crate::http::openapi::codes::CODES;
use crate::http::openapi::operations::OPERATIONS;
use crate::http::openapi::{codes, document, operation};

#[test]
fn every_route_is_described_and_nothing_else() {
    let routes: BTreeSet<_> = ROUTES.iter().map(|route| (route.method, route.path)).collect();
    let described: BTreeSet<_> = OPERATIONS.iter().map(|operation| operation.route).collect();
    assert_eq!(described, routes);
    assert_eq!(described.len(), OPERATIONS.len(), "each once");
    let names: BTreeSet<_> = OPERATIONS.iter().map(|operation| operation.id).collect();
    assert_eq!(names.len(), OPERATIONS.len(), "each by a name of its own");
    let document = document();
    for route in ROUTES {
        let shown = &document["paths"][route.path][route.method.to_lowercase()];
        assert!(shown["responses"].as_object().is_some_and(|responses| !responses.is_empty()), "{} {}", route.method, route.path);
    }
}

#[test]
fn every_code_is_in_the_table_and_on_some_route() {
    let known: BTreeSet<_> = CODES.iter().map(|code| code.name).collect();
    assert_eq!(known.len(), CODES.len(), "each once");
    let of_routes = ROUTES.iter().filter_map(|route| Some(codes(route.need, operation(route)?)));
    let mut used: BTreeSet<_> = of_routes.flatten().collect();
    // What no route has: the answer to a method that is on none.
    used.insert("method_not_allowed");
    assert_eq!(used, known);
}

#[test]
fn every_reference_leads_somewhere() {
    fn references<'a>(value: &'a Value, found: &mut Vec<&'a str>) {
        match value {
            Value::Object(members) => {
                found.extend(members.get("$ref").and_then(Value::as_str));
                members.values().for_each(|member| references(member, found));
            }
            Value::Array(items) => items.iter().for_each(|item| references(item, found)),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }
    let document = document();
    let mut found = Vec::new();
    references(&document, &mut found);
    assert!(found.len() > 20);
    for reference in found {
        let pointer = reference.strip_prefix('#').expect("within the document");
        assert!(document.pointer(pointer).is_some(), "{reference}");
    }
}

#[tokio::test]
async fn it_is_served_and_says_what_a_session_needs() {
    let answer = get(served().await.address, "/openapi.json", "").await;
    let document: Value = serde_json::from_slice(&answer.body).expect("JSON");
    let put = &document["paths"]["/v1/sessions/{id}"]["put"];
    let names: Vec<_> = put["parameters"].as_array().expect("some").iter().filter_map(|parameter| parameter["name"].as_str()).collect();
    assert_eq!((answer.status, names), (200, vec!["id", "force_after", "wait"]));
    let wait = &put["parameters"][2];
    assert_eq!((&wait["schema"]["type"], &wait["schema"]["maximum"], &wait["required"]), (&"integer".into(), &3_600.into(), &false.into()));
    let conflict = &put["responses"]["409"]["content"]["application/problem+json"]["schema"]["allOf"][1]["properties"]["code"]["enum"];
    assert_eq!(conflict, &serde_json::json!(["other_tenant", "removed", "refused_foreign", "refused_different"]));
}
