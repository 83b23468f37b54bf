//! The results of the suite: what goes into JSON, and the table for people. A ratio is a peer's time over ours
//! in the same repetition: 2.0 means that the peer takes twice as long.

use std::collections::BTreeMap;

use napreduce_protocol::ByteSize;
use serde::Serialize;

use super::SuiteJob;
use crate::machine::Machine;
use crate::program::Resources;
use crate::report::{Report, dash, seconds, table};
use crate::statistics::{Interval, Summary, median, median_interval, ratio_text};

/// All of one run of the suite.
#[derive(Clone, Debug, Serialize)]
pub struct SuiteReport {
    pub experiment: &'static str,
    pub machine: Machine,
    pub conditions: SuiteConditions,
    pub jobs: Vec<SuiteJobReport>,
}

/// What a reader needs to repeat it.
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
    /// Who took part, we first.
    pub contenders: Vec<SuiteContender>,
}

#[derive(Clone, Debug, Serialize)]
pub struct SuiteContender {
    pub name: &'static str,
    pub version: String,
    /// Why it has no figures, or fewer than were asked for.
    pub failure: Option<String>,
    /// Wall time in seconds of every repetition, in order.
    pub seconds: Vec<f64>,
    pub wall_seconds: Option<Summary>,
    /// Its time over ours, in every repetition.
    pub ratios: Vec<f64>,
    pub ratio: Option<f64>,
    /// Bootstrap interval (95 %) of that median.
    pub ratio_interval: Option<Interval>,
}

impl SuiteContender {
    pub(super) fn new(
        name: &'static str,
        version: String,
        seconds: Vec<f64>,
        failure: Option<String>,
        ours: &[f64],
    ) -> SuiteContender {
        let whole = failure.is_none();
        let wall_seconds = Summary::of(&seconds).filter(|_| whole);
        let ratios: Vec<f64> = seconds.iter().zip(ours).map(|(theirs, ours)| theirs / ours).collect();
        SuiteContender {
            wall_seconds,
            ratio: median(&ratios).filter(|_| whole),
            ratio_interval: median_interval(&ratios).filter(|_| whole),
            ratios,
            name,
            version,
            failure,
            seconds,
        }
    }

    fn row(&self) -> [String; 3] {
        let Some(wall) = &self.wall_seconds else { return ["failed".to_owned(), dash(), dash()] };
        [
            seconds(wall.median),
            format!("{} .. {}", seconds(wall.min), seconds(wall.max)),
            self.ratio.map_or_else(dash, |ratio| ratio_text(ratio, self.ratio_interval, 2)),
        ]
    }
}

impl SuiteJobReport {
    pub(super) fn new(
        job: SuiteJob,
        (input_bytes, output_bytes): (ByteSize, ByteSize),
        counters: &BTreeMap<String, u64>,
        contenders: Vec<SuiteContender>,
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
            contenders,
        }
    }
}

const COLUMNS: [&str; 7] =
    ["median", "min .. max", "ratio to ours (95 %)", "input", "map output", "shuffle", "output"];

impl Report for SuiteReport {
    /// Whether every contender ran to the end with right outputs.
    fn succeeded(&self) -> bool {
        self.failures().next().is_none()
    }

    /// The figures as a table, with the conditions above and failures below.
    fn table(&self) -> String {
        let SuiteConditions { size, repetitions, resources } = &self.conditions;
        let ratio = |ratio: Option<f64>| ratio.map_or_else(dash, |ratio| format!("{ratio:.3}"));
        let mut rows = Vec::new();
        let mut versions: Vec<&str> = Vec::new();
        for job in &self.jobs {
            for (index, contender) in job.contenders.iter().enumerate() {
                let mut row = vec![job.job.to_string(), contender.name.to_owned()];
                row.extend(contender.row());
                row.extend(match index {
                    0 => [
                        job.input_bytes.rounded(),
                        ratio(job.map_output_ratio),
                        ratio(job.shuffle_ratio),
                        job.output_bytes.rounded(),
                    ],
                    _ => [dash(), dash(), dash(), dash()],
                });
                rows.push(row);
                if !versions.contains(&contender.version.as_str()) {
                    versions.push(&contender.version);
                }
            }
        }
        let mut text = format!(
            "{}\n{} slots, {} task memory, {repetitions} repetitions, about {size} of each kind of data\n{}\n\n{}\n\
             \nmap output and shuffle: bytes over bytes of the input; ratio: within a repetition\n",
            self.machine.line(),
            resources.slots,
            resources.task_memory,
            versions.join(", "),
            table(&["job", "contender"], &COLUMNS, rows),
        );
        for failure in self.failures() {
            text.push_str(&format!("\nfailed: {failure}\n"));
        }
        text
    }
}

impl SuiteReport {
    fn failures(&self) -> impl Iterator<Item = String> {
        self.jobs.iter().flat_map(|job| {
            job.contenders.iter().filter_map(move |contender| {
                Some(format!("{} {}: {}", job.job, contender.name, contender.failure.as_ref()?))
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ratios_are_taken_within_a_repetition() {
        let peer =
            SuiteContender::new("duckdb", String::new(), vec![2.0, 30.0, 3.0], None, &[1.0, 10.0, 2.0]);
        assert_eq!((peer.ratios, peer.ratio), (vec![2.0, 3.0, 1.5], Some(2.0)));
        let out =
            SuiteContender::new("polars", String::new(), vec![2.0], Some("gone".to_owned()), &[1.0, 1.0]);
        assert_eq!((out.ratio, out.wall_seconds.is_none(), out.row()[0].as_str()), (None, true, "failed"));
    }

    #[test]
    fn shuffle_is_told_over_the_input() {
        let counters =
            BTreeMap::from([("MAP_OUTPUT_BYTES".to_owned(), 300), ("REDUCE_SHUFFLE_BYTES".to_owned(), 50)]);
        let bytes = |bytes| (ByteSize::new(bytes), ByteSize::new(1));
        let report = SuiteJobReport::new(SuiteJob::Wordcount, bytes(100), &counters, Vec::new());
        assert_eq!((report.map_output_ratio, report.shuffle_ratio), (Some(3.0), Some(0.5)));
        let empty = SuiteJobReport::new(SuiteJob::Wordcount, bytes(0), &counters, Vec::new());
        assert_eq!((empty.map_output_ratio, empty.shuffle_ratio), (None, None));
    }
}
