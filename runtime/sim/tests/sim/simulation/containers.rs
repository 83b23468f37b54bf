//! Containers: one kind of slot for maps, reduces and a master per job. Hand-computed cases and general
//! bounds.

use super::*;
use napreduce_engine::{Actions, ClusterView, Event, Offer, Scheduler, TaskKind};
use napreduce_schedulers::SchedulerConfiguration;
use napreduce_schedulers::natjam::{Natjam, NatjamConfiguration};
use napreduce_sim::{Ending, JobResult, SimulationError};

/// Machines with containers whose masters take two seconds to start.
fn containers(machines: u32, containers: u32) -> SimulationSettings {
    let mut settings = SimulationSettings::with_containers(machines, containers);
    settings.overheads.master = seconds(2);
    settings.masters_max = Some(4);
    settings
}

fn natjam(
    configuration: NatjamConfiguration,
    settings: SimulationSettings,
    jobs: Vec<SimulatedJob>,
) -> Result<Run, SimulationError> {
    let mut simulation = Simulation::new(
        Box::new(Natjam::new(configuration).unwrap()),
        settings,
        Workload::of(jobs),
    );
    while simulation.step()? {
        simulation.check().unwrap();
    }
    simulation.run()
}

/// A research job whose reduces fill three containers, and a production job of a map and a reduce.
fn production_and_research() -> Vec<SimulatedJob> {
    let mut research = SimulatedJob::new("research", at(0)).with_maps(1, seconds(0));
    research = research.with_reduces(3, seconds(0), seconds(100));
    let mut production = SimulatedJob::new("production", at(10)).with_maps(1, seconds(5));
    production = production.with_reduces(1, seconds(0), seconds(5));
    (research.queue, production.queue) = ("research".into(), "production".into());
    production.priority = 1;
    vec![research, production]
}

#[test]
fn master_holds_container_for_whole_job() {
    let job = SimulatedJob::new("job", at(0))
        .with_maps(2, seconds(10))
        .with_reduces(2, seconds(0), seconds(5));
    let run = fifo(containers(1, 3), vec![job]);
    assert_eq!(
        (end(&run, "job"), run.jobs.len(), run.jobs[0].alone),
        (17.0, 1, seconds(17))
    );
    assert_eq!(
        (run.slot_time.launch, run.slot_time.masters),
        (2_000_000, 15_000_000)
    );
    assert_eq!(run.slot_time.capacity.iter().sum::<u64>(), 3 * 17_000_000);
    assert_eq!(
        run.slot_time.busy.iter().sum::<u64>(),
        run.slot_time.useful + 17_000_000
    );
}

#[test]
fn maps_and_reduces_share_containers() {
    // The master leaves two containers, so at most two tasks run at once.
    let mut job = SimulatedJob::new("job", at(0))
        .with_maps(4, seconds(10))
        .with_reduces(2, seconds(0), seconds(4));
    job.slowstart_permille = 0;
    let mut settings = containers(1, 3);
    settings.overheads.master = seconds(0);
    settings.record_allocation = true;
    let run = fifo(settings, vec![job]);
    // Two waves of maps, one wave of reduces.
    assert_eq!(end(&run, "job"), 24.0);
    let id = run.job("job").unwrap().job;
    let most = |kind| {
        run.allocation
            .levels(id, kind)
            .into_iter()
            .map(|(_, level)| level)
            .max()
            .unwrap_or(0)
    };
    assert_eq!((most(TaskKind::Map), most(TaskKind::Reduce)), (2, 2));
}

#[test]
fn masters_start_in_sequence() {
    let job = |name| SimulatedJob::new(name, at(0)).with_maps(1, seconds(10));
    let run = fifo(containers(4, 2), vec![job("a"), job("b"), job("c")]);
    let ends: Vec<f64> = ["a", "b", "c"].map(|name| end(&run, name)).to_vec();
    assert_eq!(ends, [12.0, 14.0, 16.0]);
}

#[test]
fn queue_limit_delays_next_master() {
    let job = |name| SimulatedJob::new(name, at(0)).with_maps(1, seconds(10));
    let mut settings = containers(4, 2);
    settings.masters_max = Some(1);
    let mut urgent = job("urgent");
    urgent.priority = 1;
    let mut other = job("other");
    other.queue = "another".into();
    let run = fifo(settings, vec![job("first"), job("later"), urgent, other]);
    // The more important job overtakes. The other queue has its own master, which starts after that of the
    // first job.
    let ends: Vec<f64> = ["first", "urgent", "later", "other"]
        .map(|name| end(&run, name))
        .to_vec();
    assert_eq!(ends, [12.0, 24.0, 36.0, 14.0]);
}

#[test]
fn production_evicts_reduces_for_master_and_tasks() {
    let mut settings = containers(1, 4);
    settings.overheads.master = seconds(0);
    let run = natjam(
        NatjamConfiguration::default(),
        settings,
        production_and_research(),
    )
    .unwrap();
    // At 10 s for the master, at the next run of the preemptor for the map; the reduce reuses the map's
    // container.
    assert_eq!(end(&run, "production"), 21.0);
    let research: &JobResult = run.job("research").unwrap();
    assert_eq!(
        (research.preemptions.checkpoint, research.preemptions.kill),
        (2, 0)
    );
    assert_eq!(
        (run.slot_time.wasted, run.slot_time.useful),
        (0, 310_000_000)
    );
}

#[test]
fn natjam_preempting_maps_spares_masters() {
    let configuration = NatjamConfiguration {
        preempt_maps: true,
        ..NatjamConfiguration::default()
    };
    let run = natjam(configuration, containers(1, 4), production_and_research()).unwrap();
    // As without `preempt-maps`: the master is the only map of research.
    assert_eq!(end(&run, "production"), 22.0);
    assert_eq!(run.job("research").unwrap().preemptions.checkpoint, 2);
}

/// A run under the policy of a configuration.
fn under(
    name: &str,
    tables: &str,
    settings: SimulationSettings,
    jobs: Vec<SimulatedJob>,
) -> Result<Run, SimulationError> {
    let tables = toml::from_str(tables).unwrap();
    let policy = SchedulerConfiguration {
        scheduler: name.parse().unwrap(),
        tables,
    }
    .build()
    .unwrap();
    let mut simulation = Simulation::new(policy, settings, Workload::of(jobs));
    while simulation.step()? {
        simulation.check().unwrap();
    }
    simulation.run()
}

const TWO_QUEUES: &str = r#"
    [capacity]
    mode = "preemptive"
    [capacity.monitor]
    interval = "1s"
    max-wait-before-kill = "0s"
    total-per-round = 1
    dead-zone = 0
    natural-termination-factor = 1
    [[capacity.queue]]
    name = "research"
    guaranteed-percent = 20
    [[capacity.queue]]
    name = "production"
    guaranteed-percent = 80
"#;

#[test]
fn monitor_spares_masters() {
    let mut jobs = production_and_research();
    // Research has more masters than its guarantee.
    for number in 0..3 {
        let mut more =
            SimulatedJob::new(format!("more-{number}"), at(0)).with_maps(1, seconds(100));
        more.queue = "research".into();
        jobs.push(more);
    }
    jobs.push(SimulatedJob {
        queue: "production".into(),
        ..SimulatedJob::new("wide", at(12)).with_maps(8, seconds(50))
    });
    let run = under("capacity", TWO_QUEUES, containers(2, 4), jobs).unwrap();
    assert_eq!((run.jobs.len(), run.unfinished), (6, 0));
    assert!(
        run.jobs.iter().any(|job| job.preemptions.kill > 0),
        "the monitor preempts tasks"
    );
}

#[test]
fn admission_checks_jobs_not_masters() {
    let job = |name: &str, second, deadline| SimulatedJob {
        deadline: Some(seconds(deadline)),
        ..SimulatedJob::new(name, at(second)).with_maps(2, seconds(10))
    };
    let tables = "[natjam-deadline]\nadmission = \"refuse\"\n";
    let jobs = vec![job("one", 0, 60), job("one", 30, 60), job("one", 60, 1)];
    let run = under("natjam-deadline", tables, containers(1, 3), jobs).unwrap();
    let endings: Vec<bool> = run
        .jobs
        .iter()
        .map(|job| job.ending == Ending::Succeeded)
        .collect();
    assert_eq!(
        endings,
        [true, true, false],
        "the deadline of the third is infeasible"
    );
    assert_eq!(run.unfinished, 0);
}

#[test]
fn masters_start_in_deadline_order() {
    let job = |name: &str, deadline| SimulatedJob {
        deadline: Some(seconds(deadline)),
        ..SimulatedJob::new(name, at(0)).with_maps(1, seconds(10))
    };
    let mut settings = containers(4, 2);
    settings.masters_max = Some(1);
    let jobs = vec![job("first", 50), job("late", 900), job("soon", 100)];
    let run = under("natjam-deadline", "", settings, jobs).unwrap();
    let ends: Vec<f64> = ["first", "soon", "late"]
        .map(|name| end(&run, name))
        .to_vec();
    assert_eq!(ends, [12.0, 24.0, 36.0]);
}

#[test]
fn masters_leave_container_for_tasks() {
    let job = |name: &str| SimulatedJob {
        queue: name.into(),
        ..SimulatedJob::new(name, at(0)).with_maps(2, seconds(10))
    };
    let run = fifo(containers(1, 3), vec![job("a"), job("b"), job("c")]);
    assert_eq!((run.jobs.len(), run.unfinished), (3, 0));
}

#[test]
fn job_and_master_count_once_in_limits() {
    let job = |name| SimulatedJob::new(name, at(0)).with_maps(1, seconds(10));
    for (name, tables) in [
        ("fair", "[fair]\nuser-max-running-jobs = 1"),
        ("capacity", "[capacity]\nuser-max-running-jobs = 1"),
    ] {
        let run = under(
            name,
            tables,
            containers(2, 2),
            vec![job("first"), job("second")],
        )
        .unwrap();
        let ends: Vec<f64> = ["first", "second"].map(|name| end(&run, name)).to_vec();
        assert_eq!(ends, [12.0, 24.0], "{name}");
    }
}

#[test]
fn queue_of_one_container_is_rejected() {
    let tables = "[capacity]\nmode = \"hard-cap\"\n[[capacity.queue]]\nname = \"default\"\nguaranteed-percent = 20\n";
    let job = SimulatedJob::new("job", at(0)).with_maps(1, seconds(10));
    let refused = under("capacity", tables, containers(1, 5), vec![job]).unwrap_err();
    assert!(refused.is_input_error());
    assert_eq!(
        refused.to_string(),
        "job cannot run: the maximum of queue default is 1 containers, but a job needs one for its master and one for its \
         tasks; raise the maximum, or add containers"
    );
}

#[test]
fn masters_leave_container_below_queue_maximum() {
    let tables = "[capacity]\nmode = \"hard-cap\"\n[[capacity.queue]]\nname = \"default\"\nguaranteed-percent = 40\n";
    let job = |name: &str| SimulatedJob::new(name, at(0)).with_maps(3, seconds(10));
    let run = under(
        "capacity",
        tables,
        containers(1, 8),
        vec![job("a"), job("b"), job("c")],
    )
    .unwrap();
    assert_eq!((run.jobs.len(), run.unfinished), (3, 0));
}

/// Capacity for one kind and FIFO for the other; the queue has a maximum of `percent`.
fn capacity_for(kind: &str, percent: u32) -> String {
    format!(
        "[composed]\n{kind} = \"capacity\"\n[capacity]\nmode = \"hard-cap\"\n\
         [[capacity.queue]]\nname = \"default\"\nguaranteed-percent = {percent}\n"
    )
}

#[test]
fn maps_do_not_count_for_reduce_part() {
    let job = SimulatedJob::new("job", at(0))
        .with_maps(1, seconds(10))
        .with_reduces(2, seconds(0), seconds(5));
    let run = under(
        "composed",
        &capacity_for("reduce", 20),
        containers(1, 5),
        vec![job],
    )
    .unwrap();
    // Reduces run in sequence: the queue's maximum is one container for them.
    assert_eq!(end(&run, "job"), 22.0);
}

#[test]
fn reduces_do_not_count_for_map_part() {
    let mut job = SimulatedJob::new("job", at(0))
        .with_maps(2, seconds(10))
        .with_reduces(3, seconds(0), seconds(5));
    job.slowstart_permille = 0;
    let run = under(
        "composed",
        &capacity_for("map", 40),
        containers(1, 5),
        vec![job],
    )
    .unwrap();
    // Maps run in sequence, next to the master and the reduces, which wait for them.
    assert_eq!(end(&run, "job"), 27.0);
}

#[test]
fn map_part_does_not_preempt_for_reduce() {
    let job = |name: &str, second, deadline| SimulatedJob {
        deadline: Some(seconds(deadline)),
        ..SimulatedJob::new(name, at(second))
    };
    let soon =
        job("soon", 0, 100)
            .with_maps(1, seconds(10))
            .with_reduces(2, seconds(0), seconds(10));
    let late = job("late", 1, 1000).with_maps(4, seconds(30));
    let mut settings = containers(1, 4);
    settings.overheads.master = seconds(0);
    let tables = "[composed]\nmap = \"natjam-deadline\"\n[natjam-deadline]\npreempt-maps = true\n";
    let run = under("composed", tables, settings, vec![soon, late]).unwrap();
    assert_eq!(run.job("late").unwrap().preemptions, Default::default());
    // Two maps at a time until the last two each free a container.
    assert_eq!((end(&run, "late"), end(&run, "soon")), (70.0, 80.0));
}

#[test]
fn reduce_is_preempted_for_rerun_map_of_its_job() {
    // The master leaves three containers. A map that failed on one machine must run on the other
    // one, where reduces hold all of them.
    let job = |name: String| {
        let mut job = SimulatedJob::new(name, at(0)).with_maps(6, seconds(10));
        job = job.with_reduces(3, seconds(2), seconds(5));
        (job.slowstart_permille, job.attempts_max) = (0, 100);
        job
    };
    for seed in 0..80 {
        let mut settings = containers(2, 2);
        settings.seed = seed;
        settings.failures.attempt = 0.3;
        let run = fifo(settings, vec![job("job".to_owned())]);
        assert_eq!((run.jobs.len(), run.unfinished), (1, 0), "seed {seed}");
    }
}

/// FIFO for maps; it assigns no reduces.
struct MapsOnly(Fifo);

impl Scheduler for MapsOnly {
    fn on_event(&mut self, now: Time, event: &Event, view: &ClusterView<'_>) {
        self.0.on_event(now, event, view);
    }

    fn schedule(&mut self, now: Time, view: &ClusterView<'_>, actions: &mut Actions) {
        match actions.offer() {
            Some(Offer {
                kind: TaskKind::Reduce,
                ..
            }) => actions.decline("maps only"),
            _ => self.0.schedule(now, view, actions),
        }
    }

    fn next_wakeup(&self, now: Time) -> Option<Time> {
        self.0.next_wakeup(now)
    }
}

#[test]
fn stalled_run_reports_slot_holders() {
    let mut settings = SimulationSettings::new(1, Slots { map: 1, reduce: 1 });
    settings.overheads.master = seconds(0);
    let job = SimulatedJob::new("job", at(0))
        .with_maps(1, seconds(1))
        .with_reduces(2, seconds(0), seconds(1));
    let simulation = Simulation::new(
        Box::new(MapsOnly(Fifo::default())),
        settings,
        Workload::of(vec![job]),
    );
    let error = simulation.run().unwrap_err().to_string();
    assert!(
        error.contains(
            "1 jobs have not ended (the first is job_0001); of 2 slots 0 are held; waiting: 0 maps, 2 reduces"
        ),
        "{error}"
    );
}

#[test]
fn lost_master_restarts_and_job_continues() {
    let jobs = (0..6).map(|number| {
        SimulatedJob::new(format!("job-{number}"), at(number))
            .with_maps(9, seconds(20))
            .with_reduces(2, seconds(0), seconds(9))
    });
    let mut settings = containers(4, 4);
    settings.failures.machine_mean = Some(seconds(60));
    settings.failures.machine_return = Some(seconds(5));
    let run = fifo(settings, jobs.collect());
    assert!(run.machines_lost > 0);
    assert_eq!((run.jobs.len(), run.unfinished), (6, 0));
}

#[test]
fn cut_off_run_counts_jobs_waiting_for_master() {
    let mut settings = containers(1, 2);
    settings.masters_max = Some(1);
    settings.until = Some(at(5));
    let job = |name| SimulatedJob::new(name, at(0)).with_maps(1, seconds(10));
    let run = fifo(settings, vec![job("runs"), job("waits")]);
    assert_eq!(
        (run.unfinished, run.jobs.len(), run.slot_time.masters),
        (2, 0, 3_000_000)
    );
}
