//! Determines the owner of an output in a store from its objects.

use std::path::Path;

use napreduce_protocol::ClaimToken;

use super::super::layout::SUCCESS;
use super::super::manifest::SuccessFile;
use super::super::record::ClaimRecord;
use super::super::trouble::Trouble;
use super::super::whose::Whose;
use super::place::{Bucket, CLAIM};

/// Reads the claim again and interprets a missing one.
pub(super) fn whose(bucket: &Bucket, token: ClaimToken) -> Result<Whose, Trouble> {
    if let Some((text, _)) = bucket.get(CLAIM)? {
        let record = parse(bucket, &text)?;
        return match record.token == token {
            true => Ok(Whose::Own(record)),
            false => Err(Trouble::Taken {
                by: record.to_string(),
            }),
        };
    }
    match bucket
        .get(SUCCESS)?
        .map(|(text, _)| SuccessFile::parse(&text))
    {
        None => Ok(Whose::Gone),
        Some(written) if written.claim == Some(token) => Ok(Whose::Settled),
        Some(written) => Err(Trouble::Taken {
            by: written.writer(),
        }),
    }
}

pub(super) fn parse(bucket: &Bucket, text: &[u8]) -> Result<ClaimRecord, Trouble> {
    let path = bucket.path_of(CLAIM);
    ClaimRecord::parse(text, Path::new(&path)).map_err(|error| Trouble::Final(error.to_string()))
}

/// Checks that the claim still belongs to this run; called before each irreversible step.
pub(super) fn verify(bucket: &Bucket, token: ClaimToken) -> Result<(), Trouble> {
    match whose(bucket, token)? {
        Whose::Own(_) => Ok(()),
        Whose::Settled | Whose::Gone => Err(Trouble::Final(format!(
            "{} was removed while the job ran",
            bucket.path_of(CLAIM)
        ))),
    }
}
