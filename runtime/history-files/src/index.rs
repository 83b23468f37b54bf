//! The index: what a listing shows of each job, in one file that is read at once instead of all heads.
//!
//! Owns `index.redb`, which the coordinator alone opens. It is a copy of what the heads say: whatever is
//! wrong with it, it is made anew from them, and nothing that becomes of it keeps the coordinator from its
//! work. Does not own the heads.

use std::collections::BTreeMap;
use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use napreduce_core::JobId;
use napreduce_protocol::JobSummary;
use redb::{Database, Durability, ReadableDatabase, ReadableTable, TableDefinition};
use serde::{Deserialize, Serialize};

use crate::head::in_hexadecimal;

/// Version of the rows; an index of another one is made anew.
const INDEX_VERSION: u32 = 1;
const VERSION: TableDefinition<'_, &str, u32> = TableDefinition::new("version");
const JOBS: TableDefinition<'_, u32, &[u8]> = TableDefinition::new("jobs");
/// It is read once, so that much memory for its pages is of no use.
const CACHE_BYTES: usize = 4 << 20;
/// One change in so many is forced to the disk: what is lost with the machine, the heads give again.
const DURABLE_EVERY: u32 = 64;

/// A job in the index.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct IndexRow {
    pub(crate) summary: JobSummary,
    #[serde(with = "in_hexadecimal")]
    pub(crate) token: u128,
    pub(crate) stamp: Stamp,
}

/// What the files of a job looked like when its row was made: with other ones the row is worth nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(crate) struct Stamp {
    pub(crate) head_bytes: u64,
    pub(crate) head_modified_nanos: u64,
    /// Zero when there is none.
    pub(crate) recording_bytes: u64,
}

impl Stamp {
    /// Of both files.
    pub(crate) fn bytes(self) -> u64 {
        self.head_bytes.saturating_add(self.recording_bytes)
    }
}

/// The file, as long as it can be used.
#[derive(Debug)]
pub(crate) struct Index {
    path: PathBuf,
    database: Mutex<Open>,
}

#[derive(Debug)]
struct Open {
    /// `None` once something was wrong with it; the next start makes it anew.
    database: Option<Database>,
    changes: u32,
}

impl Index {
    /// Opens the index, or begins it anew when it is missing or worth nothing; its rows, and what there is to
    /// say.
    pub(crate) fn open(path: &Path) -> (Index, BTreeMap<JobId, IndexRow>, Vec<String>) {
        let (mut rows, mut remarks) = (BTreeMap::new(), Vec::new());
        let mut database = None;
        if path.exists() {
            match guarded(|| load(path)) {
                Ok((loaded, read)) => (database, rows) = (Some(loaded), read),
                Err(why) => remarks.push(format!("{} is made anew: {why}", path.display())),
            }
        }
        if database.is_none() {
            match guarded(|| begin(path)) {
                Ok(begun) => database = Some(begun),
                Err(why) => {
                    remarks.push(format!("there is no index of the history: {}: {why}", path.display()))
                }
            }
        }
        let database = Mutex::new(Open { database, changes: 0 });
        (Index { path: path.to_owned(), database }, rows, remarks)
    }

    /// Takes in and takes out; why not in return, which is said once.
    pub(crate) fn change(&self, put: &[(JobId, IndexRow)], removed: &[JobId]) -> Result<(), String> {
        let mut open = self.lock();
        open.changes += 1;
        let durable = open.changes.is_multiple_of(DURABLE_EVERY) || put.len() + removed.len() > 1;
        let Some(database) = &open.database else { return Ok(()) };
        let changed = guarded(|| change(database, put, removed, durable));
        changed.map_err(|why| {
            let broken = open.database.take();
            let _ = guarded(|| {
                drop(broken);
                Ok(())
            });
            format!("{} is made anew at the next start: {why}", self.path.display())
        })
    }

    fn lock(&self) -> MutexGuard<'_, Open> {
        self.database.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Index {
    fn drop(&mut self) {
        let database = self.lock().database.take();
        // What is not on the disk is read from the heads again.
        let _ = guarded(|| match database {
            Some(database) => change(&database, &[], &[], true),
            None => Ok(()),
        });
    }
}

/// The database does not expect that its pages are damaged everywhere, and may panic.
fn guarded<T>(act: impl FnOnce() -> Result<T, redb::Error>) -> Result<T, String> {
    match catch_unwind(AssertUnwindSafe(act)) {
        Ok(done) => done.map_err(|error| error.to_string()),
        Err(_) => Err("its pages are damaged".to_owned()),
    }
}

fn damaged(what: impl Into<String>) -> redb::Error {
    redb::Error::Corrupted(what.into())
}

fn load(path: &Path) -> Result<(Database, BTreeMap<JobId, IndexRow>), redb::Error> {
    let database = Database::builder().set_cache_size(CACHE_BYTES).open(path)?;
    let read = database.begin_read()?;
    let version = read.open_table(VERSION)?.get("index")?.map(|version| version.value());
    if version != Some(INDEX_VERSION) {
        return Err(damaged(format!("it has version {version:?}, and this program reads {INDEX_VERSION}")));
    }
    let mut rows = BTreeMap::new();
    for row in read.open_table(JOBS)?.iter()? {
        let (job, bytes) = row?;
        rows.insert(JobId(job.value()), decode(bytes.value()).map_err(damaged)?);
    }
    drop(read);
    Ok((database, rows))
}

fn begin(path: &Path) -> Result<Database, redb::Error> {
    match fs::remove_file(path) {
        Ok(()) => {}
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
        Err(error) => return Err(error.into()),
    }
    let database = Database::builder().set_cache_size(CACHE_BYTES).create(path)?;
    let write = database.begin_write()?;
    write.open_table(VERSION)?.insert("index", INDEX_VERSION)?;
    write.open_table(JOBS)?;
    write.commit()?;
    Ok(database)
}

fn change(
    database: &Database,
    put: &[(JobId, IndexRow)],
    removed: &[JobId],
    durable: bool,
) -> Result<(), redb::Error> {
    let mut write = database.begin_write()?;
    if !durable {
        write.set_durability(Durability::None).map_err(redb::Error::from)?;
    }
    {
        let mut jobs = write.open_table(JOBS)?;
        for (job, row) in put {
            jobs.insert(job.0, &encode(row).map_err(damaged)?[..])?;
        }
        for job in removed {
            jobs.remove(job.0)?;
        }
    }
    write.commit()?;
    Ok(())
}

/// A checksum before the JSON: the database has its own, and looks at them only after a crash.
fn encode(row: &IndexRow) -> Result<Vec<u8>, String> {
    let json = serde_json::to_vec(row).map_err(|error| error.to_string())?;
    Ok([&crc32c::crc32c(&json).to_le_bytes()[..], &json].concat())
}

fn decode(bytes: &[u8]) -> Result<IndexRow, String> {
    let (checksum, json) = bytes.split_first_chunk().ok_or("a row is cut")?;
    if u32::from_le_bytes(*checksum) != crc32c::crc32c(json) {
        return Err("the checksum of a row is wrong".to_owned());
    }
    serde_json::from_slice(json).map_err(|error| error.to_string())
}
