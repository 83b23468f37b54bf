//! Tests of `nap lab` and of the job suite. Only `preemption`, `replay` and `suite_jobs` run real jobs; no
//! test judges a figure.

#![allow(clippy::unwrap_used)] // A failed assumption ends the test at once.

mod paper;
mod preemption;
mod replay;
mod speed;
mod stand_ins;
mod suite;
mod suite_jobs;
mod suite_programs;
