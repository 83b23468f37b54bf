//! What the user's code sees of its attempt: how far it is, its place in the input, and its gate.
//!
//! Owns the boundary at which an attempt is suspended or saves its work. Does not own what runs the code
//! (`task_process`) nor its supervision (the worker).

mod attempt;
mod bell;
mod clock;
mod gate;
mod position;
mod presence;
mod progress;

pub use attempt::TaskContext;
pub use gate::{Ask, Boundary, Script, Supervisor, SuspendHooks};
pub use position::{Position, PositionUnit};
pub use presence::Presence;
pub use progress::{ReadPosition, Signs, TaskProgress, progress};
