//! Puts the name of its user to each order: `join USERS ORDERS --output DIR`.
//!
//! Owns how users (`ID,NAME`) are told from orders (`ID,AMOUNT`), and that a user comes before its orders. Does not own
//! which file a line is in, nor the order of a user's orders, which is that of the input.

use std::process::ExitCode;

use napreduce::{Emit, Job, Key, Program, counter};

/// Where a line comes from: what is written first here comes first in its group.
#[derive(Key)]
enum Table {
    Users,
    Orders,
}

fn join(_: &()) -> Job {
    Job::text()
        .map(|line: &str, out: &mut Emit<(String, Table), String>| {
            let (id, field) = line
                .split_once(',')
                .ok_or_else(|| format!("expected ID,NAME or ID,AMOUNT, but found {line:?}"))?;
            let table = if field.parse::<u64>().is_ok() { Table::Orders } else { Table::Users };
            out.emit((id, table), field);
            Ok::<(), String>(())
        })
        .group_by::<String>()
        .reduce(|id, lines, out| {
            let mut name = None;
            while let Some(((_, table), field)) = lines.next_entry() {
                match (table, &name) {
                    (Table::Users, _) => name = Some(field.to_owned()),
                    (Table::Orders, Some(name)) => out.emit((id, name), field),
                    (Table::Orders, None) => counter!("orders without a user").add(1),
                }
            }
        })
}

fn main() -> ExitCode {
    Program::new()
        .about("Puts the name of its user (ID,NAME) to each order (ID,AMOUNT)")
        .examples("join users.csv orders.csv --output named")
        .main(join)
}
