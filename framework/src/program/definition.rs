//! Job definitions as functions, and how a task process finds the one that the program ran.
//!
//! A task process executes the same file as the program that plans the job. A definition is a function or a closure that
//! captures nothing, so no value of it has to be sent. A definition that a [`Program`](super::Program) has named is found
//! by its name. For another one the identity of the executable is sent and the place of the definition's code in it; a
//! program with another identity refuses the task.

#![expect(unsafe_code, reason = "calls the code of a definition by its address")]

use std::any::{TypeId, type_name};
use std::collections::BTreeMap;
use std::ptr::NonNull;
use std::sync::OnceLock;

use napreduce_protocol::TaskError;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::envelope::Envelope;
use super::executable::Executable;
use crate::builder::{Job, Pipeline};

/// A function or closure that returns a job: `fn() -> Job<T>` or `fn(&P) -> Job<T>`, where `P` are its parameters.
///
/// It captures nothing: it is called again in every task process, with the same parameters. `Kind` is inferred.
///
/// ```
/// use napreduce::program::Definition;
/// use napreduce::{Job, words};
///
/// fn longer_than(least: &usize) -> Job {
///     let least = *least;
///     Job::text().map_only(move |line, out| words(line).filter(|word| word.len() > least).for_each(|word| out.emit(word, ())))
/// }
///
/// fn is_definition<Kind>(_: impl Definition<Kind>) {}
/// is_definition(longer_than);
/// is_definition(|| Job::text().map_only(|line: &str, out| out.emit(line, ())));
/// ```
///
/// A closure that captures does not compile. This one takes `least` as a parameter instead, as above:
///
/// ```compile_fail
/// use napreduce::{Job, words};
///
/// let least = 3;
/// let job = napreduce::job(move || {
///     Job::text().map_only(move |line, out| words(line).filter(|word| word.len() > least).for_each(|word| out.emit(word, ())))
/// });
/// # let _ = job;
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a job definition",
    label = "expected a function that returns a `Job`",
    note = "a definition is `fn() -> Job<T>` or `fn(&P) -> Job<T>`, where the parameters `P` implement Serialize and Deserialize"
)]
pub trait Definition<Kind>: Copy + 'static {
    /// The parameters, which tasks get with the job: `()` for a function without a parameter.
    type Parameters: Serialize + DeserializeOwned;
    /// The type as which a record of the output is read back.
    type Item;

    /// Calls the function.
    fn job(&self, parameters: &Self::Parameters) -> Job<Self::Item>;
}

impl<F, T> Definition<fn() -> T> for F
where
    F: Fn() -> Job<T> + Copy + 'static,
{
    type Parameters = ();
    type Item = T;

    fn job(&self, (): &()) -> Job<T> {
        self()
    }
}

impl<F, P, T> Definition<fn(&P) -> T> for F
where
    F: Fn(&P) -> Job<T> + Copy + 'static,
    P: Serialize + DeserializeOwned,
{
    type Parameters = P;
    type Item = T;

    fn job(&self, parameters: &P) -> Job<T> {
        self(parameters)
    }
}

/// Builds a job from an [`Envelope`] and the name of the definition's type.
type Build = fn(&[u8], &str) -> Result<Box<dyn Pipeline>, TaskError>;

/// Builds the job of a definition that a program holds, where its side files are known.
pub(super) fn build<Kind, D: Definition<Kind>>(
    definition: &D,
    bytes: &[u8],
) -> Result<Box<dyn Pipeline>, TaskError> {
    let (parameters, settings) = Envelope::decode::<D::Parameters>(bytes)?;
    let mut pipeline = definition.job(&parameters).pipeline;
    pipeline
        .check()
        .map_err(|error| TaskError::fatal(error.to_string()))?;
    pipeline.set(settings);
    Ok(pipeline)
}

/// The code that is found by its address. One copy is compiled for each definition.
fn build_found<Kind, D: Definition<Kind>>(
    bytes: &[u8],
    type_of_definition: &str,
) -> Result<Box<dyn Pipeline>, TaskError> {
    if type_of_definition != type_name::<D>() {
        return Err(TaskError::fatal(format!(
            "the task was sent for {type_of_definition}, but this program has {} in its place; submit the job again",
            type_name::<D>()
        )));
    }
    const { assert!(size_of::<D>() == 0, "{}", CAPTURES) };
    // SAFETY: D is Copy and has no bytes, so a read from any aligned address makes a value of it, and this code exists
    // only because the program has made one to define a job.
    let definition: D = unsafe { NonNull::<D>::dangling().read() };
    build(&definition, bytes)
}

const CAPTURES: &str = "a job definition is a function or a closure that captures nothing, since task processes call it \
                        again; pass captured variables as parameters, fn(&P) -> Job<T>, and the function itself instead of \
                        a function pointer (a variable or parameter of type `fn() -> Job<T>`): let the caller be generic \
                        over `D: Definition<Kind>`";

/// A definition without its type: what a program needs to plan its jobs, and a task process to find it.
#[derive(Clone, Copy)]
pub(crate) struct FoundDefinition {
    build: Build,
    type_name: &'static str,
    type_id: TypeId,
}

/// The names of definitions in task processes of this program, by their types.
static NAMES: OnceLock<BTreeMap<TypeId, String>> = OnceLock::new();

/// Keeps the names that a program has given to its definitions. Task processes run the first program that `main` reaches, so
/// the names of a later one are not kept.
pub(super) fn register(names: &BTreeMap<TypeId, String>) {
    NAMES.get_or_init(|| names.clone());
}

/// The place of a definition in the executable, as task processes read it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct CodePlace {
    /// The identity of the executable.
    executable: String,
    /// Bytes from the beginning of the executable in memory to the code.
    offset: u64,
    /// The name of the definition's type.
    definition: String,
}

impl FoundDefinition {
    pub(crate) fn of<Kind, D: Definition<Kind>>(_: &D) -> FoundDefinition {
        const { assert!(size_of::<D>() == 0, "{}", CAPTURES) };
        FoundDefinition {
            build: build_found::<Kind, D>,
            type_name: type_name::<D>(),
            type_id: TypeId::of::<D>(),
        }
    }

    /// Returns the name by which task processes find the definition, if this program has given it one.
    pub(crate) fn registered_name(&self) -> Option<&'static str> {
        NAMES.get()?.get(&self.type_id).map(String::as_str)
    }

    /// The name for people: the function's, without its modules.
    pub(crate) fn name(&self) -> &'static str {
        let path = self.type_name.trim_end_matches("::{{closure}}");
        path.rsplit("::").next().unwrap_or(path)
    }

    pub(crate) fn build(&self, bytes: &[u8]) -> Result<Box<dyn Pipeline>, TaskError> {
        (self.build)(bytes, self.type_name)
    }

    /// Returns where other processes of this executable find the definition.
    ///
    /// # Errors
    /// Fails for a definition in a shared library, which no task process has at the same place.
    pub(crate) fn place(&self) -> Result<CodePlace, TaskError> {
        let executable = Executable::current()?;
        let offset = executable.offset_of(self.build as usize).ok_or_else(|| {
            TaskError::fatal(format!(
                "the job definition {} is not part of this program's executable, so task processes cannot find it; link \
                 it into the program, not into a shared library",
                self.type_name
            ))
        })?;
        Ok(CodePlace {
            executable: executable.identity.clone(),
            offset,
            definition: self.type_name.to_owned(),
        })
    }
}

impl CodePlace {
    /// Builds the job in another process of the same executable.
    ///
    /// # Errors
    /// Fails if this is another executable, or for what the definition itself fails for.
    pub(crate) fn build(&self, bytes: &[u8]) -> Result<Box<dyn Pipeline>, TaskError> {
        let CodePlace {
            executable: sent,
            offset,
            definition,
        } = self;
        let executable = Executable::current()?;
        if executable.identity != *sent {
            return Err(TaskError::fatal(format!(
                "this program ({}) is not the one that submitted the job ({sent}), so it may have other code in the place \
                 of {definition}; submit the job again with this program",
                executable.identity
            )));
        }
        let address = executable.address_of(*offset).ok_or_else(|| {
            TaskError::fatal(format!(
                "this program has no code {offset} bytes from its beginning, where {definition} should be; submit the \
                 job again"
            ))
        })?;
        // SAFETY: the process that sent the offset had `build_found` there, and executes the same file: a linker gives
        // equal build ids to equal files only, and without one all bytes of the file were compared.
        let build = unsafe { std::mem::transmute::<usize, Build>(address) };
        build(bytes, definition)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn first(_: &u64) -> Job {
        Job::text().map_only(|line: &str, out| out.emit(line, 1))
    }

    fn second() -> Job {
        Job::text().map_only(|line: &str, out| out.emit(line, 2))
    }

    fn envelope(parameters: &str) -> Vec<u8> {
        let settings =
            serde_json::to_string(&crate::settings::Settings::default()).expect("settings");
        format!(r#"{{"settings":{settings},"files":{{}},"parameters":{parameters}}}"#).into_bytes()
    }

    fn refusal(place: &CodePlace, parameters: &str) -> String {
        place
            .build(&envelope(parameters))
            .err()
            .expect("it is refused")
            .message
    }

    #[test]
    fn definition_is_found_by_its_place() {
        let place = FoundDefinition::of(&first).place().expect("a place");
        place.build(&envelope("7")).expect("the job");
        assert!(
            refusal(&place, "\"seven\"").starts_with("parameters of the job cannot be decoded: ")
        );
        let closure = FoundDefinition::of(&|| second()).place().expect("a place");
        closure.build(&envelope("null")).expect("the job");
    }

    #[test]
    fn definition_is_named_after_its_function() {
        assert_eq!(FoundDefinition::of(&first).name(), "first");
        assert_eq!(
            FoundDefinition::of(&|| second()).name(),
            "definition_is_named_after_its_function"
        );
    }

    #[test]
    fn other_program_is_refused() {
        let place = FoundDefinition::of(&first).place().expect("a place");
        let relinked = CodePlace {
            executable: "build id 00ff".to_owned(),
            ..place.clone()
        };
        let relinked = refusal(&relinked, "7");
        assert!(relinked.starts_with("this program ("), "{relinked}");
        assert!(
            relinked.contains(") is not the one that submitted the job (build id 00ff)"),
            "{relinked}"
        );
        for offset in [0, u64::MAX, 1 << 40] {
            let elsewhere = CodePlace {
                offset,
                ..place.clone()
            };
            assert!(refusal(&elsewhere, "7").starts_with("this program has no code "));
        }
        let other = CodePlace {
            definition: "elsewhere::job".to_owned(),
            ..place
        };
        assert!(
            refusal(&other, "7")
                .starts_with("the task was sent for elsewhere::job, but this program has ")
        );
    }
}
