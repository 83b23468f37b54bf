//! The binary encoding of a timeline, whose columns a page maps to typed arrays. docs/rest-api.md describes it.

use std::io;

use serde::Serialize;

use super::timeline::{StintAnswer, TimelineAnswer};

/// The media type of the encoding.
pub const COLUMNS_KIND: &str = "application/vnd.napreduce.timeline";
const MAGIC: &[u8; 8] = b"NAPTLN1\0";
/// Size of the widest numbers, to which columns are aligned.
const ALIGNED: usize = 4;

/// The answer without its stints, and the layout of the columns.
#[derive(Serialize)]
struct Head<'answer> {
    #[serde(flatten)]
    answer: &'answer TimelineAnswer,
    /// Length of each column.
    rows: usize,
    /// Times in the columns are multiples of this.
    unit_micros: u64,
    columns: &'answer [Column],
}

#[derive(Serialize)]
struct Column {
    name: &'static str,
    /// `u8`, `u16`, `u32`, `i8`, `i16` or `i32`.
    #[serde(rename = "type")]
    form: &'static str,
    /// From the end of the head.
    offset: usize,
}

/// Encodes an answer: the magic number, the length of the head, the head as JSON padded with blanks, and the columns
/// as little-endian numbers.
///
/// # Errors
/// Fails if the head cannot be serialized.
pub fn columns_of(mut answer: TimelineAnswer) -> io::Result<Vec<u8>> {
    let stints = std::mem::take(&mut answer.stints);
    let unit_micros = unit_of(&answer);
    let mut written = Written::default();
    written.put_all(&stints, unit_micros);
    let rows = stints.start.len();
    let head = Head {
        answer: &answer,
        rows,
        unit_micros,
        columns: &written.columns,
    };
    let mut bytes = MAGIC.to_vec();
    bytes.extend([0; 4]);
    let begin = bytes.len();
    serde_json::to_writer(&mut bytes, &head)?;
    bytes.resize(bytes.len().next_multiple_of(ALIGNED), b' ');
    let length = u32::try_from(bytes.len() - begin).map_err(io::Error::other)?;
    bytes[begin - 4..begin].copy_from_slice(&length.to_le_bytes());
    bytes.append(&mut written.bytes);
    Ok(bytes)
}

/// Chooses microseconds if they fit 32 bits (71 minutes), otherwise the smallest unit that does. For a thinned answer
/// 16 bits suffice: they resolve more times than a screen has pixels.
fn unit_of(answer: &TimelineAnswer) -> u64 {
    let span = answer.until_micros.saturating_sub(answer.base_micros);
    let units = if answer.is_thinned {
        u64::from(u16::MAX)
    } else {
        u64::from(u32::MAX)
    };
    (span / units) + 1
}

#[derive(Default)]
struct Written {
    columns: Vec<Column>,
    bytes: Vec<u8>,
}

impl Written {
    fn put_all(&mut self, stints: &StintAnswer, unit_micros: u64) {
        let StintAnswer {
            start,
            length,
            starting,
            lane,
            job,
            task,
            attempt,
            end,
            preemption,
            count,
        } = stints;
        // Ends are rounded like starts, so that neighbours do not overlap.
        let ends = start
            .iter()
            .zip(length)
            .map(|(start, length)| (start + length) / unit_micros);
        let starts = start.iter().map(|start| (start / unit_micros) as u32);
        self.put("start", starts.clone());
        self.put(
            "length",
            ends.zip(starts).map(|(end, start)| end as u32 - start),
        );
        self.put(
            "starting",
            starting
                .iter()
                .map(|starting| (starting / unit_micros) as u32),
        );
        self.put("lane", lane.iter().copied());
        self.put("job", job.iter().copied());
        self.put("task", task.iter().copied());
        self.put("attempt", attempt.iter().copied());
        self.put("end", end.iter().map(|end| u32::from(*end)));
        self.put_signed("preemption", preemption);
        if !count.is_empty() {
            self.put("count", count.iter().copied());
        }
    }

    /// Writes numbers in the width that the largest of them needs.
    fn put(&mut self, name: &'static str, numbers: impl Iterator<Item = u32> + Clone) {
        match numbers.clone().max().unwrap_or(0) {
            0..0x100 => self.lay(name, "u8", numbers.map(|number| [number as u8])),
            0x100..0x1_0000 => self.lay(
                name,
                "u16",
                numbers.map(|number| (number as u16).to_le_bytes()),
            ),
            0x1_0000.. => self.lay(name, "u32", numbers.map(u32::to_le_bytes)),
        }
    }

    fn put_signed(&mut self, name: &'static str, numbers: &[i32]) {
        let numbers = numbers.iter().copied();
        match numbers.clone().max().unwrap_or(0) {
            ..0x80 => self.lay(
                name,
                "i8",
                numbers.map(|number| (number as i8).to_le_bytes()),
            ),
            0x80..0x8000 => self.lay(
                name,
                "i16",
                numbers.map(|number| (number as i16).to_le_bytes()),
            ),
            0x8000.. => self.lay(name, "i32", numbers.map(i32::to_le_bytes)),
        }
    }

    fn lay<const BYTES: usize>(
        &mut self,
        name: &'static str,
        form: &'static str,
        numbers: impl Iterator<Item = [u8; BYTES]>,
    ) {
        self.bytes
            .resize(self.bytes.len().next_multiple_of(ALIGNED), 0);
        self.columns.push(Column {
            name,
            form,
            offset: self.bytes.len(),
        });
        self.bytes.extend(numbers.flatten());
    }
}

#[cfg(test)]
mod tests {
    use napreduce_engine::Primitive;
    use napreduce_protocol::PreemptionEnd;
    use proptest::prelude::*;
    use serde_json::Value;

    use super::super::samples::preempted;
    use super::super::timeline::TimelineWindow;
    use super::*;

    /// Decodes head and columns like the page does.
    fn read(bytes: &[u8]) -> (Value, Value) {
        assert_eq!(&bytes[..8], MAGIC);
        let length = u32::from_le_bytes(bytes[8..12].try_into().expect("four bytes")) as usize;
        let head: Value = serde_json::from_slice(&bytes[12..12 + length]).expect("JSON");
        let body = &bytes[12 + length..];
        assert_eq!((12 + length) % ALIGNED, 0);
        let rows = head["rows"].as_u64().expect("a number") as usize;
        let columns = head["columns"]
            .as_array()
            .expect("columns")
            .iter()
            .map(|column| {
                let form = column["type"].as_str().expect("a type");
                let width = form[1..].parse::<usize>().expect("bits") / 8;
                let offset = column["offset"].as_u64().expect("a number") as usize;
                assert_eq!(offset % ALIGNED, 0);
                let number = |bytes: &[u8]| {
                    let is_negative = form.starts_with('i') && bytes[width - 1] >= 0x80;
                    let mut whole = [if is_negative { 0xFF } else { 0 }; 8];
                    whole[..width].copy_from_slice(bytes);
                    i64::from_le_bytes(whole)
                };
                let numbers: Vec<i64> = body[offset..offset + rows * width]
                    .chunks(width)
                    .map(number)
                    .collect();
                (
                    column["name"].as_str().expect("a name").to_owned(),
                    Value::from(numbers),
                )
            });
        let columns = columns.collect::<serde_json::Map<String, Value>>().into();
        (head, columns)
    }

    fn stints(rows: &[(u32, u32, u32, u16, i16)], is_thinned: bool) -> StintAnswer {
        let mut stints = StintAnswer::default();
        for (start, length, lane, attempt, preemption) in rows {
            stints.start.push(u64::from(*start / 2));
            stints.length.push(u64::from(*length / 2));
            stints.starting.push(u64::from(*length / 4));
            stints.lane.push(*lane);
            stints.job.push(7);
            stints.task.push(lane / 2);
            stints.attempt.push(u32::from(*attempt));
            stints.end.push((*attempt % 6) as u8);
            stints.preemption.push((i32::from(*preemption) * 3).max(-1));
            if is_thinned {
                stints.count.push(*length);
            }
        }
        stints
    }

    proptest! {
        #[test]
        fn columns_equal_json(
            rows in proptest::collection::vec(any::<(u32, u32, u32, u16, i16)>(), 0..40),
            is_thinned: bool,
            largest in 0..4_u32,
        ) {
            let rows: Vec<_> = rows
                .into_iter()
                .map(|(start, length, lane, attempt, row)| (start, length, lane >> (8 * largest), attempt >> (4 * largest), row >> (4 * largest)))
                .collect();
            let rows = if is_thinned { rows.iter().map(|row| (row.0 >> 17, row.1 >> 17, row.2, row.3, row.4)).collect() } else { rows };
            let span = if is_thinned { u64::from(u16::MAX) - 1 } else { u64::from(u32::MAX) - 1 };
            let answer = TimelineAnswer {
                base_micros: 1_790_000_000_000_000,
                until_micros: 1_790_000_000_000_000 + span,
                is_thinned,
                stints_total: rows.len(),
                stints: stints(&rows, is_thinned),
                ..TimelineAnswer::default()
            };
            let mut json = serde_json::to_value(&answer).expect("JSON");
            let (mut head, columns) = read(&columns_of(answer).expect("bytes"));
            prop_assert_eq!(&head["unit_micros"], 1);
            for name in ["rows", "unit_micros", "columns"] {
                head.as_object_mut().expect("an object").remove(name);
            }
            let mut stints = json["stints"].take();
            if !is_thinned || rows.is_empty() {
                stints.as_object_mut().expect("an object").remove("count");
            }
            prop_assert_eq!(columns, stints);
            head["stints"].take();
            prop_assert_eq!(head, json);
        }
    }

    #[test]
    fn thinned_answer_lists_some_preemptions() {
        let suspended = (0, Primitive::Suspend, Some(PreemptionEnd::Suspended));
        let job = preempted(&vec![suspended; 7_000]);
        let until_micros = job.summary.ended_millis.expect("an ended job") * 1_000;
        let window = TimelineWindow {
            from_micros: 0,
            until_micros,
        };
        let answer = TimelineAnswer::of([&job], window, Some(1_000));
        assert!(answer.is_thinned && answer.naps.is_empty());
        assert_eq!((answer.stints_total, answer.naps_left_out), (7_000, 7_000));
        assert_eq!(
            (answer.preemptions.len(), answer.preemptions_left_out),
            (500, 6_500)
        );
        let listed = answer
            .stints
            .preemption
            .iter()
            .filter(|row| **row >= 0)
            .count();
        assert_eq!(listed, 500);
        let bytes = columns_of(answer).expect("bytes").len();
        assert!(bytes <= 4 << 20, "{bytes}");
        // An answer that is not thinned, as in a report, lists all.
        assert_eq!(
            TimelineAnswer::of([&job], window, None).preemptions.len(),
            7_000
        );
    }

    #[test]
    fn long_windows_use_longer_units_without_overlap() {
        let day = 24 * 60 * 60 * 1_000_000;
        let mut answer = TimelineAnswer {
            until_micros: 30 * day,
            ..TimelineAnswer::default()
        };
        answer.stints.start = vec![0, day + 1_234, 29 * day];
        answer.stints.length = vec![day + 1_234, 28 * day - 1_234, day];
        for column in [
            &mut answer.stints.lane,
            &mut answer.stints.job,
            &mut answer.stints.task,
        ] {
            column.resize(3, 0);
        }
        let starting = vec![0; 3];
        let attempt = vec![1; 3];
        let end = vec![4; 3];
        let preemption = vec![-1; 3];
        answer.stints = StintAnswer {
            starting,
            attempt,
            end,
            preemption,
            ..answer.stints
        };
        let (head, columns) = read(&columns_of(answer).expect("bytes"));
        let unit = head["unit_micros"].as_u64().expect("a number");
        assert_eq!(unit, 604);
        let numbers = |name: &str| -> Vec<u64> {
            columns[name]
                .as_array()
                .expect("numbers")
                .iter()
                .map(|one| one.as_u64().expect("one"))
                .collect()
        };
        let start = numbers("start");
        let length = numbers("length");
        for row in 0..2 {
            assert_eq!(start[row] + length[row], start[row + 1], "{row}");
        }
        assert!((29 * day).abs_diff(start[2] * unit) < unit);
    }
}
