//! Reports and errors of ended jobs, for drivers.

/// Counters by name, of a job or of a part of it.
///
/// ```
/// use napreduce::program::CounterValues;
///
/// let mut counters = CounterValues::default();
/// counters.add("bad rows", 2);
/// assert_eq!((counters.get("bad rows"), counters.get("good rows")), (2, 0));
/// ```
pub use napreduce_protocol::CounterValues;

/// The reason why a job failed or was killed.
///
/// ```
/// use napreduce::Driver;
/// use napreduce::program::{Error, JobError};
///
/// /// Continues after a failure of the first job.
/// fn drive(driver: &mut Driver, _: &()) -> Result<(), Error> {
///     match driver.job("optional").run() {
///         Err(Error::Job(JobError::Failed { reason, .. })) => eprintln!("continuing without it: {reason}"),
///         other => drop(other?),
///     }
///     Ok(())
/// }
/// # let _ = drive;
/// ```
pub use napreduce_protocol::JobError;

/// The report of a successful job.
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
pub use napreduce_protocol::JobReport;

/// The report of one output file.
///
/// ```
/// use napreduce::program::{JobReport, PartReport};
///
/// fn largest(report: &JobReport) -> Option<&PartReport> {
///     report.parts.iter().max_by_key(|part| part.bytes)
/// }
/// # let _ = largest;
/// ```
pub use napreduce_protocol::PartReport;
