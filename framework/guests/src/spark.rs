//! Spark: valid masters, the search for `spark-submit`, and the command that runs the driver
//! (`spark_driver.py`) in it.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use napreduce_protocol::JobError;

const DRIVER: &str = include_str!("spark_driver.py");
/// The driver's file name in the engine directory.
const DRIVER_NAME: &str = "napreduce_driver.py";
const SUBMIT: &str = "spark-submit";
const DEPLOY_MODE: &str = "spark.submit.deployMode";
/// Prefixes of masters.
const MASTERS: [&str; 5] = ["local", "spark://", "yarn", "k8s://", "local-cluster["];
/// Prints the directory of the Python module that contains a Spark.
const FIND_MODULE: &str = "import importlib.util as u; s = u.find_spec('pyspark'); print(s.submodule_search_locations[0] if s else '')";

/// A Spark, by its master.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Spark {
    master: String,
    /// The `spark-submit` given on the command line.
    named: Option<PathBuf>,
}

/// An existing `spark-submit`.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Submit {
    path: PathBuf,
    /// For the `spark-submit` of a Python module: its home, and the Python that has the module.
    module: Option<(PathBuf, OsString)>,
}

impl Spark {
    /// Parses a Spark master.
    pub(super) fn of(
        master: &str,
        named: Option<PathBuf>,
        settings: &BTreeMap<String, String>,
    ) -> Result<Spark, String> {
        if master.starts_with("sc://") {
            return Err(format!(
                "--on {master}: Spark Connect has no RDDs, which guests need; name a master, \
                 such as spark://HOST:7077"
            ));
        }
        if !MASTERS.iter().any(|known| is_of(master, known)) {
            return Err(format!(
                "--on {master}: unknown engine; name a master of Spark (local[4], local-cluster[2,1,1024], spark://HOST:7077, \
                 yarn, k8s://URL) or exec:PROGRAM"
            ));
        }
        if settings
            .get(DEPLOY_MODE)
            .is_some_and(|mode| mode != "client")
        {
            return Err(format!(
                "--on-conf {DEPLOY_MODE} must be client: this program commits the parts and needs the driver's events"
            ));
        }
        Ok(Spark {
            master: master.to_owned(),
            named,
        })
    }

    /// Finds a `spark-submit`.
    pub(super) fn submit(&self) -> Result<Submit, String> {
        let plain = |path: PathBuf| Submit { path, module: None };
        if let Some(named) = &self.named {
            return if named.is_file() {
                Ok(plain(named.clone()))
            } else {
                Err(format!(
                    "--on-submit {}: not a file; name a spark-submit",
                    named.display()
                ))
            };
        }
        let variable = |name| std::env::var_os(name).filter(|value| !value.is_empty());
        if let Some(home) = variable("SPARK_HOME") {
            let path = Path::new(&home).join("bin").join(SUBMIT);
            return if path.is_file() {
                Ok(plain(path))
            } else {
                Err(format!(
                    "SPARK_HOME {} has no bin/{SUBMIT}; correct or unset it",
                    Path::new(&home).display()
                ))
            };
        }
        // A `spark-submit` in PATH may belong to a Python module.
        let paths = variable("PATH").unwrap_or_default();
        let in_path = std::env::split_paths(&paths)
            .map(|folder| folder.join(SUBMIT))
            .find(|path| path.is_file());
        let python = variable("PYSPARK_PYTHON").unwrap_or_else(|| "python3".into());
        if let Some(home) = module_home(&python) {
            return Ok(Submit {
                path: home.join("bin").join(SUBMIT),
                module: Some((home, python)),
            });
        }
        in_path.map(plain).ok_or_else(|| {
            format!(
                "Spark not found: no {SUBMIT} in PATH, no SPARK_HOME, and {} has no module pyspark; install it with: \
                 pip install pyspark (it needs Java 17), or name a {SUBMIT} with --on-submit",
                Path::new(&python).display()
            )
        })
    }

    /// Returns the command that runs the driver for an engine directory.
    pub(super) fn command(
        &self,
        submit: &Submit,
        name: &str,
        attempts_max: u32,
        settings: &BTreeMap<String, String>,
        directory: &Path,
    ) -> Result<Command, JobError> {
        let driver = directory.join(DRIVER_NAME);
        fs::write(&driver, DRIVER)
            .map_err(|error| JobError::io(format!("write {}", driver.display()), error))?;
        let mut command = Command::new(&submit.path);
        if let Some((home, python)) = &submit.module {
            command
                .env("SPARK_HOME", home)
                .env("PYSPARK_PYTHON", python)
                .env("PYSPARK_DRIVER_PYTHON", python);
        }
        command
            .arg("--master")
            .arg(with_attempts(&self.master, attempts_max))
            .arg("--name")
            .arg(name);
        // A killed task must also end its guest with the Python process that runs it; Spark would wait two
        // seconds.
        let own = [
            ("spark.task.maxFailures", attempts_max.to_string()),
            ("spark.python.task.killTimeout", "500ms".to_owned()),
            ("spark.ui.showConsoleProgress", "false".to_owned()),
        ];
        let own = own
            .into_iter()
            .filter(|(key, _)| !settings.contains_key(*key));
        for (key, value) in own.chain(
            settings
                .iter()
                .map(|(key, value)| (key.as_str(), value.clone())),
        ) {
            command.arg("--conf").arg(format!("{key}={value}"));
        }
        command.arg(driver).arg(directory);
        Ok(command)
    }
}

/// Returns whether a master has a known form; some forms are whole words.
fn is_of(master: &str, known: &str) -> bool {
    match known {
        "local" => master == known || (master.starts_with("local[") && master.ends_with(']')),
        "yarn" => master == known,
        _ => master.starts_with(known) && master.len() > known.len(),
    }
}

/// Adds the number of attempts to a local master: by default, local Spark does not retry.
fn with_attempts(master: &str, attempts_max: u32) -> String {
    let threads = match master {
        "local" => Some("1"),
        _ => master
            .strip_prefix("local[")
            .and_then(|rest| rest.strip_suffix(']')),
    };
    match threads {
        Some(threads) if !threads.contains(',') => format!("local[{threads},{attempts_max}]"),
        _ => master.to_owned(),
    }
}

/// Returns the Spark inside its Python module, if this Python has one.
fn module_home(python: &OsString) -> Option<PathBuf> {
    let mut command = Command::new(python);
    command
        .arg("-c")
        .arg(FIND_MODULE)
        .stdin(Stdio::null())
        .stderr(Stdio::null());
    let answer = command
        .output()
        .ok()
        .filter(|answer| answer.status.success())?;
    let home = PathBuf::from(String::from_utf8(answer.stdout).ok()?.trim_end());
    home.join("bin").join(SUBMIT).is_file().then_some(home)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(master: &str) -> Result<Spark, String> {
        Spark::of(master, None, &BTreeMap::new())
    }

    #[test]
    fn spark_master_is_recognized_by_form() {
        for master in [
            "local",
            "local[2]",
            "local[*,3]",
            "local-cluster[2,1,1024]",
            "spark://head:7077",
            "yarn",
            "k8s://https://x",
        ] {
            assert!(of(master).is_ok(), "{master}");
        }
        for master in ["", "locale", "local[2", "spark://", "yarns", "Spark"] {
            let error = of(master).expect_err(master);
            assert!(
                error.contains(": unknown engine; name a master of Spark"),
                "{error}"
            );
        }
        assert!(
            of("sc://host")
                .expect_err("no RDDs")
                .contains("has no RDDs")
        );
        let cluster = BTreeMap::from([(DEPLOY_MODE.to_owned(), "cluster".to_owned())]);
        assert!(
            Spark::of("yarn", None, &cluster)
                .expect_err("no client")
                .contains("must be client")
        );
    }

    #[test]
    fn attempts_max_becomes_spark_setting() {
        for (master, expected) in [
            ("local", "local[1,4]"),
            ("local[2]", "local[2,4]"),
            ("local[2,1]", "local[2,1]"),
            ("spark://h:1", "spark://h:1"),
            ("local-cluster[2,1,1024]", "local-cluster[2,1,1024]"),
        ] {
            assert_eq!(with_attempts(master, 4), expected);
        }
    }

    #[test]
    fn missing_spark_submit_is_named() {
        let spark = Spark::of(
            "local",
            Some("/nowhere/spark-submit".into()),
            &BTreeMap::new(),
        )
        .expect("a master");
        assert_eq!(
            spark.submit().expect_err("no file"),
            "--on-submit /nowhere/spark-submit: not a file; name a spark-submit"
        );
    }

    #[test]
    fn explicit_spark_settings_win() {
        let folder = tempfile::tempdir().expect("a folder");
        let settings = BTreeMap::from([("spark.task.maxFailures".to_owned(), "9".to_owned())]);
        let submit = Submit {
            path: "s".into(),
            module: None,
        };
        let spark = of("yarn").expect("a master");
        let command = spark
            .command(&submit, "count", 4, &settings, folder.path())
            .expect("it can be written");
        let words: Vec<_> = command
            .get_args()
            .map(|word| word.to_string_lossy().into_owned())
            .collect();
        assert_eq!(words[..4], ["--master", "yarn", "--name", "count"]);
        let failures: Vec<_> = words
            .iter()
            .filter(|word| word.contains("maxFailures"))
            .collect();
        assert_eq!(failures, ["spark.task.maxFailures=9"]);
        assert!(folder.path().join(DRIVER_NAME).is_file());
    }
}
