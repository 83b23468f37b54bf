//! Control of operating-system processes: starts, ends, stops and signals.

mod child;
mod control;
mod control_groups;
mod exit;
mod family;
mod fork_server;
mod forking;
mod identity;
mod interrupts;
mod kernel;
mod launch;
mod limits;
mod memory;
mod orphans;
mod pauses;
mod prestart;
mod processes;
mod spawn;
mod stops;
mod threads;

pub use control::ControlChannel;
pub use control_groups::{ControlGroup, ControlGroups, OutOfMemory};
pub use exit::describe_exit;
pub(crate) use identity::host;
pub use identity::{Life, ProcessIdentity};
pub use interrupts::{Interrupts, end_at_interrupt, is_ignored, survive_file_size_limit};
pub use kernel::check_kernel;
pub use launch::{Executable, Launch, TaskOutput, Variable};
pub use limits::{descriptors_max, raise_descriptors};
pub use memory::{ProcessMemory, SpareMemory};
pub use pauses::{PauseSignal, Pauses, stop_this_process};
pub use processes::{Pending, Processes, TaskProcess};
pub use spawn::Spawner;
pub use stops::{Awaited, ChildEvent};
pub use threads::TaskThreads;
