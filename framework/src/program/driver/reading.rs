//! What a driver reads of its jobs' outputs, for the next ones.
//!
//! Owns which files of an output are its parts. Does not own formats (`input`).

use std::ffi::OsStr;
use std::io;
use std::path::Path;

use super::Driver;
use crate::codec::{Key, Value};
use crate::input::{InputError, InputFile, InputFormat, RecordReader, expand, open_input};
use crate::program::Error;
use crate::records::TypedRecords;

impl Driver<'_> {
    /// What a job has written to a directory, as text: all parts, one after the other. For outputs that fit
    /// into memory, such as what a round of a computation has found for the next one.
    pub fn read_text(&self, output: impl AsRef<Path>) -> Result<String, Error> {
        let mut text = String::new();
        for file in parts(output.as_ref())? {
            text.push_str(&read_text(&file)?);
        }
        Ok(text)
    }

    /// Reads what a job has written, in any format that jobs read: each record of each part, in order.
    /// Outputs with a name are not read; give the path of their files, or a glob, for that.
    ///
    /// ```
    /// use napreduce::input::TextLines;
    /// use napreduce::program::Error;
    /// use napreduce::Driver;
    ///
    /// fn drive(driver: &mut Driver, _: &()) -> Result<(), Error> {
    ///     let found = driver.intermediate("found");
    ///     driver.job("search").output(&found).run()?;
    ///     let mut lines = 0;
    ///     driver.read(&TextLines, &found, |_: &str| lines += 1)?;
    ///     driver.job("report").parameters(&lines).run().map(drop)
    /// }
    /// # let _ = drive;
    /// ```
    pub fn read<I: InputFormat>(
        &self,
        format: &I,
        output: impl AsRef<Path>,
        mut each: impl FnMut(I::Record<'_>),
    ) -> Result<(), Error> {
        let memory = usize::try_from(self.run.task_memory.bytes()).unwrap_or(usize::MAX);
        for file in parts(output.as_ref())? {
            format.check(&file.path)?;
            let mut reader = format.open(&file.whole(), memory)?;
            let mut each = |record: I::Record<'_>| -> Result<(), InputError> {
                each(record);
                Ok(())
            };
            while reader.read_batch(&mut each)? {}
        }
        Ok(())
    }

    /// The typed records that a job has written with [`Records`](crate::records::Records), for outputs that
    /// fit into memory.
    ///
    /// ```
    /// use napreduce::program::Error;
    /// use napreduce::Driver;
    ///
    /// /// Runs until nobody has more than a hundred.
    /// fn drive(driver: &mut Driver, _: &()) -> Result<(), Error> {
    ///     for round in 0.. {
    ///         let counts = driver.intermediate(&format!("round-{round}"));
    ///         driver.job("round").output(&counts).run()?;
    ///         let counts: Vec<(String, u64)> = driver.read_records::<String, u64>(&counts)?;
    ///         if counts.iter().all(|(_, count)| *count <= 100) {
    ///             break;
    ///         }
    ///     }
    ///     Ok(())
    /// }
    /// # let _ = drive;
    /// ```
    #[allow(clippy::type_complexity, reason = "a list of pairs needs no name")]
    pub fn read_records<K: Key, V: Value>(
        &self,
        output: impl AsRef<Path>,
    ) -> Result<Vec<(K::Owned, V::Owned)>, Error> {
        let mut records = Vec::new();
        self.read(&TypedRecords::<K, V>::default(), output, |(key, value)| {
            records.push((K::to_owned(key), V::to_owned(value)));
        })?;
        Ok(records)
    }
}

fn read_text(file: &InputFile) -> Result<String, InputError> {
    let read = || {
        let size = usize::try_from(file.size).map_err(io::Error::other)?;
        let mut bytes = vec![0; size];
        open_input(&file.whole(), size, false)?.read_exact_at(&mut bytes, 0)?;
        String::from_utf8(bytes).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
    };
    read().map_err(|error| InputError::unreadable(&file.path, error))
}

/// The part files of an output, without those of outputs with a name; or what else a path means.
fn parts(output: &Path) -> Result<Vec<InputFile>, InputError> {
    let mut files = expand(&[output], false)?;
    if output.is_dir() {
        let is_part = |name: &OsStr| name.as_encoded_bytes().starts_with(b"part-");
        files.retain(|file| file.path.file_name().is_some_and(is_part));
    }
    Ok(files)
}
