//! The program of a job: how it is run, and the short conversation in which it describes its job.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::{self, Read, Write};
use std::process::{Command, Stdio};

use napreduce_protocol::printing::print_error;
use napreduce_task::CommandPlace;
use serde::{Deserialize, Serialize};

use super::frame::{FrameDecoder, FrameKind};
use super::hello::{Description, Greeting, Role, VERSION};
use super::receiver::{Failure, explain};

/// Tells the Python module to speak frames instead of running the job itself.
const SPEAK_VARIABLE: &str = "NAPREDUCE_FRAMES";
/// Without it, the iteration order of Python's sets differs between processes, and with it a map's output.
const HASH_VARIABLE: &str = "PYTHONHASHSEED";
/// Python searches next to the target of the program's link; side files are next to the link.
const MODULES_VARIABLE: &str = "PYTHONPATH";

/// Size limit of a job description.
const ANSWER_BYTES_MAX: usize = 1 << 20;
const PIECE_BYTES: usize = 8 << 10;

/// A program that speaks frames: the parameters of the job of `nap frames`.
///
/// ```no_run
/// use napreduce::streaming::frames::{FramesProgram, job};
///
/// let program = FramesProgram::ask("python3 wordcount.py", "wordcount.py", [("least".to_owned(), "2".to_owned())])?;
/// let words = job(&program);
/// # let _ = words;
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct FramesProgram {
    /// The command, for `sh -c`.
    pub(super) command: String,
    /// The name in messages.
    pub(super) name: String,
    pub(super) parameters: BTreeMap<String, String>,
    /// Names of side files that Python imports modules from.
    #[serde(default)]
    pub(super) py_files: Vec<String>,
    pub(super) description: Description,
}

impl FramesProgram {
    /// Runs `command` with `sh -c` and reads the description of its job. Messages call the program `name`.
    ///
    /// # Errors
    ///
    /// If the command cannot be run or violates [the protocol](super). The error names the program.
    pub fn ask(
        command: &str,
        name: &str,
        parameters: impl IntoIterator<Item = (String, String)>,
    ) -> io::Result<FramesProgram> {
        let inquiry = Inquiry {
            command: command.to_owned(),
            name: name.to_owned(),
            parameters: parameters.into_iter().collect(),
            py_files: Vec::new(),
        };
        inquiry
            .ask(&CommandPlace::default())
            .map_err(io::Error::other)
    }
}

/// A program that has not described its job yet.
pub(super) struct Inquiry {
    pub(super) command: String,
    pub(super) name: String,
    pub(super) parameters: BTreeMap<String, String>,
    pub(super) py_files: Vec<String>,
}

/// Environment variables of a program, in addition to those of all commands.
pub(super) fn environment(
    place: &CommandPlace,
    py_files: &[String],
) -> Vec<(&'static str, OsString)> {
    let mut variables = vec![(SPEAK_VARIABLE, OsString::from("1"))];
    if std::env::var_os(HASH_VARIABLE).is_none() {
        variables.push((HASH_VARIABLE, OsString::from("0")));
    }
    if let Some(directory) = &place.directory {
        let mut paths = directory.clone().into_os_string();
        for file in py_files {
            paths.push(":");
            paths.push(directory.join(file));
        }
        let own = place
            .environment
            .iter()
            .find(|(name, _)| *name == MODULES_VARIABLE);
        let before = own.map_or_else(
            || std::env::var_os(MODULES_VARIABLE),
            |(_, value)| Some(value.clone()),
        );
        if let Some(before) = before.filter(|before| !before.is_empty()) {
            paths.push(":");
            paths.push(before);
        }
        variables.push((MODULES_VARIABLE, paths));
    }
    variables
}

impl Inquiry {
    /// Runs the program at `place` until it has described its job. The error names the program.
    pub(super) fn ask(self, place: &CommandPlace) -> Result<FramesProgram, String> {
        let description = self
            .describe(place)
            .map_err(|what| format!("the program `{}` {what}", self.name))?;
        let Inquiry {
            command,
            name,
            parameters,
            py_files,
        } = self;
        Ok(FramesProgram {
            command,
            name,
            parameters,
            py_files,
            description,
        })
    }

    /// The error completes the sentence "the program ...".
    fn describe(&self, place: &CommandPlace) -> Result<Description, String> {
        let greeting = Greeting {
            version: VERSION,
            role: Role::Describe,
            attempt: None,
            input: None,
            parameters: &self.parameters,
            restores: false,
            tells_done: false,
        };
        let greeting = greeting
            .frame(None)
            .map_err(|error| format!("cannot be sent {error}"))?;
        let mut command = Command::new("sh");
        command.arg("-c").arg("--").arg(&self.command);
        command.envs(place.environment.iter().map(|(name, value)| (name, value)));
        command.envs(environment(place, &self.py_files));
        if let Some(directory) = &place.directory {
            command.current_dir(directory);
        }
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command
            .spawn()
            .map_err(|error| format!("cannot be run by sh: {error}"))?;
        let sent = match child.stdin.take() {
            // The program may answer without reading its input.
            Some(mut input) => input
                .write_all(&greeting)
                .or_else(|error| match error.kind() {
                    io::ErrorKind::BrokenPipe => Ok(()),
                    _ => Err(error),
                }),
            None => Ok(()),
        };
        let answer = match child.stdout.take() {
            Some(output) => read_answer(output),
            None => Ok(None),
        };
        if !matches!(answer, Ok(None)) {
            // The program has answered and might otherwise run forever.
            let _ = child.kill();
        }
        let status = child
            .wait()
            .map_err(|error| format!("cannot be waited for: {error}"))?;
        if let Some(description) = answer? {
            return Ok(description);
        }
        if !status.success() {
            return Err(format!("ended with {status} before its frame H"));
        }
        sent.map_err(|error| format!("cannot be sent a frame H: {error}"))?;
        Err("ended before its frame H".to_owned())
    }
}

/// Reads until the description is complete; returns `None` if the output ends before that.
fn read_answer(mut output: impl Read) -> Result<Option<Description>, String> {
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
        if let Some(description) = read_description(&mut decoder)? {
            return Ok(Some(description));
        }
    }
}

fn read_description(decoder: &mut FrameDecoder) -> Result<Option<Description>, String> {
    while let Some(frame) = decoder
        .next_frame()
        .map_err(|error| format!("sent {}", explain(&error)))?
    {
        match frame.kind {
            FrameKind::Hello => {
                return Description::read(frame.payload)
                    .map(Some)
                    .map_err(|what| format!("sent {what}"));
            }
            FrameKind::Failure => {
                let failure: Failure = serde_json::from_slice(frame.payload)
                    .map_err(|error| format!("sent an invalid frame X: {error}"))?;
                return Err(format!("failed: {}", failure.message.trim_end()));
            }
            FrameKind::Log => print_error(format_args!(
                "{}",
                String::from_utf8_lossy(frame.payload).trim_end()
            )),
            other => {
                return Err(format!(
                    "sent a frame {} before its frame H",
                    char::from(other.letter())
                ));
            }
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(command: &str) -> Result<Description, String> {
        let command = command.to_owned();
        let name = "test".to_owned();
        let inquiry = Inquiry {
            command,
            name,
            parameters: BTreeMap::new(),
            py_files: Vec::new(),
        };
        inquiry
            .ask(&CommandPlace::default())
            .map(|program| program.description)
    }

    #[test]
    fn program_describes_its_job() {
        let hello = r#"printf '\0\0\0\034H{"version":1,"input":"text"}'"#;
        assert!(!answer(hello).expect("it is a hello").reduce);
    }

    #[test]
    fn invalid_answer_is_reported() {
        for (command, says) in [
            ("true", "the program `test` ended before its frame H"),
            ("exit 3", "ended with exit status: 3 before"),
            (
                "echo hello",
                r#"sent "hello\n" where a frame should begin; standard output carries only frames"#,
            ),
            (r"printf '\0\0\0\0O'", "sent a frame O before its frame H"),
            (
                r"printf '\377\0\0\0H'",
                "sent a frame H of 4278190080 bytes (limit 1048576)",
            ),
            (
                r"printf '\0\0\0\2H{}'",
                "sent an invalid frame H: missing field `version`",
            ),
            (r#"printf '\0\0\0\020X{"message":"oh"}'"#, "failed: oh"),
            ("yes", "where a frame should begin"),
        ] {
            let error = answer(command).expect_err(says);
            assert!(error.contains(says), "{command}: {error}");
        }
    }
}
