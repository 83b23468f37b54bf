//! Adds the name of its user to each order: `join-orders users=PATH... orders=PATH... --output DIR`.
//!
//! The orders of a user keep the order of the input.

use napreduce::input::TextLines;
use napreduce::{Job, Program, counter};

fn fields(line: &str) -> Result<(String, String), String> {
    let (id, field) = line
        .split_once(',')
        .ok_or_else(|| format!("expected two fields, but found {line:?}"))?;
    Ok((id.to_owned(), field.to_owned()))
}

fn join() -> Job<((String, String), String)> {
    Job::join("users", TextLines, fields)
        .with("orders", TextLines, fields)
        .right(|id, user, amount, out| match user {
            Some(name) => out.emit((id, name), amount),
            None => counter!("orders without a user").add(1),
        })
}

fn main() -> std::process::ExitCode {
    Program::new()
        .about("Adds the name of its user (ID,NAME) to each order (ID,AMOUNT)")
        .examples("join-orders users=users.csv orders=orders.csv --output named")
        .main(join)
}
