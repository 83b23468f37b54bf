//! Shared links to view the page. Unlike the link of `nap web link`, a shared link has a name and a chosen end, and signs in
//! any number of times. `web-links.json` in the directory of the cluster lists the valid ones: a link that is not listed is
//! rejected, so removing it from the list revokes it and every session that it opened.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use napreduce_protocol::{lock, read_regular};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::revocations::{Revocations, replace_file};
use super::token::Claims;

const BYTES_MAX: u64 = 1 << 20;
/// The most valid links.
const LINKS_MAX: usize = 100;

/// A shared link, without its secret part.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SharedLink {
    pub name: String,
    /// The page that it opens, with its query.
    pub address: String,
    pub issued_millis: u64,
    pub until_millis: u64,
    pub nonce: u64,
}

/// A shared link in a listing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct LinkAnswer {
    pub name: String,
    /// The page that it opens, with its query.
    pub address: String,
    pub issued_millis: u64,
    pub until_millis: u64,
}

impl From<&SharedLink> for LinkAnswer {
    fn from(link: &SharedLink) -> LinkAnswer {
        LinkAnswer {
            name: link.name.clone(),
            address: link.address.clone(),
            issued_millis: link.issued_millis,
            until_millis: link.until_millis,
        }
    }
}

/// Why a link cannot be shared or revoked.
#[derive(Debug, Error)]
pub enum LinkError {
    #[error("a link named {0} is still valid; revoke it first, or choose another name")]
    Taken(String),
    #[error("there are {LINKS_MAX} valid links; revoke one first")]
    TooMany,
    #[error("no valid link is named {0}")]
    Unknown(String),
    #[error("{0}")]
    Invalid(String),
    #[error("cannot {doing} {path}: {source}")]
    Io {
        doing: &'static str,
        path: PathBuf,
        source: io::Error,
    },
    #[error("{path} is damaged ({what}); remove it, which revokes all shared links")]
    Malformed { path: PathBuf, what: String },
}

/// The valid shared links: in a file, or in memory for a server without a cluster directory.
#[derive(Debug)]
pub struct Links {
    file: Option<PathBuf>,
    kept: Mutex<Vec<SharedLink>>,
}

impl LinkError {
    fn io(doing: &'static str, path: &Path) -> impl FnOnce(io::Error) -> LinkError + use<> {
        let path = path.to_owned();
        move |source| LinkError::Io {
            doing,
            path,
            source,
        }
    }
}

impl Links {
    pub fn new(file: Option<PathBuf>) -> Links {
        Links {
            file,
            kept: Mutex::default(),
        }
    }

    /// Returns the links that have neither expired nor been revoked, in the order of their creation.
    ///
    /// # Errors
    /// Fails if the file cannot be read.
    pub fn valid(
        &self,
        revoked: &Revocations,
        now_millis: u64,
    ) -> Result<Vec<SharedLink>, LinkError> {
        let mut links = match &self.file {
            Some(file) => read(file)?,
            None => lock(&self.kept).clone(),
        };
        retain_valid(&mut links, revoked, now_millis);
        Ok(links)
    }

    /// Whether the link with these claims is listed.
    ///
    /// # Errors
    /// Fails if the file cannot be read.
    pub fn has(
        &self,
        claims: &Claims,
        revoked: &Revocations,
        now_millis: u64,
    ) -> Result<bool, LinkError> {
        let links = self.valid(revoked, now_millis)?;
        Ok(links
            .iter()
            .any(|link| link.nonce == claims.nonce && link.name == claims.name))
    }

    /// Adds a link.
    ///
    /// # Errors
    /// Fails if its name is taken, there are too many, or the file cannot be written.
    pub fn add(
        &self,
        link: SharedLink,
        revoked: &Revocations,
        now_millis: u64,
    ) -> Result<(), LinkError> {
        self.change(revoked, now_millis, |links| {
            if links.iter().any(|known| known.name == link.name) {
                return Err(LinkError::Taken(link.name));
            }
            if links.len() >= LINKS_MAX {
                return Err(LinkError::TooMany);
            }
            links.push(link);
            Ok(())
        })
    }

    /// Removes a link, which revokes it.
    ///
    /// # Errors
    /// Fails if there is none with this name, or the file cannot be written.
    pub fn remove(
        &self,
        name: &str,
        revoked: &Revocations,
        now_millis: u64,
    ) -> Result<(), LinkError> {
        self.change(revoked, now_millis, |links| {
            let at = links.iter().position(|link| link.name == name);
            links.remove(at.ok_or_else(|| LinkError::Unknown(name.to_owned()))?);
            Ok(())
        })
    }

    /// Changes the list; a file is locked meanwhile, because several servers of one cluster share it.
    fn change(
        &self,
        revoked: &Revocations,
        now_millis: u64,
        change: impl FnOnce(&mut Vec<SharedLink>) -> Result<(), LinkError>,
    ) -> Result<(), LinkError> {
        let mut kept = lock(&self.kept);
        let Some(file) = &self.file else {
            retain_valid(&mut kept, revoked, now_millis);
            return change(&mut kept);
        };
        let folder = File::open(file.parent().unwrap_or(Path::new(".")))
            .map_err(LinkError::io("open the directory of", file))?;
        // Released when `folder` is closed.
        folder.lock().map_err(LinkError::io("lock", file))?;
        let mut links = read(file)?;
        retain_valid(&mut links, revoked, now_millis);
        change(&mut links)?;
        let text = serde_json::to_string_pretty(&links)
            .map_err(io::Error::other)
            .map_err(LinkError::io("write", file))?;
        replace_file(file, &text).map_err(LinkError::io("write", file))
    }
}

fn retain_valid(links: &mut Vec<SharedLink>, revoked: &Revocations, now_millis: u64) {
    links.retain(|link| {
        link.until_millis > now_millis && !revoked.covers_name(&link.name, link.issued_millis)
    });
}

/// Reads the file; a missing one lists no link.
fn read(file: &Path) -> Result<Vec<SharedLink>, LinkError> {
    match read_regular(file, BYTES_MAX) {
        Ok(text) => serde_json::from_slice(&text).map_err(|error| LinkError::Malformed {
            path: file.to_owned(),
            what: error.to_string(),
        }),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(source) => Err(LinkError::Io {
            doing: "read",
            path: file.to_owned(),
            source,
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn link(name: &str, nonce: u64) -> SharedLink {
        let name = name.to_owned();
        let address = "/jobs".to_owned();
        SharedLink {
            name,
            address,
            issued_millis: 10,
            until_millis: 20,
            nonce,
        }
    }

    fn names(links: &Links, revoked: &Revocations, now: u64) -> Vec<String> {
        links
            .valid(revoked, now)
            .expect("readable")
            .into_iter()
            .map(|link| link.name)
            .collect()
    }

    #[test]
    fn links_end_when_removed_revoked_or_expired() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("web-links.json");
        let mut revoked = Revocations::default();
        for links in [Links::new(Some(file.clone())), Links::new(None)] {
            for name in ["ada", "ben", "eve"] {
                links.add(link(name, 1), &revoked, 11).expect("added");
            }
            assert!(matches!(
                links.add(link("ada", 2), &revoked, 12),
                Err(LinkError::Taken(_))
            ));
            links.remove("ben", &revoked, 12).expect("removed");
            assert!(matches!(
                links.remove("ben", &revoked, 12),
                Err(LinkError::Unknown(_))
            ));
            assert_eq!(names(&links, &revoked, 12), ["ada", "eve"]);
            let mut by_name = revoked.clone();
            by_name.revoke(Some("ada"), 13);
            assert_eq!(names(&links, &by_name, 14), ["eve"]);
            assert!(names(&links, &revoked, 20).is_empty(), "all have expired");
        }
        revoked.revoke(None, 15);
        let of_another_server = Links::new(Some(file.clone()));
        assert_eq!(
            names(&of_another_server, &Revocations::default(), 12),
            ["ada", "eve"]
        );
        assert!(names(&of_another_server, &revoked, 16).is_empty());
        std::fs::write(&file, "[").expect("written");
        let damaged = of_another_server
            .valid(&revoked, 12)
            .expect_err("damaged")
            .to_string();
        assert!(damaged.contains("web-links.json is damaged"), "{damaged}");
    }

    #[test]
    fn number_of_links_is_limited() {
        let links = Links::new(None);
        let revoked = Revocations::default();
        for number in 0..LINKS_MAX {
            links
                .add(link(&format!("link-{number}"), 1), &revoked, 11)
                .expect("added");
        }
        assert!(matches!(
            links.add(link("another", 1), &revoked, 11),
            Err(LinkError::TooMany)
        ));
        links
            .add(link("another", 1), &revoked, 20)
            .expect("the others have expired");
    }
}
