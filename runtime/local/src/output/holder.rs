//! Liveness of a claim's holder.

use std::collections::BTreeSet;
use std::io;
use std::sync::Mutex;

use napreduce_protocol::{ClaimToken, lock};

use crate::process::{Life, ProcessIdentity};

/// The claims that this process holds.
static HELD: Mutex<BTreeSet<ClaimToken>> = Mutex::new(BTreeSet::new());

/// Marks a claim as held by this process until it is dropped.
#[derive(Debug)]
pub(super) struct Holding(ClaimToken);

impl Holding {
    pub(super) fn new(token: ClaimToken) -> Holding {
        lock(&HELD).insert(token);
        Holding(token)
    }
}

impl Drop for Holding {
    fn drop(&mut self) {
        lock(&HELD).remove(&self.0);
    }
}

/// Returns whether `holder` still has the claim `token`. This process may be alive and have released it.
pub(super) fn life_of(holder: &ProcessIdentity, token: ClaimToken) -> io::Result<Life> {
    let given_back = || !lock(&HELD).contains(&token);
    Ok(match holder.life()? {
        Life::Alive if holder.is_this() && given_back() => Life::Dead,
        life => life,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_holds_what_it_has_not_given_back() {
        let token = ClaimToken::from(7);
        let own = ProcessIdentity::this().expect("an identity");
        let life = || life_of(&own, token).expect("a life");
        assert_eq!(life(), Life::Dead);
        let held = Holding::new(token);
        assert_eq!(life(), Life::Alive);
        drop(held);
        assert_eq!(life(), Life::Dead);
    }
}
