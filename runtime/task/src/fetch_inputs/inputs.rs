//! The inputs of one reduce attempt, until there is an input of each map task. Waiting for them is a
//! boundary.
//!
//! If all inputs are local and complete, as in embedded mode, nothing is started and nothing waits.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender};
use std::time::{Duration, Instant};

use napreduce_engine::{AttemptId, FaultPlace};
use napreduce_protocol::{
    Counter, DataNetwork, MapInput, Place, ReduceTask, TaskError, whole_millis,
};

use super::checkpoint_inputs::CheckpointInputs;
use crate::context::{Boundary, InFlight, TaskContext};
use crate::runner::SavedCheckpoint;

/// Interval at which a waiting task reports that it is alive and checks for requests.
const WAITING_TICK: Duration = Duration::from_millis(200);

/// An event for the fetch of inputs.
#[derive(Debug)]
pub enum InputEvent {
    /// The worker announces more map outputs.
    Named(Vec<MapInput>),
    /// A map output arrived, from this block of the partition on, in a file of this attempt.
    Fetched {
        attempt: AttemptId,
        first_block: u64,
        path: PathBuf,
    },
    /// These map outputs cannot be fetched.
    Lost {
        attempts: Vec<AttemptId>,
        place: FaultPlace,
        reason: String,
    },
    /// This attempt cannot continue.
    Failed(TaskError),
    /// A request at the gate of this attempt.
    GateRequest,
}

/// A reduce attempt that needs its inputs.
pub struct FetchInputs<'a> {
    /// Number of map tasks.
    pub maps: u32,
    /// The attempt's work without inputs.
    pub task: &'a ReduceTask,
    pub network: Option<&'a DataNetwork>,
    /// Starts fetching from other workers, if this program supports it.
    pub start_fetch: Option<StartFetch>,
    pub context: &'a Arc<TaskContext>,
    /// The channel of input events.
    pub arrivals: (&'a Sender<InputEvent>, &'a Receiver<InputEvent>),
}

/// The parameters of fetching.
pub struct FetchSettings {
    pub network: DataNetwork,
    pub partition: u32,
    /// Directory for fetched segments.
    pub scratch: PathBuf,
    pub context: Arc<TaskContext>,
    /// Receives an event for each segment.
    pub events: Sender<InputEvent>,
}

/// Fetches map outputs from other workers until dropped. `napreduce-cluster` implements it over encrypted
/// connections.
pub trait Fetch {
    /// Requests the output of an attempt, from a block of the partition on, from the data server at
    /// `address`.
    fn request(&self, attempt: AttemptId, address: &str, first_block: u64);

    /// Closes every connection, since this process is about to be stopped; incomplete data is requested again
    /// later.
    fn pause(&self);

    /// Resumes after a pause.
    fn resume(&self);

    /// Cancels requests for outputs of this map task. A fetch in progress may still arrive.
    fn cancel(&self, map: u32);
}

/// Starts a fetch.
pub type StartFetch = fn(FetchSettings) -> Result<Box<dyn Fetch>, TaskError>;

/// The result of fetching inputs.
#[derive(Debug)]
pub enum FetchedInputs {
    /// The work with the input of each map task in order, and without its checkpoint if that is unusable.
    Complete(Box<ReduceTask>),
    /// The fetched inputs are saved; another attempt continues from them.
    Checkpointed(SavedCheckpoint),
}

/// The input of one map task.
#[derive(Debug)]
pub(super) struct Input {
    pub(super) attempt: AttemptId,
    pub(super) state: InputState,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum InputState {
    /// A worker's file on this host.
    Local(PathBuf),
    /// A file of this attempt or of a checkpoint, from this block of the partition on.
    Fetched {
        path: PathBuf,
        first_block: u64,
        address: String,
    },
    /// Being fetched from this data server.
    Pending { address: String, first_block: u64 },
    /// At this data server, but not needed.
    Unneeded { address: String },
    /// Reported as lost; its replacement is awaited.
    Lost,
}

impl FetchInputs<'_> {
    /// Waits until there is an input of each map task. `report` receives the outputs that cannot be fetched.
    pub fn fetch(
        self,
        named: Vec<MapInput>,
        report: impl FnMut(Vec<AttemptId>, FaultPlace, String) -> Result<(), TaskError>,
    ) -> Result<FetchedInputs, TaskError> {
        let began = Instant::now();
        let context = self.context;
        let mut running = FetchState {
            checkpoint: CheckpointInputs::for_task(self.task, self.maps, context),
            wanted: self,
            inputs: BTreeMap::new(),
            fetches: None,
            in_flight: None,
            complete_count: 0,
            report,
        };
        running.add_restored();
        running.add(named)?;
        while running.complete_count < running.wanted.maps as usize {
            if let Some(saved) = running.wait()? {
                return Ok(FetchedInputs::Checkpointed(saved));
            }
        }
        let waited = whole_millis(began.elapsed());
        context.counters().add(Counter::ShuffleFetchMillis, waited);
        // From now on, progress is that of the merge.
        context.progress().set_done(0);
        Ok(FetchedInputs::Complete(Box::new(running.complete())))
    }
}

impl Input {
    fn is_complete(&self) -> bool {
        matches!(
            self.state,
            InputState::Local(_) | InputState::Fetched { .. } | InputState::Unneeded { .. }
        )
    }

    /// Returns whether the input is incomplete by design: some blocks are not needed.
    fn is_partial(&self) -> bool {
        match self.state {
            InputState::Fetched { first_block, .. } | InputState::Pending { first_block, .. } => {
                first_block > 0
            }
            InputState::Unneeded { .. } => true,
            InputState::Local(_) | InputState::Lost => false,
        }
    }
}

struct FetchState<'a, R> {
    wanted: FetchInputs<'a>,
    /// The inputs in the checkpoint, if there is one.
    checkpoint: CheckpointInputs,
    /// The inputs by map task.
    inputs: BTreeMap<u32, Input>,
    /// Number of complete inputs.
    complete_count: usize,
    /// Started with the first remote input.
    fetches: Option<Box<dyn Fetch>>,
    /// There may be connections to data servers, which serve a limited number.
    in_flight: Option<InFlight>,
    report: R,
}

impl<R: FnMut(Vec<AttemptId>, FaultPlace, String) -> Result<(), TaskError>> FetchState<'_, R> {
    /// Adds the inputs fetched by an earlier attempt.
    fn add_restored(&mut self) {
        for (attempt, path) in self.checkpoint.take_fetched() {
            self.set(
                attempt,
                InputState::Fetched {
                    path,
                    first_block: 0,
                    address: String::new(),
                },
            );
        }
    }

    /// Waits for one event; returns the checkpoint if one was requested.
    fn wait(&mut self) -> Result<Option<SavedCheckpoint>, TaskError> {
        let arrived = self.wanted.arrivals.1.recv_timeout(WAITING_TICK);
        match arrived {
            Ok(arrival) => self.handle(arrival)?,
            Err(RecvTimeoutError::Timeout) => self.wanted.context.progress().still_waiting(),
            Err(RecvTimeoutError::Disconnected) => {
                return Err(TaskError::retryable(
                    "the worker closed the control channel",
                ));
            }
        }
        if self.wanted.context.is_stop_ordered() && self.pass_gate()? == Boundary::Checkpoint {
            return self.save().map(Some);
        }
        if self.wanted.context.interrupted() {
            return Err(TaskError::retryable(
                "interrupted while waiting for map outputs",
            ));
        }
        Ok(None)
    }

    fn handle(&mut self, arrival: InputEvent) -> Result<(), TaskError> {
        match arrival {
            InputEvent::Named(named) => self.add(named),
            InputEvent::Fetched {
                attempt,
                first_block,
                path,
            } => {
                self.on_fetched(attempt, first_block, path);
                Ok(())
            }
            InputEvent::Lost {
                attempts,
                place,
                reason,
            } => self.on_lost(attempts, place, reason),
            InputEvent::Failed(error) => Err(error),
            InputEvent::GateRequest => Ok(()),
        }
    }

    /// Passes the gate; waiting is a boundary. Nothing is fetched while this process is stopped, since
    /// connections would time out. Closing them drops incomplete blocks, so this is done for stop orders
    /// only.
    fn pass_gate(&mut self) -> Result<Boundary, TaskError> {
        if let Some(fetches) = &self.fetches {
            fetches.pause();
            self.in_flight = None;
        }
        let passed = self.wanted.context.boundary(&mut ());
        if let Some(fetches) = &self.fetches {
            self.in_flight = Some(self.wanted.context.begin_in_flight());
            fetches.resume();
        }
        passed
    }

    fn save(&mut self) -> Result<SavedCheckpoint, TaskError> {
        // Stops the fetchers; complete inputs have been reported.
        self.fetches = None;
        while let Ok(arrival) = self.wanted.arrivals.1.try_recv() {
            if let InputEvent::Fetched {
                attempt,
                first_block,
                path,
            } = arrival
            {
                self.on_fetched(attempt, first_block, path);
            }
        }
        let fetched = self.inputs.values().filter_map(|input| match &input.state {
            InputState::Fetched {
                path,
                first_block: 0,
                ..
            } => Some((input.attempt, path.clone())),
            _ => None,
        });
        self.checkpoint
            .save(self.wanted.task, self.wanted.context, fetched.collect())
    }

    fn add(&mut self, named: Vec<MapInput>) -> Result<(), TaskError> {
        for MapInput { attempt, place } in named {
            let map = attempt.task.index;
            if map >= self.wanted.maps {
                let maps = self.wanted.maps;
                return Err(TaskError::fatal(format!(
                    "invalid input {attempt}: the job has {maps} maps"
                )));
            }
            if let Some(reason) = self.checkpoint.conflict(attempt) {
                self.drop_checkpoint(&reason)?;
            }
            match place {
                Place::Local(path) => {
                    if let Some(fetches) = &self.fetches {
                        fetches.cancel(map);
                    }
                    self.set(attempt, InputState::Local(path));
                }
                // Fetched data was verified and cannot be lost.
                Place::Remote(_)
                    if self
                        .inputs
                        .get(&map)
                        .is_some_and(|known| matches!(known.state, InputState::Fetched { .. })) => {
                }
                Place::Remote(address) => self.request_remote(attempt, address)?,
            }
        }
        Ok(())
    }

    /// Requests the needed part of an output from its location.
    fn request_remote(&mut self, attempt: AttemptId, address: String) -> Result<(), TaskError> {
        let map = attempt.task.index;
        let Some(first_block) = self.checkpoint.first_block(map) else {
            self.set(attempt, InputState::Unneeded { address });
            return Ok(());
        };
        let state = InputState::Pending {
            address: address.clone(),
            first_block,
        };
        let known = self.inputs.get(&map);
        if known.is_some_and(|input| input.attempt == attempt && input.state == state) {
            return Ok(());
        }
        let fetches = self.fetches(attempt, &address)?;
        fetches.cancel(map);
        fetches.request(attempt, &address, first_block);
        self.set(attempt, state);
        Ok(())
    }

    /// Drops an unusable checkpoint; inputs skipped because of it are fetched after all.
    fn drop_checkpoint(&mut self, reason: &str) -> Result<(), TaskError> {
        self.checkpoint.reject(reason, self.wanted.context);
        let partial = self.inputs.values().filter(|input| input.is_partial());
        let partial = partial.filter_map(|input| match &input.state {
            InputState::Fetched { address, .. }
            | InputState::Pending { address, .. }
            | InputState::Unneeded { address } => Some((input.attempt, address.clone())),
            InputState::Local(_) | InputState::Lost => None,
        });
        for (attempt, address) in partial.collect::<Vec<_>>() {
            self.set(attempt, InputState::Lost);
            self.request_remote(attempt, address)?;
        }
        Ok(())
    }

    /// Returns the fetcher, started if necessary.
    fn fetches(&mut self, attempt: AttemptId, address: &str) -> Result<&dyn Fetch, TaskError> {
        let FetchInputs {
            task,
            network,
            start_fetch,
            context,
            arrivals,
            ..
        } = &self.wanted;
        let (Some(network), Some(start)) = (network, start_fetch) else {
            return Err(TaskError::fatal(format!(
                "cannot fetch the output of {attempt} from {address}: this task has no access to other workers"
            )));
        };
        if self.in_flight.is_none() {
            self.in_flight = Some(context.begin_in_flight());
        }
        match &mut self.fetches {
            Some(fetches) => Ok(&**fetches),
            none => Ok(&**none.insert(start(FetchSettings {
                network: (*network).clone(),
                partition: task.partition,
                scratch: task.scratch.clone(),
                context: Arc::clone(context),
                events: arrivals.0.clone(),
            })?)),
        }
    }

    fn set(&mut self, attempt: AttemptId, state: InputState) {
        let input = Input { attempt, state };
        self.complete_count += usize::from(input.is_complete());
        if let Some(replaced) = self.inputs.insert(attempt.task.index, input) {
            self.complete_count -= usize::from(replaced.is_complete());
        }
    }

    /// Records a fetched input. If it was replaced meanwhile, its file is removed with the scratch directory.
    fn on_fetched(&mut self, attempt: AttemptId, first_block: u64, path: PathBuf) {
        let awaited = self
            .inputs
            .get(&attempt.task.index)
            .and_then(|input| match &input.state {
                InputState::Pending {
                    address,
                    first_block,
                } if input.attempt == attempt => Some((address.clone(), *first_block)),
                _ => None,
            });
        if let Some((address, awaited)) = awaited
            && awaited == first_block
        {
            self.set(
                attempt,
                InputState::Fetched {
                    path,
                    first_block,
                    address,
                },
            );
        }
    }

    fn on_lost(
        &mut self,
        attempts: Vec<AttemptId>,
        place: FaultPlace,
        reason: String,
    ) -> Result<(), TaskError> {
        let lost: Vec<AttemptId> = attempts
            .into_iter()
            .filter(|attempt| self.awaits(*attempt))
            .collect();
        for attempt in &lost {
            self.set(*attempt, InputState::Lost);
        }
        if lost.is_empty() {
            Ok(())
        } else {
            (self.report)(lost, place, reason)
        }
    }

    fn awaits(&self, attempt: AttemptId) -> bool {
        let input = self.inputs.get(&attempt.task.index);
        input.is_some_and(|input| {
            input.attempt == attempt && matches!(input.state, InputState::Pending { .. })
        })
    }

    fn complete(self) -> ReduceTask {
        let inputs_are_partial = self.inputs.values().any(Input::is_partial);
        let path = |state| match state {
            InputState::Local(path) | InputState::Fetched { path, .. } => path,
            InputState::Pending { .. } | InputState::Unneeded { .. } | InputState::Lost => {
                PathBuf::new()
            }
        };
        let inputs = self
            .inputs
            .into_values()
            .map(|input| (input.attempt, path(input.state)))
            .collect();
        let restore = self.checkpoint.restore(self.wanted.task);
        ReduceTask {
            inputs,
            inputs_are_partial,
            restore,
            ..self.wanted.task.clone()
        }
    }
}
