//! The largest groups of a reduce task. Groups arrive whole, so their counts are exact; the space-saving sketch of
//! Metwally et al. (2005) is for streams in which keys alternate. A group costs one comparison.

/// A smaller group does not make a task slow.
const RECORDS_MIN: u64 = 10_000;
const GROUPS_MAX: usize = 16;

/// The keys of the largest groups, with their records.
#[derive(Debug, Default)]
pub(crate) struct LargestGroups {
    groups: Vec<(Vec<u8>, u64)>,
}

impl LargestGroups {
    #[inline]
    pub(crate) fn add(&mut self, key: &[u8], records: u64) {
        if records >= RECORDS_MIN {
            self.insert(key, records);
        }
    }

    #[cold]
    fn insert(&mut self, key: &[u8], records: u64) {
        if self.groups.len() < GROUPS_MAX {
            self.groups.push((key.to_vec(), records));
            return;
        }
        let least = self.groups.iter_mut().min_by_key(|(_, records)| *records);
        if let Some(least) = least.filter(|(_, known)| *known < records) {
            *least = (key.to_vec(), records);
        }
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&[u8], u64)> {
        self.groups
            .iter()
            .map(|(key, records)| (key.as_slice(), *records))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn largest_groups_remain() {
        let mut largest = LargestGroups::default();
        for number in 0..100_u64 {
            largest.add(
                &number.to_be_bytes(),
                RECORDS_MIN - 40 + (number * 37) % 100,
            );
        }
        let mut records: Vec<u64> = largest
            .iter()
            .map(|(_, records)| records - RECORDS_MIN)
            .collect();
        records.sort_unstable();
        assert_eq!(records, (44..60).collect::<Vec<u64>>());
    }
}
