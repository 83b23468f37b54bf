//! Completion of names on a real cluster: as the scripts of `nap completions` ask, and in bash.

use std::process::Command;
use std::time::{Duration, Instant};

use napreduce_tests::{Ended, Folder, GatedJob, OwnCluster, program, run, skipped, wait_until};
use rustix::process::Signal;

const QUEUES: &str = "[scheduler.fair.root.pools.production]\nweight = 3\n\
                      [scheduler.fair.root.pools.\"$(reboot)\"]\nweight = 1\n";

/// Asks for the candidates of the last word, as the script of bash or fish does.
fn ask(shell: &str, words: &[&str]) -> Ended {
    let mut command = program("nap");
    command
        .env("NAPREDUCE_COMPLETE", shell)
        .env_remove("NAPREDUCE_DIR")
        .env_remove("NAPREDUCE_CLUSTER");
    // The index is that of the last word; `nap` comes before these.
    command
        .env("_CLAP_IFS", "\n")
        .env("_CLAP_COMPLETE_INDEX", words.len().to_string());
    let ended = run(command.args(["--", "nap"]).args(words));
    assert_eq!(
        (ended.status.code(), ended.stderr.as_str()),
        (Some(0), ""),
        "{words:?}"
    );
    ended
}

/// Returns the candidates that are no options.
fn names(shell: &str, words: &[&str]) -> Vec<String> {
    let candidates = ask(shell, words).stdout;
    candidates
        .lines()
        .filter(|line| !line.starts_with('-'))
        .map(str::to_owned)
        .collect()
}

/// Checks the names that are offered. A coordinator on a busy machine may answer too late at first.
fn assert_names(shell: &str, words: &[&str], expected: &[&str]) {
    let mut found = Vec::new();
    for _ in 0..20 {
        found = names(shell, words);
        if found == expected {
            break;
        }
    }
    assert_eq!(found, expected, "{words:?}");
}

/// Checks that no name is offered, in less than a second when the machine has time.
fn assert_nothing_at_once(words: &[&str]) {
    let took = |_| {
        let began = Instant::now();
        assert_eq!(names("bash", words), [""; 0], "{words:?}");
        began.elapsed()
    };
    let fastest = (0..3).map(took).min().expect("a time");
    assert!(fastest < Duration::from_secs(1), "{words:?}: {fastest:?}");
}

#[test]
fn names_of_the_cluster_on_the_line_are_completed() {
    let folder = Folder::new();
    let cluster = OwnCluster::start(&folder, 1, "fair", QUEUES);
    let directory = cluster.directory().to_str().expect("text");
    folder.write("in", "line\n");
    let ended = cluster.submit(&folder, &["in", "--job", "fatal-in-map", "--output", "out"]);
    cluster.wait(&[&ended]).succeeded();
    let job = GatedJob::submit(&folder, &cluster, "gated", "first", 2, 1);
    job.until("m_0000.1", "running");
    for (line, expected) in [
        // Running jobs come first.
        ("--dir DIR job kill ", &["job_0002", "job_0001"][..]),
        ("--dir DIR job status job_0001 2", &["2"]),
        ("--dir DIR task suspend ", &["job_0002_m_0000"]),
        (
            "--dir DIR task explain job_0002_",
            &["job_0002_m_0000", "job_0002_r_0000"],
        ),
        (
            "--dir DIR task kill job_0002_m_0000.",
            &["job_0002_m_0000.1"],
        ),
        ("--dir DIR job logs last ", &["m_0000.1"]),
        ("--dir DIR worker drain w", &["worker_0001"]),
        // A name with a meaning for the shell is not offered.
        (
            "--dir DIR job set last --queue ",
            &["production", "default"],
        ),
        (
            "--dir DIR job list --queue research,p",
            &["research,production"],
        ),
    ] {
        let words: Vec<&str> = line
            .split(' ')
            .map(|word| if word == "DIR" { directory } else { word })
            .collect();
        assert_names("bash", &words, expected);
    }
    assert!(
        cluster
            .json(&["queue", "list"])
            .to_string()
            .contains("$(reboot)")
    );
    assert_names(
        "fish",
        &["--dir", directory, "job", "kill", "2"],
        &["2\tfirst, running"],
    );

    // A coordinator that does not answer.
    let coordinator = cluster.coordinator();
    assert!(coordinator.signal(Signal::STOP));
    assert_nothing_at_once(&["--dir", directory, "job", "kill", "j"]);
    assert!(coordinator.signal(Signal::CONT));
    job.ends_as_undisturbed();
}

#[test]
fn bash_completes_names_with_the_printed_script() {
    let folder = Folder::new();
    let cluster = OwnCluster::start(&folder, 2, "fifo", "");
    // The function that bash calls for the word, with the words and their index.
    let script = "source <(nap completions bash)
        function=$(complete -p nap | sed 's/.* -F \\([^ ]*\\) .*/\\1/')
        COMP_WORDS=(nap --dir \"$1\" worker \"$2\" \"$3\") COMP_CWORD=5 COMP_TYPE=9
        \"$function\" nap \"$3\" \"$2\"
        printf '%s\\n' \"${COMPREPLY[@]}\"";
    let nap = program("nap");
    let beside = std::path::Path::new(nap.get_program())
        .parent()
        .expect("a folder");
    let path = std::env::var("PATH").expect("a path");
    let complete = |command: &str, word: &str| {
        let mut bash = Command::new("bash");
        bash.env("PATH", format!("{}:{path}", beside.display()))
            .args(["--norc", "--noprofile", "-c", script]);
        bash.arg("bash")
            .arg(cluster.directory())
            .args([command, word]);
        let ended = run(&mut bash).succeeded();
        assert_eq!(ended.stderr, "");
        ended.stdout
    };
    wait_until("both workers", || {
        complete("drain", "worker_") == "worker_0001\nworker_0002\n"
    });
    assert_eq!(complete("drain", "--hand"), "--hand-back\n");
    assert_eq!(complete("lis", "worker_"), "\n");
}

#[test]
fn zsh_completes_names_with_the_script_in_its_fpath() {
    if Command::new("zsh").arg("--version").output().is_err() {
        return skipped("zsh", "zsh is not installed");
    }
    let folder = Folder::new();
    let cluster = OwnCluster::start(&folder, 2, "fifo", "");
    let nap = program("nap");
    let beside = std::path::Path::new(nap.get_program())
        .parent()
        .expect("a folder");
    // As zsh does at the first Tab. Two functions of its completion system are replaced, to print the candidates.
    let script = "path=($1 $path) fpath=($2 $fpath)
        compdef() { }
        _describe() { print -l -- ${(P)@[-1]} }
        nap completions zsh > $2/_nap
        autoload -U _nap
        words=(nap --dir $3 worker drain worker_) CURRENT=6
        _nap";
    let complete = || {
        let mut zsh = Command::new("zsh");
        zsh.args(["-f", "-c", script, "zsh"])
            .arg(beside)
            .arg(folder.root())
            .arg(cluster.directory());
        let ended = run(&mut zsh).succeeded();
        assert_eq!(ended.stderr, "");
        ended.stdout
    };
    let mut found = String::new();
    wait_until("both workers", || {
        found = complete();
        found.lines().count() == 2
    });
    for (line, name) in found.lines().zip(["worker_0001:", "worker_0002:"]) {
        assert!(line.starts_with(name), "{found}");
    }
}

#[test]
fn without_a_coordinator_commands_and_options_are_completed() {
    let folder = Folder::new();
    let directory = folder.path("none");
    let directory = directory.to_str().expect("text");
    for words in [
        &["job", "kill", "j"][..],
        &["task", "kill", ""],
        &["worker", "drain", "w"],
    ] {
        assert_nothing_at_once(&[&["--dir", directory], words].concat());
    }
    assert!(!folder.has("none"), "nothing is created");
    assert_nothing_at_once(&["--coordinator", "127.0.0.1:1", "job", "kill", ""]);
    assert_eq!(names("bash", &["job", "lis"]), ["list"]);
    assert_eq!(ask("bash", &["job", "list", "--sor"]).stdout, "--sort");
    let file = folder.write("input", "");
    let file = file.to_str().expect("text");
    assert_eq!(
        names("bash", &["streaming", "--input", &file[..file.len() - 1]]),
        [file]
    );
}

#[test]
fn variables_of_completion_change_no_command() {
    let listed =
        |variable: &str, value: &str| run(program("nap").env(variable, value).args(["new", "1"]));
    for (variable, value) in [
        ("NAPREDUCE_COMPLETE", ""),
        ("NAPREDUCE_COMPLETE", "bash"),
        ("NAPREDUCE_COMPLETE", "nosuch"),
        ("COMPLETE", "bash"),
    ] {
        listed(variable, value).failed(2, &["1"]);
    }
    let none = run(program("nap").env("NAPREDUCE_COMPLETE", "fish").arg("--")).succeeded();
    assert_eq!((none.stdout.as_str(), none.stderr.as_str()), ("", ""));
}
