//! Machines on racks: what a map costs by where its input is, and how many maps ran where.
//!
//! Owns closed forms of one map or two. Who gets which task is the policies'
//! (`runtime/schedulers/tests/schedulers/racks.rs`).

use napreduce_schedulers::fair::{Fair, FairConfiguration};
use napreduce_schedulers::serving::DelaySettings;
use napreduce_sim::metrics::RunSummary;
use napreduce_sim::{Run, Simulation, Workload};

use super::{SimulatedJob, SimulationSettings, at, end, fifo, machines, seconds};

/// Machines 0 and 2 on one rack, 1 and 3 on the other; input from the rack takes 2 s, from the other 5 s.
fn two_racks(count: u32) -> SimulationSettings {
    let mut settings = machines(count);
    settings.racks = 2;
    settings.overheads.rack_input = seconds(2);
    settings.overheads.remote_input = seconds(5);
    settings
}

/// One map of 10 s for each of these machines, which hold the inputs.
fn job(name: &str, inputs: &[u32]) -> SimulatedJob {
    let mut job = SimulatedJob::new(name, at(0)).with_maps(inputs.len() as u32, seconds(10));
    for (map, machine) in job.maps.iter_mut().zip(inputs) {
        map.preferred = vec![*machine];
    }
    job
}

fn maps(run: &Run) -> (u64, u64, u64) {
    let RunSummary { placed_maps, local_maps, rack_maps, .. } = RunSummary::of(run);
    (placed_maps, local_maps, rack_maps)
}

#[test]
fn a_map_costs_nothing_at_its_input_little_on_its_rack_and_more_elsewhere() {
    // Machine 0 has the first map, machine 1 another of the same input, from the other rack.
    let run = fifo(two_racks(2), vec![job("job", &[0, 0])]);
    assert_eq!((end(&run, "job"), maps(&run)), (15.0, (2, 1, 0)));
    // Of three machines, 0 has its own, and 2 is on its rack: 1 takes what is left.
    let run = fifo(two_racks(3), vec![job("job", &[0, 0, 0])]);
    assert_eq!((end(&run, "job"), maps(&run)), (15.0, (3, 1, 1)));
    let run = fifo(two_racks(3), vec![job("job", &[2, 1, 2])]);
    assert_eq!((end(&run, "job"), maps(&run)), (12.0, (3, 2, 1)));
}

#[test]
fn on_one_rack_all_other_machines_are_equally_far() {
    let settings = SimulationSettings { racks: 1, ..two_racks(3) };
    let run = fifo(settings, vec![job("job", &[0, 0, 0])]);
    assert_eq!((end(&run, "job"), maps(&run)), (15.0, (3, 1, 0)));
}

#[test]
fn a_job_that_declines_other_racks_waits_for_its_own() {
    let run = |declines, rack_declines| {
        let delay = DelaySettings { declines, rack_declines, heartbeat: seconds(1) };
        let fair = Fair::new(FairConfiguration { delay, ..FairConfiguration::default() }).unwrap();
        let jobs = Workload::of(vec![job("job", &[0, 0])]);
        Simulation::new(Box::new(fair), two_racks(2), jobs).run().unwrap()
    };
    // The other map goes to machine 1, at once, after three opportunities, or never.
    assert_eq!((end(&run(0, 0), "job"), maps(&run(0, 0))), (15.0, (2, 1, 0)));
    assert_eq!((end(&run(0, 3), "job"), maps(&run(0, 3))), (18.0, (2, 1, 0)));
    assert_eq!((end(&run(1, 100), "job"), maps(&run(1, 100))), (20.0, (2, 2, 0)));
}
