//! The simulator of napreduce: virtual workers and virtual time around the same Engine and the same schedulers.
//!
//! Owns virtual time, workers, failures, workloads and what is measured of a run. Does not own any rule about jobs, tasks
//! or slots: those are the engine's; nor what a user sees of it: that is the operator's command.
