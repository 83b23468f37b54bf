//! The task process: what runs the user's code for one attempt.
//!
//! Owns the context a body sees, its errors, and the process around it. Does not own its supervision (`worker`).

mod bell;
mod clock;
mod context;
mod control;
mod error;
pub(crate) mod gate;
mod main;
mod memory;
mod panics;
mod position;
mod presence;
mod progress;
mod promotion;

pub use context::TaskContext;
pub(crate) use error::is_limit;
pub use error::{TaskError, is_gone, no_try_helps};
pub use gate::{Ask, Boundary, Script, SuspendHooks};
pub use main::{task_process_main, task_process_requested};
pub use position::{Position, PositionUnit};
pub use presence::Presence;
pub use progress::{ReadPosition, TaskProgress, progress};
