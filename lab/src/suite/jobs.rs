//! Owns the jobs of the suite: their names, the data they read and how their programs are called.
//! Data are made elsewhere; what a job does is its program's business.

use std::path::{Path, PathBuf};

use napreduce_engine::listed;
use serde::Serialize;

use super::data::SuiteData;
use crate::process::CommandLine;
use crate::program::{ProgramError, Resources, find_binary};

listed! {
    /// A job of the suite.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
    #[serde(rename_all = "kebab-case")]
    pub enum SuiteJob {
        Wordcount = "wordcount",
        TermVector = "term-vector",
        InvertedIndex = "inverted-index",
        SequenceCount = "sequence-count",
        RankedInvertedIndex = "ranked-inverted-index",
        SelfJoin = "self-join",
        Terasort = "terasort",
        KmeansMovies = "kmeans-movies",
        Classification = "classification",
        HistogramMovies = "histogram-movies",
        HistogramRatings = "histogram-ratings",
        AdjacencyList = "adjacency-list",
        CountMatches = "count-matches",
    }
}

read_by_word!(SuiteJob: "no job");

impl SuiteJob {
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
    /// When it is not there; it is said how to build it.
    pub(super) fn binary(self, folder: &Path) -> Result<PathBuf, ProgramError> {
        let package = match self {
            SuiteJob::Wordcount | SuiteJob::Terasort => "napreduce-examples",
            _ => "napreduce-lab",
        };
        find_binary(folder, self.in_words(), package)
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
                .contains("/nowhere/self-join; build it with `cargo build --release -p napreduce-lab`")
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
