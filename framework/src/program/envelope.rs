//! The data with which a task process rebuilds a job. It is JSON, which other engines pass on as text and people read.

use std::any::type_name;
use std::collections::BTreeMap;
use std::path::PathBuf;

use napreduce_protocol::TaskError;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::definition::CodePlace;
use crate::codec::tagged;
use crate::settings::Settings;

/// JSON of parameters that is longer is left out: it is only for people.
const READABLE_BYTES_MAX: usize = 64 << 10;

/// Where the definition of a job is unless it has a name, the settings of the run, the paths of side files unless a
/// worker has placed them, and the parameters of the definition.
#[derive(Serialize, Deserialize)]
pub(super) struct Envelope {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) code: Option<CodePlace>,
    pub(super) settings: Settings,
    pub(super) files: BTreeMap<String, PathBuf>,
    #[serde(flatten)]
    pub(super) parameters: SentParameters,
}

/// Parameters as they are sent. JSON has no infinities, NaN, options in options or maps with other keys than text, so tasks
/// read the exact form.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct SentParameters {
    /// `None` for `()`, and in envelopes that were not made by this crate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    exact: Option<Exact>,
    /// For people; null if they are long or JSON cannot represent them.
    parameters: Value,
}

/// A tagged value in hexadecimal digits, with the type that wrote it.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Exact {
    #[serde(rename = "type")]
    type_name: String,
    value: String,
}

impl SentParameters {
    /// # Errors
    /// Fails if the type's `Serialize` does.
    pub(crate) fn new<P: Serialize>(parameters: &P) -> Result<SentParameters, String> {
        let mut bytes = Vec::new();
        tagged::append_unchecked(parameters, &mut bytes).map_err(|error| error.to_string())?;
        let value = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        let type_name = type_name::<P>().trim_start_matches('&').to_owned();
        let readable = match serde_json::to_value(parameters) {
            Ok(readable) if bytes.len() <= READABLE_BYTES_MAX => readable,
            Ok(_) | Err(_) => Value::Null,
        };
        Ok(SentParameters {
            exact: Some(Exact { type_name, value }),
            parameters: readable,
        })
    }

    fn decode<P: Serialize + DeserializeOwned>(self) -> Result<P, String> {
        let Some(Exact {
            type_name: sent,
            value,
        }) = self.exact
        else {
            return serde_json::from_value(self.parameters).map_err(|error| error.to_string());
        };
        let bytes = from_hex(&value).ok_or("they are damaged")?;
        if sent == type_name::<P>() {
            return tagged::take_state(&mut bytes.as_slice()).map_err(|error| error.to_string());
        }
        // Sent as another type, such as an i32 for a u64.
        tagged::decode(&bytes).map_err(|error| error.to_string())
    }
}

fn from_hex(digits: &str) -> Option<Vec<u8>> {
    let digits = digits.as_bytes();
    let digit = |byte: u8| char::from(byte).to_digit(16);
    let mut bytes = Vec::with_capacity(digits.len() / 2);
    for pair in digits.chunks(2) {
        let [high, low] = *pair else { return None };
        bytes.push((digit(high)? << 4 | digit(low)?) as u8);
    }
    Some(bytes)
}

impl Envelope {
    /// Returns the parameters and the settings.
    pub(super) fn decode<P: Serialize + DeserializeOwned>(
        bytes: &[u8],
    ) -> Result<(P, Settings), TaskError> {
        let envelope: Envelope = serde_json::from_slice(bytes).map_err(undecodable)?;
        let parameters = envelope.parameters.decode().map_err(undecodable)?;
        Ok((parameters, envelope.settings))
    }

    pub(super) fn encode(&self) -> Vec<u8> {
        serde_json::to_vec(self).expect("text, numbers and lists are JSON")
    }
}

/// The part of an [`Envelope`] that is needed to find its definition.
#[derive(Deserialize)]
pub(super) struct Addressed {
    /// `None` for a definition with a name.
    #[serde(default)]
    pub(super) code: Option<CodePlace>,
    pub(super) files: BTreeMap<String, PathBuf>,
}

impl Addressed {
    pub(super) fn of(envelope: &[u8]) -> Result<Addressed, TaskError> {
        serde_json::from_slice(envelope).map_err(undecodable)
    }
}

fn undecodable(error: impl std::fmt::Display) -> TaskError {
    TaskError::fatal(format!("parameters of the job cannot be decoded: {error}"))
}
