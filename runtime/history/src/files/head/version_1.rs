//! Version 1 of the heads, as 0.2.0 wrote it: the whole job in one file of JSON.
//!
//! Owns reading it. Nothing writes it any more.

use napreduce_protocol::{JobDetail, JobEnd};
use serde::Deserialize;

use crate::EndedJob;

#[derive(Deserialize)]
struct Whole {
    token: u128,
    end: JobEnd,
    detail: JobDetail,
}

pub(super) fn parse(bytes: &[u8]) -> Result<EndedJob, String> {
    let Whole { token, end, detail } = serde_json::from_slice(bytes).map_err(|error| error.to_string())?;
    Ok(EndedJob { token, end, detail, cluster: None, logs: Vec::new() })
}
