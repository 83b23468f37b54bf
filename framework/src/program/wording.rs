//! How messages name options: by flags on a command line, by methods in a program of its own.

use std::borrow::Cow;
use std::sync::atomic::{AtomicBool, Ordering};

/// Whether this process has parsed the flags of a job program.
static HAS_FLAGS: AtomicBool = AtomicBool::new(false);

/// Whether this process has run a job as a value.
static HAS_REQUESTS: AtomicBool = AtomicBool::new(false);

/// Flags, with the methods of [`JobRequest`](crate::JobRequest) that do the same. A longer phrase comes before a part
/// of it.
const METHODS: [(&str, &str); 20] = [
    ("pass --overwrite", "call `overwrite()`"),
    ("--overwrite", "`overwrite()`"),
    ("pass --recursive", "call `recursive()`"),
    ("pass --bad-input skip", "call `on_bad_input(Skip::All)`"),
    ("--bad-input", "`on_bad_input`"),
    ("--task-memory", "`task_memory`"),
    ("--split-size", "`split_size`"),
    ("--reduces", "`reduces`"),
    ("--slots", "`slots`"),
    ("--output", "`output`"),
    ("--name", "`name`"),
    ("--queue", "`queue`"),
    ("--priority", "`priority`"),
    ("--deadline", "`deadline`"),
    ("--files PATH#", "`side_file` with the name "),
    ("--files", "`side_file`"),
    ("--secret-file", "`Cluster::secret_file`"),
    ("--connect-timeout", "`Cluster::connect_timeout`"),
    ("pass the path of a file", "call `inputs`"),
    ("pass PATH alone", "call `inputs`"),
];

/// Records that options are flags.
#[cfg(feature = "cli")]
pub(super) fn use_flags() {
    HAS_FLAGS.store(true, Ordering::Relaxed);
}

/// Records that options are methods, unless this program has flags.
pub(crate) fn use_methods() {
    HAS_REQUESTS.store(true, Ordering::Relaxed);
}

/// Returns a message with the words of this process.
pub(super) fn worded(message: &str) -> Cow<'_, str> {
    if HAS_FLAGS.load(Ordering::Relaxed) || !HAS_REQUESTS.load(Ordering::Relaxed) {
        return Cow::Borrowed(message);
    }
    Cow::Owned(with_methods(message))
}

fn with_methods(message: &str) -> String {
    let mut worded = message.to_owned();
    for (flag, method) in METHODS {
        worded = worded.replace(flag, method);
    }
    let words = worded
        .split(' ')
        .map(|word| match word.strip_suffix("=PATH") {
            Some(name) => Cow::Owned(format!("input({name:?}, [PATH])")),
            None => Cow::Borrowed(word),
        });
    words.collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_become_methods() {
        for (flags, methods) in [
            (
                "output directory out/ exists; pass --overwrite or choose another",
                "output directory out/ exists; call `overwrite()` or choose another",
            ),
            (
                "a line is longer than 1MiB; raise --task-memory",
                "a line is longer than 1MiB; raise `task_memory`",
            ),
            (
                "fix the record, or pass --bad-input skip to skip bad records",
                "fix the record, or call `on_bad_input(Skip::All)` to skip bad records",
            ),
            (
                "input orders has no path; pass orders=PATH",
                "input orders has no path; pass input(\"orders\", [PATH])",
            ),
        ] {
            assert_eq!(with_methods(flags), methods);
        }
    }
}
