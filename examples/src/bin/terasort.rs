//! Sorts the rows of the sort benchmark: `terasort INPUT... --output DIR --format ascii|hadoop|gensort`.
//!
//! A row has 10 bytes of key and 90 bytes of payload.

use clap::{Args, ValueEnum};
use napreduce::codec::Bytes;
use napreduce::output::FixedBytes;
use napreduce::{Emit, Job, Program};
use serde::{Deserialize, Serialize};

const ROW_BYTES: usize = 100;

/// The formats of datagen. A row has 100 bytes and begins with the key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
enum RowFormat {
    /// Printable rows that end with CR LF.
    Ascii,
    /// Hadoop TeraGen's binary rows.
    Hadoop,
    /// Binary rows of gensort 1.5.
    Gensort,
}

#[derive(Debug, Args, Serialize, Deserialize)]
struct Rows {
    /// Format of the rows, in input and output
    #[arg(long, value_enum, default_value = "ascii")]
    format: RowFormat,
}

fn terasort(rows: &Rows) -> Job<Vec<u8>> {
    let printable = rows.format == RowFormat::Ascii;
    Job::fixed_records(ROW_BYTES)
        .map(move |row: &[u8], out: &mut Emit<Bytes<10>, Bytes<90>>| {
            if printable && !row.ends_with(b"\r\n") {
                return Err(
                    "row does not end with CR LF; for binary rows pass --format hadoop or gensort",
                );
            }
            let (key, payload) = row
                .split_first_chunk()
                .ok_or("row is shorter than its key")?;
            out.emit(
                key,
                payload
                    .try_into()
                    .map_err(|_| "row does not have 100 bytes")?,
            );
            Ok(())
        })
        .total_order()
        .output(FixedBytes { length: ROW_BYTES })
        .reduce(|key, payloads, out| {
            while let Some(payload) = payloads.next() {
                out.write_parts(key, payload);
            }
        })
}

fn main() -> std::process::ExitCode {
    Program::new()
        .about("Sorts the rows of the sort benchmark, in total order over all part files")
        .examples(
            "datagen tera --records 10M --output rows && terasort rows --output sorted
             terasort rows-binary --output sorted --format hadoop --reduces 8",
        )
        .main(terasort)
}
