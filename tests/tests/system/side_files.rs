//! `--files` of a job: how commands find the files, embedded and on a cluster, and which files are refused.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use napreduce_tests::{Ended, Folder, OwnCluster, parts, program, run, wait_until};
use rustix::process::{Pid, Signal, kill_process};

/// Returns a program that does not use the shared cluster.
fn alone(folder: &Folder, name: &str) -> Command {
    let mut command = program(name);
    command
        .env_remove("NAPREDUCE_CLUSTER")
        .env_remove("NAPREDUCE_DIR")
        .current_dir(folder.root());
    command
}

fn streaming(
    folder: &Folder,
    cluster: Option<&OwnCluster>,
    output: &str,
    rest: &[&str],
) -> Command {
    let mut command = alone(folder, "nap");
    command
        .args([
            "streaming",
            "--input",
            "in",
            "--output",
            output,
            "--overwrite",
        ])
        .args(rest);
    if let Some(cluster) = cluster {
        command.arg("--cluster").arg(cluster.directory());
    }
    command
}

/// Returns the text of the only part file.
fn said(folder: &Folder, output: &str) -> String {
    let parts = parts(&folder.path(output));
    assert_eq!(parts.len(), 1);
    String::from_utf8(parts[0].1.clone()).expect("text")
}

fn script(folder: &Folder, name: &str, text: &str) {
    let path = folder.write(name, text);
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).expect("permissions can be set");
}

#[test]
fn side_files_are_in_working_directory_of_command() {
    let folder = Folder::new();
    folder.write("in", "a\nb\nc\n");
    folder.write("lists/stop.txt", "b\n");
    let cluster = OwnCluster::start(&folder, 1, "fifo", "");
    for cluster in [None, Some(&cluster)] {
        for (mapper, files) in [
            ("grep -vxf stop.txt", "lists/stop.txt"),
            ("grep -vxf words", "lists/stop.txt#words"),
            (
                "grep -vxf \"$NAPREDUCE_FILES_DIR/stop.txt\"",
                "lists/stop.txt",
            ),
        ] {
            let rest = ["--mapper", mapper, "--files", files];
            run(&mut streaming(&folder, cluster, "out", &rest)).succeeded();
            assert_eq!(
                said(&folder, "out"),
                "a\nc\n",
                "{mapper} {}",
                cluster.is_some()
            );
        }
        let reducer = "cut -f 1 | grep -vxf stop.txt";
        let rest = [
            "--mapper",
            "cat",
            "--reducer",
            reducer,
            "--reduces",
            "1",
            "--files",
            "lists/stop.txt",
        ];
        run(&mut streaming(&folder, cluster, "out", &rest)).succeeded();
        assert_eq!(said(&folder, "out"), "a\nc\n");
    }
}

#[test]
fn command_that_writes_to_side_file_changes_its_copy_only() {
    let folder = Folder::new();
    folder.write("in", "a\n");
    let original = folder.write("side", "mine\n");
    fs::set_permissions(&original, fs::Permissions::from_mode(0o640))
        .expect("permissions can be set");
    std::os::unix::fs::symlink("side", folder.path("link")).expect("a link");
    let cluster = OwnCluster::start(&folder, 1, "fifo", "");
    let change = "cat side link; chmod 666 side link; echo theirs >side; echo theirs >>link";
    for cluster in [None, Some(&cluster)] {
        for _ in 0..2 {
            let rest = ["--mapper", change, "--files", "side,link"];
            run(&mut streaming(&folder, cluster, "out", &rest)).succeeded();
            assert_eq!(said(&folder, "out"), "mine\nmine\n");
            assert_eq!(fs::read_to_string(&original).expect("a file"), "mine\n");
            let mode = fs::metadata(&original)
                .expect("a file")
                .permissions()
                .mode();
            assert_eq!(mode & 0o777, 0o640);
        }
    }
}

#[test]
fn program_of_command_is_shipped() {
    let folder = Folder::new();
    folder.write("in", "a\nb\nc\n");
    script(&folder, "scripts/map.sh", "#!/bin/sh\ngrep -v \"$1\"\n");
    script(&folder, "reduce.sh", "#!/bin/sh\ncut -f 1 | tr a-z A-Z\n");
    let cluster = OwnCluster::start(&folder, 1, "fifo", "");
    for cluster in [None, Some(&cluster)] {
        let commands = [
            "--mapper",
            "./scripts/map.sh b",
            "--reducer",
            "./reduce.sh",
            "--reduces",
            "1",
        ];
        run(&mut streaming(&folder, cluster, "out", &commands)).succeeded();
        assert_eq!(said(&folder, "out"), "A\nC\n", "{}", cluster.is_some());
        // A file that is already a side file, also under another name.
        for (mapper, files) in [
            ("./scripts/map.sh b", "scripts/map.sh"),
            ("./without b", "scripts/map.sh#without"),
        ] {
            let rest = ["--mapper", mapper, "--files", files];
            run(&mut streaming(&folder, cluster, "out", &rest)).succeeded();
            assert_eq!(said(&folder, "out"), "a\nc\n", "{mapper}");
        }
    }
}

#[test]
fn unrunnable_command_is_refused_before_start() {
    let folder = Folder::new();
    folder.write("in", "a\n");
    folder.write("map.py", "print(1)\n");
    run(&mut streaming(
        &folder,
        None,
        "out",
        &["--mapper", "./missing.py -x"],
    ))
    .failed(
        2,
        &["--mapper \"./missing.py -x\": file ./missing.py not found"],
    );
    let says =
        "./map.py is not executable; run chmod +x, or name its interpreter and ship the file";
    run(&mut streaming(
        &folder,
        None,
        "out",
        &["--mapper", "cat", "--reducer", "./map.py"],
    ))
    .failed(2, &[says, "--reducer 'python3 map.py' --files ./map.py"]);
    run(&mut streaming(
        &folder,
        None,
        "out",
        &["--mapper", "./map.py", "--files", "map.py"],
    ))
    .failed(2, &[says]);
    assert!(!folder.has("out"));
    // A possible input file is mentioned, even if the job succeeds.
    let ended = run(&mut streaming(
        &folder,
        None,
        "out",
        &["--mapper", "cat # map.py"],
    ))
    .succeeded();
    assert!(
        ended
            .stderr
            .contains("ship it with --files map.py and call it map.py"),
        "{}",
        ended.stderr
    );
}

#[test]
fn command_runs_in_temporary_directory() {
    let folder = Folder::new();
    folder.write("in", "a\n");
    folder.write("stop.txt", "b\n");
    let cluster = OwnCluster::start(&folder, 1, "fifo", "");
    for cluster in [None, Some(&cluster)] {
        let rest = ["--mapper", "pwd -P; touch left; ls", "--files", "stop.txt"];
        run(&mut streaming(&folder, cluster, "out", &rest)).succeeded();
        let text = said(&folder, "out");
        let (directory, names) = text.split_once('\n').expect("several lines");
        assert_eq!(names, "left\nstop.txt\n");
        wait_until("the directory is removed", || {
            !Path::new(directory).exists()
        });
        assert!(!folder.has("left"));
    }
    assert_eq!(
        fs::read_to_string(folder.path("stop.txt")).expect("a file"),
        "b\n"
    );
}

#[test]
fn quiet_hides_task_output() {
    let folder = Folder::new();
    folder.write("in", "a\n");
    let rest = [
        "--conf",
        "attempts-max=1",
        "--mapper",
        "echo he\"\"ard >&2; exit 3",
    ];
    let failed = |ended: Ended| ended.failed(1, &["exited with status 3"]).stderr;
    let loud = failed(run(&mut streaming(&folder, None, "out", &rest)));
    assert!(loud.contains("heard"), "{loud}");
    let quiet = failed(run(streaming(&folder, None, "out", &rest).arg("--quiet")));
    assert!(
        !quiet.contains("heard") && quiet.lines().count() == 1,
        "{quiet}"
    );
}

#[test]
fn only_regular_side_files_are_accepted() {
    let folder = Folder::new();
    folder.write("in", "a\n");
    assert!(
        run(Command::new("mkfifo").arg(folder.path("pipe")))
            .status
            .success()
    );
    let cluster = OwnCluster::start(&folder, 1, "fifo", "");
    for cluster in [None, Some(&cluster)] {
        for file in ["/dev/zero#z", "pipe", "cluster#c"] {
            let rest = ["--mapper", "cat", "--files", file];
            let path = file.split('#').next().expect("a path");
            run(&mut streaming(&folder, cluster, "out", &rest)).failed(
                2,
                &[&format!(
                    "side file {path} is not a regular file; name a regular file"
                )],
            );
        }
    }
}

#[test]
fn side_file_over_limit_is_refused() {
    let folder = Folder::new();
    folder.write("in", "a\n");
    folder.write("side", "0123456789\n");
    let cluster = OwnCluster::start(&folder, 1, "fifo", "");
    let rest = |max: &'static str| ["--mapper", "cat side", "--files", "side", "--conf", max];
    run(&mut streaming(
        &folder,
        Some(&cluster),
        "out",
        &rest("side-file-max=10"),
    ))
    .failed(
        2,
        &["side: it has more than 10 bytes; allow more with --conf side-file-max=SIZE"],
    );
    run(&mut streaming(
        &folder,
        Some(&cluster),
        "out",
        &rest("side-file-max=11"),
    ))
    .succeeded();
    assert_eq!(said(&folder, "out"), "0123456789\n");
}

/// Submits a job with a side file of this size.
fn submission(folder: &Folder, cluster: &OwnCluster, bytes: u64) -> Child {
    folder.write("in", "a\n");
    let file = fs::File::create(folder.path("zeros")).expect("a file");
    file.set_len(bytes).expect("a file of that length");
    let rest = ["--mapper", "cat", "--files", "zeros"];
    let mut command = streaming(folder, Some(cluster), "out", &rest);
    command
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .expect("nap streaming")
}

fn is_reading(child: &Child, file: &Path) -> bool {
    let open = fs::read_dir(format!("/proc/{}/fd", child.id()))
        .into_iter()
        .flatten()
        .flatten();
    open.filter_map(|entry| fs::read_link(entry.path()).ok())
        .any(|path| path == file)
}

fn assert_not_submitted(child: Child, status: i32) {
    let ended = child.wait_with_output().expect("it ends");
    let stderr = String::from_utf8_lossy(&ended.stderr);
    assert_eq!(ended.status.code(), Some(status), "{stderr}");
    assert!(stderr.contains("the job was not submitted"), "{stderr}");
}

#[test]
fn signal_interrupts_side_file_reading() {
    let folder = Folder::new();
    let cluster = OwnCluster::start(&folder, 1, "fifo", "");
    for (signal, status) in [(Signal::TERM, 143), (Signal::INT, 130)] {
        let child = submission(&folder, &cluster, 4 << 30);
        let file = fs::canonicalize(folder.path("zeros")).expect("the file");
        wait_until("the file is read", || is_reading(&child, &file));
        kill_process(Pid::from_child(&child), signal).expect("it is there");
        assert_not_submitted(child, status);
    }
}

/// Returns partly received blobs.
fn unfinished(directory: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            found.extend(unfinished(&path));
        } else if path
            .extension()
            .is_some_and(|extension| extension == "unfinished")
        {
            found.push(path);
        }
    }
    found
}

#[test]
fn signal_interrupts_side_file_upload() {
    let folder = Folder::new();
    let cluster = OwnCluster::start(&folder, 1, "fifo", "");
    let child = submission(&folder, &cluster, 256 << 20);
    wait_until("something is sent", || {
        !unfinished(cluster.directory()).is_empty()
    });
    let coordinator = cluster.coordinator();
    assert!(coordinator.signal(Signal::STOP));
    kill_process(Pid::from_child(&child), Signal::TERM).expect("it is there");
    assert_not_submitted(child, 143);
    assert!(coordinator.signal(Signal::CONT));
    let jobs = cluster.json(&["job", "list"]);
    assert_eq!(jobs.as_array().map(Vec::len), Some(0), "{jobs}");
}
