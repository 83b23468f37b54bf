//! Rows of a frame as columns: each is compressed better alone, and one that is not known can be left out.
//!
//! Owns the description and the bytes of the columns. Does not own compression nor checksums (`frame`), nor
//! what the columns mean (`rows`).

use std::iter;

use serde::{Deserialize, Serialize};

use super::{FRAME_BYTES_MAX, FRAME_ROWS_MAX, TEXT_BYTES_MAX, varint};

const NUMBER: &str = "number";
const DIFFERENCE: &str = "difference";
const TEXT: &str = "text";

#[derive(Debug, Serialize, Deserialize)]
struct Description {
    rows: usize,
    columns: Vec<ColumnDescription>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
struct ColumnDescription {
    name: String,
    #[serde(rename = "type")]
    kind: String,
    /// Whether it begins with a bit for each row that says whether this has a value.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    optional: bool,
    bytes: usize,
}

/// Gathers the columns of a frame.
#[derive(Debug)]
pub struct ColumnsWriter {
    rows: usize,
    columns: Vec<ColumnDescription>,
    bytes: Vec<u8>,
}

impl ColumnsWriter {
    pub(super) fn new(rows: usize) -> ColumnsWriter {
        ColumnsWriter { rows, columns: Vec::new(), bytes: Vec::new() }
    }

    /// A column of numbers that have nothing to do with each other.
    pub fn numbers(&mut self, name: &str, values: impl Iterator<Item = Option<u64>>) {
        self.column(name, NUMBER, values.collect(), |values, bytes| {
            values.into_iter().for_each(|value| varint::write(value, bytes));
        });
    }

    /// A column of numbers that are near to the one before, such as times.
    pub fn differences(&mut self, name: &str, values: impl Iterator<Item = Option<u64>>) {
        self.column(name, DIFFERENCE, values.collect(), |values, bytes| {
            let mut before = 0;
            for value in values {
                varint::write(varint::difference(before, value), bytes);
                before = value;
            }
        });
    }

    /// A column of texts; one of more than 16 MiB is cut.
    pub fn texts<'a>(&mut self, name: &str, values: impl Iterator<Item = Option<&'a str>>) {
        self.column(name, TEXT, values.map(|text| text.map(cut)).collect(), |texts, bytes| {
            texts.iter().for_each(|text| varint::write(text.len() as u64, bytes));
            texts.iter().for_each(|text| bytes.extend_from_slice(text.as_bytes()));
        });
    }

    fn column<T>(
        &mut self,
        name: &str,
        kind: &str,
        values: Vec<Option<T>>,
        write: impl FnOnce(Vec<T>, &mut Vec<u8>),
    ) {
        debug_assert_eq!(values.len(), self.rows, "a value or a gap for every row of {name}");
        let before = self.bytes.len();
        let optional = values.iter().any(Option::is_none);
        if optional {
            let bit = |(place, value): (usize, &Option<T>)| u8::from(value.is_some()) << place;
            let bits = |rows: &[Option<T>]| rows.iter().enumerate().map(bit).fold(0, |all, bit| all | bit);
            self.bytes.extend(values.chunks(8).map(bits));
        }
        write(values.into_iter().flatten().collect(), &mut self.bytes);
        let bytes = self.bytes.len() - before;
        self.columns.push(ColumnDescription {
            name: name.to_owned(),
            kind: kind.to_owned(),
            optional,
            bytes,
        });
    }

    /// Description and columns, if that is not too much for a frame.
    pub(super) fn into_bytes(self) -> Result<Vec<u8>, String> {
        let description = Description { rows: self.rows, columns: self.columns };
        let description = serde_json::to_vec(&description).map_err(|error| error.to_string())?;
        let length = u32::try_from(description.len()).map_err(|error| error.to_string())?;
        let all = [&length.to_le_bytes()[..], &description, &self.bytes].concat();
        match all.len() > FRAME_BYTES_MAX {
            true => Err(format!("a frame of {} bytes, more than the {FRAME_BYTES_MAX} of one", all.len())),
            false => Ok(all),
        }
    }
}

/// A text as long as may be.
fn cut(text: &str) -> &str {
    &text[..text.floor_char_boundary(TEXT_BYTES_MAX)]
}

/// The columns of a frame as they were read.
#[derive(Debug)]
pub struct Columns {
    rows: usize,
    columns: Vec<(ColumnDescription, usize)>,
    bytes: Vec<u8>,
}

impl Columns {
    pub(super) fn parse(bytes: Vec<u8>) -> Result<Columns, String> {
        let (length, rest) = bytes.split_first_chunk().ok_or("its description is cut")?;
        let length = u32::from_le_bytes(*length) as usize;
        let description = rest.get(..length).ok_or("its description is cut")?;
        let description: Description = serde_json::from_slice(description)
            .map_err(|error| format!("its description makes no sense: {error}"))?;
        let Description { rows, columns } = description;
        if rows > FRAME_ROWS_MAX {
            return Err(format!("it has {rows} rows, more than the {FRAME_ROWS_MAX} of a frame"));
        }
        let mut at = 4 + length;
        let mut placed = Vec::with_capacity(columns.len());
        for column in columns {
            let behind = at.checked_add(column.bytes).filter(|behind| *behind <= bytes.len());
            let behind = behind.ok_or_else(|| format!("its column {} is cut", column.name))?;
            placed.push((column, at));
            at = behind;
        }
        Ok(Columns { rows, columns: placed, bytes })
    }

    /// How many rows there are.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// How many bytes they are, before compression.
    pub fn bytes(&self) -> usize {
        self.bytes.len()
    }

    /// The numbers of a column; nothing in each row when there is no such column.
    pub fn numbers(&self, name: &str) -> Result<Vec<Option<u64>>, String> {
        let Some((column, mut rest)) = self.find(name) else { return Ok(vec![None; self.rows]) };
        let is_difference = match column.kind.as_str() {
            NUMBER => false,
            DIFFERENCE => true,
            other => return Err(format!("its column {name} has the type {other}, not numbers")),
        };
        let mut before = 0;
        let numbers = self.present(column, &mut rest)?.into_iter().map(|present| {
            let value = match present {
                false => return Ok(None),
                true => varint::read(&mut rest).ok_or_else(|| damaged(name))?,
            };
            before = if is_difference { varint::step(before, value) } else { value };
            Ok(Some(before))
        });
        let numbers = numbers.collect::<Result<_, String>>()?;
        if rest.is_empty() { Ok(numbers) } else { Err(damaged(name)) }
    }

    /// The numbers of a column that every row must have.
    pub fn all_numbers(&self, name: &str) -> Result<Vec<u64>, String> {
        let all: Option<Vec<u64>> = self.numbers(name)?.into_iter().collect();
        all.ok_or_else(|| format!("its rows lack {name}"))
    }

    /// The numbers of a column that fit into 32 bits and every row must have.
    pub fn all_small_numbers(&self, name: &str) -> Result<Vec<u32>, String> {
        let small = |number| u32::try_from(number).map_err(|_| format!("its column {name} has {number}"));
        self.all_numbers(name)?.into_iter().map(small).collect()
    }

    /// The texts of a column; nothing in each row when there is no such column.
    pub fn texts(&self, name: &str) -> Result<Vec<Option<String>>, String> {
        let Some((column, mut rest)) = self.find(name) else { return Ok(vec![None; self.rows]) };
        if column.kind != TEXT {
            return Err(format!("its column {name} has the type {}, not text", column.kind));
        }
        let present = self.present(column, &mut rest)?;
        let length = |present: bool| match present {
            true => varint::read(&mut rest).map(|length| usize::try_from(length).ok()),
            false => Some(None),
        };
        let lengths: Option<Vec<_>> = present.iter().copied().map(length).collect();
        let lengths = lengths.ok_or_else(|| damaged(name))?;
        let text = |(present, length): (bool, Option<usize>)| {
            if !present {
                return Ok(None);
            }
            let (text, behind) =
                length.and_then(|length| rest.split_at_checked(length)).ok_or_else(|| damaged(name))?;
            rest = behind;
            let text = str::from_utf8(text).map_err(|error| format!("its column {name}: {error}"))?;
            Ok(Some(text.to_owned()))
        };
        let texts = iter::zip(present, lengths).map(text).collect::<Result<_, String>>()?;
        if rest.is_empty() { Ok(texts) } else { Err(damaged(name)) }
    }

    fn find(&self, name: &str) -> Option<(&ColumnDescription, &[u8])> {
        let (column, at) = self.columns.iter().find(|(column, _)| column.name == name)?;
        Some((column, &self.bytes[*at..at + column.bytes]))
    }

    /// Which rows have a value, off the front of a column.
    fn present(&self, column: &ColumnDescription, rest: &mut &[u8]) -> Result<Vec<bool>, String> {
        if !column.optional {
            return Ok(vec![true; self.rows]);
        }
        let cut = rest.split_at_checked(self.rows.div_ceil(8));
        let (bits, behind) = cut.ok_or_else(|| damaged(&column.name))?;
        *rest = behind;
        Ok((0..self.rows).map(|row| bits[row / 8] >> (row % 8) & 1 == 1).collect())
    }
}

fn damaged(name: &str) -> String {
    format!("its column {name} has too few or too many bytes")
}
