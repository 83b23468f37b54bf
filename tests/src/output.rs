//! Reads the output directory of a job: part files in order, and the report in `_SUCCESS`.

use std::path::Path;

use serde_json::Value;

/// Returns the part files of an output directory, ordered by name.
pub fn parts(output: &Path) -> Vec<(String, Vec<u8>)> {
    let mut parts: Vec<_> = std::fs::read_dir(output)
        .unwrap_or_else(|error| panic!("{}: {error}", output.display()))
        .map(|entry| entry.expect("a directory entry").path())
        .filter(|path| {
            path.file_name()
                .is_some_and(|name| name.to_string_lossy().starts_with("part-"))
        })
        .map(|path| {
            let name = path
                .file_name()
                .expect("a part file has a name")
                .to_string_lossy()
                .into_owned();
            (name, std::fs::read(&path).expect("a readable part file"))
        })
        .collect();
    parts.sort();
    parts
}

/// Returns all part files, concatenated.
pub fn joined(output: &Path) -> Vec<u8> {
    parts(output)
        .into_iter()
        .flat_map(|(_, bytes)| bytes)
        .collect()
}

/// Sorts lines, each with its newline.
pub fn sorted_lines(bytes: &[u8]) -> Vec<u8> {
    let mut lines: Vec<&[u8]> = bytes.split_inclusive(|byte| *byte == b'\n').collect();
    lines.sort();
    lines.concat()
}

/// Returns the content of `_SUCCESS`.
pub fn report(output: &Path) -> Value {
    let path = output.join("_SUCCESS");
    let bytes = std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    serde_json::from_slice(&bytes).expect("_SUCCESS is JSON")
}

/// Returns a counter in `_SUCCESS`; zero if it is missing.
pub fn counter(output: &Path, name: &str) -> u64 {
    report(output)["counters"][name].as_u64().unwrap_or(0)
}
