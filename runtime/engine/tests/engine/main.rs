//! Tests of the engine: scenarios in the language that `napreduce_engine::scenarios` defines, and random
//! events. Tests of single policies are in `napreduce-schedulers`.

mod auto;
mod changed_outputs;
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
mod time_left;
mod unreachable;
mod workers;
