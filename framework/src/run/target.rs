//! Where a job runs.

use super::{JobHandle, JobRequest};
use crate::program::Error;

/// Where a job runs: [`Local`](super::Local), this machine, or [`Cluster`](super::Cluster).
///
/// A program that chooses at run time holds a trait object:
///
/// ```no_run
/// use napreduce::run::{Cluster, Local, Target};
/// use napreduce::{Job, words};
///
/// # fn main() -> Result<(), napreduce::program::Error> {
/// napreduce::init();
/// let target: Box<dyn Target> = match std::env::var_os("CLUSTER") {
///     Some(cluster) => Box::new(Cluster::at(cluster).temporary_directory("/shared/tmp")),
///     None => Box::new(Local::default()),
/// };
/// let count = napreduce::job(|| Job::text().flat_map(words).count()).inputs(["README.md"]);
/// println!("{} words", count.run(&*target)?.collect()?.len());
/// # Ok(())
/// # }
/// ```
pub trait Target: Start {}

impl<S: Start + ?Sized> Target for S {}

/// The part of [`Target`] that only this crate implements and calls.
pub trait Start {
    /// Starts a job, whatever its records are.
    fn start(&self, job: JobRequest<()>) -> Result<JobHandle<()>, Error>;
}
