//! Joins JSON lines: adds the name of its user to each visit: `named-visits users=PATH... visits=PATH...
//! --output DIR`.

use napreduce::rows::{JsonLines, JsonRows};
use napreduce::{Job, Program};
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize)]
struct User {
    id: u64,
    name: String,
}

#[derive(Serialize, Deserialize)]
struct Visit {
    user: u64,
    page: String,
}

#[derive(Serialize)]
struct NamedVisit<'a> {
    name: Option<&'a str>,
    page: &'a str,
}

fn named_visits() -> Job {
    Job::join("users", JsonRows::<User>::default(), |user| (user.id, user))
        .with("visits", JsonRows::<Visit>::default(), |visit| {
            (visit.user, visit)
        })
        .output(JsonLines)
        .right(|_, user, visit, out| {
            out.emit(&NamedVisit {
                name: user.map(|user| user.name.as_str()),
                page: &visit.page,
            });
        })
}

fn main() -> std::process::ExitCode {
    Program::new()
        .about("Adds the name of its user ({id, name}) to each visit ({user, page})")
        .examples("named-visits users=users.jsonl visits=visits.jsonl --output named")
        .main(named_visits)
}
