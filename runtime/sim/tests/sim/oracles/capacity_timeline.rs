//! Family `capacity-monitor-timeline`: several monitor rounds with applications that release or ignore
//! requests.

use napreduce_engine::{Ratio, Span, Time};
use napreduce_schedulers::capacity::MonitorConfiguration;
use napreduce_schedulers::capacity::monitor::{
    Application, Container, QueueState, QueueTree, Round, RoundOutcome, RoundSettings, Rounds,
    after_natural_termination,
};
use serde_json::{Value, json};

use crate::oracles::capacity_snapshot::{amount, field};
use crate::oracles::cases::{self, exact};

#[test]
fn oracle_capacity_monitor_timeline() {
    cases::check("capacity-monitor-timeline", |case| {
        match case["kind"].as_str() {
            Some("geometric") => geometric(case),
            Some("timeline") => timeline(case),
            Some("events") => events(case),
            Some("config") => config(case),
            kind => Err(format!("unknown kind {kind:?}")),
        }
    });
}

fn expect(case: &Value, name: &str, came: Value) -> Result<(), String> {
    let expected = field(&case["expect"], name)?;
    if *expected == came {
        Ok(())
    } else {
        Err(format!("{name} is {came}, not {expected}"))
    }
}

fn geometric(case: &Value) -> Result<(), String> {
    let factor = exact(field(case, "factor")?);
    let mut left = amount(case, "target")?;
    let mut ideal = Ratio::ONE;
    let mut taken = Vec::new();
    for _ in 0..amount(case, "rounds")? {
        taken.push(after_natural_termination(left, factor));
        left -= taken[taken.len() - 1];
        ideal = ideal * (Ratio::ONE - factor);
    }
    expect(case, "taken", json!(taken))?;
    expect(case, "left", json!(left))?;
    let expected = exact(field(&case["expect"], "ideal_left_fraction")?);
    if ideal == expected {
        Ok(())
    } else {
        Err(format!("{ideal} is left ideally, not {expected}"))
    }
}

fn config(case: &Value) -> Result<(), String> {
    let defaults = MonitorConfiguration::default();
    expect(
        case,
        "default_wait_ms",
        json!(defaults.max_wait_before_kill.0 / 1000),
    )?;
    expect(
        case,
        "balance_wait_ms",
        json!(defaults.balance_max_wait_before_kill.0 / 1000),
    )
}

fn events(case: &Value) -> Result<(), String> {
    let mut stage = Stage::of(case)?;
    let mut asked = Vec::new();
    let mut killed = Vec::new();
    for run in field(case, "runs_ms")?.as_array().into_iter().flatten() {
        let at = run.as_u64().ok_or_else(|| format!("{run} is no time"))?;
        let orders = stage.round(Time(at * 1000));
        let kills = orders
            .iter()
            .filter(|order| matches!(order, RoundOutcome::Kill(_)))
            .count();
        asked.push(orders.len() - kills);
        killed.push(kills);
        stage.reassign(&orders);
    }
    expect(case, "new_preempt_events", json!(asked))?;
    expect(case, "new_kill_events", json!(killed))
}

fn timeline(case: &Value) -> Result<(), String> {
    let mut stage = Stage::of(case)?;
    let interval = span(field(&case["config"], "interval_s")?)?;
    let quiet_at_most = 2 * stage.wait.0 / interval.0 + 2;
    let mut steps = vec![(Time(0), stage.used(0), stage.used(1))];
    let mut now = Time(0);
    let mut quiet = 0;
    // A case ends when no container has changed hands for longer than any grace period.
    while quiet <= quiet_at_most {
        let orders = stage.round(now);
        if stage.reassign(&orders) {
            steps.push((now, stage.used(0), stage.used(1)));
            quiet = 0;
        } else {
            quiet += 1;
        }
        now = now + interval;
    }
    let last = steps[steps.len() - 1];
    let step = |&(at, a, b): &(Time, usize, usize)| [seconds(at), json!(a), json!(b)];
    expect(case, "batches", json!(steps.len() - 1))?;
    expect(case, "last_batch_at", seconds(last.0))?;
    expect(case, "final_a", json!(last.1))?;
    expect(case, "final_b", json!(last.2))?;
    let first = field(&case["expect"], "first_steps")?
        .as_array()
        .map_or(0, Vec::len);
    expect(
        case,
        "first_steps",
        json!(steps.iter().take(first).map(step).collect::<Vec<_>>()),
    )
}

fn seconds(time: Time) -> Value {
    if time.0.is_multiple_of(1_000_000) {
        json!(time.0 / 1_000_000)
    } else {
        json!(time.0 as f64 / 1e6)
    }
}

fn span(seconds: &Value) -> Result<Span, String> {
    let micros = exact(seconds) * Ratio::whole(1_000_000);
    let whole = micros.denominator() == 1;
    u64::try_from(micros.numerator())
        .ok()
        .filter(|_| whole)
        .map(Span)
        .ok_or(format!("{seconds} is no time"))
}

/// The queues of a case, and the containers of their single application, oldest first.
struct Stage {
    guaranteed: Vec<u64>,
    containers: Vec<Vec<(u64, Time)>>,
    pending: Vec<u64>,
    size: u64,
    settings: RoundSettings,
    wait: Span,
    releases: bool,
    rounds: Rounds<u64>,
    last: u64,
    now: Time,
}

impl Stage {
    fn of(case: &Value) -> Result<Stage, String> {
        let config = field(case, "config")?;
        let size = amount(case, "container_size")?;
        let wait = span(field(config, "wait_before_kill_s")?)?;
        let releases = match field(case, "application")?.as_str() {
            Some("releases") => true,
            Some("ignores") => false,
            _ => return Err(format!("application is {}", case["application"])),
        };
        let mut stage = Stage {
            guaranteed: Vec::new(),
            containers: Vec::new(),
            pending: Vec::new(),
            size,
            settings: RoundSettings {
                total_per_round: exact(field(config, "total_per_round")?),
                dead_zone: exact(field(config, "max_ignored_over_capacity")?),
                natural_termination_factor: exact(field(config, "natural_termination_factor")?),
                ..RoundSettings::default()
            },
            wait,
            releases,
            rounds: Rounds::new(false),
            last: 0,
            now: Time(0),
        };
        for queue in field(case, "queues")?.as_array().into_iter().flatten() {
            stage.guaranteed.push(amount(queue, "guaranteed")? * size);
            stage.pending.push(amount(queue, "pending")?);
            stage.containers.push(Vec::new());
            for _ in 0..amount(queue, "used")? {
                stage.start(stage.guaranteed.len() - 1);
            }
        }
        stage.settings.cluster = stage.guaranteed.iter().sum();
        Ok(stage)
    }

    fn start(&mut self, queue: usize) {
        self.containers[queue].push((self.last, self.now));
        self.last += 1;
    }

    fn used(&self, queue: usize) -> usize {
        self.containers.get(queue).map_or(0, Vec::len)
    }

    fn tree(&self) -> QueueTree {
        let state = |name: String, parent, guaranteed, used: usize, pending| QueueState {
            name,
            parent,
            guaranteed: Ratio::whole(guaranteed),
            maximum: Ratio::whole(self.settings.cluster),
            used: used as u64 * self.size,
            reserved: 0,
            killable: 0,
            pending: pending * self.size,
            priority: 0,
            preemption_disabled: false,
        };
        let all = self.containers.iter().map(Vec::len).sum();
        let root = state("root".to_owned(), None, self.settings.cluster, all, 0);
        let child = |queue: usize| {
            let guaranteed = self.guaranteed[queue];
            let pending = self.pending[queue];
            state(
                queue.to_string(),
                Some(0),
                guaranteed,
                self.used(queue),
                pending,
            )
        };
        QueueTree::new(
            std::iter::once(root)
                .chain((0..self.guaranteed.len()).map(child))
                .collect(),
        )
    }

    fn round(&mut self, now: Time) -> Vec<RoundOutcome<u64>> {
        self.now = now;
        let tree = self.tree();
        let mut source = |leaf: usize| {
            let containers = self.containers[leaf - 1].iter();
            let container = |&(id, since): &(u64, Time)| Container {
                id,
                size: self.size,
                importance: 1,
                since,
                node: None,
                is_master: false,
                is_killable: false,
            };
            vec![Application {
                id: leaf as u64,
                user: String::new(),
                priority: 0,
                age: 0,
                pending: self.pending[leaf - 1] * self.size,
                reserved: Vec::new(),
                live: containers.map(container).collect(),
            }]
        };
        let outcome = Round::run(&tree, &self.settings, &mut source);
        let chosen = outcome
            .victims
            .iter()
            .map(|victim| (victim.container, self.wait));
        self.rounds.act(now, chosen)
    }

    /// Releases requested or killed containers to the queue with demand and the smallest fraction of its
    /// guarantee.
    fn reassign(&mut self, orders: &[RoundOutcome<u64>]) -> bool {
        let given = orders.iter().filter_map(|order| match *order {
            RoundOutcome::Request(container) => self.releases.then_some(container),
            RoundOutcome::Kill(container) => Some(container),
        });
        let given: Vec<u64> = given.collect();
        for queue in &mut self.containers {
            queue.retain(|(id, _)| !given.contains(id));
        }
        for container in &given {
            self.rounds.forget(*container);
            let has = |queue: &usize| {
                Ratio::whole(self.used(*queue) as u64)
                    / Ratio::whole(self.guaranteed[*queue].max(1))
            };
            let wants = (0..self.pending.len()).filter(|&queue| self.pending[queue] > 0);
            if let Some(queue) = wants.min_by_key(has) {
                self.pending[queue] -= 1;
                self.start(queue);
            }
        }
        !given.is_empty()
    }
}
