//! Owns the jobs of the suite: their names, the data they read and how their programs are called.
//! Data are made elsewhere; what a job does is its program's business.

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use serde::Serialize;

use super::data::SuiteData;
use crate::error::SuiteJobError;
use crate::process::CommandLine;
use crate::program::Resources;

/// A job of the suite.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum SuiteJob {
    Wordcount,
    TermVector,
    InvertedIndex,
    SequenceCount,
    RankedInvertedIndex,
    SelfJoin,
    Terasort,
    KmeansMovies,
    Classification,
    HistogramMovies,
    HistogramRatings,
    AdjacencyList,
    CountMatches,
}

impl SuiteJob {
    pub const ALL: [SuiteJob; 13] = [
        SuiteJob::Wordcount,
        SuiteJob::TermVector,
        SuiteJob::InvertedIndex,
        SuiteJob::SequenceCount,
        SuiteJob::RankedInvertedIndex,
        SuiteJob::SelfJoin,
        SuiteJob::Terasort,
        SuiteJob::KmeansMovies,
        SuiteJob::Classification,
        SuiteJob::HistogramMovies,
        SuiteJob::HistogramRatings,
        SuiteJob::AdjacencyList,
        SuiteJob::CountMatches,
    ];

    /// The name of the job and of its binary.
    pub fn name(self) -> &'static str {
        match self {
            SuiteJob::Wordcount => "wordcount",
            SuiteJob::TermVector => "term-vector",
            SuiteJob::InvertedIndex => "inverted-index",
            SuiteJob::SequenceCount => "sequence-count",
            SuiteJob::RankedInvertedIndex => "ranked-inverted-index",
            SuiteJob::SelfJoin => "self-join",
            SuiteJob::Terasort => "terasort",
            SuiteJob::KmeansMovies => "kmeans-movies",
            SuiteJob::Classification => "classification",
            SuiteJob::HistogramMovies => "histogram-movies",
            SuiteJob::HistogramRatings => "histogram-ratings",
            SuiteJob::AdjacencyList => "adjacency-list",
            SuiteJob::CountMatches => "count-matches",
        }
    }

    pub(super) fn data(self) -> SuiteData {
        match self {
            SuiteJob::Wordcount
            | SuiteJob::TermVector
            | SuiteJob::InvertedIndex
            | SuiteJob::SequenceCount
            | SuiteJob::CountMatches => SuiteData::Documents,
            SuiteJob::RankedInvertedIndex => SuiteData::Sequences,
            SuiteJob::SelfJoin => SuiteData::Associations,
            SuiteJob::Terasort => SuiteData::Rows,
            SuiteJob::KmeansMovies
            | SuiteJob::Classification
            | SuiteJob::HistogramMovies
            | SuiteJob::HistogramRatings => SuiteData::Movies,
            SuiteJob::AdjacencyList => SuiteData::Edges,
        }
    }

    pub(super) fn wants_centroids(self) -> bool {
        matches!(self, SuiteJob::KmeansMovies | SuiteJob::Classification)
    }

    /// The job's binary in `folder`.
    ///
    /// # Errors
    ///
    /// [`SuiteJobError::Missing`] says how to build it.
    pub(super) fn binary(self, folder: &Path) -> Result<PathBuf, SuiteJobError> {
        let path = folder.join(self.name());
        let package = match self {
            SuiteJob::Wordcount | SuiteJob::Terasort => "napreduce-examples",
            _ => "napreduce-suite",
        };
        if path.is_file() {
            Ok(path)
        } else {
            Err(SuiteJobError::Missing { job: self.name(), path, package })
        }
    }

    /// The command that runs the job on the folder `input`, with as many reduces as there are slots.
    pub(super) fn command(
        self,
        binary: &Path,
        (input, centroids): (&Path, &Path),
        output: &Path,
        Resources { slots, task_memory }: Resources,
        reduces: u32,
    ) -> CommandLine {
        let command = CommandLine::new(binary)
            .arg(input)
            .flag("--output", output)
            .flag("--slots", slots.to_string())
            .flag("--reduces", reduces.to_string())
            .flag("--task-memory", task_memory.to_string())
            .flag("--progress", "never")
            .flag(if self == SuiteJob::Terasort { "--report-format" } else { "--format" }, "json");
        match self {
            SuiteJob::Terasort => command.flag("--format", "ascii"),
            // Words of the generated text have consonants and vowels in turn.
            SuiteJob::CountMatches => command.flag("--pattern", "n[aeiou]t[a-z]*"),
            _ if self.wants_centroids() => {
                let mut file = centroids.as_os_str().to_owned();
                file.push("#centroids");
                command.flag("--files", file)
            }
            _ => command,
        }
    }
}

impl FromStr for SuiteJob {
    type Err = SuiteJobError;

    fn from_str(name: &str) -> Result<SuiteJob, SuiteJobError> {
        let found = SuiteJob::ALL.into_iter().find(|job| job.name() == name);
        found.ok_or_else(|| {
            let known = SuiteJob::ALL.map(SuiteJob::name).join(", ");
            SuiteJobError::Unknown { name: name.to_owned(), known }
        })
    }
}

impl fmt::Display for SuiteJob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_read_back_and_others_are_refused() {
        for job in SuiteJob::ALL {
            assert_eq!(job.to_string().parse(), Ok(job));
        }
        let error = "sleep".parse::<SuiteJob>().unwrap_err().to_string();
        assert!(error.starts_with("no job \"sleep\"; choose from wordcount, term-vector, "), "{error}");
    }

    #[test]
    fn a_missing_binary_says_which_package_has_it() {
        let said = |job: SuiteJob| job.binary(Path::new("/nowhere")).unwrap_err().to_string();
        assert!(said(SuiteJob::Terasort).contains("-p napreduce-examples"), "{}", said(SuiteJob::Terasort));
        assert!(
            said(SuiteJob::SelfJoin)
                .contains("/nowhere/self-join; build it with `cargo build --release -p napreduce-suite`")
        );
    }

    #[test]
    fn the_command_is_the_programs_contract() {
        let resources = Resources { slots: 2, task_memory: napreduce_live::ByteSize::new(64 << 20) };
        let typed = |job: SuiteJob| {
            let inputs = ("in".as_ref(), "first.txt".as_ref());
            job.command(Path::new("bin"), inputs, Path::new("out"), resources, 3).typed()
        };
        let start = "bin in --output out --slots 2 --reduces 3 --task-memory 64MiB --progress never";
        assert_eq!(typed(SuiteJob::SelfJoin), format!("{start} --format json"));
        assert_eq!(typed(SuiteJob::Terasort), format!("{start} --report-format json --format ascii"));
        assert_eq!(
            typed(SuiteJob::Classification),
            format!("{start} --format json --files 'first.txt#centroids'")
        );
    }
}
