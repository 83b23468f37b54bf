//! The reports of a job's guests: a check that each task reported exactly once, and their totals.

use std::collections::{BTreeMap, BTreeSet};

use napreduce_engine::{AttemptId, JobId, TaskId, TaskKind};
use napreduce_protocol::{Counter, CounterValues, JobPlan};

use crate::forms::{GuestPart, GuestReport};

/// The number of the one attempt of a task whose part counts.
const COUNTED: u32 = 1;

/// The reports of a job.
#[derive(Debug)]
pub(super) struct GuestOutcome {
    job: JobId,
    maps: u32,
    reduces: u32,
    reported: BTreeSet<u32>,
    parts: BTreeMap<u32, GuestPart>,
    counters: CounterValues,
    frames_written: u64,
    frames_read: u64,
}

impl GuestOutcome {
    pub(super) fn new(job: JobId, plan: &JobPlan) -> GuestOutcome {
        GuestOutcome {
            job,
            maps: u32::try_from(plan.splits.len()).unwrap_or(u32::MAX),
            reduces: plan.reduces,
            reported: BTreeSet::new(),
            parts: BTreeMap::new(),
            counters: CounterValues::default(),
            frames_written: 0,
            frames_read: 0,
        }
    }

    /// Returns the kind of the tasks that write parts, and their number.
    fn writers(&self) -> (TaskKind, u32) {
        match self.reduces {
            0 => (TaskKind::Map, self.maps),
            reduces => (TaskKind::Reduce, reduces),
        }
    }

    /// Adds the report of a task.
    ///
    /// # Errors
    /// Fails if it does not belong to this job.
    pub(super) fn take(&mut self, report: GuestReport) -> Result<(), String> {
        let (kind, tasks) = self.writers();
        let GuestReport {
            task,
            counters,
            frames,
            maps,
            part,
            ..
        } = report;
        if task.job != self.job || task.kind != kind || task.index >= tasks {
            return Err(format!(
                "the engine reported {task}, which is not a part-writing task of {}",
                self.job
            ));
        }
        let Some(part) = part else {
            return Err(format!("the report of {task} has no part"));
        };
        if self.parts.insert(task.index, part).is_some() {
            return Err(format!("the engine reported {task} twice"));
        }
        for map in &maps.indices {
            if *map >= self.maps || !self.reported.insert(*map) {
                return Err(format!(
                    "{task} reported map {map}, which is unknown or was reported before"
                ));
            }
        }
        self.counters.merge(&counters);
        self.counters.merge(&maps.counters);
        self.frames_written = self.frames_written.saturating_add(maps.frames);
        self.frames_read = self.frames_read.saturating_add(frames);
        Ok(())
    }

    /// Checks for completeness when the engine has completed all tasks.
    ///
    /// # Errors
    /// Fails if a task has not reported, or frames were lost.
    pub(super) fn check(&self) -> Result<(), String> {
        let (kind, tasks) = self.writers();
        if let Some(index) = (0..tasks).find(|index| !self.parts.contains_key(index)) {
            let task = TaskId {
                job: self.job,
                kind,
                index,
            };
            return Err(format!(
                "the engine completed the job without a report of {task}"
            ));
        }
        if kind == TaskKind::Map {
            return Ok(());
        }
        if let Some(index) = (0..self.maps).find(|map| !self.reported.contains(map)) {
            let task = TaskId {
                job: self.job,
                kind: TaskKind::Map,
                index,
            };
            return Err(format!("no reduce received the report of {task}"));
        }
        match (self.frames_written, self.frames_read) {
            (written, read) if written == read => Ok(()),
            (written, read) => Err(format!(
                "maps wrote {written} frames, but reduces read {read}: the engine lost some, or a retried map \
                 emitted different output"
            )),
        }
    }

    /// Returns the attempts that wrote a part, in the order of their tasks.
    pub(super) fn parts(&self) -> impl Iterator<Item = (AttemptId, &GuestPart)> {
        let (kind, _) = self.writers();
        let attempt = move |index| AttemptId {
            task: TaskId {
                job: self.job,
                kind,
                index,
            },
            number: COUNTED,
        };
        self.parts
            .iter()
            .map(move |(index, part)| (attempt(*index), part))
    }

    /// Returns the counters of the job, with the number of failed attempts.
    pub(super) fn counters(&self, failed_maps: u64, failed_reduces: u64) -> CounterValues {
        let mut counters = self.counters.clone();
        let launched = |tasks: u32, failed: u64| u64::from(tasks).saturating_add(failed);
        counters.add(
            Counter::LaunchedMaps.in_words(),
            launched(self.maps, failed_maps),
        );
        counters.add(
            Counter::LaunchedReduces.in_words(),
            launched(self.reduces, failed_reduces),
        );
        counters.add(Counter::FailedMaps.in_words(), failed_maps);
        counters.add(Counter::FailedReduces.in_words(), failed_reduces);
        counters
    }
}
