//! Formats why jobs or tasks make no progress.

use napreduce_protocol::several_lines;

/// Formats the lines about each job or task, with its ID in front unless the line starts with it.
pub fn explanations(explained: impl Iterator<Item = (String, Vec<String>)>) -> String {
    let line = |id: &str, line: &str| {
        if line.starts_with(id) {
            format!("{}\n", several_lines(line))
        } else {
            format!("{id}: {}\n", several_lines(line))
        }
    };
    explained
        .map(|(id, lines)| lines.iter().map(|text| line(&id, text)).collect::<String>())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn explanations_start_with_id_once() {
        let of = |lines: &[&str]| {
            let lines = lines.iter().map(|line| (*line).to_owned()).collect();
            explanations([("job_0007".to_owned(), lines)].into_iter())
        };
        assert_eq!(
            of(&["no slot is free", "it is second"]),
            "job_0007: no slot is free\njob_0007: it is second\n"
        );
        assert_eq!(of(&["job_0007 has ended"]), "job_0007 has ended\n");
    }
}
