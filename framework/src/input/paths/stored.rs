//! Expansion of INPUT arguments in a store. Keys are treated like paths of files: slashes separate
//! directories, hidden names are skipped, and globs match names between slashes.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use napreduce_connectors::stores::{
    FoundObject, ObjectUri, StorageError, StoredObject, list, stat,
};
use napreduce_local::named_output_files;

use super::pattern::{PathPattern, is_glob};
use super::{InputFile, SUCCESS, is_hidden};
use crate::input::error::InputError;
use crate::input::objects;

/// Returns the objects of one argument.
pub(super) fn expand(argument: &Path, recursive: bool) -> Result<Vec<InputFile>, InputError> {
    let failed =
        |error: StorageError| InputError::unreadable(argument, std::io::Error::other(error));
    let uri = ObjectUri::parse(argument).map_err(failed)?;
    let found = if is_glob(uri.key().as_bytes()) {
        matching(&uri, recursive, &failed)?
    } else {
        named(&uri, recursive, &failed)?
    };
    let file = |object: FoundObject| {
        let path = PathBuf::from(object.uri.to_string());
        objects::remember(&path, &object.version, object.length);
        InputFile {
            path,
            size: object.length,
            version: Some(object.version),
        }
    };
    Ok(found.into_iter().map(file).collect())
}

type Failed<'f> = &'f dyn Fn(StorageError) -> InputError;

/// Returns the object of this name, or those in the directory of this name.
fn named(
    uri: &ObjectUri,
    recursive: bool,
    failed: Failed<'_>,
) -> Result<Vec<FoundObject>, InputError> {
    let folder = uri.key().trim_end_matches('/');
    if !folder.is_empty() && folder == uri.key() {
        match stat(uri) {
            Ok(object) => return Ok(vec![object]),
            Err(StorageError::Missing { .. }) => {}
            Err(error) => return Err(failed(error)),
        }
    }
    let listed = list(&uri.with_key(folder)).map_err(failed)?;
    if listed.is_empty() && !folder.is_empty() {
        return Err(InputError::Missing {
            path: uri.to_string().into(),
        });
    }
    let depth = if folder.is_empty() {
        0
    } else {
        folder.split('/').count()
    };
    let below = listed.into_iter().map(|object| {
        let left = object.uri.key().split('/').count() - depth;
        (object, left)
    });
    directly(below.collect(), recursive, failed)
}

/// Returns the objects that a glob matches, and those in matching directories.
fn matching(
    uri: &ObjectUri,
    recursive: bool,
    failed: Failed<'_>,
) -> Result<Vec<FoundObject>, InputError> {
    let whole = |error: InputError| match error {
        InputError::BadPattern { reason, .. } => InputError::BadPattern {
            pattern: uri.to_string(),
            reason,
        },
        other => other,
    };
    let pattern = PathPattern::parse(uri.key().as_bytes()).map_err(whole)?;
    let listed = list(&uri.with_key(&pattern.spelled().join("/"))).map_err(failed)?;
    // An existing object of exactly this name has priority over a glob.
    let literal = uri.key().trim_end_matches('/');
    if let Some(at) = listed
        .iter()
        .position(|object| object.uri.key() == uri.key())
    {
        return Ok(vec![listed[at].clone()]);
    }
    let is_in = |object: &FoundObject| {
        object
            .uri
            .key()
            .strip_prefix(literal)
            .is_some_and(|rest| rest.starts_with('/'))
    };
    if listed.iter().any(is_in) {
        return named(&uri.with_key(&format!("{literal}/")), recursive, failed);
    }
    let matched = listed.into_iter().filter_map(|object| {
        let left = {
            let names: Vec<&str> = object.uri.key().split('/').collect();
            pattern.left_below(&names)?
        };
        Some((object, left))
    });
    let matched: Vec<(FoundObject, usize)> = matched.collect();
    if matched.is_empty() {
        return Err(InputError::NoMatch {
            pattern: uri.to_string(),
        });
    }
    directly(matched, recursive, failed)
}

/// Returns the keys of named outputs in the outputs of jobs among these directories.
fn named_outputs_of(found: &[(FoundObject, usize)]) -> Result<HashSet<String>, StorageError> {
    let mut keys = HashSet::new();
    for (object, _) in found {
        let Some(folder) = object.uri.key().strip_suffix(SUCCESS) else {
            continue;
        };
        if folder.ends_with('/') || folder.is_empty() {
            let names = named_output_files(&read_whole(object)?);
            keys.extend(names.into_iter().map(|name| format!("{folder}{name}")));
        }
    }
    Ok(keys)
}

fn read_whole(object: &FoundObject) -> Result<Vec<u8>, StorageError> {
    let stored = StoredObject::open(object.uri.clone(), object.version.clone(), object.length)?;
    let mut bytes = vec![0; object.length as usize];
    let mut filled = 0;
    while filled < bytes.len() {
        let read = stored.read_at(&mut bytes[filled..], filled as u64)?;
        if read == 0 {
            break;
        }
        filled += read;
    }
    bytes.truncate(filled);
    Ok(bytes)
}

/// Selects the objects of a directory; each comes with the number of its names below the argument.
fn directly(
    found: Vec<(FoundObject, usize)>,
    recursive: bool,
    failed: Failed<'_>,
) -> Result<Vec<FoundObject>, InputError> {
    let named_outputs = named_outputs_of(&found).map_err(failed)?;
    let mut selected = Vec::new();
    for (object, left) in found {
        let names: Vec<&str> = object.uri.key().split('/').collect();
        let below = &names[names.len() - left..];
        if below.iter().any(|name| is_hidden(name.as_ref()))
            || named_outputs.contains(object.uri.key())
        {
            continue;
        }
        if left > 1 && !recursive {
            let folder = |depth: usize| object.uri.with_key(&names[..depth].join("/")).to_string();
            let depth_given = names.len() - left;
            return Err(InputError::Nested {
                directory: folder(depth_given).trim_end_matches('/').into(),
                nested: folder(depth_given + 1).into(),
            });
        }
        selected.push(object);
    }
    Ok(selected)
}
