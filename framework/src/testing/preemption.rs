//! A check that a job is preemption-safe: its output under various schedules must equal that of an
//! undisturbed run.

use napreduce_protocol::{Counter, CounterValues};

use super::attempts::{Trial, TrialResult};
use super::interruptions::{Interruption, Preemption, Schedule};
use super::{JobOutput, JobTest};
use crate::builder::Job;

/// Counters of records and bytes that preemption does not change. Those of spills and combiners depend on the
/// number of spills.
const COMPARED: [Counter; 9] = [
    Counter::InputBytes,
    Counter::MapInputRecords,
    Counter::MapOutputRecords,
    Counter::MapOutputBytes,
    Counter::ShuffledMaps,
    Counter::ReduceInputGroups,
    Counter::ReduceInputRecords,
    Counter::ReduceOutputRecords,
    Counter::OutputBytes,
];

impl<T, J: Fn() -> Job<T>> JobTest<J> {
    /// As [`assert_preemption_safe`](super::assert_preemption_safe), with the settings of this test.
    ///
    /// # Panics
    ///
    /// If the job is not preemption-safe.
    pub fn assert_preemption_safe(&self) {
        self.assert_saved();
        let (expected, most) = self.preparation();
        let once = Preemption::ALL.iter().flat_map(|how| {
            (1..=most).map(|boundary| {
                Schedule::Once(Interruption {
                    boundary,
                    how: *how,
                })
            })
        });
        let repeatedly = Preemption::ALL[1..]
            .iter()
            .flat_map(|how| [1, 2, 7].map(|after| Schedule::Repeatedly { how: *how, after }));
        for schedule in once.chain([Schedule::SuspendEverywhere]).chain(repeatedly) {
            self.compare(&expected, &schedule);
        }
    }

    /// Checks suspends only, for a job whose tasks cannot be checkpointed, such as one with commands. Calls
    /// the suspend hooks, and sends SIGTSTP to a command that handles it; no process is stopped.
    ///
    /// # Panics
    ///
    /// If output or counters differ from those of an undisturbed run.
    ///
    /// ```
    /// use napreduce::streaming::map_only;
    /// use napreduce::testing::JobTest;
    ///
    /// JobTest::new(|| map_only("tr a-z A-Z")).input("to be\nor not\n").assert_suspend_safe();
    /// ```
    pub fn assert_suspend_safe(&self) {
        let (expected, most) = self.preparation();
        let once = |boundary| {
            Schedule::Once(Interruption {
                boundary,
                how: Preemption::Suspend,
            })
        };
        for schedule in (1..=most).map(once).chain([Schedule::SuspendEverywhere]) {
            self.compare(&expected, &schedule);
        }
    }

    /// Preempts all tasks at random in `rounds` runs with the seeds from `seed` on. A failure names its seed.
    ///
    /// # Panics
    ///
    /// If the job is not preemption-safe.
    pub fn assert_safe_at_random(&self, seed: u64, rounds: u64) {
        self.assert_saved();
        let (expected, most) = self.preparation();
        for seed in seed..seed.saturating_add(rounds) {
            let distance_max = 1 + seed % most.max(1);
            self.compare(&expected, &Schedule::Random { seed, distance_max });
        }
    }

    fn assert_saved(&self) {
        let job = (self.job)();
        let support = job.pipeline.checkpoint_support();
        let map_only = job.pipeline.reduces() == Some(0);
        assert!(
            support.map,
            "the maps of this job cannot be checkpointed: the mapper, or the output format of a map-only job, \
             returns Unsupported from `save`; derive Resumable and call mapper_resumable, implement `save` and `restore`, \
             or return Stateless"
        );
        assert!(
            support.reduce || map_only,
            "the reduces of this job cannot be checkpointed: the reducer or the output format returns Unsupported from \
             `save`; derive Resumable and call reducer_resumable, implement `save` and `restore`, or return Stateless"
        );
    }

    /// Runs the job undisturbed; also returns the number of boundaries of its longest task.
    fn preparation(&self) -> (TrialResult, u64) {
        let undisturbed = Trial::new(self).run(&Schedule::Undisturbed);
        let counted = self.compare(&undisturbed, &Schedule::Counted);
        let expected = TrialResult {
            boundaries: counted.boundaries,
            ..undisturbed
        };
        let most = expected.boundaries.iter().copied().max().unwrap_or(0);
        (expected, most)
    }

    fn compare(&self, expected: &TrialResult, schedule: &Schedule) -> TrialResult {
        let ran = Trial::with_boundaries(self, &expected.boundaries).run(schedule);
        let tasks = expected.attempts;
        assert!(
            ran.attempts > tasks
                || !schedule.ends_attempts(expected.boundaries.iter().max().copied()),
            "{schedule}: no attempt was interrupted, but {tasks} tasks have boundaries: {:?}",
            expected.boundaries
        );
        if let Some(difference) = difference(&expected.output, &ran.output) {
            let cause = self
                .cause(expected, schedule)
                .map_or_else(String::new, |cause| format!("\n{cause}"));
            panic!(
                "{schedule} ({} attempts): {difference}{cause}",
                ran.attempts
            );
        }
        ran
    }
}

/// Describes the first difference.
pub(super) fn difference(expected: &JobOutput, found: &JobOutput) -> Option<String> {
    if let Some(difference) = parts_differ(&expected.parts, &found.parts) {
        return Some(difference);
    }
    if !expected.named.keys().eq(found.named.keys()) {
        return Some(format!(
            "outputs {:?} instead of {:?}",
            found.named.keys(),
            expected.named.keys()
        ));
    }
    for ((name, expected), found) in expected.named.iter().zip(found.named.values()) {
        if let Some(difference) = parts_differ(expected, found) {
            return Some(format!("output {name}: {difference}"));
        }
    }
    counters_differ(&expected.counters, &found.counters)
}

fn parts_differ(expected: &[Vec<u8>], found: &[Vec<u8>]) -> Option<String> {
    if expected.len() != found.len() {
        return Some(format!(
            "{} parts instead of {}",
            found.len(),
            expected.len()
        ));
    }
    for (number, (expected, found)) in expected.iter().zip(found).enumerate() {
        if expected != found {
            let same = expected
                .iter()
                .zip(found)
                .take_while(|(one, other)| one == other)
                .count();
            return Some(format!(
                "part {number} has {} bytes instead of {}, and differs from byte {same}: {:?} instead of {:?}",
                found.len(),
                expected.len(),
                excerpt(found, same),
                excerpt(expected, same)
            ));
        }
    }
    None
}

fn counters_differ(expected: &CounterValues, found: &CounterValues) -> Option<String> {
    let combines = expected.of(Counter::CombineInputRecords) > 0;
    let compared = COMPARED
        .iter()
        .filter(|counter| !combines || **counter != Counter::ReduceInputRecords);
    let built_in = compared.map(|counter| counter.in_words());
    let users = expected.iter().chain(found.iter()).map(|(name, _)| name);
    let users = users.filter(|name| Counter::of_word(name).is_none());
    built_in
        .chain(users)
        .find(|name| expected.get(name) != found.get(name))
        .map(|name| {
            format!(
                "counter {name:?} is {} instead of {}",
                found.get(name),
                expected.get(name)
            )
        })
}

fn excerpt(bytes: &[u8], at: usize) -> String {
    let from = at.saturating_sub(20);
    let to = (at + 40).min(bytes.len());
    String::from_utf8_lossy(bytes.get(from..to).unwrap_or_default()).into_owned()
}
