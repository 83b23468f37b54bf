//! Output directories: existing files, overwriting and cleanup after an error, tested with `tera::generate`.

use datagen::output::{FILES_MAX, OutputError, OutputSettings, WrittenFiles};
use datagen::tera::{self, Format, TeraError, TeraSettings};
use std::fs;
use std::path::Path;

fn write(output: OutputSettings) -> Result<WrittenFiles, OutputError> {
    match tera::generate(&TeraSettings {
        records: 10,
        start: 0,
        format: Format::Ascii,
        output,
    }) {
        Ok(written) => Ok(written),
        Err(TeraError::Output(error)) => Err(error),
        Err(error) => panic!("{error}"),
    }
}

fn names(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).unwrap();
    let mut names: Vec<String> = entries
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

#[test]
fn output_missing_directory_is_created_with_parents() {
    let root = tempfile::tempdir().unwrap();
    let directory = root.path().join("a/b/c");
    let written = write(OutputSettings {
        files: 2,
        ..OutputSettings::new(&directory)
    })
    .unwrap();
    assert_eq!(
        written.files,
        [directory.join("part-00000"), directory.join("part-00001")]
    );
    assert_eq!(names(&directory), ["part-00000", "part-00001"]);
}

#[test]
fn output_empty_directory_is_accepted() {
    let root = tempfile::tempdir().unwrap();
    assert!(write(OutputSettings::new(root.path())).is_ok());
}

#[test]
fn output_existing_without_overwrite_is_kept() {
    let root = tempfile::tempdir().unwrap();
    fs::write(root.path().join("part-00000"), "old").unwrap();
    let error = write(OutputSettings::new(root.path())).unwrap_err();
    let expected = format!(
        "output directory {} exists; pass --overwrite or choose another",
        root.path().display()
    );
    assert_eq!(error.to_string(), expected);
    assert_eq!(
        fs::read_to_string(root.path().join("part-00000")).unwrap(),
        "old"
    );
}

#[test]
fn overwrite_replaces_all_earlier_files() {
    let root = tempfile::tempdir().unwrap();
    for name in [
        "part-00000",
        "part-00007",
        "part-r-00000",
        "_SUCCESS",
        ".part-00003.partial",
    ] {
        fs::write(root.path().join(name), "old").unwrap();
    }
    write(OutputSettings {
        files: 2,
        overwrite: true,
        ..OutputSettings::new(root.path())
    })
    .unwrap();
    assert_eq!(names(root.path()), ["part-00000", "part-00001"]);
    assert_eq!(
        fs::metadata(root.path().join("part-00000")).unwrap().len(),
        500
    );
}

#[test]
fn overwrite_foreign_file_is_kept() {
    let root = tempfile::tempdir().unwrap();
    fs::write(root.path().join("part-00000"), "old").unwrap();
    fs::write(root.path().join("thesis.tex"), "precious").unwrap();
    let error = write(OutputSettings {
        overwrite: true,
        ..OutputSettings::new(root.path())
    })
    .unwrap_err();
    assert!(
        error.to_string().contains("thesis.tex is not a part file"),
        "{error}"
    );
    assert_eq!(names(root.path()), ["part-00000", "thesis.tex"]);
}

#[test]
fn stopped_run_leaves_no_directory() {
    let root = tempfile::tempdir().unwrap();
    let output = OutputSettings::new(root.path().join("in"));
    output.watch.stop();
    assert!(matches!(
        write(output),
        Err(OutputError::Interrupted { .. })
    ));
    assert!(!root.path().join("in").exists());
}

#[test]
fn stopped_run_keeps_earlier_output() {
    let root = tempfile::tempdir().unwrap();
    fs::write(root.path().join("part-00000"), "old").unwrap();
    let output = OutputSettings {
        overwrite: true,
        ..OutputSettings::new(root.path())
    };
    output.watch.stop();
    assert!(matches!(
        write(output),
        Err(OutputError::Interrupted { .. })
    ));
    assert_eq!(names(root.path()), ["part-00000"]);
    assert_eq!(
        fs::read_to_string(root.path().join("part-00000")).unwrap(),
        "old"
    );
}

#[test]
fn output_path_of_a_file_is_rejected() {
    let root = tempfile::tempdir().unwrap();
    let file = root.path().join("file");
    fs::write(&file, "").unwrap();
    assert!(matches!(
        write(OutputSettings::new(&file)),
        Err(OutputError::NotDirectory { .. })
    ));
    let error = write(OutputSettings::new(file.join("below"))).unwrap_err();
    assert!(error.to_string().contains("below"), "{error}");
}

#[test]
fn output_file_count_out_of_range_is_rejected() {
    let root = tempfile::tempdir().unwrap();
    for files in [0, FILES_MAX + 1] {
        let result = write(OutputSettings {
            files,
            ..OutputSettings::new(root.path())
        });
        assert!(
            matches!(result, Err(OutputError::FileCount { .. })),
            "{files}"
        );
    }
    assert!(names(root.path()).is_empty());
}

#[test]
fn watch_counts_every_byte() {
    let root = tempfile::tempdir().unwrap();
    let output = OutputSettings::new(root.path().join("in"));
    let watch = output.watch.clone();
    write(output).unwrap();
    assert_eq!((watch.done(), watch.total()), (1000, 1000));
}
