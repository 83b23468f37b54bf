//! The query parameter `fields`: a list whose items have only the selected fields.

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};

use super::super::call::{names_of, object_of};
use crate::problem::Problem;

/// The selected fields of each item.
pub struct Selection<'wanted> {
    names: Vec<&'wanted str>,
}

impl<'wanted> Selection<'wanted> {
    /// The comma-separated fields `wanted` of items of `T`.
    ///
    /// # Errors
    /// `400` if an item has no such field; the message lists the known ones.
    pub fn new<T: JsonSchema>(wanted: &'wanted str) -> Result<Selection<'wanted>, Problem> {
        let known = names_of::<T>();
        let names: Vec<&str> = wanted.split(',').collect();
        for name in &names {
            if !known.iter().any(|known| known == name) {
                return Err(Problem::invalid(format!(
                    "unknown field {name:?}; expected {}",
                    known.join(", ")
                )));
            }
        }
        Ok(Selection { names })
    }

    pub fn names(&self) -> Vec<String> {
        self.names.iter().map(|name| (*name).to_owned()).collect()
    }

    /// Returns an item with the selected fields only.
    pub fn select(&self, item: &impl Serialize) -> Result<Map<String, Value>, Problem> {
        let mut object = object_of(item)?;
        object.retain(|name, _| self.names.contains(&name.as_str()));
        Ok(object)
    }
}

#[cfg(test)]
mod tests {
    use napreduce_answers::{CurrentJob, JobAnswer};
    use serde_json::json;

    use super::*;
    use napreduce_answers::samples::summary;

    #[test]
    fn fields_selects_the_named_fields_only() {
        let job = JobAnswer::from(&summary());
        let selection = Selection::new::<JobAnswer>("state,job").expect("known fields");
        let thin = selection.select(&job).expect("an object");
        assert_eq!(
            Value::from(thin),
            json!({ "job": "job_0007", "state": "failed" })
        );
        let refused = Selection::new::<JobAnswer>("job,stat").err();
        let detail = refused.expect("unknown field").detail;
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
