//! Family `capacity-preemption-intraqueue`: one monitor round with the intra-queue pass.

use napreduce_schedulers::capacity::monitor::{IntraQueue, QueueSettings, RoundSettings};
use napreduce_schedulers::capacity::{ApplicationOrder, IntraQueueOrder};
use serde_json::Value;

use crate::oracles::capacity_snapshot::{Snapshot, amount, compare, field, settings};
use crate::oracles::cases::{self, exact};

#[test]
fn oracle_capacity_preemption_intraqueue() {
    cases::check("capacity-preemption-intraqueue", case_holds);
}

fn case_holds(case: &Value) -> Result<(), String> {
    let snapshot = Snapshot::read(field(case, "root")?)?;
    let config = field(case, "config")?;
    let order = match field(config, "app_ordering")?.as_str() {
        Some("fifo") => ApplicationOrder::Fifo,
        Some("fair") => ApplicationOrder::Fair,
        _ => return Err(format!("app_ordering is {}", config["app_ordering"])),
    };
    let intra_queue = match config.get("intra_queue_enabled") {
        Some(Value::Bool(false)) => None,
        _ => Some(intra_queue(config)?),
    };
    let minimum = &config["minimum_user_limit_percent"];
    let minimum_user_limit_percent = (!minimum.is_null()).then(|| exact(minimum));
    let queues = vec![
        QueueSettings {
            order,
            minimum_user_limit_percent
        };
        snapshot.tree.len()
    ];
    let settings = RoundSettings {
        intra_queue,
        queues,
        ..settings(config)?
    };
    compare(&snapshot, &snapshot.round(&settings), case, true)
}

fn intra_queue(config: &Value) -> Result<IntraQueue, String> {
    let order = match field(config, "intra_queue_order")?.as_str() {
        Some("userlimit_first") => IntraQueueOrder::UserLimitFirst,
        Some("priority_first") => IntraQueueOrder::PriorityFirst,
        _ => {
            return Err(format!(
                "intra_queue_order is {}",
                config["intra_queue_order"]
            ));
        }
    };
    Ok(IntraQueue {
        order,
        minimum_threshold: exact(field(config, "intra_queue_minimum_threshold")?),
        max_allowable_limit: exact(field(config, "intra_queue_max_allowable_limit")?),
        minimum_allocation: amount(config, "minimum_allocation")?,
    })
}
