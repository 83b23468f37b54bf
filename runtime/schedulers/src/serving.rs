//! Delay scheduling (Zaharia et al., EuroSys 2010): a job waits for a slot near its data or its saved work.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use napreduce_engine::{Actions, Job, JobId, Offer, Span, TaskKind, Time, WorkerId, fields, serve};

/// Launches a task that has no saved work, if there is one.
fn serve_fresh(job: &Job, offer: Offer, actions: &mut Actions) -> bool {
    let Some(task) = job.next_fresh(offer.kind, offer.worker) else { return false };
    actions.launch(task, offer.worker, job.start_of(task));
    true
}

fields! {
    /// How long a job waits for a slot near its data or its saved work; not at all when nothing is said.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
    pub struct DelaySettings {
        /// After how many declined opportunities a job takes a slot away from its data; 0 takes the first.
        pub declines: u32 = 0,
        /// So many more it declines on other racks, where there are several.
        pub rack_declines: u32 = 0,
        /// How long after one opportunity the next one on the same worker counts; every offer does when 0.
        #[serde(with = "napreduce_engine::time::text")]
        pub heartbeat: Span = Span::from_millis(200),
    }
}

/// What a job takes of a slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Takes {
    /// It waits for another one.
    Nothing,
    /// A task whose input, or saved work, is on the rack of the worker.
    OnRack,
    Anything,
}

/// The declined opportunities of each job since its last launch.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Delay {
    settings: DelaySettings,
    #[serde(with = "pairs")]
    declined: BTreeMap<(JobId, TaskKind), Declined>,
    /// When a slot that was declined counts again.
    retry: Option<Time>,
}

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
struct Declined {
    count: u32,
    /// When an opportunity was last counted on a worker.
    last: BTreeMap<WorkerId, Time>,
}

impl Delay {
    /// Nobody has declined anything.
    pub fn new(settings: DelaySettings) -> Delay {
        Delay { settings, declined: BTreeMap::new(), retry: None }
    }

    /// Gives the offered slot to a job as [`serve`] does, but lets it wait for one that is near its data.
    pub fn serve(&mut self, now: Time, job: &Job, offer: Offer, actions: &mut Actions) -> bool {
        if self.waits(now, job, offer) {
            // A reduce that has no saved work anywhere is at home on every worker: only saved work waits.
            return offer.kind == TaskKind::Reduce && serve_fresh(job, offer, actions);
        }
        let served = serve(job, offer, actions);
        if served {
            self.served(job.id(), offer.kind);
        }
        served
    }

    /// The job got a slot where it wanted one, or gave up waiting for it.
    pub fn served(&mut self, job: JobId, kind: TaskKind) {
        if !self.declined.is_empty() {
            self.declined.remove(&(job, kind));
        }
    }

    /// Whether the job rather waits for another slot; counts that.
    pub fn waits(&mut self, now: Time, job: &Job, offer: Offer) -> bool {
        self.takes(now, job, offer) == Takes::Nothing
    }

    /// What the job takes of an offered slot; counts it if the job rather waits for another one.
    pub fn takes(&mut self, now: Time, job: &Job, offer: Offer) -> Takes {
        let DelaySettings { declines, rack_declines, heartbeat } = self.settings;
        // On the only rack there is, every task is near.
        let declines_max = declines.saturating_add(if job.knows_racks() { rack_declines } else { 0 });
        if declines_max == 0 {
            return Takes::Anything;
        }
        let (kind, worker) = (offer.kind, offer.worker);
        let near = job.suspended_on(kind, worker).is_some() || job.next_local(kind, worker).is_some();
        if near || !job.prefers_workers(kind) || job.next_task(kind, worker).is_none() {
            return Takes::Anything;
        }
        let declined = self.declined.entry((job.id(), kind)).or_default();
        if heartbeat > Span(0) && declined.last.get(&worker) == Some(&now) {
            // Asked again about a slot that it declined just now.
            return Takes::Nothing;
        }
        if declined.count >= declines_max {
            return Takes::Anything;
        }
        if declined.count >= declines && job.next_on_rack(kind, worker).is_some() {
            return Takes::OnRack;
        }
        let counts = declined.last.get(&worker).is_none_or(|last| now >= *last + heartbeat);
        if counts {
            declined.last.insert(worker, now);
            declined.count += 1;
        }
        let retry = now + heartbeat.max(Span(1));
        self.retry = Some(self.retry.filter(|at| *at > now).map_or(retry, |at| at.min(retry)));
        Takes::Nothing
    }

    /// Forgets a job that is over.
    pub fn forget(&mut self, job: JobId) {
        for kind in TaskKind::ALL {
            self.declined.remove(&(job, kind));
        }
    }

    /// When an offer that was declined counts again, if one was: nothing else may happen until then.
    pub fn next_wakeup(&self, now: Time) -> Option<Time> {
        self.retry.filter(|at| *at > now)
    }
}

/// A map as a list of pairs: a text has no room for keys that are pairs themselves.
mod pairs {
    use super::{BTreeMap, Declined, JobId, TaskKind};
    use serde::{Deserialize, Deserializer, Serializer};

    type Map = BTreeMap<(JobId, TaskKind), Declined>;

    pub fn serialize<S: Serializer>(map: &Map, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(map)
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
    fn what_was_declined_is_saved_and_read_again() {
        let mut delay = Delay::new(DelaySettings { declines: 3, ..DelaySettings::default() });
        let last = BTreeMap::from([(WorkerId(4), Time(5))]);
        delay.declined.insert((JobId(1), TaskKind::Map), Declined { count: 2, last });
        let text = serde_json::to_string(&delay).expect("plain data");
        let again: Delay = serde_json::from_str(&text).expect("just written");
        assert_eq!(format!("{again:?}"), format!("{delay:?}"));
    }
}
