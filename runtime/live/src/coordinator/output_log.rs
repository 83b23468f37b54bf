//! The log of a job's map outputs, and how much of it each worker was told.
//!
//! Owns the entries, which follow from what the engine names to reduces: a worker that has read the
//! log up to its end knows exactly that. Does not own what an output is (the engine), nor the
//! messages' numbers (`link`).

use std::collections::{BTreeMap, BTreeSet};

use napreduce_engine::{AttemptId, JobId, MapOutput, WorkerId};
use napreduce_protocol::{OutputEntry, Peer, ToWorker};
use serde::{Deserialize, Serialize};

use super::entry::Identity;
use super::state::CoordinatorState;
use crate::shuffle::OutputTable;

/// Entries of one message, so that no message grows with the job.
const ENTRIES_MAX: usize = 10_000;

/// What became of the map outputs of one job, in the order in which reduces were told of it.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(from = "Vec<OutputEntry>", into = "Vec<OutputEntry>")]
pub(super) struct OutputLog {
    entries: Vec<OutputEntry>,
    /// After all of them.
    table: OutputTable,
}

impl From<Vec<OutputEntry>> for OutputLog {
    fn from(entries: Vec<OutputEntry>) -> OutputLog {
        OutputLog { table: OutputTable::of_log(&entries), entries }
    }
}

impl From<OutputLog> for Vec<OutputEntry> {
    fn from(log: OutputLog) -> Vec<OutputEntry> {
        log.entries
    }
}

impl OutputLog {
    /// These are all outputs there are now, in the order of their maps.
    pub(super) fn have(&mut self, outputs: &[MapOutput]) {
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

    /// There is this output now; nothing is said of other maps.
    pub(super) fn add(&mut self, output: MapOutput) {
        if self.table.get(output.attempt.task.index) != Some(output) {
            self.append(OutputEntry::Ready(output));
        }
    }

    fn append(&mut self, entry: OutputEntry) {
        self.table.apply(entry);
        self.entries.push(entry);
    }

    /// What comes after so many entries.
    fn after(&self, read: usize) -> &[OutputEntry] {
        self.entries.get(read..).unwrap_or_default()
    }
}

impl CoordinatorState {
    /// Has reduces read, too, what the engine names to them. One message for all of a worker.
    pub(super) fn name_inputs(&mut self, readers: BTreeMap<WorkerId, Vec<AttemptId>>, inputs: &[MapOutput]) {
        let Some(job) = inputs.first().and_then(|input| self.jobs.get_mut(&input.attempt.task.job)) else {
            return;
        };
        let id = job.id();
        inputs.iter().for_each(|input| job.outputs.add(*input));
        let maps: Vec<u32> = inputs.iter().map(|input| input.attempt.task.index).collect();
        for (worker, attempts) in readers {
            self.tell_outputs(worker, id);
            let maps = maps.clone();
            self.tell(worker, |number| ToWorker::Named { number, attempts, maps });
        }
    }

    /// Tells a worker what it has not read of a job's log.
    pub(super) fn tell_outputs(&mut self, worker: WorkerId, job: JobId) {
        let (Some(link), Some(known)) = (self.links.get(&worker), self.jobs.get(&job)) else { return };
        let unread = known.outputs.after(link.read_of(job)).chunks(ENTRIES_MAX);
        let messages: Vec<_> = unread.map(|entries| (entries.to_vec(), self.holders(entries))).collect();
        for (entries, peers) in messages {
            self.tell(worker, |number| ToWorker::Outputs { number, job, entries, peers });
        }
    }

    /// Where the workers that hold these outputs serve them.
    fn holders(&self, entries: &[OutputEntry]) -> Vec<Peer> {
        let holders: BTreeSet<WorkerId> = entries
            .iter()
            .filter_map(|entry| match entry {
                OutputEntry::Ready(output) => Some(output.worker),
                OutputEntry::Lost { .. } => None,
            })
            .collect();
        let peers = holders.into_iter().filter_map(|worker| {
            let Identity { data_address, directory, incarnation, .. } = self.links.get(&worker)?.identity();
            (!data_address.is_empty()).then(|| Peer {
                worker,
                address: data_address.clone(),
                directory: directory.clone(),
                incarnation: *incarnation,
            })
        });
        peers.collect()
    }
}

#[cfg(test)]
mod tests {
    use napreduce_engine::{TaskId, TaskKind};
    use rand::{Rng, SeedableRng};
    use rand_pcg::Pcg32;

    use super::*;

    fn output(map: u32, number: u32, worker: u32) -> MapOutput {
        let task = TaskId { job: JobId(1), kind: TaskKind::Map, index: map };
        MapOutput { attempt: AttemptId { task, number }, worker: WorkerId(worker) }
    }

    /// What is there changes at random; of several readers one at a time reads on, and must then know it all.
    #[test]
    fn who_has_read_the_log_knows_what_there_is() {
        for seed in 0..200 {
            let mut random = Pcg32::seed_from_u64(seed);
            let mut there: Vec<Option<MapOutput>> = vec![None; 6];
            let (mut log, mut readers) = (OutputLog::default(), vec![(0, OutputTable::default()); 3]);
            for step in 0..40 {
                let map = random.random_range(0..6);
                there[map as usize] =
                    random.random_bool(0.7).then(|| output(map, step, random.random_range(1..4)));
                let now: Vec<MapOutput> = there.iter().flatten().copied().collect();
                match there[map as usize] {
                    Some(output) if random.random_bool(0.3) => log.add(output),
                    _ => log.have(&now),
                }
                if random.random_bool(0.1) {
                    log = OutputLog::from(Vec::from(log));
                }
                let (read, table) = &mut readers[random.random_range(0..3)];
                log.after(*read).iter().for_each(|entry| table.apply(*entry));
                *read = log.entries.len();
                assert_eq!(table, &log.table, "seed {seed}, step {step}");
                log.have(&now);
                assert_eq!(log.table.all(), now, "seed {seed}, step {step}");
            }
        }
    }

    #[test]
    fn what_is_known_is_not_said_again() {
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
