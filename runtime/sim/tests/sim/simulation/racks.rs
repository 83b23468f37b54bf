//! Racks: launch cost of maps by input location, and locality counts. Hand-computed cases of one or two maps.

use napreduce_schedulers::fair::{Fair, FairConfiguration};
use napreduce_schedulers::serving::DelaySettings;
use napreduce_sim::metrics::RunSummary;
use napreduce_sim::{Run, Simulation, Workload};

use super::{SimulatedJob, SimulationSettings, at, end, fifo, machines, seconds};

/// Machines 0 and 2 share a rack, as do 1 and 3. Input from the same rack takes 2 s, from the other rack 5 s.
fn two_racks(count: u32) -> SimulationSettings {
    let mut settings = machines(count);
    settings.racks = 2;
    settings.overheads.rack_input = seconds(2);
    settings.overheads.remote_input = seconds(5);
    settings
}

/// A job with one map of 10 s per machine in `inputs`, which holds its input.
fn job(name: &str, inputs: &[u32]) -> SimulatedJob {
    let mut job = SimulatedJob::new(name, at(0)).with_maps(inputs.len() as u32, seconds(10));
    for (map, machine) in job.maps.iter_mut().zip(inputs) {
        map.preferred = vec![*machine];
    }
    job
}

fn maps(run: &Run) -> (u64, u64, u64) {
    let RunSummary {
        placed_maps,
        local_maps,
        rack_maps,
        ..
    } = RunSummary::new(run);
    (placed_maps, local_maps, rack_maps)
}

#[test]
fn map_cost_depends_on_input_distance() {
    // Machine 0 runs the first map; machine 1 runs the other with input from the other rack.
    let run = fifo(two_racks(2), vec![job("job", &[0, 0])]);
    assert_eq!((end(&run, "job"), maps(&run)), (15.0, (2, 1, 0)));
    // Machine 0 has its own input and machine 2 is on its rack; machine 1 gets the remaining map.
    let run = fifo(two_racks(3), vec![job("job", &[0, 0, 0])]);
    assert_eq!((end(&run, "job"), maps(&run)), (15.0, (3, 1, 1)));
    let run = fifo(two_racks(3), vec![job("job", &[2, 1, 2])]);
    assert_eq!((end(&run, "job"), maps(&run)), (12.0, (3, 2, 1)));
}

#[test]
fn single_rack_has_one_remote_cost() {
    let settings = SimulationSettings {
        racks: 1,
        ..two_racks(3)
    };
    let run = fifo(settings, vec![job("job", &[0, 0, 0])]);
    assert_eq!((end(&run, "job"), maps(&run)), (15.0, (3, 1, 0)));
}

#[test]
fn job_declining_other_racks_waits() {
    let run = |declines, rack_declines| {
        let delay = DelaySettings {
            declines,
            rack_declines,
            heartbeat: seconds(1),
        };
        let fair = Fair::new(FairConfiguration {
            delay,
            ..FairConfiguration::default()
        })
        .unwrap();
        let jobs = Workload::of(vec![job("job", &[0, 0])]);
        Simulation::new(Box::new(fair), two_racks(2), jobs)
            .run()
            .unwrap()
    };
    // The other map goes to machine 1 immediately, after three opportunities, or never.
    assert_eq!(
        (end(&run(0, 0), "job"), maps(&run(0, 0))),
        (15.0, (2, 1, 0))
    );
    assert_eq!(
        (end(&run(0, 3), "job"), maps(&run(0, 3))),
        (18.0, (2, 1, 0))
    );
    assert_eq!(
        (end(&run(1, 100), "job"), maps(&run(1, 100))),
        (20.0, (2, 2, 0))
    );
}
