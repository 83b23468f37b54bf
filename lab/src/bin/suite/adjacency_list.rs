//! The neighbours of each vertex, from edges `a,b`, which are split at their last comma: `adjacency-list INPUT... --output DIR`.

use napreduce::{Emit, Job, Key, Program, counter};

/// More neighbours of one kind are left out.
const NEIGHBOURS_MAX: usize = 200_000;

#[derive(Key)]
enum Direction {
    From,
    To,
}

pub fn adjacency_list() -> Job {
    with_at_most(NEIGHBOURS_MAX)
}

pub fn with_at_most(most: usize) -> Job {
    Job::text()
        .map(
            |line: &str, out: &mut Emit<(String, Direction, String), ()>| match line
                .rsplit_once(',')
            {
                Some((from, to)) => {
                    out.emit((from, Direction::To, to), ());
                    out.emit((to, Direction::From, from), ());
                }
                None => counter!("lines without a comma").add(1),
            },
        )
        .combine(|(), ()| ())
        .group_by::<String>()
        .reduce(move |vertex, neighbours, out| {
            let mut from = Vec::new();
            let mut to = Vec::new();
            while let Some(((_, direction, neighbour), ())) = neighbours.next_entry() {
                let list: &mut Vec<String> = match direction {
                    Direction::From => &mut from,
                    Direction::To => &mut to,
                };
                if list.len() < most && list.last().is_none_or(|last| last != neighbour) {
                    list.push(neighbour.to_owned());
                }
            }
            out.emit(
                vertex,
                format!("from{{{}}}:to{{{}}}", from.join(","), to.join(",")),
            );
        })
}

fn main() -> std::process::ExitCode {
    Program::new()
        .about("Lists for each vertex of a graph where its edges come from and go to")
        .examples("adjacency-list edges --output neighbours")
        .main(adjacency_list)
}
