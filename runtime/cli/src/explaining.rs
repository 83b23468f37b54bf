//! Formats why jobs or tasks make no progress.

use std::fmt::Display;

use napreduce_engine::Reason;
use napreduce_protocol::several_lines;

/// Formats the reasons of each job or task, with its ID in front unless the reason starts with it.
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
    fn explanations_start_with_id_once() {
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
