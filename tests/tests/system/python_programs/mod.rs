//! Jobs of Python programs, embedded and on clusters, with preemptions. Skipped without python3 and pytest,
//! unless
//! `NAPREDUCE_REQUIRE` lists `python`.

mod on_cluster;

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;

use napreduce::streaming::frames::{FramesProgram, job};
use napreduce::testing::JobTest;
use napreduce_tests::{Folder, counter, parts, program, run, skipped};

const WORDCOUNT: &str = include_str!("../../../../python/examples/wordcount.py");

/// The same job by functions.
const WORDS: &str = r#"
from napreduce import Job
job = Job.text()
@job.map
def words(line):
    return [(word, 1) for word in line.split()]
job.combine(sum)
@job.reduce(keys=str, values=int)
def count(word, counts):
    yield word, sum(counts)
if __name__ == "__main__":
    job.main()
"#;

/// Runs two jobs as values and prints what they return.
const VALUES: &str = r#"
from napreduce import Job, JobError
counts = Job.text().flat_map(str.split).count()
most = Job.records().flat_map(lambda pair: [(None, (pair[1], pair[0]))]).top(1, keys=None)
means = Job.text().flat_map(lambda line: [(line[:1], int(line))]).mean()
stuck = Job.text().flat_map(lambda line: [(line, 1)])
@stuck.reduce(keys=str, values=int)
def fail(key, values):
    raise ValueError("oh")
if __name__ == "__main__":
    words = counts.run("in", reduces=2)
    print(sorted(words), words.counters["REDUCE_OUTPUT_RECORDS"])
    print(list(most.run(words)))
    print(sorted(counts.run("in", output="out", reduces=1)))
    for job in (means, stuck):
        try:
            job.run("in", reduces=1, conf="attempts-max=1")
        except JobError as error:
            print(error.task, error.place, error.record, error.group)
    folder = words.path
    del words
    print(folder.exists())
"#;

/// Writes a line for each process that runs its main block, and a line for each that loads the file.
const DRIVER: &str = r#"
import argparse, sys
from napreduce import Job
with open(FOLDER + "/loaded", "a") as loaded:
    loaded.write(f"{__name__} {' '.join(sys.argv)}\n")
class Word:
    def __init__(self, text):
        self.text = text
words = Job.text().flat_map(lambda line: [(word, Word(word)) for word in line.split()])
@words.reduce(keys=str)
def first(key, found):
    yield next(iter(found))
if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--input", required=True)
    arguments = parser.parse_args()
    with open(FOLDER + "/driven", "a") as driven:
        driven.write("once\n")
    print(sorted(word.text for word in words.run(arguments.input, reduces=1)))
"#;

/// Fails on a line, in a function of a module that is shipped with the program.
const RAISES: &str = r#"
from napreduce import Job, JobError
def number(line):
    from texts import parse
    return [("sum", parse(line))]
numbers = Job.text().flat_map(number).sum()
if __name__ == "__main__":
    try:
        numbers.run("in", reduces=1, files="shipped#texts.py")
    except JobError as error:
        print(error.record, error.place, str(error).count("Traceback"))
        print(str(error))
"#;

/// Mapper, combiner and reducer are stateful.
const STATEFUL: &str = r#"
from napreduce import Job, counter
job = Job.text()
class Numbered:
    def __init__(self):
        self.number = 0
    def __getstate__(self):
        return {"number": self.number}
@job.map
class Words(Numbered):
    def __call__(self, line):
        self.number += 1
        counter("lines of Python").add()
        return [((word, self.number), 0.5) for word in line.split()]
    def finish(self):
        yield ("lines", self.number), 1.0
job.combine(lambda values: sum(values))
@job.reduce(keys=(str, int))
class Positions(Numbered):
    def __call__(self, key, values):
        self.number += 1
        yield self.number, *key, sum(values)
    def finish(self):
        yield "groups", self.number
job.main()
"#;

/// A job with a secondary sort of values.
const IN_ORDER: &str = r#"
from napreduce import Job
job = Job.text()
@job.map
def visits(line):
    user, when, page = line.split()
    yield (user, float(when)), page
@job.reduce(keys=str, order=float, values=str)
def pages(user, visited):
    yield user, *visited
job.main()
"#;

pub fn module() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../python"))
}

/// Returns whether these tests can run here; reports a skip otherwise.
pub fn has_python() -> bool {
    let found = Command::new("python3")
        .args(["-c", "import pytest"])
        .output();
    if found.is_ok_and(|ended| ended.status.success()) {
        return true;
    }
    let install = "install them with: apt install python3 && pip install pytest";
    skipped(
        "python",
        &format!("there is no python3 with pytest; {install}"),
    );
    false
}

fn text() -> String {
    (0..3_000_u32)
        .map(|index| format!("w{} of{} the\n", index % 97, index * 7 % 331))
        .collect()
}

fn frames(folder: &Folder, output: &str, rest: &[&str]) -> Command {
    let mut command = program("nap");
    command
        .env_remove("NAPREDUCE_CLUSTER")
        .env_remove("NAPREDUCE_DIR")
        .current_dir(folder.root());
    command.env("PYTHONPATH", module());
    command
        .args([
            "frames",
            "--program",
            "job.py",
            "in",
            "--output",
            output,
            "--quiet",
        ])
        .args(rest);
    command
}

fn with_program(source: &str, input: impl AsRef<[u8]>) -> Folder {
    let folder = Folder::new();
    folder.write("job.py", source);
    folder.write("in", input);
    folder
}

/// Returns a Python that finds the module and `nap`.
pub fn driver(folder: &Folder) -> Command {
    let nap = program("nap");
    let programs = Path::new(nap.get_program())
        .parent()
        .expect("a folder of programs");
    let paths = format!(
        "{}:{}",
        programs.display(),
        std::env::var("PATH").expect("a PATH")
    );
    let mut python = Command::new("python3");
    python
        .env_remove("NAPREDUCE_CLUSTER")
        .env_remove("NAPREDUCE_DIR")
        .current_dir(folder.root());
    python.env("PATH", paths).env("PYTHONPATH", module());
    python
}

/// Returns the job of a program without `nap`, to be preempted at every boundary.
fn program_of(folder: &Folder) -> FramesProgram {
    let module = module();
    let program = folder.path("job.py");
    let command = format!(
        "PYTHONPATH='{}' exec python3 '{}'",
        module.display(),
        program.display()
    );
    FramesProgram::ask(&command, "job.py", []).expect("it says what its job is")
}

#[test]
fn python_module_tests_pass() {
    if !has_python() {
        return;
    }
    let mut pytest = Command::new("python3");
    pytest
        .args(["-B", "-m", "pytest", "-q"])
        .current_dir(module());
    let ended = run(&mut pytest);
    assert!(
        ended.status.success() && ended.stdout.contains(" passed"),
        "{}{}",
        ended.stdout,
        ended.stderr
    );
}

#[test]
fn python_wordcounts_equal_rust() {
    if !has_python() {
        return;
    }
    for source in [WORDCOUNT, WORDS] {
        let folder = with_program(source, text());
        let arguments = ["--reduces", "3", "--split-size", "9000"];
        run(&mut frames(&folder, "out", &arguments)).succeeded();
        let mut rust = program("wordcount");
        rust.env_remove("NAPREDUCE_CLUSTER")
            .env_remove("NAPREDUCE_DIR")
            .current_dir(folder.root());
        run(rust
            .args(["in", "--output", "rust", "--quiet"])
            .args(arguments))
        .succeeded();
        assert!(
            parts(&folder.path("out")) == parts(&folder.path("rust")),
            "Python counts other words"
        );
        for name in [
            "MAP_INPUT_RECORDS",
            "MAP_OUTPUT_RECORDS",
            "REDUCE_INPUT_GROUPS",
            "REDUCE_OUTPUT_RECORDS",
        ] {
            assert_eq!(
                counter(&folder.path("out"), name),
                counter(&folder.path("rust"), name),
                "{name}"
            );
        }
    }
}

#[test]
fn python_jobs_run_as_values() {
    if !has_python() {
        return;
    }
    let folder = with_program(VALUES, "to be\nor to\n");
    let ended = run(driver(&folder).arg("job.py"));
    let expected = "[('be', 1), ('or', 1), ('to', 2)] 3\n[(None, [(2, 'to')])]\n['be\\t1', 'or\\t1', 'to\\t2']\n\
                    job_0001_m_0000 line 1 'to be' None\njob_0001_r_0000 None None 'or to'\nFalse\n";
    assert_eq!(ended.stdout, expected, "{}", ended.stderr);
    assert_eq!(ended.stderr, "");
    assert_eq!(parts(&folder.path("out"))[0].1, b"be\t1\nor\t1\nto\t2\n");
}

/// Returns the program of the README that begins with this line.
fn readme_program(first: &str) -> String {
    let readme = fs::read_to_string(module().join("README.md")).expect("the README");
    let mut blocks = readme
        .split("\n```python\n")
        .skip(1)
        .filter_map(|block| block.split("\n```").next());
    blocks
        .find(|block| block.starts_with(first))
        .expect("the program")
        .to_owned()
        + "\n"
}

#[test]
fn python_readme_join_reads_csv_and_typed_rows() {
    if !has_python() {
        return;
    }
    let folder = Folder::new();
    folder.write("join.py", readme_program("import csv\n"));
    folder.write(
        "customers.csv",
        "id,name\n7,Ada\n8,\"Bob, the second\"\n9,Eve\n",
    );
    folder.write(
        "sales.csv",
        "customer,price\n8,1.5\n7,2\n8,\"0.25\"\n5,100\nbroken\n7,much\n",
    );
    let arguments = [
        "join.py",
        "customers.csv",
        "sales.csv",
        "--output",
        "totals",
        "--reduces",
        "1",
    ];
    let ended = run(driver(&folder).args(arguments)).succeeded();
    assert_eq!(
        parts(&folder.path("totals"))[0].1,
        b"Ada\t2.0\nBob, the second\t1.75\nEve\t0\n"
    );
    assert_eq!(
        counter(&folder.path("totals"), "bad rows"),
        2,
        "{}",
        ended.stderr
    );
}

#[test]
fn python_run_prints_progress_on_request_only() {
    if !has_python() {
        return;
    }
    let source = "\
from napreduce import Job, JobError
counts = Job.text().flat_map(str.split).count()
fails = Job.text().flat_map(lambda line: [(line, 1 // 0)]).sum()
if __name__ == '__main__':
    counts.run('in')
    import sys
    print('quiet', file=sys.stderr, flush=True)
    print(sorted(counts.run('in', progress=True)))
    try:
        fails.run('in', progress=True, conf='attempts-max=1')
    except JobError as error:
        print('ZeroDivisionError' in str(error), ': maps ' in str(error), error.record)
";
    let folder = with_program(source, "to be\nor to\n");
    let ended = run(driver(&folder).arg("job.py"));
    let expected = "[('be', 1), ('or', 1), ('to', 2)]\nTrue False 'to be'\n";
    assert_eq!(ended.stdout, expected, "{}", ended.stderr);
    let (before, after) = ended
        .stderr
        .split_once("quiet\n")
        .expect("the second run comes later");
    assert_eq!(before, "");
    assert!(after.contains(": maps 100% 1/1, reduces 100% "), "{after}");
    // Neither counters nor results of the command line.
    assert!(
        after.lines().all(|line| line.contains(": maps ")),
        "{after}"
    );
}

#[test]
fn python_job_of_a_notebook_cell_is_refused_with_a_remedy() {
    if !has_python() {
        return;
    }
    let cell = "\
from napreduce import Job
counts = Job.text().flat_map(str.split).count()
print(counts.test(['to be']))
try:
    counts.run('in')
except RuntimeError as error:
    print(error)
";
    let folder = Folder::new();
    folder.write("in", "to be\n");
    folder.write("cell", cell);
    // Like a cell, a program from standard input has no file.
    let program = File::open(folder.path("cell")).expect("a program");
    let ended = run(driver(&folder).arg("-").stdin(program));
    assert!(
        ended.stdout.starts_with("[('be', 1), ('to', 1)]\n"),
        "{}{}",
        ended.stdout,
        ended.stderr
    );
    for part in [
        "in a notebook cell or at a prompt",
        "%%writefile words.py",
        "import it from there",
    ] {
        assert!(ended.stdout.contains(part), "{part}: {}", ended.stdout);
    }
}

#[test]
fn python_main_block_runs_in_driver_only() {
    if !has_python() {
        return;
    }
    let folder = Folder::new();
    folder.write("in", "to be\nor to\n");
    folder.write(
        "job.py",
        DRIVER.replace("FOLDER", &format!("{:?}", folder.root())),
    );
    let ended = run(driver(&folder).args(["job.py", "--input", "in"]));
    assert_eq!(ended.stdout, "['be', 'or', 'to']\n", "{}", ended.stderr);
    let read = |name: &str| fs::read_to_string(folder.path(name)).expect("it was written");
    assert_eq!(read("driven"), "once\n");
    let loaded = read("loaded");
    let mut processes = loaded.lines();
    assert_eq!(processes.next(), Some("__main__ job.py --input in"));
    let tasks: Vec<&str> = processes.collect();
    // The description of the job, a map and a reduce.
    assert_eq!(tasks, ["__napreduce_main__ job.py --input in"; 3]);
}

#[test]
fn python_job_of_an_imported_module_runs() {
    if !has_python() {
        return;
    }
    let folder = Folder::new();
    folder.write("in", "to be\nor to\n");
    let jobs = DRIVER.split("if __name__").next().expect("the jobs");
    folder.write(
        "jobs.py",
        jobs.replace("FOLDER", &format!("{:?}", folder.root())),
    );
    folder.write(
        "job.py",
        "import jobs\nprint(sorted(word.text for word in jobs.words.run('in', reduces=1)))\n",
    );
    let ended = run(driver(&folder).arg("job.py"));
    assert_eq!(ended.stdout, "['be', 'or', 'to']\n", "{}", ended.stderr);
}

#[test]
fn python_job_that_tasks_cannot_find_is_refused() {
    if !has_python() {
        return;
    }
    let define = "Job.text().flat_map(str.split).count()";
    let import = "from napreduce import Job\nif __name__ == '__main__':\n    ";
    for (source, says) in [
        (
            format!("{import}counts = {define}; counts.main(['in', '--output', 'out'])"),
            "tasks do not find the job counts in",
        ),
        (
            format!("{import}{define}.main(['in', '--output', 'out'])"),
            "it is not a global variable",
        ),
        (
            format!("{import}counts = {define}; counts.run('in')"),
            "tasks do not find the job counts in",
        ),
        (
            format!("{import}{define}.run('in')"),
            "the job is not a global variable of",
        ),
    ] {
        let folder = with_program(&source, "to be\n");
        let ended = run(driver(&folder).arg("job.py"));
        assert!(
            !ended.status.success() && ended.stderr.contains(says),
            "{source}: {}",
            ended.stderr
        );
    }
    let two = format!("from napreduce import Job\none = {define}\ntwo = {define}\n");
    let folder = with_program(&two, "to be\n");
    run(&mut frames(&folder, "out", &[])).failed(
        2,
        &[
            "defines the jobs one, two",
            "start the program with python3",
        ],
    );
}

#[test]
fn python_error_has_one_traceback_and_the_record() {
    if !has_python() {
        return;
    }
    let folder = with_program(RAISES, "1\none\n");
    // It is in the directories of the attempts only.
    folder.write("shipped", "def parse(line):\n    return int(line)\n");
    let ended = run(driver(&folder).arg("job.py"));
    let first = ended.stdout.lines().next();
    assert_eq!(
        first,
        Some("'one' line 2 1"),
        "{}{}",
        ended.stdout,
        ended.stderr
    );
    let program = folder.path("job.py");
    let program = format!("File \"{}\", line 5, in number", program.display());
    for says in [
        "failed 4 times",
        program.as_str(),
        "File \"texts.py\", line 2, in parse",
    ] {
        assert!(ended.stdout.contains(says), "{says}: {}", ended.stdout);
    }
}

#[test]
fn python_folds_of_nan_do_not_depend_on_splits() {
    if !has_python() {
        return;
    }
    let values = "x 1.5\nx nan\nx -2\nx 7\nx nan\nx 3\n";
    let folder = with_program("", "");
    for (fold, expected) in [
        ("min(values=float)", "x\t-2.0\n"),
        ("max(values=float)", "x\tnan\n"),
        ("max(values=(float, str))", "x\tnan\tx\n"),
        ("top(3)", "x\tnan\tnan\t7.0\n"),
    ] {
        let value = if fold.contains("str") {
            "(float(line[2:]), line[0])"
        } else {
            "float(line[2:])"
        };
        let define = format!("job = Job.text().flat_map(lambda line: [(line[0], {value})]).{fold}");
        folder.write(
            "job.py",
            format!("from napreduce import Job\n{define}\njob.main()\n"),
        );
        let program = program_of(&folder);
        for split_size in [4, 12, 1 << 20] {
            let test = JobTest::new(|| job(&program))
                .input(values)
                .split_size(split_size)
                .reduces(1);
            assert_eq!(
                test.run().text(),
                expected,
                "{fold}, splits of {split_size}"
            );
        }
    }
}

#[test]
fn python_wordcount_is_preemption_safe() {
    if !has_python() {
        return;
    }
    let folder = with_program(WORDCOUNT, "");
    let program = program_of(&folder);
    let test = JobTest::new(|| job(&program))
        .input("to be\nnot to\n")
        .split_size(6)
        .reduces(2);
    assert_eq!(test.run().text().lines().count(), 3);
    test.assert_preemption_safe();
}

#[test]
fn python_value_order_is_preemption_safe() {
    if !has_python() {
        return;
    }
    let folder = with_program(IN_ORDER, "");
    let program = program_of(&folder);
    let visits = "bob 10 z\nann 2.5 c\nbob -1 x\nann -inf a\nann 2.5 d\nbob 9 y\nann 1e9 e\n";
    let test = |input: &str| {
        JobTest::new(|| job(&program))
            .input(input)
            .split_size(40)
            .reduces(1)
    };
    let whole = test(visits).run();
    assert_eq!(whole.text(), "ann\ta\tc\td\te\nbob\tx\ty\tz\n");
    // Each record costs some hundred starts of Python.
    test("bob 10 z\nann 2.5 c\nbob -1 x\nann -inf a\n").assert_preemption_safe();
    // Only values with the same key and sort order are combined, in Rust and in Python.
    let counted = IN_ORDER
        .replace(", page\n", ", 1\n")
        .replace("values=str", "values=int");
    let expected = "ann\t1\t2\t1\nbob\t1\t1\t1\n";
    for combine in ["sum", "lambda counts: sum(counts)"] {
        let combined =
            counted.replace("job.main()", &format!("job.combine({combine})\njob.main()"));
        let folder = with_program(&combined, "");
        let program = program_of(&folder);
        let test = JobTest::new(|| job(&program)).input(visits).reduces(1);
        assert_eq!(test.run().text(), expected, "{combine}");
    }
}

#[test]
fn python_state_is_preemption_safe() {
    if !has_python() {
        return;
    }
    let folder = with_program(STATEFUL, "");
    let program = program_of(&folder);
    let test = JobTest::new(|| job(&program))
        .input("to be\nto\n")
        .reduces(1);
    let output = test.run();
    assert!(
        output.text().ends_with("4\tto\t2\t0.5\ngroups\t4\n"),
        "{}",
        output.text()
    );
    assert_eq!(output.counters.get("lines of Python"), 2);
    test.assert_preemption_safe();
}

#[test]
fn python_sums_of_big_integers_are_exact() {
    if !has_python() {
        return;
    }
    let greatest = i64::MAX;
    let source = |combine: &str| {
        WORDS
            .replace("(word, 1)", "(word[:1], int(word[1:]))")
            .replace("combine(sum)", combine)
    };
    let folder = with_program(
        &source("combine(sum)"),
        format!("a{greatest} b-{greatest}\n").repeat(3),
    );
    run(&mut frames(
        &folder,
        "out",
        &["--reduces", "1", "--split-size", "45"],
    ))
    .succeeded();
    let three = 3 * i128::from(greatest);
    let expected = format!("a\t{three}\nb\t-{three}\n");
    assert_eq!(parts(&folder.path("out"))[0].1, expected.as_bytes());
    folder.write("in", format!("a{}\n", i128::from(greatest) + 1).repeat(3));
    let once = ["--reduces", "1", "--conf", "attempts-max=1"];
    run(&mut frames(&folder, "wide", &once)).failed(
        1,
        &[
            "9223372036854775808 exceeds 64 bits",
            "combine such numbers in Python",
        ],
    );
    folder.write("job.py", source("combine(lambda numbers: sum(numbers))"));
    run(&mut frames(&folder, "wide", &once)).succeeded();
    assert_eq!(
        parts(&folder.path("wide"))[0].1,
        b"a\t27670116110564327424\n"
    );
    folder.write(
        "job.py",
        source("combine(max)").replace("sum(counts)", "max(counts)"),
    );
    run(&mut frames(&folder, "most", &once)).succeeded();
    assert_eq!(
        parts(&folder.path("most"))[0].1,
        b"a\t9223372036854775808\n"
    );
}

#[test]
fn python_exception_fails_job_with_traceback() {
    if !has_python() {
        return;
    }
    let input = "1\n".repeat(40_000) + "one\n" + &"1\n".repeat(40_000);
    let folder = with_program(
        "from napreduce import Job\njob = Job.text()\n@job.map\ndef numbers(line):\n    yield int(line)\njob.main()\n",
        input,
    );
    let once = ["--conf", "attempts-max=1"];
    run(&mut frames(&folder, "out", &once)).failed(
        1,
        &[
            "the mapper `job.py` failed, mapping in line 40001: Traceback (most recent call last):",
            "line 5, in numbers",
            "ValueError: invalid literal for int() with base 10: 'one'",
        ],
    );
    // Line numbers count from the start of the file even if a task begins in the middle of it.
    run(&mut frames(
        &folder,
        "out",
        &["--conf", "attempts-max=1", "--split-size", "40000"],
    ))
    .failed(1, &["mapping in line 40001: Traceback"]);
    assert!(!folder.has("out"));
}

#[test]
fn broken_python_program_is_refused_before_submission() {
    if !has_python() {
        return;
    }
    let folder = with_program("from napreduce import Job\nJob.text().main()\n", "x\n");
    run(&mut frames(&folder, "out", &[]))
        .failed(2, &["the program `job.py` failed: ", "the job has no map"]);
    folder.write("job.py", "print('hello')\n");
    // Without a buffer, Python writes the line and its newline separately, and the newline may come too late
    // to be shown.
    run(&mut frames(&folder, "out", &[])).failed(
        2,
        &[
            r#"the program `job.py` sent "hello"#,
            "where a frame should begin",
        ],
    );
    folder.write("job.py", "import no_such_module\n");
    run(&mut frames(&folder, "out", &[])).failed(
        2,
        &[
            "ended with exit status: 1",
            "No module named 'no_such_module'",
        ],
    );
    run(frames(&folder, "out", &[]).args(["--python", "no-such-python"]))
        .failed(2, &["exit status: 127"]);
    run(frames(&folder, "out", &[]).args(["--parameter", "x"]))
        .failed(2, &["--parameter x: expected NAME=VALUE"]);
    let missing = ["frames", "--program", "none.py", "in", "--output", "out"];
    run(program("nap").current_dir(folder.root()).args(missing))
        .failed(2, &["--program none.py: no such file"]);
    run(program("nap").args(["--dir", "d", "frames", "in"]))
        .failed(2, &["options must follow `nap frames`"]);
    let help = run(program("nap").args(["frames", "--help"]))
        .succeeded()
        .stdout;
    assert!(
        help.contains("--parameter") && help.contains("--reduces") && help.contains("Examples:"),
        "{help}"
    );
}

#[test]
fn python_program_reads_parameters_and_files() {
    if !has_python() {
        return;
    }
    let source = r#"
from napreduce import Job, side_file
from shout import loud
job = Job.text()
@job.map
def kept(line):
    with open(side_file("stop.txt")) as stop:
        if line not in stop.read().split():
            yield job.parameters["before"] + loud(line), job.input.rsplit("/")[-1], job.attempt
job.main()
"#;
    let folder = with_program(source, "to\nbe\n");
    folder.write("list", "to\n");
    folder.write("shout", "def loud(line): return line.upper()\n");
    run(&mut frames(
        &folder,
        "out",
        &[
            "--files",
            "list#stop.txt,shout#shout.py",
            "--parameter",
            "before=a = ",
        ],
    ))
    .succeeded();
    let expected = "a = BE\tin\tjob_0001_m_0000.1\n";
    assert_eq!(parts(&folder.path("out"))[0].1, expected.as_bytes());
}

#[test]
fn zipped_modules_are_shipped() {
    if !has_python() {
        return;
    }
    let source = "from napreduce import Job\nfrom texts.shout import loud\njob = Job.text()\n\
                  job.map(lambda line: [loud(line)])\njob.main()\n";
    let folder = with_program(source, "to\nbe\n");
    folder.write("texts/shout.py", "def loud(line): return line.upper()\n");
    let zip = ["-m", "zipfile", "-c", "texts.zip", "texts"];
    assert!(
        run(Command::new("python3").args(zip).current_dir(folder.root()))
            .status
            .success()
    );
    fs::remove_dir_all(folder.path("texts")).expect("the folder is there");
    run(&mut frames(&folder, "out", &["--py-files", "texts.zip"])).succeeded();
    assert_eq!(parts(&folder.path("out"))[0].1, b"TO\nBE\n");
    run(&mut frames(&folder, "none", &[])).failed(2, &["No module named 'texts'"]);
    run(&mut frames(&folder, "none", &["--py-files", "none.zip"]))
        .failed(2, &["--py-files none.zip: no such file"]);
}
