//! The inputs of a job: what each reads, how it is mapped, and which part of the splits is its own.
//!
//! Owns the erasure of their types, behind calls for a whole split, and the order of the inputs. Does not own
//! the loop over records (`task`), nor which paths belong to which name (`program`).

use napreduce_protocol::TaskError;

use crate::codec::{Key, Value};
use crate::input::{
    BadRows, InputError, InputFile, InputFormat, InputSplit, Split, check_files, plan_splits,
};
use crate::settings::Settings;
use crate::task::map::{OpenMap, TypedMap};
use crate::user_code::Mapper;

use super::pipeline::{refusals, saves};
use super::sampling::sample_split;

/// One input of a job, whatever its types: what the submitter needs of it, beside what a task does.
pub(crate) trait InputMap<K: Key, V: Value>: OpenMap<K, V> {
    /// As [`Pipeline::plan`](super::Pipeline::plan), for the files of this input.
    fn plan(&self, files: &[InputFile], split_size: u64) -> Result<Vec<InputSplit>, InputError>;

    /// As [`Pipeline::refusals`](super::Pipeline::refusals), for the files of this input.
    fn refusals(&self, files: &[InputFile], split_size: u64) -> Vec<String>;

    /// The encoded keys of the first records of a split, so many if there are.
    fn sample(&self, split: &Split, wanted: usize, memory: u64) -> Result<Vec<Vec<u8>>, TaskError>;

    /// Whether its mapper can be checkpointed.
    fn saves(&self) -> bool;

    /// Takes over what of the settings concerns the format and the loop over records.
    fn set(&mut self, settings: &Settings);
}

impl<M: Mapper> InputMap<M::Key, M::Value> for TypedMap<M> {
    fn plan(&self, files: &[InputFile], split_size: u64) -> Result<Vec<InputSplit>, InputError> {
        check_files(files, &self.format)?;
        plan_splits(files, split_size, &self.format)
    }

    fn refusals(&self, files: &[InputFile], split_size: u64) -> Vec<String> {
        refusals(&self.format, files, split_size)
    }

    fn sample(&self, split: &Split, wanted: usize, memory: u64) -> Result<Vec<Vec<u8>>, TaskError> {
        sample_split(self, split, wanted, memory)
    }

    fn saves(&self) -> bool {
        saves(self.mapper.save(&mut Vec::new()))
    }

    fn set(&mut self, settings: &Settings) {
        self.format.take_bad_rows(settings.bad_rows);
        self.bad_records = settings.bad_records;
    }
}

/// The inputs of a job in the order in which they were added, which is that of their splits.
pub(crate) struct InputMaps<K, V> {
    list: Vec<NamedInput<K, V>>,
}

struct NamedInput<K, V> {
    /// None where paths are given without one.
    name: Option<String>,
    map: Box<dyn InputMap<K, V>>,
}

impl<K: Key, V: Value> InputMaps<K, V> {
    pub(super) fn none() -> InputMaps<K, V> {
        InputMaps { list: Vec::new() }
    }

    pub(super) fn with<M>(mut self, name: Option<&str>, format: M::Input, mapper: M) -> InputMaps<K, V>
    where
        M: Mapper<Key = K, Value = V>,
    {
        let map = Box::new(TypedMap { format, mapper, bad_records: BadRows::default() });
        self.list.push(NamedInput { name: name.map(str::to_owned), map });
        self
    }

    pub(super) fn names(&self) -> Vec<Option<String>> {
        self.list.iter().map(|input| input.name.clone()).collect()
    }

    /// What is wrong with the names, if something is.
    pub(super) fn check(&self) -> Result<(), String> {
        if self.list.is_empty() {
            return Err("the job has no input; add one to `Job::inputs()`".to_owned());
        }
        for (number, NamedInput { name, .. }) in self.list.iter().enumerate() {
            let Some(name) = name else { continue };
            if !is_name(name) {
                return Err(format!(
                    "{name:?} cannot be the name of an input; use letters, digits, - and _, and begin with a letter"
                ));
            }
            if self.list[..number].iter().any(|input| input.name.as_ref() == Some(name)) {
                return Err(format!("two inputs of the job are called {name:?}; rename one"));
            }
        }
        Ok(())
    }

    /// The splits of each input.
    pub(super) fn plan(
        &self,
        files: &[Vec<InputFile>],
        split_size: u64,
    ) -> Result<Vec<Vec<InputSplit>>, InputError> {
        self.list.iter().zip(files).map(|(input, files)| input.map.plan(files, split_size)).collect()
    }

    pub(super) fn refusals(&self, files: &[Vec<InputFile>], split_size: u64) -> Vec<String> {
        self.list.iter().zip(files).flat_map(|(input, files)| input.map.refusals(files, split_size)).collect()
    }

    pub(super) fn saves(&self) -> bool {
        self.list.iter().all(|input| input.map.saves())
    }

    pub(super) fn set(&mut self, settings: &Settings) {
        self.list.iter_mut().for_each(|input| input.map.set(settings));
    }

    /// The input that a split belongs to. Without counts, which only a driver knows, there is one input.
    pub(super) fn of_split(&self, index: u32, counts: &[u32]) -> Result<&dyn InputMap<K, V>, TaskError> {
        let mut end = 0;
        let passed = counts.iter().take_while(|count| {
            end += u64::from(**count);
            end <= u64::from(index)
        });
        let number = passed.count();
        self.list.get(number).map(|input| &*input.map).ok_or_else(|| {
            let inputs = self.list.len();
            TaskError::fatal(format!("split {index} belongs to input {number} of a job with {inputs}"))
        })
    }
}

/// Whether a name can stand on a command line before a `=`, and at the beginning of a file's name.
fn is_name(name: &str) -> bool {
    let mut letters = name.chars();
    letters.next().is_some_and(|first| first.is_ascii_alphabetic())
        && letters.all(|letter| letter.is_ascii_alphanumeric() || matches!(letter, '-' | '_'))
}
