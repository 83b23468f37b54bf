//! Family `capacity-preemption-interqueue`: one monitor round over a tree of queues.

use serde_json::Value;

use crate::oracles::capacity_snapshot::{Snapshot, compare, field, settings};
use crate::oracles::cases;

#[test]
fn oracle_capacity_preemption_interqueue() {
    cases::check("capacity-preemption-interqueue", case_holds);
}

fn case_holds(case: &Value) -> Result<(), String> {
    let snapshot = Snapshot::read(field(case, "root")?)?;
    let config = field(case, "config")?;
    let outcome = snapshot.round(&settings(config)?);
    let observes = config["observe_only"].as_bool().unwrap_or(false);
    compare(&snapshot, &outcome, case, !observes)
}
