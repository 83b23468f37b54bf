//! The protocols between napreduce's processes: messages between coordinator, worker, task process and
//! client, and their encoding (the only use of bincode). Depends only on `napreduce-engine`.

mod backoff;
mod claim_token;
mod commands;
mod counters;
mod data_network;
mod description;
mod detail;
mod digest;
#[cfg(any(test, feature = "fuzzing"))]
#[doc(hidden)]
pub mod fuzzing;
mod io_result;
mod lock;
mod messages;
mod object_stores;
pub mod path_bytes;
mod plan;
mod preemptions;
pub mod printing;
mod progress;
mod queues;
mod regular_file;
mod report;
mod samples;
mod secret;
mod splits;
mod storage_scheme;
mod submitted;
mod summaries;
mod task_error;
mod task_failure;
mod text;
mod units;
mod whole_time;
mod wire;

pub use backoff::{Backoff, jittered, jittered_by};
pub use claim_token::ClaimToken;
pub use commands::{CommandOutcome, JobCommand, TaskCommand};
pub use counters::{Counter, CounterValues, Counters};
pub use data_network::{DataNetwork, FetchLimits};
pub use description::{
    MapInput, MapTask, MemoryFile, NamedPart, PartOutput, Place, ReduceTask, ReduceWork,
    TaskDescription, Work,
};
pub use detail::{JobDetail, JobSettings};
pub use digest::{Blob, Digest, DigestError, SideFile};
pub use io_result::IoResult;
pub use lock::lock;
pub use messages::*;
pub use object_stores::{
    ObjectEntry, ObjectStores, PendingUpload, PutCondition, StoreError, StoredUpload,
    UPLOAD_PART_BYTES_MIN, UPLOAD_PARTS_MAX, UploadWriter, WrittenFigures,
};
pub use plan::{CheckpointSupport, JobPlan};
pub use preemptions::{PreemptionEnd, PreemptionSummary, RestoreSummary, ResumeSummary};
pub use progress::{JobProgress, PhaseProgress};
pub use queues::{QueueListing, QueueSlots, QueueSummary, SlotsWanted};
pub use regular_file::{
    open_named, open_regular, open_regular_with, read_bounded, read_named_text, read_regular,
    read_text, sync_parent,
};
pub use report::{JobEnd, JobError, JobReport, PartReport};
pub use samples::{ClusterSample, ClusterWindow, QueueSample, WorkerSample};
pub use secret::{SECRET_BYTES, Secret};
pub use splits::{FileStamp, InputSplit, Split};
pub use storage_scheme::StorageScheme;
pub use submitted::{Invocation, SchedulerTables, Submitted};
pub use summaries::{
    AttemptFigures, AttemptMoments, AttemptSummary, HistoryLine, JobPhase, JobSummary, LiveAttempt,
    LogStream, SuspendedMemory, TaskPhase, TaskSummary, WorkerMemory, WorkerPhase, WorkerSummary,
};
pub use task_error::{TaskError, is_gone, is_limit, mark_permanent};
pub use task_failure::{FailedRecord, TaskFailure};
pub use text::{check_name, one_line, several_lines, without_formula};
pub use units::{ByteSize, ByteSizeError, parse_time};
pub use whole_time::{whole_micros, whole_millis, whole_nanos};
pub use wire::{
    FrameBuffer, Incoming, Outgoing, WireError, encode, encode_onto, read_message, write_message,
};

/// The protocol versions, as printed by `--version`.
pub fn protocol_versions() -> String {
    format!(
        "network protocol {}, task protocol {PROTOCOL_VERSION}",
        NETWORK_VERSION
    )
}
