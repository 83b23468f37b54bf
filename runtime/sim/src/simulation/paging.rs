//! Paging: when an attempt starts or resumes on a full machine, suspended attempts are paged out, least
//! recently used first.

use napreduce_engine::Span;

use super::Simulation;
use super::attempts::Pages;

impl Simulation {
    /// Makes room for the memory of an attempt: pages in its own memory and pages out suspended attempts, in
    /// the order of their suspension. Returns the time this takes.
    pub(super) fn page_for(&mut self, place: u32) -> Span {
        let Some(memory) = self.settings.overheads.machine_memory else {
            return Span(0);
        };
        let attempt = self.attempts.at(place);
        let worker = attempt.worker;
        let paged_in = attempt.pages.paged_out;
        let own = self
            .jobs
            .at_mut(self.attempts.at(place).id.task.job)
            .plan
            .memory;
        let others: Vec<u32> = self
            .workers
            .at(worker)
            .attempts
            .iter()
            .copied()
            .filter(|other| *other != place)
            .collect();
        let resident = others.iter().fold(0_u64, |sum, other| {
            sum.saturating_add(self.attempts.at(*other).pages.resident)
        });
        let there = memory.ram.saturating_sub(memory.base);
        let over = resident.saturating_add(own).saturating_sub(there);
        let wanted = u128::from(over) * u128::from(memory.excess_permille) / 1_000;
        let mut wanted = u64::try_from(wanted).unwrap_or(u64::MAX);
        let mut suspended: Vec<_> = others
            .iter()
            .filter_map(|other| Some((self.attempts.at(*other).pages.suspended_since?, *other)))
            .collect();
        suspended.sort_unstable();
        let mut moved = paged_in;
        for (_, victim) in suspended {
            let victim = &mut self.attempts.at_mut(victim).pages;
            let out = wanted.min(victim.resident);
            victim.resident -= out;
            victim.paged_out += out;
            wanted -= out;
            moved = moved.saturating_add(out);
            self.run.paged_out = self.run.paged_out.saturating_add(out);
        }
        self.attempts.at_mut(place).pages = Pages {
            resident: own,
            ..Pages::default()
        };
        memory.time_of(moved)
    }
}
