//! Assignment of paths to the named inputs of a job: `users=PATH orders=PATH`.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// A path and the name of its input, if given.
pub(super) type NamedPath = (Option<String>, PathBuf);

/// Returns the paths of each input, in the order of `names`: `typed` paths have the form `NAME=PATH` unless the
/// input has no name, `given` ones come with their names.
pub(super) fn by_input(
    names: &[Option<String>],
    typed: &[PathBuf],
    given: &[NamedPath],
) -> Result<Vec<Vec<PathBuf>>, String> {
    let mut paths = vec![Vec::new(); names.len()];
    for path in typed {
        let (number, path) = resolve(names, path)?;
        paths[number].push(path);
    }
    for (name, path) in given {
        let number = names.iter().position(|known| known == name);
        let number = number.ok_or_else(|| unknown(names, name.as_deref().unwrap_or_default()))?;
        paths[number].push(path.clone());
    }
    match paths.iter().zip(names).find(|(paths, _)| paths.is_empty()) {
        Some((_, Some(name))) => Err(format!("input {name} has no path; pass {name}=PATH")),
        Some((_, None)) => Err("the job has no input; pass the path of a file".to_owned()),
        None => Ok(paths),
    }
}

/// Returns the index of a typed path's input, and the path without the name.
fn resolve(names: &[Option<String>], typed: &Path) -> Result<(usize, PathBuf), String> {
    let bytes = typed.as_os_str().as_bytes();
    let equals = bytes.iter().position(|byte| *byte == b'=');
    let split = equals.map(|at| (&bytes[..at], Path::new(OsStr::from_bytes(&bytes[at + 1..]))));
    let plain = names.iter().position(Option::is_none);
    let named = split.and_then(|(name, path)| {
        let is_it = |known: &Option<String>| {
            known
                .as_deref()
                .is_some_and(|known| known.as_bytes() == name)
        };
        Some((names.iter().position(is_it)?, path))
    });
    match (named, plain, split) {
        (Some((number, path)), _, _) if path.as_os_str().is_empty() => {
            let name = names[number].as_deref().unwrap_or_default();
            Err(format!("input {name} has an empty path; pass {name}=PATH"))
        }
        (Some((number, path)), _, _) => Ok((number, path.to_owned())),
        (None, Some(number), _) => Ok((number, typed.to_owned())),
        (None, None, Some((name, _))) => Err(unknown(names, &String::from_utf8_lossy(name))),
        (None, None, None) => Err(format!(
            "{} has no name; {}",
            typed.display(),
            forms(names).replace("PATH", &typed.display().to_string())
        )),
    }
}

fn unknown(names: &[Option<String>], name: &str) -> String {
    format!("the job has no input {name:?}; {}", forms(names))
}

/// `pass users=PATH or orders=PATH`.
fn forms(names: &[Option<String>]) -> String {
    let forms: Vec<String> = names
        .iter()
        .flatten()
        .map(|name| format!("{name}=PATH"))
        .collect();
    if forms.is_empty() {
        "its inputs have no names; pass PATH alone".to_owned()
    } else {
        format!("pass {}", forms.join(" or "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paths(names: &[&str], typed: &[&str]) -> Result<Vec<Vec<PathBuf>>, String> {
        let names: Vec<_> = names
            .iter()
            .map(|name| Some(name.to_string()).filter(|name| !name.is_empty()))
            .collect();
        let typed: Vec<_> = typed.iter().map(PathBuf::from).collect();
        by_input(&names, &typed, &[])
    }

    #[track_caller]
    fn refused(names: &[&str], typed: &[&str], why: &str) {
        assert_eq!(paths(names, typed), Err(why.to_owned()));
    }

    #[test]
    fn named_path_goes_to_its_input() {
        let found = paths(&["users", "orders"], &["orders=b", "users=a", "orders=c=d"]);
        assert_eq!(
            found,
            Ok(vec![vec!["a".into()], vec!["b".into(), "c=d".into()]])
        );
    }

    #[test]
    fn unnamed_input_takes_paths_unchanged() {
        assert_eq!(
            paths(&[""], &["a=b", "=", "c"]),
            Ok(vec![vec!["a=b".into(), "=".into(), "c".into()]])
        );
        let found = paths(&["", "orders"], &["a=b", "orders=c"]);
        assert_eq!(found, Ok(vec![vec!["a=b".into()], vec!["c".into()]]));
    }

    #[test]
    fn invalid_named_path_is_reported() {
        let names = &["users", "orders"];
        refused(
            names,
            &["users=a"],
            "input orders has no path; pass orders=PATH",
        );
        refused(
            names,
            &["users=a", "orders="],
            "input orders has an empty path; pass orders=PATH",
        );
        refused(
            names,
            &["a.csv"],
            "a.csv has no name; pass users=a.csv or orders=a.csv",
        );
        let unknown = "the job has no input \"user\"; pass users=PATH or orders=PATH";
        refused(names, &["user=a", "orders=b"], unknown);
        refused(&[""], &[], "the job has no input; pass the path of a file");
        let given = [(Some("users".to_owned()), PathBuf::from("a"))];
        let plain = by_input(&[None], &[], &given);
        assert_eq!(
            plain,
            Err(
                "the job has no input \"users\"; its inputs have no names; pass PATH alone"
                    .to_owned()
            )
        );
    }
}
