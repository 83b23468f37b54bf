//! Joins JSON lines: adds the name of its user to each visit: `named-visits users=PATH... visits=PATH...
//! --output DIR`.
//!
//! The key sorts a user before its visits.

use std::process::ExitCode;

use napreduce::rows::{JsonLines, JsonRows};
use napreduce::{Emit, Job, Key, Program};
use serde::{Deserialize, Serialize};

#[derive(Deserialize)]
struct User {
    id: u64,
    name: String,
}

#[derive(Deserialize)]
struct Visit {
    user: u64,
    page: String,
}

#[derive(Serialize)]
struct NamedVisit<'a> {
    name: Option<&'a str>,
    page: &'a str,
}

/// The input of a line. Users sort first.
#[derive(Key)]
enum Table {
    Users,
    Visits,
}

type Rows = Emit<(u64, Table), String>;

fn named_visits(_: &()) -> Job {
    Job::inputs()
        .add("users", JsonRows::<User>::default(), |user: User, out: &mut Rows| {
            out.emit((user.id, Table::Users), &user.name);
        })
        .add("visits", JsonRows::<Visit>::default(), |visit: Visit, out: &mut Rows| {
            out.emit((visit.user, Table::Visits), &visit.page);
        })
        .group_by::<u64>()
        .output(JsonLines)
        .reduce(|_, rows, out| {
            let mut name = None;
            while let Some(((_, table), text)) = rows.next_entry() {
                match table {
                    Table::Users => name = Some(text.to_owned()),
                    Table::Visits => out.emit(&NamedVisit { name: name.as_deref(), page: text }),
                }
            }
        })
}

fn main() -> ExitCode {
    Program::new()
        .about("Adds the name of its user ({id, name}) to each visit ({user, page})")
        .examples("named-visits users=users.jsonl visits=visits.jsonl --output named")
        .main(named_visits)
}
