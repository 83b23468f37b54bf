//! Where a job is listed by what it holds and wants, and its turn in each list.
//!
//! Owns the entries of the lists, so that what is entered is taken out again. Does not own what a job wants
//! (`lane`).

use std::collections::BTreeSet;

use napreduce_engine::{ClusterView, JobId, Time};

use crate::hfsp::configuration::{HfspConfiguration, Late};
use crate::hfsp::lane::{Lane, Member};
use crate::hfsp::ranking::Rank;

impl Lane {
    /// The turn of a job: its rank, but among late jobs that share slots, the one that holds the fewest is
    /// first.
    pub(super) fn turn_of(&self, id: JobId, holding: u32, configuration: &HfspConfiguration) -> Option<Rank> {
        let rank = self.ranking.rank(id)?;
        let shares = configuration.late == Late::Share && !rank.on_time;
        Some(if shares { Rank { key: u64::from(holding), ..rank } } else { rank })
    }

    /// Lets virtual time pass, and lists the jobs anew whose ranks changed with that.
    pub fn update(&mut self, now: Time, view: &ClusterView<'_>, configuration: &HfspConfiguration) {
        self.ranking.set_slots(now, view.slots(self.kind));
        for id in self.ranking.update(now) {
            self.list(id, false);
            let holding = self.members.get(&id).map_or(0, |member| member.wish.holding);
            let turn = self.turn_of(id, holding, configuration);
            if let Some(member) = self.members.get_mut(&id) {
                member.wish.turn = turn;
            }
            self.list(id, true);
        }
    }

    /// When slots were last taken for everybody, if some job waits that might get one of another.
    pub fn last_round_of_waiting(&self) -> Option<Time> {
        let first = self.waiting.first()?;
        self.holders.last().filter(|last| *last > first).map(|_| self.last_round)
    }

    /// Lists every job, after a restore: the lists are not remembered.
    pub fn list_all(&mut self) {
        let all: Vec<JobId> = self.members.keys().copied().collect();
        all.into_iter().for_each(|id| self.list(id, true));
    }

    /// Enters a job where it belongs, or takes it out there.
    pub(super) fn list(&mut self, id: JobId, there: bool) {
        let Some(member) = self.members.get(&id) else { return };
        let wish = member.wish;
        count(&mut self.promised, wish.promised, there);
        count(&mut self.suspended, wish.suspended, there);
        let places = places(member);
        if places.untried {
            enter(&mut self.untried, (wish.tasks_left, member.submitted, id), there);
        }
        if !member.trained && !member.is_master {
            count(&mut self.training_slots, wish.holding.min(member.training.target), there);
        }
        let Some(turn) = wish.turn else { return };
        if places.launchable {
            enter(&mut self.launchable, turn, there);
        }
        if places.waiting {
            enter(&mut self.waiting, turn, there);
        }
        if places.holder {
            enter(&mut self.holders, turn, there);
            enter(&mut self.by_size, (wish.size, member.submitted, id), there);
        }
    }
}

fn count(all: &mut u32, slots: u32, there: bool) {
    *all = if there { *all + slots } else { *all - slots };
}

fn enter<T: Ord>(list: &mut BTreeSet<T>, place: T, there: bool) {
    if there {
        list.insert(place)
    } else {
        list.remove(&place)
    };
}

/// In which lists a job belongs, once it has a turn.
struct Places {
    untried: bool,
    launchable: bool,
    waiting: bool,
    holder: bool,
}

fn places(member: &Member) -> Places {
    let wish = &member.wish;
    Places {
        untried: wish.untried > 0 && wish.eligible > 0,
        launchable: wish.eligible > 0 && !member.is_endless(),
        waiting: wish.eligible + wish.suspended > 0,
        holder: member.trained && !member.is_master && wish.holding > wish.requested,
    }
}
