//! A set of consecutively assigned numbers, kept as ranges. It records the ids of ended jobs and lost
//! workers; a million of them take only a few ranges.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Ranges that neither touch nor overlap.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Vec<Written>", into = "Vec<Written>")]
pub(crate) struct Numbers {
    /// The last number of each range by its first.
    ranges: BTreeMap<u32, u32>,
}

/// A range in a snapshot; earlier programs wrote each number.
#[derive(Debug, Serialize, Deserialize)]
#[serde(untagged)]
enum Written {
    One(u32),
    Range(u32, u32),
}

impl Numbers {
    pub fn contains(&self, number: u32) -> bool {
        self.ranges
            .range(..=number)
            .next_back()
            .is_some_and(|(_, last)| number <= *last)
    }

    pub fn insert(&mut self, number: u32) {
        if self.contains(number) {
            return;
        }
        let before = self
            .ranges
            .range(..number)
            .next_back()
            .filter(|(_, last)| **last + 1 == number);
        let first = before.map_or(number, |(first, _)| *first);
        let after = number
            .checked_add(1)
            .and_then(|next| self.ranges.remove(&next));
        self.ranges.insert(first, after.unwrap_or(number));
    }
}

impl TryFrom<Vec<Written>> for Numbers {
    type Error = String;

    fn try_from(written: Vec<Written>) -> Result<Numbers, String> {
        let mut numbers = Numbers::default();
        for one in written {
            match one {
                Written::One(number) => numbers.insert(number),
                Written::Range(first, last) => {
                    let before = numbers.ranges.last_key_value().map(|(_, last)| *last);
                    if first > last || before.is_some_and(|before| before >= first) {
                        return Err(format!(
                            "range {first} to {last} is reversed or overlaps the one before it"
                        ));
                    }
                    numbers.insert(first);
                    if let Some(mut range) = numbers.ranges.last_entry() {
                        *range.get_mut() = last;
                    }
                }
            }
        }
        Ok(numbers)
    }
}

impl From<Numbers> for Vec<Written> {
    fn from(numbers: Numbers) -> Vec<Written> {
        numbers
            .ranges
            .into_iter()
            .map(|(first, last)| Written::Range(first, last))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use rand::{Rng, SeedableRng};
    use rand_pcg::Pcg64;

    use super::*;

    #[test]
    fn numbers_contain_inserted_in_any_order() {
        for seed in 0..200 {
            let mut random = Pcg64::seed_from_u64(seed);
            let mut numbers = Numbers::default();
            let mut each = BTreeSet::new();
            for _ in 0..random.random_range(0..60) {
                let number = [
                    random.random_range(0..40),
                    u32::MAX - random.random_range(0..4),
                ];
                let number = number[random.random_range(0..2)];
                numbers.insert(number);
                each.insert(number);
            }
            for number in (0..42).chain(u32::MAX - 5..=u32::MAX) {
                assert_eq!(
                    numbers.contains(number),
                    each.contains(&number),
                    "seed {seed}: {number}"
                );
            }
            let begins = |number: &&u32| {
                number
                    .checked_sub(1)
                    .is_none_or(|before| !each.contains(&before))
            };
            assert_eq!(
                numbers.ranges.len(),
                each.iter().filter(begins).count(),
                "seed {seed}"
            );
            let text = serde_json::to_string(&numbers).expect("JSON");
            assert_eq!(
                serde_json::from_str::<Numbers>(&text).expect("what was written"),
                numbers
            );
            let text = serde_json::to_string(&each).expect("JSON");
            assert_eq!(
                serde_json::from_str::<Numbers>(&text).expect("as earlier programs wrote"),
                numbers
            );
        }
    }

    #[test]
    fn unordered_ranges_are_rejected() {
        for text in ["[[3,2]]", "[[1,5],[5,9]]", "[[7,9],[1,2]]"] {
            let error = serde_json::from_str::<Numbers>(text)
                .expect_err(text)
                .to_string();
            assert!(
                error.contains("is reversed or overlaps the one before it"),
                "{text}: {error}"
            );
        }
    }
}
