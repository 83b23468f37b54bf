//! Delay scheduling (Zaharia et al., EuroSys 2010): a job waits for a slot near its data or its saved work.

use serde::{Deserialize, Serialize};

use napreduce_engine::{
    Actions, Job, JobId, Offer, SortedMap, Span, TaskKind, Time, WorkerId, serve,
};

/// Launches a task without saved work, if there is one.
fn serve_fresh(job: &Job, offer: Offer, actions: &mut Actions) -> bool {
    let Some(task) = job.next_fresh(offer.kind, offer.worker) else {
        return false;
    };
    actions.launch(task, offer.worker, job.start_of(task));
    true
}

/// Returns whether a job takes a slot although it waits for one near its saved work: only saved work has a
/// preferred worker, a reduce without any can run everywhere.
fn takes_fresh(job: &Job, offer: Offer) -> bool {
    offer.kind == TaskKind::Reduce && job.next_fresh(offer.kind, offer.worker).is_some()
}

/// Returns whether a job has tasks with a preferred worker, and none of them prefers this one.
fn is_far(job: &Job, offer: Offer) -> bool {
    let Offer { worker, kind, .. } = offer;
    let near = job.suspended_on(kind, worker).is_some() || job.next_local(kind, worker).is_some();
    !near && job.prefers_workers(kind) && job.next_task(kind, worker).is_some()
}

/// How long a job waits for a slot near its data or its saved work. By default it does not wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub struct DelaySettings {
    /// Opportunities that a job declines before it accepts a slot away from its data.
    pub declines: u32,
    /// Further opportunities that it declines on other racks, if there are several racks.
    pub rack_declines: u32,
    /// Minimum interval between two opportunities on one worker that both count; 0 counts every offer.
    #[serde(with = "napreduce_engine::time::text")]
    pub heartbeat: Span,
}

impl Default for DelaySettings {
    fn default() -> DelaySettings {
        DelaySettings {
            declines: 0,
            rack_declines: 0,
            heartbeat: Span::from_millis(200),
        }
    }
}

/// The tasks that a job accepts for an offered slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Accepts {
    /// None; the job waits for another slot.
    Nothing,
    /// Tasks with input or saved work on the worker's rack.
    OnRack,
    Anything,
}

/// The declined opportunities of each job since its last launch.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Delay {
    settings: DelaySettings,
    #[serde(with = "pairs")]
    declined: SortedMap<(JobId, TaskKind), Declined>,
    /// When a declined slot counts again.
    retry: Option<Time>,
}

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
struct Declined {
    count: u32,
    /// When an opportunity was last counted, by worker.
    last: SortedMap<WorkerId, Time>,
}

impl Delay {
    pub fn new(settings: DelaySettings) -> Delay {
        Delay {
            settings,
            declined: SortedMap::new(),
            retry: None,
        }
    }

    /// Assigns the offered slot to a job as [`serve`] does, unless the job waits for a slot near its data.
    pub fn serve(&mut self, now: Time, job: &Job, offer: Offer, actions: &mut Actions) -> bool {
        if self.waits(now, job, offer) {
            return offer.kind == TaskKind::Reduce && serve_fresh(job, offer, actions);
        }
        let served = serve(job, offer, actions);
        if served {
            self.served(job.id(), offer.kind);
        }
        served
    }

    /// Resets the count of a job that launched a task near its data or stopped waiting.
    pub fn served(&mut self, job: JobId, kind: TaskKind) {
        if !self.declined.is_empty() {
            self.declined.remove(&(job, kind));
        }
    }

    /// Returns whether a job takes a slot of a worker, without counting a decline.
    pub fn would_take(&self, job: &Job, offer: Offer) -> bool {
        let DelaySettings {
            declines,
            rack_declines,
            ..
        } = self.settings;
        let kind = offer.kind;
        let worker = offer.worker;
        let declines_max =
            declines.saturating_add(if job.knows_racks() { rack_declines } else { 0 });
        if declines_max == 0 || !is_far(job, offer) {
            return true;
        }
        let count = self
            .declined
            .get(&(job.id(), kind))
            .map_or(0, |declined| declined.count);
        count >= declines_max
            || (count >= declines && job.next_on_rack(kind, worker).is_some())
            || takes_fresh(job, offer)
    }

    /// Returns whether a job takes a slot of a worker; counts a decline.
    pub fn takes(&mut self, now: Time, job: &Job, offer: Offer) -> bool {
        !self.waits(now, job, offer) || takes_fresh(job, offer)
    }

    /// Whether the job declines the slot; counts the decline.
    pub fn waits(&mut self, now: Time, job: &Job, offer: Offer) -> bool {
        self.accepts(now, job, offer) == Accepts::Nothing
    }

    /// Returns the tasks that the job accepts for the offered slot; counts a decline.
    pub fn accepts(&mut self, now: Time, job: &Job, offer: Offer) -> Accepts {
        let DelaySettings {
            declines,
            rack_declines,
            heartbeat,
        } = self.settings;
        // With a single rack every task is rack-local.
        let declines_max =
            declines.saturating_add(if job.knows_racks() { rack_declines } else { 0 });
        if declines_max == 0 {
            return Accepts::Anything;
        }
        let kind = offer.kind;
        let worker = offer.worker;
        if !is_far(job, offer) {
            return Accepts::Anything;
        }
        let declined = self.declined.get_or_default((job.id(), kind));
        if heartbeat > Span(0) && declined.last.get(&worker) == Some(&now) {
            // A repeated offer of the slot that it just declined.
            return Accepts::Nothing;
        }
        if declined.count >= declines_max {
            return Accepts::Anything;
        }
        if declined.count >= declines && job.next_on_rack(kind, worker).is_some() {
            return Accepts::OnRack;
        }
        let counts = declined
            .last
            .get(&worker)
            .is_none_or(|last| now >= *last + heartbeat);
        if counts {
            declined.last.insert(worker, now);
            declined.count += 1;
        }
        let retry = now + heartbeat.max(Span(1));
        self.retry = Some(
            self.retry
                .filter(|at| *at > now)
                .map_or(retry, |at| at.min(retry)),
        );
        Accepts::Nothing
    }

    /// Removes a finished job.
    pub fn forget(&mut self, job: JobId) {
        for kind in TaskKind::ALL {
            self.declined.remove(&(job, kind));
        }
    }

    /// Returns when a declined offer counts again; no event may happen before that.
    pub fn next_wakeup(&self, now: Time) -> Option<Time> {
        self.retry.filter(|at| *at > now)
    }
}

/// Serializes the map as a list of pairs: JSON object keys cannot be tuples.
mod pairs {
    use super::{Declined, JobId, SortedMap, TaskKind};
    use serde::{Deserialize, Deserializer, Serializer};

    type Map = SortedMap<(JobId, TaskKind), Declined>;

    pub fn serialize<S: Serializer>(map: &Map, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(map.iter())
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Map, D::Error> {
        let pairs = Vec::<((JobId, TaskKind), Declined)>::deserialize(deserializer)?;
        Ok(pairs.into_iter().collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delay_counts_survive_serialization() {
        let mut delay = Delay::new(DelaySettings {
            declines: 3,
            ..DelaySettings::default()
        });
        let last = SortedMap::from_iter([(WorkerId(4), Time(5))]);
        delay
            .declined
            .insert((JobId(1), TaskKind::Map), Declined { count: 2, last });
        let text = serde_json::to_string(&delay).expect("plain data");
        let again: Delay = serde_json::from_str(&text).expect("just written");
        assert_eq!(format!("{again:?}"), format!("{delay:?}"));
    }
}
