//! Experiments of napreduce: speed against other programs, memory under a budget, the cost of starting, the
//! cost of preemption.
//!
//! Jobs are measured as whole programs, from start to exit.
//!
//! ```no_run
//! use napreduce_lab::{Interrupt, Session, WorkSettings, program::Resources, report, start};
//!
//! let work = WorkSettings::default();
//! let binaries = "target/release".into();
//! let session = Session::new(Interrupt::listen()?, work, binaries, |line| eprintln!("{line}"));
//! let resources = Resources { slots: 2, task_memory: "256MiB".parse()? };
//! let settings = start::StartSettings { runs: 50, resources };
//! println!("{}", report::Report::table(&start::start(&settings, &session)?));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod check;
mod cluster;
pub mod confinement;
pub mod contest;
pub mod error;
pub mod guard;
mod input;
pub mod jobs;
pub mod latency;
pub mod machine;
pub mod memory;
pub mod outputs;
pub mod paper;
pub mod peers;
pub mod pictures;
pub mod preempt;
pub mod process;
pub mod program;
pub mod records;
pub mod replay;
pub mod report;
pub mod session;
pub mod speed;
pub mod start;
pub mod statistics;
pub mod suite;
pub mod workspace;

pub use process::Interrupt;
pub use session::Session;
pub use workspace::WorkSettings;
