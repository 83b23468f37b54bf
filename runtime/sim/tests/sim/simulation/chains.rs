//! Chains of jobs: each job arrives when its predecessor ends and gets its part of the chain's deadline.
//! Single-map jobs on one machine.

use std::sync::{Arc, Mutex};

use napreduce_engine::{Actions, ClusterView, Event, Fifo, Scheduler, Time};
use napreduce_sim::{Ending, Run, Simulation, WorkloadFile};

use super::{at, machines};

/// Job names and their deadlines.
type Deadlines = Vec<(String, Option<Time>)>;

/// FIFO; records the deadlines of submitted jobs.
struct Told(Fifo, Arc<Mutex<Deadlines>>);

impl Scheduler for Told {
    fn on_event(&mut self, _: Time, event: &Event, _: &ClusterView<'_>) {
        if let Event::JobSubmitted { spec, .. } = event {
            self.1
                .lock()
                .unwrap()
                .push((spec.name.clone(), spec.deadline));
        }
    }

    fn schedule(&mut self, now: Time, view: &ClusterView<'_>, actions: &mut Actions) {
        self.0.schedule(now, view, actions);
    }

    fn next_wakeup(&self, _: Time) -> Option<Time> {
        None
    }
}

/// A chain of single-map jobs with these names and seconds.
fn file(jobs: &[(&str, u64)], more: &str, chain: &str) -> String {
    let entry = |(name, seconds): &(&str, u64)| {
        format!("[[job]]\nname = \"{name}\"\nmaps = {{ count = 1, seconds = {seconds} }}\n{more}")
    };
    jobs.iter().map(entry).collect::<String>() + "[[chain]]\n" + chain
}

fn run(text: &str) -> (Run, Vec<(String, Option<Time>)>) {
    let told = Arc::new(Mutex::new(Vec::new()));
    let policy = Told(Fifo::default(), Arc::clone(&told));
    let workload = WorkloadFile::read("chain", text)
        .expect("the workload is valid")
        .workload(0);
    let run = Simulation::new(Box::new(policy), machines(1), workload)
        .run()
        .unwrap();
    let told = told.lock().unwrap().clone();
    (run, told)
}

const ABC: [(&str, u64); 3] = [("a", 10), ("b", 20), ("c", 5)];

#[test]
fn followers_arrive_after_predecessor() {
    let (run, told) = run(&file(&ABC, "", "jobs = [\"a\", \"b\", \"c\"]\n"));
    let ends: Vec<(&str, Time, Time)> = run
        .jobs
        .iter()
        .map(|job| (&*job.name, job.submitted, job.ended))
        .collect();
    assert_eq!(
        ends,
        [
            ("a", at(0), at(10)),
            ("b", at(10), at(30)),
            ("c", at(30), at(35))
        ]
    );
    assert!(
        told.iter().all(|(_, deadline)| deadline.is_none()),
        "{told:?}"
    );
}

#[test]
fn unknown_lengths_divide_deadline_equally() {
    let (run, told) = run(&file(
        &ABC,
        "",
        "jobs = [\"a\", \"b\", \"c\"]\ndeadline = \"60s\"\n",
    ));
    // A third of 60 s; half of the 50 s left after a; the 30 s left after b.
    let deadlines: Vec<Option<Time>> = told.into_iter().map(|(_, deadline)| deadline).collect();
    assert_eq!(deadlines, [Some(at(20)), Some(at(35)), Some(at(60))]);
    let of = |name| run.job(name).unwrap().deadline;
    assert_eq!(
        (of("a"), of("b"), of("c")),
        (None, None, Some(at(60))),
        "only the last job has a deadline"
    );
}

#[test]
fn repeated_chain_reserves_observed_lengths() {
    let chain = "jobs = [\"a\", \"b\", \"c\"]\ndeadline = \"60s\"\n";
    let (_, told) = run(&file(&ABC, "repeat = 2\n", chain).replacen(
        "repeat = 2\n",
        "repeat = 2\nsubmit = \"0s\"\narrivals = { fixed = 100 }\n",
        1,
    ));
    let second: Vec<_> = told
        .iter()
        .filter(|(name, _)| name.ends_with("-2"))
        .cloned()
        .collect();
    // The second chain arrives at 100 s: 20 and 5 s are reserved for the followers; then 5 s.
    let expected = [("a-2", at(135)), ("b-2", at(155)), ("c-2", at(160))];
    assert_eq!(
        second,
        expected.map(|(name, deadline)| (name.to_owned(), Some(deadline)))
    );
}

#[test]
fn failed_job_drops_its_followers() {
    let text = file(&ABC, "attempts-max = 1\n", "jobs = [\"a\", \"b\", \"c\"]\n");
    let workload = WorkloadFile::read("chain", &text)
        .expect("the workload is valid")
        .workload(0);
    let mut settings = machines(1);
    settings.failures.attempt = 0.999_999;
    let run = Simulation::new(Box::new(Fifo::default()), settings, workload)
        .run()
        .unwrap();
    assert_eq!((run.jobs.len(), run.jobs[0].ending), (1, Ending::Failed));
    assert_eq!(run.never_submitted, ["b", "c"]);
}

#[test]
fn invalid_chains_are_rejected() {
    let refused = |more: &str, chain: &str| {
        WorkloadFile::read("chain", &file(&ABC, more, chain))
            .expect_err("the chain is invalid")
            .to_string()
    };
    let table = [
        (
            "",
            "jobs = [\"a\"]\n",
            "chain 1, jobs: 1 jobs; a chain needs at least 2",
        ),
        (
            "",
            "jobs = [\"a\", \"x\"]\n",
            "chain 1, jobs: unknown job \"x\"",
        ),
        (
            "",
            "jobs = [\"a\", \"a\"]\n",
            "\"a\" is already in chain 1; list each job once",
        ),
        (
            "deadline = \"5s\"\n",
            "jobs = [\"a\", \"b\"]\n",
            "\"a\" has its own deadline; move it to the chain",
        ),
        (
            "submit = \"5s\"\n",
            "jobs = [\"a\", \"b\"]\n",
            "\"b\" follows \"a\"; remove its submit and arrivals",
        ),
    ];
    for (more, chain, says) in table {
        assert!(
            refused(more, chain).contains(says),
            "{}",
            refused(more, chain)
        );
    }
    let text = file(&ABC, "", "jobs = [\"a\", \"b\"]\n").replacen(
        "name = \"a\"\n",
        "name = \"a\"\nrepeat = 3\n",
        1,
    );
    let error = WorkloadFile::read("chain", &text)
        .expect_err("the chain is invalid")
        .to_string();
    assert!(
        error.contains("\"b\" has repeat 1, but \"a\" has 3; give both the same repeat"),
        "{error}"
    );
}
