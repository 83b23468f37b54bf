//! The engine as its driver sees it: scenarios in a small text vocabulary, and random events by seed.
//!
//! Owns the list of behaviours, one file each. The vocabulary is that of `napreduce_engine::scenarios`; tests of one
//! policy stand beside the policies.

mod auto;
mod changes;
mod choices;
mod commit;
mod containment;
mod conversion;
mod coverage;
mod determinism;
mod drains;
mod explain;
mod failures;
mod fault_places;
mod isolation;
mod jobs;
mod keeping;
mod leaving;
mod limits;
mod lost_outputs;
mod model;
mod moves;
mod operators;
mod preemption;
mod races;
mod random;
mod reservations;
mod saved_progress;
mod slowstart;
mod snapshots;
mod speculation;
mod states;
mod unreachable;
mod workers;
