//! A test kit for jobs: run one inside a test, and check that it is preemption-safe. It runs the loops of
//! real tasks, without processes.
//!
//! ```
//! use napreduce::testing::{JobTest, assert_preemption_safe};
//! use napreduce::{Emit, Job, words};
//!
//! fn wordcount() -> Job {
//!     Job::text()
//!         .map(|line: &str, out: &mut Emit<String, u64>| words(line).for_each(|word| out.emit(word, 1)))
//!         .reduce(|word, counts, out| out.emit(word, counts.sum()))
//! }
//!
//! let output = JobTest::new(wordcount).input("to be or\nnot to be\n").run();
//! assert_eq!(output.text(), "be\t2\nnot\t1\nor\t1\nto\t2\n");
//! assert_eq!(output.counters.get("MAP_INPUT_RECORDS"), 2);
//!
//! assert_preemption_safe(wordcount, "to be or\nnot to be\n");
//! ```

mod attempts;
mod cause;
#[cfg(test)]
mod damage;
mod folder;
mod interruptions;
mod preemption;

use std::collections::BTreeMap;

use napreduce_protocol::CounterValues;

use crate::builder::Job;
use crate::input::Skip;
use crate::settings::Settings;
use attempts::Trial;
#[cfg(test)]
pub(crate) use attempts::counters_alone;
use interruptions::Schedule;

/// A job and its input, run inside a test without processes. Leaves no files.
///
/// The function is called for every attempt, as in every task process.
///
/// ```
/// use napreduce::Job;
/// use napreduce::testing::JobTest;
///
/// let copy = || Job::text().map_only(|line: &str, out| out.emit(line, ()));
/// let test = JobTest::new(copy)
///     .input("to be\n")
///     .input("or not\n")
///     .split_size(8)
///     .task_memory(2 << 20)
///     .combine_files(false);
/// assert_eq!(test.run().parts.len(), 2);
/// test.assert_preemption_safe();
/// test.assert_safe_at_random(1, 3);
/// ```
#[must_use = "a test runs when its `run` or one of its assertions is called"]
pub struct JobTest<J> {
    job: J,
    inputs: Vec<TestInput>,
    extension: String,
    reduces: Option<u32>,
    split_size: u64,
    task_memory: u64,
    settings: Settings,
    side_files: BTreeMap<String, Vec<u8>>,
}

/// A file, and the name of its input if the job has several.
#[derive(Clone)]
struct TestInput {
    name: Option<String>,
    bytes: Vec<u8>,
}

/// The output of a job.
///
/// ```
/// use napreduce::Job;
/// use napreduce::testing::{JobOutput, JobTest};
///
/// let copy = || Job::text().map_only(|line: &str, out| out.emit(line, ()));
/// let JobOutput { parts, counters, .. } = JobTest::new(copy).input("to be\n").run();
/// assert_eq!((parts.concat(), counters.get("MAP_INPUT_RECORDS")), (b"to be\n".to_vec(), 1));
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[must_use = "compare the output with the expected one"]
pub struct JobOutput {
    /// The contents of each part file, in order.
    pub parts: Vec<Vec<u8>>,
    /// The same for each named output.
    pub named: BTreeMap<String, Vec<Vec<u8>>>,
    /// All counters of the job, including user counters.
    pub counters: CounterValues,
}

impl JobOutput {
    /// Returns all parts as one text; invalid UTF-8 is replaced.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.parts.concat()).into_owned()
    }

    /// Returns the parts of a named output as one text; empty if the job does not declare it.
    ///
    /// ```
    /// use napreduce::Job;
    /// use napreduce::output::{NamedOutput, Text};
    /// use napreduce::testing::JobTest;
    ///
    /// let job = || {
    ///     let lengths = NamedOutput::new("lengths", Text);
    ///     Job::text().named_output(&lengths).map_only(move |line: &str, out| out.to(&lengths).emit(line.len(), ()))
    /// };
    /// let output = JobTest::new(job).input("to be\n").run();
    /// assert_eq!((output.named_text("lengths").as_str(), output.text().as_str()), ("5\n", ""));
    /// ```
    pub fn named_text(&self, name: &str) -> String {
        let parts = self
            .named
            .get(name)
            .map(|parts| parts.concat())
            .unwrap_or_default();
        String::from_utf8_lossy(&parts).into_owned()
    }
}

impl<T, J: Fn() -> Job<T>> JobTest<J> {
    /// Creates a test of the job that a function returns, by default with one reduce (unless the job sets the
    /// number) and 4 MiB of memory per task.
    pub fn new(job: J) -> JobTest<J> {
        JobTest {
            job,
            inputs: Vec::new(),
            extension: String::new(),
            reduces: None,
            split_size: 64 << 20,
            task_memory: 4 << 20,
            settings: Settings::default(),
            side_files: BTreeMap::new(),
        }
    }

    /// Adds an input file of these bytes.
    pub fn input(mut self, bytes: impl AsRef<[u8]>) -> Self {
        self.inputs.push(TestInput {
            name: None,
            bytes: bytes.as_ref().to_vec(),
        });
        self
    }

    /// Adds a file of these bytes to the input of this name, of a job with several.
    ///
    /// ```
    /// use napreduce::input::TextLines;
    /// use napreduce::testing::JobTest;
    /// use napreduce::{Emit, Job};
    ///
    /// let both = || {
    ///     Job::inputs()
    ///         .add("old", TextLines, |line: &str, out: &mut Emit<String, u64>| out.emit(line, 1))
    ///         .add("new", TextLines, |line: &str, out| out.emit(line, 10))
    ///         .reduce(|line, sides, out| out.emit(line, sides.sum()))
    /// };
    /// let test = JobTest::new(both).input_named("old", "a\nb\n").input_named("new", "b\n");
    /// assert_eq!(test.run().text(), "a\t1\nb\t11\n");
    /// ```
    pub fn input_named(mut self, name: &str, bytes: impl AsRef<[u8]>) -> Self {
        self.inputs.push(TestInput {
            name: Some(name.to_owned()),
            bytes: bytes.as_ref().to_vec(),
        });
        self
    }

    /// Sets the extension of input files, such as `gz`, which determines their compression.
    ///
    /// ```
    /// use napreduce::Job;
    /// use napreduce::testing::JobTest;
    ///
    /// let copy = || Job::text().map_only(|line: &str, out| out.emit(line, ()));
    /// // An empty file is empty in every compression.
    /// assert_eq!(JobTest::new(copy).input("").input_extension("gz").run().text(), "");
    /// ```
    pub fn input_extension(mut self, extension: &str) -> Self {
        self.extension = extension.to_owned();
        self
    }

    /// Sets the number of reduces, overriding the definition.
    pub fn reduces(mut self, reduces: u32) -> Self {
        self.reduces = Some(reduces);
        self
    }

    /// Sets the approximate input bytes of a map; a small size gives many maps.
    pub fn split_size(mut self, bytes: u64) -> Self {
        self.split_size = bytes;
        self
    }

    /// Sets the memory of a task in bytes; a small size gives several spills.
    pub fn task_memory(mut self, bytes: u64) -> Self {
        self.task_memory = bytes;
        self
    }

    /// Sets how many sorted runs one merge reads; a small number gives several merges.
    pub fn fan_in(mut self, runs: u32) -> Self {
        self.settings.fan_in = runs;
        self
    }

    /// Sets whether one map may read several small files, which is the default.
    pub fn combine_files(mut self, combine: bool) -> Self {
        self.settings.combine_files = combine;
        self
    }

    /// Compresses the output of maps.
    pub fn compress_map_output(mut self) -> Self {
        self.settings.compress = true;
        self
    }

    /// Sets how much bad input a map skips: rows that are not of the job's type, and records that its map rejects.
    ///
    /// ```
    /// use napreduce::Job;
    /// use napreduce::builder::BadRecord;
    /// use napreduce::input::Skip;
    /// use napreduce::testing::JobTest;
    ///
    /// let halves = || {
    ///     Job::text().map_only(|line: &str, out| -> Result<(), BadRecord> {
    ///         out.emit(line.parse::<u64>()? / 2, ());
    ///         Ok(())
    ///     })
    /// };
    /// let output = JobTest::new(halves).input("4\nx\n").on_bad_input(Skip::AtMost(1)).run();
    /// assert_eq!((output.text().as_str(), output.counters.get("BAD_RECORDS")), ("2\n", 1));
    ///
    /// # #[cfg(feature = "csv")] {
    /// let sums = || Job::csv::<(u64, u64)>().map_only(|(one, other), out| out.emit(one + other, ()));
    /// let output = JobTest::new(sums).input("one,other\n1,2\n3,x\n").on_bad_input(Skip::All).run();
    /// assert_eq!((output.text().as_str(), output.counters.get("BAD_ROWS")), ("3\n", 1));
    /// # }
    /// ```
    pub fn on_bad_input(mut self, skip: Skip) -> Self {
        self.settings.bad_input = skip;
        self
    }

    /// The name of earlier versions for several methods.
    #[doc(hidden)]
    #[deprecated(
        since = "0.4.0",
        note = "call `fan_in`, `combine_files` or `compress_map_output`"
    )]
    pub fn setting(mut self, setting: &str) -> Self {
        self.settings
            .set_pair(setting)
            .unwrap_or_else(|error| panic!("{error}"));
        self
    }

    /// Adds a side file of these bytes, as with `--files PATH#NAME`.
    ///
    /// ```
    /// use napreduce::Job;
    /// use napreduce::program::SideFile;
    /// use napreduce::testing::JobTest;
    ///
    /// let titled = || {
    ///     let title = SideFile::new("title", |path| std::fs::read_to_string(path));
    ///     Job::text().map_only(move |line: &str, out| out.emit(title.get(), line))
    /// };
    /// let test = JobTest::new(titled).input("to be\n").side_file("title", "Hamlet");
    /// assert_eq!(test.run().text(), "Hamlet\tto be\n");
    /// test.assert_preemption_safe();
    /// ```
    pub fn side_file(mut self, name: &str, bytes: impl AsRef<[u8]>) -> Self {
        self.side_files
            .insert(name.to_owned(), bytes.as_ref().to_vec());
        self
    }

    /// Writes an output of pairs as typed records, as for another job, instead of text.
    ///
    /// ```
    /// use napreduce::testing::JobTest;
    /// use napreduce::{Job, words};
    ///
    /// let counts = JobTest::new(|| Job::text().flat_map(words).count()).input("to be\n").for_next_job().run();
    /// let shout = || Job::records::<String, u64>().map_only(|(word, count), out| out.emit(word.to_uppercase(), count));
    /// assert_eq!(JobTest::new(shout).input(&counts.parts[0]).run().text(), "BE\t1\nTO\t1\n");
    /// ```
    pub fn for_next_job(mut self) -> Self {
        self.settings.records = true;
        self
    }

    /// Returns the same test with about this number of maps for its largest file.
    fn in_pieces(&self, pieces: u64) -> JobTest<&J> {
        let largest = self
            .inputs
            .iter()
            .map(|input| input.bytes.len() as u64)
            .max()
            .unwrap_or(0);
        JobTest {
            job: &self.job,
            inputs: self.inputs.clone(),
            extension: self.extension.clone(),
            reduces: self.reduces,
            split_size: (largest / pieces).max(1),
            task_memory: self.task_memory,
            settings: Settings {
                combine_files: false,
                ..self.settings.clone()
            },
            side_files: self.side_files.clone(),
        }
    }

    /// Runs the job undisturbed.
    ///
    /// # Panics
    ///
    /// If the job fails.
    pub fn run(&self) -> JobOutput {
        Trial::new(self).run(&Schedule::Undisturbed).output
    }
}

/// Checks that interruptions do not change the output or the counters of a job on one input file. Runs
/// it many times, with suspends and checkpoints before each record of its maps, before each group of its
/// reduces and between values, once and repeatedly. Checkpoints are also restored under other paths.
///
/// [`JobTest::assert_preemption_safe`] does the same with more files, reduces or memory.
///
/// # Panics
///
/// If output or counters differ: the message names the primitive, the first difference, the task, the line or
/// group at which it was interrupted, and whether `save` or `restore` has lost its state. Also if the tasks
/// of the job cannot be checkpointed.
///
/// ```
/// use napreduce::testing::assert_preemption_safe;
/// use napreduce::{Emit, Job};
///
/// let count = || {
///     Job::text()
///         .map(|line: &str, out: &mut Emit<String, u64>| out.emit(line, 1))
///         .reduce(|line, counts, out| out.emit(line, counts.sum()))
/// };
/// assert_preemption_safe(count, "to be\nor not\nto be\n");
/// ```
pub fn assert_preemption_safe<T>(job: impl Fn() -> Job<T>, input: impl AsRef<[u8]>) {
    JobTest::new(job).input(input).assert_preemption_safe();
}
