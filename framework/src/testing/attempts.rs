//! Runs the tasks of a job, attempt by attempt, in the test's own thread. It takes the place of a worker and
//! a coordinator: task descriptions, file locations, and retries after interruptions.

use std::collections::BTreeMap;
use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard};

use napreduce_engine::{AttemptId, JobId, TaskId, TaskKind};
use napreduce_protocol::printing::print_error;
use napreduce_protocol::{
    ByteSize, CounterValues, MapTask, NamedPart, PartOutput, ReduceTask, TaskError, lock,
};
use napreduce_task::{
    Ask, Checkpoint, CheckpointStage, MapResult, ReduceResult, Script, TaskContext,
    set_user_counters, user_counters,
};

use super::folder::Folder;
use super::interruptions::{Interruption, Preemption, Schedule};
use super::{JobOutput, JobTest, TestInput};
use crate::builder::Job;
use crate::input::{InputFile, InputSplit, Split, quoted};
use crate::limits;
use crate::program::set_side_files;
use crate::settings::Settings;

/// More than any test needs; detects attempts that make no progress.
const ATTEMPTS_MAX: u32 = 100_000;

/// User counters are global to the process, and a trial resets them.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// Prevents trials of other tests from resetting the user counters.
pub(crate) fn counters_alone() -> MutexGuard<'static, ()> {
    lock(&ONE_AT_A_TIME)
}

/// One run of a job.
pub(super) struct Trial<'t, J> {
    test: &'t JobTest<J>,
    settings: Settings,
    folder: Folder,
    /// Boundaries of each task in an undisturbed run; empty until known.
    boundaries: &'t [u64],
    /// Damages each new checkpoint; attempts may then reject it and fail.
    tamper: Option<&'t dyn Fn(&Path)>,
}

/// The result of a run.
pub(super) struct TrialResult {
    pub(super) output: JobOutput,
    /// Boundaries of each task's last attempt, maps first.
    pub(super) boundaries: Vec<u64>,
    /// Total number of attempts.
    pub(super) attempts: u64,
    /// The checkpoints of `Schedule::InTask`.
    pub(super) checkpoints: Vec<MadeCheckpoint>,
    /// Errors of attempts about damaged checkpoints.
    #[cfg_attr(
        not(test),
        expect(dead_code, reason = "nothing is tampered with outside of this crate")
    )]
    pub(super) complaints: Vec<String>,
}

/// A checkpoint, and where it was made.
pub(super) struct MadeCheckpoint {
    pub(super) task: TaskId,
    /// The records or groups next to it, as in `before input-0000 line 2, "two"`.
    pub(super) place: String,
    /// The state of the mapper or reducer; `None` if it is stateless.
    pub(super) state: Option<Vec<u8>>,
}

/// The successful attempt of a task.
struct Ended {
    attempt: AttemptId,
    part: Option<PartOutput>,
}

enum Call {
    Done(Option<PartOutput>),
    Checkpointed,
}

fn check_numbers<J>(test: &JobTest<J>) -> Result<(), String> {
    if let Some(reduces) = test.reduces {
        limits::check("reduces", reduces, &limits::REDUCES)?;
    }
    if test.split_size == 0 {
        return Err("split size 0: use at least 1".to_owned());
    }
    limits::check(
        "task memory",
        ByteSize::new(test.task_memory),
        &limits::TASK_MEMORY,
    )?;
    test.settings.check()
}

impl<'t, T, J: Fn() -> Job<T>> Trial<'t, J> {
    pub(super) fn new(test: &'t JobTest<J>) -> Trial<'t, J> {
        Trial::with_boundaries(test, &[])
    }

    pub(super) fn with_boundaries(test: &'t JobTest<J>, boundaries: &'t [u64]) -> Trial<'t, J> {
        check_numbers(test).unwrap_or_else(|error| panic!("{error}"));
        let settings = test.settings.clone();
        let folder = Folder::make();
        let inputs = test.inputs.iter().enumerate();
        let inputs = inputs
            .map(|(number, input)| (folder.path().join(test.input_name(number)), &input.bytes));
        let side_files = test
            .side_files
            .iter()
            .map(|(name, bytes)| (folder.inner("files").join(name), bytes));
        for (path, bytes) in inputs.chain(side_files) {
            fs::write(&path, bytes)
                .unwrap_or_else(|error| panic!("cannot write {}: {error}", path.display()));
        }
        Trial {
            test,
            settings,
            folder,
            boundaries,
            tamper: None,
        }
    }

    #[cfg(test)]
    pub(super) fn tampering(self, tamper: &'t dyn Fn(&Path)) -> Trial<'t, J> {
        Trial {
            tamper: Some(tamper),
            ..self
        }
    }

    pub(super) fn run(mut self, schedule: &Schedule) -> TrialResult {
        let exclusive = Exclusive::begin(!self.test.side_files.is_empty());
        let mut job = self.job();
        let files = self.files(&job);
        let splits = job
            .pipeline
            .split(&files, self.test.split_size, &mut self.settings);
        let splits = splits.unwrap_or_else(|error| panic!("cannot split the input: {error}"));
        let reduces = match job.pipeline.reduces() {
            Some(0) => 0,
            of_definition => self.test.reduces.or(of_definition).unwrap_or(1),
        };
        let cuts = job.pipeline.cuts(&splits, reduces, self.test.task_memory);
        let cuts = cuts.unwrap_or_else(|error| panic!("cannot sample the input: {error}"));
        drop(job);
        let mut progress = Progress {
            schedule,
            counters: CounterValues::default(),
            boundaries: Vec::new(),
            attempts: 0,
            checkpoints: Vec::new(),
            complaints: Vec::new(),
        };
        let mut maps = Vec::new();
        for (index, split) in splits.iter().enumerate() {
            let ended = self.run_task(
                TaskKind::Map,
                index as u32,
                &mut progress,
                |trial, job, context, restore| {
                    let task = trial.map_task(context.attempt(), split, reduces, &cuts, restore);
                    Ok(match job.pipeline.run_map(&task, context)? {
                        MapResult::Done { part } => Call::Done(part),
                        MapResult::Checkpointed(_) => Call::Checkpointed,
                    })
                },
            );
            maps.push(ended);
        }
        let mut output = JobOutput::default();
        for partition in 0..reduces {
            let ended = self.run_task(
                TaskKind::Reduce,
                partition,
                &mut progress,
                |trial, job, context, restore| {
                    let task = trial.reduce_task(context.attempt(), &maps, restore);
                    Ok(match job.pipeline.run_reduce(&task, context)? {
                        ReduceResult::Done { part } => Call::Done(Some(part)),
                        ReduceResult::Checkpointed(_) => Call::Checkpointed,
                    })
                },
            );
            self.collect(&ended, &mut output);
        }
        if reduces == 0 {
            for ended in &maps {
                self.collect(ended, &mut output);
            }
        }
        drop(exclusive);
        let Progress {
            counters,
            boundaries,
            attempts,
            checkpoints,
            complaints,
            ..
        } = progress;
        let output = JobOutput { counters, ..output };
        TrialResult {
            output,
            boundaries,
            attempts,
            checkpoints,
            complaints,
        }
    }

    /// Builds a new job for each attempt, as in a separate process.
    fn job(&self) -> Job<T> {
        if !self.test.side_files.is_empty() {
            let files = self.folder.inner("files");
            set_side_files(
                self.test
                    .side_files
                    .keys()
                    .map(|name| (name.clone(), files.join(name)))
                    .collect(),
            );
        }
        let mut job = (self.test.job)();
        job.pipeline
            .check()
            .unwrap_or_else(|error| panic!("{error}"));
        job.pipeline.set(self.settings.clone());
        job
    }

    /// Returns the files of each input.
    fn files(&self, job: &Job<T>) -> Vec<Vec<InputFile>> {
        let names = job.pipeline.input_names();
        let mut files = vec![Vec::new(); names.len()];
        for (number, TestInput { name, bytes }) in self.test.inputs.iter().enumerate() {
            let input = names.iter().position(|known| known == name);
            let input = input.unwrap_or_else(|| {
                panic!("the job has no input {name:?}; its inputs are {names:?}")
            });
            let path = self.folder.path().join(self.test.input_name(number));
            files[input].push(InputFile {
                path,
                size: bytes.len() as u64,
                version: None,
            });
        }
        files
    }

    /// Runs attempts until one succeeds.
    fn run_task(
        &mut self,
        kind: TaskKind,
        index: u32,
        progress: &mut Progress<'_>,
        call: impl Fn(&Self, &Job<T>, &TaskContext, Option<PathBuf>) -> Result<Call, TaskError>,
    ) -> Ended {
        let task = TaskId {
            job: JobId(1),
            kind,
            index,
        };
        let place = progress.boundaries.len();
        let most = self.boundaries.get(place).copied().unwrap_or(0);
        let mut saved: Option<AttemptId> = None;
        for number in 1..=ATTEMPTS_MAX {
            let attempt = AttemptId { task, number };
            let interruptions = progress.schedule.of_attempt(place as u64, number, most);
            let (script, end) = script(&interruptions);
            let memory = self.test.task_memory;
            let context = match progress.schedule {
                Schedule::Undisturbed => TaskContext::new(attempt, memory),
                _ => TaskContext::scripted(attempt, memory, script),
            };
            set_user_counters(&CounterValues::default());
            let restore = saved.map(|attempt| self.checkpoint(attempt));
            let called = catch_unwind(AssertUnwindSafe(|| {
                call(self, &self.job(), &context, restore)
            }));
            let called = called.unwrap_or_else(|panic| {
                let place = context.position().describe().unwrap_or_default();
                print_error(format_args!(
                    "{attempt} panicked, {}, reading {place}",
                    progress.schedule
                ));
                resume_unwind(panic)
            });
            if let Some(reason) = context.refusal() {
                progress.complain(
                    self.tamper.is_some(),
                    format!("{attempt} could not be restored"),
                    reason,
                );
            }
            progress.attempts += 1;
            let called = match called {
                Ok(called) => called,
                Err(error) => {
                    progress.complain(
                        self.tamper.is_some(),
                        format!("{attempt} failed"),
                        &error.message,
                    );
                    continue;
                }
            };
            match called {
                Call::Done(part) => {
                    progress.counters.merge(&context.counters().values());
                    progress.counters.merge(&user_counters());
                    progress.boundaries.push(context.boundaries());
                    return Ended { attempt, part };
                }
                Call::Checkpointed => {
                    if let Schedule::InTask { .. } = progress.schedule {
                        progress.checkpoints.push(self.made(attempt, &context));
                    }
                    self.interrupted(attempt, end, &mut saved);
                }
            }
        }
        panic!("{task} does not end, {}", progress.schedule);
    }

    fn interrupted(
        &mut self,
        attempt: AttemptId,
        how: Option<Preemption>,
        saved: &mut Option<AttemptId>,
    ) {
        let remove = |path: PathBuf| {
            fs::remove_file(&path)
                .unwrap_or_else(|error| panic!("cannot remove {}: {error}", path.display()));
        };
        match how {
            Some(Preemption::Kill) => {
                let path = self.checkpoint(attempt);
                fs::remove_dir_all(&path)
                    .unwrap_or_else(|error| panic!("cannot remove {}: {error}", path.display()));
            }
            // All files were written before the description.
            Some(Preemption::KillWhileSaving) => {
                remove(self.checkpoint(attempt).join("checkpoint"))
            }
            Some(Preemption::CheckpointElsewhere) => {
                *saved = Some(attempt);
                self.folder.go_elsewhere();
            }
            Some(Preemption::Checkpoint | Preemption::Suspend) | None => *saved = Some(attempt),
        }
        if let Some(tamper) = self.tamper {
            tamper(&self.checkpoint(attempt));
        }
        let scratch = self.folder.path().join(format!("scratch-{attempt}"));
        // Files in the scratch directory are removed with it.
        let _ = fs::remove_dir_all(scratch);
    }

    /// Reads the checkpoint of an attempt.
    fn made(&self, attempt: AttemptId, context: &TaskContext) -> MadeCheckpoint {
        let checkpoint = Checkpoint::read(&self.checkpoint(attempt), attempt.task);
        let checkpoint =
            checkpoint.unwrap_or_else(|error| panic!("the checkpoint of {attempt}: {error}"));
        let place = match &checkpoint.stage {
            CheckpointStage::Map {
                split,
                part,
                offset,
                repeated,
                records,
                ..
            } => {
                let name = split.parts[*part as usize]
                    .path
                    .file_name()
                    .unwrap_or_default();
                let record = self
                    .record_place(&name.to_string_lossy(), *offset)
                    .filter(|_| *repeated == 0);
                record.unwrap_or_else(|| format!("after record {records} of {split}"))
            }
            CheckpointStage::FetchInputs { .. } | CheckpointStage::Reducing { .. } => {
                context.position().describe().unwrap_or_default()
            }
        };
        MadeCheckpoint {
            task: attempt.task,
            place,
            state: checkpoint.user_state,
        }
    }

    /// Returns the place of the record at an offset; `None` in a compressed file.
    fn record_place(&self, name: &str, offset: u64) -> Option<String> {
        let inputs = self.test.inputs.iter().enumerate();
        let mut inputs = inputs.filter(|(number, _)| self.test.input_name(*number) == name);
        let (_, input) = inputs.next().filter(|_| self.test.extension.is_empty())?;
        let (before, rest) = input.bytes.split_at_checked(offset as usize)?;
        if rest.is_empty() {
            return Some(format!("after the last record of {name}"));
        }
        let record = quoted(rest.split(|byte| *byte == b'\n').next().unwrap_or_default());
        Some(if before.is_empty() || before.ends_with(b"\n") {
            let line = 1 + before.iter().filter(|byte| **byte == b'\n').count();
            format!("before {name} line {line}, {record}")
        } else {
            format!("before {name} byte {offset}, {record}")
        })
    }

    fn checkpoint(&self, attempt: AttemptId) -> PathBuf {
        self.folder
            .path()
            .join("checkpoints")
            .join(attempt.to_string())
    }

    fn output(&self, attempt: AttemptId) -> PathBuf {
        self.folder.inner("outputs").join(attempt.to_string())
    }

    fn map_task(
        &self,
        attempt: AttemptId,
        split: &InputSplit,
        partitions: u32,
        cuts: &[Vec<u8>],
        restore: Option<PathBuf>,
    ) -> MapTask {
        let here = |part: &Split| {
            let name = part.path.file_name().unwrap_or_default();
            Split {
                path: self.folder.path().join(name),
                ..part.clone()
            }
        };
        MapTask {
            split: InputSplit {
                parts: split.parts.iter().map(here).collect(),
                stamps: Vec::new(),
            },
            partitions,
            cuts: cuts.to_vec(),
            compress: self.settings.compress,
            output: self.output(attempt),
            memory_file: None,
            scratch: self.folder.inner(&format!("scratch-{attempt}")),
            checkpoint: self.checkpoint(attempt),
            restore,
            durable: self.settings.durable,
        }
    }

    fn reduce_task(
        &self,
        attempt: AttemptId,
        maps: &[Ended],
        restore: Option<PathBuf>,
    ) -> ReduceTask {
        ReduceTask {
            partition: attempt.task.index,
            inputs: maps
                .iter()
                .map(|ended| (ended.attempt, self.output(ended.attempt)))
                .collect(),
            consolidated: Vec::new(),
            inputs_are_partial: false,
            compress: self.settings.compress,
            output: self.output(attempt),
            scratch: self.folder.inner(&format!("scratch-{attempt}")),
            checkpoint: self.checkpoint(attempt),
            restore,
            durable: self.settings.durable,
        }
    }

    /// Collects the files of a task and checks them against its report.
    fn collect(&self, ended: &Ended, output: &mut JobOutput) {
        let path = self.output(ended.attempt);
        let part = ended
            .part
            .as_ref()
            .unwrap_or_else(|| panic!("{} wrote no part", ended.attempt));
        output.parts.push(written(&path, part.bytes, part.digest));
        assert!(part.has_sound_names(), "{:?}", part.named);
        for NamedPart {
            name,
            bytes,
            digest,
            ..
        } in &part.named
        {
            let part = written(&NamedPart::path_next_to(&path, name), *bytes, *digest);
            output.named.entry(name.clone()).or_default().push(part);
        }
    }
}

/// Reads a file and checks its length and digest.
fn written(path: &Path, length: u64, digest: u64) -> Vec<u8> {
    let bytes =
        fs::read(path).unwrap_or_else(|error| panic!("cannot read {}: {error}", path.display()));
    let found = (bytes.len() as u64, xxhash_rust::xxh3::xxh3_64(&bytes));
    assert_eq!(
        found,
        (length, digest),
        "length and digest of {}",
        path.display()
    );
    bytes
}

impl<J> JobTest<J> {
    fn input_name(&self, number: usize) -> String {
        let dot = if self.extension.is_empty() { "" } else { "." };
        format!("input-{number:04}{dot}{}", self.extension)
    }
}

/// The progress of the tasks.
struct Progress<'s> {
    schedule: &'s Schedule,
    counters: CounterValues,
    boundaries: Vec<u64>,
    attempts: u64,
    checkpoints: Vec<MadeCheckpoint>,
    complaints: Vec<String>,
}

impl Progress<'_> {
    /// Records the error of an attempt; fails the test unless the checkpoint was damaged.
    fn complain(&mut self, is_expected: bool, what: String, reason: &str) {
        assert!(is_expected, "{what}, {}: {reason}", self.schedule);
        self.complaints.push(reason.to_owned());
    }
}

/// Returns the actions of the context, and the interruption that ends the attempt, if any.
fn script(interruptions: &[Interruption]) -> (Script, Option<Preemption>) {
    let ask = |how| {
        if how == Preemption::Suspend {
            Ask::Suspend
        } else {
            Ask::Checkpoint
        }
    };
    let asks = interruptions
        .iter()
        .map(|interruption| (interruption.boundary, ask(interruption.how)));
    let end = interruptions
        .iter()
        .map(|interruption| interruption.how)
        .find(|how| *how != Preemption::Suspend);
    (Script::new(asks), end)
}

/// Exclusive use of the user counters and side files, which are global.
struct Exclusive {
    counters: CounterValues,
    /// `None` if the test has no side files.
    side_files: Option<BTreeMap<String, PathBuf>>,
    _alone: MutexGuard<'static, ()>,
}

impl Exclusive {
    fn begin(has_side_files: bool) -> Exclusive {
        let alone = counters_alone();
        let side_files = has_side_files.then(|| set_side_files(BTreeMap::new()));
        Exclusive {
            counters: user_counters(),
            side_files,
            _alone: alone,
        }
    }
}

impl Drop for Exclusive {
    fn drop(&mut self) {
        set_user_counters(&self.counters);
        self.side_files.take().map(set_side_files);
    }
}
