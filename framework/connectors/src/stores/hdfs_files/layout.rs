//! Where things are that are no objects yet, or more than a file.
//!
//! All names are in a directory of the output's `_temporary`, which readers pass over as all that begins with `_`.
//!
//! ```text
//! OUT/_temporary/napreduce/uploads/part-r-00000.ID   an upload: renamed to OUT/part-r-00000 when it is completed
//! OUT/_temporary/napreduce/writing/ID                a small file, or the first version of one that is swapped
//! OUT/_temporary/napreduce/claim.json/               a file that is swapped: OUT/_temporary/claim.json (`swapped`)
//! ```

use crate::stores::{ObjectUri, StorageError};

const TEMPORARY: &str = "_temporary";
const OWN: &str = "napreduce";
const UPLOADS: &str = "uploads";
const WRITING: &str = "writing";
/// What the name of a mark begins with.
pub(super) const MARK: &str = "at-";

/// The places that belong to one object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Places {
    /// The object itself.
    pub(super) path: String,
    /// `_temporary` of its output.
    temporary: String,
    name: String,
    is_temporary: bool,
}

impl Places {
    pub(super) fn of(uri: &ObjectUri) -> Result<Places, StorageError> {
        let path = format!("/{}", uri.key());
        let Some((parent, name)) = path.rsplit_once('/').filter(|(_, name)| !name.is_empty()) else {
            let reason = "it names no file".to_owned();
            return Err(StorageError::BadUri { uri: uri.to_string(), reason });
        };
        let is_temporary = parent.rsplit('/').next() == Some(TEMPORARY);
        let temporary = if is_temporary { parent.to_owned() } else { format!("{parent}/{TEMPORARY}") };
        Ok(Places { name: name.to_owned(), temporary, is_temporary, path: path.clone() })
    }

    fn own(&self) -> String {
        format!("{}/{OWN}", self.temporary)
    }

    /// Where an upload is.
    pub(super) fn upload(&self, id: &str) -> String {
        format!("{}/{UPLOADS}/{}.{id}", self.own(), self.name)
    }

    /// Where something is that is on its way.
    pub(super) fn writing(&self, id: &str) -> String {
        format!("{}/{WRITING}/{id}", self.own())
    }

    /// All that is on its way.
    pub(super) fn all_writing(&self) -> String {
        format!("{}/{WRITING}", self.own())
    }

    /// The directory of the versions of a file that is swapped, if this may be one.
    pub(super) fn versions(&self) -> Option<String> {
        self.is_temporary.then(|| format!("{}/{}", self.own(), self.name))
    }

    /// The directories that go when there is nothing in them, the innermost first.
    pub(super) fn empty_ones(&self) -> [String; 4] {
        let own = self.own();
        [format!("{own}/{UPLOADS}"), format!("{own}/{WRITING}"), own, self.temporary.clone()]
    }
}

/// The directory of the uploads of an output.
pub(super) fn uploads_of(output: &ObjectUri) -> String {
    format!("/{}/{TEMPORARY}/{OWN}/{UPLOADS}", output.key().trim_end_matches('/'))
}

/// Which object an upload of this file name is of, and its id.
pub(super) fn upload_of(file: &str) -> Option<(&str, &str)> {
    file.rsplit_once('.').filter(|(name, id)| !name.is_empty() && !id.is_empty())
}

/// What a key is that was listed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Listed<'k> {
    Object,
    /// The mark of the version that a file which is swapped is of: its key, and the version.
    Swapped(String, &'k str),
    /// Nothing that anybody but this crate knows.
    Hidden,
}

pub(super) fn listed(key: &str) -> Listed<'_> {
    let own = format!("{TEMPORARY}/{OWN}/");
    let at = if key.starts_with(&own) { Some(0) } else { key.find(&format!("/{own}")).map(|at| at + 1) };
    let Some(at) = at else { return Listed::Object };
    match key[at + own.len()..].split('/').collect::<Vec<_>>()[..] {
        [name, file] if name != UPLOADS && name != WRITING => match file.strip_prefix(MARK) {
            Some(version) => Listed::Swapped(format!("{}{TEMPORARY}/{name}", &key[..at]), version),
            None => Listed::Hidden,
        },
        _ => Listed::Hidden,
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
        assert_eq!(part.upload("7"), "/a/out/_temporary/napreduce/uploads/part-r-00000.7");
        assert_eq!(part.writing("7"), "/a/out/_temporary/napreduce/writing/7");
        assert_eq!(part.versions(), None);
        let claim = places("hdfs://n:1/a/out/_temporary/claim.json");
        assert_eq!(claim.versions().as_deref(), Some("/a/out/_temporary/napreduce/claim.json"));
        assert_eq!(claim.all_writing(), part.all_writing());
        let output = ObjectUri::parse("hdfs://n:1/a/out/".as_ref()).expect("a name");
        assert_eq!(uploads_of(&output), "/a/out/_temporary/napreduce/uploads");
        assert_eq!(upload_of("part-r-00000.7"), Some(("part-r-00000", "7")));
        assert_eq!(upload_of("part-r-00000"), None);
    }

    #[test]
    fn listing_hides_temporary_files() {
        assert_eq!(listed("out/part-r-00000"), Listed::Object);
        assert_eq!(listed("out/_temporary/0/part-r-00000"), Listed::Object, "of another program");
        let claim = Listed::Swapped("out/_temporary/claim.json".to_owned(), "7");
        assert_eq!(listed("out/_temporary/napreduce/claim.json/at-7"), claim);
        assert_eq!(listed("out/_temporary/napreduce/claim.json/7"), Listed::Hidden);
        assert_eq!(listed("out/_temporary/napreduce/uploads/part-r-00000.7"), Listed::Hidden);
        assert_eq!(listed("out/_temporary/napreduce/writing/7/at-7"), Listed::Hidden);
    }
}
