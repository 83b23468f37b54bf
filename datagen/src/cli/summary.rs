//! What `datagen` says when it is done.
//!
//! Owns the wording of summaries and of the validator's report, as text and as JSON. Does not own where they
//! go.

use datagen::output::Written;
use datagen::validate::{SortKey, ValidationReport};
use indicatif::{DecimalBytes, HumanCount};
use serde_json::json;
use std::io::{self, Write};
use std::path::Path;
use std::time::Duration;

/// A count with separators: `10,000,000`.
pub(crate) fn thousands(count: u64) -> String {
    HumanCount(count).to_string()
}

/// One line on what a generator has written.
pub(crate) fn of_written(what: &str, directory: &Path, written: &Written, elapsed: Duration) -> String {
    let files = written.files.len();
    let plural = if files == 1 { "file" } else { "files" };
    let seconds = elapsed.as_secs_f64();
    let rate = DecimalBytes((written.bytes as f64 / seconds.max(0.001)) as u64);
    format!(
        "{}: {what}, {} in {files} {plural}, {seconds:.2} s, {rate}/s",
        directory.display(),
        DecimalBytes(written.bytes)
    )
}

/// The report as one fact per line, name first.
pub(crate) fn print_report(report: &ValidationReport, out: &mut impl Write) -> io::Result<()> {
    writeln!(out, "files       {}", report.files)?;
    writeln!(out, "records     {}", report.records)?;
    write!(out, "unordered   {}", report.unordered)?;
    if let Some(place) = &report.first_unordered {
        write!(out, "  (first: {}, record {})", place.file.display(), place.record)?;
    }
    writeln!(out, "\nduplicates  {}", report.duplicates)?;
    writeln!(out, "checksum    {}", report.checksum)?;
    for (name, key) in [("first key", &report.first), ("last key ", &report.last)] {
        if let Some(key) = key {
            writeln!(out, "{name}   {}  {}", hex(key), key.escape_ascii())?;
        }
    }
    out.flush()
}

/// The report as one JSON object; checksum and keys are hex strings.
pub(crate) fn print_json(report: &ValidationReport, out: &mut impl Write) -> io::Result<()> {
    let place = report.first_unordered.as_ref();
    let object = json!({
        "files": report.files,
        "records": report.records,
        "unordered": report.unordered,
        "first_unordered": place.map(|place| json!({ "file": place.file.to_string_lossy(), "record": place.record })),
        "duplicates": report.duplicates,
        "checksum": report.checksum.to_string(),
        "first_key": report.first.as_ref().map(hex),
        "last_key": report.last.as_ref().map(hex),
    });
    writeln!(out, "{object}")?;
    out.flush()
}

fn hex(key: &SortKey) -> String {
    key.iter().map(|byte| format!("{byte:02x}")).collect()
}
