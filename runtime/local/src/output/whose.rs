//! Determines the owner of an output directory from its contents.

use std::io;
use std::path::Path;

use napreduce_protocol::ClaimToken;

use super::layout::{JobPaths, TEMPORARY, claim_in};
use super::manifest::SuccessFile;
use super::record::ClaimRecord;
use super::storage::Storage;
use super::trouble::Trouble;

/// The owner of an output directory from one claim's point of view.
#[derive(Debug)]
pub(super) enum Whose {
    Own(ClaimRecord),
    /// No owner: the commit of this claim is complete.
    Settled,
    /// No owner, and no output of this claim.
    Gone,
}

/// Reads the claim again and interprets a missing one.
pub(super) fn whose(
    storage: &Storage,
    paths: &JobPaths,
    token: ClaimToken,
) -> Result<Whose, Trouble> {
    let path = claim_in(Path::new(TEMPORARY));
    if let Some(record) = ClaimRecord::read(storage, &path)? {
        return match record.token == token {
            true => Ok(Whose::Own(record)),
            false => Err(Trouble::Taken {
                by: record.to_string(),
            }),
        };
    }
    if storage.find(paths.work())?.is_some() {
        return Err(storage
            .failure("read", &path, io::ErrorKind::NotFound.into())
            .into());
    }
    match SuccessFile::read(storage)? {
        None => Ok(Whose::Gone),
        Some(written) if written.claim == Some(token) => Ok(Whose::Settled),
        Some(written) => Err(Trouble::Taken {
            by: written.writer(),
        }),
    }
}
