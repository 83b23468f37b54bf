//! Hadoop Streaming: the search for its command and jar, and the entry point of the processes between Hadoop
//! and guests.
//!
//! ```text
//! program --on hadoop  ->  program --napreduce-hadoop jobs  ->  hadoop jar streaming.jar
//!                                                                 ->  program --napreduce-hadoop map|reduce
//! ->  guest
//! ```

mod bridge;
mod jobs;
mod progress;
mod request;
mod typed_bytes;

use std::collections::BTreeMap;
use std::env;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use napreduce_protocol::JobError;
use napreduce_protocol::printing::print_error;

/// The name of the engine.
pub(super) const NAME: &str = "hadoop";
/// The first argument of processes in Hadoop jobs.
const MARKER: &str = "--napreduce-hadoop";
/// The argument after it for the process that runs the jobs.
const JOBS: &str = "jobs";
/// A setting of this program: the path of the jar.
const JAR: &str = "napreduce.streaming.jar";
/// Folders of the jar in distributions, relative to the home or its parent.
const JAR_FOLDERS: [&str; 4] = [
    "share/hadoop/tools/lib",
    "contrib/streaming",
    "tools/lib",
    ".",
];
const SYSTEM_JAR_FOLDERS: [&str; 3] = [
    "/usr/lib/hadoop-mapreduce",
    "/usr/lib/hadoop/tools/lib",
    "/opt/hadoop/share/hadoop/tools/lib",
];

/// How to find a Hadoop.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Hadoop {
    /// The command given on the command line.
    named: Option<PathBuf>,
    /// The jar given in the settings.
    jar: Option<PathBuf>,
}

/// An existing command and jar.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Installed {
    command: PathBuf,
    jar: PathBuf,
}

impl Hadoop {
    pub(super) fn of(named: Option<PathBuf>, settings: &BTreeMap<String, String>) -> Hadoop {
        Hadoop {
            named,
            jar: settings.get(JAR).map(PathBuf::from),
        }
    }

    /// Finds both.
    pub(super) fn find(&self) -> Result<Installed, String> {
        let variable = |name: &str| env::var_os(name).filter(|value| !value.is_empty());
        self.find_by(&variable)
    }

    fn find_by(&self, variable: &dyn Fn(&str) -> Option<OsString>) -> Result<Installed, String> {
        let home = variable("HADOOP_HOME").map(PathBuf::from);
        let command = self.command(home.as_deref(), &variable("PATH").unwrap_or_default())?;
        if let Some(named) = &self.jar {
            return if named.is_file() {
                Ok(Installed {
                    command,
                    jar: named.clone(),
                })
            } else {
                Err(format!(
                    "--on-conf {JAR}={}: not a file; name Hadoop's streaming jar",
                    named.display()
                ))
            };
        }
        // For a command in a folder `bin`, the home is the parent of that.
        let real = fs::canonicalize(&command).unwrap_or_else(|_| command.clone());
        let above = real.parent().and_then(Path::parent).map(Path::to_owned);
        let homes = home
            .into_iter()
            .chain(variable("HADOOP_MAPRED_HOME").map(PathBuf::from))
            .chain(above);
        let below = homes.flat_map(|home| JAR_FOLDERS.map(|folder| home.join(folder)));
        let folders = below.chain(SYSTEM_JAR_FOLDERS.map(PathBuf::from));
        let jar = folders
            .into_iter()
            .find_map(|folder| streaming_jar(&folder));
        jar.map(|jar| Installed { command, jar }).ok_or_else(|| {
            format!(
                "hadoop-streaming*.jar not found in HADOOP_HOME; name it with --on-conf {JAR}=PATH"
            )
        })
    }

    fn command(&self, home: Option<&Path>, path: &OsStr) -> Result<PathBuf, String> {
        if let Some(named) = &self.named {
            return if named.is_file() {
                Ok(named.clone())
            } else {
                Err(format!(
                    "--on-submit {}: not a file; name a hadoop command",
                    named.display()
                ))
            };
        }
        if let Some(home) = home {
            let command = home.join("bin").join(NAME);
            return if command.is_file() {
                Ok(command)
            } else {
                Err(format!(
                    "HADOOP_HOME {} has no bin/{NAME}; correct or unset it",
                    home.display()
                ))
            };
        }
        env::split_paths(path).map(|folder| folder.join(NAME)).find(|path| path.is_file()).ok_or_else(|| {
            "Hadoop not found: no hadoop command in PATH and no HADOOP_HOME; name a command with --on-submit".to_owned()
        })
    }
}

impl Installed {
    /// Returns the command that runs jobs for an engine directory.
    pub(super) fn jobs(&self, directory: &Path) -> Result<Command, JobError> {
        let own = env::current_exe().map_err(|error| JobError::io("find this program", error))?;
        let mut command = Command::new(own);
        command
            .args([MARKER, JOBS])
            .arg(&self.command)
            .arg(&self.jar)
            .arg(directory);
        Ok(command)
    }
}

/// Returns the first jar by name.
fn streaming_jar(folder: &Path) -> Option<PathBuf> {
    let entries = fs::read_dir(folder).ok()?.flatten();
    let named = entries.filter(|entry| {
        let name = entry.file_name().to_string_lossy().into_owned();
        name.starts_with("hadoop-streaming") && name.ends_with(".jar") && !name.contains("sources")
    });
    named.map(|entry| entry.path()).min()
}

/// Returns whether Hadoop, or the program that submits to it, has started this process.
pub(super) fn is_requested() -> bool {
    env::args_os().nth(1).is_some_and(|first| first == MARKER)
}

/// Runs this process in its role.
pub(super) fn main() -> u8 {
    let words: Vec<OsString> = env::args_os().skip(2).collect();
    let status = match &words[..] {
        [jobs, command, jar, directory] if jobs == JOBS => {
            let installed = Installed {
                command: command.into(),
                jar: jar.into(),
            };
            jobs::main(&installed, Path::new(directory))
        }
        [side, shipment] => match bridge::side_of(side) {
            Some(side) => bridge::main(side, shipment),
            None => unknown(),
        },
        _ => unknown(),
    };
    u8::try_from(status).unwrap_or(1)
}

fn unknown() -> i32 {
    print_error(format_args!(
        "{MARKER} is internal to processes that Hadoop starts; run a job with --on {NAME}"
    ));
    2
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(hadoop: &Hadoop, variables: &[(&str, &Path)]) -> Result<Installed, String> {
        hadoop.find_by(&|name| {
            variables
                .iter()
                .find(|(known, _)| *known == name)
                .map(|(_, value)| value.as_os_str().to_owned())
        })
    }

    #[test]
    fn hadoop_home_contains_command_and_jar() {
        let folder = tempfile::tempdir().expect("a folder");
        let home = folder.path();
        let tools = folder.path().join("share/hadoop/tools/lib");
        let unnamed = Hadoop::of(None, &BTreeMap::new());
        assert!(
            found(&unnamed, &[])
                .expect_err("nowhere")
                .starts_with("Hadoop not found: ")
        );
        assert!(
            found(&unnamed, &[("HADOOP_HOME", home)])
                .expect_err("empty")
                .contains("has no bin/hadoop")
        );
        fs::create_dir_all(home.join("bin")).expect("made");
        fs::write(home.join("bin/hadoop"), "").expect("written");
        let error = found(&unnamed, &[("HADOOP_HOME", home)]).expect_err("no jar");
        assert!(
            error.contains("hadoop-streaming*.jar not found") && error.contains(JAR),
            "{error}"
        );
        fs::create_dir_all(&tools).expect("made");
        for name in [
            "hadoop-streaming-3.4.0-sources.jar",
            "hadoop-streaming-3.4.0.jar",
            "hadoop-archives.jar",
        ] {
            fs::write(tools.join(name), "").expect("written");
        }
        let expected = |command: PathBuf| Installed {
            command,
            jar: tools.join("hadoop-streaming-3.4.0.jar"),
        };
        let command = home.join("bin/hadoop");
        assert_eq!(
            found(&unnamed, &[("HADOOP_HOME", home)]),
            Ok(expected(command.clone()))
        );
        // By a link in PATH, its home is where it leads.
        let bin = folder.path().join("links");
        fs::create_dir(&bin).expect("made");
        std::os::unix::fs::symlink(&command, bin.join("hadoop")).expect("linked");
        let by_path = found(&unnamed, &[("PATH", &bin)]).map(|installed| installed.command);
        assert_eq!(by_path, Ok(bin.join("hadoop")));
    }

    #[test]
    fn missing_hadoop_files_are_named() {
        let settings = BTreeMap::from([(JAR.to_owned(), "/nowhere/a.jar".to_owned())]);
        let error =
            found(&Hadoop::of(Some("/bin/true".into()), &settings), &[]).expect_err("no jar");
        assert_eq!(
            error,
            "--on-conf napreduce.streaming.jar=/nowhere/a.jar: not a file; name Hadoop's streaming jar"
        );
        let error = found(&Hadoop::of(Some("/nowhere/hadoop".into()), &settings), &[])
            .expect_err("no command");
        assert_eq!(
            error,
            "--on-submit /nowhere/hadoop: not a file; name a hadoop command"
        );
    }
}
