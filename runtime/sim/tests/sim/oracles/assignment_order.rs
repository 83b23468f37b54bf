//! Family `assignment-order`: which child is offered a free slot first.

use std::sync::Arc;

use napreduce_engine::{Ratio, Time};
use napreduce_schedulers::capacity;
use napreduce_schedulers::fair::{ChildStanding, Name, Weight};
use serde_json::Value;

use crate::oracles::cases::{check, exact};

#[test]
fn oracle_assignment_order() {
    check("assignment-order", |case| {
        let children = case["children"].as_array().ok_or("no children")?;
        let got: Vec<String> = match case["kind"].as_str() {
            Some("fair") => fair(children),
            Some("capacity") => capacity(children),
            other => return Err(format!("unknown kind {other:?}")),
        };
        let expected = case["expect_order"].as_array().ok_or("no expected order")?;
        let expected: Vec<&str> = expected.iter().filter_map(Value::as_str).collect();
        if got == expected {
            Ok(())
        } else {
            Err(format!("{got:?} instead of {expected:?}"))
        }
    });
}

/// Returns the names of the children in the order of Fair.
fn fair(children: &[Value]) -> Vec<String> {
    let amounts = ["usage", "min", "demand", "start"].map(|what| whole(children, what));
    let mut standings: Vec<(ChildStanding, String)> = Vec::new();
    for (place, child) in children.iter().enumerate() {
        let [usage, min, demand, start] = [0, 1, 2, 3].map(|of: usize| amounts[of][place]);
        let name = child["name"].as_str().unwrap().to_owned();
        let standing = ChildStanding {
            usage,
            min,
            demand,
            weight: Weight::new(exact(&child["weight"])),
            start: Time(start),
            name: Name::Pool(Arc::from(name.as_str())),
        };
        standings.push((standing, name));
    }
    standings.sort();
    standings.into_iter().map(|(_, name)| name).collect()
}

/// Returns one number per child in a unit in which all are whole; start times have their own unit.
fn whole(children: &[Value], what: &str) -> Vec<u64> {
    let amounts: &[&str] = if what == "start" {
        &["start"]
    } else {
        &["usage", "min", "demand"]
    };
    let all = children
        .iter()
        .flat_map(|child| amounts.iter().map(|amount| exact(&child[*amount])));
    let unit: i128 = all.map(|amount| amount.denominator()).product();
    let scaled = |child: &Value| {
        exact(&child[what]).numerator() * (unit / exact(&child[what]).denominator())
    };
    children
        .iter()
        .map(|child| u64::try_from(scaled(child)).unwrap())
        .collect()
}

/// Returns the names of the children in the order of Capacity.
fn capacity(children: &[Value]) -> Vec<String> {
    let number = |child: &Value, what: &str| -> Ratio { exact(&child[what]) };
    let standing = |child: &'_ Value| {
        let name = child["name"].as_str().unwrap().to_owned();
        let priority = i32::try_from(child["priority"].as_i64().unwrap_or_default()).unwrap();
        (
            name,
            number(child, "used"),
            number(child, "guaranteed"),
            priority,
        )
    };
    let children: Vec<(String, Ratio, Ratio, i32)> = children.iter().map(standing).collect();
    let mut standings: Vec<capacity::QueueStanding<'_>> = children
        .iter()
        .map(
            |&(ref name, used, guaranteed, priority)| capacity::QueueStanding {
                name,
                used,
                guaranteed,
                priority,
            },
        )
        .collect();
    standings.sort_by(capacity::QueueStanding::compare);
    standings
        .into_iter()
        .map(|standing| standing.name.to_owned())
        .collect()
}
