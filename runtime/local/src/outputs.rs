//! The map outputs of a job and the log of their changes, at both ends: the coordinator appends to the log,
//! and each worker that reads it has the same table. `coordinator::output_log` contains the position of each reader.

use napreduce_engine::MapOutput;
use napreduce_protocol::OutputEntry;
use serde::{Deserialize, Serialize};

/// The output of each map, by index; `None` if there is none.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct OutputTable(Vec<Option<MapOutput>>);

impl OutputTable {
    /// Returns the table after these entries.
    pub(crate) fn of_log(entries: &[OutputEntry]) -> OutputTable {
        let mut table = OutputTable::default();
        entries.iter().for_each(|entry| table.apply(*entry));
        table
    }

    /// Applies one more entry.
    pub(crate) fn apply(&mut self, entry: OutputEntry) {
        let (map, output) = match entry {
            OutputEntry::Ready(output) => (output.attempt.task.index, Some(output)),
            OutputEntry::Lost { map } => (map, None),
        };
        let map = map as usize;
        if self.0.len() <= map {
            self.0.resize(map + 1, None);
        }
        self.0[map] = output;
    }

    /// Returns the outputs in map order.
    pub(crate) fn all(&self) -> Vec<MapOutput> {
        self.0.iter().flatten().copied().collect()
    }

    pub(crate) fn get(&self, map: u32) -> Option<MapOutput> {
        self.0.get(map as usize).copied().flatten()
    }

    /// Returns one more than the highest map in the log.
    pub(crate) fn maps(&self) -> u32 {
        u32::try_from(self.0.len()).unwrap_or(u32::MAX)
    }
}

/// The log of a job's map outputs, in the order in which reduces read it.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(from = "Vec<OutputEntry>", into = "Vec<OutputEntry>")]
pub(crate) struct OutputLog {
    entries: Vec<OutputEntry>,
    /// The table after all entries.
    table: OutputTable,
}

impl From<Vec<OutputEntry>> for OutputLog {
    fn from(entries: Vec<OutputEntry>) -> OutputLog {
        OutputLog {
            table: OutputTable::of_log(&entries),
            entries,
        }
    }
}

impl From<OutputLog> for Vec<OutputEntry> {
    fn from(log: OutputLog) -> Vec<OutputEntry> {
        log.entries
    }
}

impl OutputLog {
    /// Records the complete list of outputs, in map order.
    pub(crate) fn have(&mut self, outputs: &[MapOutput]) {
        let mut outputs = outputs.iter().copied().peekable();
        for map in 0..self.table.maps() {
            let now = outputs.next_if(|output| output.attempt.task.index == map);
            match now {
                Some(output) => self.add(output),
                None if self.table.get(map).is_some() => self.append(OutputEntry::Lost { map }),
                None => {}
            }
        }
        outputs.for_each(|output| self.add(output));
    }

    /// Adds an output; others are unchanged.
    pub(crate) fn add(&mut self, output: MapOutput) {
        if self.table.get(output.attempt.task.index) != Some(output) {
            self.append(OutputEntry::Ready(output));
        }
    }

    fn append(&mut self, entry: OutputEntry) {
        self.table.apply(entry);
        self.entries.push(entry);
    }

    /// Returns the entries after the first `read`.
    pub(crate) fn after(&self, read: usize) -> &[OutputEntry] {
        self.entries.get(read..).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use napreduce_engine::{AttemptId, JobId, TaskId, TaskKind, WorkerId};
    use rand::{Rng, SeedableRng};
    use rand_pcg::Pcg32;

    use super::*;

    fn output(map: u32, number: u32, worker: u32) -> MapOutput {
        let task = TaskId {
            job: JobId(1),
            kind: TaskKind::Map,
            index: map,
        };
        MapOutput {
            attempt: AttemptId { task, number },
            worker: WorkerId(worker),
        }
    }

    /// Changes the outputs at random. One of several readers at a time reads the log; its table must then
    /// match.
    #[test]
    fn reader_of_output_log_knows_current_outputs() {
        for seed in 0..200 {
            let mut random = Pcg32::seed_from_u64(seed);
            let mut there: Vec<Option<MapOutput>> = vec![None; 6];
            let mut log = OutputLog::default();
            let mut readers = vec![(0, OutputTable::default()); 3];
            for step in 0..40 {
                let map = random.random_range(0..6);
                there[map as usize] = random
                    .random_bool(0.7)
                    .then(|| output(map, step, random.random_range(1..4)));
                let now: Vec<MapOutput> = there.iter().flatten().copied().collect();
                match there[map as usize] {
                    Some(output) if random.random_bool(0.3) => log.add(output),
                    _ => log.have(&now),
                }
                if random.random_bool(0.1) {
                    log = OutputLog::from(Vec::from(log));
                }
                let (read, table) = &mut readers[random.random_range(0..3)];
                log.after(*read)
                    .iter()
                    .for_each(|entry| table.apply(*entry));
                *read = log.entries.len();
                assert_eq!(table, &log.table, "seed {seed}, step {step}");
                log.have(&now);
                assert_eq!(log.table.all(), now, "seed {seed}, step {step}");
            }
        }
    }

    #[test]
    fn known_outputs_are_not_sent_again() {
        let mut log = OutputLog::default();
        let outputs = [output(0, 1, 1), output(2, 1, 2)];
        for _ in 0..3 {
            log.have(&outputs);
            log.add(outputs[1]);
        }
        assert_eq!(log.after(0), outputs.map(OutputEntry::Ready));
        log.have(&outputs[1..]);
        assert_eq!(log.after(2), [OutputEntry::Lost { map: 0 }]);
        assert_eq!(log.after(9), []);
    }
}
