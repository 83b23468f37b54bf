//! `nap hadoop fs`: commands on files, with the output and exit statuses that programs expect of Hadoop.

use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use flate2::bufread::MultiGzDecoder;
use jiff::Timestamp;
use napreduce_protocol::printing::{print, print_error, printed};

use super::root::HadoopRoot;
use super::{FAILED, refuse};

/// Each command and its flags.
const COMMANDS: [(&str, &[&str]); 28] = [
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
    ("-moveFromLocal", &["-f"]),
    ("-appendToFile", &[]),
    ("-text", &[]),
    ("-head", &[]),
    ("-tail", &[]),
    ("-mv", &[]),
    ("-cp", &["-f"]),
    ("-getmerge", &["-nl", "-skip-empty-file"]),
    ("-count", &[]),
    ("-rmdir", &[]),
    ("-chmod", &["-R"]),
    ("-chown", &["-R"]),
    ("-chgrp", &["-R"]),
    ("-setrep", &["-R", "-w"]),
    ("-expunge", &[]),
];

/// Commands for properties that local files do not have.
const WITHOUT_EFFECT: [&str; 4] = ["-chown", "-chgrp", "-setrep", "-expunge"];

/// Bytes that -head and -tail print, as Hadoop.
const END_BYTES: u64 = 1024;

/// The mark of a complete output. It is empty in Hadoop, so it is skipped when several files are printed.
const MARK: &str = "_SUCCESS";

/// Runs one command; prints an error for each path that fails, as Hadoop does.
pub(super) fn run(root: &HadoopRoot, arguments: &[String]) -> ExitCode {
    let Some((command, rest)) = arguments.split_first() else {
        return refuse("fs: expected a command, such as -ls; see: nap hadoop --help");
    };
    let Some((_, known)) = COMMANDS.iter().find(|(name, _)| name == command) else {
        return refuse(&format!(
            "fs {command}: not supported; see: nap hadoop --help"
        ));
    };
    let count = rest
        .iter()
        .take_while(|word| word.starts_with('-') && word.len() > 1)
        .count();
    let (flags, paths) = rest.split_at(count);
    if let Some(flag) = flags.iter().find(|flag| !known.contains(&flag.as_str())) {
        return refuse(&format!(
            "fs {command} {flag}: not supported; see: nap hadoop --help"
        ));
    }
    if WITHOUT_EFFECT.contains(&command.as_str()) {
        print_error(format_args!("nap hadoop: fs {command} has no effect here"));
        return ExitCode::SUCCESS;
    }
    if paths.is_empty() {
        return refuse(&format!("fs {command}: expected a path"));
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
                print_error(format_args!("{verb}: {error}"));
            }
        }
    }
    if failed {
        ExitCode::from(FAILED)
    } else {
        ExitCode::SUCCESS
    }
}

struct Files<'a> {
    root: &'a HadoopRoot,
    verb: &'a str,
    flags: &'a [String],
}

/// The result of -test; `true` for other commands.
type Outcome = Result<bool, String>;

impl Files<'_> {
    fn has(&self, flag: &str) -> bool {
        self.flags.iter().any(|given| given == flag)
    }

    fn each(&self, paths: &[String]) -> Vec<Outcome> {
        match self.verb {
            "put" | "copyFromLocal" | "moveFromLocal" | "get" | "copyToLocal" | "mv" | "cp" => {
                match paths.split_last() {
                    Some((to, from)) if !from.is_empty() => {
                        from.iter().map(|from| self.transfer(from, to)).collect()
                    }
                    _ => vec![Err("expected a source and a destination".to_owned())],
                }
            }
            "getmerge" => vec![self.merge(paths)],
            "appendToFile" => vec![self.append(paths)],
            "chmod" => vec![self.set_mode(paths)],
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
                let files = self.existing(path)?;
                let is_printed = |file: &PathBuf| path.ends_with(MARK) || !is_mark(file);
                for file in files
                    .into_iter()
                    .filter(|file| !["cat", "text"].contains(&verb) || is_printed(file))
                {
                    let shown = |error| wrong(&self.root.shown(&file), &error);
                    match verb {
                        "cat" => {
                            print_all(&mut File::open(&file).map_err(shown)?).map_err(shown)?
                        }
                        "text" => print_all(&mut as_text(&file).map_err(shown)?).map_err(shown)?,
                        "head" => print_all(&mut File::open(&file).map_err(shown)?.take(END_BYTES))
                            .map_err(shown)?,
                        "tail" => print_all(&mut end_of(&file).map_err(shown)?).map_err(shown)?,
                        "count" => self.count(&file).map_err(shown)?,
                        "rmdir" => self.remove_empty(&file)?,
                        "du" => self.sizes(&file).map_err(shown)?,
                        _ => self.list(&file).map_err(shown)?,
                    }
                }
                Ok(true)
            }
        }
    }

    /// Returns the files that match a path or pattern. Fails if there are none.
    fn existing(&self, path: &str) -> Result<Vec<PathBuf>, String> {
        let found = self.root.matching(path)?;
        if found.is_empty() {
            Err(missing(path))
        } else {
            Ok(found)
        }
    }

    fn make(&self, path: &str) -> Outcome {
        let file = self.root.file(path)?;
        let made = if self.has("-p") {
            fs::create_dir_all(&file)
        } else {
            fs::create_dir(&file)
        };
        made.map(|()| true).map_err(|error| wrong(path, &error))
    }

    fn touch(&self, path: &str) -> Outcome {
        let file = self.root.file(path)?;
        match file.metadata() {
            Ok(found) if found.is_dir() => return Err(format!("`{path}': Is a directory")),
            Ok(found) if found.len() > 0 => {
                return Err(format!("`{path}': Not a zero-length file"));
            }
            _ => {}
        }
        File::create(&file)
            .map(|_| true)
            .map_err(|error| wrong(path, &error))
    }

    fn test(&self, path: &str) -> Outcome {
        let found = self
            .root
            .matching(path)?
            .first()
            .and_then(|file| file.metadata().ok());
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
                return Err(format!("`{shown}': cannot remove the root of hdfs:///"));
            }
            if is_folder(&file) && !recursive {
                return Err(format!("`{shown}': Is a directory"));
            }
            remove(&file).map_err(|error| wrong(&shown, &error))?;
        }
        Ok(true)
    }

    fn remove_empty(&self, file: &Path) -> Result<(), String> {
        let shown = self.root.shown(file);
        if self.root.is_inside(file) {
            Err(format!("`{shown}': cannot remove the root of hdfs:///"))
        } else {
            fs::remove_dir(file).map_err(|error| wrong(&shown, &error))
        }
    }

    /// Copies or moves into, out of or within the file system.
    fn transfer(&self, from: &str, to: &str) -> Outcome {
        let place = match self.verb {
            "get" | "copyToLocal" => self.root.local_file(to)?,
            _ => self.root.file(to)?,
        };
        let sources = match self.verb {
            "put" if from == "-" => return self.take_standard_input(&place, to),
            "put" | "copyFromLocal" | "moveFromLocal" => vec![self.root.local_file(from)?],
            _ => self.existing(from)?,
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
                let is_here = ["get", "copyToLocal"].contains(&self.verb);
                let shown = if is_here {
                    to.to_owned()
                } else {
                    self.root.shown(&target)
                };
                return Err(format!("`{shown}': File exists"));
            }
            self.refuse_own_place(from, &source, &target)?;
            let done = match self.verb {
                "mv" => fs::rename(&source, &target),
                "moveFromLocal" => copy_all(&source, &target).and_then(|()| remove(&source)),
                _ => copy_all(&source, &target),
            };
            done.map_err(|error| wrong(to, &error))?;
        }
        Ok(true)
    }

    /// Fails if a file would be copied onto itself, or a directory into itself.
    fn refuse_own_place(&self, from: &str, source: &Path, target: &Path) -> Result<(), String> {
        let real = |path: &Path| match path.canonicalize() {
            Ok(real) => real,
            Err(_) => {
                let parent = path.parent().and_then(|parent| parent.canonicalize().ok());
                parent
                    .zip(path.file_name())
                    .map_or(path.to_owned(), |(parent, name)| parent.join(name))
            }
        };
        let number = |path: &Path| path.metadata().ok().map(|found| (found.dev(), found.ino()));
        let is_one = number(source).is_some_and(|own| number(target) == Some(own));
        let moves_all = self.verb == "mv" && self.root.is_inside(source);
        if is_one || moves_all || real(target).starts_with(real(source)) {
            Err(format!("`{from}': is the destination or contains it"))
        } else {
            Ok(())
        }
    }

    fn take_standard_input(&self, place: &Path, to: &str) -> Outcome {
        let mut options = OpenOptions::new();
        match (self.verb, self.has("-f")) {
            ("appendToFile", _) => options.append(true).create(true),
            (_, true) => options.write(true).create(true).truncate(true),
            (_, false) => options.write(true).create_new(true),
        };
        let taken = options
            .open(place)
            .and_then(|mut file| io::copy(&mut io::stdin().lock(), &mut file));
        taken.map(|_| true).map_err(|error| wrong(to, &error))
    }

    /// Concatenates the files of directories into a local file.
    fn merge(&self, paths: &[String]) -> Outcome {
        let Some((to, from)) = paths.split_last().filter(|(_, from)| !from.is_empty()) else {
            return Err("expected a directory and a local file".to_owned());
        };
        let mut sources = Vec::new();
        for from in from {
            for found in self.existing(from)? {
                let inside = if found.is_dir() {
                    sorted(&found).map_err(|error| wrong(from, &error))?
                } else {
                    vec![found]
                };
                sources.extend(
                    inside
                        .into_iter()
                        .filter(|file| file.is_file() && !is_mark(file)),
                );
            }
        }
        let target = self.root.local_file(to)?;
        for source in &sources {
            self.refuse_own_place(to, source, &target)?;
        }
        let merged = File::create(&target).and_then(|mut out| {
            for source in &sources {
                io::copy(&mut File::open(source)?, &mut out)?;
                if self.has("-nl") {
                    out.write_all(b"\n")?;
                }
            }
            Ok(true)
        });
        merged.map_err(|error| wrong(to, &error))
    }

    /// Appends local files to one in the file system.
    fn append(&self, paths: &[String]) -> Outcome {
        let Some((to, from)) = paths.split_last().filter(|(_, from)| !from.is_empty()) else {
            return Err("expected a source and a destination".to_owned());
        };
        let target = self.root.file(to)?;
        for from in from {
            if from == "-" {
                self.take_standard_input(&target, to)?;
                continue;
            }
            let source = self.root.local_file(from)?;
            self.refuse_own_place(from, &source, &target)?;
            let mut read = File::open(&source).map_err(|error| wrong(from, &error))?;
            let end = OpenOptions::new().append(true).create(true).open(&target);
            end.and_then(|mut end| io::copy(&mut read, &mut end))
                .map_err(|error| wrong(to, &error))?;
        }
        Ok(true)
    }

    /// Runs `chmod`, which accepts the same modes.
    fn set_mode(&self, paths: &[String]) -> Outcome {
        let Some((mode, paths)) = paths.split_first().filter(|(_, paths)| !paths.is_empty()) else {
            return Err("expected a mode and a path".to_owned());
        };
        let mut chmod = Command::new("chmod");
        chmod.args(self.flags).arg("--").arg(mode);
        for path in paths {
            chmod.args(self.existing(path)?);
        }
        chmod
            .status()
            .map(|status| status.success())
            .map_err(|error| format!("cannot run chmod: {error}"))
    }

    fn count(&self, file: &Path) -> io::Result<()> {
        let mut folders = 0_u64;
        let mut files = 0_u64;
        let mut bytes = 0_u64;
        let mut left = vec![file.to_owned()];
        while let Some(next) = left.pop() {
            let found = next.metadata()?;
            if found.is_dir() {
                folders += 1;
                left.extend(sorted(&next)?);
            } else {
                files += 1;
                bytes += found.len();
            }
        }
        print(format_args!(
            "{folders:>12} {files:>12} {bytes:>18} {}\n",
            self.root.shown(file)
        ));
        Ok(())
    }

    fn list(&self, file: &Path) -> io::Result<()> {
        if !file.is_dir() {
            print(format_args!("{}\n", self.line(file)?));
            return Ok(());
        }
        let recursive = self.verb == "lsr" || self.has("-R");
        let inside = sorted(file)?;
        if !recursive && !inside.is_empty() {
            print(format_args!("Found {} items\n", inside.len()));
        }
        let mut left: Vec<PathBuf> = inside.into_iter().rev().collect();
        while let Some(next) = left.pop() {
            print(format_args!("{}\n", self.line(&next)?));
            if recursive && next.is_dir() {
                left.extend(sorted(&next)?.into_iter().rev());
            }
        }
        Ok(())
    }

    /// Formats a file as Hadoop: permissions, replicas, owner, group, bytes, time, path.
    fn line(&self, file: &Path) -> io::Result<String> {
        let found = file.metadata()?;
        let (kind, copies) = if found.is_dir() {
            ('d', "-")
        } else {
            ('-', "1")
        };
        let bits = found.permissions().mode();
        let permissions: String = (0..9)
            .map(|place| {
                if bits >> (8 - place) & 1 == 1 {
                    ['r', 'w', 'x'][place % 3]
                } else {
                    '-'
                }
            })
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
        let each = if file.is_dir() && !self.has("-s") {
            sorted(file)?
        } else {
            vec![file.to_owned()]
        };
        for file in each {
            let bytes = bytes_in(&file)?;
            print(format_args!(
                "{bytes}  {bytes}  {}\n",
                self.root.shown(&file)
            ));
        }
        Ok(())
    }
}

fn missing(path: &str) -> String {
    format!("`{path}': No such file or directory")
}

/// Formats an error in the words of Hadoop, which programs look for.
fn wrong(path: &str, error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound => missing(path),
        io::ErrorKind::AlreadyExists => format!("`{path}': File exists"),
        _ => format!("`{path}': {error}"),
    }
}

fn is_mark(file: &Path) -> bool {
    file.file_name().is_some_and(|name| name == MARK)
}

fn is_folder(file: &Path) -> bool {
    file.symlink_metadata().is_ok_and(|found| found.is_dir())
}

fn remove(file: &Path) -> io::Result<()> {
    if is_folder(file) {
        fs::remove_dir_all(file)
    } else {
        fs::remove_file(file)
    }
}

fn print_all(from: &mut impl Read) -> io::Result<()> {
    let mut piece = vec![0; 64 << 10];
    loop {
        match from.read(&mut piece)? {
            0 => return Ok(()),
            count => printed(io::stdout().lock().write_all(&piece[..count])),
        }
    }
}

/// Opens a text file, decompressing gzip.
fn as_text(file: &Path) -> io::Result<Box<dyn Read>> {
    let mut read = BufReader::new(File::open(file)?);
    let begin = read.fill_buf()?;
    let other = [&b"SEQ"[..], b"BZh", b"\x28\xB5\x2F\xFD", b"Obj\x01"]
        .iter()
        .any(|magic| begin.starts_with(magic));
    match begin {
        [0x1F, 0x8B, ..] => Ok(Box::new(MultiGzDecoder::new(read))),
        _ if other => Err(io::Error::other(
            "not a text file; -text only supports gzip",
        )),
        _ => Ok(Box::new(read)),
    }
}

fn end_of(file: &Path) -> io::Result<File> {
    let mut read = File::open(file)?;
    let length = read.metadata()?.len();
    read.seek(SeekFrom::Start(length.saturating_sub(END_BYTES)))?;
    Ok(read)
}

fn sorted(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let mut inside = fs::read_dir(folder)?
        .map(|entry| Ok(entry?.path()))
        .collect::<io::Result<Vec<_>>>()?;
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
