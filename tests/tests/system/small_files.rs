//! Jobs over many small files: combined splits, counters, and order.

use std::io::Write;

use napreduce_tests::{Ended, Folder, counter, joined, parts, program, run};

/// Writes sixty files, every second of which is compressed.
fn files(folder: &Folder) -> u64 {
    let mut stored = 0;
    for number in 0..60 {
        let text = format!("first of {number}\nsecond of {number}\n");
        let bytes = if number % 2 == 0 {
            text.into_bytes()
        } else {
            let mut encoder =
                flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
            encoder.write_all(text.as_bytes()).expect("memory takes it");
            encoder.finish().expect("memory takes it")
        };
        stored += bytes.len() as u64;
        folder.write(
            &format!(
                "many/{number:02}{}",
                if number % 2 == 0 { "" } else { ".gz" }
            ),
            bytes,
        );
    }
    stored
}

fn copy(folder: &Folder, more: &[&str]) -> Ended {
    let mut command = program("testjobs");
    command.current_dir(folder.root()).args([
        "many",
        "--job",
        "slow-records",
        "--number",
        "0",
        "--quiet",
    ]);
    run(command.args(["--output", "out", "--overwrite"]).args(more))
}

#[test]
fn combined_small_files_keep_output_order() {
    let folder = Folder::new();
    let stored = files(&folder);
    copy(&folder, &["--conf", "combine-files=false"]).succeeded();
    let expected = joined(&folder.path("out"));
    let alone = parts(&folder.path("out")).len();
    assert_eq!(alone, 60);
    copy(&folder, &[]).succeeded();
    assert!(joined(&folder.path("out")) == expected);
    assert_eq!(counter(&folder.path("out"), "TOTAL_LAUNCHED_MAPS"), 9);
    assert_eq!(counter(&folder.path("out"), "BYTES_READ"), stored);
    assert_eq!(counter(&folder.path("out"), "MAP_INPUT_RECORDS"), 120);
}

#[test]
fn error_in_combined_split_names_file() {
    let folder = Folder::new();
    files(&folder);
    folder.write("many/31.gz", [&[0x1f, 0x8b][..], b"neither"].concat());
    copy(&folder, &[]).failed(1, &["31.gz is damaged"]);
    folder.write("many/31.gz", "");
    folder.write("many/32", [0xff, b'\n']);
    copy(&folder, &[]).failed(1, &["32 has invalid UTF-8 at byte 0"]);
}

#[test]
fn command_runs_once_per_small_file() {
    let folder = Folder::new();
    for number in 0..20 {
        folder.write(&format!("many/{number:02}"), "x\n");
    }
    let mut command = program("nap");
    command.current_dir(folder.root()).args([
        "streaming",
        "--input",
        "many",
        "--output",
        "out",
        "--quiet",
    ]);
    run(command.args([
        "--mapper",
        "cat > /dev/null; basename $NAPREDUCE_INPUT_FILE",
    ]))
    .succeeded();
    let expected: String = (0..20).map(|number| format!("{number:02}\n")).collect();
    assert_eq!(
        String::from_utf8_lossy(&joined(&folder.path("out"))),
        expected
    );
    assert!(counter(&folder.path("out"), "TOTAL_LAUNCHED_MAPS") < 20);
}
