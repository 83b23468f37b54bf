//! The standard error of a command: `reporter:counter:GROUP,NAME,AMOUNT` and `reporter:status:TEXT` as in
//! Hadoop; all other lines go to the log.

use std::collections::HashMap;
use std::io::Write;

use napreduce_protocol::CounterValues;

use crate::user_counters::{UserCounter, counter};

const FOR_THE_TASK: &[u8] = b"reporter:";
/// A longer line is always logged.
const LINE_BYTES_MAX: usize = 64 << 10;
/// Maximum counters per command: they live as long as the process.
const COUNTERS_MAX: usize = 1000;

/// Separates the reporter lines of one command from its log.
#[derive(Debug, Default)]
pub(super) struct Reporter {
    /// The beginning of a line that may be a reporter line.
    begun: Vec<u8>,
    /// Whether the unfinished line is logged.
    is_logged: bool,
    counters: HashMap<String, UserCounter>,
}

impl Reporter {
    /// Processes a piece of any length and writes other lines to the log at once. Returns whether there was a
    /// reporter line.
    pub(super) fn take(&mut self, piece: &[u8], log: &mut dyn Write) -> bool {
        let mut is_heard = false;
        for line in piece.split_inclusive(|byte| *byte == b'\n') {
            let is_whole = line.ends_with(b"\n");
            if self.is_logged {
                write(log, line);
                self.is_logged = !is_whole;
                continue;
            }
            self.begun.extend_from_slice(line);
            let known = self.begun.len().min(FOR_THE_TASK.len());
            let may_be =
                self.begun[..known] == FOR_THE_TASK[..known] && self.begun.len() <= LINE_BYTES_MAX;
            if is_whole && may_be && self.report() {
                is_heard = true;
                self.begun.clear();
            } else if is_whole || !may_be {
                write(log, &self.begun);
                self.begun.clear();
                self.is_logged = !is_whole;
            }
        }
        is_heard
    }

    /// Handles the end of standard error.
    pub(super) fn finish(&mut self, log: &mut dyn Write) {
        if !self.begun.is_empty() && !self.report() {
            write(log, &self.begun);
        }
        self.begun.clear();
    }

    /// Follows a reporter line; invalid lines and statuses are logged.
    fn report(&mut self) -> bool {
        let Ok(line) = std::str::from_utf8(&self.begun) else {
            return false;
        };
        let Some(("counter", rest)) = line
            .trim_end()
            .strip_prefix("reporter:")
            .and_then(|line| line.split_once(':'))
        else {
            return false;
        };
        let Some((name, amount)) = rest.rsplit_once(',') else {
            return false;
        };
        let (Some((group, name)), Ok(amount)) = (name.split_once(','), amount.trim().parse())
        else {
            return false;
        };
        let name = format!("{group}: {name}");
        if CounterValues::is_reserved(&name) {
            return false;
        }
        let known = self.counters.len();
        match self.counters.get(&name) {
            Some(counter) => counter.add(amount),
            None if known < COUNTERS_MAX => {
                let made = counter(&name);
                made.add(amount);
                self.counters.insert(name, made);
            }
            None => return false,
        }
        true
    }
}

/// Writes to the log; a failure does not fail the task.
fn write(log: &mut dyn Write, bytes: &[u8]) {
    let _ = log.write_all(bytes);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the logged text of these pieces of standard error, and whether each completed a reporter line.
    fn check(pieces: &[&str], expected: &str) -> Vec<bool> {
        let mut reporter = Reporter::default();
        let mut log = Vec::new();
        let heard = pieces
            .iter()
            .map(|piece| reporter.take(piece.as_bytes(), &mut log))
            .collect();
        reporter.finish(&mut log);
        assert_eq!(String::from_utf8_lossy(&log), expected, "{pieces:?}");
        heard
    }

    #[test]
    fn reporter_lines_are_counted_and_others_logged() {
        let heard = check(
            &[
                "one\nreporter:counter:A,b c,2\ntwo\n",
                "reporter:counter:A,b c,40\n",
            ],
            "one\ntwo\n",
        );
        assert_eq!(heard, [true, true]);
        assert_eq!(counter("A: b c").get(), 42);
    }

    #[test]
    fn reporter_lines_in_pieces_are_joined() {
        check(
            &[
                "rep",
                "orter:coun",
                "ter:cut,up,1\nrepo",
                "rt\nx",
                "y\nreporter:counter:cut,up,1",
            ],
            "report\nxy\n",
        );
        assert_eq!(counter("cut: up").get(), 2);
        check(&["re", "d"], "red");
        check(
            &["no newline ", "reporter:counter:cut,up,1\n"],
            "no newline reporter:counter:cut,up,1\n",
        );
        assert_eq!(counter("cut: up").get(), 2);
    }

    #[test]
    fn invalid_reporter_lines_are_logged() {
        for line in [
            "reporter:\n",
            "reporter:counter:\n",
            "reporter:counter:a,1\n",
            "reporter:counter:a,b,-1\n",
            "reporter:counter:a,b,x\n",
            "reporter:status:half of it\n",
            "reporter:other:a,b,1\n",
            "reporter:counter:HOT_KEY the,b,1\n",
        ] {
            assert_eq!(check(&[line], line), [false]);
        }
        let long = format!("reporter:counter:a,{},1\n", "b".repeat(LINE_BYTES_MAX));
        assert_eq!(check(&[&long], &long), [false]);
    }

    #[test]
    fn counters_beyond_limit_are_logged() {
        let lines: Vec<String> = (0..COUNTERS_MAX + 1)
            .map(|name| format!("reporter:counter:many,{name},1\n"))
            .collect();
        check(&[&lines.concat()], &lines[COUNTERS_MAX]);
    }
}
