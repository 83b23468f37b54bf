//! The results of the suite, as JSON and as a table.

use std::collections::BTreeMap;

use napreduce_protocol::ByteSize;
use serde::Serialize;

use super::SuiteJob;
use crate::contest::{ContenderReport, failures, versions};
use crate::machine::Machine;
use crate::program::Resources;
use crate::report::{Report, dash, table};

#[derive(Clone, Debug, Serialize)]
pub struct SuiteReport {
    pub experiment: &'static str,
    pub machine: Machine,
    pub conditions: SuiteConditions,
    pub jobs: Vec<SuiteJobReport>,
}

/// The information needed to repeat it.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct SuiteConditions {
    /// About how much of each kind of data there was.
    pub size: ByteSize,
    /// Measured runs of each contender.
    pub repetitions: u32,
    #[serde(flatten)]
    pub resources: Resources,
}

#[derive(Clone, Debug, Serialize)]
pub struct SuiteJobReport {
    pub job: SuiteJob,
    pub input_bytes: ByteSize,
    /// Bytes of part files.
    pub output_bytes: ByteSize,
    /// Bytes of keys and values that the maps emitted, over those of the input; absent when the program does
    /// not count them.
    pub map_output_ratio: Option<f64>,
    /// Bytes that reduces read, after combining and compression, over those of the input.
    pub shuffle_ratio: Option<f64>,
    /// Ours first.
    pub contenders: Vec<ContenderReport>,
}

impl SuiteJobReport {
    pub(super) fn new(
        job: SuiteJob,
        input_bytes: ByteSize,
        output_bytes: ByteSize,
        counters: &BTreeMap<String, u64>,
    ) -> SuiteJobReport {
        let over_input = |counter: &str| {
            let bytes = *counters.get(counter)? as f64;
            (input_bytes.bytes() > 0).then(|| bytes / input_bytes.bytes() as f64)
        };
        SuiteJobReport {
            job,
            input_bytes,
            output_bytes,
            map_output_ratio: over_input("MAP_OUTPUT_BYTES"),
            shuffle_ratio: over_input("REDUCE_SHUFFLE_BYTES"),
            contenders: Vec::new(),
        }
    }
}

const COLUMNS: [&str; 7] = [
    "median",
    "min .. max",
    "ratio to ours (95 %)",
    "input",
    "map output",
    "shuffle",
    "output",
];

impl Report for SuiteReport {
    /// Whether every contender ran to the end with right outputs.
    fn succeeded(&self) -> bool {
        self.failures().is_empty()
    }

    fn table(&self) -> String {
        let SuiteConditions {
            size,
            repetitions,
            resources,
        } = &self.conditions;
        let ratio = |ratio: Option<f64>| ratio.map_or_else(dash, |ratio| format!("{ratio:.3}"));
        let mut rows = Vec::new();
        for job in &self.jobs {
            for (place, contender) in job.contenders.iter().enumerate() {
                let mut row = vec![job.job.to_string(), contender.name.clone()];
                row.extend(
                    contender
                        .cells()
                        .unwrap_or_else(|| ["failed".to_owned(), dash(), dash()]),
                );
                if place == 0 {
                    row.extend([
                        job.input_bytes.rounded(),
                        ratio(job.map_output_ratio),
                        ratio(job.shuffle_ratio),
                        job.output_bytes.rounded(),
                    ]);
                }
                row.resize_with(2 + COLUMNS.len(), dash);
                rows.push(row);
            }
        }
        let mut text = format!(
            "{}\n{} slots, {} task memory, {repetitions} repetitions, about {size} of each kind of data\n{}\n\n{}\n\
             \nmap output and shuffle: bytes over bytes of the input; ratio: within a repetition\n",
            self.machine.line(),
            resources.slots,
            resources.task_memory,
            versions(self.jobs.iter().flat_map(|job| &job.contenders)),
            table(&["job", "contender"], &COLUMNS, rows),
        );
        for failure in self.failures() {
            text.push_str(&format!("\n{failure}\n"));
        }
        text
    }
}

impl SuiteReport {
    fn failures(&self) -> Vec<String> {
        self.jobs
            .iter()
            .flat_map(|job| failures(job.job, &job.contenders))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn traffic_is_reported_as_a_share_of_the_input() {
        let counters = BTreeMap::from([
            ("MAP_OUTPUT_BYTES".to_owned(), 300),
            ("REDUCE_SHUFFLE_BYTES".to_owned(), 50),
        ]);
        let of = |input| {
            let bytes = ByteSize::new;
            let report =
                SuiteJobReport::new(SuiteJob::Wordcount, bytes(input), bytes(1), &counters);
            (report.map_output_ratio, report.shuffle_ratio)
        };
        assert_eq!((of(100), of(0)), ((Some(3.0), Some(0.5)), (None, None)));
    }
}
