//! How INPUT, `--output` and `--files` may be spelled on the command line.

use std::process::Command;

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
