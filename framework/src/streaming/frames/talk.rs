//! The frames of a program: their valid order, and the handling of each.

use std::collections::HashMap;

use napreduce_protocol::printing::print_error;
use napreduce_protocol::{Counter, TaskError};
use napreduce_task::{UserCounter, counter};
use serde::Deserialize;

use super::batch::NoBatch;
use super::frame::{Frame, FrameDecoder, FrameError, FrameKind};
use super::hello::Description;

/// Counters live as long as the process; a program that makes up names without end gets no more of them.
const COUNTERS_MAX: usize = 1000;

/// What takes the output of a program.
pub(super) trait TakeBatch {
    /// Takes the payload of one `O`.
    fn take_batch(&mut self, payload: &[u8]) -> Result<(), Wrong>;

    /// An error that was kept until now.
    fn check(&mut self) -> Result<(), TaskError>;
}

/// Why a program is not listened to any more.
#[derive(Debug)]
pub(super) enum Wrong {
    /// It has sent what it should not; the words go on with what that was.
    Sent(String),
    /// It is not the program that was submitted, which no further try changes.
    Other(String),
    /// It says itself that it has failed.
    Failed(Failure),
}

impl From<FrameError> for Wrong {
    fn from(error: FrameError) -> Wrong {
        Wrong::Sent(match error {
            FrameError::Unknown { .. } => {
                format!(
                    "{error}; a program speaks frames there and nothing else, and prints to standard error"
                )
            }
            FrameError::TooLong { .. } => format!("{error}, which is --task-memory"),
        })
    }
}

impl From<NoBatch> for Wrong {
    fn from(error: NoBatch) -> Wrong {
        Wrong::Sent(error.to_string())
    }
}

/// The payload of `X`.
#[derive(Debug, PartialEq, Eq, Deserialize)]
pub(super) struct Failure {
    /// For people, with a traceback where there is one.
    pub(super) message: String,
    /// Which of the records it was given, counted from 0, if it is about one.
    #[serde(default)]
    pub(super) record: Option<u64>,
}

/// What a program has answered to `S`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Answer {
    State(Vec<u8>),
    Stateless,
}

/// The program's side of one conversation.
#[derive(Debug)]
pub(super) struct Talk {
    decoder: FrameDecoder,
    course: Course,
}

#[derive(Debug)]
struct Course {
    expected: Description,
    is_greeted: bool,
    is_state_wanted: bool,
    is_end_said: bool,
    is_finished: bool,
    answer: Option<Answer>,
    counters: HashMap<String, UserCounter>,
    /// Records or values that it has done, by its own account.
    done: u64,
}

impl Talk {
    /// With a program whose job is known; no frame may have more than `limit` bytes.
    pub(super) fn new(expected: Description, limit: usize) -> Talk {
        let course = Course {
            expected,
            is_greeted: false,
            is_state_wanted: false,
            is_end_said: false,
            is_finished: false,
            answer: None,
            counters: HashMap::new(),
            done: 0,
        };
        Talk { decoder: FrameDecoder::new(limit), course }
    }

    /// Takes the next piece of what the program writes.
    pub(super) fn take(&mut self, piece: &[u8], out: &mut impl TakeBatch) -> Result<(), Wrong> {
        self.decoder.push(piece);
        while let Some(frame) = self.decoder.next_frame()? {
            self.course.handle(frame, out)?;
        }
        Ok(())
    }

    /// How many records or values it says to have done.
    pub(super) fn done(&self) -> u64 {
        self.course.done
    }

    /// It is asked for its state from here on.
    pub(super) fn want_state(&mut self) {
        self.course.is_state_wanted = true;
    }

    /// It is told that there is no more input.
    pub(super) fn say_end(&mut self) {
        self.course.is_end_said = true;
    }

    /// What it has answered when it was asked for its state.
    pub(super) fn answer(&self) -> Option<&Answer> {
        self.course.answer.as_ref()
    }

    /// What is missing when its output has come to its end, if something is.
    pub(super) fn missing(&self) -> Option<&'static str> {
        match &self.course {
            _ if self.decoder.is_inside() => Some("in the middle of a frame"),
            Course { is_greeted: false, .. } => Some("before it had sent a frame H"),
            Course { is_state_wanted: true, .. } => Some("before it had sent its state"),
            Course { is_finished: false, .. } => Some("before it had sent a frame F"),
            Course { .. } => None,
        }
    }
}

impl Course {
    fn handle(&mut self, frame: Frame<'_>, out: &mut impl TakeBatch) -> Result<(), Wrong> {
        let unexpected = |why: &str| {
            let kind = char::from(frame.kind.letter());
            Err(Wrong::Sent(format!("a frame {kind} {why}")))
        };
        match frame.kind {
            FrameKind::Failure => return Err(failure(frame.payload)),
            FrameKind::Hello if self.is_greeted => return unexpected("for a second time"),
            FrameKind::Hello => {
                let described = Description::read(frame.payload).map_err(Wrong::Sent)?;
                if described != self.expected {
                    return Err(Wrong::Other(
                        "describes another job than it did when that was submitted; what a program says of its job must \
                         not depend on where it runs"
                            .to_owned(),
                    ));
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
                    return unexpected(&format!("of {} bytes; it holds a number of 8", frame.payload.len()));
                }
            },
            FrameKind::Log => {
                // A program that is at work and has nothing to say says nothing.
                if !frame.payload.is_empty() {
                    print_error(format_args!("{}", String::from_utf8_lossy(frame.payload).trim_end()));
                }
            }
            FrameKind::State | FrameKind::Stateless if !self.is_state_wanted => {
                return unexpected("that nobody has asked for");
            }
            FrameKind::State => self.answers(Answer::State(frame.payload.to_vec())),
            FrameKind::Stateless => self.answers(Answer::Stateless),
            FrameKind::Finished if !self.is_end_said => return unexpected("before the end of its input"),
            FrameKind::Finished => self.is_finished = true,
            FrameKind::RecordBatch
            | FrameKind::Group
            | FrameKind::Values
            | FrameKind::GroupEnd
            | FrameKind::Save
            | FrameKind::End => return unexpected("which is for programs, and not from them"),
        }
        Ok(())
    }

    fn answers(&mut self, answer: Answer) {
        self.is_state_wanted = false;
        self.answer = Some(answer);
    }

    fn count(&mut self, payload: &[u8]) -> Result<(), Wrong> {
        let amounts: HashMap<String, u64> = serde_json::from_slice(payload).map_err(|error| {
            Wrong::Sent(format!("a frame C that is no object of names and whole numbers from 0 on: {error}"))
        })?;
        for (name, amount) in amounts {
            if let Some(known) = self.counters.get(&name) {
                known.add(amount);
                continue;
            }
            if name.is_empty() || Counter::of_word(&name).is_some() {
                return Err(Wrong::Sent(format!(
                    "a frame C for a counter {name:?}, which is not its own; choose another name"
                )));
            }
            if self.counters.len() == COUNTERS_MAX {
                return Err(Wrong::Sent(format!(
                    "more than {COUNTERS_MAX} counters, of which {name:?} is one"
                )));
            }
            let own = counter(&name);
            own.add(amount);
            self.counters.insert(name, own);
        }
        Ok(())
    }
}

fn failure(payload: &[u8]) -> Wrong {
    match serde_json::from_slice(payload) {
        Ok(failure) => Wrong::Failed(failure),
        Err(error) => Wrong::Sent(format!("a frame X that cannot be read: {error}")),
    }
}

#[cfg(test)]
mod tests {
    use super::super::hello::{Input, Saves, VERSION};
    use super::*;

    /// Takes everything.
    #[derive(Default)]
    struct Taken(Vec<Vec<u8>>);

    impl TakeBatch for Taken {
        fn take_batch(&mut self, payload: &[u8]) -> Result<(), Wrong> {
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

    fn said(talk: &mut Talk, frames: &[(FrameKind, &str)]) -> Result<Taken, String> {
        let mut taken = Taken::default();
        for (kind, payload) in frames {
            let frame = Frame { kind: *kind, payload: payload.as_bytes() }.encoded().expect("it is short");
            talk.take(&frame, &mut taken).map_err(|wrong| match wrong {
                Wrong::Sent(what) | Wrong::Other(what) => what,
                Wrong::Failed(failure) => format!("{failure:?}"),
            })?;
        }
        Ok(taken)
    }

    #[test]
    fn a_conversation_comes_to_its_end() {
        let mut talk = Talk::new(described(), 100);
        assert_eq!(talk.missing(), Some("before it had sent a frame H"));
        let taken = said(&mut talk, &[HELLO, (FrameKind::Output, "x"), (FrameKind::Output, "")]);
        assert_eq!(taken.expect("it is right").0, [b"x".to_vec(), Vec::new()]);
        assert_eq!(talk.missing(), Some("before it had sent a frame F"));
        talk.want_state();
        assert_eq!(talk.missing(), Some("before it had sent its state"));
        said(&mut talk, &[(FrameKind::State, "7")]).expect("it was asked");
        assert_eq!(talk.answer(), Some(&Answer::State(b"7".to_vec())));
        talk.say_end();
        said(&mut talk, &[(FrameKind::Finished, "")]).expect("it is at its end");
        assert_eq!(talk.missing(), None);
        talk.take(&[0], &mut Taken::default()).expect("more may come");
        assert_eq!(talk.missing(), Some("in the middle of a frame"));
    }

    #[test]
    fn each_broken_rule_is_told() {
        for (frames, says) in [
            (&[(FrameKind::Output, "")][..], "a frame O before its frame H"),
            (&[HELLO, HELLO], "a frame H for a second time"),
            (&[(FrameKind::Hello, r#"{"version":1,"input":"bytes"}"#)], "describes another job"),
            (&[HELLO, (FrameKind::State, "")], "a frame D that nobody has asked for"),
            (&[HELLO, (FrameKind::Stateless, "")], "a frame d that nobody has asked for"),
            (&[HELLO, (FrameKind::Finished, "")], "a frame F before the end of its input"),
            (&[HELLO, (FrameKind::RecordBatch, "")], "a frame R which is for programs, and not from them"),
            (&[HELLO, (FrameKind::Done, "7")], "a frame P of 1 bytes; it holds a number of 8"),
            (&[HELLO, (FrameKind::Counters, "[1]")], "a frame C that is no object"),
            (&[HELLO, (FrameKind::Counters, r#"{"x":-1}"#)], "a frame C that is no object"),
            (
                &[HELLO, (FrameKind::Counters, r#"{"MAP_INPUT_RECORDS":1}"#)],
                "a counter \"MAP_INPUT_RECORDS\", which is not its own",
            ),
            (&[(FrameKind::Failure, "oh")], "a frame X that cannot be read"),
            (&[(FrameKind::Failure, r#"{"message":"oh","record":3}"#)], r#"message: "oh", record: Some(3)"#),
        ] {
            let error = said(&mut Talk::new(described(), 100), frames).err().expect(says);
            assert!(error.contains(says), "{says}: {error}");
        }
    }

    #[test]
    fn what_a_program_has_done_is_known() {
        let mut talk = Talk::new(described(), 100);
        said(&mut talk, &[HELLO, (FrameKind::Done, "\0\0\0\0\0\0\x01\0")]).expect("it is a number");
        assert_eq!(talk.done(), 256);
    }

    #[test]
    fn output_after_a_state_would_be_lost_and_is_refused() {
        let mut talk = Talk::new(described(), 100);
        talk.want_state();
        let error = said(&mut talk, &[HELLO, (FrameKind::Stateless, ""), (FrameKind::Output, "")]).err();
        assert_eq!(error.as_deref(), Some("a frame O after its state"));
    }

    #[test]
    fn counters_beyond_the_limit_are_refused() {
        #[cfg(feature = "testing")]
        let _alone = crate::testing::counters_alone();
        let mut talk = Talk::new(described(), 1 << 20);
        let names = |from: usize, to: usize| {
            let pairs: Vec<String> = (from..to).map(|number| format!("\"frames test {number}\":1")).collect();
            format!("{{{}}}", pairs.join(","))
        };
        said(&mut talk, &[HELLO, (FrameKind::Counters, &names(0, COUNTERS_MAX))])
            .expect("they are not too many");
        said(&mut talk, &[(FrameKind::Counters, &names(0, 3))]).expect("they are known");
        let error = said(&mut talk, &[(FrameKind::Counters, &names(COUNTERS_MAX, COUNTERS_MAX + 1))]).err();
        assert_eq!(error.as_deref(), Some("more than 1000 counters, of which \"frames test 1000\" is one"));
        assert_eq!(counter("frames test 1").get(), 2);
    }
}
