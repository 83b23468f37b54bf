//! Pairs of last items of lines `a1,a2,...,ak` that are equal up to their last comma: `self-join INPUT... --output DIR`.

use napreduce::{Emit, Job, Program, counter};

pub fn self_join() -> Job {
    Job::text()
        .map(
            |line: &str, out: &mut Emit<(String, String), ()>| match line.rsplit_once(',') {
                Some(association) => out.emit(association, ()),
                None => counter!("lines without a comma").add(1),
            },
        )
        .combine(|(), ()| ())
        .group_by::<String>()
        .reduce(|prefix, associations, out| {
            let mut items: Vec<String> = Vec::new();
            while let Some(((_, item), ())) = associations.next_entry() {
                if items.last().is_none_or(|last| last != item) {
                    items.push(item.to_owned());
                }
            }
            for (index, one) in items.iter().enumerate() {
                for other in &items[index + 1..] {
                    out.emit(prefix, format!("{one},{other}"));
                }
            }
        })
}

fn main() -> std::process::ExitCode {
    Program::new()
        .about("Joins associations of k items that differ in the last one only into associations of k+1")
        .examples("self-join associations --output candidates")
        .main(self_join)
}
