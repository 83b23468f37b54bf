//! Examples of dropped values that must not compile. They are compiled as documentation tests only.

/// Compiles if everything is used: the examples below fail only because a value is dropped.
///
/// ```no_run
/// #![deny(unused_must_use)]
/// use napreduce::builder::Sum;
/// use napreduce::program::Error;
/// use napreduce::streaming::CommandMapper;
/// use napreduce::testing::JobTest;
/// use napreduce::{Driver, Emit, Job, Program, words};
///
/// fn count(_: &()) -> Job {
///     Job::text()
///         .map(|line: &str, out: &mut Emit<String, u64>| words(line).for_each(|word| out.emit(word, 1)))
///         .combine(Sum::add)
///         .reduce(|word, counts, out| out.emit(word, counts.sum()))
/// }
///
/// fn upper_case(_: &()) -> Job {
///     Job::bytes().mapper(CommandMapper::new("tr a-z A-Z")).reduce(|line, _, out| out.emit(line, ()))
/// }
///
/// fn drive(driver: &mut Driver, _: &()) -> Result<(), Error> {
///     let counts = driver.intermediate("counts");
///     driver.job("count").output(&counts).run()?;
///     driver.job("upper-case").inputs([&counts]).run().map(drop)
/// }
///
/// fn test() {
///     assert_eq!(JobTest::new(|| upper_case(&())).input("a line\n").run().text(), "A LINE\n");
/// }
///
/// fn main() -> std::process::ExitCode {
///     match std::env::args().count() {
///         0 => napreduce::main(count),
///         1 => Program::new().main(count),
///         2 => std::process::ExitCode::from(u8::from(std::panic::catch_unwind(test).is_err())),
///         _ => Program::new().job("count", count).job("upper-case", upper_case).drive(drive),
///     }
/// }
/// ```
pub fn used_values_compile() {}

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
/// use napreduce::builder::Sum;
/// use napreduce::{Emit, Job};
///
/// Job::text().map(|line: &str, out: &mut Emit<String, u64>| out.emit(line, 1)).combine(Sum::add);
/// ```
pub fn a_combine_without_a_reduce_is_not_dropped() {}

/// ```compile_fail
/// #![deny(unused_must_use)]
/// napreduce::Job::text().map_only(|line, out| out.emit(line, ()));
/// ```
pub fn a_job_outside_of_a_definition_is_not_dropped() {}

/// ```compile_fail
/// #![deny(unused_must_use)]
/// use napreduce::Driver;
///
/// fn drive(driver: &mut Driver) {
///     driver.intermediate("counts");
/// }
/// # let _ = drive;
/// ```
pub fn the_path_of_an_intermediate_output_is_not_dropped() {}

/// ```compile_fail
/// #![deny(unused_must_use)]
/// use napreduce::Job;
/// use napreduce::testing::JobTest;
///
/// JobTest::new(|| Job::text().map_only(|line, out| out.emit(line, ()))).input("a line\n");
/// ```
pub fn a_test_that_is_not_run_is_not_dropped() {}

/// ```compile_fail
/// #![deny(unused_must_use)]
/// use napreduce::Job;
/// use napreduce::testing::JobTest;
///
/// JobTest::new(|| Job::text().map_only(|line, out| out.emit(line, ()))).input("a line\n").run();
/// ```
pub fn the_output_of_a_test_is_not_dropped() {}

/// ```compile_fail
/// #![deny(unused_must_use)]
/// napreduce::words("to be or not to be");
/// ```
pub fn the_words_of_a_line_are_not_dropped() {}

/// ```compile_fail
/// #![deny(unused_must_use)]
/// napreduce::streaming::CommandMapper::new("cat");
/// ```
pub fn a_command_without_a_job_is_not_dropped() {}

/// ```compile_fail
/// #![deny(unused_must_use)]
/// napreduce::Program::new().about("it never runs");
/// ```
pub fn a_program_that_is_not_run_is_not_dropped() {}
