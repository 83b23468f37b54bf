//! Job eviction: selects the research job that loses the next container.

use rand::Rng;
use serde::{Deserialize, Serialize};

use napreduce_engine::{JobId, Ratio, SortedMap, SortedSet, Time};

/// The choice of the research job that loses a container.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum JobEviction {
    /// The job that holds the most.
    #[default]
    #[serde(rename = "most-resources", alias = "MR")]
    MostResources,
    /// The job that holds the least.
    #[serde(rename = "least-resources", alias = "LR")]
    LeastResources,
    /// A random job, with probability proportional to its containers.
    #[serde(rename = "probabilistic", alias = "PR")]
    Probabilistic,
}

/// A research job with preemptable containers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Holding {
    pub job: JobId,
    /// The youngest job loses first among equals.
    pub submitted: Time,
    /// Preemptable containers.
    pub usage: u32,
}

/// Later submission, then larger id, is younger.
type Age = (Time, JobId);

/// The preemptable containers of the research jobs.
#[derive(Debug, Clone)]
pub struct Evictions {
    choice: JobEviction,
    by_usage: SortedSet<(u32, Age)>,
    by_age: SortedMap<Age, u32>,
    total: u64,
}

impl Evictions {
    pub fn new(choice: JobEviction, holdings: impl IntoIterator<Item = Holding>) -> Evictions {
        let held = holdings.into_iter().filter(|holding| holding.usage > 0);
        let by_age: SortedMap<Age, u32> = held
            .map(|holding| ((holding.submitted, holding.job), holding.usage))
            .collect();
        let by_usage = by_age.iter().map(|(&age, &usage)| (usage, age)).collect();
        let total = by_age.values().map(|usage| u64::from(*usage)).sum();
        Evictions {
            choice,
            by_usage,
            by_age,
            total,
        }
    }

    /// Returns the job that loses the next container; `None` if none are left. Only the probabilistic choice
    /// uses `rng`.
    pub fn choose(&mut self, rng: &mut impl Rng) -> Option<JobId> {
        let age = match self.choice {
            JobEviction::MostResources => self.most(),
            JobEviction::LeastResources => self.least(),
            JobEviction::Probabilistic => self.drawn(rng),
        }?;
        self.remove(age);
        Some(age.1)
    }

    /// Returns the probability for each job to lose the next container, by age.
    pub fn odds(&self) -> Vec<(JobId, Ratio)> {
        let certain = match self.choice {
            JobEviction::MostResources => self.most(),
            JobEviction::LeastResources => self.least(),
            JobEviction::Probabilistic => {
                let part = |usage: u32| Ratio::new(i128::from(usage), i128::from(self.total));
                return self
                    .by_age
                    .iter()
                    .map(|(age, usage)| (age.1, part(*usage)))
                    .collect();
            }
        };
        certain.into_iter().map(|age| (age.1, Ratio::ONE)).collect()
    }

    fn most(&self) -> Option<Age> {
        self.by_usage.last().map(|(_, age)| *age)
    }

    fn least(&self) -> Option<Age> {
        let (usage, _) = *self.by_usage.first()?;
        let youngest = (usage, (Time(u64::MAX), JobId(u32::MAX)));
        self.by_usage.last_up_to(&youngest).map(|(_, age)| *age)
    }

    fn drawn(&self, rng: &mut impl Rng) -> Option<Age> {
        if self.total == 0 {
            return None;
        }
        let mut drawn = rng.random_range(0..self.total);
        self.by_age
            .iter()
            .find_map(|(age, usage)| match drawn.checked_sub(u64::from(*usage)) {
                Some(rest) => {
                    drawn = rest;
                    None
                }
                None => Some(*age),
            })
    }

    fn remove(&mut self, age: Age) {
        let Some(usage) = self.by_age.get_mut(&age) else {
            return;
        };
        self.by_usage.remove(&(*usage, age));
        *usage -= 1;
        self.total -= 1;
        if *usage == 0 {
            self.by_age.remove(&age);
        } else {
            self.by_usage.insert((*usage, age));
        }
    }
}
