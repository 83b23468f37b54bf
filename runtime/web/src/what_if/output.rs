//! The output of `nap sim --recorded --format json`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How closely the simulation of the recorded scheduler matches the history. Errors are shares: 0.1 is 10 %.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WhatIfFidelity {
    /// Error of the mean sojourn time, from submission to end, over all jobs.
    pub sojourn_mean_error: f64,
    pub makespan_error: f64,
    /// Median of the errors of single jobs.
    pub sojourn_median_error: f64,
    /// Largest of the errors of single jobs.
    pub sojourn_largest_error: f64,
    /// The job with the largest error.
    pub largest_of: Option<String>,
    /// The quantities with an error above 10 %. If there are any, only the direction of a change is meaningful.
    pub doubtful: Vec<String>,
}

/// The part of the output that is kept.
#[derive(Debug, Clone, PartialEq)]
pub struct SimOutput {
    /// `None` if the history does not name its scheduler.
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
    /// Simulated divided by recorded.
    ratio: f64,
}

impl SimOutput {
    /// Parses the standard output of the simulator.
    pub fn parse(bytes: &[u8]) -> Result<SimOutput, serde_json::Error> {
        let Whole {
            recorded: Recorded { remarks, fidelity },
        } = serde_json::from_slice(bytes)?;
        let error_of = |both: Both| (both.ratio - 1.0).abs();
        let fidelity = fidelity.map(|fidelity| WhatIfFidelity {
            sojourn_mean_error: error_of(fidelity.sojourn_mean),
            makespan_error: error_of(fidelity.makespan),
            sojourn_median_error: fidelity.deviation_median,
            sojourn_largest_error: fidelity.deviation_largest,
            largest_of: fidelity.largest_of,
            doubtful: fidelity.doubtful,
        });
        Ok(SimOutput { fidelity, remarks })
    }
}
