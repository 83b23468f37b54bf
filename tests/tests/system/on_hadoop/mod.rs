//! Jobs through Hadoop streaming: on the emulation `streaming_hadoop`, and on Hadoop's own task classes. A
//! cluster with YARN is used if `NAPREDUCE_HADOOP` names its command.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use napreduce_tests::{
    Folder, assert_every_shape_is_as_embedded, assert_interrupted_leaves_nothing,
    assert_nothing_is_left, assert_same, counter, run, skipped, wait_until, without_cluster,
    write_input,
};

/// The flags of a job on the emulation.
fn emulated(folder: &Folder) -> Vec<String> {
    let hadoop = without_cluster("streaming_hadoop", folder)
        .get_program()
        .to_owned();
    let jar = folder.write("streaming.jar", "");
    let jar = format!("napreduce.streaming.jar={}", jar.display());
    let hadoop = hadoop.into_string().expect("text");
    ["--on", "hadoop", "--on-submit", &hadoop, "--on-conf", &jar]
        .map(str::to_owned)
        .to_vec()
}

fn on_hadoop(name: &str, folder: &Folder) -> Command {
    let mut command = without_cluster(name, folder);
    command.args(emulated(folder));
    command
}

#[test]
fn every_job_shape_equals_embedded_run() {
    let folder = Folder::new();
    write_input(&folder, 3, 400);
    let flags = emulated(&folder);
    let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
    assert_every_shape_is_as_embedded(&folder, &flags, |_| {});
    assert_eq!(
        counter(&folder.path("other.killed-map"), "NUM_FAILED_MAPS"),
        3
    );
    assert_eq!(
        counter(&folder.path("other.killed-reduce"), "NUM_FAILED_REDUCES"),
        3
    );
}

#[test]
fn reduces_without_input_write_empty_parts() {
    let folder = Folder::new();
    folder.write("in.txt", "a b a\n");
    folder.write("empty.txt", "");
    for input in ["in.txt", "empty.txt"] {
        let arguments = [
            input,
            "--reduces",
            "7",
            "--overwrite",
            "--quiet",
            "--output",
        ];
        run(without_cluster("wordcount", &folder)
            .args(arguments)
            .arg("own"))
        .succeeded();
        run(on_hadoop("wordcount", &folder).args(arguments).arg("other")).succeeded();
        assert_same(&folder.path("own"), &folder.path("other"));
    }
}

#[test]
fn fatal_error_fails_job_after_one_attempt() {
    let folder = Folder::new();
    let input = folder.write("in.txt", "good\nbad\n");
    let mut command = on_hadoop("testjobs", &folder);
    command.args(["in.txt", "--job", "fatal-in-map", "--output", "out"]);
    run(&mut command).failed(
        1,
        &["job_0001_m_0000: ", "in.txt line 2: this line is invalid"],
    );
    let attempts =
        fs::read_to_string(input.with_extension("txt.attempts")).expect("some were made");
    assert!(attempts.starts_with("one\n"), "{attempts}");
    assert_nothing_is_left(&folder, "out");
}

#[test]
fn interrupted_job_leaves_nothing() {
    let folder = Folder::new();
    let command = on_hadoop("testjobs", &folder);
    assert_interrupted_leaves_nothing(&folder, command, |runs| wait_until("a guest runs", runs));
}

#[test]
fn missing_or_failing_hadoop_is_named() {
    let folder = Folder::new();
    folder.write("in.txt", "a b\n");
    let mut command = without_cluster("wordcount", &folder);
    command.env("PATH", "/nowhere").env_remove("HADOOP_HOME");
    let ended = run(command.args(["in.txt", "--output", "out", "--on", "hadoop"]));
    ended.failed(
        2,
        &["Hadoop not found: ", "name a command with --on-submit"],
    );
    assert!(!folder.path("out").exists());
    let jar = format!(
        "napreduce.streaming.jar={}",
        folder.write("streaming.jar", "").display()
    );
    let mut command = without_cluster("wordcount", &folder);
    command.args([
        "in.txt",
        "--output",
        "out",
        "--on",
        "hadoop",
        "--on-submit",
        "/bin/false",
        "--on-conf",
        &jar,
    ]);
    run(&mut command).failed(1, &["Hadoop: exit status: 1"]);
    assert_nothing_is_left(&folder, "out");
}

/// Returns the jars of Hadoop's client in the module pyspark, if there is also a Java compiler.
fn jars() -> Option<PathBuf> {
    let named = std::env::var("NAPREDUCE_PYSPARK_PYTHON").unwrap_or_else(|_| "python3".to_owned());
    let mut ask = Command::new(named);
    ask.args([
        "-c",
        "import os, pyspark; print(os.path.dirname(pyspark.__file__))",
    ])
    .stderr(Stdio::null());
    let told = ask.output().ok().filter(|told| told.status.success());
    let jars =
        told.map(|told| Path::new(String::from_utf8_lossy(&told.stdout).trim()).join("jars"));
    let compiler = Command::new("javac")
        .arg("-version")
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    let why = match (jars, compiler) {
        (Some(jars), Ok(status)) if status.success() => return Some(jars),
        (None, _) => "python3 has no module pyspark; install it with: pip install pyspark",
        (Some(_), _) => {
            "there is no javac; install a JDK, such as Debian's openjdk-17-jdk-headless"
        }
    };
    skipped("hadoop", why);
    None
}

#[test]
fn hadoop_partitioner_and_sort_make_same_parts() {
    let Some(jars) = jars() else { return };
    let folder = Folder::new();
    write_input(&folder, 5, 2_000);
    let source =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/system/on_hadoop/StreamingJob.java");
    let classes = folder.path("classes");
    fs::create_dir(&classes).expect("made");
    let path = format!("{}:{}/*", classes.display(), jars.display());
    let compiled = Command::new("javac")
        .arg("-cp")
        .arg(&path)
        .arg("-d")
        .arg(&classes)
        .arg(source)
        .output()
        .expect("javac");
    assert!(
        compiled.status.success(),
        "{}",
        String::from_utf8_lossy(&compiled.stderr)
    );
    let work = folder.path("hadoop-work");
    fs::create_dir(&work).expect("made");
    let hadoop = folder.write(
        "hadoop",
        format!(
            "#!/bin/sh\n[ \"$1\" = jar ] || exit 0\nshift 2\ncd '{work}' || exit 1\n\
             exec java -cp '{path}' StreamingJob -D mapreduce.framework.name=local -D hadoop.tmp.dir='{work}/tmp' \"$@\"\n",
            work = work.display(),
        ),
    );
    fs::set_permissions(&hadoop, fs::Permissions::from_mode(0o755)).expect("it may be run");
    let jar = format!(
        "napreduce.streaming.jar={}",
        folder.write("streaming.jar", "").display()
    );
    let arguments = [
        "in",
        "--reduces",
        "5",
        "--conf",
        "combine-files=false",
        "--quiet",
        "--output",
    ];
    run(without_cluster("wordcount", &folder)
        .args(arguments)
        .arg("own"))
    .succeeded();
    let mut command = without_cluster("wordcount", &folder);
    command
        .args(arguments)
        .arg("other")
        .args(["--on", "hadoop", "--on-conf", &jar]);
    run(command.arg("--on-submit").arg(&hadoop)).succeeded();
    assert_same(&folder.path("own"), &folder.path("other"));
}

/// The machines of the cluster see the folders of tests under the same paths.
#[test]
fn yarn_cluster_makes_same_parts() {
    let Some(hadoop) = std::env::var_os("NAPREDUCE_HADOOP") else {
        eprintln!(
            "skipped: jobs on YARN: set NAPREDUCE_HADOOP to the command hadoop of a cluster with YARN"
        );
        return;
    };
    let folder = Folder::new();
    write_input(&folder, 5, 2_000);
    let arguments = [
        "in",
        "--reduces",
        "5",
        "--conf",
        "combine-files=false",
        "--quiet",
        "--output",
    ];
    run(without_cluster("wordcount", &folder)
        .args(arguments)
        .arg("own"))
    .succeeded();
    let mut command = without_cluster("wordcount", &folder);
    command
        .args(arguments)
        .args(["other", "--on", "hadoop", "--on-submit"])
        .arg(hadoop);
    run(&mut command).succeeded();
    assert_same(&folder.path("own"), &folder.path("other"));
}
