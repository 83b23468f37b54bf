//! Revoked links and tokens: `web.toml` in the directory of a cluster, written by `nap web revoke` and read by the
//! server.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use napreduce_protocol::{read_regular, sync_parent};
use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::token::Claims;

const BYTES_MAX: u64 = 16 << 20;

/// Revocation times, in milliseconds since 1970: everything issued up to them is invalid.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Revocations {
    /// For all names.
    all_millis: u64,
    /// For tokens with these names.
    names_millis: BTreeMap<String, u64>,
}

/// Why the revocations cannot be read or written.
#[derive(Debug, Error)]
pub enum RevocationError {
    #[error("cannot {doing} {path}: {source}")]
    Io {
        doing: &'static str,
        path: PathBuf,
        source: io::Error,
    },
    #[error(
        "{path} is not a file of nap web revoke ({what}); remove it and run nap web revoke --all"
    )]
    Malformed { path: PathBuf, what: String },
}

impl Revocations {
    /// Reads a file; a missing file revokes nothing.
    ///
    /// # Errors
    /// Fails if the file cannot be read; then all access must be denied.
    pub fn read(path: &Path) -> Result<Revocations, RevocationError> {
        match read_regular(path, BYTES_MAX)
            .and_then(|text| String::from_utf8(text).map_err(io::Error::other))
        {
            Ok(text) => toml::from_str(&text).map_err(|error| RevocationError::Malformed {
                path: path.to_owned(),
                what: error.message().to_owned(),
            }),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Revocations::default()),
            Err(source) => Err(RevocationError::Io {
                doing: "read",
                path: path.to_owned(),
                source,
            }),
        }
    }

    /// Replaces the file atomically.
    ///
    /// # Errors
    /// Fails if the file cannot be written; it is unchanged then.
    pub fn write(&self, path: &Path) -> Result<(), RevocationError> {
        let failed = |source| RevocationError::Io {
            doing: "write",
            path: path.to_owned(),
            source,
        };
        let text = toml::to_string(self).map_err(|error| failed(io::Error::other(error)))?;
        replace_file(path, &text).map_err(failed)
    }

    /// Revokes everything issued until now, for one name or for all.
    pub fn revoke(&mut self, name: Option<&str>, now_millis: u64) {
        match name {
            Some(name) => {
                self.names_millis.insert(name.to_owned(), now_millis);
            }
            None => {
                self.all_millis = now_millis;
                self.names_millis.clear();
            }
        }
    }

    /// Whether these claims are revoked.
    pub fn covers(&self, claims: &Claims) -> bool {
        self.covers_name(&claims.name, claims.issued_millis)
    }

    /// Whether something issued under this name at this time is revoked.
    pub fn covers_name(&self, name: &str, issued_millis: u64) -> bool {
        let by_name = self.names_millis.get(name).copied().unwrap_or(0);
        issued_millis <= self.all_millis.max(by_name)
    }
}

/// Replaces a file atomically. After an error it is unchanged.
pub(super) fn replace_file(path: &Path, text: &str) -> io::Result<()> {
    let partial = path.with_extension(format!("{}.new", std::process::id()));
    let written = fs::File::create(&partial)
        .and_then(|mut file| {
            file.write_all(text.as_bytes())
                .and_then(|()| file.sync_all())
        })
        .and_then(|()| fs::rename(&partial, path))
        .and_then(|()| sync_parent(path));
    if written.is_err() {
        // The first error is the one to report.
        let _ = fs::remove_file(&partial);
    }
    written
}

#[cfg(test)]
mod tests {
    use super::super::token::{Purpose, WebRole};
    use super::*;

    fn claims(name: &str, issued_millis: u64) -> Claims {
        let purpose = Purpose::Token;
        let role = WebRole::View;
        Claims {
            purpose,
            role,
            name: name.to_owned(),
            issued_millis,
            until_millis: u64::MAX,
            nonce: 0,
        }
    }

    #[test]
    fn revocations_cover_what_was_issued_before() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("web.toml");
        let mut revoked = Revocations::read(&file).expect("no file");
        assert!(!revoked.covers(&claims("a", 1)));
        revoked.revoke(Some("a"), 5);
        revoked.write(&file).expect("written");
        let revoked = Revocations::read(&file).expect("the file");
        let covers = |name, issued| revoked.covers(&claims(name, issued));
        assert_eq!(
            [covers("a", 5), covers("a", 6), covers("b", 5)],
            [true, false, false]
        );
        let mut all = revoked.clone();
        all.revoke(None, 9);
        assert!(all.covers(&claims("b", 9)) && !all.covers(&claims("a", 10)));
        assert_eq!(
            fs::read_dir(folder.path()).expect("a folder").count(),
            1,
            "a temporary file remains"
        );
    }

    #[test]
    fn malformed_revocations_are_an_error() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("web.toml");
        for text in ["all_millis = \"never\"", "generation = 3", "\u{0}"] {
            fs::write(&file, text).expect("written");
            let error = Revocations::read(&file).expect_err(text).to_string();
            assert!(
                error.contains("web.toml is not a file of nap web revoke"),
                "{error}"
            );
        }
    }
}
