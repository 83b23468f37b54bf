//! The older Prometheus text format 0.0.4, for scrapers without OpenMetrics support.

use std::collections::HashSet;

pub const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Whether `Accept` asks for this format; a scraper that also accepts OpenMetrics gets OpenMetrics.
pub fn is_wanted(accepts: &str) -> bool {
    accepts.contains("text/plain") && !accepts.contains("openmetrics")
}

/// Converts from OpenMetrics, which describes a counter without its suffix `_total` and ends with `# EOF`.
pub fn of(open: &str) -> String {
    let counter = |line: &'_ str| {
        Some(
            line.strip_prefix("# TYPE ")?
                .strip_suffix(" counter")?
                .to_owned(),
        )
    };
    let counters: HashSet<String> = open.lines().filter_map(counter).collect();
    let mut plain = String::with_capacity(open.len());
    for line in open
        .lines()
        .filter(|line| *line != "# EOF" && !line.starts_with("# UNIT "))
    {
        let mut words = line.splitn(4, ' ');
        match (words.next(), words.next(), words.next(), words.next()) {
            (Some("#"), Some(what), Some(name), rest) if counters.contains(name) => {
                plain.push_str(&format!(
                    "# {what} {name}_total {}\n",
                    rest.unwrap_or_default()
                ));
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
    fn counters_get_their_suffix_and_eof_is_removed() {
        let open = "# HELP nap_jobs Jobs by state.\n# TYPE nap_jobs gauge\nnap_jobs 1\n# HELP nap_ends Jobs that ended.\n\
                    # TYPE nap_ends counter\nnap_ends_total 2\n# EOF\n";
        let plain = "# HELP nap_jobs Jobs by state.\n# TYPE nap_jobs gauge\nnap_jobs 1\n# HELP nap_ends_total Jobs that \
                     ended.\n# TYPE nap_ends_total counter\nnap_ends_total 2\n";
        assert_eq!(of(open), plain);
    }

    #[test]
    fn openmetrics_is_preferred() {
        assert!(is_wanted("text/plain") && is_wanted("text/plain;version=0.0.4;q=0.5"));
        assert!(!is_wanted(
            "application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4;q=0.5"
        ));
        assert!(!is_wanted("*/*") && !is_wanted(""));
    }
}
