//! A plain sort of rows in one process, to measure the overhead of our processes, checksums and commits. It maps
//! the input, sorts references of 12 bytes, gathers the rows and writes them, with all threads in each step.
//!
//! A crash may leave an incomplete output.
#![allow(unsafe_code)] // maps the input

use std::fs::File;
use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;
use std::thread;

use memmap2::Mmap;
use napreduce_protocol::printing::print_error;

use crate::jobs::called;

/// The program name under which this binary is the bare sort.
pub(super) const BARE_SORT_PROGRAM: &str = "nap-lab-bare-sort";
const ROW_BYTES: usize = 100;
const KEY_BYTES: usize = 10;
/// Bytes of one write of the output.
const WRITE_BYTES: usize = 4 << 20;
/// Sampled rows to divide the rows among threads.
const SAMPLES: usize = 4096;

/// A row: the first 8 bytes of its key, and its number. Two halves, since a 64-bit field would make it 16
/// bytes long.
#[derive(Clone, Copy)]
struct Reference {
    high: u32,
    low: u32,
    row: u32,
}

impl Reference {
    fn head(self) -> u64 {
        u64::from(self.high) << 32 | u64::from(self.low)
    }
}

/// Whether this process is the bare sort.
pub fn bare_sort_requested() -> bool {
    called(BARE_SORT_PROGRAM)
}

/// The main function of the bare sort: `INPUT OUTPUT-FOLDER THREADS`.
pub fn bare_sort_program() -> ExitCode {
    let arguments: Vec<_> = std::env::args_os().skip(1).collect();
    let [input, output, threads] = arguments.as_slice() else {
        print_error(format_args!(
            "usage: {BARE_SORT_PROGRAM} INPUT OUTPUT-FOLDER THREADS"
        ));
        return ExitCode::from(2);
    };
    let Some(threads) = threads
        .to_str()
        .and_then(|text| text.parse().ok())
        .filter(|count| *count > 0)
    else {
        print_error(format_args!(
            "{BARE_SORT_PROGRAM}: THREADS must be a positive number"
        ));
        return ExitCode::from(2);
    };
    match sort(Path::new(input), Path::new(output), threads) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            print_error(format_args!("{BARE_SORT_PROGRAM}: {error}"));
            ExitCode::FAILURE
        }
    }
}

fn sort(input: &Path, output: &Path, threads: usize) -> io::Result<()> {
    let unreadable =
        |error: io::Error| io::Error::other(format!("cannot read {}: {error}", input.display()));
    let file = File::open(input).map_err(unreadable)?;
    // SAFETY: the experiment that made the file does not change it while this runs.
    let map = unsafe { Mmap::map(&file) }.map_err(unreadable)?;
    let rows = map.as_chunks::<ROW_BYTES>().0;
    if rows.len() * ROW_BYTES != map.len() || u32::try_from(rows.len()).is_err() {
        return Err(io::Error::other(format!(
            "{} bytes are not whole rows of {ROW_BYTES}",
            map.len()
        )));
    }
    let cuts = cuts(rows, threads);
    let share = rows.len().div_ceil(threads).max(1);
    let parts: Vec<Vec<Vec<Reference>>> = thread::scope(|scope| {
        let read: Vec<_> = (0..threads)
            .map(|thread| (thread * share).min(rows.len())..((thread + 1) * share).min(rows.len()))
            .map(|range| scope.spawn(|| refer(rows, range, &cuts)))
            .collect();
        read.into_iter()
            .map(|thread| thread.join().expect("it does not panic"))
            .collect()
    });
    thread::scope(|scope| {
        let written: Vec<_> = (0..threads)
            .map(|part| {
                let references: Vec<&[Reference]> =
                    parts.iter().map(|read| read[part].as_slice()).collect();
                let path = output.join(format!("part-r-{part:05}"));
                scope.spawn(move || {
                    let unwritable = |error| {
                        io::Error::other(format!("cannot write {}: {error}", path.display()))
                    };
                    write(rows, references.concat(), &path).map_err(unwritable)
                })
            })
            .collect();
        written
            .into_iter()
            .try_for_each(|thread| thread.join().expect("it does not panic"))
    })
}

fn head(row: &[u8; ROW_BYTES]) -> u64 {
    row.first_chunk()
        .map_or(0, |head| u64::from_be_bytes(*head))
}

/// The first head of each thread's part except the first.
fn cuts(rows: &[[u8; ROW_BYTES]], threads: usize) -> Vec<u64> {
    let step = (rows.len() / SAMPLES).max(1);
    let mut heads: Vec<u64> = rows.iter().step_by(step).map(head).collect();
    heads.sort_unstable();
    (1..threads)
        .map(|part| {
            heads
                .get(part * heads.len() / threads)
                .copied()
                .unwrap_or(u64::MAX)
        })
        .collect()
}

/// References to the rows of a range, by the part that they belong to.
fn refer(
    rows: &[[u8; ROW_BYTES]],
    range: std::ops::Range<usize>,
    cuts: &[u64],
) -> Vec<Vec<Reference>> {
    let expected = range.len() / (cuts.len() + 1) * 9 / 8;
    let mut parts: Vec<Vec<Reference>> = (0..=cuts.len())
        .map(|_| Vec::with_capacity(expected))
        .collect();
    for row in range {
        let head = head(&rows[row]);
        let part = cuts.iter().filter(|cut| head >= **cut).count();
        parts[part].push(Reference {
            high: (head >> 32) as u32,
            low: head as u32,
            row: row as u32,
        });
    }
    parts
}

fn write(rows: &[[u8; ROW_BYTES]], mut references: Vec<Reference>, path: &Path) -> io::Result<()> {
    references.sort_unstable_by(|a, b| {
        let rest = |reference: &Reference| &rows[reference.row as usize][8..KEY_BYTES];
        a.head().cmp(&b.head()).then_with(|| rest(a).cmp(rest(b)))
    });
    let mut file = File::create(path)?;
    let mut gathered = Vec::with_capacity(WRITE_BYTES);
    for some in references.chunks(WRITE_BYTES / ROW_BYTES) {
        gathered.clear();
        some.iter()
            .for_each(|reference| gathered.extend_from_slice(&rows[reference.row as usize]));
        file.write_all(&gathered)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use rand::{Rng, SeedableRng};

    use super::*;

    /// The files of an output, one after the other.
    fn sorted(rows: &[u8], threads: usize) -> Vec<u8> {
        let folder = tempfile::tempdir().unwrap();
        let input = folder.path().join("input");
        fs::write(&input, rows).unwrap();
        sort(&input, folder.path(), threads).unwrap();
        (0..threads)
            .flat_map(|part| fs::read(folder.path().join(format!("part-r-{part:05}"))).unwrap())
            .collect()
    }

    #[test]
    fn rows_come_out_in_the_order_of_their_keys() {
        let mut random = rand_pcg::Pcg64Mcg::seed_from_u64(5);
        for (count, letters) in [(0, 9), (1, 9), (2, 1), (1000, 2), (5000, 200)] {
            let mut rows: Vec<[u8; ROW_BYTES]> = (0..count)
                .map(|_| std::array::from_fn(|_| random.random_range(0_u8..letters)))
                .collect();
            for threads in 1..=3 {
                let output = sorted(rows.as_flattened(), threads);
                let (found, rest) = output.as_chunks::<ROW_BYTES>();
                assert!(
                    rest.is_empty() && found.is_sorted_by_key(|row| &row[..KEY_BYTES]),
                    "{count}"
                );
                let mut found = found.to_vec();
                found.sort_unstable();
                rows.sort_unstable();
                assert_eq!(found, rows, "{count} rows, {threads} threads");
            }
        }
    }

    #[test]
    fn unsortable_input_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let input = folder.path().join("input");
        let check = |output: &str, expected: &str| {
            let error = sort(&input, &folder.path().join(output), 1)
                .unwrap_err()
                .to_string();
            assert!(error.contains(expected), "{error}");
        };
        check(
            "",
            &format!("cannot read {}: No such file", input.display()),
        );
        fs::write(&input, [7; 150]).unwrap();
        check("", "150 bytes are not whole rows of 100");
        fs::write(&input, [7; 200]).unwrap();
        check("missing", "missing/part-r-00000: No such file");
    }
}
