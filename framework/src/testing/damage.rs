//! Damaged checkpoints: damage to any file of one must not change the output.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use super::JobTest;
use super::attempts::Trial;
use super::interruptions::{Interruption, Preemption, Schedule};
use crate::records::Records;
use crate::{Emit, Job, words};

const LINES: &str = "a rose is a rose\nis a rose\nand a nose\nis no rose\n";

/// A kind of damage to a file.
#[derive(Debug, Clone, Copy)]
enum Damage {
    Removed,
    Emptied,
    LastByteCut,
    ByteAdded,
    /// One flipped bit, at this position in thousandths of the file.
    BitFlipped(usize),
}

const DAMAGES: [Damage; 9] = [
    Damage::Removed,
    Damage::Emptied,
    Damage::LastByteCut,
    Damage::ByteAdded,
    Damage::BitFlipped(0),
    Damage::BitFlipped(250),
    Damage::BitFlipped(500),
    Damage::BitFlipped(800),
    Damage::BitFlipped(999),
];

impl Damage {
    fn inflict(self, path: &Path) {
        let mut bytes = fs::read(path).expect("a file of a checkpoint");
        match self {
            Damage::Removed => return fs::remove_file(path).expect("a writable folder"),
            Damage::Emptied => bytes.clear(),
            Damage::LastByteCut => {
                bytes.pop();
            }
            Damage::ByteAdded => bytes.push(b'x'),
            Damage::BitFlipped(permille) => {
                let at = bytes.len() * permille / 1000;
                if let Some(byte) = bytes.get_mut(at) {
                    *byte ^= 4;
                }
            }
        }
        fs::write(path, bytes).expect("a writable folder");
    }
}

/// Returns the files of a checkpoint, with numbers removed from their names.
fn files(directory: &Path) -> Vec<(String, PathBuf)> {
    let mut files: Vec<(String, PathBuf)> = fs::read_dir(directory)
        .expect("a checkpoint")
        .map(|entry| {
            let path = entry.expect("a checkpoint").path();
            let name = path
                .file_name()
                .unwrap_or_default()
                .to_string_lossy()
                .into_owned();
            (
                name.trim_end_matches(|c: char| c.is_ascii_digit())
                    .to_owned(),
                path,
            )
        })
        .collect();
    files.sort();
    files
}

/// Damages every kind of file in the checkpoints of these tasks, one after the other; returns the kinds.
fn damage_everything<T, J: Fn() -> Job<T>>(test: &JobTest<J>, boundary: u64) -> BTreeSet<String> {
    let schedule = Schedule::Once(Interruption {
        boundary,
        how: Preemption::Checkpoint,
    });
    let expected = test.run();
    let kinds = RefCell::new(BTreeSet::new());
    let look = |directory: &Path| {
        kinds
            .borrow_mut()
            .extend(files(directory).into_iter().map(|(kind, _)| kind))
    };
    let ran = Trial::new(test).tampering(&look).run(&schedule);
    assert_eq!(
        (ran.output.parts, ran.complaints),
        (expected.parts.clone(), vec![])
    );
    for kind in kinds.borrow().iter() {
        for damage in DAMAGES {
            let inflicted = RefCell::new(0);
            let tamper = |directory: &Path| {
                let all = files(directory);
                if let Some((_, path)) = all.iter().find(|(name, _)| name == kind)
                    && !(matches!(
                        damage,
                        Damage::Emptied | Damage::BitFlipped(_) | Damage::LastByteCut
                    ) && fs::metadata(path).expect("a file").len() == 0)
                {
                    damage.inflict(path);
                    *inflicted.borrow_mut() += 1;
                }
            };
            let ran = Trial::new(test).tampering(&tamper).run(&schedule);
            assert!(
                ran.output.parts == expected.parts,
                "{kind} {damage:?}: {:?}",
                ran.complaints
            );
            let inflicted = *inflicted.borrow();
            assert!(
                ran.complaints.len() >= inflicted,
                "{kind} {damage:?} went unnoticed: {:?}",
                ran.complaints
            );
        }
    }
    kinds.into_inner()
}

fn kinds(names: &[&str]) -> BTreeSet<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

fn lines_by_word() -> Job {
    Job::text()
        .map(|line: &str, out: &mut Emit<String, String>| {
            words(line).for_each(|word| out.emit(word, line))
        })
        .reduce(|word, lines, out| {
            while let Some(line) = lines.next() {
                out.emit(word, line);
            }
        })
}

#[test]
fn damaged_files_of_merging_job_fail() {
    let test = JobTest::new(lines_by_word)
        .input(LINES)
        .split_size(15)
        .fan_in(2);
    let found = damage_everything(&test, 2);
    assert!(
        found.contains("checkpoint") && found.contains("part") && found.len() >= 4,
        "{found:?}"
    );
}

#[test]
fn damaged_files_of_map_only_job_fail() {
    let test = JobTest::new(|| Job::text().map_only(|line: &str, out| out.emit(line, line.len())))
        .input(LINES);
    assert_eq!(damage_everything(&test, 3), kinds(&["checkpoint", "part"]));
}

#[test]
fn damaged_files_of_block_format_fail() {
    let test = JobTest::new(|| {
        Job::text()
            .map(|line: &str, out: &mut Emit<u64, String>| out.emit(line.len() as u64, line))
            .output(Records::<u64, String>::default())
            .reduce(|length, lines, out| {
                while let Some(line) = lines.next() {
                    out.emit(length, line);
                }
            })
    });
    damage_everything(&test.input(LINES), 4);
}
