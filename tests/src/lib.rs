//! Shared code of the whole-system tests: folders, clusters, programs, outputs.

mod engine_runs;
mod folder;
mod gated_job;
mod noted_job;
mod output;
mod own_cluster;
mod ports;
mod processes;
mod programs;
mod shared_cluster;
mod skipped;

pub use engine_runs::{
    assert_every_shape_is_as_embedded, assert_interrupted_leaves_nothing, assert_nothing_is_left,
    assert_same, without_cluster, write_input,
};
pub use folder::Folder;
pub use gated_job::{COUNTERS_OF_RECORDS, GatedJob};
pub use noted_job::NotedJob;
pub use output::{counter, joined, parts, report, sorted_lines};
pub use own_cluster::{NapUp, OwnCluster, wait_until};
pub use ports::free_address;
pub use processes::{Process, ending_signal, is_ignored};
pub use programs::{Ended, cluster, program, run};
pub use skipped::{is_required, skipped};
