//! The `counter!` macro: a user counter, looked up by name once for each place in the program.

/// A user counter: `counter!("bad rows").add(1)`.
///
/// The name is looked up once; after that counting is one atomic addition, cheap enough for every record.
/// Counts of attempts whose result does not count (failed ones, say) are left out of the job's.
///
/// ```
/// use napreduce::{Emit, Job, counter};
///
/// let job = Job::text()
///     .map(|line: &str, out: &mut Emit<u64, ()>| match line.parse() {
///         Ok(number) => out.emit(number, ()),
///         Err(_) => counter!("bad rows").add(1),
///     })
///     .reduce(|number, _, out| out.emit(number, ()));
/// # let _ = job;
/// ```
///
/// For names made at run time call [`counter()`](fn@crate::counter) and keep what it returns.
#[macro_export]
macro_rules! counter {
    ($name:expr) => {{
        static COUNTER: ::std::sync::OnceLock<$crate::task::UserCounter> =
            ::std::sync::OnceLock::new();
        *COUNTER.get_or_init(|| $crate::counter($name))
    }};
}
