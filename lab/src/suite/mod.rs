//! The job suite as an experiment: every job by our program and by the peers that can express it, repetition after
//! repetition, on data that are made once.

mod report;

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Result, bail};
use clap::{Args, ValueEnum};
use datagen::associations::{self, AssociationsSettings};
use datagen::centroids::{self, CentroidsSettings};
use datagen::graph::{self, GraphSettings};
use datagen::movies::{self, MoviesSettings};
use datagen::output::{FileNames, OutputSettings};
use datagen::rows::Amount;
use datagen::tera::{self, RECORD_BYTES, TeraSettings};
use datagen::text::{self, TextSettings};
use napreduce_engine::listed;
use napreduce_protocol::{ByteSize, parse_time};
pub use report::{SuiteConditions, SuiteJobReport, SuiteReport};
use serde::Serialize;
use xxhash_rust::xxh3::xxh3_128;

use crate::contest::{Arena, Contender, Contest, Program};
use crate::error::{cannot, usage};
use crate::machine::Machine;
use crate::outputs::{OutputDigest, READ, first_job_counters, output_files};
use crate::peers::{self, InstalledPeer, PeerTool, Places, Script, Wanted};
use crate::process::{CommandLine, Interrupt, Sampling, run};
use crate::program::{BenchmarkJob, Resources, find_binary};
use crate::session::Session;
use crate::workspace::WorkFolder;

/// Room for data of each kind, intermediate files and outputs, for each byte of size: sequences alone take
/// twice their text.
const ROOM_PER_BYTE: u64 = 12;

#[derive(Clone, Debug, Args)]
pub struct SuiteSettings {
    /// About how much of each kind of data
    #[arg(long, value_name = "SIZE", default_value = "64MiB")]
    pub size: ByteSize,
    /// Jobs [default: all thirteen]
    #[arg(long, value_name = "NAME,...", value_delimiter = ',')]
    pub jobs: Option<Vec<SuiteJob>>,
    /// Measured runs of each contender
    #[arg(long, value_name = "N", default_value = "3", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub repetitions: u32,
    /// Exactly these peers: duckdb, polars [default: those that are found]
    #[arg(long, value_name = "NAME,...", value_delimiter = ',')]
    pub peers: Option<Vec<PeerTool>>,
    /// A Python that has DuckDB or Polars installed [default: python3, if there is one]
    #[arg(long, value_name = "PATH")]
    pub python: Option<PathBuf>,
    /// A contender that takes longer for one job is ended, and named
    #[arg(long, value_name = "TIME", default_value = "15m", value_parser = parse_time)]
    pub time_max: Duration,
    #[command(flatten)]
    pub resources: Resources,
}

pub fn suite(settings: &SuiteSettings, session: &Session) -> Result<SuiteReport> {
    let mut jobs = settings
        .jobs
        .clone()
        .unwrap_or_else(|| SuiteJob::ALL.to_vec());
    jobs.sort_unstable();
    jobs.dedup();
    let binaries = jobs
        .iter()
        .map(|job| job.binary(&session.binaries))
        .collect::<Result<Vec<_>>>()?;
    let mut peers = settings.peers.iter().flatten();
    if let Some(peer) = peers.find(|peer| !SuiteJob::ALL.iter().any(|job| formulates(**peer, *job)))
    {
        return Err(usage(format_args!(
            "peer {peer} has no formulation of the suite; choose duckdb or polars"
        )));
    }
    let room = ByteSize::new(settings.size.bytes().saturating_mul(ROOM_PER_BYTE));
    let work = WorkFolder::make(&session.work, room)?;
    session.log_kept_folder(&work);
    let python = settings.python.clone().or_else(python_of_the_path);
    let wanted = Wanted {
        peers: settings.peers.as_deref(),
        python: python.as_deref(),
    };
    let found = peers::find(wanted, work.path(), &session.interrupt)?;
    found
        .remarks
        .iter()
        .filter(|remark| !remark.starts_with("sort"))
        .for_each(|remark| session.log(remark));
    let arena = Arena {
        work: &work,
        session,
        rounds: settings.repetitions,
        sampling: Sampling::Off,
    };
    let inputs = SuiteInputs::make(&jobs, settings, &arena)?;
    let mut contests = Vec::new();
    for (&job, binary) in jobs.iter().zip(&binaries) {
        let Some(input) = inputs.of(job) else {
            continue;
        };
        let work = Work {
            job,
            binary,
            input,
            centroids: &inputs.centroids,
            resources: settings.resources,
            settings,
        };
        contests.push(work.reference(&arena, &found.installed)?);
    }
    for repetition in 1..=settings.repetitions {
        for (contest, _) in &mut contests {
            arena.round(contest, repetition)?;
        }
    }
    let finished = contests
        .into_iter()
        .map(|(contest, report)| SuiteJobReport {
            contenders: contest.reports(),
            ..report
        });
    Ok(SuiteReport {
        experiment: "suite",
        machine: Machine::describe(),
        conditions: SuiteConditions {
            size: settings.size,
            repetitions: settings.repetitions,
            resources: settings.resources,
        },
        jobs: finished.collect(),
    })
}

fn python_of_the_path() -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path)
        .map(|folder| folder.join("python3"))
        .find(|program| program.is_file())
}

listed! {
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, ValueEnum)]
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

impl SuiteJob {
    fn data(self) -> SuiteData {
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

    fn wants_centroids(self) -> bool {
        matches!(self, SuiteJob::KmeansMovies | SuiteJob::Classification)
    }

    fn binary(self, folder: &Path) -> Result<PathBuf> {
        let package = match self {
            SuiteJob::Wordcount | SuiteJob::Terasort => "napreduce-examples",
            _ => "napreduce-lab",
        };
        find_binary(folder, self.in_words(), package)
    }

    /// The command of our program, with as many reduces as the experiment has slots.
    fn command(
        self,
        binary: &Path,
        places: JobPlaces<'_>,
        resources: Resources,
        reduces: u32,
    ) -> CommandLine {
        let command = CommandLine::new(binary)
            .arg(places.input)
            .flag("--output", places.output)
            .flag("--slots", resources.slots.to_string())
            .flag("--reduces", reduces.to_string())
            .flag("--task-memory", resources.task_memory.to_string())
            .flag("--progress", "never")
            .flag(
                if self == SuiteJob::Terasort {
                    "--report-format"
                } else {
                    "--format"
                },
                "json",
            );
        match self {
            SuiteJob::Terasort => command.flag("--format", "ascii"),
            // Words of the generated text alternate consonants and vowels.
            SuiteJob::CountMatches => command.flag("--pattern", "n[aeiou]t[a-z]*"),
            _ if self.wants_centroids() => {
                let mut file = places.centroids.as_os_str().to_owned();
                file.push("#centroids");
                command.flag("--files", file)
            }
            _ => command,
        }
    }
}

#[derive(Clone, Copy)]
struct JobPlaces<'a> {
    input: &'a Path,
    centroids: &'a Path,
    output: &'a Path,
}

const DUCKDB: &str = include_str!("formulations/suite_duckdb.py");
const POLARS: &str = include_str!("formulations/suite_polars.py");

/// Whether a peer has a formulation of the job.
fn formulates(peer: PeerTool, job: SuiteJob) -> bool {
    match (peer, job) {
        // A sum of 32-bit numbers in the order of the input cannot be a query.
        (_, SuiteJob::KmeansMovies) => false,
        (PeerTool::DuckDb, _) => true,
        (PeerTool::Polars, job) => {
            !matches!(job, SuiteJob::Classification | SuiteJob::AdjacencyList)
        }
        (PeerTool::Sort | PeerTool::Coreutils | PeerTool::PySpark | PeerTool::Bare, _) => false,
    }
}

/// One job of the suite.
#[derive(Clone, Copy)]
struct Work<'a> {
    job: SuiteJob,
    binary: &'a Path,
    input: &'a SuiteInput,
    centroids: &'a Path,
    resources: Resources,
    settings: &'a SuiteSettings,
}

impl<'a> Work<'a> {
    /// Runs our program with one slot. Its output is the reference of the contest.
    fn reference(
        self,
        arena: &Arena<'_>,
        installed: &'a [InstalledPeer],
    ) -> Result<(Contest<'a>, SuiteJobReport)> {
        let job = self.job;
        let session = arena.session;
        let folder = arena.work.fresh("run")?;
        let one_slot = Work {
            resources: Resources {
                slots: 1,
                ..self.resources
            },
            ..self
        };
        let command = one_slot.our_command(&folder);
        let usage = run(&command, &folder, Sampling::Off, &session.interrupt)?;
        session.log(format!("{job} with one slot: {:.3} s", usage.wall_seconds));
        let output = folder.join("out");
        let digest = OutputDigest::read(&output)?;
        let lines = LineSet::of(&output)?;
        let counters = first_job_counters(&folder.join(format!("{job}.out")))?;
        let mut contenders = vec![Contender::ours(Ours {
            work: self,
            reference: digest,
        })];
        for peer in installed.iter().filter(|found| formulates(found.peer, job)) {
            let theirs = Theirs {
                work: self,
                peer,
                reference: lines,
            };
            contenders.push(Contender::new(
                peer.peer.in_words(),
                peer.version.clone(),
                theirs,
            ));
        }
        let input = self.input.folder.clone();
        let contest = Contest {
            title: job.to_string(),
            job: job.in_words(),
            input,
            contenders,
        };
        Ok((
            contest,
            SuiteJobReport::new(job, self.input.bytes, ByteSize::new(lines.bytes), &counters),
        ))
    }

    fn our_command(&self, folder: &Path) -> CommandLine {
        let output = folder.join("out");
        let places = JobPlaces {
            input: &self.input.folder,
            centroids: self.centroids,
            output: &output,
        };
        let reduces = self.settings.resources.slots;
        self.job
            .command(self.binary, places, self.resources, reduces)
            .within(self.settings.time_max)
    }
}

struct Ours<'a> {
    work: Work<'a>,
    reference: OutputDigest,
}

impl Program for Ours<'_> {
    fn command(&self, folder: &Path) -> Result<CommandLine> {
        Ok(self.work.our_command(folder))
    }

    /// Every byte counts.
    fn check(&self, output: &Path, _: &Interrupt) -> Result<()> {
        if OutputDigest::read(output)? != self.reference {
            bail!("wrong output: other bytes than those of the run with one slot");
        }
        Ok(())
    }
}

struct Theirs<'a> {
    work: Work<'a>,
    peer: &'a InstalledPeer,
    reference: LineSet,
}

impl Program for Theirs<'_> {
    fn command(&self, folder: &Path) -> Result<CommandLine> {
        let Work {
            job,
            input,
            centroids,
            resources,
            settings,
            ..
        } = self.work;
        let output = folder.join("out");
        fs::create_dir(&output).map_err(cannot("make", &output))?;
        let part = output.join("part-r-00000");
        let places = Places {
            input: &input.folder,
            output: &part,
            scratch: folder,
        };
        let command = if job == SuiteJob::Terasort {
            // The rows are one file.
            let file = input.folder.join("part-00000");
            self.peer.command(
                BenchmarkJob::Terasort,
                Places {
                    input: &file,
                    ..places
                },
                resources,
            )?
        } else {
            let text = if self.peer.peer == PeerTool::Polars {
                POLARS
            } else {
                DUCKDB
            };
            let script = Script {
                name: "suite",
                text,
                first: Some(job.in_words()),
            };
            let command = self.peer.script(script, places, resources)?;
            if job.wants_centroids() {
                command.arg(centroids)
            } else {
                command
            }
        };
        Ok(command.within(settings.time_max))
    }

    /// The order of lines is free.
    fn check(&self, output: &Path, _: &Interrupt) -> Result<()> {
        if let Some(difference) = self.reference.difference(&LineSet::of(output)?) {
            bail!("wrong output: {difference}");
        }
        Ok(())
    }
}

/// A fingerprint of the lines of an output that does not depend on their order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct LineSet {
    lines: u64,
    bytes: u64,
    /// Sum of the hashes of all lines, so that repeated lines count.
    sum: u128,
}

impl LineSet {
    /// The fingerprint of the files in `folder`, except names that begin with `_` or `.`.
    fn of(folder: &Path) -> Result<LineSet> {
        let mut set = LineSet {
            lines: 0,
            bytes: 0,
            sum: 0,
        };
        for file in output_files(folder).map_err(cannot(READ, folder))? {
            set.add(&file).map_err(cannot(READ, &file))?;
        }
        Ok(set)
    }

    fn add(&mut self, file: &Path) -> std::io::Result<()> {
        let mut reader = BufReader::with_capacity(1 << 20, File::open(file)?);
        let mut line = Vec::new();
        while reader.read_until(b'\n', &mut line)? > 0 {
            self.bytes += line.len() as u64;
            self.lines += 1;
            self.sum = self.sum.wrapping_add(xxh3_128(&line));
            line.clear();
        }
        Ok(())
    }

    /// Describes how an output differs from the expected lines.
    fn difference(&self, found: &LineSet) -> Option<String> {
        if found == self {
            return None;
        }
        Some(if found.lines == self.lines {
            format!("some of {} lines differ from ours", self.lines)
        } else {
            format!("{} lines where ours have {}", found.lines, self.lines)
        })
    }
}

/// How many documents the text is divided into.
const DOCUMENTS: u32 = 16;
/// The most centroids; small data have fewer movies.
const CENTROIDS: [u32; 3] = [16, 4, 1];

listed! {
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
    enum SuiteData {
        Documents = "documents",
        Rows = "rows",
        Movies = "movies",
        Associations = "associations",
        Edges = "edges",
        /// The output of sequence-count for the documents.
        Sequences = "sequences",
    }
}

/// A folder of files, and the bytes in them.
#[derive(Clone, Debug)]
struct SuiteInput {
    folder: PathBuf,
    bytes: ByteSize,
}

#[derive(Debug)]
struct SuiteInputs {
    made: BTreeMap<SuiteData, SuiteInput>,
    centroids: PathBuf,
}

impl SuiteInputs {
    /// Makes the inputs of `jobs`, with about the size in the settings for each kind of data.
    fn make(jobs: &[SuiteJob], settings: &SuiteSettings, arena: &Arena<'_>) -> Result<SuiteInputs> {
        let centroids = arena.work.path().join("centroids.txt");
        let mut inputs = SuiteInputs {
            made: BTreeMap::new(),
            centroids,
        };
        for job in jobs {
            let data = job.data();
            if data == SuiteData::Sequences {
                inputs.make_one(SuiteData::Documents, settings.size, arena)?;
                inputs.count_sequences(settings.resources, arena)?;
            } else {
                inputs.make_one(data, settings.size, arena)?;
            }
        }
        Ok(inputs)
    }

    fn of(&self, job: SuiteJob) -> Option<&SuiteInput> {
        self.made.get(&job.data())
    }

    fn make_one(&mut self, data: SuiteData, size: ByteSize, arena: &Arena<'_>) -> Result<()> {
        if self.made.contains_key(&data) {
            return Ok(());
        }
        let session = arena.session;
        session.log(format!("making {} of {}", size.rounded(), data.in_words()));
        let folder = arena.work.path().join(data.in_words());
        let output = OutputSettings {
            watch: session.interrupt.watch(),
            ..OutputSettings::new(&folder)
        };
        let bytes = generate(data, size.bytes(), output);
        // Report an interrupt as such, regardless of the call that noticed it.
        session.interrupt.check()?;
        let input = SuiteInput {
            folder,
            bytes: ByteSize::new(bytes?),
        };
        if data == SuiteData::Movies {
            self.draw_centroids(&input.folder, session)?;
        }
        self.made.insert(data, input);
        Ok(())
    }

    /// Draws as many centroids as there are movies for.
    fn draw_centroids(&self, movies: &Path, session: &Session) -> Result<()> {
        let draw = |clusters| {
            centroids::generate(&CentroidsSettings {
                movies: vec![movies.to_owned()],
                clusters,
                seed: 42,
                file: self.centroids.clone(),
                overwrite: false,
                watch: session.interrupt.watch(),
            })
        };
        let [most, some, one] = CENTROIDS;
        let drawn = draw(most).or_else(|_| draw(some)).or_else(|_| draw(one));
        session.interrupt.check()?;
        Ok(drawn?)
    }

    fn count_sequences(&mut self, resources: Resources, arena: &Arena<'_>) -> Result<()> {
        let job = SuiteJob::SequenceCount;
        let session = arena.session;
        let (Some(documents), false) =
            (self.of(job), self.made.contains_key(&SuiteData::Sequences))
        else {
            return Ok(());
        };
        session.log("counting sequences for ranked-inverted-index");
        let folder = arena.work.fresh("run")?;
        let output = arena.work.path().join(SuiteData::Sequences.in_words());
        let places = JobPlaces {
            input: &documents.folder,
            centroids: &self.centroids,
            output: &output,
        };
        let command = job.command(
            &job.binary(&session.binaries)?,
            places,
            resources,
            resources.slots,
        );
        run(&command, &folder, Sampling::Off, &session.interrupt)?;
        let bytes = ByteSize::new(LineSet::of(&output)?.bytes);
        self.made.insert(
            SuiteData::Sequences,
            SuiteInput {
                folder: output,
                bytes,
            },
        );
        Ok(())
    }
}

fn generate(data: SuiteData, bytes: u64, output: OutputSettings) -> Result<u64> {
    let amount = Amount::Bytes(bytes);
    let written = match data {
        SuiteData::Documents | SuiteData::Sequences => {
            let output = OutputSettings {
                files: DOCUMENTS,
                names: FileNames::Documents,
                ..output
            };
            text::generate(&TextSettings::new(bytes, output))?
        }
        SuiteData::Rows => {
            let records = bytes / RECORD_BYTES as u64;
            tera::generate(&TeraSettings {
                records,
                start: 0,
                format: tera::Format::Ascii,
                output,
            })?
        }
        SuiteData::Movies => movies::generate(&MoviesSettings::new(amount, output))?,
        SuiteData::Associations => {
            associations::generate(&AssociationsSettings::new(amount, output))?
        }
        SuiteData::Edges => graph::generate(&GraphSettings::new(amount, output))?,
    };
    Ok(written.bytes)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn missing_binary_error_names_its_package() {
        let message = |job: SuiteJob| job.binary(Path::new("/nowhere")).unwrap_err().to_string();
        assert!(
            message(SuiteJob::Terasort).contains("-p napreduce-examples"),
            "{}",
            message(SuiteJob::Terasort)
        );
        assert!(message(SuiteJob::SelfJoin).contains(
            "/nowhere/self-join; build it with `cargo build --release -p napreduce-lab`"
        ));
    }

    #[test]
    fn commands_follow_the_contract_of_job_programs() {
        let resources = Resources {
            slots: 2,
            task_memory: ByteSize::new(64 << 20),
        };
        let typed = |job: SuiteJob| {
            let input = "in".as_ref();
            let centroids = "first.txt".as_ref();
            let output = "out".as_ref();
            job.command(
                Path::new("bin"),
                JobPlaces {
                    input,
                    centroids,
                    output,
                },
                resources,
                3,
            )
            .typed()
        };
        let start =
            "bin in --output out --slots 2 --reduces 3 --task-memory 64MiB --progress never";
        assert_eq!(typed(SuiteJob::SelfJoin), format!("{start} --format json"));
        assert_eq!(
            typed(SuiteJob::Terasort),
            format!("{start} --report-format json --format ascii")
        );
        assert_eq!(
            typed(SuiteJob::Classification),
            format!("{start} --format json --files 'first.txt#centroids'")
        );
    }

    fn set(parts: &[(&str, &str)]) -> LineSet {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in parts {
            fs::write(folder.path().join(name), text).unwrap();
        }
        LineSet::of(folder.path()).unwrap()
    }

    #[test]
    fn line_sets_ignore_order_and_files() {
        let one = set(&[
            ("part-r-00000", "a\nb\n"),
            ("part-r-00001", "b\n"),
            ("_SUCCESS", "{}"),
        ]);
        assert_eq!(one.difference(&set(&[("lines", "b\na\nb\n")])), None);
        let fewer = one.difference(&set(&[("lines", "b\na\n")]));
        assert_eq!(fewer.as_deref(), Some("2 lines where ours have 3"));
        let other = one.difference(&set(&[("lines", "b\na\na\n")]));
        assert_eq!(other.as_deref(), Some("some of 3 lines differ from ours"));
        assert_eq!(one.bytes, 6);
    }
}
