//! Command line of `datagen`.

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, Parser, Subcommand};
use datagen::output::FILES_MAX;
use datagen::sizes::{parse_bytes, parse_count};
use datagen::tera::Format;
use datagen::text::{EXPONENT_MAX, VOCABULARY_MAX};
use std::path::PathBuf;

use super::suite::{AssociationsArguments, CentroidsArguments, GraphArguments, MoviesArguments};

/// Generate and validate standard data sets
///
/// The same arguments give the same bytes on every machine, regardless of the number of files.
#[derive(Debug, Parser)]
#[command(name = "datagen", version, after_help = EXAMPLES)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) command: Command,
}

const EXAMPLES: &str = "\
Examples:
  datagen tera --records 10M --output in         1 GB of records to sort
  datagen text --bytes 1GiB --output words       words to count
  datagen movies --movies 10k --output movies    movies with their reviews
  datagen validate out                           is the sorted output in order?

Exit status: 0 success, 1 failed or not in order, 2 invalid arguments or input";

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Tera(TeraArguments),
    Text(TextArguments),
    Movies(MoviesArguments),
    Centroids(CentroidsArguments),
    Associations(AssociationsArguments),
    Graph(GraphArguments),
    Validate(ValidateArguments),
}

/// Write records of 100 bytes with random keys, as TeraGen and gensort do
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  datagen tera --records 10M --output in
  datagen tera --records 1G --format hadoop --files 64 --output in
  datagen tera --records 5M --start 5M --output second-half")]
pub(crate) struct TeraArguments {
    /// Number of records, optionally with k, M, G or T for powers of 1000
    #[arg(long, value_name = "N", value_parser = parse_count)]
    pub(crate) records: u64,

    /// Number of the first record, to generate a set in slices
    #[arg(long, value_name = "N", default_value = "0", value_parser = parse_count)]
    pub(crate) start: u64,

    /// Record layout: gensort text, Hadoop TeraGen or incompressible gensort binary
    #[arg(long, default_value = Format::default().name(), value_parser = format_parser())]
    pub(crate) format: Format,

    #[command(flatten)]
    pub(crate) destination: Destination,
}

/// Write lines of words with the frequencies of natural language
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  datagen text --bytes 1GiB --output words
  datagen text --bytes 100MB --vocabulary 5M --exponent 0.8 --output many-keys
  datagen text --bytes 1GB --files 8 --seed 7 --output words
  datagen text --bytes 10MB --documents 100 --output books")]
pub(crate) struct TextArguments {
    /// Size of the text in bytes, optionally with kB, MB, GB, TB or KiB, MiB, GiB, TiB
    #[arg(long, value_name = "SIZE", value_parser = parse_bytes)]
    pub(crate) bytes: u64,

    /// Number of distinct words
    #[arg(long, value_name = "N", default_value = "200000", value_parser = parse_vocabulary)]
    pub(crate) vocabulary: u32,

    /// The word of rank R is used in proportion to 1 / R^EXPONENT
    #[arg(long, default_value = "1.05", value_parser = parse_exponent)]
    pub(crate) exponent: f64,

    /// Random seed
    #[arg(long, default_value = "42")]
    pub(crate) seed: u64,

    /// Write N files named document-00000.txt, ..., for jobs that use the names of documents
    #[arg(long, value_name = "N", conflicts_with = "files", value_parser = files_parser())]
    pub(crate) documents: Option<u32>,

    #[command(flatten)]
    pub(crate) destination: Destination,
}

#[derive(Debug, Args)]
pub(crate) struct Destination {
    /// Directory for the part files part-00000, ...
    #[arg(long, value_name = "DIR")]
    pub(crate) output: PathBuf,

    /// Number of part files
    #[arg(long, value_name = "N", default_value = "1", value_parser = files_parser())]
    pub(crate) files: u32,

    /// Replace the part files of an earlier output once the new ones are complete
    #[arg(long)]
    pub(crate) overwrite: bool,

    /// Number of threads; 0 is one per core
    #[arg(long, value_name = "N", default_value = "0")]
    pub(crate) threads: usize,

    /// Print neither progress nor summary
    #[arg(long)]
    pub(crate) quiet: bool,
}

/// Check records of 100 bytes: order, duplicate keys, checksum
///
/// Prints to standard output. Keys are the first 10 bytes, compared as unsigned bytes; equal keys are in
/// order. The checksum is the sum of the CRC-32 of all records, independent of their order.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  datagen validate out
  datagen validate --format ascii out/part-r-00000 out/part-r-00001
  datagen validate --json in | jq -r .checksum

Exit status: 0 in order, 1 not in order, 2 invalid arguments or input")]
pub(crate) struct ValidateArguments {
    /// Files in order, or directories whose files are read in name order; names that start with _ or . are
    /// skipped
    #[arg(required = true, value_name = "PATH")]
    pub(crate) inputs: Vec<PathBuf>,

    /// Also check that every record has this layout
    #[arg(long, value_parser = format_parser())]
    pub(crate) format: Option<Format>,

    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,

    /// Number of threads; 0 is one per core
    #[arg(long, value_name = "N", default_value = "0")]
    pub(crate) threads: usize,

    /// Print no progress
    #[arg(long)]
    pub(crate) quiet: bool,
}

fn format_parser() -> impl TypedValueParser<Value = Format> {
    PossibleValuesParser::new(Format::ALL.map(Format::name)).map(|name| {
        let has_name = |format: &Format| format.name() == name;
        Format::ALL
            .into_iter()
            .find(has_name)
            .expect("the parser accepts only names of formats")
    })
}

fn files_parser() -> impl TypedValueParser<Value = u32> {
    clap::value_parser!(u32).range(1..=i64::from(FILES_MAX))
}

fn parse_vocabulary(text: &str) -> Result<u32, String> {
    let words = parse_count(text).map_err(|error| error.to_string())?;
    u32::try_from(words)
        .ok()
        .filter(|words| (2..=VOCABULARY_MAX).contains(words))
        .ok_or_else(|| format!("choose 2 to {VOCABULARY_MAX} words"))
}

pub(super) fn parse_exponent(text: &str) -> Result<f64, String> {
    let exponent: f64 = text.parse().map_err(|_| "not a number".to_owned())?;
    if (0.0..=EXPONENT_MAX).contains(&exponent) {
        Ok(exponent)
    } else {
        Err(format!("choose 0 to {EXPONENT_MAX}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn arguments_definition_passes_clap_checks() {
        Arguments::command().debug_assert();
    }

    fn check_rejected(line: &str, expected: &str) {
        let error = Arguments::try_parse_from(line.split(' ')).expect_err(line);
        assert_eq!(error.exit_code(), 2, "{line}");
        assert!(error.to_string().contains(expected), "{line}: {error}");
    }

    #[test]
    fn arguments_invalid_value_names_the_choices() {
        check_rejected("datagen tera --output out", "--records");
        check_rejected(
            "datagen tera --records 10 --output out --format csv",
            "ascii, hadoop, gensort",
        );
        check_rejected(
            "datagen tera --records ten --output out",
            "a size such as 10M",
        );
        check_rejected(
            "datagen tera --records 10 --output out --files 0",
            "not in 1..=100000",
        );
        check_rejected(
            "datagen text --bytes 1k --output out --vocabulary 1",
            "choose 2 to 10000000 words",
        );
        check_rejected(
            "datagen text --bytes 1k --output out --exponent NaN",
            "choose 0 to 10",
        );
        check_rejected("datagen validate", "<PATH>");
    }
}
