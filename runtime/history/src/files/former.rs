//! Recordings of version 1 (`.napt`), a binary column format of programs before 0.3.0. Only `nap history convert`
//! reads them; nothing writes them.
//!
//! ```text
//! file    = "NAPTREC1" version:u32 frame* trailer footer          numbers are little-endian
//! frame   = length:u32 kind:u16 crc32c:u32 raw:u32 lz4            the crc covers all else; the lz4 block holds columns
//! columns = length:u32 description column*                        JSON: rows, and name, type, bytes of each column
//! column  = present? values                                       one bit per row if the column is optional
//! ```
//!
//! Types are `number` (LEB128), `difference` (zigzag LEB128 of the difference to the previous value) and `text`
//! (LEB128 of all lengths, then all bytes). The trailer is a frame of kind 65535. A file without a trailer is valid up
//! to its first damaged frame.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use napreduce_engine::{AttemptId, Primitive};
use napreduce_protocol::{AttemptFigures, PreemptionEnd, WorkerPhase, read_regular};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::recording::{RECORDING, RecordedRows, RecordingError, RecordingWriter};

/// The extension of version 1.
pub(crate) const FORMER_RECORDING: &str = ".napt";
const FILE_BYTES_MAX: u64 = 1 << 30;
const FRAME_BYTES_MAX: usize = 64 << 20;
const FRAME_ROWS_MAX: usize = 16_384;
const TRAILER: u16 = u16::MAX;

/// A row by column name.
type Row = Map<String, Value>;

#[derive(Deserialize)]
struct Description {
    rows: usize,
    columns: Vec<Column>,
}

#[derive(Deserialize)]
struct Column {
    name: String,
    #[serde(rename = "type")]
    kind: String,
    #[serde(default)]
    optional: bool,
    bytes: usize,
}

/// The result of converting one file.
#[derive(Debug)]
pub struct Converted {
    /// Removed after a complete conversion.
    pub from: PathBuf,
    pub to: PathBuf,
    /// Warnings: rows or files that could not be converted.
    pub remarks: Vec<String>,
}

/// Converts every version 1 recording of a history or a copy of one to the current version, and removes the files
/// that were read completely. The cluster must not run.
///
/// # Errors
/// Fails if the directory cannot be listed. A file that cannot be read or written stays and has a remark.
pub fn convert_history(directory: &Path) -> Result<Vec<Converted>, RecordingError> {
    let places = ["coordinator/history", "history", ""].map(|place| directory.join(place));
    let history = places
        .into_iter()
        .find(|place| place.is_dir())
        .unwrap_or_else(|| directory.to_owned());
    let days = history.join("cluster");
    let mut files = Vec::new();
    for folder in [Some(&history), days.is_dir().then_some(&days)]
        .into_iter()
        .flatten()
    {
        for entry in fs::read_dir(folder)? {
            let path = entry?.path();
            files.extend(
                path.to_str()
                    .is_some_and(|name| name.ends_with(FORMER_RECORDING))
                    .then_some(path),
            );
        }
    }
    files.sort();
    let convert = |from: PathBuf| {
        let to = from.with_extension(&RECORDING[1..]);
        let remarks = convert(&from, &to).unwrap_or_else(|error| vec![error.to_string()]);
        Converted { from, to, remarks }
    };
    Ok(files.into_iter().map(convert).collect())
}

/// Converts a file; returns warnings.
fn convert(from: &Path, to: &Path) -> Result<Vec<String>, RecordingError> {
    let mut rows = read(&read_regular(from, FILE_BYTES_MAX)?)?;
    match RecordedRows::open(to) {
        Err(RecordingError::Io(error)) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(error),
        // A newer coordinator has continued the day.
        Ok(later) if !(later.queues.is_empty() && later.workers.is_empty()) => {
            let last = rows.queues.last().map(|one| one.at_millis);
            rows.queues.extend(
                later
                    .queues
                    .into_iter()
                    .filter(|one| Some(one.at_millis) > last),
            );
            let new: Vec<_> = later
                .workers
                .into_iter()
                .filter(|one| !rows.workers.contains(one))
                .collect();
            rows.workers.extend(new);
        }
        Ok(_) => {
            return Ok(vec![format!(
                "{} exists; remove one of the two files",
                to.display()
            )]);
        }
    }
    let unfinished = to.with_extension("gz.unfinished");
    let written = || {
        let mut recording = RecordingWriter::new(BufWriter::new(File::create(&unfinished)?));
        recording.add_all(&rows)?;
        let mut out = recording.finish()?;
        out.flush()?;
        out.get_ref().sync_data()?;
        fs::rename(&unfinished, to)?;
        Ok(())
    };
    written().inspect_err(|_: &RecordingError| drop(fs::remove_file(&unfinished)))?;
    if rows.remarks.is_empty() {
        fs::remove_file(from)?;
    }
    Ok(rows.remarks)
}

/// Reads the rows of a file up to the first damaged frame.
fn read(bytes: &[u8]) -> Result<RecordedRows, RecordingError> {
    let Some((b"NAPTREC1\x01\0\0\0", mut rest)) = bytes.split_at_checked(12) else {
        return Err(RecordingError::NotVersion1);
    };
    let mut rows = RecordedRows::default();
    let mut moved = Moved::new();
    let mut has_trailer = false;
    while !rest.is_empty() {
        let at = bytes.len() - rest.len();
        let added = read_frame(&mut rest).and_then(|(kind, frame)| {
            for row in frame {
                add(kind, row, &mut rows, &mut moved)?;
            }
            Ok(kind)
        });
        match added {
            Ok(TRAILER) => {
                has_trailer = true;
                break;
            }
            Ok(_) => {}
            Err(what) => {
                rows.remarks
                    .push(format!("dropped all rows after byte {at}: {what}"));
                break;
            }
        }
    }
    // Today's file of cluster samples has no trailer.
    if !has_trailer && rows.remarks.is_empty() && rows.queues.is_empty() && rows.workers.is_empty()
    {
        rows.remarks
            .push("no trailer: the end of the file is missing".to_owned());
    }
    // The first recordings stored figures in rows of their own.
    for attempt in &mut rows.attempts {
        attempt.figures = attempt.figures.or(moved.get(&attempt.attempt).copied());
    }
    Ok(rows)
}

/// Splits the first frame off `rest`; returns its kind and rows.
fn read_frame(rest: &mut &[u8]) -> Result<(u16, Vec<Row>), String> {
    let (header, behind) = rest
        .split_first_chunk::<10>()
        .ok_or("the frame is truncated")?;
    let [l0, l1, l2, l3, k0, k1, checksum @ ..] = *header;
    let length = u32::from_le_bytes([l0, l1, l2, l3]) as usize;
    let kind = u16::from_le_bytes([k0, k1]);
    let (payload, behind) = behind
        .split_at_checked(length)
        .ok_or("the frame is truncated")?;
    if crc32c::crc32c_append(crc32c::crc32c(&header[..6]), payload) != u32::from_le_bytes(checksum)
    {
        return Err("checksum mismatch".to_owned());
    }
    *rest = behind;
    let (raw, block) = payload
        .split_first_chunk::<4>()
        .ok_or("the frame is truncated")?;
    let raw = u32::from_le_bytes(*raw) as usize;
    if kind == TRAILER {
        return Ok((kind, Vec::new()));
    }
    if raw > FRAME_BYTES_MAX {
        return Err(format!(
            "the frame has {raw} bytes (limit {FRAME_BYTES_MAX})"
        ));
    }
    let columns = lz4_flex::block::decompress(block, raw).map_err(|error| error.to_string())?;
    Ok((kind, read_rows(&columns)?))
}

fn read_rows(columns: &[u8]) -> Result<Vec<Row>, String> {
    let (length, rest) = columns
        .split_first_chunk::<4>()
        .ok_or("the column description is truncated")?;
    let cut = rest.split_at_checked(u32::from_le_bytes(*length) as usize);
    let (description, mut rest) = cut.ok_or("the column description is truncated")?;
    let description: Description =
        serde_json::from_slice(description).map_err(|error| error.to_string())?;
    if description.rows > FRAME_ROWS_MAX {
        return Err(format!(
            "the frame has {} rows (limit {FRAME_ROWS_MAX})",
            description.rows
        ));
    }
    let mut rows = vec![Row::new(); description.rows];
    for column in description.columns {
        let (bytes, behind) = rest
            .split_at_checked(column.bytes)
            .ok_or("a column is truncated")?;
        rest = behind;
        read_column(&column, bytes, &mut rows)
            .ok_or_else(|| format!("column {} is damaged", column.name))?;
    }
    Ok(rows)
}

/// Adds the values of a column to the rows that have one; `None` if the column is damaged.
fn read_column(column: &Column, bytes: &[u8], rows: &mut [Row]) -> Option<()> {
    let (bits, mut rest) = bytes.split_at_checked(if column.optional {
        rows.len().div_ceil(8)
    } else {
        0
    })?;
    let is_present = |row: usize| {
        bits.get(row / 8)
            .is_none_or(|byte| byte >> (row % 8) & 1 == 1)
    };
    let present: Vec<usize> = (0..rows.len()).filter(|row| is_present(*row)).collect();
    let mut numbers = Vec::with_capacity(present.len());
    for _ in &present {
        numbers.push(varint(&mut rest)?);
    }
    let mut before = 0_u64;
    for (row, number) in present.into_iter().zip(numbers) {
        let value = match column.kind.as_str() {
            "number" => number.into(),
            "difference" => {
                before = before.wrapping_add((number >> 1) ^ (number & 1).wrapping_neg());
                before.into()
            }
            "text" => {
                let (text, behind) = rest.split_at_checked(usize::try_from(number).ok()?)?;
                rest = behind;
                str::from_utf8(text).ok()?.into()
            }
            _ => return None,
        };
        rows[row].insert(column.name.clone(), value);
    }
    rest.is_empty().then_some(())
}

fn varint(rest: &mut &[u8]) -> Option<u64> {
    let mut value = 0;
    for place in 0..10 {
        let (&byte, behind) = rest.split_first()?;
        *rest = behind;
        value |= u64::from(byte & 0x7f).checked_shl(7 * place)?;
        if byte < 0x80 {
            return Some(value);
        }
    }
    None
}

/// Figures of attempts, from recordings with separate figure rows.
type Moved = HashMap<AttemptId, AttemptFigures>;

/// Adds a row. Columns are named like the fields, with the exceptions below.
fn add(kind: u16, mut row: Row, rows: &mut RecordedRows, moved: &mut Moved) -> Result<(), String> {
    if matches!(kind, 1..=4 | 9 | 10) {
        let id = attempt_id(&row, "").ok_or("a row without an attempt")?;
        row.insert("attempt".to_owned(), id);
    }
    let number = |row: &Row, name: &str| row.get(name).and_then(Value::as_u64);
    match kind {
        1 => {
            let launched = number(&row, "launched_millis").unwrap_or(0);
            let ended = number(&row, "took_millis").map(|took| launched.wrapping_add(took));
            let exact = |millis: u64, rest: u64| millis.wrapping_mul(1_000).wrapping_add(rest);
            let moments = number(&row, "launched_rest_micros").map(|rest| {
                let launched = exact(launched, rest);
                let started =
                    number(&row, "starting_micros").map(|starting| launched.wrapping_add(starting));
                let ended =
                    number(&row, "ended_rest_micros").map(|rest| exact(ended.unwrap_or(0), rest));
                json!({ "launched": launched, "started": started, "ended": ended })
            });
            let figures = row.contains_key("input_bytes").then(|| figures(&row));
            row.extend(fields(
                json!({ "ended_millis": ended, "moments": moments, "figures": figures }),
            ));
            rows.attempts.push(typed(row)?);
        }
        2 => {
            let primitive = row.get("primitive").cloned();
            row.entry("asked").or_insert(primitive.into());
            row.insert("used_by".to_owned(), attempt_id(&row, "used_by_").into());
            for name in ["primitive", "asked"] {
                word(&mut row, name, Primitive::of_word)?;
            }
            word(&mut row, "end", PreemptionEnd::of_word)?;
            rows.preemptions.push(typed(row)?);
        }
        3 => rows.resumes.push(typed(row)?),
        4 => {
            row.insert("from".to_owned(), attempt_id(&row, "from_").into());
            rows.restores.push(typed(row)?);
        }
        5 => rows.events.push(typed(row)?),
        6 => rows.parts.push(typed(row)?),
        7 => rows.counters.push(typed(row)?),
        8 => rows
            .reasons
            .extend(row.get("text").and_then(Value::as_str).map(str::to_owned)),
        9 => {
            moved.insert(
                typed_value(row["attempt"].clone())?,
                typed_value(figures(&row))?,
            );
        }
        10 => rows.logs.push(typed(row)?),
        11 => {
            row.insert("kind".to_owned(), task_kind(&row, "phase").into());
            row.insert("slots".to_owned(), Value::Object(row.clone()));
            rows.queues.push(typed(row)?);
        }
        12 => {
            word(&mut row, "state", WorkerPhase::of_word)?;
            rows.workers.push(typed(row)?);
        }
        _ => {}
    }
    Ok(())
}

/// Builds an attempt id from its four columns.
fn attempt_id(row: &Row, prefix: &str) -> Option<Value> {
    let part = |name: &str| row.get(&format!("{prefix}{name}"));
    let kind = task_kind(row, &format!("{prefix}phase"))?;
    let task = json!({ "job": part("job")?, "kind": kind, "index": part("task")? });
    Some(json!({ "task": task, "number": part("attempt")? }))
}

fn task_kind(row: &Row, name: &str) -> Option<&'static str> {
    match row.get(name)?.as_u64()? {
        0 => Some("Map"),
        1 => Some("Reduce"),
        _ => None,
    }
}

fn figures(row: &Row) -> Value {
    let names = [
        "input_bytes",
        "output_bytes",
        "input_records",
        "output_records",
        "shuffle_millis",
        "processor_millis",
        "spilled_records",
    ];
    let figure = |name: &str| {
        (
            name.to_owned(),
            row.get(name).cloned().unwrap_or_else(|| 0.into()),
        )
    };
    Value::Object(names.into_iter().map(figure).collect())
}

/// Replaces the word in a column by the serialized value it names.
fn word<T: Serialize>(
    row: &mut Row,
    name: &str,
    of_word: fn(&str) -> Option<T>,
) -> Result<(), String> {
    if let Some(text) = row.get(name).and_then(Value::as_str) {
        let value = of_word(text).ok_or_else(|| format!("unknown {name} {text:?}"))?;
        row.insert(
            name.to_owned(),
            serde_json::to_value(value).map_err(|error| error.to_string())?,
        );
    }
    Ok(())
}

fn fields(value: Value) -> Row {
    match value {
        Value::Object(fields) => fields,
        _ => Row::new(),
    }
}

fn typed<T: DeserializeOwned>(row: Row) -> Result<T, String> {
    typed_value(Value::Object(row))
}

fn typed_value<T: DeserializeOwned>(value: Value) -> Result<T, String> {
    serde_json::from_value(value).map_err(|error| error.to_string())
}
