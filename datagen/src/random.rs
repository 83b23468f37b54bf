//! Random numbers of generated lines. The sequence is part of the data format: a seed gives the same lines in
//! every version and on every machine.

const GAMMA: u64 = 0x9E37_79B9_7F4A_7C15;

/// SplitMix64: a counter and a mixing function, so that draws do not depend on each other.
#[derive(Clone, Debug)]
pub(crate) struct SplitMix {
    counter: u64,
}

impl SplitMix {
    /// Returns the sequence for a section of the data; it differs for every pair of seed and index.
    pub(crate) fn new(seed: u64, index: u64) -> Self {
        Self {
            counter: mix(
                mix(seed.wrapping_add(GAMMA)) ^ mix(index.wrapping_mul(GAMMA).wrapping_add(1))
            ),
        }
    }

    /// Returns 64 random bits.
    #[inline(always)]
    pub(crate) fn draw(&mut self) -> u64 {
        self.counter = self.counter.wrapping_add(GAMMA);
        mix(self.counter)
    }

    /// Returns a number below `bound`. The bias is at most `bound / 2^64`, which is negligible here.
    #[inline(always)]
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.draw()) * u128::from(bound)) >> 64) as u64
    }
}

#[inline(always)]
fn mix(mut bits: u64) -> u64 {
    bits = (bits ^ bits >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    bits = (bits ^ bits >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
    bits ^ bits >> 31
}

/// Returns a step near the golden section of `count` that is coprime to it, so that it visits every number
/// below once.
pub(crate) fn stride(count: u64) -> u64 {
    let golden = (count as f64 * 0.618_033_988_749_895) as u64;
    (golden..)
        .find(|&step| are_coprime(step, count))
        .expect("a number one above a multiple is coprime")
}

fn are_coprime(mut one: u64, mut other: u64) -> bool {
    while other > 0 {
        (one, other) = (other, one % other);
    }
    one == 1
}
