//! A folder in which `nap lab` runs, and shell scripts that replace wordcount and terasort.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use rustix::fs::{CWD, FileType, Mode, mknodat};
use serde_json::Value;
use tempfile::TempDir;

/// Counts words with standard tools.
pub const PLAIN_WORDCOUNT: &str = r#"#!/bin/sh
input=$1; output=$3
mkdir "$output"
find "$input" -type f -exec cat {} + | tr -s ' ' '\n' | LC_ALL=C sort | uniq -c \
  | awk '{ print $2 "\t" $1 }' > "$output/part-r-00000"
echo '{"counters": {"PEAK_ANON_BYTES": 1048576}}' > "$output/_SUCCESS"
"#;

/// Sorts rows with standard tools.
pub const PLAIN_TERASORT: &str = r#"#!/bin/sh
input=$1; output=$3
mkdir "$output"
LC_ALL=C sort -o "$output/part-r-00000" "$input"
echo '{"counters": {"PEAK_ANON_BYTES": 1048576}}' > "$output/_SUCCESS"
"#;

/// Writes its process ID into the pipe `../hanging` and then sleeps until it is killed.
pub const HANGING: &str = r#"#!/bin/sh
echo $$ > "$(dirname "$0")/../hanging"
while true; do sleep 1000; done
"#;

/// The outcome of a run of `nap lab`.
pub struct Ended {
    pub status: i32,
    pub output: String,
    pub errors: String,
}

impl Ended {
    pub fn text(&self) -> String {
        format!("{}{}", self.output, self.errors)
    }
}

/// A folder with an empty `work`, and stand-ins in `bin` if there are any.
pub struct Lab {
    folder: TempDir,
}

impl Lab {
    /// Uses the programs of this build.
    pub fn new() -> Lab {
        let lab = Lab {
            folder: tempfile::tempdir().unwrap(),
        };
        fs::create_dir(lab.path("work")).unwrap();
        lab
    }

    pub fn with(wordcount: &str, terasort: &str) -> Lab {
        let lab = Lab::new();
        fs::create_dir(lab.path("bin")).unwrap();
        mknodat(
            CWD,
            lab.path("hanging"),
            FileType::Fifo,
            Mode::RUSR | Mode::WUSR,
            0,
        )
        .unwrap();
        lab.script("wordcount", wordcount);
        lab.script("terasort", terasort);
        lab
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub fn name(&self, name: &str) -> String {
        self.path(name).to_str().unwrap().to_owned()
    }

    /// Writes an executable script to `bin`.
    pub fn script(&self, name: &str, text: &str) {
        let path = self.path("bin").join(name);
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    }

    /// Returns the command `nap lab` with these arguments. Adds the folders for binaries and work unless they
    /// are given.
    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_nap-lab"));
        command.args(arguments);
        for (flag, folder) in [("--bin-dir", "bin"), ("--work", "work")] {
            if !arguments.contains(&flag) && self.path(folder).exists() {
                command.arg(flag).arg(self.path(folder));
            }
        }
        command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    pub fn run(&self, arguments: &[&str]) -> Ended {
        let output = self.command(arguments).output().unwrap();
        Ended {
            status: output.status.code().unwrap(),
            output: String::from_utf8(output.stdout).unwrap(),
            errors: String::from_utf8(output.stderr).unwrap(),
        }
    }

    /// Returns the lines of a JSON file.
    pub fn rows(&self, file: &str) -> Vec<Value> {
        let text = fs::read_to_string(self.path(file)).unwrap_or_default();
        text.lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    }

    pub fn assert_work_is_empty(&self) {
        assert_eq!(fs::read_dir(self.path("work")).unwrap().count(), 0);
    }
}
