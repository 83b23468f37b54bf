//! Makes a failing run smaller: leaves out its parts as long as it fails in the same way.

/// The most tries at one run.
const TRIES_MAX: u32 = 150;

/// Returns the parts of a failing run that are needed for the failure. `fails` runs it with some of its parts. Leaves
/// out halves first, then smaller and smaller shares.
pub fn shrink(parts: Vec<String>, mut fails: impl FnMut(&[String]) -> bool) -> Vec<String> {
    let mut kept = parts;
    let mut share = kept.len().div_ceil(2);
    let mut tries = 0;
    while share > 0 && !kept.is_empty() {
        let mut is_smaller = false;
        let mut begin = 0;
        while begin < kept.len() {
            if tries == TRIES_MAX {
                return kept;
            }
            tries += 1;
            let end = (begin + share).min(kept.len());
            let mut fewer = kept.clone();
            fewer.drain(begin..end);
            if fails(&fewer) {
                kept = fewer;
                is_smaller = true;
            } else {
                begin = end;
            }
        }
        if share > 1 {
            share = share.div_ceil(2);
        } else if !is_smaller {
            return kept;
        }
    }
    kept
}

/// Returns what distinguishes a violation from others: its text without numbers and names of values.
pub fn kind_of(violation: &str) -> String {
    let mut kind = String::new();
    for word in violation.split_whitespace().take(12) {
        if !word.contains(|character: char| character.is_ascii_digit() || character == '"') {
            kind.push_str(word);
            kind.push(' ');
        }
    }
    kind
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn needed_parts_are_found() {
        let parts: Vec<String> = (0..100).map(|number| format!("fault-{number}")).collect();
        let needed = ["fault-17", "fault-18", "fault-77"];
        let mut tries = 0;
        let kept = shrink(parts, |parts| {
            tries += 1;
            needed
                .iter()
                .all(|part| parts.iter().any(|kept| kept == part))
        });
        assert_eq!(kept, needed);
        assert!(tries < 60, "{tries}");
    }

    #[test]
    fn run_that_always_fails_needs_nothing() {
        let parts = vec!["job-1".to_owned(), "fault-1".to_owned()];
        assert_eq!(shrink(parts, |_| true), Vec::<String>::new());
        assert_eq!(shrink(Vec::new(), |_| true), Vec::<String>::new());
    }

    #[test]
    fn violations_that_differ_in_numbers_are_of_one_kind() {
        assert_eq!(
            kind_of("job-2: part-r-00001 is \"2 1 7\", not \"2 1 8\""),
            kind_of("job-1: part-r-00000 is \"1 0 7\", not \"1 0 3\"")
        );
        assert_ne!(kind_of("job-2: does not end"), kind_of("job-2: is killed"));
    }
}
