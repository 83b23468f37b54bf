//! Random draws: which attempts fail, when machines are lost, and how wrong reported progress is. Every draw is
//! a function of the seed and its subject, so that the same attempts fail under every policy.

use napreduce_engine::{AttemptId, Span, TaskKind};

/// Returns the work after which an attempt fails, if it does.
pub(super) fn fails_after(seed: u64, id: AttemptId, probability: f64, work: u64) -> Option<u64> {
    if probability <= 0.0 {
        return None;
    }
    let drawn = draw(seed, 1, &words_of(id));
    let fails = uniform(drawn) < probability;
    if !fails {
        return None;
    }
    let share = uniform(scramble(drawn));
    Some((share * work as f64) as u64)
}

/// Returns the draw for the error of an attempt's reported progress, in [0, 1).
pub(super) fn drawn_for_progress(seed: u64, id: AttemptId) -> f64 {
    uniform(draw(seed, 3, &words_of(id)))
}

/// The seed words of an attempt.
fn words_of(id: AttemptId) -> [u64; 4] {
    let kind = u64::from(id.task.kind == TaskKind::Reduce);
    [
        u64::from(id.task.job.0),
        kind,
        u64::from(id.task.index),
        u64::from(id.number),
    ]
}

/// Returns the lifetime of a machine's `life`-th incarnation.
pub(super) fn lifetime(seed: u64, machine: u32, life: u64, mean: Span) -> Span {
    let drawn = uniform(draw(seed, 2, &[u64::from(machine), life]));
    // The inverse of the exponential distribution.
    let means = -(1.0 - drawn).ln();
    let micros = (means * mean.0 as f64) as u64;
    Span(micros.saturating_add(1))
}

/// Hashes the arguments to a pseudo-random number. Each purpose has draws of its own.
fn draw(seed: u64, purpose: u64, words: &[u64]) -> u64 {
    let mut state = scramble(seed ^ scramble(purpose));
    for word in words {
        state = scramble(state ^ scramble(*word));
    }
    state
}

/// The finalizer of splitmix64.
fn scramble(word: u64) -> u64 {
    let mut mixed = word.wrapping_add(0x9E37_79B9_7F4A_7C15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    mixed ^ (mixed >> 31)
}

/// Uniform in [0, 1).
fn uniform(word: u64) -> f64 {
    (word >> 11) as f64 / (1_u64 << 53) as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use napreduce_engine::{JobId, TaskId};

    fn attempt(index: u32) -> AttemptId {
        AttemptId {
            task: TaskId {
                job: JobId(1),
                kind: TaskKind::Map,
                index,
            },
            number: 1,
        }
    }

    #[test]
    fn failure_rate_matches_probability() {
        let failed: Vec<u64> = (0..10_000)
            .filter_map(|index| fails_after(7, attempt(index), 0.25, 1_000))
            .collect();
        assert!(
            (2_350..2_650).contains(&failed.len()),
            "{} of 10000",
            failed.len()
        );
        let mean = failed.iter().sum::<u64>() / failed.len() as u64;
        assert!(
            (480..520).contains(&mean) && failed.iter().all(|at| *at < 1_000),
            "{mean}"
        );
        assert_eq!(fails_after(7, attempt(3), 0.0, 1_000), None);
    }

    #[test]
    fn mean_lifetime_matches_setting() {
        let mean = Span::from_secs(100);
        let total: u64 = (0..10_000).map(|life| lifetime(1, 3, life, mean).0).sum();
        assert!((97..103).contains(&(total / 10_000 / 1_000_000)), "{total}");
    }
}
