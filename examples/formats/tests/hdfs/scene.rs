//! A folder and an HDFS directory with the same text, and the comparison of a job's output in both.

use std::process::Command;

use napreduce_tests::{Ended, Folder, parts, run};
use serde_json::Value;

use super::server::Files;

/// Arguments of a run, without the output.
const ARGUMENTS: [&str; 6] = [
    "in.txt",
    "--reduces",
    "3",
    "--split-size",
    "20000",
    "--quiet",
];

pub struct Scene {
    pub folder: Folder,
    pub files: Files,
}

impl Scene {
    /// Creates a scene, and counts the words of its text into the directory `expected`; returns `None` if
    /// there is no server.
    pub fn new(name: &'static str) -> Option<Scene> {
        let scene = Scene {
            files: Files::create(name)?,
            folder: Folder::new(),
        };
        let line =
            |line: usize| format!("line {line} with word{} and word{}\n", line % 97, line % 31);
        scene
            .folder
            .write("in.txt", (0..2000).map(line).collect::<String>());
        std::fs::create_dir(scene.folder.path("tmp")).expect("a folder");
        scene
            .words(&scene.files.address, "expected", &[])
            .succeeded();
        Some(scene)
    }

    /// Returns a command in the folder that uses `address` as the NameNode.
    pub fn program(&self, path: &str, address: &str) -> Command {
        let mut command = self.files.program(path, address);
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
        self.files.uri("out")
    }

    /// Returns the parts in `out/`, in the form of those of a local directory.
    pub fn stored_parts(&self) -> Vec<(String, Vec<u8>)> {
        let keys = self.files.keys().into_iter();
        let names = keys.filter_map(|key| Some(key.strip_prefix("out/")?.to_owned()));
        let parts = names.filter(|name| !name.is_empty() && !name.starts_with('_'));
        parts
            .map(|name| (name.clone(), self.files.get(&format!("out/{name}"))))
            .collect()
    }

    /// Returns the content of `_SUCCESS`.
    pub fn report(&self) -> Value {
        serde_json::from_slice(&self.files.get("out/_SUCCESS")).expect("JSON")
    }

    pub fn counter(&self, name: &str) -> u64 {
        self.report()["counters"][name].as_u64().unwrap_or(0)
    }

    /// Checks that the output equals that of a local directory and that nothing else is left.
    #[track_caller]
    pub fn assert_written(&self) {
        let expected = parts(&self.folder.path("expected"));
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
        assert_eq!(
            listed["parts"].as_array().expect("parts").len(),
            found.len()
        );
        self.assert_no_remains();
        let left: Vec<_> = std::fs::read_dir(self.folder.path("tmp"))
            .expect("a folder")
            .collect();
        assert!(left.is_empty(), "{left:?}");
    }

    /// Checks that no uploads and no temporary files are left.
    #[track_caller]
    pub fn assert_no_remains(&self) {
        let temporary: Vec<String> = self
            .files
            .keys()
            .into_iter()
            .filter(|key| key.contains("_temporary"))
            .collect();
        assert_eq!(temporary, Vec::<String>::new());
    }
}
