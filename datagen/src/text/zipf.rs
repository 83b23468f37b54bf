//! Zipf-distributed ranks drawn in constant time from an alias table.

/// Distribution over ranks `0..ranks` in which rank `r` has weight `(r + 1)^-exponent`.
///
/// The first ranks are drawn individually, later ones in blocks of 1/512 of their rank: first a block in
/// proportion to its exact weight, then a rank in it uniformly. With exponent 1 the frequency of a rank is
/// off by at most 0.1 %, and the tables fit in a core's first caches for any number of ranks.
///
/// The tables are built with integers from weights of a portable `pow`, so they are the same on every
/// machine.
#[derive(Clone, Debug)]
pub struct Zipf {
    /// Alias table over the blocks: each column holds its own block's share, filled up with one other block.
    columns: Vec<Column>,
    blocks: Vec<Block>,
}

#[derive(Clone, Copy, Debug)]
struct Column {
    /// The column's own block is drawn when 32 random bits are below this.
    threshold: u32,
    /// The block drawn otherwise.
    alias: u32,
}

/// Ranks `first .. first + ranks`.
#[derive(Clone, Copy, Debug)]
struct Block {
    first: u32,
    ranks: u32,
}

/// A block has at most this fraction of its first rank.
const BLOCK_FRACTION: u32 = 512;

/// Weight of the most frequent rank; the smallest weight is 1, so frequencies are exact to one in 10^12.
const WEIGHT_MAX: f64 = (1u64 << 40) as f64;

impl Zipf {
    /// Creates the distribution over `ranks` ranks; exponent 0 is the uniform distribution.
    ///
    /// # Panics
    ///
    /// Panics when `ranks` is 0, or `exponent` is negative or not finite.
    pub fn new(ranks: u32, exponent: f64) -> Self {
        assert!(ranks > 0, "a distribution needs at least one rank");
        assert!(
            exponent.is_finite() && exponent >= 0.0,
            "exponent {exponent} is negative or not finite"
        );
        let weight =
            |rank: u32| (WEIGHT_MAX * libm::pow(f64::from(rank) + 1.0, -exponent)).max(1.0) as u128;
        let mut blocks = Vec::new();
        let mut weights = Vec::new();
        let mut first = 0;
        while first < ranks {
            let size = (first / BLOCK_FRACTION).max(1).min(ranks - first);
            blocks.push(Block { first, ranks: size });
            weights.push((first..first + size).map(weight).sum());
            first += size;
        }
        Self {
            columns: alias_columns(&weights),
            blocks,
        }
    }

    /// Maps 64 random bits to a rank.
    #[inline(always)]
    pub fn rank(&self, bits: u64) -> u32 {
        // The high half of the product selects the column; the low half selects between the column's two
        // blocks, and then a rank in the block.
        let product = u128::from(bits) * self.columns.len() as u128;
        let column = (product >> 64) as usize;
        let fraction = (product as u64 >> 32) as u32;
        let Column { threshold, alias } = self.columns[column];
        // The selection is unpredictable, so it uses a mask instead of a branch.
        let own = u32::from(fraction < threshold).wrapping_neg();
        let Block { first, ranks } = self.blocks[((column as u32 & own) | (alias & !own)) as usize];
        first + ((u64::from(product as u32) * u64::from(ranks)) >> 32) as u32
    }
}

/// Builds an alias table with Vose's method, with shares in units of `1 / total` of a column so that only the
/// thresholds are rounded.
fn alias_columns(weights: &[u128]) -> Vec<Column> {
    let total: u128 = weights.iter().sum();
    let count = weights.len() as u128;
    let mut shares: Vec<u128> = weights.iter().map(|weight| weight * count).collect();
    let (mut small, mut large): (Vec<usize>, Vec<usize>) =
        (0..weights.len()).partition(|&rank| shares[rank] < total);
    let mut columns: Vec<Column> = (0..weights.len())
        .map(|rank| Column {
            threshold: u32::MAX,
            alias: rank as u32,
        })
        .collect();
    while let (Some(&short), Some(&long)) = (small.last(), large.last()) {
        small.pop();
        columns[short] = Column {
            threshold: ((shares[short] << 32) / total) as u32,
            alias: long as u32,
        };
        shares[long] -= total - shares[short];
        if shares[long] < total {
            large.pop();
            small.push(long);
        }
    }
    columns
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::SplitMix;

    #[test]
    fn alias_columns_hold_the_exact_weights() {
        let weights = [1_000_000u128, 1, 7, 500, 500, 123_456, 3];
        let columns = alias_columns(&weights);
        let total: u128 = weights.iter().sum();
        for (rank, &weight) in weights.iter().enumerate() {
            let column_share = |column: usize| {
                let own = f64::from(columns[column].threshold) / 2f64.powi(32);
                let as_own = if column == rank { own } else { 0.0 };
                let as_alias = if columns[column].alias as usize == rank {
                    1.0 - own
                } else {
                    0.0
                };
                as_own + as_alias
            };
            let share: f64 =
                (0..weights.len()).map(column_share).sum::<f64>() / weights.len() as f64;
            assert!(
                (share - weight as f64 / total as f64).abs() < 1e-9,
                "rank {rank} has {share}"
            );
        }
    }

    #[test]
    fn rank_draws_follow_the_exponent() {
        const DRAWS: u32 = 2_000_000;
        let zipf = Zipf::new(1000, 1.05);
        let mut random = SplitMix::new(42, 0);
        let mut counts = vec![0u32; 1000];
        for _ in 0..DRAWS {
            counts[zipf.rank(random.draw()) as usize] += 1;
        }
        let total: f64 = (1..=1000).map(|rank| f64::from(rank).powf(-1.05)).sum();
        for rank in [1u32, 2, 10, 100, 1000] {
            let expected = f64::from(rank).powf(-1.05) / total * f64::from(DRAWS);
            let drawn = f64::from(counts[rank as usize - 1]);
            // Five standard deviations of a count.
            assert!(
                (drawn - expected).abs() < 5.0 * expected.sqrt(),
                "rank {rank}: {drawn}, expected {expected}"
            );
        }
    }

    #[test]
    fn rank_exponent_zero_is_uniform() {
        let zipf = Zipf::new(4, 0.0);
        let quarters = [0, 1 << 62, 2 << 62, 3 << 62];
        assert_eq!(quarters.map(|bits| zipf.rank(bits)), [0, 1, 2, 3]);
        assert_eq!(Zipf::new(1, 1.05).rank(u64::MAX), 0);
    }
}
