//! Control of operating-system processes: starts, ends, stops and signals.

mod child;
mod command_process;
mod control_groups;
mod exit;
mod family;
mod fork_server;
mod forking;
mod heap;
mod identity;
mod kernel;
mod limits;
mod marker;
mod members;
mod memory;
mod orphans;
mod paging;
mod passing;
mod pauses;
mod prestart;
mod signals;
mod slice;
mod spawn;
mod stop_signals;
mod stops;

pub use child::TaskProcess;
pub use command_process::{CommandPlace, become_command, command_requested, start_command};
pub use control_groups::{ControlGroup, ControlGroups, OutOfMemory};
pub use exit::describe_exit;
pub use family::Family;
pub use heap::trim_heap;
pub use identity::{Life, ProcessIdentity};
pub use kernel::check_kernel;
pub use limits::{descriptors_max, raise_descriptors};
pub use marker::{is_idle, parent_of_task_process, stop_being_idle};
pub use members::await_stopped_members;
pub use memory::{
    ProcessMemory, SpareMemory, bytes_of, oom_kills, oom_score_adjustment, set_oom_score_adjustment,
    stalled_micros,
};
pub use paging::{PagedProcess, Paging, page_out_self};
pub use passing::Carrying;
pub use pauses::{PauseSignal, Pauses, stop_this_process};
pub(crate) use prestart::{PRESTART_VARIABLE, has_one_thread};
pub use signals::{Interrupts, exit_when_told, heed_hang_ups, outlive_terminate, signal_name};
pub use slice::run_soon_when_woken;
pub use spawn::{Executable, Launch, Spawner, TaskOutput, Variable};
pub use stop_signals::StopSignals;
pub use stops::{Awaited, ChildEvent, await_turn};
