//! Spellings of INPUT, `--output` and `--files` on the command line.

use std::fs;
use std::process::{Command, Stdio};

use napreduce_tests::{Ended, Folder, joined, program, run};

fn wordcount(folder: &Folder) -> Command {
    let mut command = program("wordcount");
    command
        .env_remove("NAPREDUCE_CLUSTER")
        .env_remove("NAPREDUCE_DIR")
        .current_dir(folder.root());
    command.args(["--output", "out", "--overwrite", "--reduces", "1"]);
    command
}

fn counted(folder: &Folder, ended: Ended) -> String {
    ended.succeeded();
    String::from_utf8(joined(&folder.path("out"))).expect("words")
}

/// Runs the command in a shell that supports process substitution.
fn in_bash(folder: &Folder, script: &str) -> Command {
    let mut command = Command::new("bash");
    command
        .args(["-c", script, "bash"])
        .arg(wordcount(folder).get_program())
        .current_dir(folder.root());
    command
        .env_remove("NAPREDUCE_CLUSTER")
        .env_remove("NAPREDUCE_DIR")
        .stdin(Stdio::null());
    command
}

#[test]
fn pipes_and_stdin_are_buffered_in_any_spelling() {
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
    let ended = run(&mut in_bash(
        &folder,
        &format!("\"$1\" <(cat words) <(echo not) {more}"),
    ));
    assert_eq!(counted(&folder, ended), "be\t2\nnot\t1\nto\t1\n");
    let ended = run(&mut in_bash(
        &folder,
        &format!("\"$1\" <(cat words) --cluster nowhere {more}"),
    ));
    ended.failed(
        2,
        &["is not visible to the tasks of a cluster; write it to a file"],
    );
    for special in ["/dev/tty", "/dev/zero", "/dev/null"] {
        run(wordcount(&folder).arg(special))
            .failed(2, &[special, "write its data to a file and name that"]);
    }
}

#[test]
fn file_of_unknown_size_is_read_to_its_end() {
    let folder = Folder::new();
    let names = ["version", "filesystems"];
    let originals = names.map(|name| format!("/proc/{name}"));
    for (name, original) in names.iter().zip(&originals) {
        folder.write(name, fs::read(original).expect("a file of the system"));
    }
    let of_copies = run(wordcount(&folder).args(names));
    let of_copies = counted(&folder, of_copies);
    let of_originals = run(wordcount(&folder)
        .args(&originals)
        .args(["--split-size", "3B"]));
    assert_eq!(counted(&folder, of_originals), of_copies);
    // In a directory its name says nothing of how it is to be read.
    run(wordcount(&folder).arg("/proc/versio[n]")).failed(2, &["/proc/version has no known size"]);
}

#[test]
fn descriptor_of_a_file_in_the_output_is_refused() {
    let folder = Folder::new();
    folder.write("out/part-r-00000", "to be\n");
    fs::hard_link(folder.path("out/part-r-00000"), folder.path("hard")).expect("a link");
    let more = "--output out --overwrite --reduces 1";
    for script in [
        format!("\"$1\" - {more} <out/part-r-00000"),
        format!("\"$1\" /dev/stdin {more} <out/part-r-00000"),
        format!("\"$1\" /dev/fd/7 {more} 7<out/part-r-00000"),
        format!("\"$1\" - {more} <hard"),
        format!(
            "mkfifo out/pipe; (cat hard >out/pipe & \"$1\" out/pipe {more}; status=$?; wait; exit $status)"
        ),
    ] {
        run(&mut in_bash(&folder, &script)).failed(2, &["it is or contains the job's input"]);
        assert_eq!(
            fs::read(folder.path("out/part-r-00000")).expect("it stays"),
            b"to be\n",
            "{script}"
        );
    }
}

#[test]
fn empty_compressed_files_warn() {
    let folder = Folder::new();
    folder.write("in/a.txt", "be\n");
    for name in ["in/b.gz", "in/c.zst", "in/d.txt"] {
        folder.write(name, "");
    }
    let ended = run(wordcount(&folder).arg("in"));
    let warning = "in/b.gz has 0 bytes (1 more compressed files, too), which is not valid gzip data; it is read as an \
                   empty file";
    assert!(ended.stderr.contains(warning), "{}", ended.stderr);
    assert_eq!(counted(&folder, ended), "be\t1\n");
    let ended = run(wordcount(&folder).args(["in/a.txt", "in/d.txt"]));
    assert!(!ended.stderr.contains("0 bytes"), "{}", ended.stderr);
}

#[test]
fn braces_and_file_uris_select_inputs() {
    let folder = Folder::new();
    for (name, text) in [
        ("in/a.txt", "a\n"),
        ("in/b.txt", "b\n"),
        ("in/c/d.log", "d\n"),
        ("in/x{1,2}", "x\n"),
    ] {
        folder.write(name, text);
    }
    let here = folder.path("in").display().to_string();
    for (input, expected) in [
        ("in/{a,b}.txt".to_owned(), "a\t1\nb\t1\n"),
        ("in/{{a,b}.t?t,c/*.log}".to_owned(), "a\t1\nb\t1\nd\t1\n"),
        ("{in/a.txt,in/c}".to_owned(), "a\t1\nd\t1\n"),
        ("in/x{1,2}".to_owned(), "x\t1\n"),
        (format!("file://{here}/a.txt"), "a\t1\n"),
        (format!("file:{here}/{{a,b}}.*"), "a\t1\nb\t1\n"),
        (format!("file://localhost{here}/c"), "d\t1\n"),
    ] {
        let ended = run(wordcount(&folder).arg(&input));
        assert_eq!(counted(&folder, ended), expected, "{input}");
    }
    run(wordcount(&folder).arg("in/{a,z}.txt")).failed(2, &["input in/z.txt does not exist"]);
    run(wordcount(&folder).arg("in/{a*,z*}")).failed(2, &["input in/z* matches no file"]);
    let mut elsewhere = program("wordcount");
    elsewhere
        .env_remove("NAPREDUCE_CLUSTER")
        .current_dir(folder.root());
    elsewhere
        .args(["in/a.txt", "--reduces", "1", "--output"])
        .arg(format!("file://{here}/../there"));
    run(&mut elsewhere).succeeded();
    assert_eq!(joined(&folder.path("there")), b"a\t1\n");
}

#[test]
fn side_file_names_escape_commas_and_hashes() {
    let folder = Folder::new();
    folder.write("in", "be\nto\n");
    folder.write("odd,na#me", "be\n");
    for files in ["odd,na#me#known", r"odd\,na\#me#known"] {
        let mut command = program("testjobs");
        command
            .env_remove("NAPREDUCE_CLUSTER")
            .current_dir(folder.root());
        command.args([
            "in",
            "--job",
            "known-lines",
            "--output",
            "out",
            "--overwrite",
            "--files",
            files,
        ]);
        let ended = run(&mut command);
        if files.contains('\\') {
            ended.succeeded();
        } else {
            ended.failed(
                2,
                &["cannot read the side file odd", r"a comma is written \,"],
            );
        }
    }
}
