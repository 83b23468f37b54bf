//! The short conversation in which a program describes its job, before the job exists.

use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::process::{Command, Stdio};

use napreduce_protocol::printing::print_error;
use napreduce_task::CommandPlace;

use super::frame::{FrameDecoder, FrameKind};
use super::frames_program::environment;
use super::hello::{Description, Greeting, Role, VERSION};
use super::talk::{Failure, Wrong};

/// Limit of a job description.
const ANSWER_BYTES_MAX: usize = 1 << 20;
const PIECE_BYTES: usize = 8 << 10;

/// What the program of a command says of its job; an error whose words go on after its name.
pub(super) fn ask(
    command: &str,
    parameters: &BTreeMap<String, String>,
    py_files: &[String],
    at: &CommandPlace,
) -> Result<Description, String> {
    let greeting = Greeting {
        version: VERSION,
        role: Role::Describe,
        attempt: None,
        input: None,
        parameters,
        restores: false,
        tells_done: false,
    };
    let greeting = greeting.frame(None).map_err(|error| format!("cannot be sent {error}"))?;
    let mut starting = Command::new("sh");
    starting.arg("-c").arg("--").arg(command).envs(at.environment.iter().map(|(name, value)| (name, value)));
    starting.envs(environment(at, py_files));
    if let Some(directory) = &at.directory {
        starting.current_dir(directory);
    }
    let starting = starting.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = starting.spawn().map_err(|error| format!("cannot be run by sh: {error}"))?;
    let told = match child.stdin.take() {
        // It may answer without reading its input.
        Some(mut input) => input.write_all(&greeting).or_else(|error| match error.kind() {
            io::ErrorKind::BrokenPipe => Ok(()),
            _ => Err(error),
        }),
        None => Ok(()),
    };
    let answered = match child.stdout.take() {
        Some(output) => answer(output),
        None => Ok(None),
    };
    if !matches!(answered, Ok(None)) {
        // It has answered, and may otherwise run forever.
        let _ = child.kill();
    }
    let status = child.wait().map_err(|error| format!("cannot be waited for: {error}"))?;
    match answered? {
        Some(description) => Ok(description),
        None if status.success() => told.map_or_else(
            |error| Err(format!("cannot be talked to: {error}")),
            |()| Err("ended before it had sent a frame H".to_owned()),
        ),
        None => Err(format!("ended with {status} before it had sent a frame H")),
    }
}

/// Reads until the description is complete; `None` if the output ends before.
fn answer(mut output: impl Read) -> Result<Option<Description>, String> {
    let mut decoder = FrameDecoder::new(ANSWER_BYTES_MAX);
    let mut piece = [0; PIECE_BYTES];
    loop {
        let read = match output.read(&mut piece) {
            Ok(0) => return Ok(None),
            Ok(read) => read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(format!("cannot be read from: {error}")),
        };
        decoder.push(&piece[..read]);
        if let Some(description) = described(&mut decoder)? {
            return Ok(Some(description));
        }
    }
}

/// What the frames that have come say.
fn described(decoder: &mut FrameDecoder) -> Result<Option<Description>, String> {
    let sent = |wrong: Wrong| match wrong {
        Wrong::Sent(what) => format!("sent {what}"),
        Wrong::Other(what) | Wrong::Failed(Failure { message: what, .. }) => what,
    };
    while let Some(frame) = decoder.next_frame().map_err(|error| sent(error.into()))? {
        match frame.kind {
            FrameKind::Hello => {
                return Description::read(frame.payload).map(Some).map_err(|what| format!("sent {what}"));
            }
            FrameKind::Failure => {
                let failure: Failure = serde_json::from_slice(frame.payload)
                    .map_err(|error| format!("sent a frame X that cannot be read: {error}"))?;
                return Err(format!("failed: {}", failure.message.trim_end()));
            }
            FrameKind::Log => {
                print_error(format_args!("{}", String::from_utf8_lossy(frame.payload).trim_end()))
            }
            other => return Err(format!("sent a frame {} before its frame H", char::from(other.letter()))),
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(command: &str) -> Result<Description, String> {
        ask(command, &BTreeMap::new(), &[], &CommandPlace::default())
    }

    #[test]
    fn a_program_says_what_its_job_is() {
        let hello = r#"printf '\0\0\0\034H{"version":1,"input":"text"}'"#;
        assert!(!answer(hello).expect("it is a hello").reduce);
    }

    #[test]
    fn what_is_wrong_with_an_answer_is_told() {
        for (command, says) in [
            ("true", "ended before it had sent a frame H"),
            ("exit 3", "ended with exit status: 3 before"),
            ("echo hello", r#"sent "hello\n" where a frame should begin; a program speaks frames there"#),
            (r"printf '\0\0\0\0O'", "sent a frame O before its frame H"),
            (r"printf '\377\0\0\0H'", "sent a frame H of 4278190080 bytes; one may have"),
            (r"printf '\0\0\0\2H{}'", "sent a frame H that cannot be read: missing field `version`"),
            (r#"printf '\0\0\0\020X{"message":"oh"}'"#, "failed: oh"),
            ("yes", "where a frame should begin"),
        ] {
            let error = answer(command).expect_err(says);
            assert!(error.contains(says), "{command}: {error}");
        }
    }
}
