//! The policies of napreduce: who gets a free slot, and whose slot is taken for whom.
//!
//! Owns one folder for each policy, and the table of them (`configuration`). Does not own what a policy is (the trait
//! `Scheduler` of the core) nor what is done with its decisions (the engine).

pub mod capacity;
mod composed;
mod configuration;
pub mod fair;
pub mod fcs;
mod fifo;
pub mod hfsp;
pub mod natjam;
mod preference;
pub mod serving;
pub mod trigger;

pub use composed::Composed;
pub use configuration::{
    ComposedSettings, SchedulerConfiguration, SchedulerError, SchedulerName, SchedulerTables,
    UnknownScheduler,
};
pub use fifo::Fifo;
