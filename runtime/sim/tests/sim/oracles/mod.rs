//! The numeric cases of `tests/oracles/`. `NAPREDUCE_ORACLES` names another directory with cases of the same
//! families and format.

mod assignment_order;
mod baselines;
mod capacity_interqueue;
mod capacity_intraqueue;
mod capacity_snapshot;
mod capacity_timeline;
mod cases;
mod edf_llf;
mod fair_preemption;
mod fair_shares;
mod fcs;
mod fluid;
mod fluid_single_server;
mod fsp_with_size_errors;
mod hfsp;
mod natjam;
mod preemption_primitives;
mod queueing_theory;
mod reference_defaults;
mod swim;

/// The known families; each has its own test.
const FAMILIES: [&str; 16] = [
    "assignment-order",
    "capacity-monitor-timeline",
    "capacity-preemption-interqueue",
    "capacity-preemption-intraqueue",
    "edf-llf",
    "fair-preemption",
    "fair-shares",
    "fcs",
    "fluid-single-server",
    "fsp-with-size-errors",
    "hfsp",
    "natjam",
    "preemption-primitives",
    "queueing-theory",
    "reference-defaults",
    "swim-trace-facts",
];

#[test]
fn oracle_files_have_known_families() {
    for file in cases::files() {
        assert!(
            FAMILIES.contains(&file.family.as_str()),
            "{}: unknown family {}",
            file.path,
            file.family
        );
    }
}
