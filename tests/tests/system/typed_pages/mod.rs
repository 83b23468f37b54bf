//! Runs the shell commands of documentation pages in order, in one shell, in a fresh copy of the tracked
//! files.
//!
//! `cargo` is a stand-in that builds nothing and runs the programs that the tests have built. Lines that
//! cannot run on every machine are listed with the page and the reason.

use std::fmt::Write;
use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use napreduce_tests::{Folder, program, skipped};

/// A stand-in for cargo: `cargo run ... --bin NAME -- ARGUMENTS` runs the built program; other commands do
/// nothing.
const CARGO: &str = r#"#!/bin/sh
[ "$1" = run ] || exit 0
while [ "$1" != --bin ]; do shift; done
name=$2
while [ "$1" != -- ]; do shift; done
shift
exec target/release/"$name" "$@"
"#;

/// The programs that the pages use.
const PROGRAMS: [&str; 6] = [
    "datagen",
    "nap",
    "nap-lab",
    "slow-count",
    "terasort",
    "wordcount",
];

/// A shell function that starts a cluster with the given line and waits until it is ready.
const UP: &str = r#"__up() {
    mkfifo "$HOME/up"
    "$@" > "$HOME/up" 2> "$HOME/up.log" &
    __cluster=$!
    exec 9< "$HOME/up"
    while read -r line <&9; do case $line in ready:*) return; esac; done
    cat "$HOME/up.log" >&2
    return 1
}
__end() {
    __status=$?
    [ -z "$__cluster" ] || { kill "$__cluster" 2>&- || :; wait "$__cluster"; }
    exit $__status
}
trap __end EXIT
# Readers are not so fast that nothing of a slow job runs yet.
__wait_for_task() {
    local look
    for look in $(seq 3000); do
        nap task list last --format json | tr -d ' \n' | grep -q "_$1\\.[0-9]*\"[^}]*\"running\"" && return
    done
    return 1
}
"#;

/// A page, and its lines that are not run.
struct Page<'p> {
    path: &'p str,
    /// Prefixes of lines, and why they are skipped.
    left_out: &'p [(&'p str, &'p str)],
    /// Commands that the test runs before those of the page.
    before: &'p str,
}

/// Returns the commands of each `sh` block of a page.
fn blocks(page: &str) -> Vec<String> {
    let behind = page.split("\n```sh\n").skip(1);
    behind
        .map(|block| block.split("\n```").next().unwrap_or_default().to_owned())
        .collect()
}

/// Returns the folder of the programs that the tests run.
fn programs() -> PathBuf {
    let nap = program("nap");
    Path::new(nap.get_program())
        .parent()
        .expect("a program lies in a folder")
        .to_owned()
}

fn top() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .expect("a folder of the repository")
}

/// Copies the tracked files, and puts the programs where a build would put them.
fn fresh_copy(folder: &Folder) -> PathBuf {
    let copy = folder.path("clone");
    fs::create_dir_all(copy.join("target/release")).expect("a folder");
    let packed = "git ls-files -z --cached --others --exclude-standard | tar -c --null --ignore-failed-read -T - 2> /dev/null";
    let mut copying = Command::new("sh");
    copying
        .arg("-c")
        .arg(format!("{packed} | tar -x -C \"$0\""))
        .arg(&copy)
        .current_dir(top());
    let copied = copying.status().expect("there is a shell");
    assert!(
        copied.success() && copy.join("README.md").exists(),
        "no copy of the files"
    );
    let built = programs();
    for name in PROGRAMS {
        symlink(built.join(name), copy.join("target/release").join(name)).expect("a link");
    }
    copy
}

/// Returns the line to run, or its replacement.
fn typed(line: &str, page: &Page<'_>) -> String {
    if page
        .left_out
        .iter()
        .any(|(begin, _)| line.starts_with(begin))
    {
        return ":".to_owned();
    }
    let up = line.split(" # ").next().unwrap_or_default().trim_end();
    match line {
        _ if up.starts_with("nap up") => format!("__up {up}"),
        _ if line.starts_with("slow-count") && line.contains("--detach") => {
            format!("{line}\n__wait_for_task r_0000")
        }
        _ => line.to_owned(),
    }
}

/// Runs the page and asserts that every line is known and ends with status 0.
fn type_page(page: &Page<'_>) {
    let text = fs::read_to_string(top().join(page.path)).expect("the page is there");
    for (begin, why) in page.left_out {
        let lines = blocks(&text);
        assert!(
            lines
                .iter()
                .any(|block| block.lines().any(|line| line.starts_with(begin))),
            "{}: no line begins with {begin:?}, left out since {why}",
            page.path
        );
    }
    let folder = Folder::new();
    let copy = fresh_copy(&folder);
    let home = folder.path("home");
    fs::create_dir_all(home.join("bin")).expect("a folder");
    fs::write(home.join("bin/cargo"), CARGO).expect("a stand-in");
    fs::set_permissions(home.join("bin/cargo"), Permissions::from_mode(0o755)).expect("it is ours");
    let mut script = format!("set -e\n{UP}\n{}\n", page.before);
    for line in blocks(&text).iter().flat_map(|block| block.lines()) {
        let _ = writeln!(script, "{}", typed(line, page));
    }
    let log = folder.path("log");
    let mut shell = Command::new("bash");
    shell
        .args(["-x", "-c", &script])
        .current_dir(&copy)
        .stdin(Stdio::null());
    for name in ["CLUSTER", "DIR", "COORDINATOR"] {
        shell.env_remove(format!("NAPREDUCE_{name}"));
    }
    shell
        .env_remove("PYTHONPATH")
        .env_remove("XDG_STATE_HOME")
        .env("HOME", &home);
    let path = std::env::var("PATH").unwrap_or_default();
    shell.env("PATH", format!("{}:{path}", home.join("bin").display()));
    let said = fs::File::create(&log).expect("a log");
    shell.stdout(said.try_clone().expect("a log")).stderr(said);
    let status = shell.status().expect("there is bash");
    let said = fs::read(&log).expect("a log");
    let said = String::from_utf8_lossy(&said);
    assert!(status.success(), "{}: {status}\n{said}", page.path);
}

/// Returns whether Python is available for the pages that need it; reports a skip otherwise.
fn has_python() -> bool {
    if Command::new("python3")
        .arg("--version")
        .output()
        .is_ok_and(|ended| ended.status.success())
    {
        return true;
    }
    skipped("python", "there is no python3");
    false
}

#[test]
fn readme_commands_run_as_typed() {
    if !has_python() {
        return;
    }
    type_page(&Page {
        path: "README.md",
        left_out: &[],
        before: "",
    });
}

#[test]
fn other_languages_page_commands_run_as_typed() {
    if !has_python() {
        return;
    }
    let has_mrjob = Command::new("python3")
        .args(["-c", "import mrjob"])
        .output();
    let has_mrjob = has_mrjob.is_ok_and(|ended| ended.status.success());
    let mut left_out = vec![
        (
            "trap 'save_something",
            "it is a pattern with a filter of the reader's own",
        ),
        ("exec 3<&0; my-filter", "as above"),
        ("while kill -0", "as above"),
        (
            "nap frames --program ./wordcount ",
            "it is a program of the reader's own",
        ),
        ("python3 -m venv", "a wheel is not built here"),
        ("cd python", "a wheel is not built here"),
        ("../build/bin/maturin", "a wheel is not built here"),
        ("rustup target add", "a wheel is not built here"),
        ("env -i", "a wheel is not built here"),
    ];
    if !has_mrjob {
        left_out.push((
            "nap streaming --input books --output words ",
            "there is no mrjob here",
        ));
    }
    let job = "from mrjob.job import MRJob\nclass Words(MRJob):\n    def mapper(self, _, line):\n        yield line, 1\n    def reducer(self, line, counts):\n        yield line, sum(counts)\nWords.run()\n";
    type_page(&Page {
        path: "docs/other-languages.md",
        left_out: &left_out,
        before: &format!(
            "export PATH=$PWD/target/release:$PATH PYTHONPATH=$PWD/python\ncat > job.py <<'END'\n{job}END\n"
        ),
    });
}

#[test]
fn cluster_page_commands_run_as_typed() {
    if !has_python() {
        return;
    }
    type_page(&Page {
        path: "docs/cluster.md",
        left_out: &[
            ("nap coordinator --bind", "it is for several hosts"),
            ("nap worker --coordinator HOST", "it is for several hosts"),
        ],
        before: "export PATH=$PWD/target/release:$PATH",
    });
}

#[test]
fn python_page_commands_run_as_typed() {
    if !has_python() {
        return;
    }
    let readme = fs::read_to_string(top().join("python/README.md")).expect("the page is there");
    let join = readme
        .split("\n```python\n")
        .find(|block| block.starts_with("import csv\n"))
        .expect("a join");
    let join = join.split("\n```").next().unwrap_or_default();
    let job = format!(
        "mkdir books && cp README.md books/a.txt && cp python/examples/wordcount.py .\n\
         cat > join.py <<'END'\n{join}\nEND\n\
         printf 'id,name\\n7,Ada\\n' > customers.csv\nprintf 'customer,price\\n7,1.5\\n' > sales.csv\n\
         export PATH=$PWD/target/release:$PATH PYTHONPATH=python"
    );
    type_page(&Page {
        path: "python/README.md",
        left_out: &[(
            "python3 wordcount.py books --output again --cluster DIR",
            "DIR stands for a cluster",
        )],
        before: &job,
    });
}
