//! Detects the processor architecture of a program from its ELF header. Does not check that the system can
//! execute it.

use std::io::{self, Read};
use std::path::Path;

use napreduce_local::world::disk::{Disk, Opening};
use thiserror::Error;

const HEADER_BYTES: usize = 20;
const MAGIC: [u8; 4] = *b"\x7fELF";
const CLASS: usize = 4;
const CLASS_64: u8 = 2;
const BYTE_ORDER: usize = 5;
const BIG_ENDIAN: u8 = 2;
const MACHINE: usize = 18;

/// The reason why a file is not a supported program.
#[derive(Debug, Error)]
pub(crate) enum ExecutableError {
    #[error("cannot read the program {path}: {source}")]
    Io { path: String, source: io::Error },
    #[error("{path} is not an ELF executable; submit from a program that was compiled for Linux")]
    NotElf { path: String },
    #[error("the program {path} is for an unknown processor (ELF machine {machine})")]
    UnknownMachine { path: String, machine: u16 },
}

/// Returns the architecture of a program, named as in `std::env::consts::ARCH`. Blocking.
pub(crate) fn program_architecture(
    disk: &dyn Disk,
    path: &Path,
) -> Result<&'static str, ExecutableError> {
    let shown = || path.display().to_string();
    let mut header = [0; HEADER_BYTES];
    let opened = disk.open(path, Opening::ReadLinked);
    match opened.and_then(|mut file| file.read_exact(&mut header)) {
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
            return Err(ExecutableError::NotElf { path: shown() });
        }
        other => other.map_err(|source| ExecutableError::Io {
            path: shown(),
            source,
        })?,
    }
    if header[..MAGIC.len()] != MAGIC {
        return Err(ExecutableError::NotElf { path: shown() });
    }
    let field = [header[MACHINE], header[MACHINE + 1]];
    let machine = if header[BYTE_ORDER] == BIG_ENDIAN {
        u16::from_be_bytes(field)
    } else {
        u16::from_le_bytes(field)
    };
    name(machine, header[CLASS] == CLASS_64).ok_or_else(|| ExecutableError::UnknownMachine {
        path: shown(),
        machine,
    })
}

/// Maps the machine numbers of the ELF specification.
fn name(machine: u16, wide: bool) -> Option<&'static str> {
    Some(match machine {
        2 => "sparc",
        3 => "x86",
        8 if wide => "mips64",
        8 => "mips",
        20 => "powerpc",
        21 => "powerpc64",
        22 => "s390x",
        40 => "arm",
        43 => "sparc64",
        62 => "x86_64",
        183 => "aarch64",
        243 if wide => "riscv64",
        243 => "riscv32",
        258 => "loongarch64",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use napreduce_local::world::disk::RealDisk;

    use super::*;

    fn architecture(header: &[u8]) -> Result<&'static str, String> {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("program");
        std::fs::write(&path, header).expect("a written file");
        program_architecture(&RealDisk, &path).map_err(|error| error.to_string())
    }

    fn header(class: u8, order: u8, machine: [u8; 2]) -> Vec<u8> {
        let mut header = vec![0x7f, b'E', b'L', b'F', class, order];
        header.resize(MACHINE, 0);
        header.extend(machine);
        header
    }

    #[test]
    fn program_architecture_of_test_is_this_processor() {
        let found = program_architecture(&RealDisk, Path::new("/proc/self/exe"))
            .expect("this is a program");
        assert_eq!(found, std::env::consts::ARCH);
    }

    #[test]
    fn program_architecture_reads_both_byte_orders_and_widths() {
        assert_eq!(architecture(&header(2, 1, [183, 0])), Ok("aarch64"));
        assert_eq!(architecture(&header(2, 2, [0, 22])), Ok("s390x"));
        assert_eq!(architecture(&header(1, 1, [243, 0])), Ok("riscv32"));
        assert_eq!(architecture(&header(2, 1, [243, 0])), Ok("riscv64"));
    }

    #[test]
    fn program_architecture_without_elf_header_names_file() {
        for content in [&b"#!/bin/sh\necho this is a script\n"[..], b"", b"\x7fELF"] {
            let error = architecture(content).expect_err("not a program");
            assert!(
                error.contains("program is not an ELF executable; submit from"),
                "{error}"
            );
        }
        let error = architecture(&header(2, 1, [0xff, 0xfe])).expect_err("an unknown processor");
        assert!(
            error.ends_with("for an unknown processor (ELF machine 65279)"),
            "{error}"
        );
        let error = program_architecture(&RealDisk, Path::new("/nowhere/at all"))
            .expect_err("a missing file");
        assert!(
            error
                .to_string()
                .starts_with("cannot read the program /nowhere/at all: "),
            "{error}"
        );
    }
}
