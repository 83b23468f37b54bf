//! Lists whose items have some of their fields alone.
//!
//! Owns `?fields=`. Does not own which fields an item has: that is in its schema.

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};

use crate::problem::Problem;

/// The fields of an item, as its schema has them.
pub fn names<T: JsonSchema>() -> Vec<String> {
    let schema = schemars::schema_for!(T).to_value();
    let properties = schema["properties"].as_object();
    properties.map(|properties| properties.keys().cloned().collect()).unwrap_or_default()
}

/// The items with these fields alone, which have commas between them.
///
/// # Errors
/// When an item has no such field; names those that it has.
pub fn thinned<T: JsonSchema + Serialize>(
    items: &[T],
    wanted: &str,
) -> Result<Vec<Map<String, Value>>, Problem> {
    let known = names::<T>();
    let wanted: Vec<&str> = wanted.split(',').collect();
    if let Some(unknown) = wanted.iter().find(|name| !known.iter().any(|known| known == *name)) {
        return Err(Problem::wrong(format!("fields={unknown}: an item has {}", known.join(", "))));
    }
    items.iter().map(|item| thin(item, &wanted)).collect()
}

fn thin(item: &impl Serialize, wanted: &[&str]) -> Result<Map<String, Value>, Problem> {
    let Ok(Value::Object(whole)) = serde_json::to_value(item) else {
        return Err(Problem::wrong("the items of this list have no fields"));
    };
    Ok(whole.into_iter().filter(|(name, _)| wanted.contains(&name.as_str())).collect())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::answers::samples::summary;
    use crate::answers::{CurrentJob, JobAnswer};

    #[test]
    fn an_item_keeps_what_is_wanted_of_it() {
        let job = JobAnswer::from(&summary());
        let thin = thinned(std::slice::from_ref(&job), "state,job").expect("it has both");
        assert_eq!(Value::from(thin), json!([{ "job": "job_0007", "state": "failed" }]));
        let told = thinned(&[job], "job,stat").expect_err("there is no stat").detail;
        assert!(told.starts_with("fields=stat: an item has ended_millis, job, map, name, output"), "{told}");
    }

    #[test]
    fn fields_of_what_is_in_an_item_are_its_own() {
        let names = names::<CurrentJob>();
        assert!(
            names.iter().any(|name| name == "job") && names.iter().any(|name| name == "why"),
            "{names:?}"
        );
    }
}
