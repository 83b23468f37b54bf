//! State across rounds: containers with a pending preemption request, and when it was made.

use napreduce_engine::{SortedMap, Span, Time};

/// The action for a container that a round chose.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RoundOutcome<K> {
    /// Request preemption.
    Request(K),
    /// Kill it: the grace period of its request is over.
    Kill(K),
}

/// Containers with a pending preemption request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rounds<K> {
    observe_only: bool,
    requests: SortedMap<K, Request>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Request {
    since: Time,
    wait: Span,
}

impl<K: Ord + Copy> Rounds<K> {
    /// With `observe_only`, no request is ever made.
    pub fn new(observe_only: bool) -> Rounds<K> {
        Rounds {
            observe_only,
            requests: SortedMap::new(),
        }
    }

    /// Returns the actions for the containers that a round chose, each with its grace period. A container
    /// with a pending request is killed when it is chosen again after its grace period. A request that is not
    /// confirmed for twice its grace period is dropped.
    pub fn act(
        &mut self,
        now: Time,
        chosen: impl IntoIterator<Item = (K, Span)>,
    ) -> Vec<RoundOutcome<K>> {
        let mut orders = Vec::new();
        if self.observe_only {
            return orders;
        }
        for (container, wait) in chosen {
            match self.requests.get(&container) {
                None => {
                    self.requests
                        .insert(container, Request { since: now, wait });
                    orders.push(RoundOutcome::Request(container));
                }
                Some(request) if request.since + wait <= now => {
                    self.requests.remove(&container);
                    orders.push(RoundOutcome::Kill(container));
                }
                Some(_) => {}
            }
        }
        self.requests
            .retain(|_, request| request.since + Span(request.wait.0.saturating_mul(2)) >= now);
        orders
    }

    /// Returns the pending requests with their time and grace period.
    pub fn requested(&self) -> impl Iterator<Item = (K, Time, Span)> + '_ {
        self.requests
            .iter()
            .map(|(&container, request)| (container, request.since, request.wait))
    }

    /// Restores a pending request.
    pub fn restore(&mut self, container: K, since: Time, wait: Span) {
        self.requests.insert(container, Request { since, wait });
    }

    /// Drops the request of a container that ended or may stay.
    pub fn forget(&mut self, container: K) {
        self.requests.remove(&container);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WAIT: Span = Span::from_secs(10);

    fn at(seconds: u64) -> Time {
        Time(seconds * 1_000_000)
    }

    #[test]
    fn container_is_requested_once_and_killed_after_grace() {
        let mut rounds = Rounds::new(false);
        assert_eq!(rounds.act(at(0), [(7, WAIT)]), [RoundOutcome::Request(7)]);
        assert_eq!(rounds.act(at(9), [(7, WAIT)]), []);
        assert_eq!(rounds.act(at(10), [(7, WAIT)]), [RoundOutcome::Kill(7)]);
        assert_eq!(
            rounds.act(at(11), [(7, WAIT)]),
            [RoundOutcome::Request(7)],
            "a kill drops the request"
        );
    }

    #[test]
    fn unconfirmed_request_expires_after_twice_grace() {
        let mut rounds = Rounds::new(false);
        rounds.act(at(0), [(7, WAIT)]);
        rounds.act(at(20), []);
        assert_eq!(rounds.requested().collect::<Vec<_>>(), [(7, at(0), WAIT)]);
        rounds.act(at(21), []);
        assert_eq!(rounds.requested().count(), 0);
        assert_eq!(rounds.act(at(22), [(7, WAIT)]), [RoundOutcome::Request(7)]);
    }

    #[test]
    fn observe_only_requests_nothing() {
        let mut rounds = Rounds::new(true);
        assert_eq!(rounds.act(at(0), [(7, WAIT)]), []);
        assert_eq!(rounds.requested().count(), 0);
    }
}
