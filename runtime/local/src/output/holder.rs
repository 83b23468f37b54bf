//! Liveness of a claim's holder.

use std::io;

use napreduce_protocol::ClaimToken;

use crate::process::{Life, ProcessIdentity};
use crate::world::Process;

/// Marks a claim as held by this process until it is dropped.
#[derive(Debug)]
pub(super) struct Holding {
    process: Process,
    token: ClaimToken,
}

impl Holding {
    pub(super) fn new(process: &Process, token: ClaimToken) -> Holding {
        process.hold(token);
        Holding {
            process: process.clone(),
            token,
        }
    }
}

impl Drop for Holding {
    fn drop(&mut self) {
        self.process.release(self.token);
    }
}

/// Returns whether `holder` still has the claim `token`. This process may be alive and have released it.
pub(super) fn life_of(
    process: &Process,
    holder: &ProcessIdentity,
    token: ClaimToken,
) -> io::Result<Life> {
    let life = process.life_of(holder)?;
    if life == Life::Alive && process.is(holder) && !process.holds(token) {
        return Ok(Life::Dead);
    }
    Ok(life)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::world::{Node, World};

    #[test]
    fn this_process_holds_what_it_has_not_given_back() {
        let token = ClaimToken::from(7);
        let process = World::real().process;
        let own = process.identity().expect("an identity");
        let life = || life_of(&process, &own, token).expect("a life");
        assert_eq!(life(), Life::Dead);
        let held = Holding::new(&process, token);
        assert_eq!(life(), Life::Alive);
        drop(held);
        assert_eq!(life(), Life::Dead);
    }

    #[tokio::test]
    async fn processes_of_simulation_hold_their_own_claims() {
        let token = ClaimToken::from(7);
        let first = Node::new("a", 1, 0).world().process;
        let second = Node::new("a", 2, 0).world().process;
        let elsewhere = Node::new("b", 3, 0).world().process;
        let own = first.identity().expect("an identity");
        let _held = Holding::new(&first, token);
        let life = |process| life_of(process, &own, token).expect("a life");
        assert_eq!(life(&first), Life::Alive);
        assert_eq!(life(&second), Life::Dead, "it runs where the first one ran");
        assert_eq!(life(&elsewhere), Life::Unknown);
        assert!(!second.holds(token));
    }
}
