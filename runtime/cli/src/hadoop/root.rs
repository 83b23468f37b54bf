//! The directory in place of `hdfs:///`: maps URIs and paths of Hadoop to files, and back.

use std::path::{Path, PathBuf};

const VARIABLE: &str = "NAPREDUCE_HADOOP_ROOT";

/// A directory with the files of a Hadoop file system.
#[derive(Debug, Clone)]
pub(super) struct HadoopRoot {
    folder: PathBuf,
    /// The Hadoop path of relative paths.
    home: String,
}

impl HadoopRoot {
    /// Returns the named directory, or the one in the environment.
    pub(super) fn find(named: Option<&str>) -> Result<HadoopRoot, String> {
        let of_environment = || {
            std::env::var_os(VARIABLE)
                .filter(|value| !value.is_empty())
                .map(PathBuf::from)
        };
        let folder = named
            .map(PathBuf::from)
            .or_else(of_environment)
            .ok_or_else(|| {
                format!("no directory for hdfs:///; give --hadoop-root DIR or set {VARIABLE}")
            })?;
        let user = ["USER", "LOGNAME"]
            .into_iter()
            .find_map(|name| std::env::var(name).ok());
        HadoopRoot::new(&folder, &user.unwrap_or_else(|| "root".to_owned()))
    }

    pub(super) fn new(folder: &Path, user: &str) -> Result<HadoopRoot, String> {
        let shown = folder.display();
        if !folder.is_dir() {
            return Err(format!(
                "--hadoop-root {shown}: not a directory; create it first"
            ));
        }
        let folder =
            std::path::absolute(folder).map_err(|error| format!("cannot find {shown}: {error}"))?;
        Ok(HadoopRoot {
            folder,
            home: format!("/user/{user}"),
        })
    }

    /// Returns the file of a path, by default in Hadoop's file system.
    pub(super) fn file(&self, text: &str) -> Result<PathBuf, String> {
        if let Some(local) = local(text) {
            return Ok(PathBuf::from(local));
        }
        let path = match text.split_once("://") {
            // The host is ignored.
            Some(("hdfs", rest)) => rest
                .find('/')
                .map_or("/", |slash| &rest[slash..])
                .to_owned(),
            Some((scheme, _)) => {
                return Err(format!(
                    "{text}: unsupported scheme {scheme}; give hdfs:/// or file:///"
                ));
            }
            None if text.starts_with('/') => text.to_owned(),
            None => format!("{}/{text}", self.home),
        };
        let mut file = self.folder.clone();
        for part in path
            .split('/')
            .filter(|part| !part.is_empty() && *part != ".")
        {
            if part == ".." {
                return Err(format!("{text}: must not contain .."));
            }
            file.push(part);
        }
        Ok(file)
    }

    /// Returns the file of a path, by default on this machine.
    pub(super) fn local_file(&self, text: &str) -> Result<PathBuf, String> {
        if text.contains("://") {
            self.file(text)
        } else {
            Ok(PathBuf::from(local(text).unwrap_or(text)))
        }
    }

    /// Whether `file` is the directory itself or one of its parents.
    pub(super) fn is_inside(&self, file: &Path) -> bool {
        self.folder.starts_with(file)
    }

    /// Returns the files that match a pattern or path, in order.
    pub(super) fn matching(&self, text: &str) -> Result<Vec<PathBuf>, String> {
        if text.contains(['{', '}']) {
            return Err(format!(
                "{text}: patterns with braces are not supported; give each path"
            ));
        }
        let file = self.file(text)?;
        if !text.contains(['*', '?', '[']) {
            return Ok(if file.symlink_metadata().is_ok() {
                vec![file]
            } else {
                Vec::new()
            });
        }
        let inside = file
            .strip_prefix(&self.folder)
            .map_err(|_| format!("{text}: patterns are only supported in hdfs:///"))?;
        // The crate negates a set of characters by `!` only; Hadoop also by `^`.
        let inside = inside.display().to_string().replace("[^", "[!");
        let pattern = format!(
            "{}/{inside}",
            glob::Pattern::escape(&self.folder.to_string_lossy())
        );
        let options = glob::MatchOptions {
            require_literal_separator: true,
            ..glob::MatchOptions::new()
        };
        let found =
            glob::glob_with(&pattern, options).map_err(|error| format!("{text}: {error}"))?;
        found
            .map(|path| path.map_err(|error| error.to_string()))
            .collect()
    }

    /// Returns the path of a file in Hadoop's file system.
    pub(super) fn shown(&self, file: &Path) -> String {
        match file.strip_prefix(&self.folder) {
            Ok(inside) => format!("/{}", inside.display()),
            Err(_) => format!("file://{}", file.display()),
        }
    }
}

/// Returns the path of a `file:` URI.
fn local(text: &str) -> Option<&str> {
    text.strip_prefix("file://")
        .or_else(|| text.strip_prefix("file:"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_map_to_files_of_the_root() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let root = HadoopRoot::new(folder.path(), "ann").expect("a folder");
        let check =
            |text: &str, expected: PathBuf| assert_eq!(root.file(text), Ok(expected), "{text}");
        check("hdfs:///a/b", folder.path().join("a/b"));
        check("hdfs://name:8020//a/./b/", folder.path().join("a/b"));
        check("hdfs://name", folder.path().to_owned());
        check("/a", folder.path().join("a"));
        check("a/b", folder.path().join("user/ann/a/b"));
        check("file:///a/b", "/a/b".into());
        assert_eq!(root.local_file("a/b"), Ok("a/b".into()));
        assert_eq!(root.local_file("hdfs:///a"), Ok(folder.path().join("a")));
        assert_eq!(root.shown(&folder.path().join("a/b")), "/a/b");
        for (text, part) in [
            ("hdfs:///a/../../b", "must not contain .."),
            ("s3://a/b", "unsupported scheme s3"),
        ] {
            let error = root.file(text).expect_err(text);
            assert!(error.contains(part), "{error}");
        }
    }

    #[test]
    fn missing_root_is_rejected_by_name() {
        let error = HadoopRoot::new(Path::new("/nowhere/at-all"), "ann").expect_err("no folder");
        assert_eq!(
            error,
            "--hadoop-root /nowhere/at-all: not a directory; create it first"
        );
    }
}
