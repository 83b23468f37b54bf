//! Rows of comma-separated values (RFC 4180 with options), in both directions.
//!
//! The caller holds the bytes and decides on splits. The csv crate would read from a stream and copy every
//! field; this reader keeps only the columns of the row type.

mod fields;
mod row;
mod writer;

use csv::ByteRecord;
use serde::Deserialize;

use self::fields::take_record;
pub use self::fields::{RecordSize, Syntax, Unclosed};
use self::row::Columns;
pub use self::writer::RowWriter;
use crate::columns::columns;

/// The first record of a file, which names the columns.
pub struct Header {
    record: ByteRecord,
}

/// The selected columns, and the current record.
pub struct Table {
    syntax: Syntax,
    /// Fields per row, if there is a header.
    fields: Option<usize>,
    /// Names and positions of selected columns, in file order; `None` for all.
    header: Option<Columns>,
    positions: Option<Vec<usize>>,
    record: ByteRecord,
    scratch: Vec<u8>,
}

impl Table {
    /// Creates a table of all columns.
    pub fn without_header(syntax: Syntax) -> Table {
        let record = ByteRecord::new();
        let scratch = Vec::new();
        Table {
            syntax,
            fields: None,
            header: None,
            positions: None,
            record,
            scratch,
        }
    }

    /// Selects the columns that `T` names in a file with this header. Fails if it has none of them.
    pub fn of<'de, T: Deserialize<'de>>(syntax: Syntax, header: &Header) -> Result<Table, String> {
        let header = &header.record;
        let mut table = Table::without_header(syntax);
        table.fields = Some(header.len());
        let wanted = columns::<T>();
        let is_wanted =
            |name: &[u8]| wanted.is_none_or(|wanted| wanted.iter().any(|w| w.as_bytes() == name));
        let positions: Vec<usize> = header
            .iter()
            .enumerate()
            .filter(|(_, name)| is_wanted(name))
            .map(|(at, _)| at)
            .collect();
        if let Some(wanted) = wanted
            && positions.is_empty()
            && !wanted.is_empty()
        {
            return Err(format!(
                "its header has none of the columns {} but begins {:?}; check the names, the separator, and whether \
                 there is a header",
                wanted.join(", "),
                header
                    .iter()
                    .take(8)
                    .map(String::from_utf8_lossy)
                    .collect::<Vec<_>>()
                    .join(",")
            ));
        }
        let names = positions.iter().filter_map(|at| header.get(*at)).collect();
        table.header = Some(Columns::new(names));
        table.positions = wanted.map(|_| positions);
        Ok(table)
    }

    /// Returns the last taken record as a header.
    pub fn into_header(self) -> Header {
        Header {
            record: self.record,
        }
    }

    /// Takes the next record from the front of `bytes` and keeps the selected columns. Returns `None` if the
    /// record may continue after `bytes`; with `all`, there are no further bytes.
    pub fn take(&mut self, bytes: &[u8], all: bool) -> Result<Option<RecordSize>, Unclosed> {
        let Table {
            record,
            scratch,
            positions,
            ..
        } = self;
        record.clear();
        let mut next = 0;
        take_record(
            bytes,
            all,
            self.syntax,
            scratch,
            |number, field| match positions {
                None => record.push_field(field),
                Some(positions) if positions.get(next) == Some(&number) => {
                    record.push_field(field);
                    next += 1;
                }
                Some(_) => {}
            },
        )
    }

    /// Deserializes the last taken record; the error is the reason.
    pub fn row<'t, T: Deserialize<'t>>(&'t self, taken: RecordSize) -> Result<T, String> {
        if let Some(fields) = self.fields
            && fields != taken.fields
        {
            return Err(format!(
                "it has {} fields, but the header has {fields}",
                taken.fields
            ));
        }
        row::deserialize(&self.record, self.header.as_ref())
    }
}
