//! The job of this program. Its closures run in task processes, which execute the same program again.

use napreduce::input::TextLines;
use napreduce::{Job, counter};

/// Adds the name of its user (ID,NAME) to each order (ID,AMOUNT). Orders without a user are counted.
pub fn join() -> Job<((String, String), String)> {
    Job::join("users", TextLines, fields)
        .with("orders", TextLines, fields)
        .right(|id, user, amount, out| match user {
            Some(name) => out.emit((id, name), amount),
            None => counter!("orders without a user").add(1),
        })
}

fn fields(line: &str) -> Result<(String, String), String> {
    let (id, field) = line
        .split_once(',')
        .ok_or_else(|| format!("expected two fields, but found {line:?}"))?;
    Ok((id.to_owned(), field.to_owned()))
}
