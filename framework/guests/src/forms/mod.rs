//! Messages between a guest task and its engine: frames, plans and reports. Third-party engines read them, so
//! each has a format version.

mod engine;
mod frames;
mod plan;
mod report;
mod sequence;
mod text_forms;

pub use engine::{
    ENGINE_FORMAT, EngineDescription, EngineEvent, JobRequest, PhaseCounts, SideFile,
};
pub use frames::{
    GUEST_CHUNK_BYTES, GUEST_FRAME_BYTES_MAX, GuestFrame, GuestFrameError, GuestFrameReader,
};
pub use plan::{GuestCheckpoints, GuestPlan};
pub use report::{GuestPart, GuestReport, MapsReport, PendingPart};
pub use sequence::{GuestFrameKind, GuestFrameSequence};
