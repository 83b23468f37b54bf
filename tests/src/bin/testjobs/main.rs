//! Jobs for the whole-system tests, one definition per behaviour, selected with `--job`: hard inputs,
//! misbehaving user code, every stage of the builder.

mod chain;
mod gated;
mod misbehaving;
mod pace;
mod rounds;
mod shapes;
mod started_ahead;
mod stateful;

use std::process::ExitCode;

use clap::Args;
use napreduce::program::Error;
use napreduce::{Driver, Program};
use serde::{Deserialize, Serialize};

/// The selected job and its parameters.
#[derive(Debug, Clone, Args, Serialize, Deserialize)]
struct Choice {
    /// Name of the definition
    #[arg(long)]
    job: String,
    /// A number some of them need
    #[arg(long, default_value = "1")]
    number: u64,
}

fn drive(driver: &mut Driver<'_>, choice: &Choice) -> Result<(), Error> {
    if choice.job == "rounds" {
        return rounds::drive(driver, choice);
    }
    if let Some(names) = choice.job.strip_prefix("several:") {
        return several(driver, choice, names);
    }
    if choice.job != "chain" {
        return driver.job(&choice.job).parameters(choice).run().map(drop);
    }
    chain(driver, choice)
}

fn chain(driver: &mut Driver<'_>, choice: &Choice) -> Result<(), Error> {
    let counts = driver.intermediate("counts");
    driver
        .job("count-to-records")
        .parameters(choice)
        .output(&counts)
        .run()?;
    driver
        .job("by-count")
        .parameters(choice)
        .inputs([&counts])
        .run()?;
    Ok(())
}

/// Runs jobs one after another on the same input. The output of each is `--output` with the job's name as its
/// extension; a chain at the end writes to `--output` itself.
fn several(driver: &mut Driver<'_>, choice: &Choice, names: &str) -> Result<(), Error> {
    let output = driver.output().to_owned();
    for name in names.split(',').filter(|name| *name != "chain") {
        driver
            .job(name)
            .parameters(choice)
            .output(output.with_extension(name))
            .run()?;
    }
    if names.ends_with("chain") {
        chain(driver, choice)
    } else {
        Ok(())
    }
}

fn main() -> ExitCode {
    started_ahead::do_first();
    Program::new()
        .about("Jobs of the whole-system tests")
        .job("words-of-bytes", shapes::words_of_bytes)
        .job("words-without-combiner", shapes::words_without_combiner)
        .job("killed-map", misbehaving::killed_map)
        .job("killed-reduce", misbehaving::killed_reduce)
        .job("kills-its-worker", misbehaving::kills_its_worker)
        .job("open-files", misbehaving::open_files)
        .job("hungry", misbehaving::hungry)
        .job("surroundings", misbehaving::surroundings)
        .job("outfits", started_ahead::outfits)
        .job("spoils-its-input", misbehaving::spoils_its_input)
        .job("panic-in-map", misbehaving::panic_in_map)
        .job("panic-in-combine", misbehaving::panic_in_combine)
        .job("panic-in-reduce", misbehaving::panic_in_reduce)
        .job("error-in-map", misbehaving::error_in_map)
        .job("fatal-in-map", misbehaving::fatal_in_map)
        .job("visits", shapes::visits)
        .job("one-key", shapes::one_key)
        .job("first-of-group", shapes::first_of_group)
        .job("lines-as-keys", shapes::lines_as_keys)
        .job("big-values", shapes::big_values)
        .job("by-remainder", shapes::by_remainder)
        .job("bad-partition", misbehaving::bad_partition)
        .job("bad-length", misbehaving::bad_length)
        .job("stateful", stateful::stateful)
        .job("damaged", misbehaving::damaged)
        .job("gated", gated::gated)
        .job("gated-noted", gated::gated_noted)
        .job("gated-named", gated::gated_named)
        .job("sorted-out", shapes::sorted_out)
        .job("gated-holding", gated::gated_holding)
        .job("gated-unsaved", gated::gated_unsaved)
        .job("gated-saving", gated::gated_saving)
        .job("scattered", misbehaving::scattered)
        .job("scattered-lines", misbehaving::scattered_lines)
        .job("endless", misbehaving::endless)
        .job("known-lines", shapes::known_lines)
        .job("straggler", misbehaving::straggler)
        .job("slow", shapes::slow)
        .job("slow-lines", shapes::slow_lines)
        .job("slow-records", pace::slow_records)
        .job("slow-groups", pace::slow_groups)
        .job("slow-values", pace::slow_values)
        .job("busy-record", pace::busy_record)
        .job("gate-in-map", pace::gate_in_map)
        .job("gate-in-reduce", pace::gate_in_reduce)
        .job("unknown-words", rounds::unknown_words)
        .job("unknown-words-as-text", rounds::unknown_words_as_text)
        .job("count-to-records", chain::count_to_records)
        .job("by-count", chain::by_count)
        .drive(drive)
}
