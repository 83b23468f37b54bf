//! Family `fair-shares`: weighted max-min shares with minima and maxima.

use napreduce_schedulers::fair::{Claim, UNBOUNDED, shares};
use serde_json::Value;

use crate::oracles::cases::{check, exact};

#[test]
fn oracle_fair_shares() {
    check("fair-shares", |case| {
        let claims = case["entities"].as_array().ok_or("no entities")?;
        let claims = claims
            .iter()
            .map(claim)
            .collect::<Result<Vec<Claim>, String>>()?;
        let got = shares(amount(&case["total"])?, &claims);
        let expected = case["expect"].as_array().ok_or("no expectation")?;
        let expected = expected
            .iter()
            .map(amount)
            .collect::<Result<Vec<u64>, String>>()?;
        if got == expected {
            Ok(())
        } else {
            Err(format!("{got:?} instead of {expected:?}"))
        }
    });
}

fn claim(entity: &Value) -> Result<Claim, String> {
    let max = if entity["max"].is_null() {
        UNBOUNDED
    } else {
        amount(&entity["max"])?
    };
    Ok(Claim {
        min: amount(&entity["min"])?,
        max,
        weight: exact(&entity["weight"]),
    })
}

fn amount(value: &Value) -> Result<u64, String> {
    value
        .as_u64()
        .ok_or_else(|| format!("{value} is no amount"))
}
