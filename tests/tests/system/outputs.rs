//! Outputs of wordcount and terasort equal a naive reference, byte for byte, for any number of maps, reduces
//! and slots and any memory.

use std::collections::BTreeMap;
use std::path::Path;

use datagen::tera;
use napreduce_tests::{Folder, counter, joined, parts, program, run, sorted_lines};
use rand::Rng;
use rand::SeedableRng;
use rand_pcg::Pcg64;

const MAPS: [u64; 3] = [1, 2, 7];
const REDUCES: [usize; 3] = [1, 2, 5];
const MEMORIES: [&str; 3] = ["1MiB", "4MiB", "256MiB"];
/// Maps, split size for that number of maps, reduces, memory and slots.
type Combination = (u64, u64, usize, &'static str, u32);

/// Returns every combination of maps, reduces and memory, alternating between one slot and two, so that each
/// value occurs with both. A cluster ignores the slots.
fn combinations(length: u64) -> impl Iterator<Item = Combination> {
    let all = MAPS.into_iter().flat_map(move |maps| {
        REDUCES.into_iter().flat_map(move |reduces| {
            MEMORIES
                .into_iter()
                .map(move |memory| (maps, length.div_ceil(maps), reduces, memory))
        })
    });
    all.zip([1, 2].into_iter().cycle())
        .map(|((maps, split_size, reduces, memory), slots)| {
            (maps, split_size, reduces, memory, slots)
        })
}

fn words(seed: u64, bytes: usize) -> String {
    let mut random = Pcg64::seed_from_u64(seed);
    let mut text = String::new();
    while text.len() < bytes {
        let length = random.random_range(1..24);
        let word: String = (0..length)
            .map(|_| char::from(random.random_range(b'a'..b'e')))
            .collect();
        text.push_str(&word);
        text.push(if random.random_ratio(1, 9) { '\n' } else { ' ' });
    }
    text
}

fn count_naively(text: &str) -> String {
    let mut counts = BTreeMap::<&str, u64>::new();
    for word in text.split_ascii_whitespace() {
        *counts.entry(word).or_default() += 1;
    }
    counts
        .iter()
        .map(|(word, count)| format!("{word}\t{count}\n"))
        .collect()
}

#[test]
fn wordcount_with_every_setting_equals_reference() {
    let folder = Folder::new();
    let text = words(7, 3 << 20);
    let expected = count_naively(&text);
    let input = folder.write("text", &text);
    for (maps, split_size, reduces, memory, slots) in combinations(text.len() as u64) {
        let case = format!("{maps} maps, {reduces} reduces, {memory}, {slots} slots");
        let output = folder.path(&format!("{maps}-{reduces}-{memory}-{slots}"));
        let mut command = program("wordcount");
        command
            .arg(&input)
            .arg("--output")
            .arg(&output)
            .arg("--quiet");
        command.args([
            "--split-size",
            &split_size.to_string(),
            "--reduces",
            &reduces.to_string(),
        ]);
        command.args(["--task-memory", memory, "--slots", &slots.to_string()]);
        run(&mut command).succeeded();

        assert_eq!(counter(&output, "TOTAL_LAUNCHED_MAPS"), maps, "{case}");
        let parts = parts(&output);
        assert_eq!(parts.len(), reduces, "{case}");
        for (name, bytes) in &parts {
            assert!(
                sorted_lines(bytes) == *bytes,
                "{case}: {name} is not in order"
            );
        }
        assert!(
            sorted_lines(&joined(&output)) == expected.as_bytes(),
            "{case}: other counts than the reference"
        );
        std::fs::remove_dir_all(&output).expect("the output can be removed");
    }
}

fn rows(path: &Path, format: tera::Format, count: u64) -> Vec<[u8; 100]> {
    let mut rows = Vec::new();
    let mut row = [0; 100];
    for number in 0..count {
        tera::write_record(format, number, &mut row);
        rows.push(row);
    }
    std::fs::write(path, rows.concat()).expect("rows can be written");
    rows
}

#[test]
fn terasort_with_every_setting_equals_reference() {
    let folder = Folder::new();
    // The formats differ in their keys; other parameters are tested with one format.
    for (format, name) in [
        (tera::Format::Ascii, "ascii"),
        (tera::Format::Hadoop, "hadoop"),
        (tera::Format::Gensort, "gensort"),
    ] {
        let input = folder.path(name);
        let mut expected = rows(&input, format, 20_000);
        expected.sort();
        let expected = expected.concat();
        let is_tried = |maps, reduces| name == "hadoop" || (maps, reduces) == (MAPS[2], REDUCES[2]);
        let combinations = combinations(expected.len() as u64);
        for (maps, split_size, reduces, memory, slots) in
            combinations.filter(|&(maps, _, reduces, ..)| is_tried(maps, reduces))
        {
            let case = format!("{name}, {maps} maps, {reduces} reduces, {memory}, {slots} slots");
            let output = folder.path("sorted");
            let mut command = program("terasort");
            command.arg(&input).arg("--output").arg(&output).args([
                "--quiet",
                "--overwrite",
                "--format",
                name,
            ]);
            command.args([
                "--split-size",
                &split_size.to_string(),
                "--reduces",
                &reduces.to_string(),
            ]);
            command.args(["--task-memory", memory, "--slots", &slots.to_string()]);
            run(&mut command).succeeded();

            assert_eq!(counter(&output, "TOTAL_LAUNCHED_MAPS"), maps, "{case}");
            assert_eq!(parts(&output).len(), reduces, "{case}");
            assert!(joined(&output) == expected, "{case}: not the sorted rows");
        }
    }
}

/// Runs wordcount in a folder, with arguments as a user types them.
fn count_in(folder: &Path, arguments: &[&str]) -> napreduce_tests::Ended {
    run(program("wordcount")
        .current_dir(folder)
        .args(arguments)
        .args(["--overwrite", "--quiet"]))
}

#[test]
fn overwrite_of_input_is_refused_in_any_spelling() {
    let folder = Folder::new();
    let input = folder.write("w/part-r-00000", "alpha beta\n");
    let w = folder.path("w");
    std::os::unix::fs::symlink(&w, folder.path("link")).expect("a link");
    std::fs::hard_link(&input, folder.path("hard")).expect("a link");
    std::os::unix::fs::symlink(&input, folder.path("soft")).expect("a link");
    let w_text = w.display().to_string();
    let input_text = input.display().to_string();
    let inputs = [
        "part-r-00000",
        "./part-r-00000",
        ".",
        "../w/part-r-00000",
        "../link/part-r-00000",
        "../hard",
        "../soft",
        "part-*",
        "../*/part-r-0000?",
        input_text.as_str(),
    ];
    for input_name in inputs {
        for output in [".", "./", "../w", "../link", "../link/.", w_text.as_str()] {
            let ended = count_in(&w, &[input_name, "--output", output]);
            ended.failed(2, &["it is or contains the job's input"]);
            assert_eq!(
                std::fs::read_to_string(&input).expect("it is there"),
                "alpha beta\n"
            );
            assert_eq!(
                std::fs::read_dir(&w).expect("a folder").count(),
                1,
                "{input_name} to {output}"
            );
        }
    }
    let side_file = [
        "../other",
        "--files",
        "part-r-00000#stop.txt",
        "--output",
        ".",
    ];
    folder.write("other", "alpha\n");
    count_in(&w, &side_file).failed(2, &["it is or contains the job's input", "part-r-00000"]);
    assert_eq!(
        std::fs::read_to_string(&input).expect("it is there"),
        "alpha beta\n"
    );
    count_in(&w, &["part-r-00000", "--output", "out"]).succeeded();
}
