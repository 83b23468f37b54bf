//! Frames as typed bytes, Hadoop's binary records between its tasks and commands. The keys are chosen so that
//! Hadoop's partitioner sends each frame to its reduce and the sort orders them.
//!
//! A record is a key and a value, each of them a type byte "bytes" (0), a big-endian length in four bytes,
//! and the bytes. A key is the first twelve bytes of a frame's header and three bytes of salt. Hadoop's hash
//! covers all bytes, so there is a salt for every partition.

use std::io::{self, ErrorKind, Read, Write};

/// Partition, map and number.
pub(super) const PLACE_BYTES: usize = 12;
/// The place and the length of the payload.
pub(super) const HEADER_BYTES: usize = PLACE_BYTES + 4;
/// Partition number of reports.
pub(super) const REPORT: u32 = u32::MAX;
/// Maximum length of a payload (docs/spark.md).
const PAYLOAD_MAX: u32 = 64 << 20;

const SALT_BYTES: usize = 3;
const KEY_BYTES: usize = PLACE_BYTES + SALT_BYTES;
/// Type code of bytes.
const BYTES_CODE: u8 = 0;
/// Factor of the hash for each byte.
const FACTOR: i32 = 31;
/// Possible contributions of three bytes to a hash.
const SALT_RANGE: std::ops::RangeInclusive<i32> = -128 * 993..=127 * 993;
/// Above this number some partitions may have no salt.
pub(super) const PARTITIONS_MAX: u32 = 100_000;

/// A frame: place and payload.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Frame {
    pub(super) place: [u8; PLACE_BYTES],
    pub(super) payload: Vec<u8>,
}

impl Frame {
    /// Reads the next frame of a guest; `None` at the end.
    pub(super) fn read(guest: &mut impl Read) -> io::Result<Option<Frame>> {
        let mut header = [0; HEADER_BYTES];
        if !fill(guest, &mut header)? {
            return Ok(None);
        }
        let (place, length) = header.split_at(PLACE_BYTES);
        let payload = payload(guest, u32::from_be_bytes(array(length)))?;
        Ok(Some(Frame {
            place: array(place),
            payload,
        }))
    }

    /// Writes the frame to a guest.
    pub(super) fn write(&self, guest: &mut impl Write) -> io::Result<()> {
        guest.write_all(&self.place)?;
        guest.write_all(&length_of(&self.payload)?)?;
        guest.write_all(&self.payload)
    }

    fn word(&self, at: usize) -> u32 {
        u32::from_be_bytes(array(&self.place[at * 4..at * 4 + 4]))
    }

    pub(super) fn is_report(&self) -> bool {
        self.word(0) == REPORT
    }

    /// Returns a frame that wakes a reduce; it is not passed to the guest.
    pub(super) fn wake(partition: u32) -> Frame {
        let words = [partition, u32::MAX, u32::MAX].map(u32::to_be_bytes);
        Frame {
            place: array(words.as_flattened()),
            payload: Vec::new(),
        }
    }

    pub(super) fn is_wake(&self) -> bool {
        self.word(1) == u32::MAX && self.word(2) == u32::MAX
    }

    /// Returns the reduce of the frame.
    fn partition(&self, partitions: u32) -> u32 {
        if self.is_report() {
            self.word(1) % partitions
        } else {
            self.word(0)
        }
    }

    /// Reads the next record of a reduce as a frame; `None` at the end.
    pub(super) fn read_record(hadoop: &mut impl Read) -> io::Result<Option<Frame>> {
        let mut key = [0; 5 + KEY_BYTES];
        if !fill(hadoop, &mut key)? {
            return Ok(None);
        }
        let mut length = [0; 5];
        hadoop.read_exact(&mut length)?;
        if key[0] != BYTES_CODE
            || key[1..5] != (KEY_BYTES as u32).to_be_bytes()
            || length[0] != BYTES_CODE
        {
            return Err(io::Error::new(
                ErrorKind::InvalidData,
                "the record is not a frame in typed bytes",
            ));
        }
        let payload = payload(hadoop, u32::from_be_bytes(array(&length[1..])))?;
        Ok(Some(Frame {
            place: array(&key[5..5 + PLACE_BYTES]),
            payload,
        }))
    }

    /// Writes the frame as a record that Hadoop's partitioner sends to its reduce.
    pub(super) fn write_record(&self, hadoop: &mut impl Write, partitions: u32) -> io::Result<()> {
        let mut key = [0; 5 + KEY_BYTES];
        key[0] = BYTES_CODE;
        key[1..5].copy_from_slice(&(KEY_BYTES as u32).to_be_bytes());
        let (unsalted, salt) = key.split_at_mut(5 + PLACE_BYTES);
        unsalted[5..].copy_from_slice(&self.place);
        let found = salt_for(hash(1, unsalted), self.partition(partitions), partitions);
        salt.copy_from_slice(&found.ok_or_else(|| {
            io::Error::new(
                ErrorKind::InvalidInput,
                format!("no salt found for one of {partitions} reduces"),
            )
        })?);
        hadoop.write_all(&key)?;
        hadoop.write_all(&[BYTES_CODE])?;
        hadoop.write_all(&length_of(&self.payload)?)?;
        hadoop.write_all(&self.payload)
    }
}

/// Continues Hadoop's hash, which treats bytes as signed, from `before`.
fn hash(before: i32, bytes: &[u8]) -> i32 {
    bytes.iter().fold(before, |hash, byte| {
        hash.wrapping_mul(FACTOR)
            .wrapping_add(i32::from(byte.cast_signed()))
    })
}

/// Returns the partition that Hadoop's partitioner derives from a hash.
fn chosen(hash: i32, partitions: u32) -> u32 {
    (hash.cast_unsigned() & 0x7fff_ffff) % partitions
}

/// Returns three bytes of salt that lead to a partition after bytes with this hash.
fn salt_for(before: i32, partition: u32, partitions: u32) -> Option<[u8; SALT_BYTES]> {
    let base = (0..SALT_BYTES).fold(before, |hash, _| hash.wrapping_mul(FACTOR));
    let leads = |added: &i32| chosen(base.wrapping_add(*added), partitions) == partition;
    // Search upwards from zero: found within as many steps as there are partitions, unless the sign changes.
    let upward = (0..=*SALT_RANGE.end()).find(leads);
    let added = upward.or_else(|| (*SALT_RANGE.start()..0).rev().find(leads))?;
    let digit = |rest: i32, weight: i32| (rest / weight).clamp(-128, 127);
    let first = digit(added, FACTOR * FACTOR);
    let second = digit(added - first * FACTOR * FACTOR, FACTOR);
    let third = added - first * FACTOR * FACTOR - second * FACTOR;
    Some([first, second, third].map(|byte| (byte as i8).cast_unsigned()))
}

/// Fills a buffer; returns false at the end of input. Fails if the input ends inside.
fn fill(from: &mut impl Read, buffer: &mut [u8]) -> io::Result<bool> {
    let mut filled = 0;
    while filled < buffer.len() {
        match from.read(&mut buffer[filled..]) {
            Ok(0) if filled == 0 => return Ok(false),
            Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
            Ok(read) => filled += read,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(true)
}

fn payload(from: &mut impl Read, length: u32) -> io::Result<Vec<u8>> {
    if length > PAYLOAD_MAX {
        return Err(io::Error::new(
            ErrorKind::InvalidData,
            format!("a frame of {length} bytes (limit {PAYLOAD_MAX})"),
        ));
    }
    let mut payload = vec![0; length as usize];
    from.read_exact(&mut payload)?;
    Ok(payload)
}

fn length_of(payload: &[u8]) -> io::Result<[u8; 4]> {
    let length = u32::try_from(payload.len())
        .ok()
        .filter(|length| *length <= PAYLOAD_MAX);
    length.map(u32::to_be_bytes).ok_or_else(|| {
        io::Error::new(
            ErrorKind::InvalidInput,
            format!("a frame of {} bytes (limit {PAYLOAD_MAX})", payload.len()),
        )
    })
}

fn array<const N: usize>(bytes: &[u8]) -> [u8; N] {
    let mut array = [0; N];
    array.copy_from_slice(bytes);
    array
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(words: [u32; 3], payload: &[u8]) -> Frame {
        let place: Vec<u8> = words.iter().flat_map(|word| word.to_be_bytes()).collect();
        Frame {
            place: array(&place),
            payload: payload.to_vec(),
        }
    }

    #[test]
    fn byte_hash_matches_hadoop() {
        // 31 * (31 * (31 * 1 + 1) + 2) - 1.
        assert_eq!(hash(1, &[1, 2, 255]), 30_814 - 1);
        assert_eq!(hash(1, b"abc"), ((31 + 97) * 31 + 98) * 31 + 99);
        assert_eq!(hash(i32::MAX, &[1]), i32::MAX.wrapping_mul(31) + 1);
    }

    #[test]
    fn salt_reaches_every_partition() {
        let hashes = [
            0,
            1,
            -1,
            i32::MAX,
            i32::MIN,
            1 << 30,
            123_456_789,
            -987_654_321,
        ];
        for partitions in [1, 2, 3, 7, 31, 961, 10_000, PARTITIONS_MAX] {
            for before in hashes {
                for partition in (0..partitions).step_by((partitions as usize / 50).max(1)) {
                    let salt = salt_for(before, partition, partitions).expect("there is one");
                    assert_eq!(
                        chosen(hash(before, &salt), partitions),
                        partition,
                        "{before} {partitions}"
                    );
                }
            }
        }
    }

    #[test]
    fn frames_round_trip_and_sort_as_records() {
        let frames = [
            frame([2, 0, 0], b"extent"),
            frame([2, 0, 1], &[7; 1_000]),
            frame([2, 300, 0], b""),
            Frame::wake(2),
            frame([REPORT, 2, 0], b"{}"),
        ];
        assert_eq!(
            frames.iter().map(Frame::is_wake).collect::<Vec<_>>(),
            [false, false, false, true, false]
        );
        let records: Vec<Vec<u8>> = frames
            .iter()
            .map(|frame| {
                let mut record = Vec::new();
                frame
                    .write_record(&mut record, 5)
                    .expect("it can be written");
                record
            })
            .collect();
        assert!(
            records.is_sorted(),
            "partition, map and number stand in front"
        );
        for (frame, record) in frames.iter().zip(&records) {
            assert_eq!(chosen(hash(1, &record[..5 + KEY_BYTES]), 5), 2, "{frame:?}");
            assert_eq!(
                Frame::read_record(&mut &record[..])
                    .expect("a record")
                    .as_ref(),
                Some(frame)
            );
            let mut written = Vec::new();
            frame.write(&mut written).expect("it can be written");
            assert_eq!(
                Frame::read(&mut &written[..]).expect("a frame").as_ref(),
                Some(frame)
            );
        }
    }

    #[test]
    fn truncated_and_foreign_bytes_are_rejected() {
        let mut record = Vec::new();
        frame([0, 0, 0], b"abc")
            .write_record(&mut record, 3)
            .expect("it can be written");
        for length in 1..record.len() {
            assert!(
                Frame::read_record(&mut &record[..length]).is_err(),
                "{length}"
            );
        }
        assert!(Frame::read_record(&mut &[][..]).expect("the end").is_none());
        record[0] = 7;
        assert!(
            Frame::read_record(&mut &record[..])
                .expect_err("text")
                .to_string()
                .contains("typed bytes")
        );
        let long = [&[0; 12][..], &[0xff; 4]].concat();
        assert!(
            Frame::read(&mut &long[..])
                .expect_err("too long")
                .to_string()
                .contains("4294967295 bytes")
        );
    }
}
