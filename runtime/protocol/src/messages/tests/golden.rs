//! Compares the bytes of every message between processes of a cluster with `golden.txt`, which belongs to the
//! current protocol version.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use super::super::*;
use super::sampler::samples;
use crate::messages::NETWORK_VERSION;
use crate::wire::{Incoming, Outgoing, encode};

const GOLDEN: &str = include_str!("golden.txt");
const WRITE: &str = "NAPREDUCE_WRITE_GOLDEN";

/// Returns a line for each sample: the message, its variants, and the bytes of its frame.
fn lines<M: Incoming + Outgoing>(message: &str) -> Vec<String> {
    let line = |(path, sample): (String, M)| {
        let mut line = format!("{message} {path} ");
        for byte in encode(&sample).unwrap() {
            write!(line, "{byte:02x}").unwrap();
        }
        line
    };
    samples().into_iter().map(line).collect()
}

fn all_lines() -> Vec<String> {
    [
        lines::<FromWorker>("FromWorker"),
        lines::<ToWorker>("ToWorker"),
        lines::<ToCoordinator>("ToCoordinator"),
        lines::<FromCoordinator>("FromCoordinator"),
        lines::<ToDataServer>("ToDataServer"),
        lines::<FromDataServer>("FromDataServer"),
    ]
    .concat()
}

/// Groups lines by their part before the bytes.
fn by_name<'a>(lines: impl IntoIterator<Item = &'a str>) -> BTreeMap<&'a str, Vec<&'a str>> {
    let mut by_name: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (name, bytes) in lines.into_iter().filter_map(|line| line.rsplit_once(' ')) {
        by_name.entry(name).or_default().push(bytes);
    }
    by_name
}

#[test]
fn message_bytes_match_golden_file() {
    let lines = all_lines();
    let text = format!("network version {NETWORK_VERSION}\n{}\n", lines.join("\n"));
    if std::env::var_os(WRITE).is_some() {
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/messages/tests/golden.txt");
        std::fs::write(file, text).unwrap();
        return;
    }
    if GOLDEN == text {
        return;
    }
    let written = by_name(GOLDEN.lines().skip(1));
    let now = by_name(lines.iter().map(String::as_str));
    let changed = |name: &&&str| written.get(**name) != now.get(**name);
    let mut names: Vec<&&str> = written.keys().chain(now.keys()).filter(changed).collect();
    names.sort();
    names.dedup();
    panic!(
        "the bytes of these messages differ from golden.txt: {names:?}. If NETWORK_VERSION {NETWORK_VERSION} has been \
         released, raise it. Then run this test with {WRITE}=1 to rewrite golden.txt"
    );
}

#[test]
fn samples_cover_variants_with_distinct_bytes() {
    let lines = all_lines();
    for path in [
        "FromWorker Hello",
        "FromWorker Reported.Happened",
        "ToWorker Ordered.Launch",
        "ToWorker Leave",
        "ToWorker Ordered.Suspend",
        "FromWorker Reported.Preempted",
        "ToCoordinator ListWorkers",
        "FromCoordinator Refused",
        "FromDataServer Blocks",
    ] {
        let begins = |line: &&String| {
            line.starts_with(&format!("{path} ")) || line.starts_with(&format!("{path}."))
        };
        assert!(
            lines.iter().any(|line| begins(&line)),
            "no sample of {path}"
        );
    }
    let mut unique = lines.clone();
    unique.sort();
    unique.dedup();
    assert_eq!(unique.len(), lines.len());
}
