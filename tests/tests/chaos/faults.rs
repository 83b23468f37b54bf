//! One function for each kind of fault; each verifies that the fault had its effect. Preemptions are in
//! `preemptions`.

use std::thread::sleep;
use std::time::Duration;

use rand::Rng;
use rand::seq::IndexedRandom;
use rand_pcg::Pcg64;
use rustix::process::Signal;

use crate::daemons::{Daemons, LIVENESS, TASK_SILENCE};
use crate::processes::{Process, wait_until};
use crate::workload::Workload;
use crate::{preemptions, reachability, storage_faults};

/// Deadline for the effect of a fault.
const DEADLINE: Duration = Duration::from_secs(60);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    TaskKilled,
    TaskStopped,
    WorkerKilled,
    WorkerStopped,
    CoordinatorKilled,
    CoordinatorStopped,
    BothKilled,
    LinkCut,
    LinkDelayed,
    LinkSilenced,
    TaskSuspended,
    JobSuspended,
    TaskCheckpointed,
    SuspendedTaskKilled,
    SavingTaskKilled,
    CoordinatorKilledWhileSuspended,
    WorkerKilledWhileSuspended,
    WorkerNameTaken,
    HostCannotBeReached,
    HostCannotReach,
    DiskFull,
    OutputsAway,
}

/// The result of an injection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Injected {
    /// Its effect was observed.
    Fired,
    /// There was no task or connection to hit.
    NothingToHit,
    /// Not possible on this machine, as reported at the start, or not on this kind of cluster.
    CannotBeHad,
}

impl Fault {
    pub const ALL: [Fault; 22] = [
        Fault::TaskKilled,
        Fault::TaskStopped,
        Fault::WorkerKilled,
        Fault::WorkerStopped,
        Fault::CoordinatorKilled,
        Fault::CoordinatorStopped,
        Fault::BothKilled,
        Fault::LinkCut,
        Fault::LinkDelayed,
        Fault::LinkSilenced,
        Fault::TaskSuspended,
        Fault::JobSuspended,
        Fault::TaskCheckpointed,
        Fault::SuspendedTaskKilled,
        Fault::SavingTaskKilled,
        Fault::CoordinatorKilledWhileSuspended,
        Fault::WorkerKilledWhileSuspended,
        Fault::WorkerNameTaken,
        Fault::HostCannotBeReached,
        Fault::HostCannotReach,
        Fault::DiskFull,
        Fault::OutputsAway,
    ];

    /// Injects the fault into a random victim, and undoes it if necessary.
    pub fn inject(
        self,
        random: &mut Pcg64,
        daemons: &mut Daemons,
        workload: &Workload,
    ) -> Result<Injected, String> {
        let victim = random.random_range(0..daemons.workers.len());
        match self {
            Fault::TaskKilled => kill_task(random, daemons),
            Fault::TaskStopped => stop_task(random, daemons),
            Fault::WorkerKilled => {
                fired(daemons.kill_worker(victim), "the worker was killed")?;
                pause(random, 0..1_500);
                daemons.restart_worker(victim);
                Ok(Injected::Fired)
            }
            Fault::WorkerStopped => stop_worker(daemons, victim),
            Fault::CoordinatorKilled => {
                fired(daemons.kill_coordinator(), "the coordinator was killed")?;
                pause(random, 0..1_500);
                daemons.restart_coordinator();
                Ok(Injected::Fired)
            }
            Fault::CoordinatorStopped => stop_coordinator(daemons),
            Fault::BothKilled => {
                fired(daemons.kill_coordinator(), "the coordinator was killed")?;
                fired(daemons.kill_worker(victim), "the worker was killed")?;
                daemons.restart_worker(victim);
                pause(random, 0..500);
                daemons.restart_coordinator();
                Ok(Injected::Fired)
            }
            Fault::LinkCut => Ok(match daemons.workers[victim].link.cut() {
                0 => Injected::NothingToHit,
                _ => Injected::Fired,
            }),
            Fault::LinkDelayed => delay_link(random, daemons, victim),
            Fault::LinkSilenced => silence_link(daemons, victim),
            Fault::TaskSuspended => preemptions::suspend_task(random, daemons),
            Fault::JobSuspended => preemptions::suspend_job(random, daemons),
            Fault::TaskCheckpointed => preemptions::checkpoint_task(random, daemons),
            Fault::SuspendedTaskKilled => preemptions::kill_suspended_task(random, daemons),
            Fault::SavingTaskKilled => preemptions::kill_while_saving(random, daemons),
            Fault::CoordinatorKilledWhileSuspended => {
                preemptions::kill_coordinator_while_suspended(random, daemons)
            }
            Fault::WorkerKilledWhileSuspended => {
                preemptions::kill_worker_while_suspended(random, daemons)
            }
            Fault::WorkerNameTaken => daemons.start_twin(victim).map(|()| Injected::Fired),
            Fault::HostCannotBeReached if daemons.network => {
                Ok(reachability::cannot_be_reached(random, daemons, victim))
            }
            Fault::HostCannotReach if daemons.network => {
                Ok(reachability::cannot_reach(random, daemons, victim))
            }
            Fault::HostCannotBeReached | Fault::HostCannotReach => Ok(Injected::CannotBeHad),
            Fault::DiskFull => storage_faults::fill_disk(daemons),
            Fault::OutputsAway => storage_faults::unmount_outputs(random, workload),
        }
    }
}

fn fired(really: bool, what: &str) -> Result<(), String> {
    if really {
        Ok(())
    } else {
        Err(format!("it is not true that {what}"))
    }
}

fn pause(random: &mut Pcg64, millis: std::ops::Range<u64>) {
    sleep(Duration::from_millis(random.random_range(millis)));
}

fn any_task(random: &mut Pcg64, daemons: &Daemons) -> Option<Process> {
    let workers = daemons.workers.iter();
    let tasks = workers.flat_map(|worker| Process::tasks_of(worker.process.id()));
    // A stopped attempt was suspended by the cluster and is not killed as hung.
    let tasks: Vec<Process> = tasks.filter(|task| !task.is_stopped()).collect();
    tasks.choose(random).copied()
}

fn kill_task(random: &mut Pcg64, daemons: &Daemons) -> Result<Injected, String> {
    let Some(task) = any_task(random, daemons) else {
        return Ok(Injected::NothingToHit);
    };
    if !task.signal(Signal::KILL) {
        return Ok(Injected::NothingToHit);
    }
    wait_until("the end of a killed task", DEADLINE, || task.is_gone())?;
    Ok(Injected::Fired)
}

/// Stops a task with a signal; its worker must kill it.
fn stop_task(random: &mut Pcg64, daemons: &Daemons) -> Result<Injected, String> {
    let Some(task) = any_task(random, daemons) else {
        return Ok(Injected::NothingToHit);
    };
    if !task.signal(Signal::STOP) {
        return Ok(Injected::NothingToHit);
    }
    wait_until("a stopped task, or its end", DEADLINE, || {
        task.is_stopped() || task.is_gone()
    })?;
    if task.is_gone() {
        return Ok(Injected::NothingToHit);
    }
    wait_until(
        "the end of a task that was stopped for too long",
        TASK_SILENCE + DEADLINE,
        || task.is_gone(),
    )?;
    Ok(Injected::Fired)
}

/// Stops a worker for longer than the liveness limit. It must be lost and return as a new worker.
fn stop_worker(daemons: &Daemons, victim: usize) -> Result<Injected, String> {
    let number = daemons.workers[victim].process.id();
    let worker = Process::of(number).ok_or("a worker that was running is gone")?;
    let lost = daemons.said("is lost");
    fired(worker.signal(Signal::STOP), "the worker was stopped")?;
    wait_until("a stopped worker", DEADLINE, || worker.is_stopped())?;
    // A worker that had not joined yet cannot be lost, but it was stopped.
    let seen = wait_until("the loss of a stopped worker", LIVENESS * 3, || {
        daemons.said("is lost") > lost
    });
    fired(worker.signal(Signal::CONT), "the worker goes on")?;
    Ok(if seen.is_ok() {
        Injected::Fired
    } else {
        Injected::NothingToHit
    })
}

fn stop_coordinator(daemons: &Daemons) -> Result<Injected, String> {
    let coordinator = Process::of(daemons.coordinator.id()).ok_or("the coordinator is gone")?;
    fired(
        coordinator.signal(Signal::STOP),
        "the coordinator was stopped",
    )?;
    wait_until("a stopped coordinator", DEADLINE, || {
        coordinator.is_stopped()
    })?;
    sleep(LIVENESS * 3 / 2);
    fired(coordinator.signal(Signal::CONT), "the coordinator goes on")?;
    Ok(Injected::Fired)
}

fn delay_link(random: &mut Pcg64, daemons: &Daemons, victim: usize) -> Result<Injected, String> {
    let link = &daemons.workers[victim].link;
    let before = link.delayed();
    link.delay(Duration::from_millis(random.random_range(10..150)));
    sleep(Duration::from_millis(800));
    link.delay(Duration::ZERO);
    Ok(if link.delayed() > before {
        Injected::Fired
    } else {
        Injected::NothingToHit
    })
}

/// Holds back all bytes for longer than the liveness limit; each side must lose the other.
fn silence_link(daemons: &Daemons, victim: usize) -> Result<Injected, String> {
    let link = &daemons.workers[victim].link;
    let before = link.silenced();
    link.silence(true);
    sleep(LIVENESS * 3 / 2);
    link.silence(false);
    Ok(if link.silenced() > before {
        Injected::Fired
    } else {
        Injected::NothingToHit
    })
}
