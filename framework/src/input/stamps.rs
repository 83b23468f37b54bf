//! Detection of inputs that changed since the job began. Attempts that read different bytes would give an
//! output of neither input. Appended bytes are allowed, since no split reads them; a truncated file is
//! detected at its end.

use std::fs::{self, Metadata};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use napreduce_protocol::{FileStamp, InputSplit, Split};

use super::error::InputError;

/// Records the current state of the files of splits. Splits of one file are consecutive.
pub fn stamp(splits: &mut [InputSplit]) -> Result<(), InputError> {
    let mut last: Option<(PathBuf, FileStamp)> = None;
    for split in splits {
        let mut stamps = Vec::with_capacity(split.parts.len());
        for part in &split.parts {
            let stamp = match &last {
                // An object is identified by its version.
                _ if part.version.is_some() => FileStamp {
                    modified_nanos: 0,
                    inode: 0,
                },
                Some((path, stamp)) if *path == part.path => *stamp,
                _ => stamp_of(&look_at(&part.path)?),
            };
            last = Some((part.path.clone(), stamp));
            stamps.push(stamp);
        }
        split.stamps = stamps;
    }
    Ok(())
}

/// Rejects a file that was replaced or modified, except by appending. A copy on another host has another
/// inode but the same time.
pub fn check_unchanged(part: &Split, stamp: Option<&FileStamp>) -> Result<(), InputError> {
    let Some(stamp) = stamp.filter(|_| part.version.is_none()) else {
        return Ok(());
    };
    let file = look_at(&part.path)?;
    let now = stamp_of(&file);
    let how = if file.len() < part.file_length || now.modified_nanos == stamp.modified_nanos {
        return Ok(());
    } else if now.inode != stamp.inode {
        "replaced"
    } else if file.len() == part.file_length {
        "written to"
    } else {
        return Ok(());
    };
    Err(InputError::Changed {
        path: part.path.clone(),
        how,
    })
}

fn look_at(path: &Path) -> Result<Metadata, InputError> {
    fs::metadata(path).map_err(|error| InputError::unreadable(path, error))
}

fn stamp_of(file: &Metadata) -> FileStamp {
    let nanos = file
        .mtime()
        .saturating_mul(1_000_000_000)
        .saturating_add(file.mtime_nsec());
    FileStamp {
        modified_nanos: u64::try_from(nanos).unwrap_or(0),
        inode: file.ino(),
    }
}

#[cfg(test)]
mod tests {
    use std::fs::{File, OpenOptions};
    use std::io::Write;
    use std::time::{Duration, SystemTime};

    use super::*;

    /// Writes an old file, changes it, and returns the reported change.
    fn changed(change: impl FnOnce(&Path)) -> Option<&'static str> {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("in");
        fs::write(&path, "one\ntwo\n").expect("written");
        set_time(&path);
        let mut splits = [
            InputSplit::from(Split::whole(&path, 8)),
            InputSplit::from(Split::whole(&path, 8)),
        ];
        stamp(&mut splits).expect("stamps");
        change(&path);
        let checked = check_unchanged(&splits[1].parts[0], splits[1].stamps.first());
        match checked {
            Ok(()) => None,
            Err(InputError::Changed { how, .. }) => Some(how),
            Err(other) => panic!("{other}"),
        }
    }

    /// Sets an old modification time, equal for all files.
    fn set_time(path: &Path) {
        let time = SystemTime::UNIX_EPOCH + Duration::from_secs(1_700_000_000);
        OpenOptions::new()
            .write(true)
            .open(path)
            .expect("a file")
            .set_modified(time)
            .expect("a time");
    }

    #[test]
    fn only_changes_of_read_bytes_are_detected() {
        assert_eq!(changed(|_| ()), None);
        assert_eq!(
            changed(|path| fs::write(path, "six\nten\n").expect("written")),
            Some("written to")
        );
        let replace = |path: &Path, text: &str| {
            let other = path.with_extension("new");
            fs::write(&other, text).expect("written");
            fs::rename(other, path).expect("renamed");
        };
        assert_eq!(
            changed(|path| replace(path, "six\nten\n")),
            Some("replaced")
        );
        assert_eq!(
            changed(|path| replace(path, "one\ntwo\nthree\n")),
            Some("replaced")
        );
        let append = |path: &Path| {
            let mut file = OpenOptions::new().append(true).open(path).expect("a file");
            file.write_all(b"three\n").expect("appended");
        };
        assert_eq!(changed(append), None);
        let shorten = |path: &Path| {
            File::options()
                .write(true)
                .open(path)
                .and_then(|file| file.set_len(4))
        };
        assert_eq!(
            changed(|path| shorten(path).expect("shortened")),
            None,
            "detected by its length"
        );
        let copy = |path: &Path| {
            replace(path, "one\ntwo\n");
            set_time(path);
        };
        assert_eq!(
            changed(copy),
            None,
            "another host has it under another number"
        );
    }

    #[test]
    fn removed_file_is_unreadable() {
        let gone = Path::new("/nowhere/in");
        assert!(matches!(
            stamp(&mut [Split::whole(gone, 1).into()]),
            Err(InputError::Missing { .. } | InputError::Unreadable { .. })
        ));
        assert!(
            check_unchanged(&Split::whole(gone, 1), None).is_ok(),
            "nobody looked when it was planned"
        );
    }
}
