//! Metrics in Prometheus' older text form, 0.0.4, for readers that do not know OpenMetrics.
//!
//! Owns what differs between the two. Does not own any metric.

use std::collections::HashSet;

pub const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Whether a reader wants it, by what it accepts: whoever knows the newer form gets that.
pub fn is_wanted(accepts: &str) -> bool {
    accepts.contains("text/plain") && !accepts.contains("openmetrics")
}

/// What is said in the newer form: there a counter is described without the `_total` that its samples have,
/// and the end is marked.
pub fn of(open: &str) -> String {
    let counter = |line: &'_ str| Some(line.strip_prefix("# TYPE ")?.strip_suffix(" counter")?.to_owned());
    let counters: HashSet<String> = open.lines().filter_map(counter).collect();
    let mut plain = String::with_capacity(open.len());
    for line in open.lines().filter(|line| *line != "# EOF" && !line.starts_with("# UNIT ")) {
        let mut words = line.splitn(4, ' ');
        match (words.next(), words.next(), words.next(), words.next()) {
            (Some("#"), Some(what), Some(name), rest) if counters.contains(name) => {
                plain.push_str(&format!("# {what} {name}_total {}\n", rest.unwrap_or_default()));
            }
            _ => plain.extend([line, "\n"]),
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_are_described_by_their_whole_names_and_nothing_marks_the_end() {
        let open = "# HELP nap_jobs Jobs by state.\n# TYPE nap_jobs gauge\nnap_jobs 1\n# HELP nap_ends Jobs that ended.\n\
                    # TYPE nap_ends counter\nnap_ends_total 2\n# EOF\n";
        let plain = "# HELP nap_jobs Jobs by state.\n# TYPE nap_jobs gauge\nnap_jobs 1\n# HELP nap_ends_total Jobs that \
                     ended.\n# TYPE nap_ends_total counter\nnap_ends_total 2\n";
        assert_eq!(of(open), plain);
    }

    #[test]
    fn who_knows_the_newer_form_gets_it() {
        assert!(is_wanted("text/plain") && is_wanted("text/plain;version=0.0.4;q=0.5"));
        assert!(!is_wanted("application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4;q=0.5"));
        assert!(!is_wanted("*/*") && !is_wanted(""));
    }
}
