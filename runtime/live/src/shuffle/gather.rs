//! The inputs of one reduce attempt, from the first one named until there is one of each map task.
//!
//! Owns which inputs are here, which are awaited and which were lost. Does not own the fetches (`fetch`). Where all of
//! them are local and complete, as in embedded mode, nothing is started and nothing waits.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender};
use std::time::{Duration, Instant};

use napreduce_core::AttemptId;

use super::fetch::{FetchOrder, Fetches};
use super::{DataNetwork, MapInput, Place};
use crate::counters::Counter;
use crate::task::{Boundary, TaskContext, TaskError};

/// How often a task that waits shows that it is well, and looks whether it is still wanted.
const WAITING_TICK: Duration = Duration::from_millis(200);

/// What a gathering waits for.
#[derive(Debug)]
pub(crate) enum Arrival {
    /// The worker names more map outputs.
    Named(Vec<MapInput>),
    /// A map output is here, in a file of this attempt's own.
    Fetched { attempt: AttemptId, path: PathBuf },
    /// These map outputs cannot be fetched.
    Lost { attempts: Vec<AttemptId>, reason: String },
    /// This attempt cannot go on.
    Failed(TaskError),
    /// Somebody has asked for something at the gate of this attempt.
    Asked,
}

/// A reduce attempt that needs its inputs.
pub(crate) struct Gathering<'a> {
    pub(crate) partition: u32,
    /// How many map tasks there are.
    pub(crate) maps: u32,
    /// An existing directory of this attempt's own.
    pub(crate) scratch: &'a Path,
    pub(crate) network: Option<&'a DataNetwork>,
    pub(crate) context: &'a Arc<TaskContext>,
    /// Where everything arrives.
    pub(crate) arrivals: (&'a Sender<Arrival>, &'a Receiver<Arrival>),
}

/// The input of one map task.
struct Input {
    attempt: AttemptId,
    state: State,
}

#[derive(Debug, PartialEq, Eq)]
enum State {
    /// A worker's file on this host.
    Local(PathBuf),
    /// A file of this attempt's own.
    Fetched(PathBuf),
    /// It is being fetched from this data server.
    Awaited(String),
    /// Reported as such; what replaces it is waited for.
    Lost,
}

impl Gathering<'_> {
    /// Waits until there is an input of each map task; the inputs in the order of their tasks. `report` is told about
    /// those that cannot be fetched.
    pub(crate) fn gather(
        self,
        named: Vec<MapInput>,
        report: impl FnMut(Vec<AttemptId>, String) -> Result<(), TaskError>,
    ) -> Result<Vec<(AttemptId, PathBuf)>, TaskError> {
        let began = Instant::now();
        let context = self.context;
        let mut running =
            Running { gathering: self, inputs: BTreeMap::new(), fetches: None, here: 0, report };
        running.take_in(named)?;
        while running.here < running.gathering.maps as usize {
            running.wait()?;
        }
        let waited = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
        context.counters().add(Counter::ShuffleFetchMillis, waited);
        // From now on, progress is that of the merge.
        context.progress().set_done(0);
        Ok(running.inputs.into_values().filter_map(Input::path).collect())
    }
}

impl Input {
    fn path(self) -> Option<(AttemptId, PathBuf)> {
        match self.state {
            State::Local(path) | State::Fetched(path) => Some((self.attempt, path)),
            State::Awaited(_) | State::Lost => None,
        }
    }

    fn is_here(&self) -> bool {
        matches!(self.state, State::Local(_) | State::Fetched(_))
    }
}

struct Running<'a, R> {
    gathering: Gathering<'a>,
    /// By map task.
    inputs: BTreeMap<u32, Input>,
    /// How many of them are here.
    here: usize,
    /// Started with the first input that is elsewhere.
    fetches: Option<Fetches>,
    report: R,
}

impl<R: FnMut(Vec<AttemptId>, String) -> Result<(), TaskError>> Running<'_, R> {
    fn wait(&mut self) -> Result<(), TaskError> {
        match self.gathering.arrivals.1.recv_timeout(WAITING_TICK) {
            Ok(Arrival::Named(named)) => self.take_in(named)?,
            Ok(Arrival::Fetched { attempt, path }) => self.on_fetched(attempt, path),
            Ok(Arrival::Lost { attempts, reason }) => self.on_lost(attempts, reason)?,
            Ok(Arrival::Failed(error)) => return Err(error),
            Ok(Arrival::Asked) => {}
            Err(RecvTimeoutError::Timeout) => self.gathering.context.progress().still_waiting(),
            Err(RecvTimeoutError::Disconnected) => {
                return Err(TaskError::retryable("the worker closed the control channel"));
            }
        }
        if self.gathering.context.is_asked() {
            self.pass_gate()?;
        }
        if self.gathering.context.interrupted() {
            return Err(TaskError::retryable("asked to stop while waiting for map outputs"));
        }
        Ok(())
    }

    /// Waiting is a boundary. Nothing is fetched while this process is stopped: connections would only grow old.
    fn pass_gate(&mut self) -> Result<Boundary, TaskError> {
        if let Some(fetches) = &self.fetches {
            fetches.pause();
        }
        let passed = self.gathering.context.boundary(&mut ());
        if let Some(fetches) = &self.fetches {
            fetches.go_on();
        }
        passed
    }

    fn take_in(&mut self, named: Vec<MapInput>) -> Result<(), TaskError> {
        for MapInput { attempt, place } in named {
            let map = attempt.task.index;
            if map >= self.gathering.maps {
                let maps = self.gathering.maps;
                return Err(TaskError::fatal(format!(
                    "{attempt} is named as an input where there are {maps} maps"
                )));
            }
            let known = self.inputs.get(&map);
            match place {
                Place::Local(path) => {
                    if let Some(fetches) = &self.fetches {
                        fetches.forget(map);
                    }
                    self.put(attempt, State::Local(path));
                }
                // What was fetched was verified, and cannot be lost any more.
                Place::Remote(_) if known.is_some_and(|input| matches!(input.state, State::Fetched(_))) => {}
                Place::Remote(address) => {
                    let state = State::Awaited(address.clone());
                    if known.is_some_and(|input| input.attempt == attempt && input.state == state) {
                        continue;
                    }
                    let fetches = self.fetches(attempt, &address)?;
                    fetches.forget(map);
                    fetches.want(attempt, &address);
                    self.put(attempt, state);
                }
            }
        }
        Ok(())
    }

    /// What fetches, started if need be.
    fn fetches(&mut self, attempt: AttemptId, address: &str) -> Result<&Fetches, TaskError> {
        let Gathering { partition, scratch, network, context, arrivals, .. } = &self.gathering;
        let Some(network) = network else {
            return Err(TaskError::fatal(format!(
                "the output of {attempt} is at {address}, and this task was given no way to reach other workers"
            )));
        };
        match &mut self.fetches {
            Some(fetches) => Ok(fetches),
            none => Ok(none.insert(Fetches::start(FetchOrder {
                network: (*network).clone(),
                partition: *partition,
                scratch: (*scratch).to_owned(),
                context: Arc::clone(context),
                arrivals: arrivals.0.clone(),
            })?)),
        }
    }

    fn put(&mut self, attempt: AttemptId, state: State) {
        let input = Input { attempt, state };
        self.here += usize::from(input.is_here());
        if let Some(replaced) = self.inputs.insert(attempt.task.index, input) {
            self.here -= usize::from(replaced.is_here());
        }
    }

    /// One that was replaced meanwhile is of no use; its file goes with the scratch.
    fn on_fetched(&mut self, attempt: AttemptId, path: PathBuf) {
        if self.awaits(attempt) {
            self.put(attempt, State::Fetched(path));
        }
    }

    fn on_lost(&mut self, attempts: Vec<AttemptId>, reason: String) -> Result<(), TaskError> {
        let lost: Vec<AttemptId> = attempts.into_iter().filter(|attempt| self.awaits(*attempt)).collect();
        for attempt in &lost {
            self.put(*attempt, State::Lost);
        }
        if lost.is_empty() { Ok(()) } else { (self.report)(lost, reason) }
    }

    fn awaits(&self, attempt: AttemptId) -> bool {
        let input = self.inputs.get(&attempt.task.index);
        input.is_some_and(|input| input.attempt == attempt && matches!(input.state, State::Awaited(_)))
    }
}
