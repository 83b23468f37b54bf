//! Owns the report of the search for differences: what was done to each job, and whether anybody could tell.
//! The search itself belongs to the experiment.

use std::collections::BTreeMap;

use napreduce_live::{JobDetail, PreemptionEnd};
use serde::Serialize;

use crate::machine::Machine;
use crate::table::table;

/// All of one search.
#[derive(Clone, Debug, Serialize)]
pub struct IdentityReport {
    /// Always `identity`.
    pub experiment: &'static str,
    pub machine: Machine,
    /// Where the choices started.
    pub seed: u64,
    /// Every job that was preempted.
    pub runs: Vec<IdentityRun>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct IdentityRun {
    /// From 1.
    pub round: u32,
    pub shape: &'static str,
    pub job: String,
    /// How often each end of a preemption was reached.
    pub ends: BTreeMap<&'static str, usize>,
    /// Attempts that started from a checkpoint.
    pub restores: usize,
    /// Of them, on another worker than where it was written.
    pub migrations: usize,
    /// Checkpoints that were refused, in words.
    pub refused_checkpoints: Vec<String>,
    /// Commands that came too late.
    pub refused_commands: u32,
    /// Whether the output is that of an undisturbed run.
    pub same_output: bool,
    /// Whether the counts of records are.
    pub same_counts: bool,
}

impl IdentityRun {
    pub(super) fn new(
        round: u32,
        shape: &'static str,
        detail: &JobDetail,
        refused_commands: u32,
        same_output: bool,
        same_counts: bool,
    ) -> IdentityRun {
        let mut ends = BTreeMap::new();
        for end in detail.preemptions.iter().filter_map(|one| one.end) {
            *ends.entry(end.in_words()).or_default() += 1;
        }
        let moved =
            detail.restores.iter().filter(|one| one.from_worker.is_some_and(|from| from != one.worker));
        IdentityRun {
            round,
            shape,
            job: detail.summary.job.to_string(),
            ends,
            restores: detail.restores.len(),
            migrations: moved.count(),
            refused_checkpoints: detail.restores.iter().filter_map(|one| one.refused.clone()).collect(),
            refused_commands,
            same_output,
            same_counts,
        }
    }

    /// Whether nobody can tell that it was preempted.
    pub fn is_right(&self) -> bool {
        self.same_output && self.same_counts && self.refused_checkpoints.is_empty()
    }

    /// What was done and found, in a line.
    pub fn line(&self) -> String {
        let ends: Vec<String> = self.ends.iter().map(|(end, count)| format!("{count} {end}")).collect();
        let done = if ends.is_empty() { "nothing was preempted".to_owned() } else { ends.join(", ") };
        let mut found = Vec::new();
        found.extend((!self.same_output).then_some("OUTPUT DIFFERS"));
        found.extend((!self.same_counts).then_some("COUNTS DIFFER"));
        found.extend((!self.refused_checkpoints.is_empty()).then_some("A CHECKPOINT WAS REFUSED"));
        let found = if found.is_empty() { "identical".to_owned() } else { found.join(", ") };
        format!(
            "{} {}: {done}, {} restored ({} elsewhere): {found}",
            self.job, self.shape, self.restores, self.migrations
        )
    }
}

impl IdentityReport {
    pub(super) fn new(machine: Machine, seed: u64) -> IdentityReport {
        IdentityReport { experiment: "identity", machine, seed, runs: Vec::new() }
    }

    /// Whether no difference was found.
    pub fn succeeded(&self) -> bool {
        self.runs.iter().all(IdentityRun::is_right)
    }

    /// What was done, by shape.
    pub fn table(&self) -> String {
        let mut shapes: Vec<&str> = self.runs.iter().map(|run| run.shape).collect();
        shapes.sort_unstable();
        shapes.dedup();
        let row = |shape: &&str| {
            let own: Vec<&IdentityRun> = self.runs.iter().filter(|run| run.shape == *shape).collect();
            let end = |end: PreemptionEnd| -> usize {
                own.iter().filter_map(|run| run.ends.get(end.in_words())).sum()
            };
            let wrong = own.iter().filter(|run| !run.is_right()).count();
            let numbers = [
                own.len(),
                end(PreemptionEnd::Suspended),
                end(PreemptionEnd::Checkpointed),
                end(PreemptionEnd::Killed),
                own.iter().map(|run| run.restores).sum(),
                own.iter().map(|run| run.migrations).sum(),
                wrong,
            ];
            [(*shape).to_owned()].into_iter().chain(numbers.map(|number| number.to_string())).collect()
        };
        let columns = ["jobs", "suspended", "checkpointed", "killed", "restored", "elsewhere", "different"];
        let rows = shapes.iter().map(row).collect();
        let mut text = format!(
            "{}\nseed {}\n\n{}\n\n",
            self.machine.line(),
            self.seed,
            table(&["shape"], &columns, rows)
        );
        for run in self.runs.iter().filter(|run| !run.is_right()) {
            text.push_str(&format!("{}\n", run.line()));
        }
        text.push_str(if self.succeeded() {
            "no output and no count of records tells that a job was preempted\n"
        } else {
            "DIFFERENCES WERE FOUND\n"
        });
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(same_output: bool, refused: &[&str]) -> IdentityRun {
        IdentityRun {
            round: 1,
            shape: "words",
            job: "job_0009".to_owned(),
            ends: BTreeMap::from([("checkpointed", 2), ("killed", 1)]),
            restores: 2,
            migrations: 1,
            refused_checkpoints: refused.iter().map(|text| (*text).to_owned()).collect(),
            refused_commands: 0,
            same_output,
            same_counts: true,
        }
    }

    #[test]
    fn what_was_done_is_counted_and_differences_stand_out() {
        let mut report = IdentityReport::new(Machine::describe(), 7);
        report.runs = vec![run(true, &[]), run(true, &[])];
        assert!(report.succeeded() && report.table().contains("no output and no count"));
        report.runs.push(run(false, &[]));
        let text = report.table();
        assert!(!report.succeeded());
        assert!(
            text.contains(
                "job_0009 words: 2 checkpointed, 1 killed, 2 restored (1 elsewhere): OUTPUT DIFFERS"
            )
        );
        assert!(text.contains("DIFFERENCES WERE FOUND") && text.contains("seed 7"), "{text}");
    }

    #[test]
    fn a_checkpoint_that_is_refused_is_no_success() {
        let mut report = IdentityReport::new(Machine::describe(), 7);
        report.runs = vec![run(true, &["flipped"])];
        assert!(!report.succeeded() && report.table().contains("A CHECKPOINT WAS REFUSED"));
    }
}
