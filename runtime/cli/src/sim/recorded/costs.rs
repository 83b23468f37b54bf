//! Costs of preemptions on the recorded cluster: medians from the ledgers of its jobs.

use napreduce_engine::{Primitive, Span};
use napreduce_history::{EndedJob, quantile};
use napreduce_protocol::{PreemptionEnd, PreemptionSummary};
use napreduce_sim::{Cost, Overheads};

/// Measured times in microseconds.
#[derive(Debug, Default)]
pub struct MeasuredCosts {
    suspend: Vec<u64>,
    resume: Vec<u64>,
    checkpoint: Vec<u64>,
    restore: Vec<u64>,
    kill: Vec<u64>,
    /// Number of requests by operators, which are not simulated.
    by_operators: u64,
}

impl MeasuredCosts {
    /// Adds the costs of a job.
    pub fn add(&mut self, ended: &EndedJob) {
        let detail = &ended.detail;
        for one in &detail.preemptions {
            let took = one
                .freed_micros
                .zip(one.ordered_micros)
                .map(|(freed, ordered)| freed.saturating_sub(ordered));
            self.by_operators += u64::from(one.by == "operator");
            if let (Some(took), Some(of)) = (took, times_of(one)) {
                of(self).push(took);
            }
        }
        let resumed = detail
            .resumes
            .iter()
            .filter_map(|one| Some(one.resumed_micros?.saturating_sub(one.ordered_micros)));
        self.resume.extend(resumed);
        let restored = detail.restores.iter().filter(|one| one.refused.is_none());
        self.restore.extend(
            restored
                .filter_map(|one| Some(one.restored_micros?.saturating_sub(one.ordered_micros))),
        );
    }

    /// Returns the medians; a primitive without measurements costs nothing.
    pub fn overheads(&self) -> Overheads {
        let cost = |times: &[u64]| Cost::fixed(median(times).unwrap_or_default());
        Overheads {
            suspend: cost(&self.suspend),
            resume: cost(&self.resume),
            checkpoint_write: cost(&self.checkpoint),
            checkpoint_read: cost(&self.restore),
            kill: median(&self.kill).unwrap_or_default(),
            ..Overheads::default()
        }
    }

    /// Formats the medians, one line per group.
    pub fn in_words(&self) -> Vec<String> {
        let known = [
            ("suspend", &self.suspend),
            ("resume", &self.resume),
            ("checkpoint-write", &self.checkpoint),
            ("checkpoint-read", &self.restore),
            ("kill-cleanup", &self.kill),
        ];
        let measured = known.iter().filter_map(|(name, times)| {
            let millis = median(times)?.0 as f64 / 1e3;
            Some(format!("{name} {millis:.1} ms ({})", times.len()))
        });
        let measured: Vec<String> = measured.collect();
        let free: Vec<&str> = known
            .iter()
            .filter(|(_, times)| times.is_empty())
            .map(|(name, _)| *name)
            .collect();
        let mut lines = Vec::new();
        if !measured.is_empty() {
            lines.push(format!("measured medians (count): {}", measured.join(", ")));
        }
        if !free.is_empty() {
            let flags: Vec<String> = free.iter().map(|name| format!("--{name}")).collect();
            lines.push(format!(
                "not measured, simulated at no cost unless set: {}",
                flags.join(", ")
            ));
        }
        if self.by_operators > 0 {
            let requests = if self.by_operators == 1 {
                "request of an operator is"
            } else {
                "requests of operators are"
            };
            lines.push(format!("{} {requests} not repeated", self.by_operators));
        }
        lines
    }
}

/// Returns the list of times that a preemption belongs to.
fn times_of(one: &PreemptionSummary) -> Option<fn(&mut MeasuredCosts) -> &mut Vec<u64>> {
    match (one.primitive, one.end?) {
        (Primitive::Suspend, PreemptionEnd::Suspended) => Some(|costs| &mut costs.suspend),
        (Primitive::Checkpoint, PreemptionEnd::Checkpointed) => Some(|costs| &mut costs.checkpoint),
        (Primitive::Kill, PreemptionEnd::Killed) => Some(|costs| &mut costs.kill),
        _ => None,
    }
}

fn median(times: &[u64]) -> Option<Span> {
    let mut sorted = times.to_vec();
    sorted.sort_unstable();
    quantile(&sorted, 50).map(Span)
}
