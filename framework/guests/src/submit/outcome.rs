//! What the guests of a job have brought: reports, each task's once, and what they add up to.
//!
//! Owns the check that nothing is missing and nothing there twice. Does not own the commit (`output`).

use std::collections::{BTreeMap, BTreeSet};

use napreduce_engine::{AttemptId, JobId, TaskId, TaskKind};
use napreduce_protocol::{Counter, CounterValues, JobPlan};

use crate::forms::{GuestPart, GuestReport};

/// The only attempt of a task whose part counts is known by this number.
const COUNTED: u32 = 1;

/// What was reported of a job.
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

    /// The kind of the tasks that write parts, and how many there are.
    fn writers(&self) -> (TaskKind, u32) {
        match self.reduces {
            0 => (TaskKind::Map, self.maps),
            reduces => (TaskKind::Reduce, reduces),
        }
    }

    /// Takes in the report of a task.
    ///
    /// # Errors
    /// Why it cannot be one of this job.
    pub(super) fn take(&mut self, report: GuestReport) -> Result<(), String> {
        let (kind, tasks) = self.writers();
        let GuestReport { task, counters, frames, maps, part, .. } = report;
        if task.job != self.job || task.kind != kind || task.index >= tasks {
            return Err(format!(
                "the engine has reported {task}, which is no task of {} that writes a part",
                self.job
            ));
        }
        let Some(part) = part else { return Err(format!("the report of {task} names no part")) };
        if self.parts.insert(task.index, part).is_some() {
            return Err(format!("the engine has reported {task} twice"));
        }
        for map in &maps.indices {
            if *map >= self.maps || !self.reported.insert(*map) {
                return Err(format!(
                    "{task} has reported map {map}, which is not there or was reported before"
                ));
            }
        }
        self.counters.merge(&counters);
        self.counters.merge(&maps.counters);
        self.frames_written = self.frames_written.saturating_add(maps.frames);
        self.frames_read = self.frames_read.saturating_add(frames);
        Ok(())
    }

    /// Says what is missing when the engine has done all tasks.
    ///
    /// # Errors
    /// A task that was not reported, or frames that were lost on their way.
    pub(super) fn check(&self) -> Result<(), String> {
        let (kind, tasks) = self.writers();
        if let Some(index) = (0..tasks).find(|index| !self.parts.contains_key(index)) {
            let task = TaskId { job: self.job, kind, index };
            return Err(format!("the engine says that it has done all tasks, and has not reported {task}"));
        }
        if kind == TaskKind::Map {
            return Ok(());
        }
        if let Some(index) = (0..self.maps).find(|map| !self.reported.contains(map)) {
            let task = TaskId { job: self.job, kind: TaskKind::Map, index };
            return Err(format!("the report of {task} has come to no reduce"));
        }
        match (self.frames_written, self.frames_read) {
            (written, read) if written == read => Ok(()),
            (written, read) => Err(format!(
                "maps have written {written} frames, and reduces have read {read}: the engine has lost some, or a map that \
                 was run again has emitted something else"
            )),
        }
    }

    /// The attempts that wrote a part, in the order of their tasks.
    pub(super) fn parts(&self) -> impl Iterator<Item = (AttemptId, &GuestPart)> {
        let (kind, _) = self.writers();
        let attempt = move |index| AttemptId { task: TaskId { job: self.job, kind, index }, number: COUNTED };
        self.parts.iter().map(move |(index, part)| (attempt(*index), part))
    }

    /// The counters of the job; so many attempts have failed.
    pub(super) fn counters(&self, failed_maps: u64, failed_reduces: u64) -> CounterValues {
        let mut counters = self.counters.clone();
        let launched = |tasks: u32, failed: u64| u64::from(tasks).saturating_add(failed);
        counters.add(Counter::LaunchedMaps.in_words(), launched(self.maps, failed_maps));
        counters.add(Counter::LaunchedReduces.in_words(), launched(self.reduces, failed_reduces));
        counters.add(Counter::FailedMaps.in_words(), failed_maps);
        counters.add(Counter::FailedReduces.in_words(), failed_reduces);
        counters
    }
}
