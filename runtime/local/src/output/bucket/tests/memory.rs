//! A store in memory, and processes that use it, one of which fails at a chosen call.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};

use napreduce_protocol::{
    ObjectEntry, ObjectStores, PendingUpload, PutCondition, StoreError, StoredUpload, UploadWriter,
    WrittenFigures,
};

use super::OUT;

#[derive(Debug, Default)]
struct Contents {
    /// Text, version and time, by full name.
    objects: BTreeMap<String, (String, u64, i64)>,
    /// Object and text, by upload ID.
    uploads: BTreeMap<String, (String, String)>,
    written: u64,
    now: i64,
    completed: usize,
}

/// A store shared by several processes.
#[derive(Debug, Clone, Default)]
pub(super) struct MemoryStores(Arc<Mutex<Contents>>);

/// The fault of one call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fault {
    /// Not carried out; the store is unavailable.
    Away,
    /// Carried out; no call after it: the process was killed.
    Last,
}

/// A process that uses the store.
#[derive(Debug)]
pub(super) struct Process {
    stores: MemoryStores,
    /// The number of the failing call, counted from 0.
    fault: Option<(usize, Fault)>,
    state: Mutex<(usize, bool)>,
}

impl MemoryStores {
    fn lock(&self) -> MutexGuard<'_, Contents> {
        self.0.lock().expect("no test panics in here")
    }

    /// Returns a process that lives as long as the test.
    pub(super) fn process(&self, fault: Option<(usize, Fault)>) -> &'static Process {
        Box::leak(Box::new(Process {
            stores: self.clone(),
            fault,
            state: Mutex::default(),
        }))
    }

    /// Uploads a part without completing it.
    pub(super) fn upload(&self, name: &str, text: &str) -> PendingUpload {
        self.upload_of(&format!("{OUT}/{name}"), text)
    }

    pub(super) fn upload_of(&self, object: &str, text: &str) -> PendingUpload {
        let mut contents = self.lock();
        contents.written += 1;
        let id = format!("upload-{}", contents.written);
        contents
            .uploads
            .insert(id.clone(), (object.to_owned(), text.to_owned()));
        PendingUpload {
            id,
            parts: vec![text.len().to_string()],
        }
    }

    /// Aborts an upload.
    pub(super) fn drop_upload(&self, upload: &PendingUpload) {
        self.lock().uploads.remove(&upload.id);
    }

    /// Writes an object.
    pub(super) fn set(&self, name: &str, text: &str) {
        self.lock().set(&format!("{OUT}/{name}"), text);
    }

    pub(super) fn unset(&self, name: &str) {
        self.lock().objects.remove(&format!("{OUT}/{name}"));
    }

    /// Advances the clock.
    pub(super) fn pass(&self, seconds: i64) {
        self.lock().now += seconds;
    }

    /// Returns the objects of the output, by name.
    pub(super) fn files(&self) -> BTreeMap<String, String> {
        let of = |(object, (text, ..)): (&String, &(String, u64, i64))| {
            Some((
                object.strip_prefix(OUT)?.strip_prefix('/')?.to_owned(),
                text.clone(),
            ))
        };
        self.lock().objects.iter().filter_map(of).collect()
    }

    pub(super) fn version(&self, name: &str) -> String {
        self.lock().objects[&format!("{OUT}/{name}")].1.to_string()
    }

    /// Returns the uploads that were not completed.
    pub(super) fn uploads_left(&self) -> Vec<String> {
        self.lock()
            .uploads
            .values()
            .map(|(object, _)| object.clone())
            .collect()
    }

    pub(super) fn completed(&self) -> usize {
        self.lock().completed
    }
}

impl Contents {
    fn set(&mut self, object: &str, text: &str) -> String {
        self.written += 1;
        self.objects
            .insert(object.to_owned(), (text.to_owned(), self.written, self.now));
        self.written.to_string()
    }

    fn entry(&self, object: &str) -> Option<ObjectEntry> {
        let (text, version, modified) = self.objects.get(object)?;
        let bytes = text.len() as u64;
        let version = version.to_string();
        Some(ObjectEntry {
            object: object.to_owned(),
            bytes,
            version,
            modified: *modified,
        })
    }
}

impl Process {
    /// Returns the number of calls so far.
    pub(super) fn calls(&self) -> usize {
        self.state.lock().expect("no test panics in here").0
    }

    pub(super) fn is_dead(&self) -> bool {
        self.state.lock().expect("no test panics in here").1
    }

    fn call<T>(&self, act: impl FnOnce(&mut Contents) -> T) -> Result<T, StoreError> {
        let away = || StoreError {
            message: "the store is away".to_owned(),
            is_passing: true,
        };
        let mut state = self.state.lock().expect("no test panics in here");
        if state.1 {
            return Err(away());
        }
        let fault = self
            .fault
            .filter(|(call, _)| *call == state.0)
            .map(|(_, fault)| fault);
        state.0 += 1;
        if fault == Some(Fault::Away) {
            return Err(away());
        }
        let done = act(&mut self.stores.lock());
        match fault {
            Some(Fault::Last) => {
                state.1 = true;
                Err(away())
            }
            _ => Ok(done),
        }
    }
}

impl ObjectStores for Process {
    fn begin_upload(&self, object: &str) -> Result<Box<dyn UploadWriter>, StoreError> {
        panic!("no part of {object} is written here")
    }

    fn complete_upload(
        &self,
        object: &str,
        upload: &PendingUpload,
    ) -> Result<Option<String>, StoreError> {
        self.call(|contents| {
            let (of, text) = contents.uploads.remove(&upload.id)?;
            assert_eq!(of, object);
            contents.completed += 1;
            Some(contents.set(object, &text))
        })
    }

    fn version_of(&self, _: &str, _: &PendingUpload) -> Option<String> {
        None
    }

    fn abort_upload(&self, upload: &StoredUpload) -> Result<(), StoreError> {
        self.call(|contents| drop(contents.uploads.remove(&upload.id)))
    }

    fn uploads(&self, under: &str) -> Result<Vec<StoredUpload>, StoreError> {
        let prefix = format!("{under}/");
        self.call(|contents| {
            let all = contents
                .uploads
                .iter()
                .filter(|(_, (object, _))| object.starts_with(&prefix));
            all.map(|(id, (object, _))| StoredUpload {
                object: object.clone(),
                id: id.clone(),
            })
            .collect()
        })
    }

    fn get(&self, object: &str) -> Result<Option<(Vec<u8>, ObjectEntry)>, StoreError> {
        self.call(|contents| {
            Some((
                contents.objects.get(object)?.0.clone().into_bytes(),
                contents.entry(object)?,
            ))
        })
    }

    fn put(
        &self,
        object: &str,
        bytes: &[u8],
        condition: PutCondition<'_>,
    ) -> Result<Option<String>, StoreError> {
        self.call(|contents| {
            let there = contents.entry(object).map(|entry| entry.version);
            let is_met = match condition {
                PutCondition::Always => true,
                PutCondition::Absent => there.is_none(),
                PutCondition::Version(version) => there.as_deref() == Some(version),
            };
            is_met.then(|| contents.set(object, std::str::from_utf8(bytes).expect("text")))
        })
    }

    fn find(&self, object: &str) -> Result<Option<ObjectEntry>, StoreError> {
        self.call(|contents| contents.entry(object))
    }

    fn remove(&self, object: &str) -> Result<(), StoreError> {
        self.call(|contents| drop(contents.objects.remove(object)))
    }

    fn list(&self, under: &str) -> Result<Vec<ObjectEntry>, StoreError> {
        let prefix = format!("{under}/");
        self.call(|contents| {
            let names = contents
                .objects
                .keys()
                .filter(|object| object.starts_with(&prefix));
            names.filter_map(|object| contents.entry(object)).collect()
        })
    }

    fn take_written(&self) -> WrittenFigures {
        WrittenFigures::default()
    }
}
