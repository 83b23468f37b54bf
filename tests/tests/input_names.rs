//! How INPUT, `--output` and `--files` may be spelled on the command line.

use std::process::{Command, Stdio};

use napreduce_tests::{Ended, Folder, joined, program, run};

fn wordcount(folder: &Folder) -> Command {
    let mut command = program("wordcount");
    command.env_remove("NAPREDUCE_CLUSTER").env_remove("NAPREDUCE_DIR").current_dir(folder.root());
    command.args(["--output", "out", "--overwrite", "--reduces", "1"]);
    command
}

fn counted(folder: &Folder, ended: Ended) -> String {
    ended.succeeded();
    String::from_utf8(joined(&folder.path("out"))).expect("words")
}

/// The command in a shell that knows process substitution.
fn in_bash(folder: &Folder, script: &str) -> Command {
    let mut command = Command::new("bash");
    command.args(["-c", script, "bash"]).arg(wordcount(folder).get_program()).current_dir(folder.root());
    command.env_remove("NAPREDUCE_CLUSTER").env_remove("NAPREDUCE_DIR").stdin(Stdio::null());
    command
}

#[test]
fn inputs_that_are_read_once_are_kept_in_whatever_spelling() {
    let folder = Folder::new();
    folder.write("words", "be\nto\nbe\n");
    let more = "--output out --overwrite --reduces 1 --split-size 3B";
    for script in [
        format!("\"$1\" <(cat words) {more}"),
        format!("\"$1\" /dev/stdin {more} <words"),
        format!("cat words | \"$1\" /dev/stdin {more}"),
        format!("cat words | \"$1\" - /dev/fd/0 {more}"),
        format!("\"$1\" /proc/self/fd/7 {more} 7<words"),
        format!("mkfifo pipe && (cat words >pipe & \"$1\" pipe {more} && wait) && rm pipe"),
    ] {
        let ended = run(&mut in_bash(&folder, &script));
        assert_eq!(counted(&folder, ended), "be\t2\nto\t1\n", "{script}");
    }
    let ended = run(&mut in_bash(&folder, &format!("\"$1\" <(cat words) <(echo not) {more}")));
    assert_eq!(counted(&folder, ended), "be\t2\nnot\t1\nto\t1\n");
    let ended = run(&mut in_bash(&folder, &format!("\"$1\" <(cat words) --cluster nowhere {more}")));
    ended.failed(2, &["is not where the tasks of a cluster are; write it to a file"]);
    for special in ["/dev/tty", "/dev/zero", "/dev/null"] {
        run(wordcount(&folder).arg(special)).failed(2, &[special, "as standard input, whose name is -"]);
    }
}

#[test]
fn compressed_files_without_a_byte_are_warned_of() {
    let folder = Folder::new();
    folder.write("in/a.txt", "be\n");
    for name in ["in/b.gz", "in/c.zst", "in/d.txt"] {
        folder.write(name, "");
    }
    let ended = run(wordcount(&folder).arg("in"));
    let warning = "in/b.gz has 0 bytes (and so have 1 more compressed files), which is not valid gzip data; it is read as an \
                   empty file";
    assert!(ended.stderr.contains(warning), "{}", ended.stderr);
    assert_eq!(counted(&folder, ended), "be\t1\n");
    let ended = run(wordcount(&folder).args(["in/a.txt", "in/d.txt"]));
    assert!(!ended.stderr.contains("0 bytes"), "{}", ended.stderr);
}
