//! Measures the engine events per second of a trace: `cargo run --release --example trace_speed -- TRACE
//! MACHINES ORIGINAL [SCHEDULER]`.

use std::fs::File;
use std::time::Instant;

use napreduce_engine::Slots;
use napreduce_schedulers::SchedulerConfiguration;
use napreduce_sim::{Simulation, SimulationSettings, SizeModel, SwimTrace, decompressed};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (path, machines, original, scheduler) = match &arguments[..] {
        [path, machines, original] => (path, machines, original, "fifo"),
        [path, machines, original, scheduler] => (path, machines, original, scheduler.as_str()),
        _ => {
            return Err(
                "give a trace, the number of machines, the number of those it comes from, \
                        and a scheduler unless it is fifo"
                    .into(),
            );
        }
    };
    let (machines, original): (u32, u32) = (machines.parse()?, original.parse()?);
    let trace = SwimTrace::read(path, decompressed(File::open(path)?)?)?.scaled(machines, original);
    let model = SizeModel {
        block: 64 << 20,
        ..SizeModel::default()
    };
    let settings = SimulationSettings::new(machines, Slots { map: 4, reduce: 2 });
    let policy = SchedulerConfiguration::named(scheduler.parse()?).build()?;
    let began = Instant::now();
    let run = Simulation::new(policy, settings, trace.workload(model)).run()?;
    let took = began.elapsed().as_secs_f64();
    println!(
        "{} jobs, {} events in {took:.2} s: {:.0} events/s; utilisation {:.3}, ended at {}",
        run.jobs.len(),
        run.events,
        run.events as f64 / took,
        run.slot_time.utilisation(),
        run.ended
    );
    Ok(())
}
