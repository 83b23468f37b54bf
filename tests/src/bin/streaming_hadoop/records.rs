//! Records in typed bytes as documented by Hadoop, and Hadoop's hash partitioner.

/// A key and a value in their original encoding, with type code and length.
pub struct Record {
    pub key: Vec<u8>,
    value: Vec<u8>,
}

impl Record {
    pub fn bytes(&self) -> Vec<u8> {
        [self.key.as_slice(), &self.value].concat()
    }

    /// `(hash & Integer.MAX_VALUE) % reduces`, with signed bytes as in Java.
    pub fn partition(&self, reduces: usize) -> usize {
        let add = |hash: i32, byte: &u8| hash.wrapping_mul(31).wrapping_add(i32::from(*byte as i8));
        (self.key.iter().fold(1, add) & i32::MAX) as usize % reduces
    }
}

/// Parses all records that a command wrote.
pub fn read(mut written: &[u8]) -> Vec<Record> {
    let mut records = Vec::new();
    while !written.is_empty() {
        let key = object(&mut written);
        let value = object(&mut written);
        records.push(Record { key, value });
    }
    records
}

fn object(rest: &mut &[u8]) -> Vec<u8> {
    assert_eq!(rest[0], 0, "an object is bytes");
    let length = u32::from_be_bytes(rest[1..5].try_into().expect("four bytes")) as usize;
    let (object, behind) = rest.split_at(5 + length);
    *rest = behind;
    object.to_vec()
}
