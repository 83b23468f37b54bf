//! The cluster state: jobs, workers, live attempts, open requests, and the indices over them.
//!
//! `data` composes jobs, workers, attempts and the parts with private fields (`requests`, `slots`, `demand`,
//! `quarantine` and others); `view` and `explain` contain the queries. The rules for state changes are in the
//! engine.

mod accesses;
mod attempt;
mod by_bytes;
mod claims;
mod costs;
mod data;
mod deadlines;
mod demand;
mod departures;
mod exclusion;
mod explain;
mod faults;
mod free_workers;
mod gone;
mod health;
mod held_slots;
mod id_map;
mod image;
mod job;
mod job_slots;
mod job_view;
mod lengths;
mod live_numbers;
mod map_outputs;
mod pairs;
mod pending;
mod preempted;
mod quarantine;
mod rack_index;
mod racks;
mod requests;
mod slots;
mod suspended;
mod tally;
mod task;
mod task_set;
mod unread;
mod view;
mod worker;

pub use accesses::accesses;
pub(crate) use attempt::Saving;
pub use attempt::{Attempt, Suspension};
pub use claims::Claims;
pub(crate) use claims::Planned;
pub use costs::MeasuredCosts;
pub(crate) use data::Cluster;
pub(crate) use deadlines::Deadline;
pub use explain::{Explanation, Reason, ReasonCode};
pub(crate) use faults::RetryPause;
pub(crate) use free_workers::OfferOrder;
pub use health::{Blame, Exclusion};
pub(crate) use held_slots::UnusedSlot;
pub(crate) use image::ClusterImage;
pub use job::{DefaultOrder, Job};
pub use job_view::TaskHistory;
pub use lengths::Lengths;
pub use tally::{Fallbacks, Tally};
pub(crate) use task::WrittenOutput;
pub use view::ClusterView;
pub use worker::{Reservation, Worker};
