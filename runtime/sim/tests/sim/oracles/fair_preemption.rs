//! Family `fair-preemption`: starvation under Fair and the choice of victims, on two nodes of 4 GB.

use std::collections::{BTreeMap, BTreeSet};

use napreduce_engine::{JobId, Ratio, Span, Time};
use napreduce_schedulers::fair::{
    Claim, Container, Holder, Host, JobNeed, JobSnapshot, PoolSnapshot, Search, StarvationPatience,
    Starved, UNBOUNDED, is_utilised, recheck_after, set_shares, starved,
};
use serde_json::Value;

use crate::oracles::cases::{check, exact};

const GB: u64 = 1024;
const NODES: usize = 2;
const NODE: u64 = 4 * GB;
const NODE_HEARTBEAT: Span = Span::from_secs(1);
const RECHECK_DELAY: Span = Span::from_secs(10);

#[test]
fn oracle_fair_preemption() {
    check("fair-preemption", |case| match case["kind"].as_str() {
        Some("preempt") => {
            let modes = case["modes"].as_array().ok_or("no modes")?;
            modes.iter().try_for_each(|mode| {
                preempt(case, text(mode)?).map_err(|why| format!("mode {mode}: {why}"))
            })
        }
        Some("starvation") => starvation(case),
        other => Err(format!("unknown kind {other:?}")),
    });
}

/// The non-default attributes of a queue.
#[derive(Clone)]
struct Queue {
    min: u64,
    patience: StarvationPatience,
    preemptable: bool,
}

impl Default for Queue {
    fn default() -> Queue {
        let fair_share_threshold = Ratio::new(1, 2);
        let patience = StarvationPatience {
            min_share_timeout: None,
            fair_share_timeout: None,
            fair_share_threshold,
        };
        Queue {
            min: 0,
            patience,
            preemptable: true,
        }
    }
}

struct App {
    queue: String,
    submitted: Time,
    container: u64,
    wanted: u64,
    last_at_share: Time,
    next_check: Time,
}

#[derive(Clone, Copy)]
struct Running {
    app: usize,
    size: u64,
    master: bool,
}

/// The cluster with its queues and apps. The number of an app is its index.
struct World {
    now: Time,
    gate: Ratio,
    queues: BTreeMap<String, Queue>,
    last_at_min: BTreeMap<String, Time>,
    apps: Vec<App>,
    nodes: [Vec<Running>; NODES],
    masters_lost: u64,
}

impl World {
    fn new(case: &Value, queues: BTreeMap<String, Queue>) -> World {
        let gate = if case["utilization_gate"].is_null() {
            Ratio::ZERO
        } else {
            exact(&case["utilization_gate"])
        };
        let last_at_min = BTreeMap::new();
        let nodes = [Vec::new(), Vec::new()];
        World {
            now: Time(0),
            gate,
            queues,
            last_at_min,
            apps: Vec::new(),
            nodes,
            masters_lost: 0,
        }
    }

    fn submit(&mut self, queue: &str, container: u64, wanted: u64) -> usize {
        self.queues.entry(queue.to_owned()).or_default();
        let submitted = self.now;
        let queue = queue.to_owned();
        let last_at_share = self.now;
        let next_check = Time(0);
        self.apps.push(App {
            queue,
            submitted,
            container,
            wanted,
            last_at_share,
            next_check,
        });
        self.apps.len() - 1
    }

    /// The first app fills the cluster with containers of 1 GB.
    fn fill(&mut self, queue: &str, masters: u64) {
        let app = self.submit(queue, GB, 0);
        let running = |place| Running {
            app,
            size: GB,
            master: place < masters,
        };
        self.nodes = [(); NODES].map(|()| (0..NODE / GB).map(running).collect());
    }

    fn running(&self) -> impl Iterator<Item = &Running> {
        self.nodes.iter().flatten()
    }

    fn count(&self, app: usize) -> u64 {
        self.running().filter(|running| running.app == app).count() as u64
    }

    fn usage(&self, app: usize) -> u64 {
        self.running()
            .filter(|running| running.app == app)
            .map(|running| running.size)
            .sum()
    }

    fn free(&self, node: usize) -> u64 {
        NODE - self.nodes[node]
            .iter()
            .map(|running| running.size)
            .sum::<u64>()
    }

    /// Returns the pools of all queues and their ancestors, parents first.
    fn snapshot(&self) -> (Vec<String>, Vec<PoolSnapshot>) {
        let mut names: BTreeSet<&str> = BTreeSet::new();
        for queue in self.queues.keys() {
            names.insert(queue);
            names.extend(queue.match_indices('.').map(|(end, _)| &queue[..end]));
        }
        let names: Vec<&str> = names.into_iter().collect();
        let mut pools: Vec<PoolSnapshot> =
            names.iter().map(|name| self.pool(name, &names)).collect();
        set_shares(NODES as u64 * NODE, false, &mut pools);
        (names.into_iter().map(str::to_owned).collect(), pools)
    }

    fn pool(&self, name: &str, names: &[&str]) -> PoolSnapshot {
        let queue = self.queues.get(name).cloned().unwrap_or_default();
        let parent = name
            .rsplit_once('.')
            .and_then(|(parent, _)| names.binary_search(&parent).ok());
        let jobs = self
            .apps
            .iter()
            .enumerate()
            .filter(|(_, app)| app.queue == name);
        PoolSnapshot {
            parent,
            claim: Claim {
                min: queue.min,
                max: UNBOUNDED,
                weight: Ratio::ONE,
            },
            fifo: false,
            preemptable: queue.preemptable,
            patience: queue.patience,
            last_at_min: self.last_at_min.get(name).copied().unwrap_or(Time(0)),
            jobs: jobs.map(|(place, app)| self.job(place, app)).collect(),
            usage: 0,
            demand: 0,
            share: 0,
        }
    }

    fn job(&self, place: usize, app: &App) -> JobSnapshot {
        let usage = self.usage(place);
        JobSnapshot {
            job: JobId(place as u32),
            submitted: app.submitted,
            priority: 0,
            weight: Ratio::ONE,
            need: JobNeed {
                usage,
                share: 0,
                demand: usage + app.container * app.wanted,
                last_at_share: app.last_at_share,
                next_check: app.next_check,
            },
        }
    }

    /// Runs one update; returns the snapshot with shares, and the starved jobs.
    fn update(&mut self) -> (Vec<PoolSnapshot>, Vec<Starved>) {
        let (names, mut pools) = self.snapshot();
        let used: u64 = self.running().map(|running| running.size).sum();
        if !is_utilised(self.gate, &[(used, NODES as u64 * NODE)]) {
            return (pools, Vec::new());
        }
        let found = starved(self.now, &mut pools);
        for (name, pool) in names.into_iter().zip(&pools) {
            self.last_at_min.insert(name, pool.last_at_min);
            for job in &pool.jobs {
                self.apps[job.job.0 as usize].last_at_share = job.need.last_at_share;
            }
        }
        let next_check = self.now + recheck_after(Span(0), NODE_HEARTBEAT, RECHECK_DELAY);
        for one in &found {
            self.apps[pools[one.pool].jobs[one.place].job.0 as usize].next_check = next_check;
        }
        (pools, found)
    }

    /// Runs one update and makes room for starved jobs. Returns the number of victims.
    fn preempt(&mut self) -> usize {
        let (pools, found) = self.update();
        let mut holders = vec![
            Holder {
                usage: 0,
                share: 0,
                preemptable: false
            };
            self.apps.len()
        ];
        for (pool, job) in pools
            .iter()
            .flat_map(|pool| pool.jobs.iter().map(move |job| (pool, job)))
        {
            let usage = job.need.usage;
            let share = job.need.share;
            holders[job.job.0 as usize] = Holder {
                usage,
                share,
                preemptable: pool.preemptable,
            };
        }
        let host = |node: usize| Host {
            free: self.free(node),
            containers: self.nodes[node]
                .iter()
                .map(|running| Container {
                    holder: running.app,
                    size: running.size,
                    master: running.master,
                })
                .collect(),
        };
        let mut search = Search::new((0..NODES).map(host).collect(), holders);
        let mut gone: [BTreeSet<usize>; NODES] = Default::default();
        let mut started: Vec<(usize, usize)> = Vec::new();
        for one in found {
            let app = pools[one.pool].jobs[one.place].job.0 as usize;
            let size = self.apps[app].container;
            for _ in 0..(one.amount / size).min(self.apps[app].wanted) {
                let Some(room) = search.make_room(size) else {
                    break;
                };
                gone[room.host].extend(room.taken);
                started.push((room.host, app));
            }
        }
        let count = gone.iter().map(BTreeSet::len).sum();
        for (node, gone) in gone.iter().enumerate() {
            self.masters_lost += gone
                .iter()
                .filter(|place| self.nodes[node][**place].master)
                .count() as u64;
            let mut place = 0..;
            self.nodes[node].retain(|_| place.next().is_some_and(|place| !gone.contains(&place)));
        }
        for (node, app) in started {
            self.apps[app].wanted -= 1;
            self.nodes[node].push(Running {
                app,
                size: self.apps[app].container,
                master: false,
            });
        }
        count
    }
}

fn preempt(case: &Value, mode: &str) -> Result<(), String> {
    let mut world = World::new(case, queues(mode)?);
    world.fill(
        text(&case["greedy_queue"])?,
        number(&case["am_containers_per_node"])?,
    );
    for (place, step) in case["steps"]
        .as_array()
        .ok_or("no steps")?
        .iter()
        .enumerate()
    {
        let request = &step["request"];
        let expect = &step["expect"];
        let size = exact(&request["container_gb"]).of(GB);
        let app = world.submit(
            text(&step["starving_queue"])?,
            size,
            number(&request["count"])?,
        );
        world.now = world.now + Span::from_secs(1);
        while world.preempt() > 0 {
            world.now = world.now + recheck_after(Span(0), NODE_HEARTBEAT, RECHECK_DELAY);
        }
        for (what, expected) in expect.as_object().ok_or("no expectation")? {
            let got = match what.as_str() {
                "greedy_containers" => world.count(0),
                "starved_containers" => world.count(app),
                "am_containers_lost" => world.masters_lost,
                "distinct_nodes_of_new_containers" => {
                    let holds =
                        |node: &&Vec<Running>| node.iter().any(|running| running.app == app);
                    world.nodes.iter().filter(holds).count() as u64
                }
                other => return Err(format!("unknown expectation {other}")),
            };
            if got != number(expected)? {
                return Err(format!(
                    "step {place}: {what} is {got} instead of {expected}"
                ));
            }
        }
    }
    Ok(())
}

/// Returns the queues of kind `preempt`.
fn queues(mode: &str) -> Result<BTreeMap<String, Queue>, String> {
    let mut queues = BTreeMap::new();
    let names = [
        "preemptable.child-1",
        "preemptable.child-2",
        "preemptable-sibling",
        "nonpreemptable.child-1",
        "nonpreemptable.child-2",
    ];
    for name in names {
        let mut queue = Queue {
            preemptable: !name.starts_with("nonpreemptable"),
            ..Queue::default()
        };
        match mode {
            "fairshare" => {
                queue.patience.fair_share_threshold = Ratio::ONE;
                queue.patience.fair_share_timeout = Some(Span(0));
            }
            "minshare" if name.contains(".child") => {
                queue.min = 4 * GB;
                queue.patience.min_share_timeout = Some(Span(0));
            }
            "minshare" => queue.patience.min_share_timeout = Some(Span(0)),
            other => return Err(format!("unknown mode {other}")),
        }
        queues.insert(format!("root.{name}"), queue);
    }
    Ok(queues)
}

fn starvation(case: &Value) -> Result<(), String> {
    let mut world = World::new(case, BTreeMap::new());
    world.fill("root.default", 0);
    let mut queue_of: BTreeMap<usize, &str> = BTreeMap::new();
    for asked in case["queues"].as_array().ok_or("no queues")? {
        let name = text(&asked["name"])?;
        let full = format!("root.{name}");
        world.queues.insert(full.clone(), queue(asked)?);
        queue_of.insert(world.submit(&full, GB, 1), name);
    }
    let delay = recheck_after(Span(0), NODE_HEARTBEAT, RECHECK_DELAY);
    let expect = &case["expect"];
    let expected_reports = expect["reports"].as_array().ok_or("no reports")?;
    // The first update, one within the delay, and one after it.
    let times = [
        world.now,
        world.now + Span(delay.0 - 1),
        world.now + delay + Span(1),
    ];
    let mut reports = 0;
    for (place, (time, expected)) in times.into_iter().zip(expected_reports).enumerate() {
        world.now = time;
        let (pools, found) = world.update();
        reports += found.len() as u64;
        if reports != number(expected)? {
            return Err(format!(
                "{reports} reports instead of {expected} after update {place}"
            ));
        }
        if place > 0 {
            continue;
        }
        let starving: BTreeSet<usize> = found
            .iter()
            .map(|one| pools[one.pool].jobs[one.place].job.0 as usize)
            .collect();
        if starving.len() as u64 != number(&expect["starved_apps"])? {
            return Err(format!(
                "{} apps starve instead of {}",
                starving.len(),
                expect["starved_apps"]
            ));
        }
        let not: BTreeSet<&str> = queue_of
            .iter()
            .filter(|(app, _)| !starving.contains(app))
            .map(|(_, name)| *name)
            .collect();
        let said: BTreeSet<&str> = expect["not_starved"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .collect();
        if !expect["not_starved"].is_null() && not != said {
            return Err(format!("{not:?} do not starve instead of {said:?}"));
        }
    }
    if expected_reports.len() > times.len() {
        return Err(format!(
            "{} reports are expected of {} updates",
            expected_reports.len(),
            times.len()
        ));
    }
    Ok(())
}

/// Returns a queue of kind `starvation`.
fn queue(asked: &Value) -> Result<Queue, String> {
    let mut queue = Queue::default();
    let timeout = |value: &Value| {
        if value.is_null() {
            None
        } else {
            Some(Span(exact(value).of(1_000_000)))
        }
    };
    for (key, value) in asked.as_object().ok_or("a queue is no object")? {
        match key.as_str() {
            "name" => {}
            "fair_share_threshold" => queue.patience.fair_share_threshold = exact(value),
            "fair_share_timeout_s" => queue.patience.fair_share_timeout = timeout(value),
            "min_share_timeout_s" | "minimum_timeout_s" => {
                queue.patience.min_share_timeout = timeout(value)
            }
            "minimum_gb" | "min_gb" | "min_share_gb" | "minimum" | "min_share" | "min" => {
                queue.min = exact(value).of(GB);
            }
            other => return Err(format!("unknown property {other} of a queue")),
        }
    }
    Ok(queue)
}

fn text(value: &Value) -> Result<&str, String> {
    value.as_str().ok_or_else(|| format!("{value} is no text"))
}

fn number(value: &Value) -> Result<u64, String> {
    value
        .as_u64()
        .ok_or_else(|| format!("{value} is no number"))
}
