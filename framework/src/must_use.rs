//! What a program must not drop without a word: examples that do not compile where that is an error.
//!
//! Owns the examples, which are compiled with the documentation and only then. Does not own the words, which stand where
//! the things are.

/// With everything put to use it compiles: nothing below fails for another reason.
///
/// ```no_run
/// #![deny(unused_must_use)]
/// use napreduce::program::Error;
/// use napreduce::{Driver, Emit, Job, Program};
///
/// fn count(_: &()) -> Job {
///     Job::text()
///         .map(|line: &str, out: &mut Emit<String, u64>| out.emit(line, 1))
///         .reduce(|line, counts, out| out.emit(line, counts.sum()))
/// }
///
/// fn drive(driver: &mut Driver, _: &()) -> Result<(), Error> {
///     driver.job("count").run().map(drop)
/// }
///
/// fn main() -> std::process::ExitCode {
///     match std::env::args().count() {
///         0 => napreduce::main(count),
///         1 => Program::new().main(count),
///         _ => Program::new().job("count", count).drive(drive),
///     }
/// }
/// ```
pub fn what_is_used_compiles() {}

/// ```compile_fail
/// #![deny(unused_must_use)]
/// fn count(_: &()) -> napreduce::Job {
///     napreduce::Job::text().map_only(|line, out| out.emit(line, ()))
/// }
///
/// fn main() {
///     napreduce::main(count);
/// }
/// ```
pub fn the_exit_status_of_main_is_not_dropped() {}

/// ```compile_fail
/// #![deny(unused_must_use)]
/// use napreduce::program::Error;
/// use napreduce::{Driver, Job, Program};
///
/// fn count(_: &()) -> Job {
///     Job::text().map_only(|line, out| out.emit(line, ()))
/// }
///
/// fn drive(driver: &mut Driver, _: &()) -> Result<(), Error> {
///     driver.job("count").run().map(drop)
/// }
///
/// fn main() {
///     Program::new().job("count", count).drive(drive);
/// }
/// ```
pub fn the_exit_status_of_drive_is_not_dropped() {}

/// ```compile_fail
/// #![deny(unused_must_use)]
/// use napreduce::program::Error;
/// use napreduce::Driver;
///
/// fn drive(driver: &mut Driver, _: &()) -> Result<(), Error> {
///     driver.job("count").reduces(3);
///     Ok(())
/// }
/// # let _ = drive;
/// ```
pub fn a_job_that_is_not_run_is_not_dropped() {}

/// ```compile_fail
/// #![deny(unused_must_use)]
/// napreduce::Job::text();
/// ```
pub fn an_input_without_a_map_is_not_dropped() {}

/// ```compile_fail
/// #![deny(unused_must_use)]
/// use napreduce::{Emit, Job};
///
/// Job::text().map(|line: &str, out: &mut Emit<String, u64>| out.emit(line, 1));
/// ```
pub fn a_map_without_a_reduce_is_not_dropped() {}

/// ```compile_fail
/// #![deny(unused_must_use)]
/// napreduce::Program::new().about("it never runs");
/// ```
pub fn a_program_that_is_not_run_is_not_dropped() {}
