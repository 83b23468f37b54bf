//! `nap hadoop fs`: files of the folder that stands for `hdfs:///`.
//!
//! Owns the commands, what they print and their exit statuses, as programs expect them of Hadoop. Does not
//! own which file a path means (`root`).

use std::fs::{self, File, Metadata};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use jiff::Timestamp;

use super::root::HadoopRoot;
use super::{FAILED, refuse};

/// Each command, and the flags that it knows.
const COMMANDS: [(&str, &[&str]); 13] = [
    ("-mkdir", &["-p"]),
    ("-put", &["-f"]),
    ("-copyFromLocal", &["-f"]),
    ("-ls", &["-R"]),
    ("-lsr", &[]),
    ("-cat", &[]),
    ("-rm", &["-R", "-r", "-f", "-skipTrash"]),
    ("-rmr", &["-skipTrash"]),
    ("-du", &["-s"]),
    ("-test", &["-d", "-e", "-f", "-s", "-z"]),
    ("-touchz", &[]),
    ("-get", &["-f"]),
    ("-copyToLocal", &["-f"]),
];

/// Does one command; what was wrong is said for each path, as Hadoop does.
pub(super) fn run(root: &HadoopRoot, arguments: &[String]) -> ExitCode {
    let Some((command, rest)) = arguments.split_first() else {
        return refuse("fs needs a command, such as -ls; see: nap hadoop --help");
    };
    let Some((_, known)) = COMMANDS.iter().find(|(name, _)| name == command) else {
        return refuse(&format!("fs {command} is not known; see: nap hadoop --help"));
    };
    let count = rest.iter().take_while(|word| word.starts_with('-') && word.len() > 1).count();
    let (flags, paths) = rest.split_at(count);
    if let Some(flag) = flags.iter().find(|flag| !known.contains(&flag.as_str())) {
        return refuse(&format!("fs {command} {flag} is not known; see: nap hadoop --help"));
    }
    if paths.is_empty() {
        return refuse(&format!("fs {command} needs a path"));
    }
    let verb = &command[1..];
    let files = Files { root, verb, flags };
    let mut failed = false;
    for outcome in files.each(paths) {
        match outcome {
            Ok(true) => {}
            Ok(false) => failed = true,
            Err(error) => {
                failed = true;
                eprintln!("{verb}: {error}");
            }
        }
    }
    if failed { ExitCode::from(FAILED) } else { ExitCode::SUCCESS }
}

struct Files<'a> {
    root: &'a HadoopRoot,
    verb: &'a str,
    flags: &'a [String],
}

/// Whether it is so, for a test; `true` for what was done.
type Outcome = Result<bool, String>;

impl Files<'_> {
    fn has(&self, flag: &str) -> bool {
        self.flags.iter().any(|given| given == flag)
    }

    fn each(&self, paths: &[String]) -> Vec<Outcome> {
        let copied = |inward| match paths.split_last() {
            Some((to, from)) if !from.is_empty() => {
                from.iter().map(|from| self.copy(inward, from, to)).collect()
            }
            _ => vec![Err("a file to copy and a place for it are needed".to_owned())],
        };
        match self.verb {
            "put" | "copyFromLocal" => copied(true),
            "get" | "copyToLocal" => copied(false),
            _ => paths.iter().map(|path| self.one(path)).collect(),
        }
    }

    fn one(&self, path: &str) -> Outcome {
        match self.verb {
            "mkdir" => self.make(path),
            "touchz" => self.touch(path),
            "test" => self.test(path),
            "rm" | "rmr" => self.remove(path),
            verb => {
                for file in self.there(path)? {
                    let shown = |error| wrong(&self.root.shown(&file), &error);
                    match verb {
                        "cat" => print(&file).map_err(shown)?,
                        "du" => self.sizes(&file).map_err(shown)?,
                        _ => self.list(&file).map_err(shown)?,
                    }
                }
                Ok(true)
            }
        }
    }

    /// The files that a path or a pattern means, of which there has to be one.
    fn there(&self, path: &str) -> Result<Vec<PathBuf>, String> {
        let found = self.root.matching(path)?;
        if found.is_empty() { Err(missing(path)) } else { Ok(found) }
    }

    fn make(&self, path: &str) -> Outcome {
        let file = self.root.file(path)?;
        let made = if self.has("-p") { fs::create_dir_all(&file) } else { fs::create_dir(&file) };
        made.map(|()| true).map_err(|error| wrong(path, &error))
    }

    fn touch(&self, path: &str) -> Outcome {
        let file = self.root.file(path)?;
        match file.metadata() {
            Ok(found) if found.is_dir() => return Err(format!("`{path}': Is a directory")),
            Ok(found) if found.len() > 0 => return Err(format!("`{path}': Not a zero-length file")),
            _ => {}
        }
        File::create(&file).map(|_| true).map_err(|error| wrong(path, &error))
    }

    fn test(&self, path: &str) -> Outcome {
        let found = self.root.matching(path)?.first().and_then(|file| file.metadata().ok());
        let holds = |found: &Metadata| match self.flags.first().map(String::as_str) {
            Some("-d") => found.is_dir(),
            Some("-f") => found.is_file(),
            Some("-s") => found.len() > 0,
            Some("-z") => found.len() == 0,
            _ => true,
        };
        Ok(found.is_some_and(|found| holds(&found)))
    }

    fn remove(&self, path: &str) -> Outcome {
        let recursive = self.verb == "rmr" || self.has("-R") || self.has("-r");
        let found = self.root.matching(path)?;
        if found.is_empty() && !self.has("-f") {
            return Err(missing(path));
        }
        for file in found {
            let shown = self.root.shown(&file);
            if self.root.is_inside(&file) {
                return Err(format!("`{shown}': the folder that stands for hdfs:/// stays"));
            }
            let is_folder = file.symlink_metadata().is_ok_and(|found| found.is_dir());
            if is_folder && !recursive {
                return Err(format!("`{shown}': Is a directory"));
            }
            let removed = if is_folder { fs::remove_dir_all(&file) } else { fs::remove_file(&file) };
            removed.map_err(|error| wrong(&shown, &error))?;
        }
        Ok(true)
    }

    /// Into the file system or out of it; into a folder, under the name that it has.
    fn copy(&self, inward: bool, from: &str, to: &str) -> Outcome {
        let (sources, place) = match inward {
            true => (vec![self.root.local_file(from)?], self.root.file(to)?),
            false => (self.there(from)?, self.root.local_file(to)?),
        };
        for source in sources {
            let target = match source.file_name() {
                Some(name) if place.is_dir() => place.join(name),
                _ => place.clone(),
            };
            if source.symlink_metadata().is_err() {
                return Err(missing(from));
            }
            if target.exists() && !self.has("-f") {
                return Err(format!(
                    "`{}': File exists",
                    if inward { self.root.shown(&target) } else { to.to_owned() }
                ));
            }
            copy_all(&source, &target).map_err(|error| wrong(to, &error))?;
        }
        Ok(true)
    }

    fn list(&self, file: &Path) -> io::Result<()> {
        let mut out = io::stdout().lock();
        if !file.is_dir() {
            return writeln!(out, "{}", self.line(file)?);
        }
        let recursive = self.verb == "lsr" || self.has("-R");
        let inside = sorted(file)?;
        if !recursive && !inside.is_empty() {
            writeln!(out, "Found {} items", inside.len())?;
        }
        let mut left: Vec<PathBuf> = inside.into_iter().rev().collect();
        while let Some(next) = left.pop() {
            writeln!(out, "{}", self.line(&next)?)?;
            if recursive && next.is_dir() {
                left.extend(sorted(&next)?.into_iter().rev());
            }
        }
        Ok(())
    }

    /// As Hadoop lists a file: permissions, copies, owner, group, bytes, time, path.
    fn line(&self, file: &Path) -> io::Result<String> {
        let found = file.metadata()?;
        let (kind, copies) = if found.is_dir() { ('d', "-") } else { ('-', "1") };
        let bits = found.permissions().mode();
        let permissions: String = (0..9)
            .map(|place| if bits >> (8 - place) & 1 == 1 { ['r', 'w', 'x'][place % 3] } else { '-' })
            .collect();
        let time = Timestamp::try_from(found.modified()?).map_err(io::Error::other)?;
        let bytes = if found.is_dir() { 0 } else { found.len() };
        Ok(format!(
            "{kind}{permissions} {copies:>3} {} {} {bytes:>10} {} {}",
            found.uid(),
            found.gid(),
            time.strftime("%Y-%m-%d %H:%M"),
            self.root.shown(file)
        ))
    }

    fn sizes(&self, file: &Path) -> io::Result<()> {
        let each = if file.is_dir() && !self.has("-s") { sorted(file)? } else { vec![file.to_owned()] };
        let mut out = io::stdout().lock();
        for file in each {
            let bytes = bytes_in(&file)?;
            writeln!(out, "{bytes}  {bytes}  {}", self.root.shown(&file))?;
        }
        Ok(())
    }
}

fn missing(path: &str) -> String {
    format!("`{path}': No such file or directory")
}

/// In the words of Hadoop, which programs look for.
fn wrong(path: &str, error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound => missing(path),
        io::ErrorKind::AlreadyExists => format!("`{path}': File exists"),
        _ => format!("`{path}': {error}"),
    }
}

fn print(file: &Path) -> io::Result<()> {
    let mut out = io::stdout().lock();
    io::copy(&mut File::open(file)?, &mut out)?;
    out.flush()
}

fn sorted(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let mut inside = fs::read_dir(folder)?.map(|entry| Ok(entry?.path())).collect::<io::Result<Vec<_>>>()?;
    inside.sort_unstable();
    Ok(inside)
}

fn bytes_in(file: &Path) -> io::Result<u64> {
    if file.is_dir() {
        return sorted(file)?.iter().map(|inside| bytes_in(inside)).sum();
    }
    Ok(file.metadata()?.len())
}

fn copy_all(from: &Path, to: &Path) -> io::Result<()> {
    if !from.is_dir() {
        return fs::copy(from, to).map(drop);
    }
    fs::create_dir_all(to)?;
    for inside in sorted(from)? {
        if let Some(name) = inside.file_name() {
            copy_all(&inside, &to.join(name))?;
        }
    }
    Ok(())
}
