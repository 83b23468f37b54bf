//! Reading the outputs of jobs in a driver.

use std::io;
use std::path::Path;

use super::Driver;
use crate::codec::{Key, Value};
use crate::input::{InputError, InputFile, InputFormat, RecordReader, open_input};
use crate::program::Error;
use crate::program::dataset::parts;
use crate::records::TypedRecords;

impl Driver<'_> {
    /// Reads the output of a job as text, all parts concatenated. For outputs that fit into memory, such as
    /// the result of one round of an iterative computation.
    pub fn read_text(&self, output: impl AsRef<Path>) -> Result<String, Error> {
        let mut text = String::new();
        for file in parts(output.as_ref())? {
            text.push_str(&read_text(&file)?);
        }
        Ok(text)
    }

    /// Reads the output of a job in any input format: each record of each part, in order.
    /// Named outputs are not included; to read them, pass the path of their files or a glob.
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

    /// Reads typed records that a job has written with [`Records`](crate::records::Records), for outputs that
    /// fit into memory.
    ///
    /// ```
    /// use napreduce::program::Error;
    /// use napreduce::Driver;
    ///
    /// /// Repeats the job until no count exceeds 100.
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
