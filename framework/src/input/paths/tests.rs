//! Files, directories and globs on a real disk, with hidden files that must be skipped.

use super::*;
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;
use tempfile::TempDir;

/// A directory with files and the hidden names around them.
fn directory() -> TempDir {
    let directory = tempfile::tempdir().expect("a temporary directory");
    for file in [
        "in/b.txt",
        "in/a.txt",
        "in/_SUCCESS",
        "in/.hidden",
        "logs/x[1].log",
        "logs/y.log",
        "tree/a.txt",
        "tree/one/b.txt",
        "tree/one/two/c.txt",
        "tree/one/_two/d.txt",
        "tree/.git/e.txt",
    ] {
        let path = directory.path().join(file);
        fs::create_dir_all(path.parent().expect("a directory")).expect("a new directory");
        fs::write(path, file).expect("a written file");
    }
    fs::create_dir(directory.path().join("empty")).expect("a new directory");
    directory
}

/// Returns the expanded arguments, relative to the directory.
fn expanded(directory: &TempDir, arguments: &[&str]) -> Result<Vec<String>, String> {
    expanded_to(directory, arguments, false)
}

fn expanded_to(
    directory: &TempDir,
    arguments: &[&str],
    recursive: bool,
) -> Result<Vec<String>, String> {
    let root = directory.path();
    let arguments: Vec<_> = arguments
        .iter()
        .map(|argument| root.join(argument))
        .collect();
    let below = |text: String| text.replace(&format!("{}/", root.display()), "");
    match expand(&arguments, recursive) {
        Ok(files) => Ok(files
            .into_iter()
            .map(|file| {
                let name = below(file.path.display().to_string());
                assert_eq!(
                    file.size,
                    fs::metadata(&file.path).expect("it was found").len()
                );
                name
            })
            .collect()),
        Err(error) => Err(below(error.to_string())),
    }
}

#[test]
fn files_directories_and_globs_list_files_once() {
    let root = directory();
    let found = |arguments: &[&str]| expanded(&root, arguments).expect("they exist");
    assert_eq!(found(&["in/b.txt"]), ["in/b.txt"]);
    assert_eq!(found(&["in"]), ["in/a.txt", "in/b.txt"]);
    assert_eq!(
        found(&["in/b.txt", "in", "in/*.txt", "in/b.txt"]),
        ["in/a.txt", "in/b.txt"]
    );
    assert_eq!(
        found(&["logs/?.log", "in/[a-a].txt"]),
        ["in/a.txt", "logs/y.log"]
    );
    assert_eq!(found(&["empty"]), [""; 0]);
    assert_eq!(found(&[]), [""; 0]);
}

#[test]
fn hidden_files_need_explicit_name() {
    let root = directory();
    let found = |argument: &str| expanded(&root, &[argument]).expect("it exists");
    assert_eq!(found("in/*"), ["in/a.txt", "in/b.txt"]);
    assert_eq!(found("in/_*"), ["in/_SUCCESS"]);
    assert_eq!(found("in/.hidden"), ["in/.hidden"]);
    assert_eq!(found("tree/one/_*/*"), ["tree/one/_two/d.txt"]);
    assert_eq!(found("tree/one/*/*"), ["tree/one/two/c.txt"]);
}

#[test]
fn subdirectories_need_recursive() {
    let root = directory();
    let refusal =
        |argument: &str| expanded(&root, &[argument]).expect_err("files would be left out");
    assert_eq!(
        refusal("tree"),
        "input tree contains the directory tree/one; pass --recursive to read its files too, \
         or name files by a glob such as 'tree/*.*', or 'tree/**/*.*' at any depth"
    );
    // Also if the directory contains nothing else, and if a glob has matched it.
    assert!(
        refusal("tree/on*").starts_with("input tree/one contains the directory tree/one/two; ")
    );
    let all = ["tree/a.txt", "tree/one/b.txt", "tree/one/two/c.txt"];
    assert_eq!(
        expanded_to(&root, &["tree"], true).as_deref(),
        Ok(&all.map(String::from)[..])
    );
    for glob in [
        "tree/**",
        "tree/**/*",
        "tr*/**/*.txt",
        "tree/**/**/[abc].txt",
        "tree/**/",
    ] {
        assert_eq!(
            expanded(&root, &[glob]).as_deref(),
            Ok(&all.map(String::from)[..]),
            "{glob}"
        );
    }
    assert_eq!(
        expanded(&root, &["tree/*.txt"]),
        Ok(vec!["tree/a.txt".into()])
    );
    assert_eq!(
        expanded(&root, &["tree/**/two"]),
        Ok(vec!["tree/one/two/c.txt".into()])
    );
    assert_eq!(
        expanded(&root, &["tree/**/two/"]),
        Ok(vec!["tree/one/two/c.txt".into()])
    );
    assert_eq!(
        expanded(&root, &["tree/**/b.txt"]),
        Ok(vec!["tree/one/b.txt".into()])
    );
}

#[test]
fn link_to_parent_is_not_followed_forever() {
    let root = directory();
    symlink("..", root.path().join("tree/one/up")).expect("a link");
    symlink("../../one", root.path().join("tree/one/two/again")).expect("a link");
    let all = ["tree/a.txt", "tree/one/b.txt", "tree/one/two/c.txt"].map(String::from);
    assert_eq!(expanded_to(&root, &["tree"], true).as_deref(), Ok(&all[..]));
    assert_eq!(expanded(&root, &["tree/**/*"]).as_deref(), Ok(&all[..]));
    symlink("itself", root.path().join("tree/itself")).expect("a link");
    let error = expanded_to(&root, &["tree"], true).expect_err("it leads nowhere");
    assert!(error.starts_with("cannot read tree/itself: "), "{error}");
}

#[test]
fn same_file_under_several_names_is_read_once() {
    let root = directory();
    let found = |arguments: &[&str]| expanded(&root, arguments).expect("they exist");
    fs::hard_link(root.path().join("in/a.txt"), root.path().join("in/z.txt")).expect("a link");
    symlink("b.txt", root.path().join("in/c.txt")).expect("a link");
    symlink("in", root.path().join("also")).expect("a link");
    assert_eq!(
        found(&["in/b.txt", "in/./b.txt", "in/../in/b.txt"]),
        ["in/b.txt"]
    );
    assert_eq!(found(&["in"]), ["in/a.txt", "in/b.txt"]);
    assert_eq!(
        found(&["in/z.txt", "in/c.txt", "also", "in/*"]),
        ["in/c.txt", "in/z.txt"]
    );
}

#[test]
fn existing_name_is_not_a_pattern() {
    let root = directory();
    assert_eq!(
        expanded(&root, &["logs/x[1].log"]),
        Ok(vec!["logs/x[1].log".into()])
    );
}

#[test]
fn globs_are_those_of_a_shell() {
    let root = directory();
    let found = |argument: &str| expanded(&root, &[argument]).expect("it exists");
    assert_eq!(found("in/[^a].txt"), ["in/b.txt"]);
    assert_eq!(found("in/[!a].txt"), ["in/b.txt"]);
    assert_eq!(found("logs/x\\[1\\].log"), ["logs/x[1].log"]);
    assert_eq!(found("logs/x[[]1].log"), ["logs/x[1].log"]);
    assert_eq!(
        found("{in/[ab].t,logs/y.l}[xo]*"),
        ["in/a.txt", "in/b.txt", "logs/y.log"]
    );
}

#[test]
fn glob_with_bytes_that_are_not_utf_8_matches_names() {
    let root = directory();
    let name = |bytes: &[u8]| root.path().join(OsStr::from_bytes(bytes));
    for file in [&b"in/\xff1"[..], b"in/\xff2", b"in/\xfe1"] {
        fs::write(name(file), "x").expect("a written file");
    }
    let found = |glob: &[u8]| -> Vec<PathBuf> {
        let files = expand(&[name(glob)], false).expect("they exist");
        files.into_iter().map(|file| file.path).collect()
    };
    assert_eq!(found(b"in/\xff*"), [name(b"in/\xff1"), name(b"in/\xff2")]);
    assert_eq!(found(b"in/[^\xff]1"), [name(b"in/\xfe1")]);
    assert_eq!(
        found(b"in/{\xff1,\xfe1}"),
        [name(b"in/\xfe1"), name(b"in/\xff1")]
    );
    assert_eq!(found(b"in/?1").len(), 2);
}

#[test]
fn missing_and_special_files_are_named() {
    let root = directory();
    let error = |argument: &str| expanded(&root, &["in", argument]).expect_err("it is wrong");
    assert_eq!(error("in/x"), "input in/x does not exist");
    assert_eq!(error("in/a.txt/x"), "input in/a.txt/x does not exist");
    assert_eq!(error("in/*.csv"), "input in/*.csv matches no file");
    assert_eq!(
        error("in/["),
        "input in/[ is not a valid pattern: a bracket is not closed in \"[\""
    );

    let _socket = UnixListener::bind(root.path().join("socket")).expect("a socket");
    assert_eq!(
        error("socket"),
        "input socket is neither a file nor a directory; write its data to a file and name that"
    );
    symlink(root.path().join("gone"), root.path().join("in/link")).expect("a link");
    assert_eq!(error("in"), "input in/link does not exist");
}

#[test]
fn file_of_unknown_size_is_rejected() {
    for path in [
        "/proc/cpuinfo",
        "/proc/self/status",
        "/proc/c[p]uinfo",
        "/sys/kernel/mm/transparent_hugepage/enabled",
    ] {
        if !Path::new(path).exists() && !path.contains('[') {
            continue;
        }
        let error = expand(&[path], false)
            .expect_err("its size is unknown")
            .to_string();
        assert!(error.ends_with(
            "has no known size, as files of /proc and /sys; write its data to a file and name that"
        ));
    }
    let root = directory();
    let sparse = File::create(root.path().join("in/sparse")).expect("a file");
    sparse.set_len(1 << 20).expect("a length");
    assert_eq!(
        expanded(&root, &["in/sparse"]),
        Ok(vec!["in/sparse".into()])
    );
}

#[test]
fn unreadable_file_is_reported() {
    let denied = io::Error::from_raw_os_error(13);
    let error = unreadable(Path::new("data/x"), denied);
    assert_eq!(error.to_string(), "cannot read data/x: permission denied");
}

#[cfg(not(feature = "storage"))]
#[test]
fn object_without_feature_names_feature() {
    for (name, says) in [
        (
            "s3://b/k",
            "input s3://b/k is in S3, which this program was built without; build it with the feature s3 of",
        ),
        (
            "gs://b/*",
            "is in Google Cloud Storage, which this program was built without; build it with the feature gcs",
        ),
        (
            "abfss://c@a.dfs.core.windows.net/k",
            "build it with the feature azure of napreduce, or copy it to a folder",
        ),
    ] {
        let error = expand(&[name], false)
            .expect_err("no store is read")
            .to_string();
        assert!(error.contains(says), "{error}");
    }
}
