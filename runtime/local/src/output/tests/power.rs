//! Power failures after every call of claim, commit and discard: changes that were not synced are lost, all
//! or some of them.

use rand::{Rng, SeedableRng};
use rand_pcg::Pcg64;

use super::super::storage::script::{DiskScript, Done, Fault};
use super::faults::{
    CASES, Case, Ended, assert_new, assert_recovers, assert_rerun, assert_whole_or_absent, visible,
};
use super::*;

/// A file: an older one, by the name of its other link, or one that the job wrote.
#[derive(Debug, Clone, PartialEq, Eq)]
enum File {
    Known(PathBuf),
    Written(usize),
}

/// A directory tree; `None` is a directory.
type Tree = BTreeMap<PathBuf, Option<File>>;

/// A change of directory entries, with the directories it affects.
#[derive(Debug, Clone)]
struct Change {
    done: Done,
    file: Option<usize>,
    within: Vec<PathBuf>,
    durable: bool,
}

#[derive(Debug, Default)]
struct Model {
    changes: Vec<Change>,
    /// The written bytes of each file, and whether they were synced.
    written: Vec<(Vec<u8>, bool)>,
    /// The file of each entry, by index.
    entries: BTreeMap<PathBuf, usize>,
}

fn parent(path: &Path) -> PathBuf {
    path.parent().expect("a parent").to_owned()
}

impl Model {
    fn of(done: &[Done]) -> Model {
        let mut model = Model::default();
        done.iter().for_each(|done| model.take_in(done));
        model
    }

    fn take_in(&mut self, done: &Done) {
        let mut file = None;
        let within = match done {
            Done::Write(path, bytes) => {
                self.written[self.entries[path]].0.extend(bytes);
                return;
            }
            Done::SyncFile(path) => {
                self.written[self.entries[path]].1 = true;
                return;
            }
            Done::SyncDirectory(path) => {
                let synced = |change: &&mut Change| change.within.contains(path);
                self.changes
                    .iter_mut()
                    .filter(synced)
                    .for_each(|change| change.durable = true);
                return;
            }
            Done::Create(path) => {
                file = Some(self.written.len());
                self.entries.insert(path.clone(), self.written.len());
                self.written.push((Vec::new(), false));
                vec![parent(path)]
            }
            Done::Rename(from, to) => {
                self.move_paths(from, to);
                vec![parent(from), parent(to)]
            }
            Done::MakeDirectory(path)
            | Done::RemoveFile(path)
            | Done::RemoveDirectory(path)
            | Done::RemoveTree(path) => vec![parent(path)],
        };
        self.changes.push(Change {
            done: done.clone(),
            file,
            within,
            durable: false,
        });
    }

    /// Moves entries. A directory that is synced under its new name keeps changes made under the old one.
    fn move_paths(&mut self, from: &Path, to: &Path) {
        let moved = |path: &Path| {
            path.strip_prefix(from)
                .ok()
                .map(|rest| match rest.as_os_str().is_empty() {
                    true => to.to_owned(),
                    false => to.join(rest),
                })
        };
        let entries = std::mem::take(&mut self.entries);
        // The old entry at the new name is replaced.
        let kept = entries.into_iter().filter(|(path, _)| path != to);
        self.entries = kept
            .map(|(path, file)| (moved(&path).unwrap_or(path), file))
            .collect();
        for change in &mut self.changes {
            for path in &mut change.within {
                *path = moved(path).unwrap_or_else(|| path.clone());
            }
        }
    }

    /// Returns the tree after the power failure.
    fn survivors(&self, mut tree: Tree, mut keeps: impl FnMut() -> bool) -> Tree {
        for change in &self.changes {
            if change.durable || keeps() {
                apply(&mut tree, change);
            }
        }
        tree
    }
}

/// Applies a change if possible; its preconditions may be lost.
fn apply(tree: &mut Tree, change: &Change) {
    let has_parent = |tree: &Tree, path: &Path| tree.get(&parent(path)) == Some(&None);
    let below = |tree: &Tree, path: &Path| -> Vec<PathBuf> {
        tree.keys()
            .filter(|one| one.starts_with(path))
            .cloned()
            .collect()
    };
    match &change.done {
        Done::MakeDirectory(path) if has_parent(tree, path) => {
            tree.entry(path.clone()).or_insert(None);
        }
        Done::Create(path) if has_parent(tree, path) => {
            tree.insert(path.clone(), change.file.map(File::Written));
        }
        Done::Rename(from, to) if tree.contains_key(from) && has_parent(tree, to) => {
            tree.remove(to);
            for path in below(tree, from) {
                let target = match path.strip_prefix(from) {
                    Ok(rest) if !rest.as_os_str().is_empty() => to.join(rest),
                    _ => to.clone(),
                };
                let entry = tree.remove(&path).expect("it was listed");
                tree.insert(target, entry);
            }
        }
        Done::RemoveFile(path) => {
            tree.remove(path);
        }
        Done::RemoveDirectory(path) if below(tree, path).len() == 1 => {
            tree.remove(path);
        }
        Done::RemoveTree(path) => below(tree, path)
            .iter()
            .for_each(|path| drop(tree.remove(path))),
        _ => {}
    }
}

/// Reads a directory and links each file in `keep`, so that the same file can be restored.
fn known_tree(top: &Path, keep: &Path) -> Tree {
    let mut tree = Tree::from([(top.to_owned(), None)]);
    let mut open = vec![top.to_owned()];
    while let Some(directory) = open.pop() {
        for entry in fs::read_dir(&directory).expect("a directory") {
            let path = entry.expect("an entry").path();
            let file = if path.is_dir() {
                open.push(path.clone());
                None
            } else {
                use std::os::unix::fs::MetadataExt;
                let link = keep.join(fs::metadata(&path).expect("a file").ino().to_string());
                if !link.exists() {
                    fs::hard_link(&path, &link).expect("a link");
                }
                Some(File::Known(link))
            };
            tree.insert(path, file);
        }
    }
    tree
}

/// Removes everything but the directories that stay, so that these remain the same directories.
fn clear(directory: &Path, tree: &Tree) {
    for entry in fs::read_dir(directory).expect("a directory") {
        let path = entry.expect("an entry").path();
        match path.is_dir() {
            true if tree.get(&path) == Some(&None) => clear(&path, tree),
            true => fs::remove_dir_all(path).expect("removed"),
            false => fs::remove_file(path).expect("removed"),
        }
    }
}

/// Makes a directory equal to a tree; bytes that were not synced are kept, halved or lost.
fn put_back(top: &Path, tree: &Tree, model: &Model, mut share: impl FnMut() -> usize) {
    clear(top, tree);
    for (path, file) in tree.iter().filter(|(path, _)| *path != top) {
        match file {
            None if path.exists() => {}
            None => fs::create_dir(path).expect("a directory"),
            Some(File::Known(link)) => fs::hard_link(link, path).expect("a link"),
            Some(File::Written(index)) => {
                let (bytes, synced) = &model.written[*index];
                let length = if *synced {
                    bytes.len()
                } else {
                    bytes.len() * share() / 2
                };
                fs::write(path, &bytes[..length]).expect("written");
            }
        }
    }
}

/// Loses power after the call `last`, or after all calls; unsynced changes survive at random.
fn check(run: Case, last: Option<usize>, random: &mut Pcg64, chance: u32) {
    let case = format!("{run:?}, power lost after call {last:?}, {chance} of 2 kept");
    let place = run.place();
    let before = visible(&place);
    let keep =
        tempfile::tempdir_in(place.folder.path().parent().expect("a parent")).expect("a directory");
    let top = place.folder.path().to_owned();
    let tree = known_tree(&top, keep.path());
    let (disk, script) = DiskScript::disk(&place.out(), last.map(|last| (last, Fault::Last)));
    let mut written = None;
    let (ended, mark) = run.run(&place, &disk, &script, || {
        // Tasks sync their parts before the commit.
        written = Some((script.done().len(), known_tree(&top, keep.path())));
    });
    let done = script.done();
    let model = Model::of(&done);
    let (until, given) = written.unwrap_or((done.len(), Tree::new()));
    let claimed = Model::of(&done[..until]);
    let keeps = |random: &mut Pcg64| random.random_ratio(chance, 2);
    let tree = if given.is_empty() {
        claimed.survivors(tree, || keeps(random))
    } else {
        // A completed claim is synced and must survive.
        let lost: Vec<&Change> = claimed
            .changes
            .iter()
            .filter(|change| !change.durable)
            .collect();
        assert!(
            lost.is_empty(),
            "{case}: not synced when the tasks begin: {lost:?}"
        );
        let mut rest = Model::of(&done);
        rest.changes.drain(..claimed.changes.len());
        rest.survivors(given, || keeps(random))
    };
    put_back(&top, &tree, &model, || random.random_range(0..3));
    match ended {
        Ended::Committed => assert_new(&place, &before, &case),
        _ => assert_whole_or_absent(&place, &before, &case),
    }
    // The client never learned of the claim and submits the job again.
    assert_recovers(&place, run, mark, &before, &case);
    assert_rerun(&place, &before, &case);
}

#[test]
fn power_loss_leaves_old_new_or_no_output() {
    let seed = std::env::var("NAPREDUCE_SEED")
        .ok()
        .and_then(|seed| seed.parse().ok())
        .unwrap_or(20_261_122);
    println!("seed {seed} (set NAPREDUCE_SEED to choose)");
    let mut random = Pcg64::seed_from_u64(seed);
    for run in CASES {
        let calls = {
            let place = run.place();
            let (disk, script) = DiskScript::disk(&place.out(), None);
            run.run(&place, &disk, &script, || {});
            script.calls()
        };
        for last in (0..calls).map(Some).chain([None]) {
            // No unsynced change survives, or all of them, in turn; then some of them.
            for chance in [if last.unwrap_or(0) % 2 == 0 { 0 } else { 2 }, 1] {
                check(run, last, &mut random, chance);
            }
        }
    }
}
