//! Family `fsp-with-size-errors`: completion times with misestimated sizes, within a tolerance.

use crate::oracles::fluid::{FluidPolicy, completions};

use crate::oracles::cases::{check, exact};
use crate::oracles::fluid_single_server::{fast, jobs};

#[test]
fn oracle_fsp_with_size_errors() {
    check("fsp-with-size-errors", |case| {
        let jobs = jobs(&case["jobs"]);
        let tolerance = case["tolerance"].as_f64().ok_or("no tolerance")?;
        for (name, ends) in case["expect"].as_object().ok_or("no expect")? {
            let policy = match name.as_str() {
                "SRPT" => FluidPolicy::Srpt,
                "FSP_FIFO" => FluidPolicy::FspFifo,
                "FSP_PS" => FluidPolicy::FspPs,
                "PS" => FluidPolicy::Ps,
                "FIFO" => FluidPolicy::Fifo,
                other => return Err(format!("unknown policy {other}")),
            };
            let found = completions(&jobs.jobs, policy);
            let in_floats = completions(&jobs.jobs.iter().map(fast).collect::<Vec<_>>(), policy);
            for (position, job) in jobs.names.iter().enumerate() {
                let expected = exact(&ends[job]).to_f64();
                let end = found[position].to_f64();
                if (end - expected).abs() > tolerance || (in_floats[position] - end).abs() > 1e-9 {
                    let fast = in_floats[position];
                    return Err(format!(
                        "{name}: {job} ends at {end} ({fast} in floats), not {expected}"
                    ));
                }
            }
        }
        Ok(())
    });
}
