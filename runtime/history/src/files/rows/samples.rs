//! Queues and workers of a cluster at moments, as rows.
//!
//! Owns their columns. Does not own when one looks (the coordinator).

use napreduce_engine::WorkerId;
use napreduce_protocol::{QueueSample, QueueSlots, WorkerPhase, WorkerSample};

use super::{kind_of, kinds, number_of, or_empty, small};
use crate::files::recording::{Columns, ColumnsWriter, Row};

/// A moment that is known to a millisecond.
fn moment(at_millis: u64) -> Option<(u64, u64)> {
    let first = at_millis.saturating_mul(1_000);
    Some((first, first.saturating_add(999)))
}

impl Row for QueueSample {
    const KIND: u16 = kinds::QUEUES;
    const NAME: &'static str = "samples of queues";

    fn times(&self) -> Option<(u64, u64)> {
        moment(self.at_millis)
    }

    fn text_bytes(&self) -> usize {
        self.queue.len()
    }

    fn write(rows: &[QueueSample], columns: &mut ColumnsWriter) {
        columns.differences("at_millis", rows.iter().map(|row| Some(row.at_millis)));
        columns.texts("queue", rows.iter().map(|row| Some(row.queue.as_str())));
        columns.numbers("phase", rows.iter().map(|row| Some(number_of(row.kind))));
        columns.numbers("guaranteed_permille", rows.iter().map(|row| row.slots.guaranteed_permille));
        columns.numbers("maximum", rows.iter().map(|row| row.slots.maximum));
        columns.numbers("used", rows.iter().map(|row| Some(row.slots.used)));
        columns.numbers("wanted", rows.iter().map(|row| Some(row.slots.wanted)));
    }

    fn read(columns: &Columns) -> Result<Vec<QueueSample>, String> {
        let (times, phases) = (columns.all_numbers("at_millis")?, columns.all_small_numbers("phase")?);
        let mut queues = columns.texts("queue")?;
        let (guaranteed, maxima) = (columns.numbers("guaranteed_permille")?, columns.numbers("maximum")?);
        let (used, wanted) = (columns.all_numbers("used")?, columns.all_numbers("wanted")?);
        let row = |row: usize| {
            let (guaranteed_permille, maximum) = (guaranteed[row], maxima[row]);
            Ok(QueueSample {
                at_millis: times[row],
                queue: or_empty(&mut queues, row),
                kind: kind_of(phases[row])?,
                slots: QueueSlots { guaranteed_permille, maximum, used: used[row], wanted: wanted[row] },
            })
        };
        (0..columns.rows()).map(row).collect()
    }
}

impl Row for WorkerSample {
    const KIND: u16 = kinds::WORKERS;
    const NAME: &'static str = "changes of workers";

    fn times(&self) -> Option<(u64, u64)> {
        moment(self.at_millis)
    }

    fn text_bytes(&self) -> usize {
        self.name.len() + self.host.len() + self.reason.as_ref().map_or(0, String::len)
    }

    fn write(rows: &[WorkerSample], columns: &mut ColumnsWriter) {
        columns.differences("at_millis", rows.iter().map(|row| Some(row.at_millis)));
        columns.numbers("worker", rows.iter().map(|row| Some(row.worker.0.into())));
        columns.texts("name", rows.iter().map(|row| Some(row.name.as_str())));
        columns.texts("host", rows.iter().map(|row| Some(row.host.as_str())));
        columns.texts("state", rows.iter().map(|row| Some(row.state.in_words())));
        columns.texts("reason", rows.iter().map(|row| row.reason.as_deref()));
        columns.numbers("map_slots", rows.iter().map(|row| Some(row.map_slots.into())));
        columns.numbers("reduce_slots", rows.iter().map(|row| Some(row.reduce_slots.into())));
    }

    fn read(columns: &Columns) -> Result<Vec<WorkerSample>, String> {
        let (times, workers) = (columns.all_numbers("at_millis")?, columns.numbers("worker")?);
        let (mut names, mut hosts) = (columns.texts("name")?, columns.texts("host")?);
        let (mut states, mut reasons) = (columns.texts("state")?, columns.texts("reason")?);
        let (maps, reduces) = (columns.numbers("map_slots")?, columns.numbers("reduce_slots")?);
        let row = |row: usize| {
            let state = or_empty(&mut states, row);
            Ok(WorkerSample {
                at_millis: times[row],
                worker: WorkerId(small("worker", workers[row])?),
                name: or_empty(&mut names, row),
                host: or_empty(&mut hosts, row),
                state: WorkerPhase::of_word(&state).ok_or_else(|| format!("no worker is {state:?}"))?,
                reason: reasons[row].take(),
                map_slots: small("map_slots", maps[row])?,
                reduce_slots: small("reduce_slots", reduces[row])?,
            })
        };
        (0..columns.rows()).map(row).collect()
    }
}
