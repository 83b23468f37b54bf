//! One server: means under FIFO, PS, LAS, SRPT and FSP.
//!
//! Owns the stream of jobs for one server. Does not own the policies.

use crate::fluid::{FluidJob, FluidPolicy, completions};
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
        let gaps = Distribution::Exponential(1.0 / number(&params["lam"]));
        let (sizes, mut random, mut now) = (service(params)?, random(), 0.0);
        let job = |_| {
            now += gaps.draw(&mut random);
            FluidJob::new(now, sizes.draw(&mut random))
        };
        Ok(Stream { jobs: (0..count(case)?).map(job).collect() })
    }

    fn responses(&self, policy: FluidPolicy) -> Vec<f64> {
        let ends = completions(&self.jobs, policy);
        self.jobs.iter().zip(ends).map(|(job, end)| end - job.arrival).collect()
    }

    fn mean(&self, policy: FluidPolicy) -> f64 {
        after_warmup(&self.responses(policy))
    }

    /// From the first arrival to the last.
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
                    near(case, &format!("{what} under {policy:?}"), stream.mean(policy), expected)?;
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
                let (fair, shortest) = (stream.mean(FluidPolicy::FspFifo), stream.mean(FluidPolicy::Srpt));
                let bound = number(expected) * (1.0 + number(&case["relative_tolerance"]));
                if fair > bound || fair < shortest {
                    return Err(format!("{what}: FSP has {fair}, SRPT {shortest}, the bound is {bound}"));
                }
            }
            "conditional_PS_size_2" => {
                let responses = stream.responses(FluidPolicy::Ps);
                let alike =
                    stream.jobs.iter().zip(responses).filter(|(job, _)| (1.8..=2.2).contains(&job.size));
                let scaled: Vec<f64> = alike.map(|(job, response)| response * 2.0 / job.size).collect();
                near(case, what, after_warmup(&scaled), expected)?;
            }
            other => return Err(format!("unknown mean {other}")),
        }
    }
    Ok(())
}
