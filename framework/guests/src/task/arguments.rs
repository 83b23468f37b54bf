//! The internal command line of a guest: `--napreduce-guest map|reduce --plan F --task N --scratch D ...`.

use std::path::PathBuf;

use clap::{Parser, ValueEnum};
use napreduce_engine::TaskKind;

use crate::forms::{GUEST_CHUNK_BYTES, GUEST_FRAME_BYTES_MAX};

/// The arguments of a guest.
#[derive(Debug, PartialEq, Eq, Parser)]
#[command(
    no_binary_name = true,
    disable_help_flag = true,
    override_usage = "see docs/spark.md for the arguments of guests"
)]
pub(super) struct GuestArguments {
    kind: GuestKind,
    #[arg(long)]
    pub(super) plan: PathBuf,
    #[arg(long)]
    pub(super) task: u32,
    /// Directory for this attempt only; created if missing.
    #[arg(long)]
    pub(super) scratch: PathBuf,
    /// The part file to write, in an existing directory.
    #[arg(long)]
    pub(super) part: Option<PathBuf>,
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    pub(super) attempt: u32,
    /// Maximum length of a chunk that a map writes.
    #[arg(long, default_value_t = GUEST_CHUNK_BYTES as u32,
          value_parser = clap::value_parser!(u32).range(1..=i64::from(GUEST_FRAME_BYTES_MAX)))]
    pub(super) chunk: u32,
    /// The process with which this one ends.
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..))]
    pub(super) die_with: Option<u32>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum GuestKind {
    Map,
    Reduce,
}

impl GuestArguments {
    pub(super) fn kind(&self) -> TaskKind {
        match self.kind {
            GuestKind::Map => TaskKind::Map,
            GuestKind::Reduce => TaskKind::Reduce,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<GuestArguments, String> {
        GuestArguments::try_parse_from(line.split_whitespace()).map_err(|error| error.to_string())
    }

    #[test]
    fn guest_arguments_name_task() {
        let arguments = parse(
            "reduce --plan p.json --task 3 --scratch s --part out/part --attempt 2 --die-with 7",
        );
        let expected = GuestArguments {
            kind: GuestKind::Reduce,
            plan: "p.json".into(),
            task: 3,
            scratch: "s".into(),
            part: Some("out/part".into()),
            attempt: 2,
            chunk: GUEST_CHUNK_BYTES as u32,
            die_with: Some(7),
        };
        assert_eq!(arguments, Ok(expected));
        let arguments =
            parse("map --plan p --task 0 --scratch s --chunk 65536").expect("it is whole");
        assert_eq!(
            (arguments.kind(), arguments.chunk, arguments.attempt),
            (TaskKind::Map, 65536, 1)
        );
    }

    #[test]
    fn invalid_guest_arguments_are_named() {
        for (line, says) in [
            ("", "<KIND>"),
            ("combine", "invalid value 'combine'"),
            ("map --plan p --scratch s", "--task <TASK>"),
            ("map --plan", "'--plan <PLAN>'"),
            ("map --task -1", "'-1'"),
            ("map --attempt 0", "invalid value '0' for '--attempt"),
            (
                "map --chunk 67108865",
                "invalid value '67108865' for '--chunk",
            ),
            ("map --parts p", "'--parts'"),
        ] {
            let error = parse(line).expect_err(line);
            assert!(error.contains(says), "{error}");
        }
    }
}
