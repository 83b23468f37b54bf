//! Receives the frames of a program: checks their order and handles each.

use std::collections::HashMap;

use napreduce_protocol::printing::print_error;
use napreduce_protocol::{CounterValues, TaskError};
use napreduce_task::{UserCounter, counter};
use serde::Deserialize;

use super::batch::InvalidBatch;
use super::frame::{Frame, FrameDecoder, FrameError, FrameKind};
use super::hello::Description;

/// Counters live as long as the process, so a program must not create them without limit.
const COUNTERS_MAX: usize = 1000;

/// A receiver of a program's output.
pub(super) trait TakeBatch {
    /// Takes the payload of one `O`.
    fn take_batch(&mut self, payload: &[u8]) -> Result<(), ProgramError>;

    /// Returns an error of an earlier output.
    fn check(&mut self) -> Result<(), TaskError>;
}

/// An error that ends the conversation with a program.
#[derive(Debug)]
pub(super) enum ProgramError {
    /// The program violated the protocol. The text completes the sentence "the program sent ...".
    Protocol(String),
    /// The program describes another job than at submission; a retry would not help.
    Changed,
    /// The program reported a failure.
    Failed(Failure),
}

impl From<FrameError> for ProgramError {
    fn from(error: FrameError) -> ProgramError {
        ProgramError::Protocol(match error {
            FrameError::TooLong { .. } => format!("{error}; raise --task-memory"),
            FrameError::Unknown { .. } => explain(&error),
        })
    }
}

/// Adds advice to the error for bytes that are not a frame.
pub(super) fn explain(error: &FrameError) -> String {
    match error {
        FrameError::Unknown { .. } => {
            format!("{error}; standard output carries only frames, so print to standard error")
        }
        FrameError::TooLong { .. } => error.to_string(),
    }
}

impl From<InvalidBatch> for ProgramError {
    fn from(error: InvalidBatch) -> ProgramError {
        ProgramError::Protocol(error.to_string())
    }
}

/// The payload of `X`.
#[derive(Debug, PartialEq, Eq, Deserialize)]
pub(super) struct Failure {
    /// The error, with a traceback if there is one.
    pub(super) message: String,
    /// The failed record, counted from 0, if there is one.
    #[serde(default)]
    pub(super) record: Option<u64>,
}

/// A program's answer to `S`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Answer {
    State(Vec<u8>),
    Stateless,
}

/// Receives the frames of one process.
#[derive(Debug)]
pub(super) struct Receiver {
    decoder: FrameDecoder,
    state: ProtocolState,
}

#[derive(Debug)]
struct ProtocolState {
    expected: Description,
    is_greeted: bool,
    is_state_requested: bool,
    is_input_ended: bool,
    is_finished: bool,
    answer: Option<Answer>,
    counters: HashMap<String, UserCounter>,
    /// Processed records or values, as reported by the program.
    done: u64,
}

impl Receiver {
    /// Creates a receiver of frames of up to `limit` bytes. The program must describe the `expected` job.
    pub(super) fn new(expected: Description, limit: usize) -> Receiver {
        let state = ProtocolState {
            expected,
            is_greeted: false,
            is_state_requested: false,
            is_input_ended: false,
            is_finished: false,
            answer: None,
            counters: HashMap::new(),
            done: 0,
        };
        Receiver {
            decoder: FrameDecoder::new(limit),
            state,
        }
    }

    /// Handles the frames that end in the next piece of output.
    pub(super) fn take(
        &mut self,
        piece: &[u8],
        out: &mut impl TakeBatch,
    ) -> Result<(), ProgramError> {
        self.decoder.push(piece);
        while let Some(frame) = self.decoder.next_frame()? {
            self.state.handle(frame, out)?;
        }
        Ok(())
    }

    /// Returns the number of processed records or values, as reported by the program.
    pub(super) fn done(&self) -> u64 {
        self.state.done
    }

    /// Allows the program to send its state.
    pub(super) fn expect_state(&mut self) {
        self.state.is_state_requested = true;
    }

    /// Allows the program to finish.
    pub(super) fn expect_finish(&mut self) {
        self.state.is_input_ended = true;
    }

    /// Returns the answer to the last request for the state.
    pub(super) fn answer(&self) -> Option<&Answer> {
        self.state.answer.as_ref()
    }

    /// Returns where the output ended, if it is incomplete: "the program ended ...".
    pub(super) fn missing(&self) -> Option<&'static str> {
        if self.decoder.is_inside() {
            Some("in the middle of a frame")
        } else if !self.state.is_greeted {
            Some("before its frame H")
        } else if self.state.is_state_requested {
            Some("before it sent the requested state")
        } else if !self.state.is_finished {
            Some("before its frame F")
        } else {
            None
        }
    }
}

impl ProtocolState {
    fn handle(&mut self, frame: Frame<'_>, out: &mut impl TakeBatch) -> Result<(), ProgramError> {
        let unexpected = |why: &str| {
            let kind = char::from(frame.kind.letter());
            Err(ProgramError::Protocol(format!("a frame {kind} {why}")))
        };
        match frame.kind {
            FrameKind::Failure => return Err(failure(frame.payload)),
            FrameKind::Hello if self.is_greeted => return unexpected("twice"),
            FrameKind::Hello => {
                if Description::read(frame.payload).map_err(ProgramError::Protocol)?
                    != self.expected
                {
                    return Err(ProgramError::Changed);
                }
                self.is_greeted = true;
            }
            _ if !self.is_greeted => return unexpected("before its frame H"),
            _ if self.is_finished => return unexpected("after its frame F"),
            FrameKind::Output if self.answer.is_some() => return unexpected("after its state"),
            FrameKind::Output => out.take_batch(frame.payload)?,
            FrameKind::Counters => self.count(frame.payload)?,
            FrameKind::Done => match frame.payload.try_into() {
                Ok(done) => self.done = u64::from_be_bytes(done),
                Err(_) => {
                    return unexpected(&format!("of {} bytes; expected 8", frame.payload.len()));
                }
            },
            FrameKind::Log => {
                // An empty line only reports progress.
                if !frame.payload.is_empty() {
                    print_error(format_args!(
                        "{}",
                        String::from_utf8_lossy(frame.payload).trim_end()
                    ));
                }
            }
            FrameKind::State | FrameKind::Stateless if !self.is_state_requested => {
                return unexpected("without a request");
            }
            FrameKind::State => self.set_answer(Answer::State(frame.payload.to_vec())),
            FrameKind::Stateless => self.set_answer(Answer::Stateless),
            FrameKind::Finished if !self.is_input_ended => {
                return unexpected("before the end of its input");
            }
            FrameKind::Finished => self.is_finished = true,
            FrameKind::RecordBatch
            | FrameKind::Group
            | FrameKind::Values
            | FrameKind::GroupEnd
            | FrameKind::Save
            | FrameKind::End => return unexpected("that only nap may send"),
        }
        Ok(())
    }

    fn set_answer(&mut self, answer: Answer) {
        self.is_state_requested = false;
        self.answer = Some(answer);
    }

    fn count(&mut self, payload: &[u8]) -> Result<(), ProgramError> {
        let amounts: HashMap<String, u64> = serde_json::from_slice(payload).map_err(|error| {
            ProgramError::Protocol(format!(
                "an invalid frame C: expected an object of names and non-negative integers: {error}"
            ))
        })?;
        for (name, amount) in amounts {
            if let Some(known) = self.counters.get(&name) {
                known.add(amount);
                continue;
            }
            if name.is_empty() || CounterValues::is_reserved(&name) {
                return Err(ProgramError::Protocol(format!(
                    "a frame C for the counter {name:?}, which is empty or reserved; choose another name"
                )));
            }
            if self.counters.len() == COUNTERS_MAX {
                return Err(ProgramError::Protocol(format!(
                    "a frame C for the counter {name:?}: too many counters (limit {COUNTERS_MAX})"
                )));
            }
            let own = counter(&name);
            own.add(amount);
            self.counters.insert(name, own);
        }
        Ok(())
    }
}

fn failure(payload: &[u8]) -> ProgramError {
    match serde_json::from_slice(payload) {
        Ok(failure) => ProgramError::Failed(failure),
        Err(error) => ProgramError::Protocol(format!("an invalid frame X: {error}")),
    }
}

#[cfg(test)]
mod tests {
    use super::super::hello::{Input, Saves, VERSION};
    use super::*;

    #[derive(Default)]
    struct Batches(Vec<Vec<u8>>);

    impl TakeBatch for Batches {
        fn take_batch(&mut self, payload: &[u8]) -> Result<(), ProgramError> {
            self.0.push(payload.to_vec());
            Ok(())
        }

        fn check(&mut self) -> Result<(), TaskError> {
            Ok(())
        }
    }

    const HELLO: (FrameKind, &str) = (FrameKind::Hello, r#"{"version":1,"input":"text"}"#);

    fn described() -> Description {
        Description {
            version: VERSION,
            input: Input::Text,
            reduce: false,
            combine: None,
            grouped: false,
            reduces: None,
            saves: Saves::default(),
        }
    }

    fn receive(receiver: &mut Receiver, frames: &[(FrameKind, &str)]) -> Result<Batches, String> {
        let mut batches = Batches::default();
        for (kind, payload) in frames {
            let frame = Frame {
                kind: *kind,
                payload: payload.as_bytes(),
            }
            .encoded()
            .expect("it is short");
            receiver
                .take(&frame, &mut batches)
                .map_err(|error| match error {
                    ProgramError::Protocol(what) => what,
                    other => format!("{other:?}"),
                })?;
        }
        Ok(batches)
    }

    #[test]
    fn conversation_runs_to_its_end() {
        let mut receiver = Receiver::new(described(), 100);
        assert_eq!(receiver.missing(), Some("before its frame H"));
        let batches = receive(
            &mut receiver,
            &[HELLO, (FrameKind::Output, "x"), (FrameKind::Output, "")],
        );
        assert_eq!(batches.expect("it is valid").0, [b"x".to_vec(), Vec::new()]);
        assert_eq!(receiver.missing(), Some("before its frame F"));
        receiver.expect_state();
        assert_eq!(
            receiver.missing(),
            Some("before it sent the requested state")
        );
        receive(&mut receiver, &[(FrameKind::State, "7")]).expect("it was asked");
        assert_eq!(receiver.answer(), Some(&Answer::State(b"7".to_vec())));
        receiver.expect_finish();
        receive(&mut receiver, &[(FrameKind::Finished, "")]).expect("it is at its end");
        assert_eq!(receiver.missing(), None);
        receiver
            .take(&[0], &mut Batches::default())
            .expect("more may come");
        assert_eq!(receiver.missing(), Some("in the middle of a frame"));
    }

    #[test]
    fn protocol_violations_are_reported() {
        for (frames, says) in [
            (
                &[(FrameKind::Output, "")][..],
                "a frame O before its frame H",
            ),
            (&[HELLO, HELLO], "a frame H twice"),
            (
                &[(FrameKind::Hello, r#"{"version":1,"input":"bytes"}"#)],
                "Changed",
            ),
            (
                &[HELLO, (FrameKind::State, "")],
                "a frame D without a request",
            ),
            (
                &[HELLO, (FrameKind::Stateless, "")],
                "a frame d without a request",
            ),
            (
                &[HELLO, (FrameKind::Finished, "")],
                "a frame F before the end of its input",
            ),
            (
                &[HELLO, (FrameKind::RecordBatch, "")],
                "a frame R that only nap may send",
            ),
            (
                &[HELLO, (FrameKind::Done, "7")],
                "a frame P of 1 bytes; expected 8",
            ),
            (
                &[HELLO, (FrameKind::Counters, "[1]")],
                "an invalid frame C: ",
            ),
            (
                &[HELLO, (FrameKind::Counters, r#"{"x":-1}"#)],
                "an invalid frame C: ",
            ),
            (
                &[HELLO, (FrameKind::Counters, r#"{"MAP_INPUT_RECORDS":1}"#)],
                "the counter \"MAP_INPUT_RECORDS\", which is empty or reserved",
            ),
            (
                &[HELLO, (FrameKind::Counters, r#"{"HOT_KEY x":1}"#)],
                "the counter \"HOT_KEY x\", which is empty or reserved",
            ),
            (&[(FrameKind::Failure, "oh")], "an invalid frame X: "),
            (
                &[(FrameKind::Failure, r#"{"message":"oh","record":3}"#)],
                r#"message: "oh", record: Some(3)"#,
            ),
        ] {
            let error = receive(&mut Receiver::new(described(), 100), frames)
                .err()
                .expect(says);
            assert!(error.contains(says), "{says}: {error}");
        }
    }

    #[test]
    fn processed_records_are_counted() {
        let mut receiver = Receiver::new(described(), 100);
        receive(
            &mut receiver,
            &[HELLO, (FrameKind::Done, "\0\0\0\0\0\0\x01\0")],
        )
        .expect("it is a number");
        assert_eq!(receiver.done(), 256);
    }

    #[test]
    fn output_after_state_is_rejected() {
        let mut receiver = Receiver::new(described(), 100);
        receiver.expect_state();
        let error = receive(
            &mut receiver,
            &[HELLO, (FrameKind::Stateless, ""), (FrameKind::Output, "")],
        )
        .err();
        assert_eq!(error.as_deref(), Some("a frame O after its state"));
    }

    #[test]
    fn counters_over_limit_are_rejected() {
        #[cfg(feature = "testing")]
        let _alone = crate::testing::counters_alone();
        let mut receiver = Receiver::new(described(), 1 << 20);
        let names = |from: usize, to: usize| {
            let pairs: Vec<String> = (from..to)
                .map(|number| format!("\"frames test {number}\":1"))
                .collect();
            format!("{{{}}}", pairs.join(","))
        };
        receive(
            &mut receiver,
            &[HELLO, (FrameKind::Counters, &names(0, COUNTERS_MAX))],
        )
        .expect("they are not too many");
        receive(&mut receiver, &[(FrameKind::Counters, &names(0, 3))]).expect("they are known");
        let error = receive(
            &mut receiver,
            &[(FrameKind::Counters, &names(COUNTERS_MAX, COUNTERS_MAX + 1))],
        )
        .err();
        assert_eq!(
            error.as_deref(),
            Some("a frame C for the counter \"frames test 1000\": too many counters (limit 1000)")
        );
        assert_eq!(counter("frames test 1").get(), 2);
    }
}
