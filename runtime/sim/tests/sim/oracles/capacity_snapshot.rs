//! Reads the queue trees of the cases into the monitor's types.

use napreduce_engine::{Ratio, Time};
use napreduce_schedulers::capacity::monitor::{
    Application, Container, QueueState, QueueTree, Round, RoundChoice, RoundSettings,
};
use serde_json::Value;
use std::collections::BTreeMap;

use crate::oracles::cases::exact;

/// The queues of a case and their applications.
pub struct Snapshot {
    pub tree: QueueTree,
    applications: Vec<Vec<Application>>,
    names: Vec<String>,
}

struct Reader {
    queues: Vec<QueueState>,
    applications: Vec<Vec<Application>>,
    names: Vec<String>,
    containers: u64,
}

/// Returns a required field.
pub fn field<'a>(value: &'a Value, name: &str) -> Result<&'a Value, String> {
    value
        .get(name)
        .ok_or_else(|| format!("no {name} in {value}"))
}

/// Returns a non-negative integer; zero if absent.
pub fn amount(value: &Value, name: &str) -> Result<u64, String> {
    match value.get(name) {
        None | Some(Value::Null) => Ok(0),
        Some(number) => {
            let number = exact(number);
            let whole = number.denominator() == 1;
            u64::try_from(number.numerator())
                .ok()
                .filter(|_| whole)
                .ok_or(format!("{name} is {number}"))
        }
    }
}

impl Snapshot {
    pub fn read(root: &Value) -> Result<Snapshot, String> {
        let mut reader = Reader {
            queues: Vec::new(),
            applications: Vec::new(),
            names: Vec::new(),
            containers: 0,
        };
        reader.queue(root, None, false)?;
        let Reader {
            queues,
            applications,
            names,
            ..
        } = reader;
        Ok(Snapshot {
            tree: QueueTree::new(queues),
            applications,
            names,
        })
    }

    /// Runs one round.
    pub fn round(&self, settings: &RoundSettings) -> RoundChoice {
        Round::run(&self.tree, settings, &mut |leaf| {
            self.applications[leaf].clone()
        })
    }

    /// Returns the number of victims per application.
    pub fn victims(&self, outcome: &RoundChoice) -> BTreeMap<String, u64> {
        let mut victims = BTreeMap::new();
        for victim in &outcome.victims {
            *victims
                .entry(self.names[victim.application as usize].clone())
                .or_default() += 1;
        }
        victims
    }

    /// Describes ideal share and amount to take of each leaf, for debugging.
    pub fn workings(&self, outcome: &RoundChoice) -> String {
        let leaf = |number| {
            let name = &self.tree.queue(number).name;
            format!(
                "{name}: ideal {} obtain {}",
                outcome.ideal[number], outcome.obtain[number]
            )
        };
        self.tree.leaves().map(leaf).collect::<Vec<_>>().join(", ")
    }
}

impl Reader {
    fn queue(
        &mut self,
        value: &Value,
        parent: Option<usize>,
        disabled: bool,
    ) -> Result<(), String> {
        let number = self.queues.len();
        let disabled = disabled || value["preemption_disabled"].as_bool().unwrap_or(false);
        self.queues.push(QueueState {
            name: field(value, "path")?
                .as_str()
                .unwrap_or_default()
                .to_owned(),
            parent,
            guaranteed: exact(field(value, "guaranteed")?),
            maximum: exact(field(value, "max")?),
            used: amount(value, "used")?,
            reserved: amount(value, "reserved")?,
            killable: 0,
            pending: amount(value, "pending")?,
            priority: integer(value, "priority"),
            preemption_disabled: disabled,
        });
        let applications = value["apps"].as_array().into_iter().flatten();
        let applications = applications
            .map(|one| self.application(one))
            .collect::<Result<_, _>>()?;
        self.applications.push(applications);
        for child in value["children"].as_array().into_iter().flatten() {
            self.queue(child, Some(number), disabled)?;
        }
        Ok(())
    }

    fn application(&mut self, value: &Value) -> Result<Application, String> {
        let id = self.names.len() as u64;
        self.names
            .push(field(value, "id")?.as_str().unwrap_or_default().to_owned());
        let has_master = value["first_container_is_am"].as_bool().unwrap_or(false);
        let size = amount(value, "container_size")?;
        let reserved = self.containers(amount(value, "reserved_containers")?, size, false);
        let live = self.containers(amount(value, "live_containers")?, size, has_master);
        Ok(Application {
            id,
            user: value["user"].as_str().unwrap_or_default().to_owned(),
            priority: integer(value, "priority"),
            age: amount(value, "submit_index")?,
            pending: amount(value, "pending")?,
            reserved,
            live,
        })
    }

    fn containers(&mut self, count: u64, size: u64, has_master: bool) -> Vec<Container> {
        let first = self.containers;
        self.containers += count;
        let container = |id| {
            let is_master = has_master && id == first;
            let importance = u32::from(!is_master);
            let since = Time(id - first);
            Container {
                id,
                size,
                importance,
                since,
                node: None,
                is_master,
                is_killable: false,
            }
        };
        (first..self.containers).map(container).collect()
    }
}

fn integer(value: &Value, name: &str) -> i32 {
    value[name]
        .as_i64()
        .and_then(|number| i32::try_from(number).ok())
        .unwrap_or_default()
}

/// Returns the settings shared by all cases.
pub fn settings(config: &Value) -> Result<RoundSettings, String> {
    let share = |name: &str| -> Result<Ratio, String> { Ok(exact(field(config, name)?)) };
    Ok(RoundSettings {
        cluster: amount(config, "cluster_resource")?,
        total_per_round: share("total_preemption_per_round")?,
        dead_zone: share("max_ignored_over_capacity")?,
        natural_termination_factor: share("natural_termination_factor")?,
        masters_kept: config.get("max_am_share").map_or(Ratio::ZERO, exact),
        balance_beyond_guaranteed: config["balance_beyond_guaranteed"]
            .as_bool()
            .unwrap_or(false),
        ..RoundSettings::default()
    })
}

/// Compares the victims with the expectation of a case.
pub fn compare(
    snapshot: &Snapshot,
    outcome: &RoundChoice,
    case: &Value,
    acted: bool,
) -> Result<(), String> {
    let victims = if acted {
        snapshot.victims(outcome)
    } else {
        BTreeMap::new()
    };
    let expected = counts(field(&case["expect"], "complete_preempted_containers")?)?;
    let workings = || snapshot.workings(outcome);
    if victims != expected {
        return Err(format!(
            "took {victims:?} instead of {expected:?} ({})",
            workings()
        ));
    }
    for (name, count) in counts(field(&case["expect"], "asserted_by_source")?)? {
        let took = if name == "*" {
            victims.values().sum()
        } else {
            victims.get(&name).copied().unwrap_or_default()
        };
        if took != count {
            return Err(format!(
                "took {took} of {name} instead of {count} ({})",
                workings()
            ));
        }
    }
    Ok(())
}

/// Returns counts by name, without zeros except for the total.
fn counts(value: &Value) -> Result<BTreeMap<String, u64>, String> {
    let counts = value
        .as_object()
        .ok_or_else(|| format!("{value} is no table"))?;
    let count = |(name, count): (&String, &Value)| {
        let count = count.as_u64().ok_or_else(|| format!("{name} is {count}"))?;
        Ok((name.clone(), count))
    };
    counts.iter().map(count).collect()
}
