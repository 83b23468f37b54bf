//! The events of one instant that are passed to the engine together, and their order: completions and
//! confirmations, failures, arrivals, timers, heartbeats; within a group by worker, job, task and attempt.

use std::collections::BTreeMap;

use napreduce_engine::{AttemptId, Event, Report, WorkerId};

/// The groups of simultaneous events, in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Group {
    Report,
    Failure,
    Joined,
    Arrival,
    Timer,
    Heartbeat,
}

/// The position of an event within its instant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Rank {
    group: Group,
    worker: u32,
    /// `None` if the events of the worker keep the order in which they came.
    attempt: Option<AttemptId>,
    sequence: u64,
}

/// An attempt's request to commit.
#[derive(Debug, Clone, Copy)]
pub(super) struct CommitRequest {
    pub rank: Rank,
    pub worker: WorkerId,
    pub attempt: AttemptId,
    pub place: u32,
}

/// The events of one instant that form one batch.
#[derive(Debug, Default)]
pub(super) struct Batch {
    events: Vec<Event>,
    /// Rank and position of each event.
    ranks: Vec<(Rank, usize)>,
    commit_requests: Vec<CommitRequest>,
    /// Number of ranks given so far.
    sequence: u64,
    /// Attempts that reported completion in this batch, and their work.
    completed: BTreeMap<AttemptId, u64>,
}

impl Batch {
    /// Adds an event that comes now. `worker` and `attempt` order it within its group.
    pub fn push(&mut self, group: Group, worker: u32, attempt: Option<AttemptId>, event: Event) {
        let rank = self.next_rank(group, worker, attempt);
        self.push_ranked(rank, event);
    }

    /// Returns the rank of an event that comes now.
    pub fn next_rank(&mut self, group: Group, worker: u32, attempt: Option<AttemptId>) -> Rank {
        self.sequence += 1;
        Rank {
            group,
            worker,
            attempt,
            sequence: self.sequence,
        }
    }

    /// Adds an event with an earlier rank.
    pub fn push_ranked(&mut self, rank: Rank, event: Event) {
        self.ranks.push((rank, self.events.len()));
        self.events.push(event);
    }

    /// Adds a request to commit.
    pub fn push_commit_request(&mut self, request: CommitRequest) {
        self.commit_requests.push(request);
    }

    pub fn is_empty(&self) -> bool {
        self.events.is_empty() && self.commit_requests.is_empty()
    }

    /// Removes and returns the requests to commit, in order.
    pub fn take_commit_requests(&mut self) -> CommitRequests {
        let mut requests = std::mem::take(&mut self.commit_requests);
        requests.sort_unstable_by_key(|request| request.rank);
        CommitRequests { requests, next: 0 }
    }

    /// Removes and returns the events of these requests, in order, and the earlier reports of their attempts:
    /// a heartbeat may carry both, and so does a task without work.
    pub fn take_events_of(&mut self, requests: &CommitRequests) -> Vec<Event> {
        let mut taken: Vec<(Rank, Event)> = Vec::with_capacity(requests.requests.len());
        let ranks_by_attempt = requests.ranks_by_attempt();
        let ranks = std::mem::take(&mut self.ranks);
        let events = std::mem::take(&mut self.events);
        for ((rank, _), event) in ranks.into_iter().zip(events) {
            if is_before_request(rank, &event, &ranks_by_attempt) {
                taken.push((rank, event));
            } else {
                self.push_ranked(rank, event);
            }
        }
        for request in &requests.requests {
            let event = Event::Reported {
                worker: request.worker,
                attempt: request.attempt,
                report: Report::CommitRequested,
            };
            taken.push((request.rank, event));
        }
        taken.sort_unstable_by_key(|(rank, _)| *rank);
        taken.into_iter().map(|(_, event)| event).collect()
    }

    /// Removes and returns all events in order.
    pub fn take_events(&mut self) -> Vec<Event> {
        let events = std::mem::take(&mut self.events);
        if self.ranks.is_sorted() {
            self.ranks.clear();
            return events;
        }
        self.ranks.sort_unstable();
        let mut events: Vec<Option<Event>> = events.into_iter().map(Some).collect();
        self.ranks
            .drain(..)
            .filter_map(|(_, position)| events[position].take())
            .collect()
    }

    /// Records that an attempt reported completion, with its work.
    pub fn complete(&mut self, attempt: AttemptId, work: u64) {
        self.completed.insert(attempt, work);
    }

    /// Returns the work of an attempt that reported completion in this batch and completes its task.
    pub fn take_completed(&mut self, attempt: AttemptId) -> u64 {
        self.completed
            .remove(&attempt)
            .expect("the completing attempt reported in this batch")
    }

    /// Ends a batch that the engine has handled, and takes back the buffer that [`Batch::take_events`]
    /// returned.
    pub fn end(&mut self, mut events: Vec<Event>) {
        if self.events.is_empty() {
            events.clear();
            self.events = events;
        }
        // Attempts that have just committed are reported in the next batch of this instant.
        if self.is_empty() {
            self.completed.clear();
        }
    }
}

/// Whether an event is a report of an attempt that requests a commit after it. `requests` is sorted.
fn is_before_request(rank: Rank, event: &Event, requests: &[(AttemptId, Rank)]) -> bool {
    let Event::Reported { attempt, .. } = event else {
        return false;
    };
    let found = requests.binary_search_by_key(attempt, |(requester, _)| *requester);
    match found {
        Ok(position) => rank < requests[position].1,
        Err(_) => false,
    }
}

/// Requests to commit that are being granted, in order of their ranks.
#[derive(Debug)]
pub(super) struct CommitRequests {
    requests: Vec<CommitRequest>,
    /// The position behind the request that was found last.
    next: usize,
}

impl CommitRequests {
    pub fn is_empty(&self) -> bool {
        self.requests.is_empty()
    }

    /// Returns the attempts with the ranks of their requests, by attempt.
    fn ranks_by_attempt(&self) -> Vec<(AttemptId, Rank)> {
        let mut ranks: Vec<(AttemptId, Rank)> = self
            .requests
            .iter()
            .map(|request| (request.attempt, request.rank))
            .collect();
        ranks.sort_unstable();
        ranks
    }

    /// Finds the request of an attempt. The engine grants requests roughly in order, so the search starts
    /// after the last match.
    pub fn find(&mut self, attempt: AttemptId) -> Option<CommitRequest> {
        let is_wanted = |request: &CommitRequest| request.attempt == attempt;
        let next = self.next.min(self.requests.len());
        let behind = self.requests[next..].iter().position(is_wanted);
        let position = match behind {
            Some(distance) => next + distance,
            None => self.requests[..next].iter().position(is_wanted)?,
        };
        self.next = position + 1;
        self.requests.get(position).copied()
    }
}
