//! The query parameter `fields`: a list whose items have only the selected fields.

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};

use super::super::call::{names_of, object_of};
use crate::problem::Problem;

/// Returns the items with only the comma-separated fields `wanted`.
///
/// # Errors
/// `400` if an item has no such field; the message lists the known ones.
pub fn select_fields<T: JsonSchema + Serialize>(
    items: &[T],
    wanted: &str,
) -> Result<Vec<Map<String, Value>>, Problem> {
    let known = names_of::<T>();
    let wanted: Vec<&str> = wanted.split(',').collect();
    if let Some(unknown) = wanted
        .iter()
        .find(|name| !known.iter().any(|known| known == *name))
    {
        return Err(Problem::invalid(format!(
            "unknown field {unknown:?}; expected {}",
            known.join(", ")
        )));
    }
    items.iter().map(|item| select(item, &wanted)).collect()
}

fn select(item: &impl Serialize, wanted: &[&str]) -> Result<Map<String, Value>, Problem> {
    let whole = object_of(item)?;
    Ok(whole
        .into_iter()
        .filter(|(name, _)| wanted.contains(&name.as_str()))
        .collect())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::answers::samples::summary;
    use crate::answers::{CurrentJob, JobAnswer};

    #[test]
    fn fields_selects_the_named_fields_only() {
        let job = JobAnswer::from(&summary());
        let thin = select_fields(std::slice::from_ref(&job), "state,job").expect("known fields");
        assert_eq!(
            Value::from(thin),
            json!([{ "job": "job_0007", "state": "failed" }])
        );
        let detail = select_fields(&[job], "job,stat")
            .expect_err("unknown field")
            .detail;
        assert!(
            detail.starts_with(
                "unknown field \"stat\"; expected ended_millis, job, left, map, name, output"
            ),
            "{detail}"
        );
    }

    #[test]
    fn names_of_a_nested_type_are_its_own_fields() {
        let names = names_of::<CurrentJob>();
        assert!(
            names.iter().any(|name| name == "job") && names.iter().any(|name| name == "why"),
            "{names:?}"
        );
    }
}
