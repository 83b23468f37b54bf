//! The whole system as people meet it: jobs embedded and on clusters that a test starts for itself, guests of other
//! engines, commands, pages.
//!
//! Tests that need a process of their own are beside this folder: `on_cluster` and `on_cluster_network` run every program
//! on a cluster that the whole process shares, `preemption_swap` changes where the kernel of this machine swaps to, `chaos`
//! has a command line and a mount namespace of its own, and `structure` runs no program.

mod agreement;
mod browser;
mod deadlines;
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
mod named_outputs;
mod on_hadoop;
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
mod trace;
mod typed_pages;
