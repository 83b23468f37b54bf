//! Simulated machines: processes that take virtual time, and follow signals and messages as task processes do, unless
//! something is drawn to go wrong.

mod channel;
mod fate;
mod process;
mod task;

use std::collections::BTreeMap;
use std::fmt::Display;
use std::io;
use std::sync::{Arc, Mutex};

use napreduce_engine::{AttemptId, Slots, TaskKind};
use napreduce_local::process::{
    Launch, Pending, ProcessMemory, Processes, SpareMemory, TaskProcess,
};
use napreduce_local::world::Tasks;
use napreduce_protocol::lock;
use rustix::process::Pid;
use tokio::time::{Instant, sleep};

use self::fate::Fate;
use self::process::{Process, SimProcess};
use self::task::SimTask;
use crate::chance::Chance;
use crate::facts::Facts;
use crate::log::Log;
use crate::plan::Speed;

/// How often something goes wrong with processes.
#[derive(Debug, Clone)]
pub struct TaskFaults {
    /// How fast processes are with which nothing goes wrong.
    pub speed: Speed,
    /// The number of processes, of 1000, with which something goes wrong.
    pub permille: u32,
    /// The number of other processes, of 1000, that fail on the storage of outputs.
    pub storage_permille: u32,
    /// Nothing is drawn after this time.
    pub until: Instant,
    /// Draws what goes wrong.
    pub chance: Chance,
}

/// The machine of one worker.
#[derive(Debug)]
pub struct SimMachine {
    state: Arc<MachineState>,
}

#[derive(Debug)]
struct MachineState {
    name: String,
    slots: Slots,
    log: Log,
    facts: Facts,
    tasks: Tasks,
    faults: Mutex<TaskFaults>,
    processes: Mutex<Processing>,
}

/// The processes that are not reaped.
#[derive(Debug, Default)]
struct Processing {
    started: i32,
    by_pid: BTreeMap<i32, Arc<Process>>,
}

impl SimMachine {
    /// Creates the machine of a worker with this name and these slots, whose processes are tasks of its host.
    pub fn new(
        name: &str,
        tasks: Tasks,
        slots: Slots,
        faults: TaskFaults,
        facts: &Facts,
        log: &Log,
    ) -> SimMachine {
        SimMachine {
            state: Arc::new(MachineState {
                name: name.to_owned(),
                slots,
                log: log.clone(),
                facts: facts.clone(),
                tasks,
                faults: Mutex::new(faults),
                processes: Mutex::default(),
            }),
        }
    }

    /// Returns the attempts whose processes are not reaped.
    pub fn attempts(&self) -> Vec<AttemptId> {
        let processes = lock(&self.state.processes);
        processes
            .by_pid
            .values()
            .map(|process| process.attempt)
            .collect()
    }
}

impl MachineState {
    fn event(&self, attempt: AttemptId, what: impl Display) {
        self.log.event(&self.name, format_args!("{attempt} {what}"));
    }

    fn draw_fate(&self) -> Fate {
        let mut faults = lock(&self.faults);
        if faults.speed == Speed::Even {
            return Fate::even();
        }
        if Instant::now() >= faults.until {
            return Fate::draw(&mut faults.chance, 0);
        }
        let permille = faults.permille;
        let mut fate = Fate::draw(&mut faults.chance, permille);
        let storage_permille = faults.storage_permille;
        if storage_permille > 0 && faults.chance.happens(storage_permille) {
            fate.fail_on_storage(&mut faults.chance);
        }
        fate
    }

    fn add(&self, attempt: AttemptId) -> io::Result<Arc<Process>> {
        let mut processes = lock(&self.processes);
        processes.started += 1;
        let pid = Pid::from_raw(processes.started)
            .ok_or_else(|| io::Error::other("the process ids are used up"))?;
        let process = Arc::new(Process::new(pid, attempt));
        processes
            .by_pid
            .insert(pid.as_raw_nonzero().get(), Arc::clone(&process));
        Ok(process)
    }

    fn remove(&self, pid: Pid) {
        lock(&self.processes)
            .by_pid
            .remove(&pid.as_raw_nonzero().get());
    }

    /// Checks that no more processes work than there are slots. A process that was woken to save its work has none.
    fn check_slots(&self) {
        let processes = lock(&self.processes);
        for (kind, slots) in [
            (TaskKind::Map, self.slots.map),
            (TaskKind::Reduce, self.slots.reduce),
        ] {
            let working: Vec<String> = processes
                .by_pid
                .values()
                .filter(|process| process.attempt.task.kind == kind)
                .filter(|process| process.works())
                .map(|process| process.attempt.to_string())
                .collect();
            if working.len() > slots as usize {
                let what = format!(
                    "{slots} {kind} slots, but these work: {}",
                    working.join(", ")
                );
                self.log.violation(&self.name, what);
            }
        }
    }
}

/// Returns the attempt that a launch is for.
fn attempt_of(launch: &Launch) -> Option<AttemptId> {
    for (name, value) in &launch.variables {
        if *name == "NAPREDUCE_ATTEMPT_ID" {
            return value.as_ref()?.to_str()?.parse().ok();
        }
    }
    None
}

impl Processes for SimMachine {
    fn start(&self, launch: Launch) -> Pending<'_, Box<dyn TaskProcess>> {
        Box::pin(async move {
            let attempt = attempt_of(&launch)
                .ok_or_else(|| io::Error::other("the launch names no attempt"))?;
            let fate = self.state.draw_fate();
            if fate.is_troubled {
                self.state.facts.note_trouble(attempt);
            }
            if self.state.facts.is_paused(attempt.task.job) {
                let what = format!("{attempt} starts although its job is paused");
                self.state.log.violation(&self.state.name, what);
            }
            sleep(fate.start / 4).await;
            if fate.is_stillborn {
                self.state.event(attempt, "cannot be started");
                return Err(io::ErrorKind::WouldBlock.into());
            }
            let process = self.state.add(attempt)?;
            self.state.event(attempt, "is started");
            if !self.state.facts.note_start(attempt) {
                let what = format!("{attempt} starts a second time");
                self.state.log.violation(&self.state.name, what);
            }
            self.state.check_slots();
            let (control, channel) = channel::pair();
            let reflexes = fate.reflexes;
            let task = SimTask::new(Arc::clone(&process), Arc::clone(&self.state), channel, fate);
            self.state.tasks.spawn(task.run());
            let handle = SimProcess {
                process,
                control,
                reflexes,
                machine: Arc::clone(&self.state),
            };
            Ok(Box::new(handle) as Box<dyn TaskProcess>)
        })
    }

    fn sweep(&self, _: Vec<String>) {}

    fn memory_of(&self, _: Pid) -> io::Result<ProcessMemory> {
        Ok(ProcessMemory {
            resident: 100 << 20,
            ..ProcessMemory::default()
        })
    }

    fn spare_memory(&self) -> io::Result<SpareMemory> {
        Ok(SpareMemory {
            available: 8 << 30,
            swap_free: 8 << 30,
        })
    }

    fn stalled_micros(&self) -> Option<u64> {
        None
    }

    fn oom_kills(&self) -> u64 {
        0
    }
}
