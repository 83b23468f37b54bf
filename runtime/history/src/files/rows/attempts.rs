//! Attempts of a job as rows, in the order in which they were launched.
//!
//! Owns their columns. Does not own the attempts (protocol).

use napreduce_engine::WorkerId;
use napreduce_protocol::{AttemptFigures, AttemptMoments, AttemptSummary};

use super::{kinds, or_empty, read_attempts, small, write_attempts};
use crate::files::recording::{Columns, ColumnsWriter, Row};

impl Row for AttemptSummary {
    const KIND: u16 = kinds::ATTEMPTS;
    const NAME: &'static str = "attempts";

    fn times(&self) -> Option<(u64, u64)> {
        let micros = |millis: u64| millis.saturating_mul(1_000);
        // What ended within a millisecond ended until its end.
        let until = |millis: u64| micros(millis).saturating_add(999);
        let began = micros(self.launched_millis);
        Some((began, self.ended_millis.map_or(u64::MAX, until).max(began)))
    }

    fn text_bytes(&self) -> usize {
        self.worker_name.len() + self.end.as_ref().map_or(0, String::len)
    }

    fn write(rows: &[AttemptSummary], columns: &mut ColumnsWriter) {
        write_attempts("", rows.iter().map(|row| row.attempt), columns);
        columns.numbers("worker", rows.iter().map(|row| Some(row.worker.0.into())));
        columns.texts("worker_name", rows.iter().map(|row| Some(row.worker_name.as_str())));
        columns.differences("launched_millis", rows.iter().map(|row| Some(row.launched_millis)));
        // How long it took has fewer digits than when it ended.
        let took = |row: &AttemptSummary| Some(row.ended_millis?.wrapping_sub(row.launched_millis));
        columns.numbers("took_millis", rows.iter().map(took));
        columns.texts("end", rows.iter().map(|row| row.end.as_deref()));
        // The moments more exactly, in few digits: what milliseconds do not say of them.
        let mut moment = |name: &str, value: fn(&AttemptSummary, &AttemptMoments) -> Option<u64>| {
            let exact = |row: &AttemptSummary| row.moments.as_ref().and_then(|moments| value(row, moments));
            columns.numbers(name, rows.iter().map(exact));
        };
        moment("launched_rest_micros", |row, exact| Some(rest(exact.launched, row.launched_millis)));
        moment("starting_micros", |_, exact| Some(exact.started?.wrapping_sub(exact.launched)));
        moment("ended_rest_micros", |row, exact| Some(rest(exact.ended?, row.ended_millis.unwrap_or(0))));
        let mut figure = |name: &str, value: fn(&AttemptFigures) -> u64| {
            columns.numbers(name, rows.iter().map(|row| row.figures.as_ref().map(value)));
        };
        figure("input_bytes", |figures| figures.input_bytes);
        figure("output_bytes", |figures| figures.output_bytes);
        figure("input_records", |figures| figures.input_records);
        figure("output_records", |figures| figures.output_records);
        figure("shuffle_millis", |figures| figures.shuffle_millis);
        figure("processor_millis", |figures| figures.processor_millis);
        figure("spilled_records", |figures| figures.spilled_records);
    }

    fn read(columns: &Columns) -> Result<Vec<AttemptSummary>, String> {
        let attempts = read_attempts("", columns)?;
        let (workers, mut names) = (columns.numbers("worker")?, columns.texts("worker_name")?);
        let (launched, took) = (columns.all_numbers("launched_millis")?, columns.numbers("took_millis")?);
        let mut ends = columns.texts("end")?;
        let figures = read_figures(columns)?;
        let (launched_rest, ended_rest) =
            (columns.numbers("launched_rest_micros")?, columns.numbers("ended_rest_micros")?);
        let starting = columns.numbers("starting_micros")?;
        let row = |(row, attempt): (usize, _)| {
            let ended_millis = took[row].map(|took| launched[row].wrapping_add(took));
            let moments = launched_rest[row].map(|rest| {
                let launched = exact(launched[row], rest);
                let started = starting[row].map(|starting| launched.wrapping_add(starting));
                let ended = ended_rest[row].map(|rest| exact(ended_millis.unwrap_or(0), rest));
                AttemptMoments { launched, started, ended }
            });
            Ok(AttemptSummary {
                attempt,
                worker: WorkerId(small("worker", workers[row])?),
                worker_name: or_empty(&mut names, row),
                launched_millis: launched[row],
                ended_millis,
                end: ends[row].take(),
                figures: figures[row],
                moments,
            })
        };
        attempts.into_iter().enumerate().map(row).collect()
    }
}

/// What milliseconds do not say of a moment; a file may hold any.
fn rest(micros: u64, millis: u64) -> u64 {
    micros.wrapping_sub(millis.wrapping_mul(1_000))
}

fn exact(millis: u64, rest: u64) -> u64 {
    millis.wrapping_mul(1_000).wrapping_add(rest)
}

/// What attempts have moved that did their tasks: those of which the first column says something.
fn read_figures(columns: &Columns) -> Result<Vec<Option<AttemptFigures>>, String> {
    let (inputs, outputs) = (columns.numbers("input_bytes")?, columns.numbers("output_bytes")?);
    let (read, emitted) = (columns.numbers("input_records")?, columns.numbers("output_records")?);
    let (shuffle, processor) = (columns.numbers("shuffle_millis")?, columns.numbers("processor_millis")?);
    let spilled = columns.numbers("spilled_records")?;
    let or_none = |number: Option<u64>| number.unwrap_or(0);
    let row = |row: usize| {
        Some(AttemptFigures {
            input_bytes: inputs[row]?,
            output_bytes: or_none(outputs[row]),
            input_records: or_none(read[row]),
            output_records: or_none(emitted[row]),
            shuffle_millis: or_none(shuffle[row]),
            processor_millis: or_none(processor[row]),
            spilled_records: or_none(spilled[row]),
        })
    };
    Ok((0..columns.rows()).map(row).collect())
}
