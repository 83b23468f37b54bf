//! Reads the case files, checks all cases of a family in parallel, and reports failures.

use std::env;
use std::fs;
use std::num::NonZero;
use std::path::PathBuf;
use std::sync::Mutex;
use std::thread;

use napreduce_engine::Ratio;
use serde_json::Value;

/// A file of cases of one family.
pub struct CaseFile {
    pub path: String,
    pub family: String,
    pub content: Value,
}

/// Returns the files of the directory, sorted by name.
pub fn files() -> Vec<CaseFile> {
    let own = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/oracles");
    let folder = env::var_os("NAPREDUCE_ORACLES").map_or(own, PathBuf::from);
    let entries = fs::read_dir(&folder)
        .unwrap_or_else(|error| panic!("cannot read {}: {error}", folder.display()));
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| {
        path.extension()
            .is_some_and(|extension| extension == "json")
    });
    paths.sort();
    assert!(!paths.is_empty(), "no .json file in {}", folder.display());
    paths.into_iter().map(|path| read(&path)).collect()
}

fn read(path: &PathBuf) -> CaseFile {
    let text = fs::read_to_string(path)
        .unwrap_or_else(|error| panic!("cannot read {}: {error}", path.display()));
    let content: Value = serde_json::from_str(&text)
        .unwrap_or_else(|error| panic!("{} is not valid JSON: {error}", path.display()));
    let family = content["family"]
        .as_str()
        .unwrap_or_else(|| panic!("{} has no family", path.display()));
    CaseFile {
        path: path.display().to_string(),
        family: family.to_owned(),
        content,
    }
}

/// Checks every case of a family in parallel, reports their number, and fails with all errors.
pub fn check(family: &str, case_holds: impl Fn(&Value) -> Result<(), String> + Sync) {
    let mut count = 0;
    let wrong = Mutex::new(Vec::new());
    let processors = thread::available_parallelism().map_or(1, NonZero::get);
    for file in files().into_iter().filter(|file| file.family == family) {
        let cases = file.content["cases"]
            .as_array()
            .unwrap_or_else(|| panic!("{} has no cases", file.path));
        if let Some(said) = file.content["case_count"].as_u64() {
            assert_eq!(
                said,
                cases.len() as u64,
                "{}: the number of cases is wrong",
                file.path
            );
        }
        count += cases.len();
        let left = Mutex::new(cases.iter());
        let next = || left.lock().unwrap().next();
        let check_what_is_left = || {
            while let Some(case) = next() {
                if let Err(why) = case_holds(case) {
                    let id = case["id"].as_str().unwrap_or("a case without id");
                    wrong.lock().unwrap().push(format!("{id}: {why}"));
                }
            }
        };
        thread::scope(|scope| (0..processors).for_each(|_| drop(scope.spawn(check_what_is_left))));
    }
    let mut wrong = wrong.into_inner().unwrap();
    wrong.sort();
    println!("{family}: {count} cases");
    assert!(
        wrong.is_empty(),
        "{family}: {} of {count} cases do not hold:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}

/// Parses an exact number: an integer, a decimal, or a string `p` or `p/q`.
pub fn exact(value: &Value) -> Ratio {
    let text = value
        .as_str()
        .map_or_else(|| value.to_string(), str::to_owned);
    text.parse().unwrap_or_else(|error| panic!("{error}"))
}
