//! Summaries of generators and the validation report, as text and as JSON.

use datagen::output::WrittenFiles;
use datagen::validate::{SortKey, ValidationReport};
use indicatif::{DecimalBytes, HumanCount};
use serde_json::json;
use std::io::{self, Write};
use std::path::Path;
use std::time::Duration;

/// Formats a count with separators: `10,000,000`.
pub(crate) fn thousands(count: u64) -> String {
    HumanCount(count).to_string()
}

/// Summarizes a generator's output in one line.
pub(crate) fn of_output(
    data: &str,
    directory: &Path,
    written: &WrittenFiles,
    elapsed: Duration,
) -> String {
    let files = written.files.len();
    let plural = if files == 1 { "file" } else { "files" };
    let seconds = elapsed.as_secs_f64();
    let rate = DecimalBytes((written.bytes as f64 / seconds.max(0.001)) as u64);
    format!(
        "{}: {data}, {} in {files} {plural}, {seconds:.2} s, {rate}/s",
        directory.display(),
        DecimalBytes(written.bytes)
    )
}

/// Prints the report, one value per line.
pub(crate) fn print_report(report: &ValidationReport, out: &mut impl Write) -> io::Result<()> {
    writeln!(out, "files       {}", report.files)?;
    writeln!(out, "records     {}", report.records)?;
    write!(out, "unordered   {}", report.unordered)?;
    if let Some(position) = &report.first_unordered {
        write!(
            out,
            "  (first: {}, record {})",
            position.file.display(),
            position.record
        )?;
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

/// Prints the report as one JSON object; the checksum and keys are hex strings.
pub(crate) fn print_json(report: &ValidationReport, out: &mut impl Write) -> io::Result<()> {
    let position = report.first_unordered.as_ref();
    let object = json!({
        "files": report.files,
        "records": report.records,
        "unordered": report.unordered,
                "first_unordered": position.map(|position| json!({ "file": position.file.to_string_lossy(), "record": position.record })),
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
