//! Checks whether this machine can keep another attempt suspended.
//!
//! The limits of memory and memory pressure have a hysteresis, so that a machine at its limit does not
//! alternate between accepting and rejecting.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use napreduce_engine::AttemptId;
use napreduce_protocol::{SuspendedMemory, WorkerMemory, lock};
use rustix::process::Pid;
use thiserror::Error;
use tokio::time::Instant;

use super::configuration::SuspendRules;
use super::environment::Environment;
use crate::clock::now;
use crate::process::{ProcessMemory, Processes, SpareMemory};

/// Granularity of reported memory and disk.
const FREE_STEP: u64 = 16 << 20;
const USED_STEP: u64 = 1 << 20;
/// Window for measuring memory pressure.
const PRESSURE_WINDOW: Duration = Duration::from_secs(2);
/// Shorter windows give no measurement.
const PRESSURE_WINDOW_MIN: Duration = Duration::from_millis(200);
/// An exceeded limit admits again below this fraction of it, in tenths.
const MEMORY_AGAIN_TENTHS: u64 = 9;
const PRESSURE_AGAIN_TENTHS: u64 = 5;

/// The limits of one worker and the state of its suspended attempts.
#[derive(Debug)]
pub(super) struct Admission {
    pub(super) rules: SuspendRules,
    pub(super) processes: Arc<dyn Processes>,
    state: Mutex<AdmissionState>,
}

#[derive(Debug, Default)]
struct AdmissionState {
    suspended: BTreeMap<AttemptId, Pid>,
    memory: Limit,
    pressure: Limit,
    samples: VecDeque<(Instant, u64)>,
    /// The memory reported last.
    reported: WorkerMemory,
}

/// The limit that an attempt would exceed if it were suspended.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub(super) enum SuspendRefusal {
    #[error("all tasks stalled on memory for {percent} % of the last seconds (limit {limit} %)")]
    Pressure { percent: u64, limit: u64 },
    #[error("suspended attempts would hold {held_mib} MiB (limit {limit_mib} MiB)")]
    Memory { held_mib: u64, limit_mib: u64 },
}

/// A limit with hysteresis.
#[derive(Debug, Default)]
struct Limit {
    closed: bool,
}

impl Limit {
    /// Closes above `limit` and opens again at `tenths` of it.
    fn admits(&mut self, value: u64, limit: u64, tenths: u64) -> bool {
        let bound = if self.closed {
            limit / 10 * tenths + limit % 10 * tenths / 10
        } else {
            limit
        };
        self.closed = value > bound;
        !self.closed
    }
}

impl Admission {
    pub(super) fn new(rules: SuspendRules, processes: Arc<dyn Processes>) -> Admission {
        Admission {
            rules,
            processes,
            state: Mutex::default(),
        }
    }

    /// Locks the state; no panic can leave it half-changed.
    fn state(&self) -> MutexGuard<'_, AdmissionState> {
        lock(&self.state)
    }

    /// Samples the memory pressure; called several times a second while an attempt runs.
    pub(super) fn sample(&self) {
        if let Some(micros) = self.processes.stalled_micros() {
            self.state().sample(now(), micros);
        }
    }

    /// Admits an attempt.
    ///
    /// # Errors
    /// Reports the limit that is exceeded.
    pub(super) fn admit(&self, attempt: AttemptId, process: Pid) -> Result<(), SuspendRefusal> {
        self.sample();
        let resident = |process| {
            self.processes
                .memory_of(process)
                .map_or(0, |memory| memory.resident)
        };
        let held: Vec<Pid> = self
            .state()
            .suspended
            .iter()
            .filter(|(id, _)| **id != attempt)
            .map(|(_, pid)| *pid)
            .collect();
        let sum = held
            .into_iter()
            .map(resident)
            .fold(resident(process), u64::saturating_add);
        let mut state = self.state();
        if let Some(percent) = state.pressure_percent() {
            let limit = u64::from(self.rules.pressure_max_percent);
            if !state.pressure.admits(percent, limit, PRESSURE_AGAIN_TENTHS) {
                return Err(SuspendRefusal::Pressure { percent, limit });
            }
        }
        // If the machine does not report its memory, there is no limit.
        if let Ok(spare) = self.processes.spare_memory() {
            let limit = self.room(spare);
            if !state.memory.admits(sum, limit, MEMORY_AGAIN_TENTHS) {
                return Err(SuspendRefusal::Memory {
                    held_mib: sum >> 20,
                    limit_mib: limit >> 20,
                });
            }
        }
        Ok(())
    }

    /// Returns how much memory suspended attempts may hold.
    fn room(&self, spare: SpareMemory) -> u64 {
        let share = u64::from(self.rules.swap_share_percent);
        let room = (spare.swap_free / 100)
            .saturating_mul(share)
            .saturating_add(spare.available);
        self.rules.memory_max.map_or(room, |most| most.min(room))
    }

    /// Records a suspended attempt.
    pub(super) fn keep(&self, attempt: AttemptId, process: Pid) {
        self.state().suspended.insert(attempt, process);
    }

    /// Returns the memory held by each suspended attempt and by all groups, and the free memory, swap and disk,
    /// if changed since the last report.
    pub(super) fn news(&self, environment: Option<&dyn Environment>) -> Option<WorkerMemory> {
        let held: Vec<(AttemptId, Pid)> = self
            .state()
            .suspended
            .iter()
            .map(|(attempt, process)| (*attempt, *process))
            .collect();
        let memory = |(attempt, process)| {
            // A process that has just ended holds no memory.
            let ProcessMemory {
                resident, swapped, ..
            } = self.processes.memory_of(process).unwrap_or_default();
            SuspendedMemory {
                attempt,
                resident_bytes: resident,
                swapped_bytes: swapped,
            }
        };
        let spare = self.processes.spare_memory().unwrap_or_default();
        let groups = environment.and_then(|environment| environment.isolation().groups.as_ref());
        let disk = environment.map_or(0, |environment| environment.free_disk_bytes());
        let now = WorkerMemory {
            suspended: held.into_iter().map(memory).collect(),
            free_bytes: rounded(spare.available, FREE_STEP),
            swap_free_bytes: rounded(spare.swap_free, FREE_STEP),
            disk_free_bytes: rounded(disk, FREE_STEP),
            groups_bytes: groups
                .and_then(|groups| groups.memory_bytes())
                .map(|used| rounded(used, USED_STEP)),
        };
        let mut state = self.state();
        (state.reported != now).then(|| state.reported.clone_from(&now))?;
        Some(now)
    }

    /// Removes an attempt that is no longer suspended.
    pub(super) fn release(&self, attempt: AttemptId) {
        self.state().suspended.remove(&attempt);
    }
}

/// Rounds a value that fluctuates.
fn rounded(bytes: u64, step: u64) -> u64 {
    bytes / step * step
}

impl AdmissionState {
    fn sample(&mut self, now: Instant, micros: u64) {
        // One sample older than the window stays as its start.
        while self
            .samples
            .get(1)
            .is_some_and(|(at, _)| now.duration_since(*at) >= PRESSURE_WINDOW)
        {
            self.samples.pop_front();
        }
        self.samples.push_back((now, micros));
    }

    fn pressure_percent(&self) -> Option<u64> {
        let (from, before) = self.samples.front()?;
        let (to, after) = self.samples.back()?;
        let window = to.duration_since(*from);
        if window < PRESSURE_WINDOW_MIN {
            return None;
        }
        let stalled = u128::from(after.saturating_sub(*before)) * 100;
        u64::try_from(stalled / window.as_micros()).ok()
    }
}

#[cfg(test)]
mod tests {
    use napreduce_engine::{JobId, TaskId, TaskKind};
    use rustix::process::getpid;

    use super::super::scripted::ScriptedMachine;
    use super::*;

    fn attempt() -> AttemptId {
        AttemptId {
            task: TaskId {
                job: JobId(1),
                kind: TaskKind::Map,
                index: 0,
            },
            number: 1,
        }
    }

    #[test]
    fn closed_limit_reopens_well_below() {
        let mut gate = Limit::default();
        let admitted: Vec<bool> = [100, 101, 100, 91, 90, 100]
            .map(|value| gate.admits(value, 100, 9))
            .to_vec();
        assert_eq!(admitted, [true, false, false, false, true, true]);
    }

    #[test]
    fn pressure_covers_last_seconds_only() {
        let mut state = AdmissionState::default();
        let start = now();
        let at = |millis| start + Duration::from_millis(millis);
        state.sample(at(0), 0);
        assert_eq!(state.pressure_percent(), None);
        // Fully stalled in the first second, not at all in the next four.
        state.sample(at(1_000), 1_000_000);
        assert_eq!(state.pressure_percent(), Some(100));
        for second in 2..=5 {
            state.sample(at(second * 1_000), 1_000_000);
        }
        assert_eq!(state.pressure_percent(), Some(0));
        assert!(state.samples.len() <= 4, "{:?}", state.samples);
    }

    fn admission(machine: ScriptedMachine) -> Admission {
        Admission::new(SuspendRules::default(), Arc::new(machine))
    }

    #[tokio::test]
    async fn fitting_attempt_is_admitted() {
        let admission = admission(ScriptedMachine::new().0);
        assert_eq!(admission.admit(attempt(), getpid()), Ok(()));
    }

    #[tokio::test]
    async fn admission_without_room_reports_limit() {
        let (mut machine, _task) = ScriptedMachine::new();
        machine.spare = SpareMemory {
            available: 100 << 20,
            swap_free: 1000 << 20,
        };
        machine.memory.resident = 901 << 20;
        let refused = admission(machine).admit(attempt(), getpid());
        assert_eq!(
            refused,
            Err(SuspendRefusal::Memory {
                held_mib: 901,
                limit_mib: 900
            })
        );
    }

    #[tokio::test]
    async fn admission_under_pressure_reports_limit() {
        let (mut machine, _task) = ScriptedMachine::new();
        machine.stalled_micros = Some(10_000_000);
        let admission = admission(machine);
        let before = now()
            .checked_sub(Duration::from_secs(20))
            .expect("the machine runs for longer");
        admission.state().samples.push_back((before, 0));
        let refused = admission.admit(attempt(), getpid());
        let is_half = |percent: u64| (49..=50).contains(&percent);
        assert!(
            matches!(refused, Err(SuspendRefusal::Pressure { percent, limit: 10 }) if is_half(percent)),
            "{refused:?}"
        );
    }
}
