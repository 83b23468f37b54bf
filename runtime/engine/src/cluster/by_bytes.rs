//! Durations as a linear function of bytes: least squares over recent samples, in integers.

use serde::{Deserialize, Serialize};

use crate::time::Span;

/// After this many samples the older ones count half.
const REMEMBERED: u64 = 64;

/// Sums over samples of bytes (in MiB) and time (in microseconds).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ByBytes {
    cases: u64,
    bytes: u64,
    micros: u64,
    squares: u64,
    products: u64,
}

impl ByBytes {
    /// Adds a sample.
    pub(crate) fn learn(&mut self, bytes: u64, took: Span) {
        if self.cases >= REMEMBERED {
            for sum in [
                &mut self.cases,
                &mut self.bytes,
                &mut self.micros,
                &mut self.squares,
                &mut self.products,
            ] {
                *sum /= 2;
            }
        }
        let bytes = bytes >> 20;
        self.cases += 1;
        self.bytes = self.bytes.saturating_add(bytes);
        self.micros = self.micros.saturating_add(took.0);
        self.squares = self.squares.saturating_add(bytes.saturating_mul(bytes));
        self.products = self.products.saturating_add(bytes.saturating_mul(took.0));
    }

    /// Estimates the time for this many bytes: by the fitted line, which never has a negative slope, or the
    /// mean if all samples have the same size. `None` before the first sample.
    pub(crate) fn of(&self, bytes: u64) -> Option<Span> {
        let [cases, sum, micros, squares, products] = [
            self.cases,
            self.bytes,
            self.micros,
            self.squares,
            self.products,
        ]
        .map(i128::from);
        if cases == 0 {
            return None;
        }
        let spread = cases * squares - sum * sum;
        let rise = (cases * products - sum * micros).max(0);
        let from_mean = i128::from(bytes >> 20) * cases - sum;
        let correction = if spread > 0 {
            rise * from_mean / spread
        } else {
            0
        };
        Some(Span(
            u64::try_from(((micros + correction) / cases).max(0)).unwrap_or(u64::MAX),
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::{Rng, SeedableRng};
    use rand_pcg::Pcg64;

    const MIB: u64 = 1 << 20;

    #[test]
    fn estimate_needs_two_sizes() {
        let mut known = ByBytes::default();
        assert_eq!(known.of(5), None);
        known.learn(100 * MIB, Span(1_000));
        known.learn(100 * MIB, Span(3_000));
        assert_eq!(known.of(900 * MIB), Some(Span(2_000)));
    }

    #[test]
    fn estimate_is_monotonic() {
        let mut known = ByBytes::default();
        known.learn(10 * MIB, Span(9_000));
        known.learn(20 * MIB, Span(1_000));
        assert_eq!(known.of(MIB), Some(Span(5_000)));
    }

    #[test]
    fn fixed_part_and_rate_are_estimated() {
        for seed in 0..500 {
            let mut random = Pcg64::seed_from_u64(seed);
            let fixed = random.random_range(0..5_000_000);
            let each = random.random_range(1..30_000);
            let mut known = ByBytes::default();
            for _ in 0..random.random_range(20..200) {
                let size = random.random_range(1..4_000);
                known.learn(size * MIB, Span(fixed + size * each));
            }
            let asked = random.random_range(0..4_000);
            let found = known.of(asked * MIB).expect("it has seen some").0;
            let exact = fixed + asked * each;
            // Halved sums are truncated to integers.
            assert!(
                found.abs_diff(exact) <= exact / 20 + 20_000,
                "seed {seed}: {found} is not {exact}"
            );
        }
    }
}
