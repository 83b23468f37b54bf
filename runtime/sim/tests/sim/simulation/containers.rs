//! Containers: one kind of slot for maps, reduces and a master of each job.
//!
//! Owns answers worked out by hand, and bounds that hold for all. Does not own the form in files.

use super::*;
use napreduce_engine::TaskKind;
use napreduce_schedulers::SchedulerConfiguration;
use napreduce_schedulers::natjam::{Natjam, NatjamConfiguration};
use napreduce_sim::{Ending, JobResult, SimulationError};

/// Machines with so many containers each, whose masters take two seconds to start.
fn containers(machines: u32, containers: u32) -> SimulationSettings {
    let mut settings = SimulationSettings::of_containers(machines, containers);
    settings.overheads.master = seconds(2);
    settings.masters_max = Some(4);
    settings
}

fn natjam(
    configuration: NatjamConfiguration,
    settings: SimulationSettings,
    jobs: Vec<SimulatedJob>,
) -> Result<Run, SimulationError> {
    let mut simulation =
        Simulation::new(Box::new(Natjam::new(configuration).unwrap()), settings, Workload::of(jobs));
    while simulation.step()? {
        simulation.check().unwrap();
    }
    simulation.run()
}

/// A research job that fills three containers with its reduces, and a production job of a map and a reduce.
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
fn a_master_starts_before_its_job_and_holds_a_container_until_it_ends() {
    let job =
        SimulatedJob::new("job", at(0)).with_maps(2, seconds(10)).with_reduces(2, seconds(0), seconds(5));
    let run = fifo(containers(1, 3), vec![job]);
    assert_eq!((end(&run, "job"), run.jobs.len(), run.jobs[0].alone), (17.0, 1, seconds(17)));
    assert_eq!((run.books.launch, run.books.masters), (2_000_000, 15_000_000));
    assert_eq!(run.books.capacity.iter().sum::<u64>(), 3 * 17_000_000);
    assert_eq!(run.books.busy.iter().sum::<u64>(), run.books.useful + 17_000_000);
}

#[test]
fn maps_and_reduces_take_the_same_containers() {
    // Beside the master there are two: the second map and the first reduce of what is to come never run at
    // once with a third.
    let mut job =
        SimulatedJob::new("job", at(0)).with_maps(4, seconds(10)).with_reduces(2, seconds(0), seconds(4));
    job.slowstart_permille = 0;
    let mut settings = containers(1, 3);
    settings.overheads.master = seconds(0);
    settings.record_allocation = true;
    let run = fifo(settings, vec![job]);
    // Two waves of maps, one of reduces.
    assert_eq!(end(&run, "job"), 24.0);
    let id = run.job("job").unwrap().job;
    let most = |kind| run.allocation.levels(id, kind).into_iter().map(|(_, level)| level).max().unwrap_or(0);
    assert_eq!((most(TaskKind::Map), most(TaskKind::Reduce)), (2, 2));
}

#[test]
fn masters_start_one_after_another() {
    let job = |name| SimulatedJob::new(name, at(0)).with_maps(1, seconds(10));
    let run = fifo(containers(4, 2), vec![job("a"), job("b"), job("c")]);
    let ends: Vec<f64> = ["a", "b", "c"].map(|name| end(&run, name)).to_vec();
    assert_eq!(ends, [12.0, 14.0, 16.0]);
}

#[test]
fn a_queue_has_so_many_masters_and_its_next_job_waits_for_the_first_to_end() {
    let job = |name| SimulatedJob::new(name, at(0)).with_maps(1, seconds(10));
    let mut settings = containers(4, 2);
    settings.masters_max = Some(1);
    let mut urgent = job("urgent");
    urgent.priority = 1;
    let mut other = job("other");
    other.queue = "another".into();
    let run = fifo(settings, vec![job("first"), job("later"), urgent, other]);
    // The more important one overtakes; the other queue has a master of its own, which starts after that of
    // the first job.
    let ends: Vec<f64> = ["first", "urgent", "later", "other"].map(|name| end(&run, name)).to_vec();
    assert_eq!(ends, [12.0, 24.0, 36.0, 14.0]);
}

#[test]
fn production_evicts_reduces_for_its_master_its_maps_and_its_reduces() {
    let mut settings = containers(1, 4);
    settings.overheads.master = seconds(0);
    let run = natjam(NatjamConfiguration::default(), settings, production_and_research()).unwrap();
    // At 10 s for the master, at the next run of the preemptor for the map, whose container the reduce has
    // after it.
    assert_eq!(end(&run, "production"), 21.0);
    let research: &JobResult = run.job("research").unwrap();
    assert_eq!((research.preemptions.checkpoint, research.preemptions.kill), (2, 0));
    assert_eq!((run.books.wasted, run.books.useful), (0, 310_000_000));
}

#[test]
fn natjam_that_preempts_maps_spares_masters() {
    let configuration = NatjamConfiguration { preempt_maps: true, ..NatjamConfiguration::default() };
    let run = natjam(configuration, containers(1, 4), production_and_research()).unwrap();
    // As without: the master is all that research has of maps.
    assert_eq!(end(&run, "production"), 22.0);
    assert_eq!(run.job("research").unwrap().preemptions.checkpoint, 2);
}

/// A run under the policy of a configuration file.
fn under(
    name: &str,
    tables: &str,
    settings: SimulationSettings,
    jobs: Vec<SimulatedJob>,
) -> Result<Run, SimulationError> {
    let tables = toml::from_str(tables).unwrap();
    let policy = SchedulerConfiguration { scheduler: name.parse().unwrap(), tables }.build().unwrap();
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
fn the_monitor_takes_no_master() {
    let mut jobs = production_and_research();
    // More masters of research than its guarantee.
    for number in 0..3 {
        let mut more = SimulatedJob::new(format!("more-{number}"), at(0)).with_maps(1, seconds(100));
        more.queue = "research".into();
        jobs.push(more);
    }
    jobs.push(SimulatedJob {
        queue: "production".into(),
        ..SimulatedJob::new("wide", at(12)).with_maps(8, seconds(50))
    });
    let run = under("capacity", TWO_QUEUES, containers(2, 4), jobs).unwrap();
    assert_eq!((run.jobs.len(), run.unfinished), (6, 0));
    assert!(run.jobs.iter().any(|job| job.preemptions.kill > 0), "the monitor takes something");
}

#[test]
fn admission_by_deadline_lets_masters_in_and_judges_their_jobs() {
    let job = |name: &str, second, deadline| SimulatedJob {
        deadline: Some(seconds(deadline)),
        ..SimulatedJob::new(name, at(second)).with_maps(2, seconds(10))
    };
    let tables = "[natjam-deadline]\nadmission = \"refuse\"\n";
    let jobs = vec![job("one", 0, 60), job("one", 30, 60), job("one", 60, 1)];
    let run = under("natjam-deadline", tables, containers(1, 3), jobs).unwrap();
    let endings: Vec<bool> = run.jobs.iter().map(|job| job.ending == Ending::Succeeded).collect();
    assert_eq!(endings, [true, true, false], "the deadline of the third cannot be kept");
    assert_eq!(run.unfinished, 0);
}

#[test]
fn masters_start_by_deadline_where_the_policy_goes_by_it() {
    let job = |name: &str, deadline| SimulatedJob {
        deadline: Some(seconds(deadline)),
        ..SimulatedJob::new(name, at(0)).with_maps(1, seconds(10))
    };
    let mut settings = containers(4, 2);
    settings.masters_max = Some(1);
    let jobs = vec![job("first", 50), job("late", 900), job("soon", 100)];
    let run = under("natjam-deadline", "", settings, jobs).unwrap();
    let ends: Vec<f64> = ["first", "soon", "late"].map(|name| end(&run, name)).to_vec();
    assert_eq!(ends, [12.0, 24.0, 36.0]);
}

#[test]
fn masters_of_many_queues_leave_a_container() {
    let job = |name: &str| SimulatedJob {
        queue: name.into(),
        ..SimulatedJob::new(name, at(0)).with_maps(2, seconds(10))
    };
    let run = fifo(containers(1, 3), vec![job("a"), job("b"), job("c")]);
    assert_eq!((run.jobs.len(), run.unfinished), (3, 0));
}

#[test]
fn a_job_counts_once_where_running_jobs_are_limited() {
    let job = |name| SimulatedJob::new(name, at(0)).with_maps(1, seconds(10));
    for (name, tables) in
        [("fair", "[fair]\nuser-max-running-jobs = 1"), ("capacity", "[capacity]\nuser-max-running-jobs = 1")]
    {
        let run = under(name, tables, containers(2, 2), vec![job("first"), job("second")]).unwrap();
        let ends: Vec<f64> = ["first", "second"].map(|name| end(&run, name)).to_vec();
        assert_eq!(ends, [12.0, 24.0], "{name}");
    }
}

#[test]
fn a_queue_with_one_container_is_refused() {
    let tables =
        "[capacity]\nmode = \"hard-cap\"\n[[capacity.queue]]\nname = \"default\"\nguaranteed-percent = 20\n";
    let job = SimulatedJob::new("job", at(0)).with_maps(1, seconds(10));
    let refused = under("capacity", tables, containers(1, 5), vec![job]).unwrap_err();
    assert!(refused.is_of_input());
    assert_eq!(
        refused.to_string(),
        "job cannot run: queue default may have 1 containers, and a job needs one for its master and one for its \
         tasks; raise its maximum, or give more containers"
    );
}

#[test]
fn masters_leave_a_container_of_a_queue_with_a_maximum() {
    let tables =
        "[capacity]\nmode = \"hard-cap\"\n[[capacity.queue]]\nname = \"default\"\nguaranteed-percent = 40\n";
    let job = |name: &str| SimulatedJob::new(name, at(0)).with_maps(3, seconds(10));
    let run = under("capacity", tables, containers(1, 8), vec![job("a"), job("b"), job("c")]).unwrap();
    assert_eq!((run.jobs.len(), run.unfinished), (3, 0));
}

/// Capacity for tasks of one kind, FIFO for the others, and a queue that may have so much.
fn capacity_for(kind: &str, percent: u32) -> String {
    format!(
        "[composed]\n{kind} = \"capacity\"\n[capacity]\nmode = \"hard-cap\"\n\
         [[capacity.queue]]\nname = \"default\"\nguaranteed-percent = {percent}\n"
    )
}

#[test]
fn masters_and_maps_fill_no_maximum_of_the_part_for_reduces() {
    let job =
        SimulatedJob::new("job", at(0)).with_maps(1, seconds(10)).with_reduces(2, seconds(0), seconds(5));
    let run = under("composed", &capacity_for("reduce", 20), containers(1, 5), vec![job]).unwrap();
    // One reduce after the other: the queue may have one container for them.
    assert_eq!(end(&run, "job"), 22.0);
}

#[test]
fn reduces_fill_no_maximum_of_the_part_for_maps() {
    let mut job =
        SimulatedJob::new("job", at(0)).with_maps(2, seconds(10)).with_reduces(3, seconds(0), seconds(5));
    job.slowstart_permille = 0;
    let run = under("composed", &capacity_for("map", 40), containers(1, 5), vec![job]).unwrap();
    // One map after the other, beside the master and the reduces, which wait for them.
    assert_eq!(end(&run, "job"), 27.0);
}

#[test]
fn the_part_for_maps_takes_none_for_a_reduce() {
    let job = |name: &str, second, deadline| SimulatedJob {
        deadline: Some(seconds(deadline)),
        ..SimulatedJob::new(name, at(second))
    };
    let soon = job("soon", 0, 100).with_maps(1, seconds(10)).with_reduces(2, seconds(0), seconds(10));
    let late = job("late", 1, 1000).with_maps(4, seconds(30));
    let mut settings = containers(1, 4);
    settings.overheads.master = seconds(0);
    let tables = "[composed]\nmap = \"natjam-deadline\"\n[natjam-deadline]\npreempt-maps = true\n";
    let run = under("composed", tables, settings, vec![soon, late]).unwrap();
    assert_eq!(run.job("late").unwrap().preemptions, Default::default());
    // Two maps at a time until the last two leave a container each.
    assert_eq!((end(&run, "late"), end(&run, "soon")), (70.0, 80.0));
}

#[test]
fn a_reduce_gives_way_to_a_map_of_its_job_that_has_to_run_again() {
    // Beside the master there are three containers; a map that failed on a machine is to run on the other one,
    // where reduces hold what the master leaves.
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

#[test]
fn a_run_that_gets_nowhere_says_what_holds_the_slots() {
    // The queue has its maximum with what is done in it, and only for maps.
    let mut settings = SimulationSettings::new(1, Slots { map: 1, reduce: 0 });
    settings.overheads.master = seconds(0);
    let job =
        SimulatedJob::new("job", at(0)).with_maps(1, seconds(1)).with_reduces(2, seconds(0), seconds(1));
    let simulation = Simulation::new(Box::new(Fifo::default()), settings, Workload::of(vec![job]));
    let error = simulation.run().unwrap_err().to_string();
    assert!(
        error.contains("1 jobs have not ended (the first is job_0001); of 1 slots none is held; 0 maps and 2 reduces wait"),
        "{error}"
    );
}

#[test]
fn a_master_whose_machine_is_lost_starts_again_and_its_job_goes_on() {
    let jobs = (0..6).map(|number| {
        SimulatedJob::new(format!("job-{number}"), at(number)).with_maps(9, seconds(20)).with_reduces(
            2,
            seconds(0),
            seconds(9),
        )
    });
    let mut settings = containers(4, 4);
    settings.failures.machine_mean = Some(seconds(60));
    settings.failures.machine_return = Some(seconds(5));
    let run = fifo(settings, jobs.collect());
    assert!(run.machines_lost > 0);
    assert_eq!((run.jobs.len(), run.unfinished), (6, 0));
}

#[test]
fn a_run_that_is_cut_off_counts_jobs_that_wait_for_their_master() {
    let mut settings = containers(1, 2);
    settings.masters_max = Some(1);
    settings.until = Some(at(5));
    let job = |name| SimulatedJob::new(name, at(0)).with_maps(1, seconds(10));
    let run = fifo(settings, vec![job("runs"), job("waits")]);
    assert_eq!((run.unfinished, run.jobs.len(), run.books.masters), (2, 0, 3_000_000));
}
