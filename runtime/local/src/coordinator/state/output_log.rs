//! The log of a job's map outputs, and the number of entries that each worker has received. The entries are
//! the outputs that the engine announced to reduces.

use std::collections::{BTreeMap, BTreeSet};

use napreduce_engine::{AttemptId, JobId, MapOutput, WorkerId};
use napreduce_protocol::{OutputEntry, Peer, ToWorker};

use super::CoordinatorState;
use crate::coordinator::entry::Identity;

/// Maximum entries of one message, so that no message grows with the job.
const ENTRIES_MAX: usize = 10_000;

impl CoordinatorState {
    /// Announces outputs to waiting reduces, with one message per worker.
    pub(super) fn name_inputs(
        &mut self,
        readers: BTreeMap<WorkerId, Vec<AttemptId>>,
        inputs: &[MapOutput],
    ) {
        let Some(job) = inputs
            .first()
            .and_then(|input| self.jobs.get_mut(&input.attempt.task.job))
        else {
            return;
        };
        let id = job.id();
        inputs.iter().for_each(|input| job.outputs.add(*input));
        let maps: Vec<u32> = inputs
            .iter()
            .map(|input| input.attempt.task.index)
            .collect();
        for (worker, attempts) in readers {
            self.tell_outputs(worker, id);
            let maps = maps.clone();
            self.tell(worker, |number| ToWorker::Named {
                number,
                attempts,
                maps,
            });
        }
    }

    /// Sends a worker the entries of a job's log that it has not received.
    pub(super) fn tell_outputs(&mut self, worker: WorkerId, job: JobId) {
        let (Some(link), Some(known)) = (self.links.get(&worker), self.jobs.get(&job)) else {
            return;
        };
        let unread = known
            .outputs
            .after(link.outputs_sent(job))
            .chunks(ENTRIES_MAX);
        let messages: Vec<_> = unread
            .map(|entries| (entries.to_vec(), self.holders(entries)))
            .collect();
        for (entries, peers) in messages {
            self.tell(worker, |number| ToWorker::Outputs {
                number,
                job,
                entries,
                peers,
            });
        }
    }

    /// Returns the data addresses of the workers that hold these outputs.
    fn holders(&self, entries: &[OutputEntry]) -> Vec<Peer> {
        let holders: BTreeSet<WorkerId> = entries
            .iter()
            .filter_map(|entry| match entry {
                OutputEntry::Ready(output) => Some(output.worker),
                OutputEntry::Lost { .. } => None,
            })
            .collect();
        let peers = holders.into_iter().filter_map(|worker| {
            let Identity {
                data_address,
                directory,
                incarnation,
                ..
            } = self.links.get(&worker)?.identity();
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
