//! The program of a simulated task process: what `napreduce-task` does around user code, with work that takes virtual
//! time.
//!
//! ```text
//! Hello -> Start -> (restore | inputs) -> units of work -> part -> CommitRequest -> grant -> rename -> Done
//!                        between two units, and while it waits: gate, checkpoint
//! ```

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use napreduce_engine::FaultPlace;
use napreduce_protocol::{
    Counter, Counters, FromTask, IoResult, MapInput, PROTOCOL_VERSION, PartOutput, Place,
    TaskDescription, TaskError, ToTask, Work,
};
use serde::{Deserialize, Serialize};
use tokio::time::{Instant, sleep};
use xxhash_rust::xxh3::xxh3_64;

use super::MachineState;
use super::channel::TaskEnd;
use super::fate::{Fate, Trouble};
use super::process::{Life, Process};
use crate::workload::Parameters;

/// Interval of signs of life.
const BEAT: Duration = Duration::from_secs(1);
/// The wait status of a process that ended by itself with status 0.
const SUCCESS: i32 = 0;
/// The wait status of a process that ended by itself with status 1.
const FAILURE: i32 = 1 << 8;

/// Why the program of a process does not continue.
enum Interruption {
    /// The process ends with this wait status.
    Exits(i32),
    /// The attempt fails.
    Fails(TaskError),
}

/// The result of a wait.
enum Turn {
    /// The time is over.
    Elapsed,
    /// A message arrived and was taken in.
    Message,
}

/// The work done so far, as in a checkpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
struct Progress {
    units: u32,
    /// `None` before the first unit.
    value: Option<u64>,
}

/// The program of one process.
pub(super) struct SimTask {
    process: Arc<Process>,
    machine: Arc<MachineState>,
    channel: TaskEnd,
    fate: Fate,
    /// Steps made so far.
    steps: u32,
    /// The bytes consumed, the bytes in total, and a counter of signs of life.
    reported: (u64, u64, u64),
    /// The epoch of a requested suspension that has not ended.
    suspending: Option<u32>,
    /// Whether it was asked to save its work and end.
    saving: bool,
    granted: bool,
    /// The latest output of each map.
    inputs: BTreeMap<u32, MapInput>,
    /// The maps whose latest output it could not read.
    unreadable: BTreeSet<u32>,
}

impl SimTask {
    pub(super) fn new(
        process: Arc<Process>,
        machine: Arc<MachineState>,
        channel: TaskEnd,
        fate: Fate,
    ) -> SimTask {
        SimTask {
            process,
            machine,
            channel,
            fate,
            steps: 0,
            reported: (0, 0, 0),
            suspending: None,
            saving: false,
            granted: false,
            inputs: BTreeMap::new(),
            unreadable: BTreeSet::new(),
        }
    }

    /// Runs the program until it ends or is killed.
    pub(super) async fn run(mut self) {
        let process = Arc::clone(&self.process);
        let status = tokio::select! {
            biased;
            () = process.ended() => return,
            ended = self.live() => match ended {
                Ok(()) => SUCCESS,
                Err(Interruption::Exits(status)) => status,
                Err(Interruption::Fails(_)) => FAILURE,
            },
        };
        if process.end(status) {
            self.event(format_args!("exits with wait status {status}"));
        }
    }

    fn event(&self, what: impl std::fmt::Display) {
        self.machine.event(self.process.attempt, what);
    }

    async fn live(&mut self) -> Result<(), Interruption> {
        self.step().await?;
        // It is not stopped before it has said hello.
        sleep(self.fate.start).await;
        self.send(FromTask::Hello {
            version: PROTOCOL_VERSION,
        })
        .await?;
        self.step().await?;
        let description = match self.channel.receive().await {
            Ok(Some(ToTask::Start(description))) => *description,
            _ => return Err(Interruption::Exits(FAILURE)),
        };
        let last = match self.attempt(&description).await {
            Ok(last) => last,
            Err(Interruption::Fails(error)) => FromTask::Failed(error),
            Err(exits) => return Err(exits),
        };
        self.send(last).await
    }

    /// Comes to the next step, at which something may happen.
    async fn step(&mut self) -> Result<(), Interruption> {
        self.steps += 1;
        let trouble = match &self.fate.trouble {
            Some((step, trouble)) if step + 1 == self.steps => trouble.clone(),
            _ => return Ok(()),
        };
        match trouble {
            Trouble::Dies(status) => {
                self.event(format_args!("dies at step {}", self.steps));
                Err(Interruption::Exits(status))
            }
            Trouble::Fails(error) => {
                self.event(format_args!("fails at step {}", self.steps));
                Err(Interruption::Fails(error))
            }
            Trouble::Hangs => {
                self.event(format_args!("hangs at step {}", self.steps));
                std::future::pending().await
            }
        }
    }

    /// Does the work of the attempt; returns its last message.
    async fn attempt(&mut self, description: &TaskDescription) -> Result<FromTask, Interruption> {
        let parameters: Parameters = serde_json::from_slice(&description.parameters)
            .map_err(|error| Interruption::Fails(TaskError::fatal(error.to_string())))?;
        let task = description.attempt.task;
        let files = Files::new(description);
        self.own(files.create_scratch())?;
        self.own_output(description, files.create_output_directory())?;
        let restored = self.restore(&files).await?;
        let mut progress = restored.unwrap_or(Progress {
            units: 0,
            value: None,
        });
        let value = match (progress.value, &description.work) {
            (Some(value), _) => value,
            (None, Work::Map(_)) => parameters.map_start(task.index),
            (None, Work::Reduce(work)) => {
                self.take_inputs(work.inputs.clone());
                let Some(emitted) = self.read_inputs(work.maps, task.index).await? else {
                    return self.own_shared(self.save(&files, progress));
                };
                parameters.reduce_start(task.index, &emitted)
            }
        };
        progress.value = Some(value);
        let mut value = value;
        let units = parameters.units(task.kind, task.index);
        let mut is_restored = restored.is_some();
        while progress.units < units {
            let unit = Duration::from_millis(parameters.unit_millis);
            self.work_for(unit * self.fate.pace).await?;
            value = parameters.advance(value, progress.units);
            progress = Progress {
                units: progress.units + 1,
                value: Some(value),
            };
            self.report(progress.units, units).await?;
            if std::mem::take(&mut is_restored) {
                self.send(FromTask::Restored).await?;
            }
            self.step().await?;
            self.gate().await?;
            if self.saving && progress.units < units {
                return self.own_shared(self.save(&files, progress));
            }
        }
        let text = match &description.work {
            Work::Map(map) if map.partitions > 0 => parameters.segment(value),
            _ => parameters.part(task, value),
        };
        self.own_output(description, files.write(&text))?;
        self.step().await?;
        if let Some(target) = &description.promote_to
            && let Some(saved) = self.commit(&files, target, &text, progress).await?
        {
            return Ok(saved);
        }
        self.step().await?;
        Ok(done(&text))
    }

    /// Reports a violation if the process cannot use its own files. The worker must not remove them while the process exists.
    fn own<T>(&self, worked: Result<T, Interruption>) -> Result<T, Interruption> {
        if let Err(Interruption::Fails(error)) = &worked {
            let what = format!("{} cannot use its files: {error}", self.process.attempt);
            self.machine.log.violation(&self.machine.name, what);
        }
        worked
    }

    /// Like `own`, for files in the output directory: parts and saved work. The output is settled when the job ends; a process
    /// of a worker that was given up may still exist then. A coordinator that has forgotten the attempt gives its number
    /// to another process, with the same files.
    fn own_shared<T>(&self, worked: Result<T, Interruption>) -> Result<T, Interruption> {
        let facts = &self.machine.facts;
        if facts.is_ending(self.process.attempt.task.job) || facts.has_forgotten() {
            return worked;
        }
        self.own(worked)
    }

    /// Checks the use of a part, which is in the output directory, or of a segment.
    fn own_output<T>(
        &self,
        description: &TaskDescription,
        worked: Result<T, Interruption>,
    ) -> Result<T, Interruption> {
        if description.promote_to.is_some() {
            self.own_shared(worked)
        } else {
            self.own(worked)
        }
    }

    /// Asks for the right to commit, and moves the part once it is granted. Returns the last message if the attempt saves
    /// its work instead.
    async fn commit(
        &mut self,
        files: &Files,
        target: &Path,
        text: &str,
        progress: Progress,
    ) -> Result<Option<FromTask>, Interruption> {
        let part = PartOutput {
            records: 1,
            bytes: text.len() as u64,
            digest: xxh3_64(text.as_bytes()),
            ..PartOutput::default()
        };
        self.send(FromTask::CommitRequest { part }).await?;
        while !self.granted {
            self.gate().await?;
            if self.granted {
                break;
            }
            if self.saving {
                return Ok(Some(self.own_shared(self.save(files, progress))?));
            }
            self.message().await?;
        }
        self.step().await?;
        self.work_for(self.fate.commit).await?;
        if let Err(error) = fs::rename(&files.output, target) {
            let doing = format!("move {} to {}", files.output.display(), target.display());
            return Err(Interruption::Fails(TaskError::io(doing, &error)));
        }
        self.event("has moved its part");
        self.step().await?;
        self.work_for(self.fate.commit).await?;
        Ok(None)
    }

    /// Reads a checkpoint, if the attempt begins with one.
    async fn restore(&mut self, files: &Files) -> Result<Option<Progress>, Interruption> {
        let Some(saved) = &files.restore else {
            return Ok(None);
        };
        self.work_for(Duration::from_millis(20)).await?;
        if self.fate.refuses_restore {
            let reason = "drawn: the checkpoint cannot be read".to_owned();
            self.send(FromTask::RestoreRefused { reason }).await?;
            return Ok(None);
        }
        let read = fs::read(saved.join("progress"));
        let parsed =
            read.and_then(|bytes| serde_json::from_slice(&bytes).map_err(io::Error::other));
        match parsed {
            Ok(progress) => Ok(Some(progress)),
            Err(error) => {
                let reason = format!("cannot read {}: {error}", saved.display());
                self.send(FromTask::RestoreRefused { reason }).await?;
                Ok(None)
            }
        }
    }

    fn save(&self, files: &Files, progress: Progress) -> Result<FromTask, Interruption> {
        let text = serde_json::to_vec(&progress).unwrap_or_default();
        let written = write_checkpoint(&files.checkpoint, &text);
        written.map_err(|error| {
            let doing = format!("write {}", files.checkpoint.display());
            Interruption::Fails(TaskError::io(doing, &error))
        })?;
        self.event(format_args!("has saved {} units", progress.units));
        Ok(FromTask::Checkpointed {
            bytes: text.len() as u64,
        })
    }

    /// Waits until the output of every map is there, and reads what they emitted for this partition. Returns `None` if
    /// the attempt is to save its work instead.
    async fn read_inputs(
        &mut self,
        maps: u32,
        partition: u32,
    ) -> Result<Option<Vec<u64>>, Interruption> {
        let mut read: BTreeMap<u32, u64> = BTreeMap::new();
        loop {
            self.gate().await?;
            if self.saving {
                return Ok(None);
            }
            let unread = self
                .inputs
                .iter()
                .find(|(map, _)| !read.contains_key(map) && !self.unreadable.contains(map));
            let Some((map, input)) = unread.map(|(map, input)| (*map, input.clone())) else {
                if read.len() == maps as usize {
                    return Ok(Some(read.into_values().collect()));
                }
                self.message().await?;
                continue;
            };
            self.work_for(Duration::from_millis(5)).await?;
            match read_input(&input, partition) {
                Ok(value) => {
                    read.insert(map, value);
                }
                Err(reason) => {
                    self.event(format_args!("cannot read {}: {reason}", input.attempt));
                    self.unreadable.insert(map);
                    self.send(FromTask::InputsLost {
                        attempts: vec![input.attempt],
                        place: FaultPlace::Peer,
                        reason,
                    })
                    .await?;
                }
            }
        }
    }

    fn take_inputs(&mut self, inputs: Vec<MapInput>) {
        for input in inputs {
            // The same output may be in another place now.
            self.unreadable.remove(&input.attempt.task.index);
            self.inputs.insert(input.attempt.task.index, input);
        }
    }

    /// Works for this time, in which it takes in messages.
    async fn work_for(&mut self, time: Duration) -> Result<(), Interruption> {
        let mut left = time;
        loop {
            match self.turn(&mut left).await? {
                Turn::Elapsed => return Ok(()),
                Turn::Message => {}
            }
        }
    }

    /// Waits for a message and takes it in.
    async fn message(&mut self) -> Result<(), Interruption> {
        let mut left = Duration::MAX;
        self.turn(&mut left).await?;
        Ok(())
    }

    /// Comes to the gate: waits there if it was asked to.
    async fn gate(&mut self) -> Result<(), Interruption> {
        let Some(epoch) = self.suspending else {
            return Ok(());
        };
        if self.fate.is_deaf {
            return Ok(());
        }
        self.send(FromTask::Ready { epoch, saves: true }).await?;
        while self.suspending.is_some() {
            self.message().await?;
        }
        Ok(())
    }

    /// Waits for a message, at most for `left`, of which it takes what has passed while the process ran.
    async fn turn(&mut self, left: &mut Duration) -> Result<Turn, Interruption> {
        loop {
            self.process.running().await;
            let began = Instant::now();
            let nap = (*left).min(BEAT);
            tokio::select! {
                biased;
                () = self.process.interrupted() => *left = left.saturating_sub(began.elapsed()),
                message = self.channel.receive() => {
                    *left = left.saturating_sub(began.elapsed());
                    match message {
                        Ok(Some(message)) => self.take_in(message).await?,
                        // The worker has ended, or something else than a message arrived.
                        _ => return Err(Interruption::Exits(FAILURE)),
                    }
                    return Ok(Turn::Message);
                }
                () = sleep(nap) => {
                    *left = left.saturating_sub(nap);
                    if left.is_zero() {
                        return Ok(Turn::Elapsed);
                    }
                    self.beat().await?;
                }
            }
        }
    }

    async fn take_in(&mut self, message: ToTask) -> Result<(), Interruption> {
        match message {
            ToTask::CommitGranted => {
                self.event("may commit");
                self.granted = true;
                let process = Arc::clone(&self.process);
                let exists = Box::new(move || !matches!(process.life(), Life::Ended(_)));
                let earlier = self.machine.facts.note_grant(self.process.attempt, exists);
                if let Some(earlier) = earlier {
                    let what = format!("{} may commit beside {earlier}", self.process.attempt);
                    self.machine.log.violation(&self.machine.name, what);
                }
            }
            ToTask::MoreInputs(inputs) => self.take_inputs(inputs),
            ToTask::Suspend { epoch, .. } => self.suspending = Some(epoch),
            ToTask::Resume { epoch, .. } => {
                self.suspending = None;
                sleep(self.fate.wake).await;
                self.process.set_awake();
                self.machine.check_slots();
                if !self.saving && self.machine.facts.is_held(self.process.attempt) {
                    let what = format!("{} runs although it is held", self.process.attempt);
                    self.machine.log.violation(&self.machine.name, what);
                }
                self.send(FromTask::Resumed { epoch }).await?;
            }
            ToTask::Checkpoint => {
                self.process.set_saving();
                self.saving = true;
            }
            ToTask::Start(_) | ToTask::Outfit(_) => return Err(Interruption::Exits(FAILURE)),
        }
        Ok(())
    }

    async fn report(&mut self, units: u32, of: u32) -> Result<(), Interruption> {
        self.reported.0 = u64::from(units);
        self.reported.1 = u64::from(of);
        self.beat().await
    }

    /// Sends a sign of life.
    async fn beat(&mut self) -> Result<(), Interruption> {
        self.reported.2 += 1;
        let (bytes_done, bytes_total, signs) = self.reported;
        self.send(FromTask::Progress {
            bytes_done,
            bytes_total,
            signs,
        })
        .await
    }

    async fn send(&self, message: FromTask) -> Result<(), Interruption> {
        if !matches!(message, FromTask::Progress { .. }) {
            self.event(format_args!("says {}", in_words(&message)));
        }
        self.channel
            .send(&message)
            .await
            .map_err(|_| Interruption::Exits(FAILURE))
    }
}

/// The files of an attempt.
struct Files {
    scratch: PathBuf,
    output: PathBuf,
    checkpoint: PathBuf,
    restore: Option<PathBuf>,
}

impl Files {
    fn new(description: &TaskDescription) -> Files {
        match &description.work {
            Work::Map(task) => Files {
                scratch: task.scratch.clone(),
                output: task.output.clone(),
                checkpoint: task.checkpoint.clone(),
                restore: task.restore.clone(),
            },
            Work::Reduce(work) => Files {
                scratch: work.task.scratch.clone(),
                output: work.task.output.clone(),
                checkpoint: work.task.checkpoint.clone(),
                restore: work.task.restore.clone(),
            },
        }
    }

    fn create_scratch(&self) -> Result<(), Interruption> {
        let made = fs::create_dir(&self.scratch).unless_there();
        made.map_err(|error| {
            let what = format!("cannot create {}", self.scratch.display());
            Interruption::Fails(TaskError::local(what, &error))
        })
    }

    fn create_output_directory(&self) -> Result<(), Interruption> {
        let Some(directory) = self.output.parent() else {
            return Ok(());
        };
        let made = fs::create_dir(directory).unless_there();
        made.map_err(|error| {
            let doing = format!("create {}", directory.display());
            Interruption::Fails(TaskError::io(doing, &error))
        })
    }

    fn write(&self, text: &str) -> Result<(), Interruption> {
        fs::write(&self.output, text).map_err(|error| {
            let doing = format!("write {}", self.output.display());
            Interruption::Fails(TaskError::io(doing, &error))
        })
    }
}

/// As a real task does, creates the directory of all checkpoints too, but not that of the job, which may have been removed.
fn write_checkpoint(directory: &Path, text: &[u8]) -> io::Result<()> {
    if let Some(above) = directory.parent() {
        fs::create_dir(above).unless_there()?;
    }
    fs::create_dir(directory).unless_there()?;
    fs::write(directory.join("progress"), text)
}

/// Reads what a map emitted for a partition.
fn read_input(input: &MapInput, partition: u32) -> Result<u64, String> {
    let Place::Local(path) = &input.place else {
        return Err("its worker cannot be reached".to_owned());
    };
    let text = fs::read(path).map_err(|error| error.to_string())?;
    let emitted: Vec<u64> = serde_json::from_slice(&text).map_err(|error| error.to_string())?;
    emitted
        .get(partition as usize)
        .copied()
        .ok_or_else(|| "it has no such partition".to_owned())
}

fn done(text: &str) -> FromTask {
    let counters = Counters::default();
    counters.add(Counter::MapOutputMaterializedBytes, text.len() as u64);
    FromTask::Done {
        counters: counters.values(),
        output_digest: Some(xxh3_64(text.as_bytes())),
    }
}

fn in_words(message: &FromTask) -> String {
    match message {
        FromTask::Hello { .. } => "hello".to_owned(),
        FromTask::CommitRequest { .. } => "that it wants to commit".to_owned(),
        FromTask::Done { .. } => "that it is done".to_owned(),
        FromTask::Failed(error) => format!("that it failed: {error}"),
        FromTask::Checkpointed { .. } => "that its work is saved".to_owned(),
        FromTask::Restored => "that it was restored".to_owned(),
        other => format!("{other:?}"),
    }
}
