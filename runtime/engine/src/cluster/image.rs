//! The snapshot form of the cluster, and the restore from it. An image contains only primary data and no
//! index, so a damaged one cannot contradict its own indices. The restore checks every reference before it
//! rebuilds an index from it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::by_kind::ByKind;
use crate::cluster::costs::Costs;
use crate::cluster::departures::Departures;
use crate::cluster::job::JobImage;
use crate::cluster::lengths::KnownLengths;
use crate::cluster::requests::Requests;
use crate::cluster::unread::Unread;
use crate::cluster::{Attempt, Cluster, Deadline, Job, MeasuredCosts, Tally, Worker};
use crate::ids::{AttemptId, TaskId, TaskKind, WorkerId};
use crate::numbers::Numbers;
use crate::preemption::{PreemptRequest, Primitive};
use crate::primitive_choice::Judged;
use crate::sorted::SortedMap;
use crate::states::WorkerState;
use crate::time::Time;

/// The cluster without its indices.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct ClusterImage {
    now: Time,
    events: u64,
    jobs: Vec<JobImage>,
    ended: Numbers,
    /// The ids of forgotten workers.
    #[serde(default)]
    gone: Numbers,
    /// The forgotten workers that left after a drain.
    #[serde(default)]
    left: Numbers,
    workers: Vec<Worker>,
    attempts: Vec<Attempt>,
    requests: Vec<PreemptRequest>,
    /// The deadlines of open requests; they depend on the settings and cannot be recomputed.
    graces: Vec<(Time, AttemptId)>,
    tally: Tally,
    #[serde(default)]
    costs: ByKind<MeasuredCosts>,
    #[serde(default)]
    judged: BTreeMap<Primitive, Judged>,
    lengths: KnownLengths,
    #[serde(default)]
    unread: Unread,
}

impl ClusterImage {
    /// Copies the primary data of a cluster.
    pub(crate) fn new(cluster: &Cluster) -> ClusterImage {
        let (gone, left) = cluster.departures.numbers();
        ClusterImage {
            now: cluster.now,
            events: cluster.events,
            jobs: cluster.jobs.values().map(JobImage::new).collect(),
            ended: cluster.ended.clone(),
            gone,
            left,
            workers: cluster.workers.values().map(Worker::image).collect(),
            attempts: cluster.attempts.values().cloned().collect(),
            requests: cluster.requests.iter().cloned().collect(),
            graces: cluster.graces().collect(),
            tally: cluster.tally,
            costs: *cluster.costs.measured(),
            judged: cluster.costs.judged().clone(),
            lengths: cluster.lengths.clone(),
            unread: cluster.unread.clone(),
        }
    }
}

impl Cluster {
    fn graces(&self) -> impl Iterator<Item = (Time, AttemptId)> + '_ {
        self.deadlines
            .iter()
            .filter_map(|(due, deadline)| match deadline {
                Deadline::Grace(attempt) => Some((due, attempt)),
                Deadline::Earliest(_)
                | Deadline::Overdue(_)
                | Deadline::Reservation(_)
                | Deadline::Excluded(_)
                | Deadline::AvoidanceOver(_)
                | Deadline::Drained(_) => None,
            })
    }

    /// Restores the cluster; fails if the image is inconsistent.
    pub fn from_image(image: ClusterImage) -> Result<Cluster, String> {
        let mut cluster = Cluster {
            now: image.now,
            events: image.events,
            jobs: keyed(image.jobs.into_iter().map(Job::from_image), |job| job.id)?
                .into_iter()
                .collect(),
            ended: image.ended,
            departures: Departures::restore(image.gone, image.left),
            tally: image.tally,
            costs: Costs::new(image.costs, image.judged),
            lengths: image.lengths,
            unread: image.unread,
            requests: Requests::restore(image.requests)?,
            ..Cluster::default()
        };
        let mut reserved = Vec::new();
        for mut worker in image.workers {
            let id = worker.id();
            let reservations = worker.set_reservations(Vec::new());
            reserved.extend(reservations.into_iter().map(|one| (id, one)));
            if cluster.workers.insert(id, worker).is_some() {
                return Err(format!("{id} occurs twice"));
            }
        }
        image
            .attempts
            .into_iter()
            .try_for_each(|attempt| cluster.enter(attempt))?;
        cluster.workers.values().try_for_each(Worker::has_room)?;
        for (worker, reservation) in reserved {
            if !cluster.jobs.contains_key(&reservation.job) {
                return Err(format!(
                    "{worker}: a slot is reserved for the unknown job {}",
                    reservation.job
                ));
            }
            cluster.reserve(worker, reservation);
        }
        for (due, attempt) in image.graces {
            cluster.deadlines.set(due, Deadline::Grace(attempt));
        }
        cluster.check_references()?;
        cluster.list_everything();
        cluster.find_avoided();
        Ok(cluster)
    }

    /// Adds a live attempt to its worker and job.
    fn enter(&mut self, attempt: Attempt) -> Result<(), String> {
        let id = attempt.id;
        let kind = attempt.id.task.kind;
        let worker = self.workers.get_mut(&attempt.worker);
        let worker =
            worker.ok_or_else(|| format!("{id} runs on the unknown worker {}", attempt.worker))?;
        let job = self
            .jobs
            .get_mut(&id.task.job)
            .ok_or_else(|| format!("{id} has no job"))?;
        if job.task(id.task).is_none() {
            return Err(format!("{id} has no task"));
        }
        worker.enter(id);
        if attempt.state.is_stopped() {
            worker.restore_stopped();
        }
        if attempt.holds_slot {
            self.slots.restore_held(worker, kind);
            job.slots.occupy(kind);
        }
        job.live.insert(id);
        match self.attempts.insert(id, attempt) {
            Some(_) => Err(format!("{id} occurs twice")),
            None => {
                self.relist(id);
                Ok(())
            }
        }
    }

    /// Checks that every reference to a worker or an attempt is valid.
    fn check_references(&self) -> Result<(), String> {
        for job in self.jobs.values() {
            let is_nowhere =
                |on: &WorkerId| *on != WorkerId::STORAGE && !self.workers.contains_key(on);
            if let Some((worker, _)) = job.outputs.held().iter().find(|(on, _)| is_nowhere(on)) {
                return Err(format!(
                    "{} has outputs on the unknown worker {worker}",
                    job.id
                ));
            }
            let unknown = |attempt: &&AttemptId| !job.live.contains(attempt);
            if let Some(attempt) = job.awaiting_inputs.iter().find(unknown) {
                return Err(format!("{attempt} awaits inputs, but is not live"));
            }
        }
        match self
            .requests
            .iter()
            .find(|request| !self.attempts.contains_key(&request.attempt))
        {
            Some(PreemptRequest { attempt, .. }) => Err(format!(
                "{attempt} has a preemption request, but is not live"
            )),
            None => Ok(()),
        }
    }

    fn list_everything(&mut self) {
        for id in self.workers.keys() {
            match self.workers[&id].state() {
                WorkerState::Draining => self.departures.drain(id),
                WorkerState::Lost if !self.workers[&id].has_left() => self.departures.lose(id),
                WorkerState::Unknown | WorkerState::Up | WorkerState::Lost => {}
            }
            if let Some(until) = self.workers[&id].excluded_until() {
                self.quarantine.exclude(id, until);
                self.deadlines.set(until, Deadline::Excluded(id));
            }
            // A time that has passed was already handled.
            if let Some(until) = self.workers[&id]
                .saves_until()
                .filter(|until| *until > self.now)
            {
                self.deadlines.set(until, Deadline::Drained(id));
            }
            if self.workers[&id].is_cleared() {
                self.quarantine.clear(Some(id));
            }
            self.list_worker(id);
        }
        for job in self.jobs.values() {
            for kind in TaskKind::ALL {
                for &index in &job.phases[kind].isolated {
                    self.quarantine.isolate(TaskId {
                        job: job.id,
                        kind,
                        index,
                    });
                }
                for end in job.phases[kind].avoidance_ends() {
                    self.deadlines.set(end, Deadline::AvoidanceOver(job.id));
                }
            }
        }
        let requests: Vec<PreemptRequest> = self.requests.iter().cloned().collect();
        for request in &requests {
            self.list_request(request, true);
            if let Some(earliest) = request.earliest.filter(|at| *at > self.now) {
                self.deadlines
                    .set(earliest, Deadline::Earliest(request.attempt));
            }
            if let Some(overdue) = request.overdue().filter(|at| *at > self.now) {
                self.deadlines
                    .set(overdue, Deadline::Overdue(request.attempt));
            }
        }
        self.find_racks();
        for job in self.jobs.keys() {
            self.refresh(job);
        }
    }
}

/// Creates a map of values by their own key; fails on duplicates.
fn keyed<K: Ord + Copy + std::fmt::Display, V>(
    all: impl Iterator<Item = Result<V, String>>,
    key: impl Fn(&V) -> K,
) -> Result<SortedMap<K, V>, String> {
    let mut map = SortedMap::new();
    for one in all {
        let one = one?;
        let id = key(&one);
        if map.insert(id, one).is_some() {
            return Err(format!("{id} occurs twice"));
        }
    }
    Ok(map)
}
