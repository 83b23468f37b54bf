//! Serializes a map as a list of pairs, because the keys of a JSON object are strings.

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::sorted::SortedMap;

pub(crate) fn serialize<K: Serialize, V: Serialize, S: Serializer>(
    map: &SortedMap<K, V>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(map)
}

pub(crate) fn deserialize<'de, K, V, D>(deserializer: D) -> Result<SortedMap<K, V>, D::Error>
where
    K: Deserialize<'de> + Ord,
    V: Deserialize<'de>,
    D: Deserializer<'de>,
{
    let pairs: Vec<(K, V)> = Vec::deserialize(deserializer)?;
    Ok(pairs.into_iter().collect())
}
