//! The command line of a guest: `--napreduce-guest map|reduce --plan F --task N --scratch D ...`.
//!
//! Owns its words. Does not own the plan. It is no command line for people, and no part of `--help`.

use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

use crate::forms::{GUEST_CHUNK_BYTES, GUEST_FRAME_BYTES_MAX};
use napreduce_engine::TaskKind;

/// What is wrong with the command line of a guest; another try has the same one.
#[derive(Debug, thiserror::Error)]
pub(super) enum ArgumentError {
    #[error("a guest is a map or a reduce, and {found:?} is neither")]
    NoKind { found: OsString },
    #[error(
        "{flag:?} is no argument of a guest; there are --plan, --task, --scratch, --part, --attempt, --chunk and --die-with"
    )]
    Unknown { flag: OsString },
    #[error("{flag} is missing")]
    Missing { flag: &'static str },
    #[error("{flag} cannot be {value:?}")]
    Value { flag: &'static str, value: OsString },
    #[error("there is no {kind} {task}: the plan has {tasks}")]
    NoTask { kind: TaskKind, task: u32, tasks: u32 },
    #[error("--part is for tasks that write a part, and this map's output goes to the reduces")]
    NoPart,
}

/// What a guest is told.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct GuestArguments {
    pub(super) kind: TaskKind,
    pub(super) plan: PathBuf,
    pub(super) task: u32,
    /// A directory for this attempt alone, made if it is missing.
    pub(super) scratch: PathBuf,
    /// The part file to write, in a directory that is there.
    pub(super) part: Option<PathBuf>,
    pub(super) attempt: u32,
    /// The longest chunk that a map writes.
    pub(super) chunk: usize,
    /// The process whose end is to be this one's.
    pub(super) die_with: Option<u32>,
}

impl GuestArguments {
    pub(super) fn parse(words: impl IntoIterator<Item = OsString>) -> Result<GuestArguments, ArgumentError> {
        let mut words = words.into_iter();
        let kind = match words.next() {
            Some(word) if word == "map" => TaskKind::Map,
            Some(word) if word == "reduce" => TaskKind::Reduce,
            found => return Err(ArgumentError::NoKind { found: found.unwrap_or_default() }),
        };
        let (mut plan, mut task, mut scratch, mut part) = (None, None, None, None);
        let (mut attempt, mut chunk, mut die_with) = (1, GUEST_CHUNK_BYTES, None);
        while let Some(flag) = words.next() {
            let mut value = |flag| words.next().ok_or(ArgumentError::Missing { flag });
            match flag.to_str() {
                Some("--plan") => plan = Some(value("--plan")?.into()),
                Some("--task") => task = Some(number("--task", &value("--task")?, 0)?),
                Some("--scratch") => scratch = Some(value("--scratch")?.into()),
                Some("--part") => part = Some(value("--part")?.into()),
                Some("--attempt") => attempt = number("--attempt", &value("--attempt")?, 1)?,
                Some("--chunk") => chunk = chunk_of(value("--chunk")?)?,
                Some("--die-with") => die_with = Some(number("--die-with", &value("--die-with")?, 1)?),
                _ => return Err(ArgumentError::Unknown { flag }),
            }
        }
        let missing = |flag| ArgumentError::Missing { flag };
        Ok(GuestArguments {
            kind,
            plan: plan.ok_or(missing("--plan"))?,
            task: task.ok_or(missing("--task"))?,
            scratch: scratch.ok_or(missing("--scratch"))?,
            part,
            attempt,
            chunk,
            die_with,
        })
    }
}

fn number(flag: &'static str, value: &OsStr, least: u32) -> Result<u32, ArgumentError> {
    let number = value.to_str().and_then(|text| text.parse().ok()).filter(|number| *number >= least);
    number.ok_or_else(|| ArgumentError::Value { flag, value: value.to_owned() })
}

fn chunk_of(value: OsString) -> Result<usize, ArgumentError> {
    let flag = "--chunk";
    let bytes = number(flag, &value, 1)?;
    match bytes <= GUEST_FRAME_BYTES_MAX {
        true => Ok(bytes as usize),
        false => Err(ArgumentError::Value { flag, value }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<GuestArguments, String> {
        GuestArguments::parse(line.split_whitespace().map(OsString::from)).map_err(|error| error.to_string())
    }

    #[test]
    fn a_guest_is_told_its_task() {
        let told =
            parse("reduce --plan p.json --task 3 --scratch s --part out/part --attempt 2 --die-with 7");
        let expected = GuestArguments {
            kind: TaskKind::Reduce,
            plan: "p.json".into(),
            task: 3,
            scratch: "s".into(),
            part: Some("out/part".into()),
            attempt: 2,
            chunk: GUEST_CHUNK_BYTES,
            die_with: Some(7),
        };
        assert_eq!(told, Ok(expected));
        let told = parse("map --plan p --task 0 --scratch s --chunk 65536").expect("it is whole");
        assert_eq!((told.kind, told.chunk, told.attempt), (TaskKind::Map, 65536, 1));
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (line, says) in [
            ("", "a guest is a map or a reduce, and \"\" is neither"),
            ("combine", "a guest is a map or a reduce, and \"combine\" is neither"),
            ("map --plan p --scratch s", "--task is missing"),
            ("map --plan", "--plan is missing"),
            ("map --task -1", "--task cannot be \"-1\""),
            ("map --attempt 0", "--attempt cannot be \"0\""),
            ("map --chunk 67108865", "--chunk cannot be \"67108865\""),
            ("map --parts p", "\"--parts\" is no argument of a guest; there are"),
        ] {
            let error = parse(line).expect_err(line);
            assert!(error.starts_with(says), "{error}");
        }
    }
}
