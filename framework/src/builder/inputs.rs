//! The inputs of a job in order, each with its format and map behind an untyped interface for a whole split.

use napreduce_protocol::TaskError;

use crate::codec::{Key, Value};
use crate::emit::Emit;
use crate::input::{
    InputError, InputFile, InputFormat, InputSplit, Skip, Split, check_files, plan_splits,
};
use crate::settings::Settings;
use crate::task::map::{OpenMap, TypedMap};
use crate::task::values_in_keys::ValuesInKeys;
use crate::user_code::Mapper;

use super::error::DefinitionError;
use super::pipeline::{refusals, saves};
use super::sampling::sample_split;

/// One input of a job with erased types, for submitters and tasks.
pub(crate) trait InputMap<K: Key, V: Value>: OpenMap<K, V> {
    /// As [`Pipeline::plan`](super::Pipeline::plan), for the files of this input.
    fn plan(&self, files: &[InputFile], split_size: u64) -> Result<Vec<InputSplit>, InputError>;

    /// As [`Pipeline::refusals`](super::Pipeline::refusals), for the files of this input.
    fn refusals(&self, files: &[InputFile], split_size: u64) -> Vec<String>;

    /// Emits the first records of a split, about `wanted`, into a sample.
    fn sample(
        &self,
        split: &Split,
        wanted: usize,
        memory: u64,
        out: Emit<K, V>,
    ) -> Result<Emit<K, V>, TaskError>;

    /// Returns whether its mapper can be checkpointed.
    fn saves(&self) -> bool;

    /// Applies the settings of the format and of the loop over records.
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

    fn sample(
        &self,
        split: &Split,
        wanted: usize,
        memory: u64,
        out: Emit<M::Key, M::Value>,
    ) -> Result<Emit<M::Key, M::Value>, TaskError> {
        sample_split(self, split, wanted, memory, out)
    }

    fn saves(&self) -> bool {
        saves(self.mapper.save(&mut Vec::new()))
    }

    fn set(&mut self, settings: &Settings) {
        self.format.on_bad_input(settings.bad_input);
        self.bad_input = settings.bad_input;
    }
}

impl<K: Key, V: Key> InputMap<(K, V), ()> for ValuesInKeys<dyn InputMap<K, V>> {
    fn plan(&self, files: &[InputFile], split_size: u64) -> Result<Vec<InputSplit>, InputError> {
        self.map.plan(files, split_size)
    }

    fn refusals(&self, files: &[InputFile], split_size: u64) -> Vec<String> {
        self.map.refusals(files, split_size)
    }

    fn sample(
        &self,
        split: &Split,
        wanted: usize,
        memory: u64,
        out: Emit<(K, V), ()>,
    ) -> Result<Emit<(K, V), ()>, TaskError> {
        Ok(self
            .map
            .sample(split, wanted, memory, out.take_values())?
            .into_keys_with_values())
    }

    fn saves(&self) -> bool {
        self.map.saves()
    }

    fn set(&mut self, settings: &Settings) {
        self.map.set(settings);
    }
}

/// The inputs of a job in the order in which they were added, which is the order of their splits.
pub(crate) struct InputMaps<K, V> {
    list: Vec<NamedInput<K, V>>,
}

struct NamedInput<K, V> {
    /// `None` if paths are given without a name.
    name: Option<String>,
    map: Box<dyn InputMap<K, V>>,
}

impl<K: Key, V: Value> InputMaps<K, V> {
    pub(super) fn none() -> InputMaps<K, V> {
        InputMaps { list: Vec::new() }
    }

    pub(super) fn with<M>(
        mut self,
        name: Option<&str>,
        format: M::Input,
        mapper: M,
    ) -> InputMaps<K, V>
    where
        M: Mapper<Key = K, Value = V>,
    {
        let map = Box::new(TypedMap {
            format,
            mapper,
            bad_input: Skip::default(),
        });
        self.list.push(NamedInput {
            name: name.map(str::to_owned),
            map,
        });
        self
    }

    pub(super) fn names(&self) -> Vec<Option<String>> {
        self.list.iter().map(|input| input.name.clone()).collect()
    }

    /// Emits each value as the second field of its key.
    pub(super) fn values_in_keys(self) -> InputMaps<(K, V), ()>
    where
        V: Key,
    {
        let list = self.list.into_iter().map(|NamedInput { name, map }| {
            let map: Box<dyn InputMap<(K, V), ()>> = Box::new(ValuesInKeys { map });
            NamedInput { name, map }
        });
        InputMaps {
            list: list.collect(),
        }
    }

    /// Checks the names.
    pub(super) fn check(&self) -> Result<(), DefinitionError> {
        if self.list.is_empty() {
            return Err(DefinitionError::NoInput);
        }
        for (number, NamedInput { name, .. }) in self.list.iter().enumerate() {
            let Some(name) = name else { continue };
            if !is_name(name) {
                return Err(DefinitionError::InputName(name.clone()));
            }
            if self.list[..number]
                .iter()
                .any(|input| input.name.as_ref() == Some(name))
            {
                return Err(DefinitionError::DuplicateInput(name.clone()));
            }
        }
        Ok(())
    }

    /// Plans the splits of each input.
    pub(super) fn plan(
        &self,
        files: &[Vec<InputFile>],
        split_size: u64,
    ) -> Result<Vec<Vec<InputSplit>>, InputError> {
        self.list
            .iter()
            .zip(files)
            .map(|(input, files)| input.map.plan(files, split_size))
            .collect()
    }

    pub(super) fn refusals(&self, files: &[Vec<InputFile>], split_size: u64) -> Vec<String> {
        self.list
            .iter()
            .zip(files)
            .flat_map(|(input, files)| input.map.refusals(files, split_size))
            .collect()
    }

    pub(super) fn saves(&self) -> bool {
        self.list.iter().all(|input| input.map.saves())
    }

    pub(super) fn set(&mut self, settings: &Settings) {
        for input in &mut self.list {
            input.map.set(settings);
        }
    }

    /// Returns the input of a split. Only a driver has the counts; without them there is one input.
    pub(super) fn of_split(
        &self,
        index: u32,
        counts: &[u32],
    ) -> Result<&dyn InputMap<K, V>, TaskError> {
        let mut end = 0;
        let passed = counts.iter().take_while(|count| {
            end += u64::from(**count);
            end <= u64::from(index)
        });
        let number = passed.count();
        self.list
            .get(number)
            .map(|input| &*input.map)
            .ok_or_else(|| {
                let inputs = self.list.len();
                TaskError::fatal(format!(
                    "split {index} belongs to input {number} of a job with {inputs}"
                ))
            })
    }
}

/// Returns whether a name is valid before a `=` on a command line and at the start of a file name.
fn is_name(name: &str) -> bool {
    let mut letters = name.chars();
    letters
        .next()
        .is_some_and(|first| first.is_ascii_alphabetic())
        && letters.all(|letter| letter.is_ascii_alphanumeric() || matches!(letter, '-' | '_'))
}
