//! Automatic side files: if a command begins with a local file, as in `./map.py --fast`, the file is shipped.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Component, Path};

use napreduce_protocol::printing::print_error;

use crate::program::{Driver, Error};

/// Ships the file that a command begins with, unless it is already a side file. Returns the command for
/// tasks, whose working directory contains the side files.
pub(super) fn ship_program(
    driver: &mut Driver<'_>,
    flag: &str,
    command: &str,
) -> Result<String, Error> {
    let Some((path, arguments)) = local_program(command) else {
        return Ok(command.to_owned());
    };
    let refuse = |why: String| Err(Error::Usage(format!("{flag} {command:?}: {why}")));
    let program = Path::new(path);
    let Some(name) = program.file_name().and_then(|name| name.to_str()) else {
        return refuse(format!("{path} is not a file; name a program"));
    };
    let is_shipped = |file: &Path| program == Path::new(".").join(name) || is_same(file, program);
    let file = match driver.side_file(name).filter(|file| is_shipped(file)) {
        Some(file) => file.to_owned(),
        None if program.is_file() => {
            driver.ship_file(program, name)?;
            program.to_owned()
        }
        None => {
            return refuse(format!(
                "file {path} not found; name an existing file or a command in PATH"
            ));
        }
    };
    let is_executable =
        fs::metadata(&file).is_ok_and(|metadata| metadata.permissions().mode() & 0o111 != 0);
    if !is_executable {
        return refuse(format!(
            "{path} is not executable; run chmod +x, or name its interpreter and ship the file: \
             {flag} 'python3 {name}' --files {path}"
        ));
    }
    Ok(format!("./{name}{arguments}"))
}

/// Warns of a local file that a command names but that its tasks will not find.
pub(super) fn warn_of_unshipped_file(driver: &Driver<'_>, flag: &str, command: &str) {
    if driver.is_quiet() {
        return;
    }
    let is_unshipped = |word: &&str| {
        let path = Path::new(word);
        let name = path.strip_prefix(".").unwrap_or(path).to_str();
        let is_shipped = name.is_some_and(|name| driver.side_file(name).is_some());
        word.contains('.') && path.is_relative() && path.is_file() && !is_shipped
    };
    let Some(word) = command.split(|letter| !is_plain(letter)).find(is_unshipped) else {
        return;
    };
    if let Some(name) = Path::new(word).file_name() {
        print_error(format_args!(
            "{flag} {command:?}: tasks run in their own directory and will not find the local file {word}; \
             to use it, ship it with --files {word} and call it {}",
            name.display()
        ));
    }
}

fn is_same(one: &Path, other: &Path) -> bool {
    matches!((fs::canonicalize(one), fs::canonicalize(other)), (Ok(one), Ok(other)) if one == other)
}

/// Splits a command after its first word, if that is a relative path without special characters of the shell.
fn local_program(command: &str) -> Option<(&str, &str)> {
    let (word, arguments) =
        command.split_at(command.find([' ', '\t', '\n']).unwrap_or(command.len()));
    let is_path = word.contains('/') && word.chars().all(is_plain);
    let is_absolute = matches!(
        Path::new(word).components().next(),
        Some(Component::RootDir)
    );
    (is_path && !is_absolute).then_some((word, arguments))
}

fn is_plain(letter: char) -> bool {
    letter.is_alphanumeric() || "_-+.,:@%/".contains(letter)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn command_with_relative_path_names_local_program() {
        for (command, expected) in [
            ("./map.py", Some(("./map.py", ""))),
            (
                "scripts/map.py -n 3 | sort",
                Some(("scripts/map.py", " -n 3 | sort")),
            ),
            ("../map", Some(("../map", ""))),
            ("map.py", None),
            ("python3 ./map.py", None),
            ("/usr/bin/env python3", None),
            ("~/map.py", None),
            ("$HOME/map.py", None),
            ("'./map.py'", None),
            ("./map.py;true", None),
            ("X=./map.py y", None),
            ("", None),
        ] {
            assert_eq!(local_program(command), expected, "{command}");
        }
    }
}
