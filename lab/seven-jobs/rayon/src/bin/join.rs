use std::collections::HashMap;
use std::{env, error};

use rayon::prelude::*;
use serde::Deserialize;

#[derive(Deserialize)]
struct User {
    id: u64,
    name: String,
}

#[derive(Deserialize)]
struct Order {
    user: u64,
    amount: u64,
}

/// The name of the user of each order, and its amount: `join USERS ORDERS`.
fn main() -> Result<(), Box<dyn error::Error>> {
    let paths: Vec<String> = env::args().skip(1).collect();
    let users = csv::Reader::from_path(&paths[0])?.into_deserialize();
    let users = users.map(|user| user.map(|User { id, name }| (id, name)));
    let users = users.collect::<Result<HashMap<u64, String>, _>>()?;
    csv::Reader::from_path(&paths[1])?.into_deserialize::<Order>().par_bridge().try_for_each(|order| {
        let order = order?;
        if let Some(name) = users.get(&order.user) {
            println!("{name}\t{}", order.amount);
        }
        Ok::<(), csv::Error>(())
    })?;
    Ok(())
}
