//! What a guest task and the engine that runs it say to each other: frames, the plan and reports.
//!
//! Owns their forms, which outlive no job but are read by engines of other people, and so say which version
//! they are of. Does not own what a guest does (`task`) nor who starts it (`submit`).

mod engine;
mod frames;
mod plan;
mod report;
mod sequence;
mod text_forms;

pub use engine::{ENGINE_FORMAT, EngineDescription, EngineEvent, JobRequest, PhaseCounts, SideFile};
pub use frames::{GUEST_CHUNK_BYTES, GUEST_FRAME_BYTES_MAX, GuestFrame, GuestFrameError, GuestFrameReader};
pub use plan::{GuestCheckpoints, GuestPlan};
pub use report::{GuestPart, GuestReport, MapsReport, PendingPart};
pub use sequence::{GuestFrameKind, GuestFrameSequence};
