use napreduce::Job;

/// The longest run of consecutive days of each user, from lines USER DAY. Can be checkpointed at every line.
fn streaks() -> Job {
    Job::text()
        .flat_map(|line: &str| {
            let (user, day) = line.split_once(' ')?;
            Some(((user.to_owned(), day.parse::<u64>().ok()?), ()))
        })
        .group_by::<String>()
        .reduce_resumable((0, 0, 0), |(last, streak, longest): &mut (u64, u64, u64), user, days, out| {
            while let Some(((_, day), ())) = days.next_entry() {
                match day - *last {
                    0 => *streak = (*streak).max(1),
                    1 => *streak += 1,
                    _ => *streak = 1,
                }
                *longest = (*longest).max(*streak);
                *last = day;
            }
            if !days.is_cut() {
                out.emit(user, *longest);
                (*last, *streak, *longest) = (0, 0, 0);
            }
        })
}

fn main() -> std::process::ExitCode {
    napreduce::main(streaks)
}
