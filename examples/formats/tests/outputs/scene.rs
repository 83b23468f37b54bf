//! A folder and a bucket with the same text, and the comparison of a job's output in both.

use std::process::Command;

use napreduce_tests::{Ended, Folder, parts, run};
use serde_json::Value;

use super::server::{Bucket, Server};

/// Arguments of a run, without the output.
pub const ARGUMENTS: [&str; 6] = [
    "in.txt",
    "--reduces",
    "3",
    "--split-size",
    "20000",
    "--quiet",
];

pub struct Scene {
    pub folder: Folder,
    pub bucket: Bucket,
}

impl Scene {
    /// Creates a scene, and counts the words of its text into the directory `expected`; returns `None` if
    /// there is no server.
    pub fn new(server: Server, name: &'static str) -> Option<Scene> {
        let scene = Scene {
            bucket: Bucket::create(server, name)?,
            folder: Folder::new(),
        };
        let line =
            |line: usize| format!("line {line} with word{} and word{}\n", line % 97, line % 31);
        scene
            .folder
            .write("in.txt", (0..2000).map(line).collect::<String>());
        std::fs::create_dir(scene.folder.path("tmp")).expect("a folder");
        scene
            .words(&scene.bucket.address, "expected", &[])
            .succeeded();
        Some(scene)
    }

    /// Returns a command in the folder that uses `address` as the store.
    pub fn program(&self, path: &str, address: &str) -> Command {
        let mut command = self.bucket.program(path, address);
        command
            .current_dir(self.folder.root())
            .env("TMPDIR", self.folder.path("tmp"));
        command
    }

    /// Returns the command of the job over the text.
    pub fn command(&self, address: &str, output: &str) -> Command {
        let mut command = self.program(env!("CARGO_BIN_EXE_stored-words"), address);
        command.args(ARGUMENTS).args(["--output", output]);
        command
    }

    /// Runs the job to its end.
    pub fn words(&self, address: &str, output: &str, more: &[&str]) -> Ended {
        run(self.command(address, output).args(more))
    }

    pub fn out(&self) -> String {
        self.bucket.uri("out")
    }

    /// Returns the parts below `out/`, in the form of those of a local directory.
    pub fn stored_parts(&self) -> Vec<(String, Vec<u8>)> {
        let keys = self.bucket.keys().into_iter();
        let names = keys.filter_map(|key| Some(key.strip_prefix("out/")?.to_owned()));
        let parts = names.filter(|name| !name.starts_with('_'));
        parts
            .map(|name| (name.clone(), self.bucket.get(&format!("out/{name}"))))
            .collect()
    }

    /// Returns the content of `_SUCCESS`.
    pub fn report(&self) -> Value {
        serde_json::from_slice(&self.bucket.get("out/_SUCCESS")).expect("JSON")
    }

    pub fn counter(&self, name: &str) -> u64 {
        self.report()["counters"][name].as_u64().unwrap_or(0)
    }

    /// Checks that the output equals that of a local directory and that nothing else is left.
    #[track_caller]
    pub fn assert_written(&self) {
        self.assert_written_from("expected");
        let left: Vec<_> = std::fs::read_dir(self.folder.path("tmp"))
            .expect("a folder")
            .collect();
        assert!(left.is_empty(), "{left:?}");
    }

    #[track_caller]
    pub fn assert_written_from(&self, expected: &str) {
        let expected = parts(&self.folder.path(expected));
        let found = self.stored_parts();
        let names = |parts: &[(String, Vec<u8>)]| {
            parts
                .iter()
                .map(|(name, _)| name.clone())
                .collect::<Vec<_>>()
        };
        assert_eq!(names(&expected), names(&found));
        assert!(expected == found, "the bytes are others");
        let listed = self.report();
        let listed = listed["parts"].as_array().expect("parts");
        assert_eq!(listed.len(), found.len());
        // The ETag of S3 contains the number of parts of an upload.
        let is_version = |etag: &str| match self.bucket.server {
            Server::Moto => etag.contains('-'),
            Server::Azurite => etag.starts_with("0x"),
            Server::Google => etag.starts_with('-'),
        };
        assert!(
            listed
                .iter()
                .all(|part| part["etag"].as_str().is_some_and(is_version))
        );
        self.assert_no_remains();
    }

    /// Checks that no uploads and no temporary objects are left.
    #[track_caller]
    pub fn assert_no_remains(&self) {
        assert_eq!(self.bucket.uploads(), Vec::<String>::new());
        let temporary: Vec<String> = self
            .bucket
            .keys()
            .into_iter()
            .filter(|key| key.contains("_temporary"))
            .collect();
        assert_eq!(temporary, Vec::<String>::new());
    }
}
