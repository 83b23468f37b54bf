//! What `nap sim --recorded --format json` says.
//!
//! Owns what of it is told on. Does not own how it is computed (`nap sim`).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How far the simulation of the recorded policy is from what happened. Errors are shares: 0.1 is 10 %.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WhatIfFidelity {
    /// Of the mean of all jobs' times from submission to end.
    pub sojourn_mean_error: f64,
    pub makespan_error: f64,
    /// Of the times of single jobs.
    pub sojourn_median_error: f64,
    pub sojourn_largest_error: f64,
    /// The job that has the largest one.
    pub largest_of: Option<String>,
    /// What is farther off than 10 %; if there is something, only directions can be compared.
    pub doubtful: Vec<String>,
}

/// What is kept of all that is said.
#[derive(Debug, Clone, PartialEq)]
pub struct Said {
    /// None where the history does not say which policy it had.
    pub fidelity: Option<WhatIfFidelity>,
    pub remarks: Vec<String>,
}

#[derive(Deserialize)]
struct Whole {
    recorded: Recorded,
}

#[derive(Deserialize)]
struct Recorded {
    remarks: Vec<String>,
    fidelity: Option<Fidelity>,
}

#[derive(Deserialize)]
struct Fidelity {
    sojourn_mean: Both,
    makespan: Both,
    deviation_median: f64,
    deviation_largest: f64,
    largest_of: Option<String>,
    doubtful: Vec<String>,
}

#[derive(Deserialize)]
struct Both {
    /// Simulated to recorded.
    ratio: f64,
}

impl Said {
    /// Reads it.
    pub fn parse(bytes: &[u8]) -> Result<Said, serde_json::Error> {
        let Whole { recorded: Recorded { remarks, fidelity } } = serde_json::from_slice(bytes)?;
        let off = |both: Both| (both.ratio - 1.0).abs();
        let fidelity = fidelity.map(|said| WhatIfFidelity {
            sojourn_mean_error: off(said.sojourn_mean),
            makespan_error: off(said.makespan),
            sojourn_median_error: said.deviation_median,
            sojourn_largest_error: said.deviation_largest,
            largest_of: said.largest_of,
            doubtful: said.doubtful,
        });
        Ok(Said { fidelity, remarks })
    }
}
