//! The event log: readable, and byte-identical for equal seeds and inputs.

use std::cell::RefCell;
use std::io::{self, Write};
use std::rc::Rc;

use crate::simulation::{at, machines, seconds};
use napreduce_engine::{Fifo, Span};
use napreduce_sim::{Failures, SimulatedJob, Simulation, SimulationSettings, Workload};

#[derive(Clone, Default)]
struct Shared(Rc<RefCell<Vec<u8>>>);

impl Write for Shared {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.borrow_mut().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn log_of(settings: SimulationSettings, jobs: Vec<SimulatedJob>) -> String {
    let to = Shared::default();
    let simulation = Simulation::new(Box::new(Fifo::default()), settings, Workload::of(jobs));
    simulation.with_log(Box::new(to.clone())).run().unwrap();
    let bytes = to.0.borrow().clone();
    String::from_utf8(bytes).unwrap()
}

#[test]
fn log_contains_events_and_effects() {
    let log = log_of(
        machines(1),
        vec![SimulatedJob::new("sort", at(2)).with_maps(1, seconds(3))],
    );
    let expected = "\
0.000000s worker_0001 joined with 1 map and 1 reduce slots
2.000000s job_0001 sort submitted by user to default with 1 maps and 0 reduces
  worker_0001: launch job_0001_m_0000.1
2.000000s job_0001_m_0000.1 on worker_0001 started
5.000000s job_0001_m_0000.1 on worker_0001 requests the commit
  worker_0001: commit job_0001_m_0000.1
5.000000s job_0001_m_0000.1 on worker_0001 done
  job_0001_m_0000 done by job_0001_m_0000.1
  job_0001 ended: Succeeded
";
    assert_eq!(log, expected);
}

#[test]
fn log_depends_on_seed() {
    let logged = |seed| {
        let mut settings = machines(3);
        settings.seed = seed;
        settings.progress_period = Some(Span::from_millis(1500));
        settings.failures = Failures {
            attempt: 0.2,
            ..Failures::default()
        };
        let job = |number: u64| {
            let job = SimulatedJob::new(format!("job{number}"), at(number));
            job.with_maps(4, seconds(3))
                .with_reduces(1, seconds(1), seconds(1))
        };
        log_of(settings, (0..20).map(job).collect())
    };
    assert_eq!(logged(1), logged(1));
    assert_ne!(logged(1), logged(2));
}
