//! Why a job or a task does not get on, as it is printed.
//!
//! Owns the two forms of explanations. Does not own what is explained (live runtime).

use napreduce_live::several_lines;
use serde_json::{Value, json};

/// What is said of each job or task, with its name before it where that is not said anyway.
pub fn explanations(explained: &[(String, Vec<String>)]) -> String {
    let line = |id: &str, line: &str| match line.starts_with(id) {
        true => format!("{}\n", several_lines(line)),
        false => format!("{id}: {}\n", several_lines(line)),
    };
    explained.iter().flat_map(|(id, lines)| lines.iter().map(move |text| line(id, text))).collect()
}

/// The same for programs.
pub fn explanations_json(kind: &str, explained: &[(String, Vec<String>)]) -> Value {
    explained.iter().map(|(id, lines)| json!({ kind: id, "lines": lines })).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn explanations_name_what_they_are_about() {
        let explained =
            [("job_0007".to_owned(), vec!["no slot is free".to_owned(), "it is second".to_owned()])];
        assert_eq!(explanations(&explained), "job_0007: no slot is free\njob_0007: it is second\n");
        let named = [("job_0007".to_owned(), vec!["job_0007 has ended".to_owned()])];
        assert_eq!(explanations(&named), "job_0007 has ended\n");
        assert_eq!(
            explanations_json("job", &explained).to_string(),
            r#"[{"job":"job_0007","lines":["no slot is free","it is second"]}]"#
        );
    }
}
