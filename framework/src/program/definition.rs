//! Job definitions as functions, and how a task process finds the one that the program ran.
//!
//! A task process executes the same file as the program that plans the job. A definition is a function or a closure that
//! captures nothing, so no value of it has to be sent: the distance of its compiled code from a fixed function of this crate
//! is the same in every process of the executable. The distance goes to the task process with the first bytes of the code,
//! which are compared before the call, and with the name of the type, which the code itself compares.

#![expect(unsafe_code, reason = "calls the code of a definition by its address")]

use std::any::type_name;
use std::fs;
use std::ptr::NonNull;

use napreduce_protocol::TaskError;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::envelope::Envelope;
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
}

/// The place of a definition in the executable, as task processes read it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct CodePlace {
    /// Bytes from [`anchor`] to the code; negative if the code comes first.
    distance: i64,
    /// The first bytes of the code, in hexadecimal digits.
    code: String,
    /// The name of the definition's type.
    definition: String,
}

/// How many bytes of code are compared.
const COMPARED: usize = 16;

/// The function from which distances are measured.
#[inline(never)]
fn anchor() {
    std::hint::black_box(());
}

fn anchor_address() -> usize {
    anchor as *const () as usize
}

impl FoundDefinition {
    pub(crate) fn of<Kind, D: Definition<Kind>>(_: &D) -> FoundDefinition {
        const { assert!(size_of::<D>() == 0, "{}", CAPTURES) };
        FoundDefinition {
            build: build_found::<Kind, D>,
            type_name: type_name::<D>(),
        }
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
    /// Fails for a definition in a shared library, which no task process has at the same distance.
    pub(crate) fn place(&self) -> Result<CodePlace, TaskError> {
        let address = self.build as usize;
        let distance = address.wrapping_sub(anchor_address()) as isize as i64;
        let code = code_at(address)?;
        Ok(CodePlace {
            distance,
            code,
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
        let address = anchor_address().wrapping_add(self.distance as isize as usize);
        if code_at(address)? != self.code {
            return Err(TaskError::fatal(format!(
                "this program is not the one that submitted the job: it has no definition {} where that one has it; \
                 submit the job again with this program",
                self.definition
            )));
        }
        // SAFETY: the address lies in the code of this executable and begins like `build_found` in the process that sent
        // it, which had the same distance from the same function: it executed the same file.
        let build = unsafe { std::mem::transmute::<usize, Build>(address) };
        build(bytes, &self.definition)
    }
}

/// Returns the first bytes of the code at an address of this executable, in hexadecimal digits.
fn code_at(address: usize) -> Result<String, TaskError> {
    let unreadable =
        |error: std::io::Error| TaskError::io("find the code of the job definition", &error);
    let own = fs::read_link("/proc/self/exe").map_err(unreadable)?;
    let maps = fs::read_to_string("/proc/self/maps").map_err(unreadable)?;
    let is_code = maps.lines().any(|line| {
        let mapping = Mapping::parse(line);
        mapping.is_some_and(|mapping| {
            mapping.executable
                && std::path::Path::new(mapping.path) == own
                && mapping.start <= address
                && address
                    .checked_add(COMPARED)
                    .is_some_and(|end| end <= mapping.end)
        })
    });
    if !is_code {
        return Err(TaskError::fatal(
            "the job definition is not part of this program's executable, so task processes cannot find it; link it \
             into the program, not into a shared library",
        ));
    }
    // SAFETY: these bytes lie in a mapping of this executable's code, which is readable and never unmapped.
    let bytes = unsafe { std::slice::from_raw_parts(address as *const u8, COMPARED) };
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// A line of `/proc/self/maps`.
struct Mapping<'l> {
    start: usize,
    end: usize,
    executable: bool,
    path: &'l str,
}

impl<'l> Mapping<'l> {
    /// `START-END PERMISSIONS OFFSET DEVICE INODE PATH`.
    fn parse(line: &'l str) -> Option<Mapping<'l>> {
        let (range, rest) = line.split_once(' ')?;
        let (start, end) = range.split_once('-')?;
        let (permissions, rest) = rest.split_once(' ')?;
        let path = rest.splitn(4, ' ').nth(3)?.trim_start();
        Some(Mapping {
            start: usize::from_str_radix(start, 16).ok()?,
            end: usize::from_str_radix(end, 16).ok()?,
            executable: permissions.starts_with("r-x"),
            path,
        })
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
    fn other_code_is_never_called() {
        let place = FoundDefinition::of(&first).place().expect("a place");
        for moved in [1, -1, 16, 1 << 20] {
            let wrong = CodePlace {
                distance: place.distance + moved,
                ..place.clone()
            };
            let refusal = refusal(&wrong, "7");
            assert!(
                refusal.starts_with("this program is not the one")
                    || refusal.starts_with("the job definition is not"),
                "{refusal}"
            );
        }
        for far in [i64::MAX, i64::MIN, 1 << 40] {
            let wrong = CodePlace {
                distance: far,
                ..place.clone()
            };
            assert!(
                refusal(&wrong, "7")
                    .starts_with("the job definition is not part of this program's executable")
            );
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
