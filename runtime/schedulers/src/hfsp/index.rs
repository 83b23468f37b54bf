//! The index entries of a job, derived from its demand.

use napreduce_engine::{ClusterView, JobId, SortedSet, Time};

use crate::hfsp::configuration::{HfspConfiguration, LateOrder};
use crate::hfsp::lane::{Lane, Member};
use crate::hfsp::ranking::Rank;

impl Lane {
    /// Returns the rank of a job. LateOrder jobs that share slots are ordered by the slots they hold, fewest
    /// first.
    pub(super) fn effective_rank(
        &self,
        id: JobId,
        holding: u32,
        configuration: &HfspConfiguration,
    ) -> Option<Rank> {
        let rank = self.ranking.rank(id)?;
        let shares = configuration.late == LateOrder::Share && !rank.on_time;
        Some(if shares {
            Rank {
                key: u64::from(holding),
                ..rank
            }
        } else {
            rank
        })
    }

    /// Advances virtual time, and re-indexes jobs whose ranks changed.
    pub fn update(&mut self, now: Time, view: &ClusterView<'_>, configuration: &HfspConfiguration) {
        self.ranking.set_slots(now, view.slots(self.kind));
        for id in self.ranking.update(now) {
            self.update_index(id, false);
            let holding = self
                .members
                .get(&id)
                .map_or(0, |member| member.demand.holding);
            let turn = self.effective_rank(id, holding, configuration);
            if let Some(member) = self.members.get_mut(&id) {
                member.demand.turn = turn;
            }
            self.update_index(id, true);
        }
    }

    /// Returns the time of the last periodic round, if a waiting job may preempt another.
    pub fn last_round_of_waiting(&self) -> Option<Time> {
        let first = self.waiting.first()?;
        self.holders
            .last()
            .filter(|last| *last > first)
            .map(|_| self.last_round)
    }

    /// Rebuilds the index after a restore; it is not saved.
    pub fn rebuild_index(&mut self) {
        let all: Vec<JobId> = self.members.keys().copied().collect();
        for id in all {
            self.update_index(id, true);
        }
    }

    /// Adds the entries of a job to the index, or removes them.
    pub(super) fn update_index(&mut self, id: JobId, present: bool) {
        let Some(member) = self.members.get(&id) else {
            return;
        };
        let demand = member.demand;
        count(&mut self.promised, demand.promised, present);
        count(&mut self.suspended, demand.suspended, present);
        let entries = entries(member);
        if entries.untried {
            set_entry(
                &mut self.untried,
                (demand.tasks_left, member.submitted, id),
                present,
            );
        }
        if !member.trained && !member.is_master {
            count(
                &mut self.training_slots,
                demand.holding.min(member.training.target),
                present,
            );
        }
        let Some(turn) = demand.turn else { return };
        if entries.launchable {
            set_entry(&mut self.launchable, turn, present);
        }
        if entries.waiting {
            set_entry(&mut self.waiting, turn, present);
        }
        if entries.holder {
            set_entry(&mut self.holders, turn, present);
            set_entry(
                &mut self.by_size,
                (demand.size, member.submitted, id),
                present,
            );
        }
    }
}

fn count(all: &mut u32, slots: u32, present: bool) {
    *all = if present { *all + slots } else { *all - slots };
}

fn set_entry<T: Ord>(list: &mut SortedSet<T>, key: T, present: bool) {
    if present {
        list.insert(key)
    } else {
        list.remove(&key)
    };
}

/// The sets that contain a job, once it has a rank.
struct Entries {
    untried: bool,
    launchable: bool,
    waiting: bool,
    holder: bool,
}

fn entries(member: &Member) -> Entries {
    let demand = &member.demand;
    Entries {
        untried: demand.untried > 0 && demand.eligible > 0,
        launchable: demand.eligible > 0 && !member.is_endless(),
        waiting: demand.eligible + demand.suspended > 0,
        holder: member.trained && !member.is_master && demand.holding > demand.requested,
    }
}
