//! The file that describes a checkpoint. It is written under a temporary name; its content is validated when
//! read.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Component, Path, PathBuf};

use napreduce_data::SavedFile;
use napreduce_engine::TaskId;
use napreduce_protocol::{IoResult, open_regular};
use serde::{Deserialize, Serialize};

use super::description::{Checkpoint, CheckpointStage};
use super::error::{CheckpointError, FileResult};

const NAME: &str = "checkpoint";
const PARTIAL: &str = "checkpoint.partial";
const SET_ASIDE: &str = "checkpoint.damaged";
const MAGIC: [u8; 8] = *b"NAPCKPT\n";
pub(super) const VERSION: u32 = 2;
const HEADER_BYTES: usize = 8 + 4 + 3 * 8;
const CRC_BYTES: usize = 4;
/// Maximum length of the description, and of the state.
const SECTION_BYTES_MAX: u64 = 1 << 30;

/// The JSON part of the file.
#[derive(Serialize, Deserialize)]
struct Described<C> {
    checkpoint: C,
    /// Whether there is a user state, which may be empty.
    has_user_state: bool,
}

impl Checkpoint {
    /// Writes the description into `directory` as the last step of a checkpoint, when every file that it
    /// names is complete. Returns its length in bytes.
    ///
    /// # Errors
    /// Returns `Io`, or `TooLarge` for a state beyond the maximum.
    pub fn write(&self, directory: &Path, durable: bool) -> Result<u64, CheckpointError> {
        let bytes = self.encode()?;
        let partial = directory.join(PARTIAL);
        let path = directory.join(NAME);
        let mut file = File::create(&partial).at("create", &partial)?;
        file.write_all(&bytes).at("write", &partial)?;
        if durable {
            file.sync_data().at("sync", &partial)?;
        }
        fs::rename(&partial, &path).at("rename", &partial)?;
        if durable {
            for directory in directory.ancestors().take(3) {
                let synced = File::open(directory).and_then(|opened| opened.sync_all());
                synced.at("sync", directory)?;
            }
        }
        Ok(bytes.len() as u64)
    }

    /// Reads the checkpoint in `directory`, which must belong to `task`.
    ///
    /// # Errors
    /// Fails if the checkpoint is unusable; the task then starts from scratch.
    pub fn read(directory: &Path, task: TaskId) -> Result<Checkpoint, CheckpointError> {
        let path = directory.join(NAME);
        let file = open_regular(&path).at("open", &path)?;
        let length = file.metadata().at("read", &path)?.len();
        let bytes = read_whole(file, length, &path)?;
        let checkpoint = decode(&bytes, &path)?;
        if checkpoint.attempt.task != task {
            let attempt = checkpoint.attempt;
            return Err(CheckpointError::OtherTask {
                path,
                attempt,
                wanted: task,
            });
        }
        for name in checkpoint.names() {
            check_name(name).map_err(|what| CheckpointError::damaged(&path, what))?;
        }
        Ok(checkpoint)
    }

    /// Disables a checkpoint whose files are damaged: the next attempt finds none and starts from scratch.
    ///
    /// # Errors
    /// Returns `Io`, unless it was disabled before.
    pub fn set_aside(directory: &Path) -> Result<(), CheckpointError> {
        let path = directory.join(NAME);
        let renamed = fs::rename(&path, directory.join(SET_ASIDE))
            .if_there()
            .map(drop);
        renamed.at("disable damaged checkpoint", &path)
    }

    /// Disables a checkpoint whose attempt has saved a later one. The files that it names stay, since the
    /// later one names them too.
    ///
    /// # Errors
    /// Returns `Io`, unless it was disabled before.
    pub fn supersede(directory: &Path) -> Result<(), CheckpointError> {
        let path = directory.join(NAME);
        let removed = fs::remove_file(&path).if_there().map(drop);
        removed.at("remove", &path)
    }

    /// Returns whether the checkpoint in `directory` was disabled because its files are damaged.
    pub(crate) fn is_set_aside(directory: &Path) -> bool {
        directory.join(SET_ASIDE).exists()
    }

    /// Returns the path of the description in a directory.
    pub(super) fn path_in(directory: &Path) -> PathBuf {
        directory.join(NAME)
    }

    /// Returns all files that it names, including those of the data plane.
    pub(super) fn files(&self) -> impl Iterator<Item = String> {
        let saved: Vec<&SavedFile> = match &self.stage {
            CheckpointStage::Map { collection, .. } => {
                collection.iter().flat_map(|saved| saved.files()).collect()
            }
            CheckpointStage::FetchInputs { .. } => Vec::new(),
            CheckpointStage::Reducing { position, .. } => position.files().collect(),
        };
        let saved = saved
            .into_iter()
            .map(|saved| saved.file.to_string_lossy().into_owned());
        self.names().map(str::to_owned).chain(saved)
    }

    /// Returns the files that it names directly.
    fn names(&self) -> impl Iterator<Item = &str> {
        let fetched = match &self.stage {
            CheckpointStage::FetchInputs { fetched } => fetched.as_slice(),
            CheckpointStage::Map { .. } | CheckpointStage::Reducing { .. } => &[],
        };
        let fetched = fetched.iter().map(|input| input.file.as_str());
        self.pieces
            .iter()
            .map(|piece| piece.file.as_str())
            .chain(fetched)
    }

    fn encode(&self) -> Result<Vec<u8>, CheckpointError> {
        let described = Described {
            checkpoint: self,
            has_user_state: self.user_state.is_some(),
        };
        let description = serde_json::to_vec(&described).map_err(io::Error::from);
        let description = description.at("describe", Path::new(NAME))?;
        let user_state = self.user_state.as_deref().unwrap_or_default();
        let sections = [
            ("the description of a checkpoint", description.as_slice()),
            ("the state of the user's code", user_state),
            (
                "the state of the output format",
                self.format_state.as_slice(),
            ),
        ];
        let mut bytes =
            Vec::with_capacity(HEADER_BYTES + description.len() + user_state.len() + CRC_BYTES);
        bytes.extend_from_slice(&MAGIC);
        bytes.extend_from_slice(&VERSION.to_le_bytes());
        for (what, section) in sections {
            let length = section.len() as u64;
            if length > SECTION_BYTES_MAX {
                return Err(CheckpointError::TooLarge {
                    what,
                    bytes: length,
                    limit: SECTION_BYTES_MAX,
                });
            }
            bytes.extend_from_slice(&length.to_le_bytes());
        }
        for (_, section) in sections {
            bytes.extend_from_slice(section);
        }
        bytes.extend_from_slice(&crc32c::crc32c(&bytes).to_le_bytes());
        Ok(bytes)
    }
}

/// Reads at most the maximum size of a checkpoint, whatever the file's length.
fn read_whole(file: File, length: u64, path: &Path) -> Result<Vec<u8>, CheckpointError> {
    let most = 3 * SECTION_BYTES_MAX + (HEADER_BYTES + CRC_BYTES) as u64;
    if length > most {
        return Err(CheckpointError::damaged(
            path,
            format!("{length} bytes are too many for a checkpoint"),
        ));
    }
    let mut bytes = Vec::with_capacity(usize::try_from(length).unwrap_or(0));
    file.take(most).read_to_end(&mut bytes).at("read", path)?;
    Ok(bytes)
}

/// Decodes the file. The version is checked before the checksum, which another version may compute
/// differently.
fn decode(bytes: &[u8], path: &Path) -> Result<Checkpoint, CheckpointError> {
    let damaged = |what: String| CheckpointError::damaged(path, what);
    let Some((header, rest)) = bytes.split_first_chunk::<HEADER_BYTES>() else {
        return Err(damaged(format!("it has only {} bytes", bytes.len())));
    };
    if header[..8] != MAGIC {
        return Err(damaged("it does not begin as a checkpoint".to_owned()));
    }
    let found = u32::from_le_bytes([header[8], header[9], header[10], header[11]]);
    if found != VERSION {
        return Err(CheckpointError::Version {
            path: path.to_owned(),
            found,
            known: VERSION,
        });
    }
    let Some((rest, crc)) = rest.split_last_chunk::<CRC_BYTES>() else {
        return Err(damaged("it has no checksum".to_owned()));
    };
    if crc32c::crc32c(&bytes[..bytes.len() - CRC_BYTES]) != u32::from_le_bytes(*crc) {
        return Err(damaged("the checksum does not match".to_owned()));
    }
    let mut rest = rest;
    let mut sections: [&[u8]; 3] = [&[]; 3];
    for (section, length) in sections.iter_mut().zip(header[12..].chunks_exact(8)) {
        let mut eight = [0; 8];
        eight.copy_from_slice(length);
        let length = u64::from_le_bytes(eight);
        let split = usize::try_from(length)
            .ok()
            .and_then(|length| rest.split_at_checked(length));
        (*section, rest) =
            split.ok_or_else(|| damaged(format!("a section of {length} bytes is missing")))?;
    }
    if !rest.is_empty() {
        return Err(damaged(format!("{} bytes follow its content", rest.len())));
    }
    let [description, user_state, format_state] = sections;
    let described: Described<Checkpoint> =
        serde_json::from_slice(description).map_err(|error| damaged(error.to_string()))?;
    let mut checkpoint = described.checkpoint;
    checkpoint.user_state = described.has_user_state.then(|| user_state.to_vec());
    checkpoint.format_state = format_state.to_vec();
    Ok(checkpoint)
}

/// Checks that a name refers to a file of a sibling checkpoint.
pub(super) fn check_name(name: &str) -> Result<(), String> {
    let mut components = Path::new(name).components();
    let normal = |component| matches!(component, Some(Component::Normal(_)));
    let two = normal(components.next()) && normal(components.next()) && components.next().is_none();
    let plain = !name.contains('\0') && name.split('/').count() == 2;
    if two && plain {
        Ok(())
    } else {
        Err(format!("invalid checkpoint file name {name:?}"))
    }
}
