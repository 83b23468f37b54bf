//! Automatic side files: a command such as `./map.py --fast` begins with a local file, which is sent along.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Component, Path};

use napreduce_protocol::printing::print_error;

use crate::program::{Driver, Error};

/// Makes the file that a command begins with a side file, unless it is one; the command as tasks are to run
/// it, in a directory where side files are found by their names.
pub(super) fn take_along(driver: &mut Driver<'_>, flag: &str, command: &str) -> Result<String, Error> {
    let Some((path, arguments)) = own_program(command) else { return Ok(command.to_owned()) };
    let refuse = |why: String| Err(Error::Usage(format!("{flag} {command:?}: {why}")));
    let here = Path::new(path);
    let Some(name) = here.file_name().and_then(|name| name.to_str()) else {
        return refuse(format!("{path} names no file"));
    };
    let is_meant = |file: &Path| here == Path::new(".").join(name) || is_same(file, here);
    let file = match driver.side_file(name).filter(|file| is_meant(file)) {
        Some(file) => file.to_owned(),
        None if here.is_file() => {
            driver.take_along(here, name)?;
            here.to_owned()
        }
        None => {
            return refuse(format!("there is no file {path} here; give a command, or a file to take along"));
        }
    };
    let executable = fs::metadata(&file).is_ok_and(|metadata| metadata.permissions().mode() & 0o111 != 0);
    if !executable {
        return refuse(format!(
            "{path} is not executable; say chmod +x, or name the program that runs it and take the file along: \
             {flag} 'python3 {name}' --files {path}"
        ));
    }
    Ok(format!("./{name}{arguments}"))
}

/// Tells of a file that a command names and that its tasks will not find.
pub(super) fn tell_of_others(driver: &Driver<'_>, flag: &str, command: &str) {
    let is_left = |word: &&str| {
        let path = Path::new(word);
        let name = path.strip_prefix(".").unwrap_or(path).to_str();
        let is_taken = name.is_some_and(|name| driver.side_file(name).is_some());
        word.contains('.') && path.is_relative() && path.is_file() && !is_taken
    };
    let word = command.split(|letter| !is_plain(letter)).find(is_left).filter(|_| !driver.is_quiet());
    if let Some((word, name)) = word.and_then(|word| Some((word, Path::new(word).file_name()?.display()))) {
        print_error(format_args!(
            "{flag} names {word}, a file of this directory, and commands start in one of their own; if it is meant, \
             take it along with --files {word} and call it {name}"
        ));
    }
}

fn is_same(one: &Path, other: &Path) -> bool {
    matches!((fs::canonicalize(one), fs::canonicalize(other)), (Ok(one), Ok(other)) if one == other)
}

/// A first word that a shell takes as it is, and that is a path from here on; and what follows it.
fn own_program(command: &str) -> Option<(&str, &str)> {
    let (word, arguments) = command.split_at(command.find([' ', '\t', '\n']).unwrap_or(command.len()));
    let is_path = word.contains('/') && word.chars().all(is_plain);
    let starts_here = !matches!(Path::new(word).components().next(), Some(Component::RootDir));
    (is_path && starts_here).then_some((word, arguments))
}

fn is_plain(letter: char) -> bool {
    letter.is_alphanumeric() || "_-+.,:@%/".contains(letter)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_that_begins_with_a_path_from_here_begins_with_a_file() {
        for (command, expected) in [
            ("./map.py", Some(("./map.py", ""))),
            ("scripts/map.py -n 3 | sort", Some(("scripts/map.py", " -n 3 | sort"))),
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
            assert_eq!(own_program(command), expected, "{command}");
        }
    }
}
