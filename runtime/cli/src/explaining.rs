//! Why a job or a task does not get on, as it is printed.
//!
//! Owns their form. Does not own what is explained (live runtime).

use std::fmt::Display;

use napreduce_engine::Reason;
use napreduce_protocol::several_lines;

/// What is said of each job or task, with its name before it where that is not said anyway.
pub fn explanations(explained: &[(impl Display, Vec<Reason>)]) -> String {
    let line = |id: &str, line: &str| {
        if line.starts_with(id) {
            format!("{}\n", several_lines(line))
        } else {
            format!("{id}: {}\n", several_lines(line))
        }
    };
    let lines = |(id, reasons): &(_, Vec<Reason>)| {
        let id = format!("{id}");
        reasons.iter().map(|reason| line(&id, &reason.text)).collect::<String>()
    };
    explained.iter().map(lines).collect()
}

#[cfg(test)]
mod tests {
    use napreduce_engine::ReasonCode;

    use super::*;

    #[test]
    fn explanations_name_what_they_are_about() {
        let explained = [(
            "job_0007",
            vec![
                Reason::new(ReasonCode::AllSlotsTaken, "no slot is free"),
                Reason::new(ReasonCode::JobsBefore, "it is second"),
            ],
        )];
        assert_eq!(explanations(&explained), "job_0007: no slot is free\njob_0007: it is second\n");
        let named = [("job_0007", vec![Reason::new(ReasonCode::State, "job_0007 has ended")])];
        assert_eq!(explanations(&named), "job_0007 has ended\n");
    }
}
