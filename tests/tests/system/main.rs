//! Tests of the whole system from outside: embedded jobs, clusters of single tests, guests of other engines,
//! commands, pages.
//!
//! Tests that need their own process are next to this folder: `on_cluster` and `on_cluster_network` share one
//! cluster per process, `preemption_swap` changes the swap of the machine, `chaos` has a command line and a
//! mount namespace, and `structure` runs no program.

mod browser;
mod changed_outputs;
mod completions;
mod deadlines;
mod demo;
mod driver_reads;
mod exported;
mod failures;
mod fault_places;
mod guest_checkpoints;
mod guests;
mod hard_inputs;
mod hard_records;
mod input_names;
mod isolation;
mod leaving_workers;
mod long_records;
mod named_outputs;
mod new_crates;
mod operating_commands;
mod outputs;
mod preemption_conversion;
mod preemption_embedded;
mod preemption_recovery;
mod preemption_schedulers;
mod prestarted;
mod printing;
mod progress;
mod python_programs;
mod racks;
mod recorded;
mod retries;
mod segment_memory;
mod several_hosts;
mod several_inputs;
mod side_files;
mod simulations;
mod slurm;
mod small_files;
mod small_outputs;
mod spark;
mod static_programs;
mod streaming;
mod time_left;
mod trace;
mod typed_pages;
