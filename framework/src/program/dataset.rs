//! Datasets: the output of a job, or values of the program, as input of other jobs.

use std::fmt;
use std::fs;
use std::marker::PhantomData;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use napreduce_local::Chain;
#[cfg(feature = "cluster")]
use napreduce_protocol::lock;
use napreduce_protocol::{JobError, JobReport};
use napreduce_task::catch_refusal;

use super::error::Error;
use crate::codec::{Key, Value};
use crate::input::{InputError, InputFile, InputFormat, RecordReader, TextLines, expand};
use crate::records::{TypedRecords, write_records};

/// A record that a program can read back: a line of text (`String`), or a pair of key and value.
#[diagnostic::on_unimplemented(
    message = "records of type `{Self}` cannot be read back",
    label = "cannot be read back",
    note = "pairs in the directory of `output` are lines of text: call `as_records()` before the run to write them as \
            records, which this method reads, or read the lines with `read(&TextLines, ...)`"
)]
pub trait Item: Sized {
    /// A record in memory.
    type Owned;

    /// Calls a closure for each record of a file. Takes up to `memory` bytes for one record.
    ///
    /// # Errors
    /// Fails if the file cannot be read or contains records of another type.
    fn read(
        file: &InputFile,
        memory: usize,
        each: &mut dyn FnMut(Self::Owned),
    ) -> Result<(), InputError>;
}

impl Item for String {
    type Owned = String;

    fn read(
        file: &InputFile,
        memory: usize,
        each: &mut dyn FnMut(String),
    ) -> Result<(), InputError> {
        read_file(&TextLines, file, memory, &mut |line: &str| {
            each(line.to_owned())
        })
    }
}

impl<K: Key, V: Value> Item for (K, V) {
    type Owned = (K::Owned, V::Owned);

    fn read(
        file: &InputFile,
        memory: usize,
        each: &mut dyn FnMut(Self::Owned),
    ) -> Result<(), InputError> {
        read_file(
            &TypedRecords::<K, V>::default(),
            file,
            memory,
            &mut |(key, value)| {
                each((K::to_owned(key), V::to_owned(value)));
            },
        )
    }
}

/// The records of a job with an [output directory](crate::JobRequest::output), where pairs are lines of text: a
/// `Dataset<TextOf<(K, V)>>` is the input of a job that reads text, and its pairs are not collected.
///
/// With [`as_records`](crate::JobRequest::as_records) they are:
///
/// ```
/// use napreduce::run::Local;
/// use napreduce::{Dataset, Job, words};
///
/// # fn main() -> Result<(), napreduce::program::Error> {
/// # let folder = std::env::temp_dir().join(format!("napreduce-doc-{}", std::process::id()));
/// let lines = Dataset::lines(["to be", "or not to be"])?;
/// let count = napreduce::job(|| Job::text().flat_map(words).count()).inputs([&lines]).reduces(1);
/// let counts = count.output(folder.join("counts")).as_records().run(&Local::threads())?;
/// assert_eq!(counts.collect()?[0], ("be".to_owned(), 2));
/// # std::fs::remove_dir_all(folder).expect("removed");
/// # Ok(())
/// # }
/// ```
///
/// ```compile_fail
/// # use napreduce::run::Local;
/// # use napreduce::{Job, words};
/// let count = napreduce::job(|| Job::text().flat_map(words).count()).inputs(["README.md"]);
/// let counts = count.output("counts").run(&Local::threads())?.collect()?;
/// # Ok::<(), napreduce::program::Error>(())
/// ```
pub struct TextOf<T>(PhantomData<fn() -> T>);

impl Item for TextOf<String> {
    type Owned = String;

    fn read(
        file: &InputFile,
        memory: usize,
        each: &mut dyn FnMut(String),
    ) -> Result<(), InputError> {
        String::read(file, memory, each)
    }
}

/// Memory for one record while a program reads a dataset.
const RECORD_MEMORY: usize = 256 << 20;

/// Files with records of type `T`: the output of a job, or values of the program. Jobs take it as an input.
///
/// Clones share the files. If the job was given no output directory, the files are temporary and removed with the last
/// clone.
///
/// ```
/// use napreduce::run::Local;
/// use napreduce::{Dataset, Job, words};
///
/// fn count() -> Job<(String, u64)> {
///     Job::text().flat_map(words).count()
/// }
///
/// fn frequent() -> Job {
///     Job::records::<String, u64>().map_only(|(word, count), out| if count > 1 { out.emit(word, ()) })
/// }
///
/// # fn main() -> Result<(), napreduce::program::Error> {
/// let lines = Dataset::lines(["to be or not to be", "that is the question"])?;
/// let counts = napreduce::job(count).inputs([&lines]).run(&Local::threads())?;
/// let frequent = napreduce::job(frequent).inputs([&counts]).run(&Local::threads())?;
/// let mut words = frequent.collect()?;
/// words.sort();
/// assert_eq!(words, ["be", "to"]);
/// # Ok(())
/// # }
/// ```
pub struct Dataset<T> {
    files: Arc<Files>,
    report: Option<JobReport>,
    item: PhantomData<fn() -> T>,
}

impl<T> Clone for Dataset<T> {
    fn clone(&self) -> Dataset<T> {
        Dataset {
            files: Arc::clone(&self.files),
            report: self.report.clone(),
            item: PhantomData,
        }
    }
}

impl<T> fmt::Debug for Dataset<T> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Dataset")
            .field("path", &self.files.path)
            .finish_non_exhaustive()
    }
}

/// The directory of a dataset, and who removes it.
#[derive(Debug)]
pub(crate) struct Files {
    path: PathBuf,
    owner: Owner,
}

#[derive(Debug)]
enum Owner {
    /// A directory that a person named; it stays.
    Person,
    /// A directory of a driver's intermediate data.
    Driver,
    /// A temporary directory with everything in it.
    Program(Mutex<Chain>),
}

impl Drop for Files {
    fn drop(&mut self) {
        match &mut self.owner {
            Owner::Person => {}
            // A file that cannot be removed now is removed with the driver's directory.
            Owner::Driver => {
                let _ = fs::remove_dir_all(&self.path);
            }
            // A file that cannot be removed now is removed by the next program with such a directory.
            Owner::Program(chain) => {
                let _ = chain
                    .get_mut()
                    .unwrap_or_else(PoisonError::into_inner)
                    .end();
            }
        }
    }
}

impl Files {
    /// The output directory that a person named.
    pub(crate) fn named(path: PathBuf) -> Files {
        Files {
            path,
            owner: Owner::Person,
        }
    }

    /// A directory of a driver's intermediate data, removed as soon as nothing reads it.
    pub(crate) fn intermediate(path: PathBuf) -> Files {
        Files {
            path,
            owner: Owner::Driver,
        }
    }

    /// A directory of its own, which exists already.
    pub(crate) fn temporary(chain: Chain) -> Files {
        Files {
            path: chain.root().join("output"),
            owner: Owner::Program(Mutex::new(chain)),
        }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the token with which a cluster keeps a temporary directory while a job uses it.
    #[cfg(feature = "cluster")]
    pub(crate) fn chain(&self) -> Option<u128> {
        match &self.owner {
            Owner::Program(chain) => lock(chain).token(),
            Owner::Person | Owner::Driver => None,
        }
    }
}

impl<T> Dataset<T> {
    pub(crate) fn new(files: Arc<Files>, report: Option<JobReport>) -> Dataset<T> {
        Dataset {
            files,
            report,
            item: PhantomData,
        }
    }

    pub(crate) fn files(&self) -> Arc<Files> {
        Arc::clone(&self.files)
    }

    /// Returns the directory with the part files.
    pub fn path(&self) -> &Path {
        &self.files.path
    }

    /// Returns the report of the job that made it: its counters, part files and time. `None` for values of the program.
    pub fn report(&self) -> Option<&JobReport> {
        self.report.as_ref()
    }

    /// Reads the files in an input format: each record of each part, in order.
    ///
    /// # Errors
    /// Fails if a file cannot be read or is in another format.
    pub fn read<I: InputFormat>(
        &self,
        format: &I,
        mut each: impl FnMut(I::Record<'_>),
    ) -> Result<(), Error> {
        for file in parts(self.path())? {
            format.check(&file.path)?;
            read_file(format, &file, RECORD_MEMORY, &mut each)?;
        }
        Ok(())
    }
}

impl<T> Dataset<T> {
    /// Calls a closure for each record, in the order of the part files.
    ///
    /// # Errors
    /// Fails if a file cannot be read, or has records of another type.
    pub fn for_each(&self, mut each: impl FnMut(T::Owned)) -> Result<(), Error>
    where
        T: Item,
    {
        for file in parts(self.path())? {
            T::read(&file, RECORD_MEMORY, &mut each)?;
        }
        Ok(())
    }

    /// Folds all records into one value, such as the sum that ends a loop of jobs. The closure returns the next value,
    /// as that of [`Iterator::fold`].
    ///
    /// ```
    /// # fn main() -> Result<(), napreduce::program::Error> {
    /// let ranks = napreduce::Dataset::<(String, u64)>::of([("a".to_owned(), 2), ("b".to_owned(), 3)])?;
    /// assert_eq!(ranks.fold(0, |sum, (_, rank)| sum + rank)?, 5);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`for_each`](Dataset::for_each).
    pub fn fold<A>(&self, start: A, mut fold: impl FnMut(A, T::Owned) -> A) -> Result<A, Error>
    where
        T: Item,
    {
        let mut result = Some(start);
        self.for_each(|record| result = result.take().map(|before| fold(before, record)))?;
        Ok(result.expect("the fold returns a value for each record"))
    }

    /// Returns all records, which have to fit into memory, in the order of the part files.
    ///
    /// # Errors
    /// As [`for_each`](Dataset::for_each).
    pub fn collect(&self) -> Result<Vec<T::Owned>, Error>
    where
        T: Item,
    {
        let mut records = Vec::new();
        self.for_each(|record| records.push(record))?;
        Ok(records)
    }
}

impl Dataset<String> {
    /// Lines of text from memory, written to a temporary file. Lines must not contain newlines, which would divide them.
    ///
    /// # Errors
    /// Fails if the file cannot be written.
    pub fn lines<L: AsRef<str>>(
        lines: impl IntoIterator<Item = L>,
    ) -> Result<Dataset<String>, Error> {
        let mut text = Vec::new();
        for line in lines {
            text.extend_from_slice(line.as_ref().as_bytes());
            text.push(b'\n');
        }
        in_memory(&text)
    }
}

impl<K: Key, V: Value> Dataset<(K, V)> {
    /// Pairs from memory, written to a temporary file that [`Job::records`](crate::Job::records) reads.
    ///
    /// ```
    /// # fn main() -> Result<(), napreduce::program::Error> {
    /// let pairs = napreduce::Dataset::<(String, u64)>::of([("a".to_owned(), 1), ("b".to_owned(), 2)])?;
    /// assert_eq!(pairs.collect()?[1], ("b".to_owned(), 2));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// Fails if the file cannot be written, or if a value of [`Serde`](crate::codec::Serde) is refused.
    pub fn of(
        pairs: impl IntoIterator<Item = (K::Owned, V::Owned)>,
    ) -> Result<Dataset<(K, V)>, Error> {
        let records = catch_refusal(|| write_records::<K, V>(pairs));
        in_memory(&records.map_err(|error| Error::Usage(error.message))?)
    }
}

/// Writes one part of a new temporary dataset.
fn in_memory<T>(part: &[u8]) -> Result<Dataset<T>, Error> {
    let mut chain = Chain::next_to(&std::env::temp_dir().join("napreduce"))?;
    chain.begin(None)?;
    let files = Files::temporary(chain);
    let writing = |error| JobError::io(format!("write {}", files.path.display()), error);
    fs::create_dir_all(&files.path).map_err(writing)?;
    fs::write(files.path.join("part-m-00000"), part).map_err(writing)?;
    Ok(Dataset::new(Arc::new(files), None))
}

fn read_file<I: InputFormat>(
    format: &I,
    file: &InputFile,
    memory: usize,
    each: &mut dyn FnMut(I::Record<'_>),
) -> Result<(), InputError> {
    let mut reader = format.open(&file.whole(), memory)?;
    let mut each = |record: I::Record<'_>| -> Result<(), InputError> {
        each(record);
        Ok(())
    };
    while reader.read_batch(&mut each)? {}
    Ok(())
}

/// Returns the files that a job with this dataset as input reads.
pub(crate) fn parts(output: &Path) -> Result<Vec<InputFile>, InputError> {
    expand(&[output], false)
}

/// A path or a [`Dataset`], as an input of a job: `&str`, `String`, `&Path`, `PathBuf` or `&Dataset<T>`.
pub trait JobInput {
    /// Names the files.
    fn named(self) -> InputFiles;
}

/// The files of an input.
#[derive(Debug, Clone)]
pub struct InputFiles {
    pub(crate) path: PathBuf,
    /// Keeps the files of a dataset until the job has ended.
    pub(crate) files: Option<Arc<Files>>,
}

impl<P: AsRef<Path>> JobInput for P {
    fn named(self) -> InputFiles {
        InputFiles {
            path: self.as_ref().to_owned(),
            files: None,
        }
    }
}

/// Names the files again.
impl JobInput for InputFiles {
    fn named(self) -> InputFiles {
        self
    }
}

impl<T> JobInput for &Dataset<T> {
    fn named(self) -> InputFiles {
        InputFiles {
            path: self.path().to_owned(),
            files: Some(self.files()),
        }
    }
}
