//! The outputs of a job's definition, opened by a task from scratch or from a checkpoint.

use std::path::Path;
use std::sync::Arc;

use napreduce_protocol::NamedPart;
use napreduce_task::OutputPiece;

use super::error::{OutputError, OutputNameError, PiecesError, ResumeError};
use super::named::{DeclaredOutput, NamedWriter, OpenedOutput, piece_of, resumed};
use super::part_writer::PIECE;
use super::{Output, OutputFormat};
use crate::settings::Settings;

/// The outputs of a job: the format of its parts, and its named outputs in order.
pub(crate) struct OutputDefinition<F> {
    format: F,
    named: Vec<Arc<dyn DeclaredOutput>>,
}

impl<F: OutputFormat> OutputDefinition<F> {
    pub(crate) fn new(format: F, mut named: Vec<Arc<dyn DeclaredOutput>>) -> OutputDefinition<F> {
        named.sort_by(|one, other| one.name().cmp(other.name()));
        OutputDefinition { format, named }
    }

    /// Checks the names.
    pub(crate) fn check(&self) -> Result<(), OutputNameError> {
        for (number, output) in self.named.iter().enumerate() {
            let name = output.name();
            if name == PIECE {
                return Err(OutputNameError::Reserved(name.to_owned()));
            }
            if !NamedPart::is_name(name) {
                return Err(OutputNameError::Invalid(name.to_owned()));
            }
            if self.named[..number]
                .iter()
                .any(|before| before.name() == name)
            {
                return Err(OutputNameError::Duplicate(name.to_owned()));
            }
        }
        Ok(())
    }

    /// Returns whether all formats can be checkpointed.
    pub(crate) fn saves(&self) -> bool {
        super::saves(&self.format) && self.named.iter().all(|output| output.saves())
    }

    /// Applies the settings of this run.
    pub(crate) fn set(&mut self, settings: &Settings) {
        self.format.take_records(settings.records);
    }

    pub(crate) fn create(&self, path: &Path) -> Result<Output<F>, OutputError> {
        let mut output = Output::create(self.format.clone(), path)?;
        output.named = self.opened(|declared| declared.create(Some(path)))?;
        Ok(output)
    }

    /// Returns an output that discards everything.
    pub(crate) fn discarding(&self) -> Result<Output<F>, OutputError> {
        let mut output = Output::discarding(self.format.clone());
        output.named = self.opened(|declared| declared.create(None))?;
        Ok(output)
    }

    /// Continues after the pieces of a checkpoint below `base`.
    pub(crate) fn resume(
        &self,
        path: &Path,
        base: &Path,
        mut pieces: Vec<OutputPiece>,
        state: &[u8],
    ) -> Result<Output<F>, ResumeError> {
        let states = self.states(state).map_err(ResumeError::Checkpoint)?;
        let mut pieces_of = |name: &str| -> Vec<OutputPiece> {
            pieces
                .extract_if(.., |piece| Path::new(&piece.file).ends_with(name))
                .collect()
        };
        let mut output = resumed(
            self.format.clone(),
            path,
            base,
            pieces_of(PIECE),
            &states[0],
        )?;
        for (declared, state) in self.named.iter().zip(&states[1..]) {
            let writer =
                declared.resume(path, base, pieces_of(&piece_of(declared.name())), state)?;
            output.named.push(OpenedOutput {
                declared: Arc::clone(declared),
                writer,
            });
        }
        match pieces.first() {
            None => Ok(output),
            Some(piece) => {
                let path = base.join(&piece.file);
                let what = "the job has no output of this name".to_owned();
                Err(PiecesError::Damaged { path, what }.into())
            }
        }
    }

    /// Splits the saved state by format, the parts first.
    fn states(&self, saved: &[u8]) -> Result<Vec<Vec<u8>>, String> {
        if self.named.is_empty() {
            return Ok(vec![saved.to_vec()]);
        }
        let states = split_states(saved).ok_or("the states of its outputs are truncated")?;
        let found = states.len();
        let expected = 1 + self.named.len();
        if found != expected {
            return Err(format!(
                "it contains the states of {found} outputs instead of {expected}"
            ));
        }
        Ok(states)
    }

    fn opened<E>(
        &self,
        open: impl Fn(&dyn DeclaredOutput) -> Result<Box<dyn NamedWriter>, E>,
    ) -> Result<Vec<OpenedOutput>, E> {
        let open = |declared: &Arc<dyn DeclaredOutput>| {
            Ok(OpenedOutput {
                declared: Arc::clone(declared),
                writer: open(&**declared)?,
            })
        };
        self.named.iter().map(open).collect()
    }
}

/// Appends states, each after its length.
pub(super) fn join_states(states: &[Vec<u8>], joined: &mut Vec<u8>) {
    for state in states {
        joined.extend_from_slice(&(state.len() as u64).to_le_bytes());
        joined.extend_from_slice(state);
    }
}

/// Reverses [`join_states`]; `None` if the bytes end within a state.
fn split_states(joined: &[u8]) -> Option<Vec<Vec<u8>>> {
    let mut states = Vec::new();
    let mut rest = joined;
    while !rest.is_empty() {
        let (length, after) = rest.split_first_chunk()?;
        let length = usize::try_from(u64::from_le_bytes(*length)).ok()?;
        let (state, after) = after.split_at_checked(length)?;
        states.push(state.to_vec());
        rest = after;
    }
    Some(states)
}
