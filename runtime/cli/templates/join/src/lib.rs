//! The job of this program. Its closures run in task processes, which execute the same program again.

use napreduce::input::TextLines;
use napreduce::{Emit, Job, Key, counter};

/// The table of a row. The second part of a key, so that a user comes before its orders.
#[derive(Key)]
enum Table {
    Users,
    Orders,
}

type Rows = Emit<(String, Table), String>;

/// Adds the name of its user (ID,NAME) to each order (ID,AMOUNT).
pub fn join() -> Job {
    Job::inputs()
        .add("users", TextLines, |line: &str, out: &mut Rows| {
            fields(line).map(|(id, name)| out.emit((id, Table::Users), name))
        })
        .add("orders", TextLines, |line: &str, out: &mut Rows| {
            fields(line).map(|(id, amount)| out.emit((id, Table::Orders), amount))
        })
        .group_by::<String>()
        .reduce(|id, rows, out| {
            let mut user = None;
            while let Some(((_, table), field)) = rows.next_entry() {
                match (table, &user) {
                    (Table::Users, _) => user = Some(field.to_owned()),
                    (Table::Orders, Some(name)) => out.emit((id, name), field),
                    (Table::Orders, None) => counter!("orders without a user").add(1),
                }
            }
        })
}

fn fields(line: &str) -> Result<(&str, &str), String> {
    line.split_once(',')
        .ok_or_else(|| format!("expected two fields, but found {line:?}"))
}
