//! The tree of queues and their guaranteed and maximum capacities. Map and reduce slots are counted
//! separately; each share applies to both.

use napreduce_engine::{Ratio, SortedMap, SortedSet};

use super::configuration::{ApplicationOrder, CapacityConfiguration, Mode, QueueConfiguration};
use super::error::CapacityError;
use crate::turns::TurnWeight;

/// The name of the root queue.
pub(super) const ROOT: &str = "root";

/// Limit on the common denominator of all shares, so that usage compares exactly.
const FINEST: i128 = 1_000_000_000_000;

/// One queue of the tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Queue {
    pub name: String,
    pub parent: Option<usize>,
    pub children: Vec<usize>,
    /// Guaranteed fraction of all slots.
    pub guaranteed: Ratio,
    /// Maximum fraction of all slots.
    pub maximum: Ratio,
    /// Larger is more important.
    pub priority: i32,
    pub preemption_disabled: bool,
    /// Minimum user limit in percent.
    pub user_limit_percent: Ratio,
    pub order: ApplicationOrder,
    /// Maximum running jobs in this queue and below.
    pub max_running_jobs: Option<u32>,
}

/// All queues, parents before children; the root is first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Queues {
    all: Vec<Queue>,
    leaves: SortedMap<String, usize>,
    default: usize,
    /// All shares are multiples of 1/`unit`.
    unit: i128,
    /// Guaranteed units by queue.
    weights: Vec<u64>,
}

impl Queues {
    /// Builds the tree of a configuration.
    ///
    /// # Errors
    /// Fails if a queue is invalid; names the queue and the value.
    pub fn new(configuration: &CapacityConfiguration) -> Result<Queues, CapacityError> {
        let only = [QueueConfiguration::new("default", Ratio::whole(100))];
        let queues = if configuration.queue.is_empty() {
            &only[..]
        } else {
            &configuration.queue[..]
        };
        check_names(queues)?;
        check_values(queues)?;
        if configuration.user_max_running_jobs == Some(0) {
            return Err(CapacityError::NoRunningJobs {
                what: "user-max-running-jobs".to_owned(),
            });
        }
        let mut tree = Queues {
            all: vec![root()],
            leaves: SortedMap::new(),
            default: 0,
            unit: 1,
            weights: Vec::new(),
        };
        tree.add_below(0, queues, configuration.mode)?;
        if tree.all.len() <= queues.len() {
            let lost = queues
                .iter()
                .filter(|queue| !tree.all.iter().any(|known| known.name == queue.name));
            return Err(CapacityError::Cycle(names(
                lost.map(|queue| queue.name.as_str()),
            )));
        }
        tree.find_unit()?;
        let leaves = tree
            .all
            .iter()
            .enumerate()
            .filter(|(_, queue)| queue.children.is_empty());
        tree.leaves = leaves
            .map(|(number, queue)| (queue.name.clone(), number))
            .collect();
        tree.default = tree.default_of(configuration.default_queue.as_deref())?;
        Ok(tree)
    }

    /// Returns all queues, parents before children.
    pub fn all(&self) -> &[Queue] {
        &self.all
    }

    pub fn queue(&self, number: usize) -> &Queue {
        &self.all[number]
    }

    /// Returns the leaf for a job that names this queue; the default queue if it is not a leaf.
    pub fn leaf_of(&self, name: &str) -> usize {
        self.leaves.get(name).copied().unwrap_or(self.default)
    }

    /// Returns the guaranteed part of `slots`, including fractions.
    pub fn guaranteed(&self, number: usize, slots: u32) -> Ratio {
        self.all[number].guaranteed * Ratio::whole(u64::from(slots))
    }

    /// Returns the number of units in the whole cluster.
    pub(super) fn unit(&self) -> u128 {
        self.unit.unsigned_abs()
    }

    /// Returns the guaranteed units of a queue.
    pub(super) fn weight(&self, number: usize) -> u128 {
        u128::from(self.weights[number])
    }

    pub(super) fn turn_weight(&self, number: usize) -> TurnWeight {
        TurnWeight {
            above: self.weights[number],
            below: self.unit.unsigned_abs() as u64,
        }
    }

    /// Returns the maximum part of `slots`, rounded down, but at least one slot if the share is positive.
    /// With none its jobs would never run.
    pub fn maximum(&self, number: usize, slots: u32) -> u32 {
        let share = self.all[number].maximum;
        let whole = u32::try_from(share.of(u64::from(slots))).unwrap_or(u32::MAX);
        whole.max(u32::from(share > Ratio::ZERO).min(slots))
    }

    /// Returns the queues with a maximum on the path of the named queue, and their maximum part of `slots`.
    pub fn maxima(&self, name: &str, slots: u32) -> Vec<(String, u64)> {
        let path =
            std::iter::successors(Some(self.leaf_of(name)), |&number| self.all[number].parent);
        let limited = path.filter(|&number| self.all[number].maximum < Ratio::ONE);
        limited
            .map(|number| {
                (
                    self.all[number].name.clone(),
                    self.maximum(number, slots).into(),
                )
            })
            .collect()
    }

    /// Adds the children of a queue, recursively.
    fn add_below(
        &mut self,
        parent: usize,
        queues: &[QueueConfiguration],
        mode: Mode,
    ) -> Result<(), CapacityError> {
        let name = self.all[parent].name.clone();
        let mut sum = Ratio::ZERO;
        for queue in queues.iter().filter(|queue| queue.parent == name) {
            let above = &self.all[parent];
            let percent = |share: Ratio, of: Ratio| {
                let product = of * (share / Ratio::whole(100));
                let fine = product.denominator() <= FINEST;
                if fine {
                    Ok(product)
                } else {
                    Err(CapacityError::TooFine(queue.name.clone()))
                }
            };
            let guaranteed = percent(queue.guaranteed_percent, above.guaranteed)?;
            let maximum = match mode {
                Mode::HardCap => guaranteed,
                Mode::SoftCap | Mode::Preemptive => percent(queue.max_percent, above.maximum)?,
            };
            let added = Queue {
                name: queue.name.clone(),
                parent: Some(parent),
                children: Vec::new(),
                guaranteed,
                maximum,
                priority: queue.priority,
                preemption_disabled: queue.preemption_disabled || above.preemption_disabled,
                user_limit_percent: queue.user_limit_percent,
                order: queue.app_order,
                max_running_jobs: queue.max_running_jobs,
            };
            sum = sum + queue.guaranteed_percent;
            let number = self.all.len();
            self.all.push(added);
            self.all[parent].children.push(number);
            self.add_below(number, queues, mode)?;
        }
        if sum > Ratio::whole(100) {
            return Err(CapacityError::OverCommitted { parent: name, sum });
        }
        Ok(())
    }

    /// Computes the common denominator of all shares, and each guarantee in units of it.
    fn find_unit(&mut self) -> Result<(), CapacityError> {
        for queue in &self.all {
            for share in [queue.guaranteed, queue.maximum] {
                self.unit = common_multiple(self.unit, share.denominator(), &queue.name)?;
            }
        }
        self.weights = self
            .all
            .iter()
            .map(|queue| queue.guaranteed.of(self.unit.unsigned_abs() as u64))
            .collect();
        Ok(())
    }

    fn default_of(&self, name: Option<&str>) -> Result<usize, CapacityError> {
        let first = self
            .all
            .iter()
            .position(|queue| queue.children.is_empty())
            .unwrap_or_default();
        let Some(name) = name else {
            return Ok(self.leaves.get("default").copied().unwrap_or(first));
        };
        self.leaves
            .get(name)
            .copied()
            .ok_or_else(|| CapacityError::DefaultQueue {
                name: name.to_owned(),
                leaves: names(self.leaves.keys().map(String::as_str)),
            })
    }
}

fn root() -> Queue {
    Queue {
        name: ROOT.to_owned(),
        parent: None,
        children: Vec::new(),
        guaranteed: Ratio::ONE,
        maximum: Ratio::ONE,
        priority: 0,
        preemption_disabled: false,
        user_limit_percent: Ratio::whole(100),
        order: ApplicationOrder::Fifo,
        max_running_jobs: None,
    }
}

/// Checks that queue names are unique and parents exist.
fn check_names(queues: &[QueueConfiguration]) -> Result<(), CapacityError> {
    let mut known = SortedSet::new();
    known.insert(ROOT);
    for queue in queues {
        if queue.name.is_empty() || queue.name == ROOT {
            return Err(CapacityError::Name(queue.name.clone()));
        }
        if !known.insert(&queue.name) {
            return Err(CapacityError::Duplicate(queue.name.clone()));
        }
    }
    match queues
        .iter()
        .find(|queue| !known.contains(queue.parent.as_str()))
    {
        None => Ok(()),
        Some(queue) => Err(CapacityError::UnknownParent {
            queue: queue.name.clone(),
            parent: queue.parent.clone(),
            known: names(known.into_iter()),
        }),
    }
}

/// Checks that percentages are in range and have a common denominator.
fn check_values(queues: &[QueueConfiguration]) -> Result<(), CapacityError> {
    let mut common: i128 = 1;
    for queue in queues {
        let values = [
            ("guaranteed-percent", queue.guaranteed_percent, 0),
            ("max-percent", queue.max_percent, 0),
            ("user-limit-percent", queue.user_limit_percent, 1),
        ];
        for (name, value, least) in values {
            if value < Ratio::whole(u64::from(least)) || value > Ratio::whole(100) {
                return Err(CapacityError::Percent {
                    queue: queue.name.clone(),
                    name,
                    value,
                    least,
                });
            }
            common = common_multiple(common, value.denominator(), &queue.name)?;
        }
        if queue.max_running_jobs == Some(0) {
            return Err(CapacityError::NoRunningJobs {
                what: format!("max-running-jobs of queue {:?}", queue.name),
            });
        }
        if queue.max_percent < queue.guaranteed_percent {
            return Err(CapacityError::MaximumBelowGuarantee {
                queue: queue.name.clone(),
                guaranteed: queue.guaranteed_percent,
                max: queue.max_percent,
            });
        }
    }
    Ok(())
}

/// Returns the least common multiple of two denominators, or an error above [`FINEST`].
fn common_multiple(one: i128, other: i128, queue: &str) -> Result<i128, CapacityError> {
    let multiple = Ratio::new(one, other).numerator().checked_mul(other);
    multiple
        .filter(|&common| common <= FINEST)
        .ok_or_else(|| CapacityError::TooFine(queue.to_owned()))
}

fn names<'a>(names: impl Iterator<Item = &'a str>) -> String {
    names.collect::<Vec<_>>().join(", ")
}
