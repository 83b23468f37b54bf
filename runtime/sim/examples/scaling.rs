//! Measures the cost of an event as clusters grow: `cargo run --release --example scaling [-- SCHEDULER,...
//! [MACHINES,...]]`.
//!
//! The load grows with the number of machines, so that only the size differs. Prints a line for each
//! scheduler and size with the median of three interleaved runs.

use napreduce_engine::{Slots, Span, Time};
use napreduce_schedulers::{SchedulerConfiguration, SchedulerName};
use napreduce_sim::{SimulatedJob, Simulation, SimulationSettings, Workload};

const RUNS: usize = 3;

/// Jobs of 1 to 40 maps and 1 to 4 reduces of different lengths, so many at once that nine of ten slots are
/// held.
fn workload(machines: u32) -> Workload {
    let jobs = (0..machines * 10).map(move |number| {
        let mut plan = SimulatedJob::new(
            format!("job-{number}"),
            Time(u64::from(number) * 23_000_000 / u64::from(machines)),
        );
        plan.queue = ["production", "research", "default"][number as usize % 3].into();
        plan.user = format!("user-{}", number % 7).into();
        let maps = 1 + number * 7919 % 40;
        let seconds = 5 + u64::from(number * 104_729 % 25);
        plan.with_maps(maps, Span::from_secs(seconds)).with_reduces(
            1 + number % 4,
            Span::from_secs(2),
            Span::from_secs(seconds),
        )
    });
    Workload::stream(jobs)
}

/// Nanoseconds this thread has run: others on the machine do not count.
fn processor_time() -> Result<u64, Box<dyn std::error::Error>> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat")?;
    Ok(text
        .split(' ')
        .next()
        .ok_or("no times of this thread")?
        .parse()?)
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let named = std::env::args()
        .nth(1)
        .unwrap_or_else(|| "fifo,fair,capacity,natjam,natjam-deadline,fcs,hfsp".to_owned());
    let schedulers: Vec<SchedulerName> =
        named.split(',').map(str::parse).collect::<Result<_, _>>()?;
    let sizes = std::env::args()
        .nth(2)
        .unwrap_or_else(|| "100,1000,10000".to_owned());
    let sizes: Vec<u32> = sizes.split(',').map(str::parse).collect::<Result<_, _>>()?;
    println!(
        "{:16} {:>9} {:>10} {:>12} {:>10} {:>6}",
        "scheduler", "machines", "events", "events/s", "ns/event", "held"
    );
    let mut rates = vec![Vec::new(); schedulers.len() * sizes.len()];
    let mut events = vec![(0, 0.0); rates.len()];
    for _ in 0..RUNS {
        for (row, scheduler) in schedulers.iter().enumerate() {
            for (column, machines) in sizes.iter().copied().enumerate() {
                let settings = SimulationSettings::new(machines, Slots { map: 4, reduce: 1 });
                let policy = SchedulerConfiguration::named(*scheduler).build()?;
                let began = processor_time()?;
                let run = Simulation::new(policy, settings, workload(machines)).run()?;
                let place = row * sizes.len() + column;
                rates[place].push(run.events as f64 * 1e9 / (processor_time()? - began) as f64);
                events[place] = (run.events, run.slot_time.utilisation());
            }
        }
    }
    for (place, rates) in rates.iter_mut().enumerate() {
        rates.sort_by(f64::total_cmp);
        let rate = rates[RUNS / 2];
        let (count, held) = events[place];
        let scheduler = schedulers[place / sizes.len()];
        let machines = sizes[place % sizes.len()];
        println!(
            "{:16} {machines:>9} {count:>10} {rate:>12.0} {:>10.0} {held:>6.2}",
            scheduler.in_words(),
            1e9 / rate
        );
    }
    Ok(())
}
