//! Metadata and lists of objects.

use futures_util::TryStreamExt;
use napreduce_protocol::ObjectEntry;
use object_store::list::{PaginatedListOptions, PaginatedListStore};
use object_store::path::Path;
use object_store::{ObjectMeta, ObjectStoreExt as _};

use crate::stores::connection::bucket;
use crate::stores::object::{path_of, quoted};
use crate::stores::requests::{RetryBudget, retried};
use crate::stores::upload::no_version;
use crate::stores::{ObjectUri, StorageError, threads};

/// An existing object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundObject {
    /// Its name in the store.
    pub uri: ObjectUri,
    /// Its size in bytes.
    pub length: u64,
    /// Its version: the ETag.
    pub version: String,
    /// Time of the last write by the clock of the store, in seconds since 1970.
    pub modified: i64,
}

impl FoundObject {
    pub(crate) fn of(uri: ObjectUri, found: ObjectMeta) -> Result<FoundObject, StorageError> {
        let version = found.e_tag.ok_or_else(|| no_version(&uri))?;
        let modified = found.last_modified.timestamp();
        Ok(FoundObject {
            uri,
            length: found.size,
            version: quoted(version),
            modified,
        })
    }

    /// Converts to the runtime's type.
    pub(crate) fn entry(self) -> ObjectEntry {
        let FoundObject {
            uri,
            length,
            version,
            modified,
        } = self;
        ObjectEntry {
            object: uri.to_string(),
            bytes: length,
            version,
            modified,
        }
    }
}

/// Returns the metadata of one object.
///
/// # Errors
///
/// [`StorageError::Missing`] if it does not exist; other errors after retries for three minutes.
pub fn stat(uri: &ObjectUri) -> Result<FoundObject, StorageError> {
    let bucket = bucket(uri)?;
    let path = path_of(uri)?;
    let object = uri.clone();
    let head =
        async move { retried(&object, RetryBudget::new(), || bucket.objects.head(&path)).await };
    FoundObject::of(uri.clone(), threads::wait(uri, head)??)
}

/// Lists all objects whose keys begin with that of `uri` and a slash, or the whole bucket if the key is
/// empty, in no particular order and without folder markers.
///
/// # Errors
///
/// If the bucket does not exist, or cannot be listed after retries for three minutes.
pub fn list(uri: &ObjectUri) -> Result<Vec<FoundObject>, StorageError> {
    let bucket = bucket(uri)?;
    let prefix = path_of(uri)?;
    let asked = uri.clone();
    let listed = threads::wait(uri, async move {
        let prefix: Option<&Path> = (!prefix.is_root()).then_some(&prefix);
        if let Some(pages) = &bucket.pages {
            return by_pages(&**pages, prefix, &asked).await;
        }
        let whole = || bucket.objects.list(prefix).try_collect::<Vec<ObjectMeta>>();
        retried(&asked, RetryBudget::new(), whole).await
    });
    let listed = match listed? {
        Ok(listed) => listed,
        Err(StorageError::Missing { .. }) => return Err(uri.no_bucket()),
        Err(error) => return Err(error),
    };
    let found =
        |object: ObjectMeta| FoundObject::of(uri.with_key(object.location.as_ref()), object);
    let mut found = listed
        .into_iter()
        .map(found)
        .collect::<Result<Vec<_>, _>>()?;
    remove_marks(&mut found);
    Ok(found)
}

/// Retries each page separately.
async fn by_pages(
    pages: &dyn PaginatedListStore,
    prefix: Option<&Path>,
    asked: &ObjectUri,
) -> Result<Vec<ObjectMeta>, StorageError> {
    let prefix = prefix.map(|prefix| format!("{prefix}/"));
    let mut found = Vec::new();
    let mut options = PaginatedListOptions::default();
    loop {
        let page = || pages.list_paginated(prefix.as_deref(), options.clone());
        let page = retried(asked, RetryBudget::new(), page).await?;
        found.extend(page.result.objects);
        options.page_token = page.page_token;
        if options.page_token.is_none() {
            return Ok(found);
        }
    }
}

/// Consoles create empty objects as folder markers; `object_store` strips their final slash.
fn remove_marks(found: &mut Vec<FoundObject>) {
    let mut folders = std::collections::HashSet::new();
    for object in found.iter() {
        let mut key = object.uri.key();
        while let Some((folder, _)) = key.rsplit_once('/') {
            if !folders.insert(folder.to_owned()) {
                break;
            }
            key = folder;
        }
    }
    found.retain(|object| object.length > 0 || !folders.contains(object.uri.key()));
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use object_store::ListResult;
    use object_store::client::{HttpError, HttpErrorKind};
    use object_store::list::PaginatedListResult;

    use super::*;

    /// Three pages of one object each; the first request for each page fails.
    #[derive(Default)]
    struct Pages(Mutex<Vec<String>>);

    #[async_trait::async_trait]
    impl PaginatedListStore for Pages {
        async fn list_paginated(
            &self,
            prefix: Option<&str>,
            options: PaginatedListOptions,
        ) -> object_store::Result<PaginatedListResult> {
            assert_eq!(prefix, Some("out/"));
            let token = options.page_token.unwrap_or_else(|| "0".to_owned());
            let mut asked = self.0.lock().expect("not poisoned");
            asked.push(token.clone());
            if asked.iter().filter(|before| **before == token).count() < 2 {
                let error =
                    HttpError::new(HttpErrorKind::Connect, std::io::Error::other("no answer"));
                return Err(object_store::Error::Generic {
                    store: "test",
                    source: Box::new(error),
                });
            }
            let location = Path::from(format!("out/{token}"));
            let last_modified = Default::default();
            let object = ObjectMeta {
                location,
                last_modified,
                size: 1,
                e_tag: None,
                version: None,
            };
            let objects = vec![object];
            let common_prefixes = Vec::new();
            let extensions = Default::default();
            let result = ListResult {
                objects,
                common_prefixes,
                extensions,
            };
            let next = token.parse::<u32>().expect("a number") + 1;
            Ok(PaginatedListResult {
                result,
                page_token: (next < 3).then(|| next.to_string()),
            })
        }
    }

    #[test]
    fn failed_page_is_retried_alone() {
        let uri = ObjectUri::parse("s3://b/out".as_ref()).expect("a name");
        let pages = std::sync::Arc::new(Pages::default());
        let asked = std::sync::Arc::clone(&pages);
        let object = uri.clone();
        let listing = async move { by_pages(&*asked, Some(&Path::from("out")), &object).await };
        let listed = threads::wait(&uri, listing);
        let listed = listed.expect("threads").expect("all pages came");
        let keys: Vec<String> = listed
            .into_iter()
            .map(|object| object.location.to_string())
            .collect();
        assert_eq!(keys, ["out/0", "out/1", "out/2"]);
        assert_eq!(
            *pages.0.lock().expect("not poisoned"),
            ["0", "0", "1", "1", "2", "2"]
        );
    }

    #[test]
    fn folder_markers_are_not_listed() {
        let object = |(key, length): (&str, u64)| FoundObject {
            uri: ObjectUri::parse(format!("s3://b/{key}").as_ref()).expect("a name"),
            length,
            version: "1".to_owned(),
            modified: 0,
        };
        let there = [
            ("a", 0),
            ("a/b", 0),
            ("a/b/c", 1),
            ("d", 0),
            ("e", 5),
            ("e/f", 0),
        ];
        let mut found: Vec<FoundObject> = there.into_iter().map(object).collect();
        remove_marks(&mut found);
        let left: Vec<&str> = found.iter().map(|object| object.uri.key()).collect();
        assert_eq!(
            left,
            ["a/b/c", "d", "e", "e/f"],
            "an empty object may be an input; a folder is none"
        );
    }
}
