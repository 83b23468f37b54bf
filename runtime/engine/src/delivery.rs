//! Exactly-once, in-order delivery across connections that break and processes that restart. It numbers the
//! messages of one direction between two parties: the sender counts from 1 and keeps unacknowledged messages;
//! the receiver accepts each number once. The receiver chooses when to acknowledge, for example after
//! journaling a message.
//!
//! ```text
//!   sender                                     receiver
//!   Outbox::push(m) -> 7    -- 7: m ------->   Inbox::accept(7) -> Fresh: carry it out
//!                           -- 7: m ------->   Inbox::accept(7) -> Duplicate: drop it
//!                           -- 9: o ------->   Inbox::accept(9) -> Gap: drop it, end the connection
//!   Outbox::acknowledge(7) <-- received 7 --   Inbox::received()
//!   after a reconnect: the receiver reports what it received; acknowledge that, and send the rest again
//! ```

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

/// The sender's side: unacknowledged messages, and the number of the next one.
///
/// ```
/// use napreduce_engine::delivery::{Receipt, Inbox, Outbox};
///
/// let mut outbox = Outbox::default();
/// let mut inbox = Inbox::default();
/// outbox.push("launch");
/// outbox.push("kill");
/// assert_eq!(inbox.accept(1), Receipt::Fresh);
/// // The connection breaks here; the new one begins with what was received.
/// outbox.acknowledge(inbox.received())?;
/// let again: Vec<_> = outbox.unacknowledged().collect();
/// assert_eq!(again, [(2, &"kill")]);
/// # Ok::<(), napreduce_engine::delivery::NeverSent>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Outbox<M> {
    acknowledged: u64,
    /// The number of the first one follows `acknowledged`.
    kept: VecDeque<M>,
}

/// The receiver's side: the number of the last accepted message.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Inbox {
    received: u64,
}

/// The classification of a message by its number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Receipt {
    /// The next message: process it.
    Fresh,
    /// Accepted before: drop it.
    Duplicate,
    /// An earlier message is missing: drop this one and have the sender restart after `received`.
    Gap,
}

/// The receiver acknowledges messages that were never sent; its state belongs to an earlier sender.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "acknowledgement of message {through}, but only {sent} were sent; the peer has the state of another \
     sender"
)]
pub struct NeverSent {
    /// The acknowledged number.
    pub through: u64,
    /// How many were sent.
    pub sent: u64,
}

impl<M> Default for Outbox<M> {
    fn default() -> Outbox<M> {
        Outbox {
            acknowledged: 0,
            kept: VecDeque::new(),
        }
    }
}

impl<M> Outbox<M> {
    /// Keeps a message until it is acknowledged, and returns its number.
    pub fn push(&mut self, message: M) -> u64 {
        self.kept.push_back(message);
        self.sent()
    }

    /// Drops messages up to this number, which the receiver has. An outdated acknowledgement has no effect.
    ///
    /// # Errors
    /// Fails if no message has that number yet; then nothing is dropped.
    pub fn acknowledge(&mut self, through: u64) -> Result<(), NeverSent> {
        let sent = self.sent();
        if through > sent {
            return Err(NeverSent { through, sent });
        }
        while self.acknowledged < through {
            self.kept.pop_front();
            self.acknowledged += 1;
        }
        Ok(())
    }

    /// Returns the unacknowledged messages with their numbers, in order.
    pub fn unacknowledged(&self) -> impl Iterator<Item = (u64, &M)> {
        self.unacknowledged_from(0)
    }

    /// Returns the unacknowledged messages from this number on, in order: those left to send when the earlier
    /// ones were already written to the connection.
    pub fn unacknowledged_from(&self, number: u64) -> impl Iterator<Item = (u64, &M)> {
        let first = self.acknowledged + 1;
        let skipped = usize::try_from(number.saturating_sub(first)).unwrap_or(usize::MAX);
        (first..).zip(&self.kept).skip(skipped)
    }

    /// Returns how many messages were pushed; the number of the last one.
    pub fn sent(&self) -> u64 {
        self.acknowledged + self.kept.len() as u64
    }

    /// Returns the number of the next message.
    pub fn next_number(&self) -> u64 {
        self.sent() + 1
    }

    /// Returns the number up to which the receiver has everything.
    pub fn acknowledged(&self) -> u64 {
        self.acknowledged
    }

    /// Returns whether every message is acknowledged.
    pub fn is_empty(&self) -> bool {
        self.kept.is_empty()
    }

    /// Returns how many messages are unacknowledged.
    pub fn len(&self) -> usize {
        self.kept.len()
    }
}

impl Inbox {
    /// Accepts a message by its number, or returns why it must be dropped.
    pub fn accept(&mut self, number: u64) -> Receipt {
        if number <= self.received {
            Receipt::Duplicate
        } else if number == self.received + 1 {
            self.received = number;
            Receipt::Fresh
        } else {
            Receipt::Gap
        }
    }

    /// Returns the number up to which everything was accepted; zero before the first message.
    pub fn received(&self) -> u64 {
        self.received
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filled(count: u64) -> Outbox<u64> {
        let mut outbox = Outbox::default();
        for number in 1..=count {
            assert_eq!(outbox.next_number(), number);
            assert_eq!(outbox.push(number * 10), number);
        }
        outbox
    }

    fn numbers(outbox: &Outbox<u64>, from: u64) -> Vec<u64> {
        let kept = outbox.unacknowledged_from(from);
        kept.inspect(|(number, message)| assert_eq!(**message, number * 10))
            .map(|(number, _)| number)
            .collect()
    }

    #[test]
    fn acknowledged_messages_are_forgotten() {
        let mut outbox = filled(4);
        assert_eq!(outbox.acknowledge(3), Ok(()));
        assert_eq!(
            (outbox.len(), outbox.acknowledged(), outbox.sent()),
            (1, 3, 4)
        );
        assert_eq!(numbers(&outbox, 0), [4]);
        assert_eq!(outbox.push(50), 5);
        assert_eq!(outbox.acknowledge(5), Ok(()));
        assert!(outbox.is_empty());
        assert_eq!(outbox.next_number(), 6);
    }

    #[test]
    fn old_acknowledgement_has_no_effect() {
        let mut outbox = filled(4);
        assert_eq!(outbox.acknowledge(3), Ok(()));
        assert_eq!(outbox.acknowledge(1), Ok(()));
        assert_eq!(numbers(&outbox, 0), [4]);
    }

    #[test]
    fn unsent_message_cannot_be_acknowledged() {
        let mut outbox = filled(2);
        let refused = outbox.acknowledge(3).expect_err("there is no message 3");
        assert_eq!(
            refused.to_string(),
            "acknowledgement of message 3, but only 2 were sent; the peer has the state of another sender"
        );
        assert_eq!(numbers(&outbox, 0), [1, 2]);
    }

    #[test]
    fn unacknowledged_messages_can_be_resent() {
        let mut outbox = filled(5);
        assert_eq!(outbox.acknowledge(2), Ok(()));
        assert_eq!(numbers(&outbox, 1), [3, 4, 5]);
        assert_eq!(numbers(&outbox, 4), [4, 5]);
        assert!(numbers(&outbox, 6).is_empty());
        assert!(numbers(&outbox, u64::MAX).is_empty());
    }

    #[test]
    fn each_number_is_accepted_once_in_order() {
        let mut inbox = Inbox::default();
        assert_eq!(inbox.accept(0), Receipt::Duplicate);
        assert_eq!(inbox.accept(2), Receipt::Gap);
        assert_eq!(inbox.accept(1), Receipt::Fresh);
        assert_eq!(inbox.accept(1), Receipt::Duplicate);
        assert_eq!(inbox.accept(2), Receipt::Fresh);
        assert_eq!(inbox.accept(u64::MAX), Receipt::Gap);
        assert_eq!(inbox.received(), 2);
    }

    #[test]
    fn both_sides_survive_serialization() {
        let mut outbox = filled(3);
        assert_eq!(outbox.acknowledge(1), Ok(()));
        let text = serde_json::to_string(&outbox).expect("plain data");
        assert_eq!(
            serde_json::from_str::<Outbox<u64>>(&text).expect("what was written"),
            outbox
        );
        let mut inbox = Inbox::default();
        inbox.accept(1);
        let text = serde_json::to_string(&inbox).expect("plain data");
        assert_eq!(
            serde_json::from_str::<Inbox>(&text).expect("what was written"),
            inbox
        );
    }
}
