//! The OpenAPI document: the table of routes, with what each takes and gives, as schemas of the types that handlers use. Pure.

pub mod codes;
pub mod operations;

use std::collections::BTreeMap;

use schemars::generate::SchemaSettings;
use schemars::{Schema, SchemaGenerator};
use serde_json::{Map, Value, json};

use self::codes::find;
use self::operations::{Content, OPERATIONS, Operation, members};
use super::access::routes::{ROUTES, Route};
use crate::config::access::Need;
use crate::ids::SessionId;

/// A DNS label, as a parameter of a path is held to it.
const LABEL: &str = "^[a-z0-9]([a-z0-9-]*[a-z0-9])?$";

/// Refusals of every route that needs a role.
const GUARDED: [&str; 6] = ["unauthorized", "forbidden", "foreign_origin", "foreign_host", "access_unreadable", "review_failed"];
/// Refusals of the others.
const OPEN: [&str; 2] = ["foreign_origin", "foreign_host"];

/// The operation of a route.
#[must_use]
pub fn operation(route: &Route) -> Option<&'static Operation> {
    OPERATIONS.iter().find(|operation| operation.route == (route.method, route.path))
}

/// Every code that a route may refuse with.
pub fn codes(need: Need, operation: &Operation) -> impl Iterator<Item = &'static str> {
    let common = if need == Need::Nothing { OPEN.as_slice() } else { GUARDED.as_slice() };
    let large = operation.body.is_some().then_some("body_too_large");
    common.iter().chain(operation.codes).copied().chain(large)
}

/// The document.
#[must_use]
pub fn document() -> Value {
    let components = |settings: &mut SchemaSettings| settings.definitions_path = "/components/schemas".into();
    let mut given = SchemaSettings::draft2020_12().for_serialize().with(components).into_generator();
    let inline = |settings: &mut SchemaSettings| settings.inline_subschemas = true;
    let mut taken = SchemaSettings::draft2020_12().for_deserialize().with(inline).into_generator();
    let mut paths: BTreeMap<&str, Map<String, Value>> = BTreeMap::new();
    for route in ROUTES {
        if let Some(operation) = operation(route) {
            let shown = shown(route.need, operation, &mut taken, &mut given);
            paths.entry(route.path).or_default().insert(route.method.to_lowercase(), shown);
        }
    }
    let mut schemas = given.take_definitions(true);
    schemas.insert("Problem".to_owned(), problem());
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "wharf",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "The control listener of a daemon. Refusals are RFC 9457 problems, each with a code that does not change.",
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "paths": paths,
        "components": {
            "schemas": schemas,
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
    })
}

fn shown(need: Need, operation: &Operation, taken: &mut SchemaGenerator, given: &mut SchemaGenerator) -> Value {
    let mut document = json!({
        "operationId": operation.id,
        "summary": operation.summary,
        "description": format!("For {}.", need.words()),
        "parameters": parameters(operation, taken),
        "responses": responses(need, operation, given),
    });
    if let Some(body) = operation.body {
        document["requestBody"] = json!({"required": false, "content": {"application/json": {"schema": body(taken)}}});
    }
    // A daemon without an access file asks for none.
    if need != Need::Nothing {
        document["security"] = json!([{"token": []}, {}]);
    }
    document
}

fn parameters(operation: &Operation, taken: &mut SchemaGenerator) -> Vec<Value> {
    let (_, path) = operation.route;
    let in_path = path.split(['{', '}']).skip(1).step_by(2).map(|name| {
        let most = if name == "id" { SessionId::MAX } else { 63 };
        let schema = json!({"type": "string", "minLength": 1, "maxLength": most, "pattern": LABEL});
        json!({"name": name, "in": "path", "required": true, "schema": schema})
    });
    let headers = operation
        .headers
        .iter()
        .map(|(name, value)| json!({"name": name, "in": "header", "required": true, "schema": {"type": "string", "enum": [value]}}));
    let query = operation.query.map(|query| bounded(query(taken))).unwrap_or(Value::Null);
    let required = query["required"].as_array().cloned().unwrap_or_default();
    let properties = query["properties"].as_object().cloned().unwrap_or_default();
    let in_query = properties.into_iter().map(|(name, mut schema)| {
        let description = schema.as_object_mut().and_then(|schema| schema.remove("description"));
        json!({"required": required.contains(&json!(name)), "name": name, "in": "query", "description": description, "schema": schema})
    });
    in_path.chain(headers).chain(in_query).collect()
}

/// The schema of what is written in text: a missing value is left out and never `null`, and a number fits its type.
fn bounded(schema: Schema) -> Value {
    let mut schema = schema.to_value();
    let properties = schema.get_mut("properties").and_then(Value::as_object_mut);
    for property in properties.into_iter().flat_map(|properties| properties.values_mut()) {
        without_null(property);
        let most = match property["format"].as_str() {
            Some("uint64") => json!(u64::MAX),
            Some("uint32") => json!(u32::MAX),
            _ => continue,
        };
        if let Some(property) = property.as_object_mut() {
            property.remove("format");
            property.entry("maximum").or_insert(most);
        }
    }
    schema
}

fn without_null(property: &mut Value) {
    let one_type = property["type"].as_array().and_then(|types| types.iter().find(|name| *name != "null").cloned());
    let one_of = property["anyOf"].as_array().and_then(|any| any.iter().find(|schema| schema["type"] != "null").cloned());
    let Some(property) = property.as_object_mut() else { return };
    if let Some(one_type) = one_type {
        property.insert("type".to_owned(), one_type);
    }
    if let Some(Value::Object(one_of)) = one_of {
        property.remove("anyOf");
        let description = property.remove("description");
        property.extend(one_of);
        property.extend(description.map(|description| ("description".to_owned(), description)));
    }
}

fn responses(need: Need, operation: &Operation, given: &mut SchemaGenerator) -> Map<String, Value> {
    let mut responses = Map::new();
    for good in operation.good {
        let mut response = json!({"description": good.when});
        match good.content {
            Content::Nothing => {}
            Content::Json(of) => response["content"] = json!({"application/json": {"schema": of(given)}}),
            Content::Members(names) => response["content"] = json!({"application/json": {"schema": members(names)}}),
            Content::Other(media) => response["content"] = json!({media: {"schema": {}}}),
        }
        responses.insert(good.status.to_string(), response);
    }
    let mut by_status: BTreeMap<u16, Vec<&'static codes::Code>> = BTreeMap::new();
    for code in codes(need, operation).filter_map(find) {
        by_status.entry(code.status).or_default().push(code);
    }
    for (status, codes) in by_status {
        let told = codes.iter().map(|code| format!("`{}`: {}", code.name, code.meaning)).collect::<Vec<_>>().join("; ");
        let names: Vec<&str> = codes.iter().map(|code| code.name).collect();
        let schema = json!({"allOf": [{"$ref": "#/components/schemas/Problem"}, {"properties": {"code": {"enum": names}}}]});
        let response = responses.entry(status.to_string()).or_insert_with(|| json!({"description": "", "content": {}}));
        let before = response["description"].as_str().unwrap_or_default();
        response["description"] = json!(if before.is_empty() { told } else { format!("{before} {told}") });
        response["content"]["application/problem+json"] = json!({"schema": schema});
    }
    responses
}

fn problem() -> Value {
    json!({
        "type": "object",
        "description": "RFC 9457, with a stable code; further members say more of some codes.",
        "required": ["type", "title", "status", "code", "detail"],
        "properties": {
            "type": {"type": "string"},
            "title": {"type": "string"},
            "status": {"type": "integer"},
            "code": {"type": "string", "description": "Its stable name, for programs."},
            "detail": {"type": "string", "description": "One sentence for people."},
        },
    })
}
