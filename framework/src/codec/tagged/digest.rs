//! Digests of encodings that do not depend on the order of maps and sequences: those of `HashMap` and `HashSet` have
//! another order in each process.

use xxhash_rust::xxh3::xxh3_64;

use super::error::TaggedError;
use super::read::Reader;
use super::tags;

/// Returns the digest of the value at the front. References to names count as the names.
pub(super) fn digest(reader: &mut Reader<'_>) -> Result<u64, TaggedError> {
    let scalar = reader.clone();
    let tag = reader.take_tag()?;
    match tag {
        tags::SOME => {
            let inner = digest(reader)?;
            Ok(mix(tag, &[inner]))
        }
        tags::UNIT_VARIANT => {
            let name = name_digest(reader)?.unwrap_or(0);
            Ok(mix(tag, &[name]))
        }
        tags::VARIANT => {
            let name = name_digest(reader)?.unwrap_or(0);
            let inner = digest(reader)?;
            Ok(mix(tag, &[name, inner]))
        }
        tags::SEQ => {
            reader.take_varint()?;
            let mut sum = 0u64;
            let mut items = 0;
            while !reader.is_at_end() {
                sum = sum.wrapping_add(digest(reader)?);
                items += 1;
            }
            reader.take_tag()?;
            Ok(mix(tag, &[sum, items]))
        }
        tags::MAP => {
            reader.take_varint()?;
            let mut sum = 0u64;
            let mut entries = 0;
            while !reader.is_at_end() {
                let key = digest(reader)?;
                let value = digest(reader)?;
                sum = sum.wrapping_add(mix(tag, &[key, value]));
                entries += 1;
            }
            reader.take_tag()?;
            Ok(mix(tag, &[sum, entries]))
        }
        tags::TUPLE => {
            let mut items = Vec::new();
            while !reader.is_at_end() {
                items.push(digest(reader)?);
            }
            reader.take_tag()?;
            Ok(mix(tag, &items))
        }
        tags::STRUCT => {
            let mut fields = Vec::new();
            while let Some(name) = name_digest(reader)? {
                fields.push(name);
                fields.push(digest(reader)?);
            }
            Ok(mix(tag, &fields))
        }
        _ => {
            *reader = scalar;
            Ok(xxh3_64(reader.take_scalar()?))
        }
    }
}

fn name_digest(reader: &mut Reader<'_>) -> Result<Option<u64>, TaggedError> {
    let name = reader.take_name()?;
    Ok(name.map(|name| xxh3_64(name.as_bytes())))
}

fn mix(tag: u8, parts: &[u64]) -> u64 {
    let mut bytes = Vec::with_capacity(1 + 8 * parts.len());
    bytes.push(tag);
    for part in parts {
        bytes.extend_from_slice(&part.to_le_bytes());
    }
    xxh3_64(&bytes)
}
