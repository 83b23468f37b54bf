//! The sort benchmark's 128-bit linear congruential generator: `X' = a * X + c (mod 2^128)`, `X0 = 0`, with
//! skip-ahead in O(log n).

const MULTIPLIER: u128 = 0x2360_ed05_1fc6_5da4_4385_df64_9fcc_f645;
const INCREMENT: u128 = 0x4a69_6d47_7261_7952_4950_2020_2020_2001;

/// One affine step: `x -> multiplier * x + increment`.
#[derive(Clone, Copy)]
struct Step {
    multiplier: u128,
    increment: u128,
}

/// `JUMPS[bit]` advances by `2^bit` numbers: each entry is the previous one applied twice.
const JUMPS: [Step; 64] = {
    let mut jumps = [Step {
        multiplier: MULTIPLIER,
        increment: INCREMENT,
    }; 64];
    let mut bit = 1;
    while bit < 64 {
        let half = jumps[bit - 1];
        jumps[bit] = Step {
            multiplier: half.multiplier.wrapping_mul(half.multiplier),
            increment: half.increment.wrapping_mul(half.multiplier.wrapping_add(1)),
        };
        bit += 1;
    }
    jumps
};

/// Position in the benchmark's sequence of 128-bit numbers.
///
/// ```
/// use datagen::tera::TeraRandom;
/// let mut walked = TeraRandom::new();
/// for _ in 0..1000 {
///     walked.advance();
/// }
/// let mut jumped = TeraRandom::new();
/// jumped.jump(1000);
/// assert_eq!(walked, jumped);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TeraRandom {
    value: u128,
}

impl TeraRandom {
    /// Starts the sequence at `X0 = 0`.
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns the number at this position.
    #[inline]
    pub fn value(&self) -> u128 {
        self.value
    }

    /// Advances from `Xn` to `Xn+1` and returns it.
    #[inline]
    pub fn advance(&mut self) -> u128 {
        self.value = self.value.wrapping_mul(MULTIPLIER).wrapping_add(INCREMENT);
        self.value
    }

    /// Advances by `steps` numbers in at most 64 multiplications.
    pub fn jump(&mut self, steps: u64) {
        for (bit, jump) in JUMPS.iter().enumerate() {
            if steps >> bit & 1 == 1 {
                self.value = self
                    .value
                    .wrapping_mul(jump.multiplier)
                    .wrapping_add(jump.increment);
            }
        }
    }
}
