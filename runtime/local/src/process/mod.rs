//! Control of operating-system processes: starts, ends, stops and signals.

mod child;
mod control_groups;
mod exit;
mod fork_server;
mod forking;
mod identity;
mod interrupts;
mod kernel;
mod limits;
mod members;
mod memory;
mod orphans;
mod pauses;
mod prestart;
mod spawn;
mod stops;

pub use child::TaskProcess;
pub use control_groups::{ControlGroup, ControlGroups, OutOfMemory};
pub use exit::describe_exit;
pub use identity::{Life, ProcessIdentity};
pub use interrupts::Interrupts;
pub use kernel::check_kernel;
pub use limits::{descriptors_max, raise_descriptors};
pub use members::await_stopped_members;
pub use memory::{
    ProcessMemory, SpareMemory, oom_kills, oom_score_adjustment, set_oom_score_adjustment, stalled_micros,
};
pub use pauses::{PauseSignal, Pauses, stop_this_process};
pub use spawn::{Executable, Launch, Spawner, TaskOutput, Variable};
pub use stops::{Awaited, ChildEvent, await_turn};
