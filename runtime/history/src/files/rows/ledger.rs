//! The ledger of preemptions as rows: requests, continuations, restored attempts.
//!
//! Owns their columns. Does not own what they mean (protocol).

use napreduce_engine::{JobId, Primitive, WorkerId};
use napreduce_protocol::{PreemptionEnd, PreemptionSummary, RestoreSummary, ResumeSummary};

use super::{
    kinds, or_empty, read_attempts, read_optional_attempts, small, write_attempts, write_optional_attempts,
};
use crate::files::recording::{Columns, ColumnsWriter, Row};

impl Row for PreemptionSummary {
    const KIND: u16 = kinds::PREEMPTIONS;
    const NAME: &'static str = "preemptions";

    fn times(&self) -> Option<(u64, u64)> {
        let last = self.freed_micros.or(self.ordered_micros).unwrap_or(self.requested_micros);
        Some((self.requested_micros, last.max(self.requested_micros)))
    }

    fn text_bytes(&self) -> usize {
        self.by.len() + self.reason.len()
    }

    fn write(rows: &[PreemptionSummary], columns: &mut ColumnsWriter) {
        write_attempts("", rows.iter().map(|row| row.attempt), columns);
        columns.numbers("worker", rows.iter().map(|row| Some(row.worker.0.into())));
        columns.texts("primitive", rows.iter().map(|row| Some(row.primitive.in_words())));
        columns.texts("asked", rows.iter().map(|row| Some(row.asked.in_words())));
        columns.texts("by", rows.iter().map(|row| Some(row.by.as_str())));
        columns.texts("reason", rows.iter().map(|row| Some(row.reason.as_str())));
        columns.numbers("beneficiary", rows.iter().map(|row| Some(row.beneficiary?.0.into())));
        columns.differences("requested_micros", rows.iter().map(|row| Some(row.requested_micros)));
        columns.differences("ordered_micros", rows.iter().map(|row| row.ordered_micros));
        columns.differences("freed_micros", rows.iter().map(|row| row.freed_micros));
        write_optional_attempts("used_by_", rows.iter().map(|row| row.used_by), columns);
        columns.differences("used_micros", rows.iter().map(|row| row.used_micros));
        columns.texts("end", rows.iter().map(|row| Some(row.end?.in_words())));
        columns.numbers("worker_micros", rows.iter().map(|row| row.worker_micros));
        columns.numbers("active_millis", rows.iter().map(|row| Some(row.active_millis)));
        columns.numbers("suspended_millis", rows.iter().map(|row| row.suspended_millis));
        columns.numbers("resident_bytes", rows.iter().map(|row| Some(row.resident_bytes)));
        columns.numbers("swapped_bytes", rows.iter().map(|row| Some(row.swapped_bytes)));
        columns.numbers("swapped_out_bytes", rows.iter().map(|row| Some(row.swapped_out_bytes)));
        columns.numbers("checkpoint_bytes", rows.iter().map(|row| Some(row.checkpoint_bytes)));
        columns.numbers("work_saved_millis", rows.iter().map(|row| Some(row.work_saved_millis)));
        columns.numbers("work_lost_millis", rows.iter().map(|row| Some(row.work_lost_millis)));
    }

    fn read(columns: &Columns) -> Result<Vec<PreemptionSummary>, String> {
        let attempts = read_attempts("", columns)?;
        let numbers = |name| columns.numbers(name);
        let (workers, beneficiaries) = (numbers("worker")?, numbers("beneficiary")?);
        let (primitives, asked, ends) =
            (columns.texts("primitive")?, columns.texts("asked")?, columns.texts("end")?);
        let (mut by, mut reasons) = (columns.texts("by")?, columns.texts("reason")?);
        let (requested, ordered, freed) =
            (columns.all_numbers("requested_micros")?, numbers("ordered_micros")?, numbers("freed_micros")?);
        let (used_by, used) = (read_optional_attempts("used_by_", columns)?, numbers("used_micros")?);
        let (worker_micros, active, suspended) =
            (numbers("worker_micros")?, numbers("active_millis")?, numbers("suspended_millis")?);
        let (resident, swapped, swapped_out) =
            (numbers("resident_bytes")?, numbers("swapped_bytes")?, numbers("swapped_out_bytes")?);
        let checkpoint = numbers("checkpoint_bytes")?;
        let (saved, lost) = (numbers("work_saved_millis")?, numbers("work_lost_millis")?);
        let row = |(row, attempt): (usize, _)| {
            let primitive = primitive_of(primitives[row].as_deref())?;
            Ok(PreemptionSummary {
                attempt,
                worker: WorkerId(small("worker", workers[row])?),
                primitive,
                asked: asked[row].as_deref().map_or(Ok(primitive), |asked| primitive_of(Some(asked)))?,
                by: or_empty(&mut by, row),
                reason: or_empty(&mut reasons, row),
                beneficiary: optional_job(beneficiaries[row])?,
                requested_micros: requested[row],
                ordered_micros: ordered[row],
                freed_micros: freed[row],
                used_by: used_by[row],
                used_micros: used[row],
                end: ends[row].as_deref().map(end_of).transpose()?,
                worker_micros: worker_micros[row],
                active_millis: active[row].unwrap_or(0),
                suspended_millis: suspended[row],
                resident_bytes: resident[row].unwrap_or(0),
                swapped_bytes: swapped[row].unwrap_or(0),
                swapped_out_bytes: swapped_out[row].unwrap_or(0),
                checkpoint_bytes: checkpoint[row].unwrap_or(0),
                work_saved_millis: saved[row].unwrap_or(0),
                work_lost_millis: lost[row].unwrap_or(0),
            })
        };
        attempts.into_iter().enumerate().map(row).collect()
    }
}

fn primitive_of(word: Option<&str>) -> Result<Primitive, String> {
    word.and_then(Primitive::of_word).ok_or_else(|| format!("there is no primitive {word:?}"))
}

fn end_of(word: &str) -> Result<PreemptionEnd, String> {
    PreemptionEnd::of_word(word).ok_or_else(|| format!("no preemption ends as {word:?}"))
}

fn optional_job(number: Option<u64>) -> Result<Option<JobId>, String> {
    number.map(|number| small("beneficiary", Some(number)).map(JobId)).transpose()
}

impl Row for ResumeSummary {
    const KIND: u16 = kinds::RESUMES;
    const NAME: &'static str = "resumes";

    fn times(&self) -> Option<(u64, u64)> {
        let last = self.resumed_micros.unwrap_or(self.ordered_micros);
        Some((self.ordered_micros, last.max(self.ordered_micros)))
    }

    fn write(rows: &[ResumeSummary], columns: &mut ColumnsWriter) {
        write_attempts("", rows.iter().map(|row| row.attempt), columns);
        columns.numbers("worker", rows.iter().map(|row| Some(row.worker.0.into())));
        columns.differences("ordered_micros", rows.iter().map(|row| Some(row.ordered_micros)));
        columns.differences("resumed_micros", rows.iter().map(|row| row.resumed_micros));
        columns.numbers("worker_micros", rows.iter().map(|row| row.worker_micros));
        columns.numbers("suspended_millis", rows.iter().map(|row| Some(row.suspended_millis)));
        columns.numbers("swapped_bytes", rows.iter().map(|row| Some(row.swapped_bytes)));
        columns.numbers("swapped_in_bytes", rows.iter().map(|row| Some(row.swapped_in_bytes)));
    }

    fn read(columns: &Columns) -> Result<Vec<ResumeSummary>, String> {
        let attempts = read_attempts("", columns)?;
        let numbers = |name| columns.numbers(name);
        let (workers, ordered) = (numbers("worker")?, columns.all_numbers("ordered_micros")?);
        let (resumed, worker_micros) = (numbers("resumed_micros")?, numbers("worker_micros")?);
        let suspended = numbers("suspended_millis")?;
        let (swapped, swapped_in) = (numbers("swapped_bytes")?, numbers("swapped_in_bytes")?);
        let row = |(row, attempt): (usize, _)| {
            Ok(ResumeSummary {
                attempt,
                worker: WorkerId(small("worker", workers[row])?),
                ordered_micros: ordered[row],
                resumed_micros: resumed[row],
                worker_micros: worker_micros[row],
                suspended_millis: suspended[row].unwrap_or(0),
                swapped_bytes: swapped[row].unwrap_or(0),
                swapped_in_bytes: swapped_in[row].unwrap_or(0),
            })
        };
        attempts.into_iter().enumerate().map(row).collect()
    }
}

impl Row for RestoreSummary {
    const KIND: u16 = kinds::RESTORES;
    const NAME: &'static str = "restores";

    fn times(&self) -> Option<(u64, u64)> {
        let last = self.restored_micros.unwrap_or(self.ordered_micros);
        Some((self.ordered_micros, last.max(self.ordered_micros)))
    }

    fn text_bytes(&self) -> usize {
        self.refused.as_ref().map_or(0, String::len)
    }

    fn write(rows: &[RestoreSummary], columns: &mut ColumnsWriter) {
        write_attempts("", rows.iter().map(|row| row.attempt), columns);
        write_attempts("from_", rows.iter().map(|row| row.from), columns);
        columns.numbers("worker", rows.iter().map(|row| Some(row.worker.0.into())));
        columns.numbers("from_worker", rows.iter().map(|row| Some(row.from_worker?.0.into())));
        columns.differences("ordered_micros", rows.iter().map(|row| Some(row.ordered_micros)));
        columns.differences("restored_micros", rows.iter().map(|row| row.restored_micros));
        columns.numbers("worker_micros", rows.iter().map(|row| row.worker_micros));
        columns.numbers("work_saved_millis", rows.iter().map(|row| Some(row.work_saved_millis)));
        columns.texts("refused", rows.iter().map(|row| row.refused.as_deref()));
    }

    fn read(columns: &Columns) -> Result<Vec<RestoreSummary>, String> {
        let (attempts, from) = (read_attempts("", columns)?, read_attempts("from_", columns)?);
        let numbers = |name| columns.numbers(name);
        let (workers, from_workers) = (numbers("worker")?, numbers("from_worker")?);
        let (ordered, restored) = (columns.all_numbers("ordered_micros")?, numbers("restored_micros")?);
        let (worker_micros, saved) = (numbers("worker_micros")?, numbers("work_saved_millis")?);
        let mut refused = columns.texts("refused")?;
        let row = |(row, attempt): (usize, _)| {
            let from_worker = from_workers[row].map(|number| small("from_worker", Some(number)));
            Ok(RestoreSummary {
                attempt,
                from: from[row],
                worker: WorkerId(small("worker", workers[row])?),
                from_worker: from_worker.transpose()?.map(WorkerId),
                ordered_micros: ordered[row],
                restored_micros: restored[row],
                worker_micros: worker_micros[row],
                work_saved_millis: saved[row].unwrap_or(0),
                refused: refused[row].take(),
            })
        };
        attempts.into_iter().enumerate().map(row).collect()
    }
}
