//! A wrapper that checks a policy's requests and calls: every request has a beneficiary with demand other
//! than the victim's job, requests do not change, and calls per event are bounded by the number of slots.

use std::collections::{BTreeMap, BTreeSet};

use napreduce_engine::{
    Actions, AttemptId, ClusterView, Event, JobId, Primitive, Requester, Scheduler, TaskKind, Time,
};

pub struct Watched {
    policy: Box<dyn Scheduler>,
    name: &'static str,
    /// Open requests as first observed.
    requests: BTreeMap<AttemptId, (Primitive, Time)>,
    /// Jobs with demand per kind at the last call, and those that arrived since.
    wanting: [BTreeSet<JobId>; 2],
    calls: u32,
}

impl Watched {
    pub fn new(policy: Box<dyn Scheduler>, name: &'static str) -> Watched {
        Watched {
            policy,
            name,
            requests: BTreeMap::new(),
            wanting: [BTreeSet::new(), BTreeSet::new()],
            calls: 0,
        }
    }

    /// Checks open requests, including new ones.
    fn look(&mut self, view: &ClusterView<'_>) {
        let mut open = BTreeMap::new();
        for request in view
            .requests()
            .filter(|request| request.by == Requester::Policy)
        {
            let victim = request.attempt.task;
            let kept = (request.primitive, request.created);
            assert_ne!(
                request.beneficiary,
                Some(victim.job),
                "{}: {victim} gives to its own job",
                self.name
            );
            match self.requests.get(&request.attempt) {
                Some(before) if before.1 == request.created => {
                    assert_eq!(
                        *before, kept,
                        "{}: a request for {victim} became another one",
                        self.name
                    );
                }
                _ => {
                    let wanting = &self.wanting[(victim.kind == TaskKind::Reduce) as usize];
                    let others = wanting.iter().any(|job| *job != victim.job);
                    let reason = &request.reason;
                    assert!(
                        others,
                        "{}: {victim} is preempted for no job: {reason}",
                        self.name
                    );
                }
            }
            open.insert(request.attempt, kept);
        }
        self.requests = open;
    }

    fn note_wanting(&mut self, view: &ClusterView<'_>) {
        for kind in TaskKind::ALL {
            // With shared slots a map can use the slot of a reduce.
            let used_by = |other: &TaskKind| view.shares_slots() || *other == kind;
            let wanting = TaskKind::ALL
                .into_iter()
                .filter(used_by)
                .flat_map(|kind| view.wanting(kind));
            self.wanting[(kind == TaskKind::Reduce) as usize] =
                wanting.map(|job| job.id()).collect();
        }
    }
}

impl Scheduler for Watched {
    fn on_event(&mut self, now: Time, event: &Event, view: &ClusterView<'_>) {
        self.look(view);
        self.calls = 0;
        self.policy.on_event(now, event, view);
    }

    fn job_changed(&mut self, now: Time, job: JobId, view: &ClusterView<'_>) {
        self.policy.job_changed(now, job, view);
    }

    fn schedule(&mut self, now: Time, view: &ClusterView<'_>, actions: &mut Actions) {
        self.look(view);
        self.note_wanting(view);
        self.calls += 1;
        let slots: u32 = TaskKind::ALL.into_iter().map(|kind| view.slots(kind)).sum();
        let most = 2 * slots + 1 + view.workers().count() as u32;
        assert!(
            self.calls <= most,
            "{}: asked {} times for one event",
            self.name,
            self.calls
        );
        self.policy.schedule(now, view, actions);
    }

    fn next_wakeup(&self, now: Time) -> Option<Time> {
        self.policy.next_wakeup(now)
    }
}
