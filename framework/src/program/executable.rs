//! The identity of this program's executable, and where its code lies in it.
//!
//! Two processes of one executable have the same code at the same distance from its beginning, wherever it is loaded. The
//! linker writes the build id, which it computes from what it links; stripping does not change it.
#![allow(unsafe_code)] // To name a symbol of the linker.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::sync::OnceLock;

use napreduce_protocol::TaskError;

/// The executable of this process.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Executable {
    /// Its build id; if it was linked without one, its length and checksum.
    pub(super) identity: String,
    /// Its code: bytes from its beginning in memory.
    code: Vec<Range<u64>>,
}

// SAFETY: only the address is used. Every linker defines this symbol as the first byte of the file in memory.
unsafe extern "C" {
    safe static __ehdr_start: u8;
}

impl Executable {
    /// Returns the executable of this process, which is read once.
    pub(super) fn current() -> Result<&'static Executable, TaskError> {
        static CURRENT: OnceLock<Executable> = OnceLock::new();
        if let Some(executable) = CURRENT.get() {
            return Ok(executable);
        }
        let executable = File::open("/proc/self/exe")
            .and_then(|file| Executable::read(&file))
            .map_err(|error| TaskError::io("read the executable of this program", &error))?;
        Ok(CURRENT.get_or_init(|| executable))
    }

    /// Reads the tables of an ELF file for the processor of this program.
    fn read(file: &File) -> io::Result<Executable> {
        let mut header = [0; FILE_HEADER_BYTES];
        file.read_exact_at(&mut header, 0)?;
        if !header.starts_with(b"\x7fELF") {
            return Err(malformed("it is no ELF file"));
        }
        let table = word_at(&header, 24 + WORD)?;
        let entry_bytes = usize::from(half_at(&header, 30 + 3 * WORD)?);
        let entries = usize::from(half_at(&header, 32 + 3 * WORD)?);
        if entry_bytes == 0 {
            return Err(malformed("it has no program headers"));
        }
        let mut headers = vec![0; entry_bytes * entries];
        file.read_exact_at(&mut headers, table)?;
        let mut start = None;
        let mut code = Vec::new();
        let mut build_id = None;
        for header in headers.chunks_exact(entry_bytes) {
            let segment = Segment::parse(header)?;
            match segment.kind {
                LOAD if segment.offset == 0 => start = Some(segment.address),
                NOTE if build_id.is_none() => build_id = segment.build_id(file)?,
                _ => {}
            }
            if segment.kind == LOAD && segment.is_code {
                code.push(segment.address..segment.address.saturating_add(segment.memory));
            }
        }
        let start = start.ok_or_else(|| malformed("its header is not loaded"))?;
        for range in &mut code {
            *range = range.start.saturating_sub(start)..range.end.saturating_sub(start);
        }
        let identity = match build_id {
            Some(build_id) => format!("build id {build_id}"),
            None => checksum(file)?,
        };
        Ok(Executable { identity, code })
    }

    /// Returns the distance of an address from the beginning of the executable, if there is code of the executable.
    pub(super) fn offset_of(&self, address: usize) -> Option<u64> {
        let offset = address.checked_sub(start_address())? as u64;
        self.has_code_at(offset).then_some(offset)
    }

    /// Returns the address of the code at this distance from the beginning, if there is any.
    pub(super) fn address_of(&self, offset: u64) -> Option<usize> {
        if !self.has_code_at(offset) {
            return None;
        }
        start_address().checked_add(usize::try_from(offset).ok()?)
    }

    fn has_code_at(&self, offset: u64) -> bool {
        self.code.iter().any(|range| range.contains(&offset))
    }
}

fn start_address() -> usize {
    (&raw const __ehdr_start).addr()
}

/// Bytes of a word of the file.
const WORD: usize = size_of::<usize>();

const FILE_HEADER_BYTES: usize = 40 + 3 * WORD;

/// Types of segments.
const LOAD: u32 = 1;
const NOTE: u32 = 4;

/// A program header.
struct Segment {
    kind: u32,
    is_code: bool,
    offset: u64,
    address: u64,
    /// Its bytes in the file.
    length: u64,
    /// Its bytes in memory.
    memory: u64,
    alignment: u64,
}

impl Segment {
    fn parse(header: &[u8]) -> io::Result<Segment> {
        const EXECUTABLE: u32 = 1;
        // The flags follow the type in files of 64 bits, and the sizes in files of 32 bits.
        let (flags, alignment) = if WORD == 8 { (4, 48) } else { (24, 28) };
        Ok(Segment {
            kind: number_at(header, 0)?,
            is_code: number_at(header, flags)? & EXECUTABLE != 0,
            offset: word_at(header, WORD)?,
            address: word_at(header, 2 * WORD)?,
            length: word_at(header, 4 * WORD)?,
            memory: word_at(header, 5 * WORD)?,
            alignment: word_at(header, alignment)?,
        })
    }

    /// Returns the build id in hexadecimal digits, if it is among these notes.
    fn build_id(&self, file: &File) -> io::Result<Option<String>> {
        /// Notes take a few hundred bytes.
        const NOTES_BYTES_MAX: u64 = 1 << 20;
        const BUILD_ID: u32 = 3;
        if self.length > NOTES_BYTES_MAX {
            return Ok(None);
        }
        let mut notes = vec![0; self.length as usize];
        file.read_exact_at(&mut notes, self.offset)?;
        let alignment = if self.alignment == 8 { 8 } else { 4 };
        let mut rest = &notes[..];
        while rest.len() >= NOTE_HEADER_BYTES {
            let name_length = number_at(rest, 0)? as usize;
            let length = number_at(rest, 4)? as usize;
            let kind = number_at(rest, 8)?;
            let name_end = NOTE_HEADER_BYTES.saturating_add(name_length);
            let start = name_end.next_multiple_of(alignment);
            let end = start.saturating_add(length);
            let (Some(name), Some(content)) =
                (rest.get(NOTE_HEADER_BYTES..name_end), rest.get(start..end))
            else {
                return Err(malformed("a note is cut off"));
            };
            if kind == BUILD_ID && name == b"GNU\0" && !content.is_empty() {
                return Ok(Some(digits(content)));
            }
            rest = rest
                .get(end.next_multiple_of(alignment)..)
                .unwrap_or_default();
        }
        Ok(None)
    }
}

const NOTE_HEADER_BYTES: usize = 12;

fn digits(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Identifies a file by all of its bytes.
fn checksum(file: &File) -> io::Result<String> {
    let mut buffer = vec![0; 1 << 20];
    let mut checksum = 0;
    let mut length = 0;
    loop {
        let count = file.read_at(&mut buffer, length)?;
        if count == 0 {
            return Ok(format!("{length} bytes with the checksum {checksum:08x}"));
        }
        checksum = crc32c::crc32c_append(checksum, &buffer[..count]);
        length += count as u64;
    }
}

fn half_at(bytes: &[u8], at: usize) -> io::Result<u16> {
    Ok(u16::from_ne_bytes(array_at(bytes, at)?))
}

fn number_at(bytes: &[u8], at: usize) -> io::Result<u32> {
    Ok(u32::from_ne_bytes(array_at(bytes, at)?))
}

fn word_at(bytes: &[u8], at: usize) -> io::Result<u64> {
    Ok(usize::from_ne_bytes(array_at(bytes, at)?) as u64)
}

fn array_at<const N: usize>(bytes: &[u8], at: usize) -> io::Result<[u8; N]> {
    let rest = bytes.get(at..).unwrap_or_default();
    let array = rest.first_chunk();
    array
        .copied()
        .ok_or_else(|| malformed("a header is cut off"))
}

fn malformed(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what.to_owned())
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::process::Command;

    use super::*;

    fn own() -> &'static Executable {
        Executable::current().expect("this program")
    }

    #[test]
    fn code_of_this_program_is_found_again() {
        let address = own as *const () as usize;
        let offset = own().offset_of(address).expect("it is code");
        assert_eq!(own().address_of(offset), Some(address));
        assert_eq!(own().address_of(0), None, "the header is no code");
        for far in [u64::MAX, 1 << 46] {
            assert_eq!(own().address_of(far), None);
        }
    }

    #[test]
    fn data_and_code_of_libraries_are_not_code_of_the_program() {
        static DATA: u64 = 7;
        assert_eq!(own().offset_of((&raw const DATA).addr()), None);
        let on_heap = Box::new(7);
        assert_eq!(own().offset_of((&raw const *on_heap).addr()), None);
    }

    #[test]
    fn file_without_build_id_is_identified_by_its_bytes() {
        let folder = tempfile::tempdir().expect("a folder");
        let one = folder.path().join("one");
        let other = folder.path().join("other");
        let built = |path: &Path, program: &str, option: &str| {
            let source = folder.path().join("main.c");
            std::fs::write(&source, program).expect("a source");
            let linked = Command::new("cc")
                .args([
                    "-o".as_ref(),
                    path.as_os_str(),
                    source.as_os_str(),
                    option.as_ref(),
                ])
                .status()
                .expect("a linker is needed to build this test");
            assert!(linked.success());
            Executable::read(&File::open(path).expect("a file")).expect("an executable")
        };
        let none = "-Wl,--build-id=none";
        let first = built(&one, "int main() { return 1; }", none);
        assert!(
            first.identity.contains("bytes with the checksum"),
            "{}",
            first.identity
        );
        assert_eq!(built(&other, "int main() { return 1; }", none), first);
        assert_ne!(
            built(&other, "int main() { return 2; }", none).identity,
            first.identity
        );

        let with_id = built(&one, "int main() { return 1; }", "-Wl,--build-id=sha1");
        assert!(
            with_id.identity.starts_with("build id "),
            "{}",
            with_id.identity
        );
        let stripped = Command::new("strip").arg(&one).status().expect("strip");
        assert!(stripped.success());
        let file = File::open(&one).expect("a file");
        assert_eq!(Executable::read(&file).expect("an executable"), with_id);
        let relinked = built(&one, "int main() { return 2; }", "-Wl,--build-id=sha1");
        assert_ne!(relinked.identity, with_id.identity);
    }

    #[test]
    fn file_that_is_no_executable_is_an_error() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("text");
        for (content, reason) in [
            (vec![b'x'; 100], "it is no ELF file"),
            (b"\x7fELF".to_vec(), "failed to fill whole buffer"),
        ] {
            std::fs::write(&path, content).expect("a file");
            let error = Executable::read(&File::open(&path).expect("a file"));
            assert_eq!(error.expect_err("it is refused").to_string(), reason);
        }
    }
}
