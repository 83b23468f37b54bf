//! The greetings of both sides, `H`, in JSON: identity, task, and kind of job.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::frame::{Frame, FrameError, FrameKind};

/// Version of the protocol.
pub(super) const VERSION: u32 = 1;

/// The role of a program's process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Role {
    /// Only describes the job.
    Describe,
    Map,
    Reduce,
}

/// The greeting to a program. A state to restore follows it in the same frame.
#[derive(Debug, Serialize)]
pub(super) struct Greeting<'a> {
    pub(super) version: u32,
    pub(super) role: Role,
    /// The printed attempt; `None` in the role `Describe`.
    pub(super) attempt: Option<String>,
    /// The input file of a map.
    pub(super) input: Option<String>,
    pub(super) parameters: &'a BTreeMap<String, String>,
    /// Whether a state follows.
    pub(super) restores: bool,
    /// Whether the program may send `P`, which was added to version 1 later.
    pub(super) tells_done: bool,
}

impl Greeting<'_> {
    /// Returns the frame: the length of the JSON, the JSON, the state.
    pub(super) fn frame(&self, state: Option<&[u8]>) -> Result<Vec<u8>, FrameError> {
        let json = serde_json::to_vec(self).expect("strings and numbers are JSON");
        let mut payload = (json.len() as u32).to_be_bytes().to_vec();
        payload.extend_from_slice(&json);
        payload.extend_from_slice(state.unwrap_or_default());
        Frame {
            kind: FrameKind::Hello,
            payload: &payload,
        }
        .encoded()
    }
}

/// The records that a job reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Input {
    /// Lines of UTF-8.
    Text,
    /// Lines of any bytes.
    Bytes,
}

/// A combiner in Rust for values that are integers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Combine {
    Sum,
    Min,
    Max,
}

/// The greeting of a program: the description of its job. Unknown fields are ignored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Description {
    pub(super) version: u32,
    pub(super) input: Input,
    /// Whether there is a reduce; without one, the map writes lines of the output.
    #[serde(default)]
    pub(super) reduce: bool,
    #[serde(default)]
    pub(super) combine: Option<Combine>,
    /// Whether a key consists of a part that forms groups and a part that only orders values.
    #[serde(default)]
    pub(super) grouped: bool,
    #[serde(default)]
    pub(super) reduces: Option<u32>,
    #[serde(default)]
    pub(super) saves: Saves,
}

/// The sides that answer `S`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Saves {
    #[serde(default)]
    pub(super) map: bool,
    #[serde(default)]
    pub(super) reduce: bool,
}

impl Description {
    /// Reads the payload of a program's greeting. The error completes the sentence "the program sent ...".
    pub(super) fn read(payload: &[u8]) -> Result<Description, String> {
        #[derive(Deserialize)]
        struct Version {
            version: u32,
        }
        let invalid = |error| format!("an invalid frame H: {error}");
        // The other fields may differ between versions.
        let Version { version } = serde_json::from_slice(payload).map_err(invalid)?;
        if version != VERSION {
            return Err(format!(
                "frames of version {version}, but this nap supports version {VERSION}; install the same release of both"
            ));
        }
        let description: Description = serde_json::from_slice(payload).map_err(invalid)?;
        if !description.reduce && description.combine.is_some() {
            return Err(
                "a combiner without a reduce; add a reduce or remove the combiner".to_owned(),
            );
        }
        if !description.reduce && description.grouped {
            return Err("groups without a reduce; add a reduce or remove the groups".to_owned());
        }
        Ok(description)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invalid_description_is_rejected() {
        let read = |text: &str| Description::read(text.as_bytes());
        let known = read(r#"{"version":1,"input":"text","reduce":true,"combine":"sum","new":[]}"#);
        let known = known.expect("it is valid");
        assert_eq!(
            (known.combine, known.reduces, known.saves.map),
            (Some(Combine::Sum), None, false)
        );
        for (text, says) in [
            ("", "an invalid frame H: EOF"),
            ("[]", "an invalid frame H: "),
            (r#"{"version":1}"#, "missing field `input`"),
            (r#"{"version":1,"input":"rows"}"#, "unknown variant `rows`"),
            (
                r#"{"version":2,"input":"rows"}"#,
                "frames of version 2, but this nap supports version 1",
            ),
            (
                r#"{"version":1,"input":"text","combine":"sum"}"#,
                "a combiner without a reduce",
            ),
            (
                r#"{"version":1,"input":"text","grouped":true}"#,
                "groups without a reduce",
            ),
        ] {
            let error = read(text).expect_err(text);
            assert!(error.contains(says), "{text}: {error}");
        }
    }

    #[test]
    fn greeting_ends_with_state() {
        let parameters = BTreeMap::new();
        let greeting = Greeting {
            version: VERSION,
            role: Role::Map,
            attempt: None,
            input: None,
            parameters: &parameters,
            restores: true,
            tells_done: true,
        };
        let frame = greeting.frame(Some(b"state")).expect("it is short");
        let json = u32::from_be_bytes([frame[5], frame[6], frame[7], frame[8]]) as usize;
        assert_eq!(&frame[9 + json..], b"state");
        assert!(
            frame[9..].starts_with(br#"{"version":1,"role":"map","#),
            "{}",
            frame.escape_ascii()
        );
    }
}
