//! What virtual attempts do from one moment to the next, and how long it takes.
//!
//! Owns the phases of an attempt and their lengths. Does not own orders nor who hears of it.

use napreduce_engine::{Report, Span, TaskKind};

use super::Simulation;
use super::attempts::Phase;
use super::bandwidth::Pace;
use super::queue::Due;

impl Simulation {
    /// Begins a phase that lasts so long.
    fn enter(&mut self, place: u32, phase: Phase, lasts: Span) {
        self.rest(place, phase);
        let stamp = self.attempts.at(place).stamp;
        if lasts.0 == 0 {
            self.phase_ends(place, stamp);
        } else {
            self.queue.push(self.now + lasts, Due::PhaseEnds { attempt: place, stamp });
        }
    }

    /// Begins a phase that ends by something else than time.
    pub(super) fn rest(&mut self, place: u32, phase: Phase) {
        let now = self.now;
        let attempt = self.attempts.at_mut(place);
        let (worker, worked) = (attempt.worker, attempt.phase == Phase::Working);
        attempt.phase = phase;
        attempt.phase_began = now;
        attempt.stamp = attempt.stamp.wrapping_add(1);
        if worked {
            self.share_bandwidth(worker);
        }
    }

    /// Enters the time until now in the books, as what it was spent on.
    pub(super) fn bring_up_to_date(&mut self, place: u32) {
        let attempt = self.attempts.at_mut(place);
        if attempt.phase == Phase::Fetching {
            let job = self.jobs.at_mut(attempt.id.task.job);
            let before = self.run.books.waiting;
            attempt.fetch(self.now, &job.history, job.plan.maps.len() as u32, &mut self.run.books);
            job.result.reduces_idle.0 += self.run.books.waiting - before;
        } else {
            attempt.charge(self.now, &mut self.run.books);
        }
    }

    /// What an attempt was doing has come to its end.
    pub(super) fn phase_ends(&mut self, place: u32, stamp: u32) {
        if self.attempts.at(place).stamp != stamp {
            return;
        }
        self.bring_up_to_date(place);
        match self.attempts.at(place).phase {
            Phase::Starting => {
                self.begin_work(place);
                self.tell(place, Report::Started);
                self.master_started(place);
            }
            Phase::Working if self.attempts.at(place).done < self.attempts.at(place).stops_at() => {
                self.begin_work(place);
            }
            Phase::Working => self.work_ends(place),
            Phase::Suspending => self.stopped(place),
            Phase::Resuming => {
                self.tell(place, Report::Resumed);
                self.begin_work(place);
            }
            Phase::Saving => self.gone(place, Report::Checkpointed),
            Phase::Cleaning => self.gone(place, Report::Killed),
            phase => unreachable!("{phase:?} does not end by time"),
        }
    }

    /// The order to start has arrived.
    pub(super) fn start(&mut self, place: u32) {
        self.bring_up_to_date(place);
        if let Some(lasts) = self.start_of_master(place) {
            return self.enter(place, Phase::Starting, lasts);
        }
        let overheads = self.settings.overheads;
        let attempt = self.attempts.at(place);
        let mut lasts = overheads.launch;
        if attempt.kind() == TaskKind::Map {
            let machine = self.workers[attempt.worker as usize].machine;
            let task = attempt.id.task;
            let preferred = &self.jobs.at_mut(task.job).plan.maps[task.index as usize].preferred;
            let (placed, local) = (!preferred.is_empty(), preferred.contains(&machine));
            let same_rack = |other: &u32| self.settings.rack_of(*other) == self.settings.rack_of(machine);
            let on_rack = !local && self.settings.racks > 1 && preferred.iter().any(same_rack);
            self.run.placed_maps += u64::from(placed);
            self.run.local_maps += u64::from(local);
            self.run.rack_maps += u64::from(on_rack);
            lasts = match (placed && !local, on_rack) {
                (true, true) => lasts + overheads.rack_input,
                (true, false) => lasts + overheads.remote_input,
                (false, _) => lasts,
            };
        }
        if let Some(written_by) = attempt.restores {
            let worker = attempt.worker;
            let bytes = self.checkpoint_bytes(place);
            lasts = lasts + overheads.checkpoint_read.of(bytes) + self.reading_over(place);
            if written_by != worker {
                lasts = lasts + overheads.restore_elsewhere;
                if overheads.restore_refetches {
                    let attempt = self.attempts.at(place);
                    lasts = lasts + Span(attempt.done.min(attempt.shuffle));
                }
            }
        }
        lasts = lasts + self.page_for(place);
        self.enter(place, Phase::Starting, lasts);
    }

    /// An attempt works from now on, or fetches as maps end.
    pub(super) fn begin_work(&mut self, place: u32) {
        self.bring_up_to_date(place);
        let now = self.now;
        let attempt = self.attempts.at_mut(place);
        attempt.stamp = attempt.stamp.wrapping_add(1);
        let job = self.jobs.at_mut(attempt.id.task.job);
        if job.is_master() {
            attempt.phase = Phase::Managing;
            return;
        }
        job.worked(now);
        // One that takes no time to fetch waits for the last map all the same.
        let fetches =
            attempt.done < attempt.shuffle || (attempt.done == attempt.shuffle && !job.has_had_every_map());
        if attempt.kind() == TaskKind::Reduce && fetches && !job.maps_complete() {
            attempt.phase = Phase::Fetching;
            attempt.seen = job.history.len();
            attempt.maps_seen = job.maps_done;
            let worker = attempt.worker;
            // It moves nothing while it waits for maps, which it may not have done before.
            return self.share_bandwidth(worker);
        }
        if attempt.asked {
            // It was stopped between its last work and its commit.
            attempt.phase = Phase::Ended;
            return;
        }
        attempt.phase = Phase::Working;
        if self.settings.overheads.machine_bandwidth.is_none() {
            return self.expect_end(place);
        }
        let worker = attempt.worker;
        attempt.pace = Pace::UNKNOWN;
        self.share_bandwidth(worker);
    }

    /// Enters when an attempt at work will be done, or will move something else, and when it passes marks, if
    /// its pace stays.
    pub(super) fn expect_end(&mut self, place: u32) {
        let now = self.now;
        let limited = self.settings.overheads.machine_bandwidth.is_some();
        let attempt = self.attempts.at(place);
        let (stamp, id, done, pace, total) =
            (attempt.stamp, attempt.id, attempt.done, attempt.pace, attempt.total);
        // From its shuffle on it reads from the disks.
        let turns = limited && done < attempt.shuffle;
        let stops = if turns { attempt.stops_at().min(attempt.shuffle) } else { attempt.stops_at() };
        self.queue.push(now + pace.time_for(stops - done), Due::PhaseEnds { attempt: place, stamp });
        if !self.marks.is_empty() {
            for at in self.marks.of(&self.jobs.at_mut(id.task.job).plan.name, id.task, total) {
                if at > done || (at == done && done == 0) {
                    self.queue.push(now + pace.time_for(at - done), Due::Mark { attempt: place, stamp });
                }
            }
        }
    }

    /// The work of an attempt is done, or it fails here.
    fn work_ends(&mut self, place: u32) {
        let attempt = self.attempts.at(place);
        let id = attempt.id;
        if attempt.done >= attempt.fails_at {
            return self.gone(place, Simulation::failed());
        }
        debug_assert_eq!(attempt.done, attempt.total);
        let now = self.now;
        let job = self.jobs.at_mut(id.task.job);
        job.worked(now);
        let feeds_reduces = id.task.kind == TaskKind::Map && !job.plan.reduces.is_empty();
        if feeds_reduces {
            let output_bytes = job.plan.maps[id.task.index as usize].output_bytes;
            self.gone(place, Report::Done { output_bytes });
        } else {
            self.rest(place, Phase::Ended);
            self.attempts.at_mut(place).asked = true;
            self.tell(place, Report::CommitRequested);
        }
    }

    /// An attempt that asked to commit is allowed to.
    pub(super) fn attempt_commits(&mut self, place: u32) {
        if self.attempts.at(place).phase == Phase::Ended {
            self.bring_up_to_date(place);
            self.gone(place, Report::Done { output_bytes: 0 });
        }
    }

    /// The process of an attempt is gone.
    fn gone(&mut self, place: u32, report: Report) {
        self.rest(place, Phase::Gone);
        self.process_gone(place);
        self.tell(place, report);
    }

    /// No process runs in a slot for an attempt any more.
    pub(super) fn process_gone(&mut self, place: u32) {
        let attempt = self.attempts.at_mut(place);
        if std::mem::take(&mut attempt.occupies) {
            self.workers[attempt.worker as usize].free_slot(attempt.id.task.kind);
        }
    }

    pub(super) fn suspend(&mut self, place: u32) {
        self.bring_up_to_date(place);
        let overheads = self.settings.overheads;
        let attempt = self.attempts.at(place);
        let (id, worker) = (attempt.id, attempt.worker as usize);
        let job = self.jobs.at_mut(id.task.job);
        job.result.preemptions.suspend += 1;
        let before = self.workers[worker].suspended_memory;
        let after = before + u128::from(job.plan.memory);
        self.workers[worker].suspended_memory = after;
        let swapped =
            overheads.spare_memory.map_or(0, |spare| after.saturating_sub(before.max(spare.into())));
        let swapped = u64::try_from(swapped).unwrap_or(u64::MAX);
        let now = self.now;
        let attempt = self.attempts.at_mut(place);
        attempt.swapped = swapped;
        attempt.pages.suspended_since = Some(now);
        self.run.books.saved += attempt.done - attempt.preserved;
        attempt.preserved = attempt.done;
        self.enter(place, Phase::Suspending, overheads.suspend.of(swapped));
    }

    /// A process is verified stopped.
    fn stopped(&mut self, place: u32) {
        self.rest(place, Phase::Suspended);
        self.process_gone(place);
        self.tell(place, Report::Suspended);
    }

    pub(super) fn resume(&mut self, place: u32) {
        self.bring_up_to_date(place);
        let attempt = self.attempts.at(place);
        let (swapped, worker, job) = (attempt.swapped, attempt.worker as usize, attempt.id.task.job);
        let memory = self.jobs.at_mut(job).plan.memory;
        self.workers[worker].suspended_memory -= u128::from(memory);
        let lasts = self.settings.overheads.resume.of(swapped) + self.page_for(place);
        self.enter(place, Phase::Resuming, lasts);
    }

    pub(super) fn save(&mut self, place: u32) {
        self.bring_up_to_date(place);
        let bytes = self.checkpoint_bytes(place);
        let lasts = self.settings.overheads.checkpoint_write.of(bytes);
        self.enter(place, Phase::Saving, lasts);
    }

    /// A suspended attempt is woken without a slot, saves its work and exits.
    pub(super) fn wake_to_save(&mut self, place: u32) {
        self.bring_up_to_date(place);
        let attempt = self.attempts.at(place);
        let (swapped, worker, job) = (attempt.swapped, attempt.worker as usize, attempt.id.task.job);
        let memory = self.jobs.at_mut(job).plan.memory;
        self.workers[worker].suspended_memory -= u128::from(memory);
        let overheads = self.settings.overheads;
        let saved = self.checkpoint_bytes(place);
        let lasts = overheads.resume.of(swapped) + overheads.checkpoint_write.of(saved);
        self.enter(place, Phase::Saving, lasts);
    }

    pub(super) fn kill(&mut self, place: u32) {
        self.bring_up_to_date(place);
        let attempt = self.attempts.at(place);
        let (phase, worker, job) = (attempt.phase, attempt.worker as usize, attempt.id.task.job);
        if phase == Phase::Cleaning {
            return;
        }
        if matches!(phase, Phase::Suspending | Phase::Suspended | Phase::ResumeOrdered) {
            let memory = self.jobs.at_mut(job).plan.memory;
            self.workers[worker].suspended_memory -= u128::from(memory);
        }
        self.enter(place, Phase::Cleaning, self.settings.overheads.kill);
    }
}
