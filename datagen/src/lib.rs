//! Seeded generators and validators of standard data sets.
//!
//! Each kind of data has a module: sort benchmark records ([`tera`]) with their validator ([`validate`]),
//! text with Zipf word frequencies ([`mod@text`]), [`movies`] and the [`centroids`] drawn from them,
//! [`associations`], and the edges of a [`graph`]. The same settings give the same bytes on every machine,
//! for any number of threads and files.
//!
//! ```
//! use datagen::{output::OutputSettings, tera::{self, Format, TeraSettings}, validate::validate};
//!
//! let directory = tempfile::tempdir()?;
//! let input = directory.path().join("in");
//! let output = OutputSettings { files: 3, ..OutputSettings::new(&input) };
//! tera::generate(&TeraSettings { records: 1000, start: 0, format: Format::Hadoop, output })?;
//!
//! let report = validate(&[&input], Some(Format::Hadoop))?;
//! assert_eq!(report.records, 1000);
//! assert_eq!(report.checksum.to_string(), "1f9ffe645ec");
//! assert!(report.unordered > 0);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod associations;
pub mod centroids;
pub mod graph;
mod inputs;
pub mod movies;
pub mod output;
mod random;
pub mod rows;
pub mod sizes;
pub mod tera;
pub mod text;
mod units;
pub mod validate;
mod watch;

pub use watch::Watch;
