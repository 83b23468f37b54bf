//! `nap sim`: simulates a workload, a trace or a recorded history under one or more schedulers, and prints, writes
//! and plots the results.

mod arguments;
mod fidelity;
mod figures;
mod jobs;
mod recorded;
mod recording;
mod report;
mod runs;
mod source;
mod variants;

use std::collections::BTreeSet;

use anyhow::{Result, ensure};
pub use arguments::Arguments;
use fidelity::Fidelity;
use napreduce_protocol::printing::print_error;
use napreduce_schedulers::SchedulerName;
use napreduce_sim::LimitError;
use source::Source;
use variants::Variant;

use crate::cluster::ClusterArguments;
use crate::failure::usage;
use crate::parent::end_with_parent;

/// Maximum runs of each variant: results are kept in memory until the end.
const RUNS_MAX: u32 = 100_000;

/// The variants to run, and everything that their runs share.
struct Experiment {
    source: Source,
    settings: napreduce_sim::SimulationSettings,
    variants: Vec<Variant>,
    seed: u64,
    runs: u32,
}

/// Runs the simulations and prints the results.
pub fn run(arguments: &Arguments, cluster: &ClusterArguments) -> Result<()> {
    end_with_parent()?;
    let experiment = experiment(arguments, cluster).map_err(usage)?;
    let record = arguments
        .record
        .as_deref()
        .map(recording::begin)
        .transpose()?;
    let outcomes = runs::all(&experiment, arguments, record.as_ref())?;
    if let Some(path) = &arguments.results {
        jobs::write(path, outcomes.iter().flat_map(|outcome| &outcome.jobs))?;
    }
    if let Some(folder) = &arguments.plot {
        figures::draw(folder, &outcomes, experiment.seed)?;
    }
    let fidelity = experiment
        .source
        .recorded()
        .map(|recorded| Fidelity::of(recorded, &outcomes));
    arguments.format.print(
        |_| {
            let begin = fidelity
                .as_ref()
                .map_or_else(String::new, |fidelity| fidelity.text());
            begin + &report::text(&experiment, &outcomes)
        },
        || {
            let mut value = report::json(&experiment, &outcomes);
            if let Some(fidelity) = &fidelity {
                value["recorded"] = fidelity.value();
            }
            value
        },
    )
}

/// Reads the input and the variants. Errors are usage errors.
fn experiment(arguments: &Arguments, cluster: &ClusterArguments) -> Result<Experiment> {
    let source = Source::read(arguments)?;
    let settings = arguments.settings(&source)?;
    let mut own = source.recorded().and_then(recorded::Recorded::variant);
    if let Some(own) = &mut own {
        own.settings.record_allocation = settings.record_allocation;
    }
    let names = match &arguments.scheduler[..] {
        [] if source.recorded().is_none() && arguments.baseline.is_empty() => {
            vec![SchedulerName::default()]
        }
        names => names.to_vec(),
    };
    let mut variants: Vec<Variant> = own.into_iter().collect();
    variants.extend(Variant::all(&names, arguments, cluster, &settings)?);
    ensure!(
        !variants.is_empty(),
        "{}: the scheduler of the cluster is not recorded; name one with --scheduler",
        source.name
    );
    let is_blind = |one: &&Variant| {
        one.subject
            .policy()
            .is_some_and(|policy| policy.uses_output_bytes())
    };
    let blind = variants.iter().find(is_blind);
    if let Some(blind) = blind.filter(|_| !source.has_output_bytes) {
        anyhow::bail!(
            "{}: no job has the output bytes of its maps, by which {} schedules reduces{}",
            source.name,
            blind.label,
            source.remedy_without_output_bytes(),
        );
    }
    let seed = arguments.seed.unwrap_or(source.seed);
    let runs = arguments.runs;
    ensure!(runs > 0, "--runs 0: must be at least 1");
    let last = seed.checked_add(u64::from(runs) - 1);
    if runs > RUNS_MAX || last.is_none() {
        let limit = format!(
            "--runs {runs} from seed {seed}: must be at most {RUNS_MAX} runs, with seeds below 2^64"
        );
        return Err(LimitError(limit).into());
    }
    note_ignored(&source, &variants, seed);
    if let Some(recorded) = source.recorded() {
        for note in recorded.notes_on_other_settings(&variants, arguments) {
            print_error(format_args!("nap: note: {note}"));
        }
    }
    Ok(Experiment {
        source,
        settings,
        variants,
        seed,
        runs,
    })
}

/// Prints which requests of jobs a policy ignores.
fn note_ignored(source: &Source, variants: &[Variant], seed: u64) {
    let requests = source.requests(seed);
    let jobs = || {
        requests
            .iter()
            .map(|(priority, queue, deadline)| (*priority, &**queue, *deadline))
    };
    let policies = variants
        .iter()
        .filter_map(|variant| variant.subject.policy());
    let notes: BTreeSet<String> = policies.flat_map(|policy| policy.ignored(jobs())).collect();
    for note in notes {
        print_error(format_args!("nap: note: {note}"));
    }
}
