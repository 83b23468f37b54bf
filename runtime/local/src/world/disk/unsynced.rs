//! Real files whose last changes can be taken back, as a power loss does with what was not synced.
//!
//! A simulation uses them for output directories, which are also read by tasks, clients and checks. What these write
//! counts as synced. Of the changes of directory entries a power loss keeps none, all, some first ones, or any; of content
//! that was not synced it keeps a part. A removed output directory stays removed, since its number must not change.

use std::fmt::{self, Debug};
use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use napreduce_protocol::lock;
use rand::{Rng, SeedableRng};
use rand_pcg::Pcg64;

/// A call to the file system. Paths are absolute.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FileCall {
    /// It changes nothing that a power loss could take back.
    Look,
    MakeDirectory(PathBuf),
    Create(PathBuf),
    Write(PathBuf),
    SyncFile(PathBuf),
    SyncDirectory(PathBuf),
    Rename {
        from: PathBuf,
        to: PathBuf,
    },
    RemoveFile(PathBuf),
    RemoveDirectory(PathBuf),
    RemoveTree(PathBuf),
}

/// Files of a simulated machine. Clones are the same files.
#[derive(Debug, Clone)]
pub struct UnsyncedFiles {
    state: Arc<Mutex<State>>,
}

#[derive(Debug)]
struct State {
    random: Pcg64,
    /// Has links to removed and replaced files.
    kept: PathBuf,
    kept_count: u64,
    /// Changes of entries that were not synced, oldest first.
    entries: Vec<EntryChange>,
    /// Files with content that was not synced.
    contents: Vec<Content>,
    calls: u64,
    /// The number of the call that is the last one of its process.
    last_call: Option<u64>,
    at_last_call: Option<Reaction>,
    is_down: bool,
}

/// The function that a simulation calls after the last call of the machine.
struct Reaction(Box<dyn FnOnce() + Send>);

impl Debug for Reaction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Reaction")
    }
}

#[derive(Debug)]
struct EntryChange {
    undo: Undo,
    /// A sync of any of them makes the change last.
    directories: Vec<PathBuf>,
}

/// How a change of entries is taken back.
#[derive(Debug)]
enum Undo {
    Remove(PathBuf),
    MakeDirectory(PathBuf),
    PutBack {
        kept: PathBuf,
        at: PathBuf,
    },
    MoveBack {
        from: PathBuf,
        to: PathBuf,
        replaced: Option<PathBuf>,
    },
}

/// Which changes of entries a power loss leaves.
#[derive(Debug, Clone, Copy)]
enum Survivors {
    First(usize),
    Any,
}

#[derive(Debug)]
struct Content {
    path: PathBuf,
    file: File,
}

impl UnsyncedFiles {
    /// Returns files whose losses depend on the seed alone. `kept` is a directory of its own on the same file system.
    #[must_use]
    pub fn new(seed: u64, kept: PathBuf) -> UnsyncedFiles {
        let state = State {
            random: Pcg64::seed_from_u64(seed),
            kept,
            kept_count: 0,
            entries: Vec::new(),
            contents: Vec::new(),
            calls: 0,
            last_call: None,
            at_last_call: None,
            is_down: false,
        };
        UnsyncedFiles {
            state: Arc::new(Mutex::new(state)),
        }
    }

    /// Makes the call after so many others the last one before the machine ends.
    pub fn end_after(&self, calls: u64) {
        let mut state = lock(&self.state);
        state.last_call = Some(state.calls + calls);
    }

    /// Forgets an end that has not come yet.
    pub fn forget_end(&self) {
        lock(&self.state).last_call = None;
    }

    /// Sets what is done once, in the last call of the machine.
    pub fn at_last_call(&self, act: impl FnOnce() + Send + 'static) {
        lock(&self.state).at_last_call = Some(Reaction(Box::new(act)));
    }

    /// Lets the next process of the machine make calls. What the last one wrote stays.
    pub fn restart_process(&self) {
        let mut state = lock(&self.state);
        state.is_down = false;
        state.last_call = None;
    }

    /// Takes back some of what was not synced.
    pub fn lose_power(&self) {
        let mut state = lock(&self.state);
        state.is_down = false;
        state.last_call = None;
        state.lose_entries();
        for content in std::mem::take(&mut state.contents) {
            let bytes = content.file.metadata().map_or(0, |found| found.len());
            let left = match state.random.random_range(0..3) {
                0 => 0,
                1 => bytes,
                _ => state.random.random_range(0..=bytes),
            };
            // A file that was removed meanwhile does not matter.
            let _ = content.file.set_len(left);
        }
    }

    /// Carries out a call of a process.
    pub(crate) fn carry_out<T>(
        &self,
        call: FileCall,
        real: impl FnOnce() -> io::Result<T>,
    ) -> io::Result<T> {
        let mut state = lock(&self.state);
        if state.is_down {
            return Err(ended());
        }
        let number = state.calls;
        state.calls += 1;
        let kept = state.keep(&call)?;
        let result = real();
        if result.is_ok() {
            state.note(call, kept);
        }
        if state.last_call != Some(number) {
            return result;
        }
        state.is_down = true;
        let reaction = state.at_last_call.take();
        drop(state);
        if let Some(Reaction(react)) = reaction {
            react();
        }
        Err(ended())
    }
}

fn ended() -> io::Error {
    io::Error::other("the process has ended")
}

impl State {
    fn lose_entries(&mut self) {
        let entries = std::mem::take(&mut self.entries);
        let survivors = match self.random.random_range(0..4) {
            0 => Survivors::First(0),
            1 => Survivors::First(entries.len()),
            2 => Survivors::First(self.random.random_range(0..=entries.len())),
            _ => Survivors::Any,
        };
        // Entries that later changes need.
        let mut needed: Vec<PathBuf> = Vec::new();
        for (index, change) in entries.into_iter().enumerate().rev() {
            let survives = match survivors {
                Survivors::First(count) => index < count,
                Survivors::Any => change.undo.is_needed(&needed) || self.random.random_bool(0.5),
            };
            if survives {
                needed.extend(change.undo.entries());
            } else {
                change.undo.carry_out();
            }
        }
    }

    /// Keeps what a call will remove or replace, and returns where.
    fn keep(&mut self, call: &FileCall) -> io::Result<Option<PathBuf>> {
        let (FileCall::RemoveFile(path)
        | FileCall::RemoveTree(path)
        | FileCall::Rename { to: path, .. }) = call
        else {
            return Ok(None);
        };
        let Ok(found) = fs::symlink_metadata(path) else {
            return Ok(None);
        };
        let is_replaced_directory = found.is_dir() && !matches!(call, FileCall::RemoveTree(_));
        if is_replaced_directory {
            return Ok(None);
        }
        fs::create_dir_all(&self.kept)?;
        let kept = self.kept.join(self.kept_count.to_string());
        self.kept_count += 1;
        link_all(path, &kept)?;
        Ok(Some(kept))
    }

    /// Notes what a call has done.
    fn note(&mut self, call: FileCall, kept: Option<PathBuf>) {
        match call {
            FileCall::Look => {}
            FileCall::MakeDirectory(path) | FileCall::Create(path) => {
                let directories = vec![above(&path)];
                self.change(Undo::Remove(path), directories);
            }
            FileCall::Write(path) => {
                if let Ok(file) = OpenOptions::new().write(true).open(&path) {
                    self.contents.push(Content { path, file });
                }
            }
            FileCall::SyncFile(path) => self.contents.retain(|content| content.path != path),
            FileCall::SyncDirectory(path) => {
                self.entries
                    .retain(|change| !change.directories.contains(&path));
            }
            FileCall::Rename { from, to } => {
                for content in &mut self.contents {
                    if content.path == from {
                        content.path.clone_from(&to);
                    }
                }
                let directories = vec![above(&from), above(&to)];
                let undo = Undo::MoveBack {
                    from,
                    to,
                    replaced: kept,
                };
                self.change(undo, directories);
            }
            FileCall::RemoveDirectory(path) => {
                let directories = vec![above(&path)];
                self.change(Undo::MakeDirectory(path), directories);
            }
            FileCall::RemoveFile(path) | FileCall::RemoveTree(path) => {
                if let Some(kept) = kept {
                    let directories = vec![above(&path)];
                    self.change(Undo::PutBack { kept, at: path }, directories);
                }
            }
        }
    }

    fn change(&mut self, undo: Undo, directories: Vec<PathBuf>) {
        self.entries.push(EntryChange { undo, directories });
    }
}

impl Undo {
    /// Returns the entries that the change has changed.
    fn entries(&self) -> Vec<PathBuf> {
        match self {
            Undo::Remove(path) | Undo::MakeDirectory(path) | Undo::PutBack { at: path, .. } => {
                vec![path.clone()]
            }
            Undo::MoveBack { from, to, .. } => vec![from.clone(), to.clone()],
        }
    }

    /// Returns whether one of these entries is an entry of the change, or beneath one.
    fn is_needed(&self, needed: &[PathBuf]) -> bool {
        let entries = self.entries();
        needed
            .iter()
            .any(|needed| entries.iter().any(|entry| needed.starts_with(entry)))
    }

    /// Takes the change back, unless others have changed the same entries since.
    fn carry_out(self) {
        let _ = match self {
            Undo::Remove(path) => match fs::symlink_metadata(&path) {
                Ok(found) if found.is_dir() => fs::remove_dir_all(path),
                Ok(_) => fs::remove_file(path),
                Err(error) => Err(error),
            },
            Undo::MakeDirectory(path) => fs::create_dir(path),
            Undo::PutBack { kept, at } => link_all(&kept, &at),
            Undo::MoveBack { from, to, replaced } => {
                let moved = fs::rename(&to, from);
                match replaced {
                    Some(kept) if moved.is_ok() => link_all(&kept, &to),
                    _ => moved,
                }
            }
        };
    }
}

fn above(path: &Path) -> PathBuf {
    path.parent().unwrap_or(Path::new("/")).to_owned()
}

/// Makes a directory with links to all files of another one, or a link to a file.
fn link_all(from: &Path, to: &Path) -> io::Result<()> {
    if !fs::symlink_metadata(from)?.is_dir() {
        return fs::hard_link(from, to);
    }
    fs::create_dir(to)?;
    for entry in fs::read_dir(from)? {
        let name = entry?.file_name();
        link_all(&from.join(&name), &to.join(&name))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Scene {
        folder: tempfile::TempDir,
        files: UnsyncedFiles,
    }

    impl Scene {
        fn new(seed: u64) -> Scene {
            let folder = tempfile::tempdir().expect("a folder");
            fs::create_dir(folder.path().join("out")).expect("made");
            let files = UnsyncedFiles::new(seed, folder.path().join("kept"));
            Scene { folder, files }
        }

        fn at(&self, name: &str) -> PathBuf {
            self.folder.path().join("out").join(name)
        }

        fn write(&self, name: &str, text: &str) {
            let path = self.at(name);
            let created = self
                .files
                .carry_out(FileCall::Create(path.clone()), || File::create(&path));
            created.expect("created");
            let written = self
                .files
                .carry_out(FileCall::Write(path.clone()), || fs::write(&path, text));
            written.expect("written");
        }

        fn sync(&self, name: &str) {
            let path = self.at(name);
            let synced = self.files.carry_out(FileCall::SyncFile(path), || Ok(()));
            synced.expect("synced");
        }

        fn sync_directory(&self) {
            let path = self.folder.path().join("out");
            let synced = self
                .files
                .carry_out(FileCall::SyncDirectory(path), || Ok(()));
            synced.expect("synced");
        }

        fn rename(&self, from: &str, to: &str) {
            let (from, to) = (self.at(from), self.at(to));
            let call = FileCall::Rename {
                from: from.clone(),
                to: to.clone(),
            };
            let renamed = self.files.carry_out(call, || fs::rename(from, to));
            renamed.expect("renamed");
        }

        /// Returns the files with their content.
        fn left(&self) -> Vec<(String, String)> {
            let mut left = Vec::new();
            for entry in fs::read_dir(self.folder.path().join("out")).expect("a directory") {
                let name = entry.expect("an entry").file_name();
                let name = name.to_str().expect("a name").to_owned();
                let text = fs::read_to_string(self.at(&name)).expect("a file");
                left.push((name, text));
            }
            left.sort();
            left
        }
    }

    fn file(name: &str, text: &str) -> (String, String) {
        (name.to_owned(), text.to_owned())
    }

    #[test]
    fn synced_files_survive_and_others_are_lost_in_some_runs() {
        let mut lost = 0;
        for seed in 0..20 {
            let scene = Scene::new(seed);
            scene.write("synced", "kept");
            scene.sync("synced");
            scene.sync_directory();
            scene.write("other", "lost");
            scene.files.lose_power();
            let left = scene.left();
            assert!(left.contains(&file("synced", "kept")), "{left:?}");
            lost += usize::from(!left.contains(&file("other", "lost")));
        }
        assert!((5..20).contains(&lost), "lost {lost} of 20 times");
    }

    #[test]
    fn content_that_was_not_synced_is_cut_though_its_name_is_synced() {
        let mut cut = 0;
        for seed in 0..20 {
            let scene = Scene::new(seed);
            scene.write("unfinished", "whole text");
            scene.rename("unfinished", "done");
            scene.sync_directory();
            scene.files.lose_power();
            let left = scene.left();
            assert_eq!(left.len(), 1, "{left:?}");
            assert!("whole text".starts_with(&left[0].1), "{left:?}");
            cut += usize::from(left[0].1 != "whole text");
        }
        assert!(cut > 5, "cut {cut} of 20 times");
    }

    #[test]
    fn replaced_and_removed_files_come_back_in_order() {
        let outcomes: Vec<_> = (0..40)
            .map(|seed| {
                let scene = Scene::new(seed);
                scene.write("old", "1");
                scene.write("new", "2");
                scene.sync("old");
                scene.sync("new");
                scene.sync_directory();
                scene.rename("new", "old");
                let path = scene.at("old");
                let removed = scene
                    .files
                    .carry_out(FileCall::RemoveFile(path.clone()), || fs::remove_file(path));
                removed.expect("removed");
                scene.files.lose_power();
                scene.left()
            })
            .collect();
        for possible in [
            vec![file("new", "2"), file("old", "1")],
            vec![file("old", "2")],
            Vec::new(),
        ] {
            assert!(outcomes.contains(&possible), "never {possible:?}");
        }
        assert!(
            outcomes
                .iter()
                .all(|left| left.len() != 1 || left[0].1 == "2")
        );
    }

    #[test]
    fn no_call_succeeds_after_the_last_one() {
        let scene = Scene::new(1);
        scene.write("before", "");
        scene.files.end_after(0);
        let path = scene.at("last");
        let last = scene
            .files
            .carry_out(FileCall::Create(path.clone()), || File::create(&path));
        assert!(last.is_err() && path.exists());
        let after = scene.files.carry_out(FileCall::Look, || Ok(()));
        assert!(after.is_err());
        scene.files.restart_process();
        let next = scene.files.carry_out(FileCall::Look, || Ok(()));
        assert!(next.is_ok() && path.exists());
    }
}
