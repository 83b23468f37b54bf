//! How a job ended, as a driver learns it.
//!
//! Owns which of the runtime's reports and errors a program can name, with examples. Does not own them (live
//! runtime).

/// Why a cluster did not take a job, or could not be asked about it.
///
/// ```
/// use napreduce::program::{ClientError, Error, JobError};
///
/// /// Whether it may help to come back later.
/// fn is_away(error: &Error) -> bool {
///     matches!(error, Error::Job(JobError::Cluster(ClientError::Unreachable { .. })))
/// }
/// # let _ = is_away;
/// ```
pub use napreduce_live::ClientError;

/// Why the directory of a cluster cannot be used.
///
/// ```
/// use napreduce::program::{ClientError, ClusterDirectoryError};
///
/// fn is_not_up(error: &ClientError) -> bool {
///     matches!(error, ClientError::Directory(ClusterDirectoryError::Missing { .. }))
/// }
/// # let _ = is_not_up;
/// ```
pub use napreduce_live::ClusterDirectoryError;

/// Why a directory is not taken for what it should be.
///
/// ```
/// use napreduce::program::{ClusterDirectoryError, DirectoryMarkError};
///
/// fn mark(error: &ClusterDirectoryError) -> Option<&DirectoryMarkError> {
///     match error {
///         ClusterDirectoryError::Mark(error) => Some(error),
///         _ => None,
///     }
/// }
/// # let _ = mark;
/// ```
pub use napreduce_live::DirectoryMarkError;

/// What a directory is marked as.
///
/// ```
/// use napreduce::program::{DirectoryKind, DirectoryMarkError};
///
/// fn is_of_a_worker(error: &DirectoryMarkError) -> bool {
///     matches!(error, DirectoryMarkError::OfAnotherKind { is: DirectoryKind::Worker, .. })
/// }
/// # let _ = is_of_a_worker;
/// ```
pub use napreduce_live::DirectoryKind;

/// Why the secret of a cluster cannot be used.
///
/// ```
/// use napreduce::program::{ClusterDirectoryError, SecretError};
///
/// fn secret(error: &ClusterDirectoryError) -> Option<&SecretError> {
///     match error {
///         ClusterDirectoryError::Secret(error) => Some(error),
///         _ => None,
///     }
/// }
/// # let _ = secret;
/// ```
pub use napreduce_live::SecretError;

/// Counters by name, of a job or of a part of it.
///
/// ```
/// use napreduce::program::CounterValues;
///
/// let mut counters = CounterValues::default();
/// counters.add("bad rows", 2);
/// assert_eq!((counters.get("bad rows"), counters.get("good rows")), (2, 0));
/// ```
pub use napreduce_live::CounterValues;

/// Why a job failed, or was ended.
///
/// ```
/// use napreduce::Driver;
/// use napreduce::program::{Error, JobError};
///
/// /// Runs a job whose failure is no reason to end the program.
/// fn drive(driver: &mut Driver, _: &()) -> Result<(), Error> {
///     match driver.job("optional").run() {
///         Err(Error::Job(JobError::Failed { reason, .. })) => eprintln!("goes on without it: {reason}"),
///         other => drop(other?),
///     }
///     Ok(())
/// }
/// # let _ = drive;
/// ```
pub use napreduce_live::JobError;

/// What is told of a job that succeeded.
///
/// ```
/// use napreduce::Driver;
/// use napreduce::program::{Error, JobReport};
///
/// fn drive(driver: &mut Driver, _: &()) -> Result<(), Error> {
///     let report: JobReport = driver.job("count").run()?;
///     let records: u64 = report.parts.iter().map(|part| part.records).sum();
///     eprintln!("{} wrote {records} words, {} rows were bad", report.job, report.counters.get("bad rows"));
///     Ok(())
/// }
/// # let _ = drive;
/// ```
pub use napreduce_live::JobReport;

/// What is told of one file of the output.
///
/// ```
/// use napreduce::program::{JobReport, PartReport};
///
/// fn largest(report: &JobReport) -> Option<&PartReport> {
///     report.parts.iter().max_by_key(|part| part.bytes)
/// }
/// # let _ = largest;
/// ```
pub use napreduce_live::PartReport;
