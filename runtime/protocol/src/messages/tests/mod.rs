//! Tests of the wire format: fixed bytes, limits, invalid bytes, and messages that arrive in pieces.

mod golden;
mod sampler;

use std::path::PathBuf;

use napreduce_engine::{AttemptId, FaultPlace, JobId, TaskId, TaskKind};
use proptest::collection::vec;
use proptest::prelude::*;

use super::*;
use crate::counters::CounterValues;
use crate::data_network::{DataNetwork, FetchLimits};
use crate::description::{
    MapInput, MapTask, MemoryFile, NamedPart, PartOutput, Place, ReduceTask, ReduceWork,
    TaskDescription, Work,
};
use crate::object_stores::PendingUpload;
use crate::secret::Secret;
use crate::splits::Split;
use crate::task_error::TaskError;
use crate::wire::*;

fn attempt(kind: TaskKind, index: u32, number: u32) -> AttemptId {
    AttemptId {
        task: TaskId {
            job: JobId(1),
            kind,
            index,
        },
        number,
    }
}

/// One of each message from a task.
fn messages_from_task() -> Vec<FromTask> {
    let mut counters = CounterValues::default();
    counters.add("bad rows", 3);
    counters.add("MAP_INPUT_RECORDS", 1 << 40);
    let lost = TaskError::lost_inputs("cannot read", vec![attempt(TaskKind::Map, 3, 1)]);
    vec![
        FromTask::Hello {
            version: PROTOCOL_VERSION,
        },
        FromTask::Progress {
            bytes_done: 1000,
            bytes_total: 70_000,
            signs: 3,
        },
        FromTask::CommitRequest {
            part: PartOutput {
                records: 1,
                bytes: 2,
                digest: u64::MAX,
                named: vec![NamedPart {
                    name: "errors".to_owned(),
                    records: 3,
                    bytes: 4,
                    digest: 5,
                    upload: None,
                }],
                upload: Some(PendingUpload {
                    id: "u1".to_owned(),
                    parts: vec!["\"e1\"".to_owned()],
                }),
            },
        },
        FromTask::Done {
            counters: counters.clone(),
            output_digest: None,
        },
        FromTask::Done {
            counters,
            output_digest: Some(u64::MAX),
        },
        FromTask::Failed(lost),
        FromTask::InputsLost {
            attempts: vec![attempt(TaskKind::Map, 3, 1)],
            place: FaultPlace::Path,
            reason: "gone".into(),
        },
        FromTask::Ready {
            epoch: 1,
            saves: true,
        },
        FromTask::Resumed { epoch: 300 },
        FromTask::Checkpointed { bytes: 1 << 33 },
        FromTask::Restored,
        FromTask::RestoreRefused {
            reason: "damaged".into(),
        },
        FromTask::StopSignalled,
    ]
}

fn outfit() -> Outfit {
    let variable = |name: &str, value: Option<&[u8]>| OutfitVariable {
        name: name.to_owned(),
        value: value.map(<[u8]>::to_vec),
    };
    let variables = vec![variable("A", Some(&[0xff, b'b'])), variable("C", None)];
    Outfit {
        variables,
        directory: Some(PathBuf::from("/scratch")),
    }
}

/// One of each message to a task, with paths that are not UTF-8.
fn messages_to_task() -> Vec<ToTask> {
    use std::os::unix::ffi::OsStringExt;
    let odd = PathBuf::from(std::ffi::OsString::from_vec(vec![b'/', 0xff, b'x']));
    let description = |work, promote_to| {
        let definition = "count".to_owned();
        let parameters = vec![0, 255];
        let attempt = attempt(TaskKind::Reduce, 7, 2);
        ToTask::Start(Box::new(TaskDescription {
            attempt,
            definition,
            parameters,
            memory: 1,
            work,
            promote_to,
            stored_checkpoints: Some("s3://b/out/_temporary/checkpoint-7".into()),
            sync_part: true,
        }))
    };
    let split = Split {
        path: odd.clone(),
        offset: 5,
        length: 6,
        file_length: 11,
        version: None,
    };
    let map = MapTask {
        split: split.into(),
        partitions: 2,
        cuts: vec![vec![], vec![1, 2]],
        compress: true,
        output: odd.clone(),
        memory_file: Some(MemoryFile {
            path: "/proc/7/fd/9".into(),
            bytes: 1 << 20,
        }),
        scratch: odd.clone(),
        checkpoint: odd.clone(),
        restore: None,
        durable: true,
    };
    let reduce = ReduceTask {
        partition: 7,
        inputs: vec![(attempt(TaskKind::Map, 0, 1), odd.clone())],
        consolidated: vec!["/shuffle/consolidated-1.segments".into()],
        inputs_are_partial: false,
        compress: false,
        output: odd.clone(),
        scratch: odd.clone(),
        checkpoint: odd.clone(),
        restore: Some(odd.clone()),
        durable: false,
    };
    let network = DataNetwork {
        token: Secret::from_bytes([9; 32]),
        encrypt: true,
        limits: FetchLimits::default(),
    };
    let inputs = vec![
        MapInput {
            attempt: attempt(TaskKind::Map, 1, 2),
            place: Place::Local(odd.clone()),
        },
        MapInput {
            attempt: attempt(TaskKind::Map, 2, 1),
            place: Place::Remote("there:7070".into()),
        },
    ];
    vec![
        description(Work::Map(map), None),
        description(
            Work::Reduce(ReduceWork {
                task: reduce,
                maps: 3,
                inputs: inputs.clone(),
                network: Some(network),
            }),
            Some(odd),
        ),
        ToTask::CommitGranted,
        ToTask::MoreInputs(inputs),
        ToTask::Suspend {
            epoch: 1,
            page_out: true,
        },
        ToTask::Resume {
            epoch: 1,
            suspended_nanos: u64::MAX,
        },
        ToTask::Checkpoint,
        ToTask::Outfit(outfit()),
    ]
}

fn frames<T: Outgoing>(messages: &[T]) -> Vec<u8> {
    messages
        .iter()
        .flat_map(|message| encode(message).unwrap())
        .collect()
}

#[test]
fn message_bytes_are_fixed() {
    let hello = encode(&FromTask::Hello { version: 1 }).unwrap();
    assert_eq!(hello, [2, 0, 0, 0, 0, 1]);
    let progress = encode(&FromTask::Progress {
        bytes_done: 1000,
        bytes_total: 70_000,
        signs: 3,
    })
    .unwrap();
    assert_eq!(
        progress,
        [10, 0, 0, 0, 1, 251, 0xe8, 3, 252, 0x70, 0x11, 1, 0, 3]
    );
    assert_eq!(encode(&ToTask::CommitGranted).unwrap(), [1, 0, 0, 0, 1]);
    let failed = TaskError::fatal("no");
    assert_eq!(
        encode(&FromTask::Failed(failed)).unwrap(),
        [9, 0, 0, 0, 4, 2, 0, 2, b'n', b'o', 0, 0, 0]
    );
}

#[test]
fn messages_survive_encoding() {
    let bytes = frames(&messages_from_task());
    let mut stream = bytes.as_slice();
    for message in messages_from_task() {
        assert_eq!(read_message(&mut stream).unwrap(), Some(message));
    }
    assert_eq!(read_message::<FromTask>(&mut stream).unwrap(), None);

    let bytes = frames(&messages_to_task());
    let mut stream = bytes.as_slice();
    for message in messages_to_task() {
        assert_eq!(read_message(&mut stream).unwrap(), Some(message));
    }
}

#[test]
fn stream_cut_in_frame_is_an_error() {
    let bytes = encode(&FromTask::Progress {
        bytes_done: 1,
        bytes_total: 2,
        signs: 0,
    })
    .unwrap();
    for length in 1..bytes.len() {
        let read = read_message::<FromTask>(&bytes[..length]);
        assert!(
            matches!(read, Err(WireError::CutShort)),
            "{length}: {read:?}"
        );
        let mut buffer = FrameBuffer::default();
        buffer.push(&bytes[..length]);
        assert_eq!(buffer.next_message::<FromTask>().unwrap(), None);
        assert!(!buffer.is_between_frames());
    }
}

#[test]
fn frame_above_limit_is_refused_before_reading() {
    let bytes = [1, 0, 0, 4, 0];
    let refused = "a message of 67108865 bytes is longer than the 67108864 bytes a frame may have";
    assert_eq!(
        read_message::<FromTask>(bytes.as_slice())
            .unwrap_err()
            .to_string(),
        refused
    );
    let mut buffer = FrameBuffer::default();
    buffer.push(&bytes);
    assert_eq!(
        buffer.next_message::<FromTask>().unwrap_err().to_string(),
        refused
    );
    let parameters = vec![0_u8; (64 << 20) + 1];
    assert!(encode(&parameters).is_err());
}

#[test]
fn message_shorter_than_frame_is_an_error() {
    let bytes = [3, 0, 0, 0, 0, 1, 9];
    let error = read_message::<FromTask>(bytes.as_slice()).unwrap_err();
    assert_eq!(
        error.to_string(),
        "a frame of 3 bytes holds a message of 2 bytes"
    );
}

#[test]
fn length_inside_message_is_not_trusted() {
    // Failed, Task, user code, and a text of 2^63 bytes.
    let bytes = [12, 0, 0, 0, 4, 1, 0, 253, 0, 0, 0, 0, 0, 0, 0, 0x80];
    assert!(matches!(
        read_message::<FromTask>(bytes.as_slice()),
        Err(WireError::Undecodable { .. })
    ));
}

#[test]
fn text_above_limit_of_its_frame_is_refused() {
    for (frame, claim) in [
        (20, 512 << 10),
        (64 << 10, 512 << 10),
        ((64 << 10) + 1, 512 << 20),
    ] {
        // Failed, Task, user code, and a text.
        let mut bytes = vec![4, 1, 0, 252];
        bytes.extend_from_slice(&(claim as u32).to_le_bytes());
        bytes.resize(frame, b'x');
        bytes.splice(..0, (frame as u32).to_le_bytes());
        let error = read_message::<FromTask>(bytes.as_slice())
            .unwrap_err()
            .to_string();
        assert!(error.contains("LimitExceeded"), "{frame}: {error}");
    }
}

proptest! {
    #[test]
    fn garbage_never_panics(bytes in vec(any::<u8>(), 0..200)) {
        let mut frame = (bytes.len() as u32).to_le_bytes().to_vec();
        frame.extend_from_slice(&bytes);
        for stream in [&bytes, &frame] {
            let _ = read_message::<FromTask>(stream.as_slice());
            let _ = read_message::<ToTask>(stream.as_slice());
        }
    }

    #[test]
    fn changed_byte_never_panics(at in any::<prop::sample::Index>(), to in any::<u8>()) {
        let mut bytes = frames(&messages_to_task());
        let at = at.index(bytes.len());
        bytes[at] = to;
        let mut buffer = FrameBuffer::default();
        buffer.push(&bytes);
        while let Ok(Some(_)) = buffer.next_message::<ToTask>() {}
    }

    #[test]
    fn frame_buffer_accepts_pieces_of_any_size(sizes in vec(1_usize..40, 1..200)) {
        let bytes = frames(&messages_from_task());
        let mut rest = bytes.as_slice();
        let mut buffer = FrameBuffer::default();
        let mut received = Vec::new();
        for size in sizes.iter().cycle() {
            if rest.is_empty() {
                break;
            }
            let (piece, after) = rest.split_at((*size).min(rest.len()));
            rest = after;
            buffer.push(piece);
            while let Some(message) = buffer.next_message::<FromTask>().unwrap() {
                received.push(message);
            }
        }
        prop_assert_eq!(received, messages_from_task());
        prop_assert!(buffer.is_between_frames());
    }
}
