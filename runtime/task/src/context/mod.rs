//! The user code's view of its attempt: progress, input position, and the gate at which it is suspended or
//! saved.

mod attempt;
mod bell;
mod clock;
mod gate;
mod position;
mod presence;
mod progress;

pub use attempt::TaskContext;
pub use gate::{Ask, Boundary, InFlight, Script, Supervisor, SuspendHooks};
pub use position::{Position, PositionUnit};
pub use presence::Presence;
pub use progress::{ReadPosition, Signs, TaskProgress, progress};
