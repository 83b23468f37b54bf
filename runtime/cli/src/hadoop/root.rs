//! The folder that stands for `hdfs:///`, and paths in it.
//!
//! Owns which file a URI or a path of Hadoop means, and how a file is called there. Does not own what is done
//! with it.

use std::path::{Path, PathBuf};

const VARIABLE: &str = "NAPREDUCE_HADOOP_ROOT";

/// A folder with the files of a Hadoop file system.
#[derive(Debug, Clone)]
pub(super) struct HadoopRoot {
    folder: PathBuf,
    /// Relative paths begin here.
    home: String,
}

impl HadoopRoot {
    /// The folder of this name, or of the environment.
    pub(super) fn find(named: Option<&str>) -> Result<HadoopRoot, String> {
        let of_environment =
            || std::env::var_os(VARIABLE).filter(|value| !value.is_empty()).map(PathBuf::from);
        let folder = named.map(PathBuf::from).or_else(of_environment).ok_or_else(|| {
            format!("name the folder that stands for hdfs:/// with --hadoop-root DIR or {VARIABLE}")
        })?;
        let user = ["USER", "LOGNAME"].into_iter().find_map(|name| std::env::var(name).ok());
        HadoopRoot::new(&folder, &user.unwrap_or_else(|| "root".to_owned()))
    }

    pub(super) fn new(folder: &Path, user: &str) -> Result<HadoopRoot, String> {
        let shown = folder.display();
        if !folder.is_dir() {
            return Err(format!("{shown}, which stands for hdfs:///, is no folder; make it first"));
        }
        let folder = std::path::absolute(folder).map_err(|error| format!("cannot find {shown}: {error}"))?;
        Ok(HadoopRoot { folder, home: format!("/user/{user}") })
    }

    /// The file that a path means where Hadoop's file system is meant unless another one is named.
    pub(super) fn file(&self, text: &str) -> Result<PathBuf, String> {
        if let Some(local) = local(text) {
            return Ok(PathBuf::from(local));
        }
        let path = match text.split_once("://") {
            // The name of the host says nothing here.
            Some(("hdfs", rest)) => rest.find('/').map_or("/", |slash| &rest[slash..]).to_owned(),
            Some((scheme, _)) => {
                return Err(format!("{text}: files of {scheme}: are not known; write hdfs:/// or file:///"));
            }
            None if text.starts_with('/') => text.to_owned(),
            None => format!("{}/{text}", self.home),
        };
        let mut file = self.folder.clone();
        for part in path.split('/').filter(|part| !part.is_empty() && *part != ".") {
            if part == ".." {
                return Err(format!("{text}: a path without .. is needed"));
            }
            file.push(part);
        }
        Ok(file)
    }

    /// The file that a path means where a file of this machine is meant unless another one is named.
    pub(super) fn local_file(&self, text: &str) -> Result<PathBuf, String> {
        if text.contains("://") { self.file(text) } else { Ok(PathBuf::from(local(text).unwrap_or(text))) }
    }

    /// Whether this is the folder itself, or something that it is in.
    pub(super) fn is_inside(&self, file: &Path) -> bool {
        self.folder.starts_with(file)
    }

    /// What there is of a pattern, in order; the path itself when it is no pattern and there is such a file.
    pub(super) fn matching(&self, text: &str) -> Result<Vec<PathBuf>, String> {
        if text.contains(['{', '}']) {
            return Err(format!("{text}: patterns with braces are not known; say each path"));
        }
        let file = self.file(text)?;
        if !text.contains(['*', '?', '[']) {
            return Ok(if file.symlink_metadata().is_ok() { vec![file] } else { Vec::new() });
        }
        let inside = file
            .strip_prefix(&self.folder)
            .map_err(|_| format!("{text}: patterns are for hdfs:/// alone"))?;
        let pattern =
            format!("{}/{}", glob::Pattern::escape(&self.folder.to_string_lossy()), inside.display());
        let options = glob::MatchOptions { require_literal_separator: true, ..glob::MatchOptions::new() };
        let found = glob::glob_with(&pattern, options).map_err(|error| format!("{text}: {error}"))?;
        found.map(|path| path.map_err(|error| error.to_string())).collect()
    }

    /// What a file is called in Hadoop's file system.
    pub(super) fn shown(&self, file: &Path) -> String {
        match file.strip_prefix(&self.folder) {
            Ok(inside) => format!("/{}", inside.display()),
            Err(_) => format!("file://{}", file.display()),
        }
    }
}

/// The path of a file of this machine that is named as such.
fn local(text: &str) -> Option<&str> {
    text.strip_prefix("file://").or_else(|| text.strip_prefix("file:"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_means_a_file_of_the_folder_unless_it_says_another_one() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let root = HadoopRoot::new(folder.path(), "ann").expect("a folder");
        let check = |text: &str, expected: PathBuf| assert_eq!(root.file(text), Ok(expected), "{text}");
        check("hdfs:///a/b", folder.path().join("a/b"));
        check("hdfs://name:8020//a/./b/", folder.path().join("a/b"));
        check("hdfs://name", folder.path().to_owned());
        check("/a", folder.path().join("a"));
        check("a/b", folder.path().join("user/ann/a/b"));
        check("file:///a/b", "/a/b".into());
        assert_eq!(root.local_file("a/b"), Ok("a/b".into()));
        assert_eq!(root.local_file("hdfs:///a"), Ok(folder.path().join("a")));
        assert_eq!(root.shown(&folder.path().join("a/b")), "/a/b");
        for (text, part) in [("hdfs:///a/../../b", "without .."), ("s3://a/b", "files of s3: are not known")]
        {
            let error = root.file(text).expect_err(text);
            assert!(error.contains(part), "{error}");
        }
    }

    #[test]
    fn a_folder_that_is_not_there_is_named() {
        let error = HadoopRoot::new(Path::new("/nowhere/at-all"), "ann").expect_err("no folder");
        assert_eq!(error, "/nowhere/at-all, which stands for hdfs:///, is no folder; make it first");
    }
}
