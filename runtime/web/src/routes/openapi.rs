//! The OpenAPI 3.1 description, generated from the table of routes.

use schemars::generate::SchemaSettings;
use schemars::{Schema, SchemaGenerator};
use serde_json::{Map, Value, json};

use super::list::ThinPage;
use super::orders::{KEY_CHARACTERS_MAX, KEY_HEADER};
use super::route::{Answer, Form, Route};
use super::table::all_routes;
use crate::guard::WebRole;
use crate::problem::Problem;

pub fn description() -> Value {
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        settings.definitions_path = "/components/schemas".into();
        settings.meta_schema = None;
    });
    let mut generator = settings.into_generator();
    let problem = generator.subschema_for::<Problem>().to_value();
    let mut paths: Map<String, Value> = Map::new();
    for route in all_routes() {
        let method = route.method.as_str().to_lowercase();
        paths.entry(route.path).or_insert_with(|| json!({}))[method] =
            operation(route, &problem, &mut generator);
    }
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "napreduce",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "A running cluster or its history. IDs are strings; times are in UTC since 1970. \
                Fields are added, never renamed or removed.",
            "license": { "name": "MIT OR Apache-2.0" },
        },
        "paths": paths,
        "components": {
            "schemas": generator.take_definitions(true),
            "securitySchemes": {
                "token": { "type": "http", "scheme": "bearer", "description": "created by nap web token" },
                "cookie": { "type": "apiKey", "in": "cookie", "name": "nap_CLUSTER", "description": "read only" },
            },
        },
    })
}

fn operation(route: &Route, problem: &Value, generator: &mut SchemaGenerator) -> Value {
    let mut parameters: Vec<Value> = path_parts(route.path)
        .map(|name| json!({ "name": name, "in": "path", "required": true, "schema": { "type": "string" } }))
        .collect();
    parameters.extend(route.queries().map(|field| {
        json!({ "name": field.name, "in": "query", "description": field.about, "schema": form(field.form) })
    }));
    if route.is_order() {
        parameters.push(json!({
            "name": KEY_HEADER,
            "in": "header",
            "description": "a repeated order with the same key and token name within 24 hours returns the first answer and has no further effect",
            "schema": { "type": "string", "pattern": "^[!-~]+$", "minLength": 1, "maxLength": KEY_CHARACTERS_MAX },
        }));
    }
    let content = match route.gives {
        Answer::Json(schema) => {
            json!({ "application/json": { "schema": json_schema(route, schema, generator) } })
        }
        Answer::JsonOr(schema, kind) => {
            json!({ "application/json": { "schema": json_schema(route, schema, generator) }, kind: {} })
        }
        Answer::Other("application/json") => {
            json!({ "application/json": { "schema": { "type": "object" } } })
        }
        Answer::Other(kind) => json!({ kind: { "schema": { "type": "string" } } }),
    };
    let done = if route.is_order() { "202" } else { "200" };
    let refusal = json!({ "application/problem+json": { "schema": problem } });
    let mut operation = json!({
        "summary": route.about,
        "description": format!("Requires the role {}.", route.role),
        "operationId": operation_id(route),
        "parameters": parameters,
        "responses": {
            done: { "description": "Success", "content": content },
            "default": { "description": "Failure", "content": refusal },
        },
        "security": match route.role {
            WebRole::Nobody => json!([]),
            WebRole::View => json!([{ "token": [] }, { "cookie": [] }]),
            WebRole::Operate => json!([{ "token": [] }]),
        },
    });
    if let Some(body) = route.takes {
        let schema = body(generator).to_value();
        operation["requestBody"] =
            json!({ "required": true, "content": { "application/json": { "schema": schema } } });
    }
    operation
}

/// The schema of a JSON answer; a list may have items with selected fields only.
fn json_schema(
    route: &Route,
    schema: fn(&mut SchemaGenerator) -> Schema,
    generator: &mut SchemaGenerator,
) -> Value {
    let whole = schema(generator).to_value();
    if route.page.is_none() {
        return whole;
    }
    let thin = generator.subschema_for::<ThinPage>().to_value();
    json!({ "anyOf": [whole, thin] })
}

/// The schema of a query parameter.
fn form(form: Form) -> Value {
    let listed = |one: String| json!({ "type": "string", "pattern": format!("^{one}(,{one})*$") });
    match form {
        Form::Text => json!({ "type": "string" }),
        Form::Number(from, until) => {
            json!({ "type": "integer", "minimum": from, "maximum": until })
        }
        Form::OneOf(words) => json!({ "type": "string", "enum": words }),
        Form::SomeOf(words) => listed(format!("({})", words.join("|"))),
        Form::Sort(names) => listed(format!("-?({})", names().join("|"))),
        Form::Fields(names) => listed(format!("({})", names().join("|"))),
    }
}

fn path_parts(path: &str) -> impl Iterator<Item = &str> {
    path.split('/')
        .filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'))
}

/// For example `get_jobs_job_counters`.
fn operation_id(route: &Route) -> String {
    let path = route
        .path
        .replace("/api/nap/v1", "")
        .replace(['{', '}'], "")
        .replace(['/', '-', '.'], "_");
    format!("{}{path}", route.method.as_str().to_lowercase())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_route_is_described_and_every_schema_resolves() {
        let description = description();
        let paths = description["paths"].as_object().expect("an object");
        assert_eq!(
            paths
                .values()
                .map(|path| path.as_object().map_or(0, Map::len))
                .sum::<usize>(),
            all_routes().count()
        );
        let text = description.to_string();
        let mut named = BTreeSet::new();
        for (at, _) in text.match_indices("#/components/schemas/") {
            let name = text[at + 21..].split('"').next().expect("a name");
            assert!(
                description["components"]["schemas"][name].is_object(),
                "undefined schema {name}"
            );
            named.insert(name);
        }
        assert!(
            named.contains("JobAnswer") && named.contains("Problem"),
            "{named:?}"
        );
        let ids: BTreeSet<String> = all_routes().map(operation_id).collect();
        assert_eq!(
            ids.len(),
            all_routes().count(),
            "duplicate operation IDs: {ids:?}"
        );
    }

    #[test]
    fn description_states_the_security_of_each_route() {
        let description = description();
        let kill = &description["paths"]["/api/nap/v1/jobs/{job}/kill"]["post"];
        assert_eq!(kill["security"], json!([{ "token": [] }]));
        assert_eq!(kill["parameters"][0]["name"], "job");
        assert!(kill["responses"]["202"].is_object() && kill["requestBody"]["required"] == true);
        assert_eq!(
            description["paths"]["/healthz"]["get"]["security"],
            json!([])
        );
    }
}
