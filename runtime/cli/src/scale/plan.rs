//! The number of workers, as a pure function of demand and current workers.

use std::time::Duration;

use clap::Args;
use napreduce_protocol::parse_time;

/// Limits of the number of workers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Args)]
pub struct Bounds {
    /// Minimum number of workers
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub min: u32,
    /// Maximum number of workers, including pending ones
    #[arg(long, value_name = "N", default_value_t = 20)]
    pub max: u32,
    /// Idle time after which a worker is drained
    #[arg(long, value_name = "TIME", value_parser = parse_time, default_value = "5m")]
    pub idle: Duration,
}

/// A batch job of ours.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BatchJob {
    pub id: String,
    pub phase: BatchPhase,
    /// The name of its worker in the cluster.
    pub worker: String,
}

/// The state of a batch job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BatchPhase {
    Pending,
    /// It has a node; its worker may not have joined yet.
    Running,
    Ending,
}

/// A worker of one of our batch jobs that may get tasks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Member {
    pub name: String,
    /// `None` if it runs tasks.
    pub idle_for: Option<Duration>,
}

/// The input of a decision.
#[derive(Debug, Clone, Copy)]
pub struct Round<'a> {
    /// Slots that jobs could use in addition to those they hold.
    pub wanted: u64,
    /// Whether slots have been wanted for at least one interval.
    pub waits: bool,
    /// Slots of one worker.
    pub slots_each: u64,
    pub jobs: &'a [BatchJob],
    pub members: &'a [Member],
}

/// A decision.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Plan {
    pub submit: u32,
    /// IDs of batch jobs.
    pub cancel: Vec<String>,
    /// Names of workers.
    pub drain: Vec<String>,
}

/// Decides how many workers to submit, and which to cancel and to drain.
pub fn plan(bounds: &Bounds, round: &Round<'_>) -> Plan {
    let count = |phase| round.jobs.iter().filter(|job| job.phase == phase).count() as u64;
    let pending = count(BatchPhase::Pending);
    let running = count(BatchPhase::Running);
    let joined = |job: &&BatchJob| round.members.iter().any(|member| member.name == job.worker);
    let up = round.jobs.iter().filter(joined).count() as u64;
    // Jobs that are ending do not count.
    let useful = pending + running;
    let min = u64::from(bounds.min);
    let max = u64::from(bounds.max);
    if round.wanted == 0 {
        let cancel = newest_pending(round.jobs, useful.saturating_sub(min));
        let left = useful - cancel.len() as u64;
        let drain = longest_idle(round.members, bounds.idle, left.saturating_sub(min));
        let submit = min.saturating_sub(useful);
        return Plan {
            submit: capped(submit),
            cancel,
            drain,
        };
    }
    let coming = useful.saturating_sub(up);
    let lacking = if round.waits {
        round
            .wanted
            .div_ceil(round.slots_each)
            .saturating_sub(coming)
    } else {
        0
    };
    let submit = lacking
        .max(min.saturating_sub(useful))
        .min(max.saturating_sub(useful));
    Plan {
        submit: capped(submit),
        ..Plan::default()
    }
}

/// Returns the newest pending jobs; older ones will get a node sooner.
fn newest_pending(jobs: &[BatchJob], most: u64) -> Vec<String> {
    let pending = jobs
        .iter()
        .rev()
        .filter(|job| job.phase == BatchPhase::Pending);
    pending
        .take(usize::try_from(most).unwrap_or(usize::MAX))
        .map(|job| job.id.clone())
        .collect()
}

fn longest_idle(members: &[Member], idle: Duration, most: u64) -> Vec<String> {
    let mut idle: Vec<(Duration, &Member)> = members
        .iter()
        .filter_map(|member| Some((member.idle_for.filter(|time| *time >= idle)?, member)))
        .collect();
    idle.sort_by(|(one, left), (other, right)| {
        other.cmp(one).then_with(|| left.name.cmp(&right.name))
    });
    idle.truncate(usize::try_from(most).unwrap_or(usize::MAX));
    idle.into_iter()
        .map(|(_, member)| member.name.clone())
        .collect()
}

fn capped(count: u64) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Jobs `P` pending, `R` running without a worker yet, `U` with a worker that is up and busy, `I` with
    /// one that has been idle for six minutes, `N` for one minute, `E` ending. The index is the name of job and
    /// worker.
    fn decide(min: u32, max: u32, wanted: u64, waits: bool, slots_each: u64, queue: &str) -> Plan {
        let mut jobs = Vec::new();
        let mut members = Vec::new();
        for (at, letter) in queue.chars().enumerate() {
            let phase = match letter {
                'P' => BatchPhase::Pending,
                'E' => BatchPhase::Ending,
                _ => BatchPhase::Running,
            };
            jobs.push(BatchJob {
                id: at.to_string(),
                phase,
                worker: format!("w{at}"),
            });
            let idle_for = match letter {
                'U' => None,
                'I' => Some(Duration::from_secs(360 + at as u64)),
                'N' => Some(Duration::from_secs(60)),
                _ => continue,
            };
            members.push(Member {
                name: format!("w{at}"),
                idle_for,
            });
        }
        let bounds = Bounds {
            min,
            max,
            idle: Duration::from_secs(300),
        };
        plan(
            &bounds,
            &Round {
                wanted,
                waits,
                slots_each,
                jobs: &jobs,
                members: &members,
            },
        )
    }

    fn submitted(min: u32, max: u32, wanted: u64, slots_each: u64, queue: &str) -> u32 {
        let plan = decide(min, max, wanted, true, slots_each, queue);
        assert_eq!(
            (&plan.cancel, &plan.drain),
            (&Vec::new(), &Vec::new()),
            "{queue} with {wanted} wanted"
        );
        plan.submit
    }

    #[test]
    fn plan_submits_workers_for_waiting_tasks() {
        assert_eq!(submitted(0, 20, 1, 4, ""), 1);
        assert_eq!(submitted(0, 20, 8, 4, ""), 2);
        assert_eq!(submitted(0, 20, 9, 4, ""), 3);
        assert_eq!(submitted(0, 20, 9, 4, "UU"), 3, "busy workers do not help");
        assert_eq!(submitted(0, 20, 9, 4, "PR"), 1, "starting workers help");
        assert_eq!(submitted(0, 20, 9, 4, "PRP"), 0);
        assert_eq!(
            submitted(0, 20, 9, 4, "EE"),
            3,
            "ending workers do not help"
        );
        assert_eq!(submitted(0, 20, u64::MAX, 1, ""), 20);
    }

    #[test]
    fn plan_stays_within_bounds() {
        assert_eq!(submitted(0, 2, 100, 1, ""), 2);
        assert_eq!(submitted(0, 2, 100, 1, "U"), 1);
        assert_eq!(submitted(0, 2, 100, 1, "UP"), 0);
        assert_eq!(submitted(0, 2, 100, 1, "UPUUP"), 0, "more than the maximum");
        assert_eq!(submitted(3, 5, 1, 8, ""), 3);
        assert_eq!(submitted(3, 5, 0, 8, "U"), 2);
        assert_eq!(submitted(3, 5, 0, 8, "UPR"), 0);
    }

    #[test]
    fn plan_ignores_tasks_that_wait_briefly() {
        assert_eq!(decide(0, 20, 9, false, 1, ""), Plan::default());
        assert_eq!(
            decide(2, 20, 9, false, 1, "U").submit,
            1,
            "the minimum is always submitted"
        );
    }

    #[test]
    fn plan_cancels_newest_pending_jobs_without_demand() {
        let cancelled = |min, queue| decide(min, 20, 0, false, 1, queue).cancel;
        assert_eq!(cancelled(0, "UPP"), ["2", "1"]);
        assert_eq!(cancelled(2, "UPP"), ["2"]);
        assert_eq!(cancelled(3, "UPP"), [""; 0]);
        assert_eq!(
            cancelled(0, "RUE"),
            [""; 0],
            "running jobs are not cancelled"
        );
        assert_eq!(decide(0, 20, 1, true, 1, "UPP").cancel, [""; 0]);
    }

    #[test]
    fn plan_drains_longest_idle_workers_first() {
        let drained = |min, wanted, queue| decide(min, 20, wanted, true, 1, queue).drain;
        assert_eq!(drained(0, 0, "IUNI"), ["w3", "w0"]);
        assert_eq!(drained(3, 0, "IUNI"), ["w3"]);
        assert_eq!(drained(4, 0, "IUNI"), [""; 0]);
        assert_eq!(drained(0, 1, "IUNI"), [""; 0], "slots are wanted");
        assert_eq!(drained(1, 0, "IP"), [""; 0], "one worker must remain");
    }
}
