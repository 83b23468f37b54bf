//! Keys of a queue that say who may use it: refused, with a sentence, while a cluster knows no users.
//!
//! Owns the refusal: a list that is read and not kept to would be worse than none. Does not own which keys
//! those are (each configuration names its own).

use serde::de::{Deserialize, Deserializer, Error};

/// A key that no configuration may have yet.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct NoAccessList;

impl<'de> Deserialize<'de> for NoAccessList {
    fn deserialize<D: Deserializer<'de>>(_: D) -> Result<NoAccessList, D::Error> {
        Err(D::Error::custom(
            "access control lists are not kept to yet: a cluster has no users, so whoever has its secret may \
             submit to every queue; leave the key out",
        ))
    }
}
