//! Paging: when an attempt starts or resumes on a full machine, suspended attempts are paged out, least
//! recently used first.

use napreduce_engine::{Span, Time};

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
        let paged_in = attempt.pages.paged_out;
        let own = self.jobs.at(attempt.id.task.job).plan.memory;
        let mut resident: u64 = 0;
        let mut suspended: Vec<(Time, u32)> = Vec::new();
        for other in &self.workers.at(attempt.worker).attempts {
            if *other == place {
                continue;
            }
            let pages = self.attempts.at(*other).pages;
            resident = resident.saturating_add(pages.resident);
            if let Some(since) = pages.suspended_since {
                suspended.push((since, *other));
            }
        }
        suspended.sort_unstable();
        let available = memory.ram.saturating_sub(memory.base);
        let excess = resident.saturating_add(own).saturating_sub(available);
        let to_page_out = u128::from(excess) * u128::from(memory.excess_permille) / 1_000;
        let mut to_page_out = u64::try_from(to_page_out).unwrap_or(u64::MAX);
        let mut moved = paged_in;
        for (_, victim) in suspended {
            let paged_out = self.attempts.at_mut(victim).pages.page_out(to_page_out);
            to_page_out -= paged_out;
            moved = moved.saturating_add(paged_out);
            self.run.paged_out = self.run.paged_out.saturating_add(paged_out);
        }
        self.attempts.at_mut(place).pages = Pages {
            resident: own,
            ..Pages::default()
        };
        memory.time_of(moved)
    }
}
