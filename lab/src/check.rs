//! Owns what a right output is: computed once per input, then held against every contender's output.
//! Nothing here is ever inside a measured time.

mod counts;

use std::path::Path;

use counts::WordCounts;
use datagen::tera::Checksum;
use datagen::validate::{ValidateError, ValidateSettings, validate_with};

use crate::outputs::output_files;
use crate::process::{Interrupt, InterruptError};
use crate::program::BenchmarkJob;
use crate::workspace::WorkError;

/// What every output of one input has to be.
#[derive(Debug)]
pub enum Truth {
    /// Each word of the input exactly once with its exact number, in any order.
    Counts(WordCounts),
    /// The records of the input, in order over all files.
    Order {
        records: u64,
        /// The sum of their checksums, which does not depend on their order.
        checksum: Checksum,
    },
}

/// An output is wrong, or could not be judged.
#[derive(Debug, thiserror::Error)]
pub enum CheckError {
    #[error("wrong output: {0}")]
    Wrong(String),
    #[error(transparent)]
    Read(#[from] WorkError),
    /// The file is no set of rows.
    #[error(transparent)]
    Rows(#[from] ValidateError),
    /// A signal asked the experiment to end.
    #[error(transparent)]
    Interrupted(#[from] InterruptError),
}

impl Truth {
    /// Works out the right output of `program` on the file `input`.
    ///
    /// # Errors
    ///
    /// When the input cannot be read, and on an interrupt.
    pub fn of(program: BenchmarkJob, input: &Path, interrupt: &Interrupt) -> Result<Truth, CheckError> {
        match program {
            BenchmarkJob::Wordcount => Ok(Truth::Counts(WordCounts::of(input, interrupt)?)),
            BenchmarkJob::Terasort => {
                let report = validate(input, interrupt)?;
                Ok(Truth::Order { records: report.records, checksum: report.checksum })
            }
        }
    }

    /// Holds the part files in `output` against the truth.
    ///
    /// # Errors
    ///
    /// [`CheckError::Wrong`] names the first difference.
    pub fn verify(&self, output: &Path, interrupt: &Interrupt) -> Result<(), CheckError> {
        match self {
            Truth::Counts(counts) => {
                let files = output_files(output).map_err(WorkError::using("read", output))?;
                counts.verify(&files, interrupt)
            }
            Truth::Order { records, checksum } => {
                let report = validate(output, interrupt)?;
                let wrong = |text: String| Err(CheckError::Wrong(text));
                if report.records != *records {
                    return wrong(format!("{} records where the input has {records}", report.records));
                }
                if report.checksum != *checksum {
                    return wrong(format!("checksum {} where the input has {checksum}", report.checksum));
                }
                if let Some(place) = report.first_unordered {
                    let file = place.file.display();
                    return wrong(format!("not in order, first at record {} of {file}", place.record));
                }
                Ok(())
            }
        }
    }
}

fn validate(input: &Path, interrupt: &Interrupt) -> Result<datagen::validate::ValidationReport, CheckError> {
    let settings = ValidateSettings {
        inputs: vec![input.to_owned()],
        format: Some(datagen::tera::Format::Ascii),
        threads: 0,
        watch: interrupt.watch(),
    };
    let report = validate_with(&settings);
    interrupt.check()?;
    Ok(report?)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use napreduce_live::ByteSize;

    use super::*;
    use crate::input;

    #[test]
    fn sorted_rows_pass_and_others_are_told_apart() {
        let folder = tempfile::tempdir().unwrap();
        let never = Interrupt::never();
        let made =
            input::generate(BenchmarkJob::Terasort, ByteSize::new(1_000), &folder.path().join("in"), &never)
                .unwrap();
        let truth = Truth::of(BenchmarkJob::Terasort, &made.file, &never).unwrap();
        let text = fs::read(&made.file).unwrap();
        let mut rows: Vec<&[u8]> = text.chunks(100).collect();
        let check = |rows: &[&[u8]]| {
            let output = folder.path().join("out");
            fs::create_dir_all(&output).unwrap();
            fs::write(output.join("part-r-00000"), rows.concat()).unwrap();
            truth.verify(&output, &never).map_err(|error| error.to_string())
        };
        let unsorted = check(&rows).unwrap_err();
        assert!(unsorted.contains("not in order"), "{unsorted}");
        rows.sort();
        assert_eq!(check(&rows), Ok(()));
        let short = check(&rows[1..]).unwrap_err();
        assert!(short.contains("9 records where the input has 10"), "{short}");
        rows[3] = rows[4];
        let repeated = check(&rows).unwrap_err();
        assert!(repeated.contains("checksum"), "{repeated}");
    }
}
