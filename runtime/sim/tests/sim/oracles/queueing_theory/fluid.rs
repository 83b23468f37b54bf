//! One server: mean responses under FIFO, PS, LAS, SRPT and FSP.

use crate::oracles::fluid::{FluidJob, FluidPolicy, completions};
use napreduce_sim::Distribution;
use serde_json::Value;

use super::{after_warmup, count, near, number, random, service};

struct Stream {
    jobs: Vec<FluidJob<f64>>,
}

impl Stream {
    fn new(case: &Value) -> Result<Stream, String> {
        let params = &case["params"];
        if params["arrival"] != "Poisson" || params["servers"] != 1 {
            return Err("neither Poisson arrivals nor one server".to_owned());
        }
        Ok(Stream::poisson(
            number(&params["lam"]),
            &service(params)?,
            count(case)?,
        ))
    }

    fn poisson(rate: f64, sizes: &Distribution, count: usize) -> Stream {
        let gaps = Distribution::Exponential(1.0 / rate);
        let mut random = random();
        let mut now = 0.0;
        let job = |_| {
            now += gaps.draw(&mut random);
            FluidJob::new(now, sizes.draw(&mut random))
        };
        Stream {
            jobs: (0..count).map(job).collect(),
        }
    }

    fn responses(&self, policy: FluidPolicy) -> Vec<f64> {
        let ends = completions(&self.jobs, policy);
        self.jobs
            .iter()
            .zip(ends)
            .map(|(job, end)| end - job.arrival)
            .collect()
    }

    fn mean(&self, policy: FluidPolicy) -> f64 {
        after_warmup(&self.responses(policy))
    }

    /// Returns the time from the first to the last arrival.
    fn length(&self) -> f64 {
        self.jobs[self.jobs.len() - 1].arrival - self.jobs[0].arrival
    }
}

pub fn one_server(case: &Value) -> Result<(), String> {
    let stream = Stream::new(case)?;
    for (what, expected) in case["expect"].as_object().ok_or("no expect")? {
        match what.as_str() {
            "mean_response_blind" => {
                for policy in [FluidPolicy::Fifo, FluidPolicy::Ps, FluidPolicy::Las] {
                    near(
                        case,
                        &format!("{what} under {policy:?}"),
                        stream.mean(policy),
                        expected,
                    )?;
                }
            }
            "mean_number_in_system" => {
                let total: f64 = stream.responses(FluidPolicy::Ps).iter().sum();
                near(case, what, total / stream.length(), expected)?;
            }
            "utilisation" => {
                let work: f64 = stream.jobs.iter().map(|job| job.size).sum();
                near(case, what, work / stream.length(), expected)?;
            }
            "mean_response_SRPT" => near(case, what, stream.mean(FluidPolicy::Srpt), expected)?,
            "mean_response_FIFO" => near(case, what, stream.mean(FluidPolicy::Fifo), expected)?,
            "mean_response_PS" => near(case, what, stream.mean(FluidPolicy::Ps), expected)?,
            "mean_response_FSP_upper" => {
                let fair = stream.mean(FluidPolicy::FspFifo);
                let shortest = stream.mean(FluidPolicy::Srpt);
                let bound = number(expected) * (1.0 + number(&case["relative_tolerance"]));
                if fair > bound || fair < shortest {
                    return Err(format!(
                        "{what}: FSP has {fair}, SRPT {shortest}, the bound is {bound}"
                    ));
                }
            }
            "conditional_PS_size_2" => {
                let responses = stream.responses(FluidPolicy::Ps);
                let alike = stream
                    .jobs
                    .iter()
                    .zip(responses)
                    .filter(|(job, _)| (1.8..=2.2).contains(&job.size));
                let scaled: Vec<f64> = alike
                    .map(|(job, response)| response * 2.0 / job.size)
                    .collect();
                near(case, what, after_warmup(&scaled), expected)?;
            }
            other => return Err(format!("unknown mean {other}")),
        }
    }
    Ok(())
}

/// Tolerance between the mean of a stream and the formula: equal sizes meet the bound exactly.
const SAMPLING_ERROR: f64 = 0.05;
const LONG: usize = 200_000;

/// Returns streams of mean size 1 at low, medium and high load, with sizes from constant to highly variable.
fn long_streams() -> impl Iterator<Item = (f64, Distribution, Stream)> {
    let sizes = [
        Distribution::Fixed(1.0),
        Distribution::Uniform([0.0, 2.0]),
        Distribution::Exponential(1.0),
        Distribution::Hyperexponential {
            means: vec![0.5, 1.5],
            shares: vec![1.0, 1.0],
        },
        Distribution::Hyperexponential {
            means: vec![0.1, 9.1],
            shares: vec![9.0, 1.0],
        },
    ];
    sizes.into_iter().flat_map(|sizes| {
        [0.3, 0.5, 0.7, 0.85].map(|load| {
            let stream = Stream::poisson(load, &sizes, LONG);
            (load, sizes.clone(), stream)
        })
    })
}

/// M/GI/1: the mean response under FSP is at most 1 - load / 2 times that under PS, and at least that under
/// SRPT.
pub fn fsp_bound() -> Result<(), String> {
    for (load, sizes, stream) in long_streams() {
        let [fair, shared, shortest] = [FluidPolicy::FspFifo, FluidPolicy::Ps, FluidPolicy::Srpt]
            .map(|policy| stream.mean(policy));
        let bound = (1.0 - load / 2.0) * shared * (1.0 + SAMPLING_ERROR);
        if fair > bound || fair < shortest {
            return Err(format!(
                "{sizes:?} at load {load}: FSP has {fair}, SRPT {shortest}, PS {shared}, the bound is {bound}"
            ));
        }
    }
    Ok(())
}

/// M/GI/1: the mean response under PS is 1 / (1 - load) times the mean size, for any size distribution.
pub fn ps_insensitivity() -> Result<(), String> {
    for (load, sizes, stream) in long_streams() {
        let found = stream.mean(FluidPolicy::Ps);
        let expected = 1.0 / (1.0 - load);
        // The load of the drawn stream differs slightly from the nominal one.
        let tolerance = SAMPLING_ERROR / (1.0 - load);
        if (found / expected - 1.0).abs() > tolerance {
            return Err(format!(
                "{sizes:?} at load {load}: PS has {found}, not {expected} within {tolerance}"
            ));
        }
    }
    Ok(())
}
