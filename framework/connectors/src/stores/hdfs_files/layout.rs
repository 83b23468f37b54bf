//! The directory layout of unfinished objects and files with versions. All are in `_temporary` of the output,
//! which readers skip like all names that begin with `_`.
//!
//! ```text
//! OUT/_temporary/napreduce/uploads/part-r-00000.ID   an upload: renamed to OUT/part-r-00000 when it is completed
//! OUT/_temporary/napreduce/writing/ID                a small file or the first version of one, in preparation
//! OUT/_temporary/napreduce/claim.json/               versions of OUT/_temporary/claim.json (see `swapped`)
//! ```

use crate::stores::{ObjectUri, StorageError};

const TEMPORARY: &str = "_temporary";
const OWN: &str = "napreduce";
const UPLOADS: &str = "uploads";
const WRITING: &str = "writing";
/// Prefix of a version marker.
pub(super) const MARK: &str = "at-";

/// The paths of one object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Places {
    pub(super) path: String,
    /// `_temporary` of its output.
    temporary: String,
    name: String,
    is_temporary: bool,
}

impl Places {
    pub(super) fn of(uri: &ObjectUri) -> Result<Places, StorageError> {
        let path = format!("/{}", uri.key());
        let Some((parent, name)) = path.rsplit_once('/').filter(|(_, name)| !name.is_empty())
        else {
            let reason = "not a file name".to_owned();
            return Err(StorageError::BadUri {
                uri: uri.to_string(),
                reason,
            });
        };
        let is_temporary = parent.rsplit('/').next() == Some(TEMPORARY);
        let temporary = if is_temporary {
            parent.to_owned()
        } else {
            format!("{parent}/{TEMPORARY}")
        };
        Ok(Places {
            name: name.to_owned(),
            temporary,
            is_temporary,
            path: path.clone(),
        })
    }

    fn own(&self) -> String {
        format!("{}/{OWN}", self.temporary)
    }

    /// Returns the path of an upload.
    pub(super) fn upload(&self, id: &str) -> String {
        format!("{}/{UPLOADS}/{}.{id}", self.own(), self.name)
    }

    /// Returns the path of a file in preparation.
    pub(super) fn writing(&self, id: &str) -> String {
        format!("{}/{WRITING}/{id}", self.own())
    }

    /// Returns the directory of all files in preparation.
    pub(super) fn all_writing(&self) -> String {
        format!("{}/{WRITING}", self.own())
    }

    /// Returns the directory of versions, if the object may have versions.
    pub(super) fn versions(&self) -> Option<String> {
        self.is_temporary
            .then(|| format!("{}/{}", self.own(), self.name))
    }

    /// Returns the directories to remove when empty, innermost first.
    pub(super) fn empty_ones(&self) -> [String; 4] {
        let own = self.own();
        [
            format!("{own}/{UPLOADS}"),
            format!("{own}/{WRITING}"),
            own,
            self.temporary.clone(),
        ]
    }
}

/// Returns the directory of an output's uploads.
pub(super) fn uploads_of(output: &ObjectUri) -> String {
    format!(
        "/{}/{TEMPORARY}/{OWN}/{UPLOADS}",
        output.key().trim_end_matches('/')
    )
}

/// Returns the object of an upload's file name, and its id.
pub(super) fn upload_of(file: &str) -> Option<(&str, &str)> {
    file.rsplit_once('.')
        .filter(|(name, id)| !name.is_empty() && !id.is_empty())
}

/// The meaning of a listed key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ListedKey<'k> {
    Object,
    /// The version marker of a file with versions: its key, and the version.
    Swapped(String, &'k str),
    /// A file internal to this crate.
    Hidden,
}

pub(super) fn listed(key: &str) -> ListedKey<'_> {
    let own = format!("{TEMPORARY}/{OWN}/");
    let at = if key.starts_with(&own) {
        Some(0)
    } else {
        key.find(&format!("/{own}")).map(|at| at + 1)
    };
    let Some(at) = at else {
        return ListedKey::Object;
    };
    match key[at + own.len()..].split('/').collect::<Vec<_>>()[..] {
        [name, file] if name != UPLOADS && name != WRITING => match file.strip_prefix(MARK) {
            Some(version) => {
                ListedKey::Swapped(format!("{}{TEMPORARY}/{name}", &key[..at]), version)
            }
            None => ListedKey::Hidden,
        },
        _ => ListedKey::Hidden,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn places(uri: &str) -> Places {
        Places::of(&ObjectUri::parse(uri.as_ref()).expect("a name")).expect("a file")
    }

    #[test]
    fn unfinished_objects_are_below_temporary() {
        let part = places("hdfs://n:1/a/out/part-r-00000");
        assert_eq!(part.path, "/a/out/part-r-00000");
        assert_eq!(
            part.upload("7"),
            "/a/out/_temporary/napreduce/uploads/part-r-00000.7"
        );
        assert_eq!(part.writing("7"), "/a/out/_temporary/napreduce/writing/7");
        assert_eq!(part.versions(), None);
        let claim = places("hdfs://n:1/a/out/_temporary/claim.json");
        assert_eq!(
            claim.versions().as_deref(),
            Some("/a/out/_temporary/napreduce/claim.json")
        );
        assert_eq!(claim.all_writing(), part.all_writing());
        let output = ObjectUri::parse("hdfs://n:1/a/out/".as_ref()).expect("a name");
        assert_eq!(uploads_of(&output), "/a/out/_temporary/napreduce/uploads");
        assert_eq!(upload_of("part-r-00000.7"), Some(("part-r-00000", "7")));
        assert_eq!(upload_of("part-r-00000"), None);
    }

    #[test]
    fn listing_hides_temporary_files() {
        assert_eq!(listed("out/part-r-00000"), ListedKey::Object);
        assert_eq!(
            listed("out/_temporary/0/part-r-00000"),
            ListedKey::Object,
            "of another program"
        );
        let claim = ListedKey::Swapped("out/_temporary/claim.json".to_owned(), "7");
        assert_eq!(listed("out/_temporary/napreduce/claim.json/at-7"), claim);
        assert_eq!(
            listed("out/_temporary/napreduce/claim.json/7"),
            ListedKey::Hidden
        );
        assert_eq!(
            listed("out/_temporary/napreduce/uploads/part-r-00000.7"),
            ListedKey::Hidden
        );
        assert_eq!(
            listed("out/_temporary/napreduce/writing/7/at-7"),
            ListedKey::Hidden
        );
    }
}
