//! The greetings of both sides, `H`, in JSON: identity, task, and kind of job.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::frame::{Frame, FrameError, FrameKind};

/// Of the protocol.
pub(super) const VERSION: u32 = 1;

/// What a program is started for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Role {
    /// To say what its job is, and no more.
    Describe,
    Map,
    Reduce,
}

/// What a program is told. The state of another one, if there is one, stands behind it.
#[derive(Debug, Serialize)]
pub(super) struct Greeting<'a> {
    pub(super) version: u32,
    pub(super) role: Role,
    /// As it is printed; nothing is attempted where a job is described.
    pub(super) attempt: Option<String>,
    /// What a map reads.
    pub(super) input: Option<String>,
    pub(super) parameters: &'a BTreeMap<String, String>,
    /// Whether a state follows.
    pub(super) restores: bool,
    /// Whether the program may send `P`, which came later than version 1 did.
    pub(super) tells_done: bool,
}

impl Greeting<'_> {
    /// The frame: the length of the JSON, the JSON, the state.
    pub(super) fn frame(&self, state: Option<&[u8]>) -> Result<Vec<u8>, FrameError> {
        let json = serde_json::to_vec(self).expect("strings and numbers are JSON");
        let mut payload = (json.len() as u32).to_be_bytes().to_vec();
        payload.extend_from_slice(&json);
        payload.extend_from_slice(state.unwrap_or_default());
        Frame { kind: FrameKind::Hello, payload: &payload }.encoded()
    }
}

/// What a job reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Input {
    /// Lines of UTF-8.
    Text,
    /// Lines of any bytes.
    Bytes,
}

/// What is done in Rust to values of one key, which are whole numbers then.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Combine {
    Sum,
    Min,
    Max,
}

/// What a program answers: its job. Fields that are not known are not looked at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Description {
    pub(super) version: u32,
    pub(super) input: Input,
    /// Whether it reduces; if not, what the map writes are lines of the output.
    #[serde(default)]
    pub(super) reduce: bool,
    #[serde(default)]
    pub(super) combine: Option<Combine>,
    /// Whether keys have a part that makes a group, and one that is for the order within it alone.
    #[serde(default)]
    pub(super) grouped: bool,
    /// How many reduces it asks for.
    #[serde(default)]
    pub(super) reduces: Option<u32>,
    #[serde(default)]
    pub(super) saves: Saves,
}

/// Which of its sides answer `S`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Saves {
    #[serde(default)]
    pub(super) map: bool,
    #[serde(default)]
    pub(super) reduce: bool,
}

impl Description {
    /// Reads what a program has answered.
    pub(super) fn read(payload: &[u8]) -> Result<Description, String> {
        #[derive(Deserialize)]
        struct Version {
            version: u32,
        }
        let no_hello = |error| format!("a frame H that cannot be read: {error}");
        // Of another version the rest may be anything.
        let Version { version } = serde_json::from_slice(payload).map_err(no_hello)?;
        if version != VERSION {
            return Err(format!(
                "frames of version {version}, and this nap speaks version {VERSION}; bring both to the same release"
            ));
        }
        let described: Description = serde_json::from_slice(payload).map_err(no_hello)?;
        match described.combine {
            Some(_) if !described.reduce => Err("a combiner without a reduce; leave one out".to_owned()),
            _ if described.grouped && !described.reduce => {
                Err("groups without a reduce; leave them out".to_owned())
            }
            _ => Ok(described),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_description_is_read_and_wrong_ones_are_told() {
        let read = |text: &str| Description::read(text.as_bytes());
        let known = read(r#"{"version":1,"input":"text","reduce":true,"combine":"sum","new":[]}"#);
        let known = known.expect("it is one");
        assert_eq!((known.combine, known.reduces, known.saves.map), (Some(Combine::Sum), None, false));
        for (text, says) in [
            ("", "a frame H that cannot be read: EOF"),
            ("[]", "a frame H that cannot be read"),
            (r#"{"version":1}"#, "missing field `input`"),
            (r#"{"version":1,"input":"rows"}"#, "unknown variant `rows`"),
            (r#"{"version":2,"input":"rows"}"#, "frames of version 2, and this nap speaks version 1"),
            (r#"{"version":1,"input":"text","combine":"sum"}"#, "a combiner without a reduce"),
            (r#"{"version":1,"input":"text","grouped":true}"#, "groups without a reduce"),
        ] {
            let error = read(text).expect_err(text);
            assert!(error.contains(says), "{text}: {error}");
        }
    }

    #[test]
    fn a_greeting_is_followed_by_the_state() {
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
        assert!(frame[9..].starts_with(br#"{"version":1,"role":"map","#), "{}", frame.escape_ascii());
    }
}
