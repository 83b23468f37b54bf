//! What one round remembers for the next: whom it asked to go, and since when.
//!
//! Owns asking once, waiting, killing and forgetting. Does not own who is chosen, nor how asking and killing
//! are done.

use std::collections::BTreeMap;

use napreduce_engine::{Span, Time};

/// What happens to a container that a round chose.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RoundOutcome<K> {
    /// It is asked to go.
    Ask(K),
    /// It was asked long enough ago: it goes now.
    Kill(K),
}

/// The containers that were asked to go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rounds<K> {
    observe_only: bool,
    asked: BTreeMap<K, Asked>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Asked {
    since: Time,
    wait: Span,
}

impl<K: Ord + Copy> Rounds<K> {
    /// Nobody was asked yet; and if it only observes, nobody ever is.
    pub fn new(observe_only: bool) -> Rounds<K> {
        Rounds { observe_only, asked: BTreeMap::new() }
    }

    /// Says what happens to those that a round chose, each with how long it may take to go by itself. One
    /// that is asked already is left alone until it is chosen again after its wait; then it is killed and
    /// forgotten. One that was not chosen for twice its wait is forgotten, too.
    pub fn act(&mut self, now: Time, chosen: impl IntoIterator<Item = (K, Span)>) -> Vec<RoundOutcome<K>> {
        let mut orders = Vec::new();
        if self.observe_only {
            return orders;
        }
        for (container, wait) in chosen {
            match self.asked.get(&container) {
                None => {
                    self.asked.insert(container, Asked { since: now, wait });
                    orders.push(RoundOutcome::Ask(container));
                }
                Some(asked) if asked.since + wait <= now => {
                    self.asked.remove(&container);
                    orders.push(RoundOutcome::Kill(container));
                }
                Some(_) => {}
            }
        }
        self.asked.retain(|_, asked| asked.since + Span(asked.wait.0.saturating_mul(2)) >= now);
        orders
    }

    /// Whom it asked, since when, and how long each may take to go by itself.
    pub fn asked(&self) -> impl Iterator<Item = (K, Time, Span)> + '_ {
        self.asked.iter().map(|(&container, asked)| (container, asked.since, asked.wait))
    }

    /// Somebody was asked before, by one that this one goes on for.
    pub fn remember(&mut self, container: K, since: Time, wait: Span) {
        self.asked.insert(container, Asked { since, wait });
    }

    /// One of them is gone, or need not go any more.
    pub fn forget(&mut self, container: K) {
        self.asked.remove(&container);
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
    fn the_chosen_is_asked_once_and_killed_when_chosen_again_after_its_wait() {
        let mut rounds = Rounds::new(false);
        assert_eq!(rounds.act(at(0), [(7, WAIT)]), [RoundOutcome::Ask(7)]);
        assert_eq!(rounds.act(at(9), [(7, WAIT)]), []);
        assert_eq!(rounds.act(at(10), [(7, WAIT)]), [RoundOutcome::Kill(7)]);
        assert_eq!(
            rounds.act(at(11), [(7, WAIT)]),
            [RoundOutcome::Ask(7)],
            "it was forgotten when it was killed"
        );
    }

    #[test]
    fn who_is_not_chosen_again_is_forgotten_after_twice_the_wait() {
        let mut rounds = Rounds::new(false);
        rounds.act(at(0), [(7, WAIT)]);
        rounds.act(at(20), []);
        assert_eq!(rounds.asked().collect::<Vec<_>>(), [(7, at(0), WAIT)]);
        rounds.act(at(21), []);
        assert_eq!(rounds.asked().count(), 0);
        assert_eq!(rounds.act(at(22), [(7, WAIT)]), [RoundOutcome::Ask(7)]);
    }

    #[test]
    fn an_observer_asks_nobody() {
        let mut rounds = Rounds::new(true);
        assert_eq!(rounds.act(at(0), [(7, WAIT)]), []);
        assert_eq!(rounds.asked().count(), 0);
    }
}
