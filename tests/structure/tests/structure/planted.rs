//! The planted bugs of `tests/planted`: each patch must still apply.

use std::io::ErrorKind;
use std::path::PathBuf;
use std::process::Command;

use super::files;

#[test]
fn planted_bugs_apply() {
    let mut patches: Vec<PathBuf> = std::fs::read_dir(files::top().join("tests/planted"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|ending| ending == "patch"))
        .collect();
    patches.sort();
    assert!(patches.len() >= 30, "only {} patches", patches.len());
    let mut outdated = Vec::new();
    for patch in patches {
        let checked = Command::new("git")
            .args(["apply", "--check"])
            .arg(&patch)
            .current_dir(files::top())
            .output();
        let checked = match checked {
            Ok(checked) => checked,
            Err(error) if error.kind() == ErrorKind::NotFound => {
                eprintln!("skipped: there is no git to check the patches with");
                return;
            }
            Err(error) => panic!("git: {error}"),
        };
        let header = std::fs::read_to_string(&patch).unwrap();
        if !header.starts_with("Bug: ") || !header.contains("\nFound by: ") {
            outdated.push(format!("{}: no header", patch.display()));
        }
        if !checked.status.success() {
            outdated.push(String::from_utf8_lossy(&checked.stderr).into_owned());
        }
    }
    assert!(outdated.is_empty(), "\n{}", outdated.join("\n"));
}
