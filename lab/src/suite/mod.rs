//! The job suite as an experiment: every job by our program and by the peers that can express it, in turn,
//! repetition after repetition, on data that are made once. An output that differs takes its contender out.

mod report;

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Result;
use clap::Args;
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
pub use report::{SuiteConditions, SuiteContender, SuiteJobReport, SuiteReport};
use serde::Serialize;
use xxhash_rust::xxh3::xxh3_128;

use crate::error::{cannot, usage};
use crate::input;
use crate::machine::Machine;
use crate::outputs::first_job_counters;
use crate::outputs::{OutputDigest, READ, output_files};
use crate::peers::{self, InstalledPeer, PeerTool, Places};
use crate::process::{CommandLine, Interrupt, Sampling, run};
use crate::program::{Resources, find_binary};
use crate::session::Session;
use crate::workspace::{WorkFolder, remove};

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
    let mut jobs = settings.jobs.clone().unwrap_or_else(|| SuiteJob::ALL.to_vec());
    jobs.sort_unstable();
    jobs.dedup();
    let binaries =
        jobs.iter().map(|job| Ok((*job, job.binary(&session.binaries)?))).collect::<Result<Vec<_>>>()?;
    if let Some(&peer) =
        settings.peers.iter().flatten().find(|peer| !SuiteJob::ALL.iter().any(|job| formulates(**peer, *job)))
    {
        return Err(usage(format_args!(
            "peer {peer} has no formulation of the suite; choose duckdb or polars"
        )));
    }
    let room = ByteSize::new(settings.size.bytes().saturating_mul(ROOM_PER_BYTE));
    let folder = WorkFolder::make(&session.work, room)?;
    if session.work.keep {
        session.say(format!("keeping everything in {}", folder.path().display()));
    }
    let python = settings.python.clone().or_else(python_of_the_path);
    let wanted = (settings.peers.as_deref(), python.as_deref());
    let found = peers::find(wanted, folder.path(), &session.interrupt)?;
    found.remarks.iter().filter(|remark| !remark.starts_with("sort")).for_each(|remark| session.say(remark));
    let inputs = SuiteInputs::make(&jobs, settings.size, settings.resources, &folder, session)?;
    let run = Run { settings, session, folder: &folder };
    let mut bouts = Vec::new();
    for (job, binary) in &binaries {
        if let Some(input) = inputs.of(*job) {
            bouts.push(run.first(*job, binary, (input, &inputs.centroids), &found.installed)?);
        }
    }
    for repetition in 1..=settings.repetitions {
        for bout in &mut bouts {
            run.repeat(bout, repetition)?;
        }
    }
    Ok(SuiteReport {
        experiment: "suite",
        machine: Machine::describe(),
        conditions: SuiteConditions {
            size: settings.size,
            repetitions: settings.repetitions,
            resources: settings.resources,
        },
        jobs: bouts.into_iter().map(Bout::report).collect(),
    })
}

fn python_of_the_path() -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|folder| folder.join("python3")).find(|program| program.is_file())
}

/// One job with those who do it.
struct Bout<'a> {
    work: Work<'a>,
    reference: Reference,
    counters: BTreeMap<String, u64>,
    /// We first.
    contenders: Vec<Contender<'a>>,
}

struct Contender<'a> {
    /// `None` is our program.
    peer: Option<&'a InstalledPeer>,
    /// Seconds of each repetition so far.
    seconds: Vec<f64>,
    failure: Option<String>,
}

impl Bout<'_> {
    fn report(self) -> SuiteJobReport {
        let ours: Vec<f64> = self.contenders.first().map_or_else(Vec::new, |ours| ours.seconds.clone());
        let contenders = self.contenders.into_iter().map(|contender| {
            let (name, version) = match contender.peer {
                Some(peer) => (peer.peer.in_words(), peer.version.clone()),
                None => ("napreduce", format!("napreduce {}", env!("CARGO_PKG_VERSION"))),
            };
            SuiteContender::new(name, version, contender.seconds, contender.failure, &ours)
        });
        let contenders = contenders.collect();
        let output = ByteSize::new(self.reference.lines.bytes);
        SuiteJobReport::new(self.work.job, (self.work.input.bytes, output), &self.counters, contenders)
    }
}

struct Run<'a> {
    settings: &'a SuiteSettings,
    session: &'a Session,
    folder: &'a WorkFolder,
}

impl<'a> Run<'a> {
    /// Says what is right: one slot, and undisturbed.
    fn first(
        &self,
        job: SuiteJob,
        binary: &'a Path,
        (input, centroids): (&'a SuiteInput, &'a Path),
        installed: &'a [InstalledPeer],
    ) -> Result<Bout<'a>> {
        let Resources { slots, task_memory } = self.settings.resources;
        let one = Resources { slots: 1, task_memory };
        let time_max = self.settings.time_max;
        let work = Work { job, binary, input, centroids, resources: one, reduces: slots, time_max };
        let folder = self.folder.fresh("run")?;
        let seconds = work.run(&folder, &self.session.interrupt)?;
        self.session.say(format!("{job} with one slot: {seconds:.3} s"));
        let reference = Reference::read(&folder.join("out"))?;
        let counters = first_job_counters(&folder.join(format!("{job}.out")))?;
        let peers = installed.iter().filter(|found| formulates(found.peer, job)).map(Some);
        let contenders = std::iter::once(None).chain(peers);
        Ok(Bout {
            work: Work { resources: self.settings.resources, ..work },
            reference,
            counters,
            contenders: contenders
                .map(|peer| Contender { peer, seconds: Vec::new(), failure: None })
                .collect(),
        })
    }

    /// One run of everyone who is still in.
    fn repeat(&self, bout: &mut Bout<'_>, repetition: u32) -> Result<()> {
        let Bout { work, reference, contenders, .. } = bout;
        for contender in contenders.iter_mut().filter(|contender| contender.failure.is_none()) {
            let folder = self.folder.fresh("run")?;
            input::warm(&work.input.folder, &self.session.interrupt)?;
            self.folder.settle()?;
            let interrupt = &self.session.interrupt;
            let outcome = match contender.peer {
                Some(peer) => work
                    .run_peer(peer, &folder, interrupt)
                    .and_then(|seconds| Ok((seconds, work.judge_peer(&folder, reference)?))),
                None => work
                    .run(&folder, interrupt)
                    .and_then(|seconds| Ok((seconds, work.judge(&folder, reference)?))),
            };
            // An interrupt ends the experiment; it is no failure of whoever was running.
            interrupt.check()?;
            let line = match outcome {
                Ok((seconds, None)) => {
                    contender.seconds.push(seconds);
                    format!("{seconds:.3} s, output right")
                }
                Ok((_, Some(wrong))) => contender.drop_out(wrong),
                Err(error) => contender.drop_out(error.to_string()),
            };
            let name = contender.peer.map_or("napreduce", |peer: &InstalledPeer| peer.peer.in_words());
            let of = self.settings.repetitions;
            self.session.say(format!("{} {repetition}/{of} {name}: {line}", work.job));
            if !self.session.work.keep {
                remove(&folder)?;
            }
        }
        Ok(())
    }
}

impl Contender<'_> {
    fn drop_out(&mut self, failure: String) -> String {
        let line = format!("out: {failure}");
        self.failure = Some(failure);
        line
    }
}

listed! {
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

    /// The command that runs the job on the folder `input`, with as many reduces as there are slots.
    fn command(
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

const DUCKDB: &str = include_str!("formulations/suite_duckdb.py");
const POLARS: &str = include_str!("formulations/suite_polars.py");

/// What an undisturbed run with one slot has written.
#[derive(Debug)]
struct Reference {
    digest: OutputDigest,
    lines: LineSet,
}

impl Reference {
    fn read(output: &Path) -> Result<Reference> {
        Ok(Reference { digest: OutputDigest::read(output)?, lines: LineSet::of(output)? })
    }
}

/// Whether a peer has a formulation of the job.
fn formulates(peer: PeerTool, job: SuiteJob) -> bool {
    match (peer, job) {
        // A sum of 32-bit numbers in the order of the input is no query.
        (_, SuiteJob::KmeansMovies) => false,
        (PeerTool::DuckDb, _) => true,
        (PeerTool::Polars, job) => !matches!(job, SuiteJob::Classification | SuiteJob::AdjacencyList),
        (PeerTool::Sort | PeerTool::Coreutils | PeerTool::PySpark | PeerTool::Bare, _) => false,
    }
}

#[derive(Clone, Copy, Debug)]
struct Work<'a> {
    job: SuiteJob,
    binary: &'a Path,
    input: &'a SuiteInput,
    centroids: &'a Path,
    resources: Resources,
    reduces: u32,
    time_max: Duration,
}

impl Work<'_> {
    /// Runs our program in the empty `folder`; its output is `folder/out`. Tells the seconds it took.
    fn run(&self, folder: &Path, interrupt: &Interrupt) -> Result<f64> {
        let places = (self.input.folder.as_path(), self.centroids);
        let output = folder.join("out");
        let command = self.job.command(self.binary, places, &output, self.resources, self.reduces);
        Ok(run(&command.within(self.time_max), folder, Sampling::Off, interrupt)?.wall_seconds)
    }

    /// What is wrong with our output; every byte counts.
    fn judge(&self, folder: &Path, reference: &Reference) -> Result<Option<String>> {
        let same = OutputDigest::read(&folder.join("out"))? == reference.digest;
        let wrong = || "wrong output: other bytes than those of the run with one slot".to_owned();
        Ok((!same).then(wrong))
    }

    /// Has a peer do the same in the empty `folder`; its output is `folder/out`.
    fn run_peer(&self, peer: &InstalledPeer, folder: &Path, interrupt: &Interrupt) -> Result<f64> {
        let output = folder.join("out");
        let made = fs::create_dir(&output);
        made.map_err(cannot("make", &output))?;
        let command = self.peer_command(peer, folder, &output.join("part-r-00000"))?;
        Ok(run(&command.within(self.time_max), folder, Sampling::Off, interrupt)?.wall_seconds)
    }

    fn peer_command(&self, peer: &InstalledPeer, folder: &Path, output: &Path) -> Result<CommandLine> {
        let places = Places { input: &self.input.folder, output, scratch: folder };
        if self.job == SuiteJob::Terasort {
            // The rows are one file.
            let input = self.input.folder.join("part-00000");
            let places = Places { input: &input, ..places };
            return peer.command(crate::program::BenchmarkJob::Terasort, places, self.resources);
        }
        let script = if peer.peer == PeerTool::Polars { POLARS } else { DUCKDB };
        let command = peer.script("suite", script, Some(self.job.in_words()), places, self.resources)?;
        Ok(if self.job.wants_centroids() { command.arg(self.centroids) } else { command })
    }

    /// What is wrong with a peer's output; the order of its lines is free.
    fn judge_peer(&self, folder: &Path, reference: &Reference) -> Result<Option<String>> {
        let difference = reference.lines.difference(&LineSet::of(&folder.join("out"))?);
        Ok(difference.map(|difference| format!("wrong output: {difference}")))
    }
}

/// A fingerprint of the lines of an output that does not depend on their order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct LineSet {
    lines: u64,
    bytes: u64,
    /// Of the hashes of all lines, so that a line that comes twice counts twice.
    sum: u128,
}

impl LineSet {
    /// That of the files in `folder`, without those whose names begin with `_` or `.`.
    fn of(folder: &Path) -> Result<LineSet> {
        let mut set = LineSet { lines: 0, bytes: 0, sum: 0 };
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

    /// What is wrong with an output that should have these lines; `None` when nothing is.
    fn difference(&self, found: &LineSet) -> Option<String> {
        if found == self {
            return None;
        }
        Some(if found.lines == self.lines {
            format!("some of {} lines are others than ours", self.lines)
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
        /// What sequence-count makes of the documents.
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
    /// Makes what `jobs` read, about `size` of each kind.
    fn make(
        jobs: &[SuiteJob],
        size: ByteSize,
        resources: Resources,
        work: &WorkFolder,
        session: &Session,
    ) -> Result<SuiteInputs> {
        let mut inputs = SuiteInputs { made: BTreeMap::new(), centroids: work.path().join("centroids.txt") };
        for job in jobs {
            let data = job.data();
            if data == SuiteData::Sequences {
                inputs.make_one(SuiteData::Documents, size, work, session)?;
                inputs.count_sequences(resources, work, session)?;
            } else {
                inputs.make_one(data, size, work, session)?;
            }
        }
        Ok(inputs)
    }

    fn of(&self, job: SuiteJob) -> Option<&SuiteInput> {
        self.made.get(&job.data())
    }

    fn make_one(
        &mut self,
        data: SuiteData,
        size: ByteSize,
        work: &WorkFolder,
        session: &Session,
    ) -> Result<()> {
        if self.made.contains_key(&data) {
            return Ok(());
        }
        session.say(format!("making {} of {}", size.rounded(), data.in_words()));
        let folder = work.path().join(data.in_words());
        let output = OutputSettings { watch: session.interrupt.watch(), ..OutputSettings::new(&folder) };
        let bytes = generate(data, size.bytes(), output);
        // An interrupt is one kind of error, whoever noticed it first.
        session.interrupt.check()?;
        let input = SuiteInput { folder, bytes: ByteSize::new(bytes?) };
        if data == SuiteData::Movies {
            self.draw_centroids(&input.folder, session)?;
        }
        self.made.insert(data, input);
        Ok(())
    }

    /// As many centroids as there may be movies for.
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

    fn count_sequences(&mut self, resources: Resources, work: &WorkFolder, session: &Session) -> Result<()> {
        let job = SuiteJob::SequenceCount;
        let (Some(documents), false) = (self.of(job), self.made.contains_key(&SuiteData::Sequences)) else {
            return Ok(());
        };
        session.say("counting sequences for ranked-inverted-index");
        let folder = work.fresh("run")?;
        let output = work.path().join(SuiteData::Sequences.in_words());
        let places = (documents.folder.as_path(), self.centroids.as_path());
        let command =
            job.command(&job.binary(&session.binaries)?, places, &output, resources, resources.slots);
        run(&command, &folder, Sampling::Off, &session.interrupt)?;
        let bytes = ByteSize::new(LineSet::of(&output)?.bytes);
        self.made.insert(SuiteData::Sequences, SuiteInput { folder: output, bytes });
        Ok(())
    }
}

fn generate(data: SuiteData, bytes: u64, output: OutputSettings) -> Result<u64> {
    let amount = Amount::Bytes(bytes);
    let written = match data {
        SuiteData::Documents | SuiteData::Sequences => {
            let output = OutputSettings { files: DOCUMENTS, names: FileNames::Documents, ..output };
            text::generate(&TextSettings::new(bytes, output))?
        }
        SuiteData::Rows => {
            let records = bytes / RECORD_BYTES as u64;
            tera::generate(&TeraSettings { records, start: 0, format: tera::Format::Ascii, output })?
        }
        SuiteData::Movies => movies::generate(&MoviesSettings::new(amount, output))?,
        SuiteData::Associations => associations::generate(&AssociationsSettings::new(amount, output))?,
        SuiteData::Edges => graph::generate(&GraphSettings::new(amount, output))?,
    };
    Ok(written.bytes)
}

#[cfg(test)]
mod tests {
    use std::fs;

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
        let resources = Resources { slots: 2, task_memory: ByteSize::new(64 << 20) };
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

    fn set(parts: &[(&str, &str)]) -> LineSet {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in parts {
            fs::write(folder.path().join(name), text).unwrap();
        }
        LineSet::of(folder.path()).unwrap()
    }

    #[test]
    fn order_and_files_make_no_difference_and_every_line_does() {
        let one = set(&[("part-r-00000", "a\nb\n"), ("part-r-00001", "b\n"), ("_SUCCESS", "{}")]);
        assert_eq!(one.difference(&set(&[("lines", "b\na\nb\n")])), None);
        let fewer = one.difference(&set(&[("lines", "b\na\n")]));
        assert_eq!(fewer.as_deref(), Some("2 lines where ours have 3"));
        let other = one.difference(&set(&[("lines", "b\na\na\n")]));
        assert_eq!(other.as_deref(), Some("some of 3 lines are others than ours"));
        assert_eq!(one.bytes, 6);
    }
}
