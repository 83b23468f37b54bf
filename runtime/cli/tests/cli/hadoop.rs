//! Tests of `nap hadoop` as other programs call it: file commands, streaming jobs, and jobs of mrjob.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use tempfile::TempDir;

/// A folder with local files and a subfolder that stands for `hdfs:///`.
struct Place {
    folder: TempDir,
}

impl Place {
    fn new() -> Place {
        let folder = tempfile::tempdir().expect("a temporary folder");
        fs::create_dir(folder.path().join("store")).expect("a folder");
        Place { folder }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn write(&self, name: &str, text: &str) {
        fs::write(self.path(name), text).expect("a written file");
    }

    fn command(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        command
            .current_dir(self.folder.path())
            .env("NAPREDUCE_HADOOP_ROOT", self.path("store"))
            .env("USER", "ann");
        command
            .env_remove("NAPREDUCE_CLUSTER")
            .env_remove("NAPREDUCE_DIR");
        command
    }

    fn hadoop(&self, arguments: &[&str]) -> Output {
        let mut command = self.command(Path::new(env!("CARGO_BIN_EXE_nap")));
        command
            .arg("hadoop")
            .args(arguments)
            .output()
            .expect("nap runs")
    }

    /// Checks the output of a command.
    fn check(&self, line: &str, expected: &str) {
        let ended = self.hadoop(&words(line));
        assert!(ended.status.success(), "{line}: {}", stderr_of(&ended));
        assert_eq!(String::from_utf8_lossy(&ended.stdout), expected, "{line}");
    }

    fn check_fails(&self, line: &str, status: i32, expected: &str) {
        let ended = self.hadoop(&words(line));
        assert_eq!(
            ended.status.code(),
            Some(status),
            "{line}: {}",
            stderr_of(&ended)
        );
        assert!(
            stderr_of(&ended).contains(expected),
            "{line}: {}",
            stderr_of(&ended)
        );
    }
}

fn words(line: &str) -> Vec<&str> {
    line.split(' ').collect()
}

fn stderr_of(ended: &Output) -> String {
    String::from_utf8_lossy(&ended.stderr).into_owned()
}

#[test]
fn fs_copies_and_lists_files_as_hadoop() {
    let place = Place::new();
    place.write("a.txt", "one\n");
    place.write("b.txt", "two\n");
    place.check("version", "Hadoop 3.3.0\n");
    place.check("fs -mkdir -p hdfs:///books/deep", "");
    place.check("fs -put a.txt b.txt hdfs:///books", "");
    place.check("fs -put a.txt /books/deep/c.txt", "");
    place.check("fs -cat hdfs:///books/*.txt", "one\ntwo\n");
    place.check(
        "fs -du hdfs:///books",
        "4  4  /books/a.txt\n4  4  /books/b.txt\n4  4  /books/deep\n",
    );
    place.check("fs -du -s /books", "12  12  /books\n");
    place.check("fs -touchz /books/empty", "");
    let listed = place.hadoop(&["fs", "-ls", "-R", "hdfs:///books"]);
    let text = String::from_utf8_lossy(&listed.stdout).into_owned();
    let lines: Vec<Vec<&str>> = text
        .lines()
        .map(|line| line.split_whitespace().collect())
        .collect();
    let paths: Vec<&str> = lines
        .iter()
        .filter_map(|fields| fields.get(7).copied())
        .collect();
    assert_eq!(
        paths,
        [
            "/books/a.txt",
            "/books/b.txt",
            "/books/deep",
            "/books/deep/c.txt",
            "/books/empty"
        ]
    );
    assert!(
        lines[2][0].starts_with('d') && lines[0][0].starts_with("-rw") && lines[0][4] == "4",
        "{text}"
    );
    let folder = place.hadoop(&["fs", "-ls", "/books"]);
    assert!(
        String::from_utf8_lossy(&folder.stdout).starts_with("Found 4 items\n"),
        "{folder:?}"
    );
    place.check("fs -copyToLocal /books/a.txt out.txt", "");
    assert_eq!(
        fs::read_to_string(place.path("out.txt")).expect("it was copied"),
        "one\n"
    );
    place.check("fs -get /books copy", "");
    assert!(place.path("copy/deep/c.txt").exists());
    for (flag, path, status) in [
        ("-d", "/books", 0),
        ("-f", "/books", 1),
        ("-z", "/books/empty", 0),
        ("-s", "/books/empty", 1),
        ("-e", "/no", 1),
    ] {
        assert_eq!(
            place.hadoop(&["fs", "-test", flag, path]).status.code(),
            Some(status),
            "{flag} {path}"
        );
    }
    place.check("fs -rm -R -f -skipTrash hdfs:///books hdfs:///never", "");
    assert_eq!(
        fs::read_dir(place.path("store"))
            .expect("it is there")
            .count(),
        0
    );
}

#[test]
fn fs_errors_have_the_words_of_hadoop() {
    let place = Place::new();
    place.write("a.txt", "one\n");
    place.check("fs -mkdir /books", "");
    place.check_fails("fs -mkdir /books", 1, "mkdir: `/books': File exists");
    place.check_fails(
        "fs -ls hdfs:///no",
        1,
        "ls: `hdfs:///no': No such file or directory",
    );
    place.check_fails("fs -cat /no*", 1, "cat: `/no*': No such file or directory");
    place.check_fails("fs -rm /books", 1, "rm: `/books': Is a directory");
    place.check_fails("fs -rm -R /", 1, "cannot remove the root");
    place.check("fs -put a.txt /books", "");
    place.check_fails(
        "fs -put a.txt /books",
        1,
        "put: `/books/a.txt': File exists",
    );
    place.check_fails("fs -touchz /books/a.txt", 1, "Not a zero-length file");
    place.check_fails(
        "fs -put no.txt /books",
        1,
        "put: `no.txt': No such file or directory",
    );
    place.check_fails("fs -cat /books/../../a.txt", 1, "must not contain ..");
    place.check_fails("fs -setfacl 777 /books", 2, "fs -setfacl: not supported");
    place.check_fails("fs -ls -h /books", 2, "fs -ls -h: not supported");
    place.check_fails(
        "distcp a b",
        2,
        "unknown command \"distcp\"; expected jar, fs or version",
    );
    place.check_fails(
        "jar any.jar -mapper cat -libjars x.jar",
        2,
        "-libjars x.jar: not supported",
    );
    place.check_fails(
        "--hadoop-root nowhere fs -ls /",
        2,
        "--hadoop-root nowhere: not a directory",
    );
}

#[test]
fn script_for_hadoop_runs_unchanged() {
    let place = Place::new();
    place.write("books.txt", "to be or\nnot to be\n");
    place.write(
        "words.sh",
        "#!/bin/sh\ntr -s ' ' '\\n' | sed \"s/$/\\t$ONE/\"\n",
    );
    place.write(
        "sum.awk",
        "$1 != k { if (NR > 1) print k \"\\t\" n; n = 0 } { k = $1; n += $2 } END { print k \"\\t\" n }\n",
    );
    let made = Command::new("chmod")
        .args(["+x", "words.sh"])
        .current_dir(place.folder.path())
        .status();
    assert!(made.expect("chmod runs").success());
    place.check("fs -put books.txt /books.txt", "");
    let ended = place.hadoop(&[
        "jar",
        "hadoop-streaming.jar",
        "-D",
        "mapreduce.job.name=words",
        "-files",
        "words.sh,sum.awk",
        "-cmdenv",
        "ONE=1",
        "-input",
        "/books.txt",
        "-output",
        "/out",
        "-mapper",
        "words.sh",
        "-combiner",
        "awk -f sum.awk",
        "-reducer",
        "awk -f sum.awk",
        "-numReduceTasks",
        "1",
    ]);
    assert!(ended.status.success(), "{}", stderr_of(&ended));
    place.check("fs -cat /out/part-*", "be\t2\nnot\t1\nor\t1\nto\t2\n");
}

#[test]
fn fs_moves_merges_and_prints_files() {
    let place = Place::new();
    place.write("a.txt", "one\n");
    place.write("b.txt", "two\n");
    place.check("fs -mkdir -p /out/old", "");
    place.check("fs -put a.txt /out/part-00000", "");
    place.check("fs -moveFromLocal b.txt /out/part-00001", "");
    assert!(!place.path("b.txt").exists());
    place.write("mark", "{}");
    place.check("fs -put mark /out/_SUCCESS", "");
    place.check("fs -getmerge /out all.txt", "");
    assert_eq!(
        fs::read_to_string(place.path("all.txt")).expect("it was merged"),
        "one\ntwo\n"
    );
    place.check("fs -getmerge -nl /out/part-* all.txt", "");
    assert_eq!(
        fs::read_to_string(place.path("all.txt")).expect("it was merged"),
        "one\n\ntwo\n\n"
    );
    place.check("fs -text /out/*0*", "one\ntwo\n");
    place.check("fs -cat /out/_SUCCESS", "{}");
    place.check("fs -cp /out/part-00000 /copy", "");
    place.check("fs -mv /copy /out/old", "");
    place.check("fs -appendToFile a.txt /out/old/copy", "");
    place.check("fs -tail /out/old/copy", "one\none\n");
    place.check("fs -head /out/old/copy", "one\none\n");
    place.check(
        "fs -count /out",
        &format!("{:>12} {:>12} {:>18} /out\n", 2, 4, 18),
    );
    place.check("fs -chmod -R 700 /out/old", "");
    place.check("fs -setrep -w 3 /out", "");
    place.check("fs -rm /out/old/copy", "");
    place.check("fs -rmdir /out/old", "");
    let zipped = Command::new("gzip")
        .arg("a.txt")
        .current_dir(place.folder.path())
        .status();
    assert!(zipped.expect("gzip runs").success());
    place.check("fs -put a.txt.gz /a.gz", "");
    place.check("fs -text /a.gz", "one\n");
}

#[test]
fn copy_onto_itself_is_rejected() {
    let place = Place::new();
    place.write("store/a", "one\n");
    place.write("store/b", "two\n");
    place.check("fs -mkdir /folder", "");
    place.check_fails("fs -cp -f /a /a", 1, "is the destination");
    place.check_fails("fs -put -f store/a /a", 1, "is the destination");
    place.check_fails("fs -getmerge /a store/a", 1, "is the destination");
    place.check_fails("fs -appendToFile store/a /a", 1, "is the destination");
    place.check_fails("fs -cp /folder /folder/inside", 1, "is the destination");
    fs::hard_link(place.path("store/a"), place.path("store/linked")).expect("a link");
    place.check_fails("fs -cp -f /a /linked", 1, "is the destination");
    place.check_fails("fs -mv / /folder", 1, "is the destination");
    place.check("fs -get / all", "");
    assert_eq!(
        fs::read_to_string(place.path("all/linked")).expect("it was copied"),
        "one\n"
    );
    place.check_fails("fs -mv /a /b", 1, "mv: `/b': File exists");
    place.check_fails("fs -cp /a /b", 1, "cp: `/b': File exists");
    place.check("fs -cat /a /b", "one\ntwo\n");
}

#[test]
fn key_fields_are_partitioned_and_sorted() {
    let place = Place::new();
    place.write("store/rows", "b,9,x\na,10,y\na,9,z\nb,10,w\n");
    let ended = place.hadoop(&[
        "jar",
        "any.jar",
        "-Dmapreduce.map.output.compress=true",
        "-Dmapreduce.map.memory.mb=2048",
        "-Dstream.map.output.field.separator=,",
        "-Dstream.num.map.output.key.fields=2",
        "-Dmapreduce.map.output.key.field.separator=,",
        "-Dmapreduce.job.output.key.comparator.class=org.apache.hadoop.mapreduce.lib.partition.KeyFieldBasedComparator",
        "-D",
        "mapreduce.partition.keycomparator.options=-k1,1 -k2,2nr",
        "-Dleast.rows=1",
        "-input",
        "/rows,/rows",
        "-output",
        "/out",
        "-mapper",
        "sed s/$/$least_rows/",
        "-reducer",
        "cat",
    ]);
    assert!(ended.status.success(), "{}", stderr_of(&ended));
    assert!(
        stderr_of(&ended).contains("-D mapreduce.map.memory.mb has no effect here"),
        "{}",
        stderr_of(&ended)
    );
    place.check("fs -cat /out/*", "a,10\ty1\na,9\tz1\nb,10\tw1\nb,9\tx1\n");
}

#[test]
fn failing_sort_before_reducer_fails_the_job() {
    let place = Place::new();
    place.write("store/rows", "b\na\n");
    // Hadoop numbers fields from 1.
    let order = "mapreduce.partition.keycomparator.options=-k0,1n";
    let class = "mapreduce.job.output.key.comparator.class=KeyFieldBasedComparator";
    let line = format!("jar any.jar -D {order} -D {class} -input /rows -output /out -mapper cat");
    place.check_fails(&line, 1, "was killed by signal 15");
    assert!(!place.path("store/out/_SUCCESS").exists());
}

/// A job with counters, a combiner and a second step, written with mrjob.
const JOB: &str = r#"
from mrjob.job import MRJob
from mrjob.step import MRStep

class MostUsed(MRJob):
    def words(self, _, line):
        self.increment_counter("words", "lines", 1)
        for word in line.split():
            yield word, 1

    def add(self, word, counts):
        yield word, sum(counts)

    def to_one(self, word, counts):
        yield None, (sum(counts), word)

    def largest(self, _, pairs):
        for count, word in sorted(pairs, reverse=True):
            yield word, count

    def steps(self):
        return [
            MRStep(mapper=self.words, combiner=self.add, reducer=self.to_one),
            MRStep(reducer=self.largest),
        ]

if __name__ == "__main__":
    MostUsed.run()
"#;

/// A job whose reducer gets the values of each key in order, for which mrjob relies on Hadoop.
const SORTED: &str = r#"
from mrjob.job import MRJob

class InOrder(MRJob):
    SORT_VALUES = True

    def mapper(self, _, line):
        for place, word in enumerate(line.split()):
            yield word[0], f"{word}{place:03}"

    def reducer(self, letter, words):
        yield letter, list(words)

if __name__ == "__main__":
    InOrder.run()
"#;

fn python_with_mrjob() -> bool {
    let found = Command::new("python3")
        .args(["-c", "import mrjob"])
        .output();
    if found.is_ok_and(|ended| ended.status.success()) {
        return true;
    }
    let required = std::env::var("NAPREDUCE_REQUIRE").unwrap_or_default();
    assert!(
        !required.split(',').any(|one| one == "mrjob"),
        "mrjob cannot be tested: no python3 here has it"
    );
    eprintln!("skipped: jobs of mrjob: no python3 here has it (pip install mrjob)");
    false
}

/// Runs a job with one of mrjob's own runners or, for `hadoop`, with `nap hadoop`; returns the output.
fn run_mrjob(place: &Place, arguments: &[&str], runner: &str) -> String {
    let nap = format!("{} hadoop", env!("CARGO_BIN_EXE_nap"));
    let mut command = place.command(Path::new("python3"));
    command.args(arguments).args(["--no-conf", "-r", runner]);
    if runner == "hadoop" {
        command.args(["--hadoop-bin", &nap, "--hadoop-streaming-jar", "any.jar"]);
    }
    let ended = command.output().expect("python3 runs");
    assert!(
        ended.status.success(),
        "{arguments:?}: {}",
        stderr_of(&ended)
    );
    let mut lines: Vec<String> = String::from_utf8_lossy(&ended.stdout)
        .lines()
        .map(str::to_owned)
        .collect();
    lines.sort();
    lines.join("\n")
}

#[test]
fn mrjob_output_equals_inline_runner() {
    if !python_with_mrjob() {
        return;
    }
    let place = Place::new();
    place.write("job.py", JOB);
    place.write("sorted.py", SORTED);
    place.write("any.jar", "");
    place.write("books.txt", "to be or\nnot to be\n\nthat is the question\n");
    for arguments in [
        &["job.py", "books.txt"][..],
        &[
            "sorted.py",
            "books.txt",
            "--jobconf",
            "mapreduce.job.reduces=3",
        ],
        &["-m", "mrjob.examples.mr_word_freq_count", "books.txt"],
        &["-m", "mrjob.examples.mr_count_lines_right", "books.txt"],
        &["-m", "mrjob.examples.mr_most_used_word", "books.txt"],
        &["-m", "mrjob.examples.mr_wc", "books.txt"],
        &["-m", "mrjob.examples.mr_grep", "-e", "be", "books.txt"],
    ] {
        // Only the local runner supports commands.
        let runner = if arguments[1].ends_with("grep") {
            "local"
        } else {
            "inline"
        };
        let expected = run_mrjob(&place, arguments, runner);
        assert!(!expected.is_empty(), "{arguments:?}");
        assert_eq!(
            run_mrjob(&place, arguments, "hadoop"),
            expected,
            "{arguments:?}"
        );
    }
    let left = Command::new("find")
        .arg(place.path("store"))
        .args(["-type", "f"])
        .output()
        .expect("find runs");
    assert_eq!(
        String::from_utf8_lossy(&left.stdout),
        "",
        "mrjob has removed what it has made"
    );
}
