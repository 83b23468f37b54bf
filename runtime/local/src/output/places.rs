//! Rejects invalid output directories before anything is touched: system directories, the cluster's own
//! directories, job inputs, and unsupported storage systems.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use napreduce_protocol::{InputSplit, JobError, StorageScheme};

/// System directories that cannot be an output; their subdirectories can.
const SYSTEM: [&str; 34] = [
    "/",
    "/bin",
    "/boot",
    "/dev",
    "/dev/shm",
    "/etc",
    "/home",
    "/lib",
    "/lib32",
    "/lib64",
    "/libx32",
    "/media",
    "/mnt",
    "/opt",
    "/proc",
    "/root",
    "/run",
    "/sbin",
    "/srv",
    "/sys",
    "/tmp",
    "/usr",
    "/usr/bin",
    "/usr/lib",
    "/usr/local",
    "/usr/sbin",
    "/usr/share",
    "/var",
    "/var/cache",
    "/var/lib",
    "/var/log",
    "/var/run",
    "/var/spool",
    "/var/tmp",
];
/// System directories whose subdirectories cannot be an output either.
const SYSTEM_WHOLLY: [&str; 12] = [
    "/bin", "/boot", "/dev", "/etc", "/lib", "/lib32", "/lib64", "/libx32", "/proc", "/sbin",
    "/sys", "/usr/bin",
];
/// World-writable exception below such a directory.
const SHARED_MEMORY: &str = "/dev/shm";

/// The directories that an output directory must not equal, contain or lie in.
#[derive(Debug, Clone, Default)]
pub(crate) struct Protected {
    /// Directories of the cluster and of its workers.
    pub(crate) cluster: Vec<PathBuf>,
    /// Inputs of the job.
    pub(crate) inputs: Vec<PathBuf>,
}

/// Returns the files that a job reads, as named in its splits.
pub(crate) fn files_read(splits: &[InputSplit]) -> Vec<PathBuf> {
    let parts = splits.iter().flat_map(|split| &split.parts);
    let mut inputs: Vec<PathBuf> = parts.map(|part| part.path.clone()).collect();
    inputs.dedup();
    inputs
}

/// Rejects an output directory that contains a file in `reads`, however its path is spelled. Blocking.
///
/// # Errors
/// Returns [`JobError::OutputRefused`], which names the file.
pub fn check_reads(output: &Path, reads: Vec<PathBuf>) -> Result<(), JobError> {
    check_place(
        output,
        &Protected {
            cluster: Vec::new(),
            inputs: reads,
        },
    )
}

/// Rejects an output directory that is not allowed.
///
/// # Errors
/// Returns [`JobError::OutputRefused`] with the reason.
pub(crate) fn check_place(output: &Path, protected: &Protected) -> Result<(), JobError> {
    let refuse = |why: String| {
        Err(JobError::OutputRefused {
            path: output.display().to_string(),
            why,
        })
    };
    if let Some((_, rest)) = StorageScheme::split(output) {
        return check_in_store(rest, &protected.inputs).or_else(refuse);
    }
    if let Some(scheme) = scheme(output) {
        return refuse(format!(
            "{scheme}:// is not supported; use a directory on this machine or a path in an object store"
        ));
    }
    let place = resolved(output);
    if SYSTEM.iter().any(|system| place == Path::new(system)) {
        return refuse("it is a system directory; choose a directory of your own".to_owned());
    }
    if is_home(&place) {
        return refuse("it is a home directory; choose a directory inside it".to_owned());
    }
    for system in SYSTEM_WHOLLY {
        if place.starts_with(system) && !place.starts_with(SHARED_MEMORY) {
            return refuse(format!(
                "{system} is reserved for the system; choose a directory of your own"
            ));
        }
    }
    let mut clusters: Vec<PathBuf> = Vec::new();
    for directory in &protected.cluster {
        clusters.push(resolved(directory));
    }
    clusters.extend(cluster_around(&place));
    for cluster in clusters {
        if place.starts_with(&cluster) {
            return refuse(format!(
                "it is inside the cluster's directory {}; choose another",
                cluster.display()
            ));
        }
        if cluster.starts_with(&place) {
            return refuse(format!(
                "it contains the cluster's directory {}; choose another",
                cluster.display()
            ));
        }
    }
    match input_within(&place, &protected.inputs) {
        Some(input) => refuse(format!(
            "it is or contains the job's input {}; choose another",
            input.display()
        )),
        None => Ok(()),
    }
}

/// Returns whether a directory is that of this user, or of any user.
fn is_home(place: &Path) -> bool {
    if place.parent() == Some(Path::new("/home")) {
        return true;
    }
    match std::env::var_os("HOME") {
        Some(home) if !home.is_empty() => place == resolved(home.as_ref()),
        _ => false,
    }
}

/// Checks an output in a store; `rest` follows `s3://`. Returns the reason if it is rejected.
fn check_in_store(rest: &[u8], inputs: &[PathBuf]) -> Result<(), String> {
    let place = trimmed(rest);
    let mut parts = place.split(|byte| *byte == b'/');
    // The first part is the bucket.
    parts.next();
    let key: Vec<&[u8]> = parts.collect();
    if key.is_empty() {
        return Err("it is a whole bucket; add a path inside the bucket".to_owned());
    }
    if key.iter().any(|part| matches!(*part, b"" | b"." | b"..")) {
        return Err("keys with //, /./ or /../ are not supported".to_owned());
    }
    for input in inputs {
        let Some((_, input_place)) = StorageScheme::split(input) else {
            continue;
        };
        let Some(below) = input_place.strip_prefix(place) else {
            continue;
        };
        if below.is_empty() || below.starts_with(b"/") {
            return Err(format!(
                "it is or contains the job's input {}; choose another",
                input.display()
            ));
        }
    }
    Ok(())
}

fn trimmed(mut place: &[u8]) -> &[u8] {
    while let Some(shorter) = place.strip_suffix(b"/") {
        place = shorter;
    }
    place
}

/// Returns the scheme of a URL, such as `ftp` of `ftp://host/x`, even if the path was made absolute.
fn scheme(path: &Path) -> Option<String> {
    let bytes = path.as_os_str().as_bytes();
    let end = bytes.windows(3).position(|three| three == b"://")?;
    let scheme = bytes[..end].rsplit(|byte| *byte == b'/').next()?;
    if !scheme.first()?.is_ascii_alphabetic() {
        return None;
    }
    for byte in scheme {
        if !byte.is_ascii_alphanumeric() && !b"+.-".contains(byte) {
            return None;
        }
    }
    Some(String::from_utf8_lossy(scheme).into_owned())
}

/// Resolves links, `.` and `..` in the existing part of a path.
fn resolved(path: &Path) -> PathBuf {
    let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let mut missing: Vec<OsString> = Vec::new();
    for ancestor in absolute.ancestors() {
        if let Ok(mut whole) = ancestor.canonicalize() {
            for name in missing.iter().rev() {
                if name == ".." {
                    whole.pop();
                } else {
                    whole.push(name);
                }
            }
            return whole;
        }
        // `file_name` does not handle `..`.
        if let Some(name) = ancestor.components().next_back() {
            missing.push(name.as_os_str().to_owned());
        }
    }
    absolute
}

/// Returns the cluster directory that is or contains `place`, recognized by its contents.
fn cluster_around(place: &Path) -> Option<PathBuf> {
    for directory in place.ancestors() {
        if directory.join("secret").is_file() && directory.join("coordinator").is_dir() {
            return Some(directory.to_owned());
        }
    }
    None
}

/// Device and inode of a file or directory.
pub(super) type FileId = (u64, u64);

/// Returns the identity of the file at a path, following links.
pub(super) fn file_id(path: &Path) -> Option<FileId> {
    let found = std::fs::metadata(path).ok()?;
    Some((found.dev(), found.ino()))
}

/// Returns an input that is in the directory, or is one of its files under another name.
///
/// Paths are not compared, since a file can have many: relative to the current directory, with `..`, through
/// symbolic links or bind mounts, in another case. The check compares device and inode of the input and of
/// every directory on its path, both as named (a link in the output directory belongs to the output) and with
/// links resolved.
fn input_within<'a>(place: &Path, inputs: &'a [PathBuf]) -> Option<&'a Path> {
    let Some(output) = file_id(place) else {
        // A directory that does not exist contains no inputs.
        return None;
    };
    let entries = file_ids_in(place);
    // Most inputs share their directories.
    let mut known: BTreeMap<PathBuf, bool> = BTreeMap::new();
    for input in inputs {
        if StorageScheme::from_path(input).is_some() {
            continue;
        }
        if let Some(id) = file_id(input)
            && (id == output || entries.contains(&id))
        {
            return Some(input);
        }
        let named = std::path::absolute(input).unwrap_or_else(|_| input.clone());
        let resolved = input.canonicalize().unwrap_or_else(|_| named.clone());
        for path in [named, resolved] {
            let Some(directory) = path.parent() else {
                continue;
            };
            let is_below = *known
                .entry(directory.to_owned())
                .or_insert_with(|| is_or_is_below(directory, output));
            if is_below {
                return Some(input);
            }
        }
    }
    None
}

fn is_or_is_below(directory: &Path, above: FileId) -> bool {
    directory
        .ancestors()
        .any(|ancestor| file_id(ancestor) == Some(above))
}

/// Returns the files of a directory except symbolic links; replacing a link does not affect its target.
fn file_ids_in(directory: &Path) -> BTreeSet<FileId> {
    let mut ids = BTreeSet::new();
    for entry in std::fs::read_dir(directory).into_iter().flatten().flatten() {
        if let Ok(metadata) = entry.metadata()
            && metadata.is_file()
        {
            ids.insert((metadata.dev(), metadata.ino()));
        }
    }
    ids
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn refused(output: &Path, protected: &Protected) -> String {
        let error = check_place(output, protected).expect_err("it must never be an output");
        assert_eq!(error.exit_status(), 2);
        error.to_string()
    }

    #[test]
    fn system_directories_are_refused() {
        let nothing = Protected::default();
        for path in [
            "/",
            "/etc",
            "/etc/x",
            "/usr",
            "/proc/1/x",
            "/dev/x",
            "/sys",
            "/var",
            "/tmp",
            "/tmp/../etc",
            "/home/ada",
        ] {
            let message = refused(Path::new(path), &nothing);
            assert!(
                message.starts_with(&format!("{path} cannot be an output directory: ")),
                "{message}"
            );
        }
        let home = PathBuf::from(std::env::var_os("HOME").expect("a home"));
        refused(&home, &nothing);
        for path in [
            "/tmp/x",
            "/dev/shm/x",
            "/data/out",
            "/home/ada/out",
            "/etcetera",
        ] {
            check_place(Path::new(path), &nothing).unwrap_or_else(|error| panic!("{error}"));
        }
    }

    #[test]
    fn unsupported_storage_schemes_are_refused() {
        for (path, scheme) in [("ftp://host/x", "ftp"), ("/here/s3a://bucket/x", "s3a")] {
            let message = refused(Path::new(path), &Protected::default());
            assert!(
                message.contains(&format!("{scheme}:// is not supported")),
                "{message}"
            );
        }
        check_place(Path::new("/data/a:/b"), &Protected::default()).expect("a name with a colon");
    }

    #[test]
    fn invalid_store_outputs_are_refused() {
        let inputs = [
            "s3://b/in/a.txt".into(),
            "/srv/in".into(),
            "s3a://b/deep/b.txt".into(),
        ];
        let protected = Protected {
            inputs: inputs.to_vec(),
            ..Protected::default()
        };
        for (output, why) in [
            ("s3://b", "a whole bucket"),
            ("s3://b//", "a whole bucket"),
            ("s3://b/a//c", "//"),
            ("s3://b/a/../c", "//"),
            (
                "s3://b/in",
                "it is or contains the job's input s3://b/in/a.txt;",
            ),
            ("s3://b/in/a.txt/", "the job's input"),
            ("s3://b/deep/", "the job's input s3a://b/deep/b.txt"),
        ] {
            let message = refused(Path::new(output), &protected);
            assert!(message.contains(why), "{message}");
        }
        for output in [
            "s3://b/out/",
            "s3://b/i",
            "s3://other/in",
            "gs://b/a%20b/c",
            "hdfs://host/x",
        ] {
            check_place(Path::new(output), &protected).unwrap_or_else(|error| panic!("{error}"));
        }
    }

    #[test]
    fn cluster_directory_and_job_inputs_are_refused() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = |name: &str| folder.path().join(name);
        for name in [
            "some/cluster/coordinator/blobs",
            "some/in/deep",
            "some/out",
            "elsewhere/worker",
        ] {
            std::fs::create_dir_all(path(name)).expect("made");
        }
        std::fs::write(path("some/cluster/secret"), "x").expect("written");
        std::fs::write(path("some/in/deep/a.txt"), "x").expect("written");
        std::os::unix::fs::symlink(path("some"), path("link")).expect("a link");
        let protected = Protected {
            cluster: vec![path("some/cluster"), path("elsewhere/worker")],
            inputs: vec![path("some/in/deep/a.txt")],
        };
        for name in [
            "some/cluster",
            "some/cluster/coordinator/x",
            "link/cluster/out",
            "elsewhere/worker/jobs",
        ] {
            assert!(
                refused(&path(name), &protected).contains("it is inside the cluster's directory"),
                "{name}"
            );
        }
        assert!(
            refused(&path("elsewhere"), &protected).contains("it contains the cluster's directory")
        );
        for name in [
            "some/in/deep",
            "some/in",
            "link/in",
            "some/in/deep/a.txt",
            "some/out/../in",
        ] {
            assert!(
                refused(&path(name), &protected).contains("the job's input "),
                "{name}"
            );
        }
        assert!(
            refused(&path("some/cluster/out"), &Protected::default()).contains("it is inside ")
        );
        for name in ["some/out", "some/in-out", "some/in/deep/out", "new"] {
            check_place(&path(name), &protected).unwrap_or_else(|error| panic!("{error}"));
        }
    }

    /// A file, and paths that lead to it by links of both sorts, `..` and a path relative to the current directory.
    fn spellings(folder: &Path, file: &str) -> Vec<PathBuf> {
        let outside = folder.join("outside");
        std::fs::create_dir_all(&outside).expect("made");
        std::os::unix::fs::symlink(folder.join(file), outside.join("symbolic")).expect("a link");
        std::fs::hard_link(folder.join(file), outside.join("hard")).expect("a link");
        std::os::unix::fs::symlink(folder, outside.join("up")).expect("a link");
        let current = std::env::current_dir().expect("a directory");
        let up: PathBuf = current.components().skip(1).map(|_| "..").collect();
        let relative = up
            .join(folder.strip_prefix("/").expect("an absolute path"))
            .join(file);
        let around = outside.join("..").join(file);
        vec![
            folder.join(file),
            outside.join("symbolic"),
            outside.join("hard"),
            outside.join("up").join(file),
            relative,
            around,
        ]
    }

    #[test]
    fn output_of_input_is_refused_however_spelled() {
        let folder = tempfile::tempdir().expect("a folder");
        let folder = folder.path();
        std::fs::create_dir(folder.join("out")).expect("made");
        std::fs::write(folder.join("out/part-r-00000"), "x").expect("written");
        std::os::unix::fs::symlink("out", folder.join("link-out")).expect("a link");
        for input in spellings(folder, "out/part-r-00000") {
            for output in [
                "out",
                "out/",
                "out/.",
                "link-out",
                "out/../out",
                "outside/up/out",
            ] {
                let error = check_reads(&folder.join(output), vec![input.clone()]);
                let error = error
                    .expect_err(&format!("{} in {output}", input.display()))
                    .to_string();
                assert!(error.contains("the job's input "), "{error}");
            }
            check_reads(&folder.join("other"), vec![input]).expect("a place next to it");
        }
    }

    #[test]
    fn output_with_link_that_the_job_reads_is_refused() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = |name: &str| folder.path().join(name);
        std::fs::create_dir(path("out")).expect("made");
        std::fs::write(path("data"), "x").expect("written");
        std::os::unix::fs::symlink(path("data"), path("out/part-r-00000")).expect("a link");
        check_reads(&path("out"), vec![path("out/part-r-00000")])
            .expect_err("the link would be replaced");
        check_reads(&path("out"), vec![path("data")])
            .expect("the link would be replaced, and no job reads it");
    }
}
