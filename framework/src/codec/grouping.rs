//! Groups by the first fields of a key: the length of such a prefix and its decoding.

use super::{DecodeError, Key, Scratch};

/// A key that begins with the fields of `G`, so that `G` can make the groups of a reduce while the whole key
/// orders the values in a group (a secondary sort).
///
/// A tuple can be grouped by its first field or by a tuple of its first fields, a derived struct likewise.
///
/// ```
/// use napreduce::codec::{GroupBy, Scratch};
/// use napreduce::Value;
///
/// type Visit = (String, u64);
///
/// let mut key = Vec::new();
/// Visit::encode(("ann", 1_700_000_000), true, &mut key);
///
/// let length = <Visit as GroupBy<String>>::prefix_length(&key);
/// let scratch = Scratch::new();
/// assert_eq!(<Visit as GroupBy<String>>::decode_group(&key[..length], &scratch)?, "ann");
/// # Ok::<(), napreduce::codec::DecodeError>(())
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not begin with the fields of `{G}`, so it cannot be grouped by them",
    label = "not a prefix of the key",
    note = "group `(A, B, C)` by `A` or by `(A, B)`"
)]
pub trait GroupBy<G: Key>: Key {
    /// Returns the length in bytes of the prefix of the encoded key that defines its group. Bytes that are
    /// not an encoding of this key are a separate group.
    #[inline]
    fn prefix_length(encoded: &[u8]) -> usize {
        G::skip(encoded, false).unwrap_or(encoded.len())
    }

    /// Decodes the group from the first [`prefix_length`](GroupBy::prefix_length) bytes of a key.
    #[inline]
    fn decode_group<'a>(prefix: &'a [u8], scratch: &'a Scratch) -> Result<G::Ref<'a>, DecodeError> {
        let mut rest = prefix;
        let group = G::decode(&mut rest, false, scratch)?;
        if rest.is_empty() {
            Ok(group)
        } else {
            Err(super::left_over(prefix, rest))
        }
    }
}

/// `$group` is a prefix of the tuple of `$field`s.
macro_rules! group_by {
    ($($group:ty: $($field:ident)*;)*) => {
        $(impl<$($field: Key),*> GroupBy<$group> for ($($field,)*) {})*
    };
}

group_by! {
    A: A B;
    A: A B C;
    A: A B C D;
    A: A B C D E;
    A: A B C D E F;
    (A, B): A B C;
    (A, B): A B C D;
    (A, B): A B C D E;
    (A, B): A B C D E F;
    (A, B, C): A B C D;
    (A, B, C): A B C D E;
    (A, B, C): A B C D E F;
    (A, B, C, D): A B C D E;
    (A, B, C, D): A B C D E F;
    (A, B, C, D, E): A B C D E F;
}
