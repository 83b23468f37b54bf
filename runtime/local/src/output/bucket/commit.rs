//! The commit of a job to a store: an intent that is recorded and then carried out whatever happens. Task
//! processes have already sent the uploads, before their commit was granted.
//!
//! ```text
//! intent.json written below _temporary -> claim.json says intent
//!   -> old _SUCCESS deleted -> other old parts deleted -> uploads completed, replacing old objects
//!   -> _SUCCESS written, with the version of each part         (then other uploads are aborted, _temporary removed)
//! ```
//!
//! Before `claim.json` contains the intent, nothing old is touched. Afterwards each step can be repeated by
//! any process: a missing upload was completed if its object is the expected one.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;

use napreduce_protocol::{ClaimToken, PendingUpload, PutCondition};
use serde::{Deserialize, Serialize};

use super::super::layout::{SUCCESS, is_part};
use super::super::manifest::{CommittedPart, Manifest, SuccessFile};
use super::super::removal::in_shares;
use super::super::trouble::Trouble;
use super::place::{Bucket, INTENT};
use super::whose::verify;

/// Version of `intent.json`.
const INTENT_VERSION: u32 = 1;
/// Maximum concurrent requests.
const AT_ONCE: usize = 16;

/// The intent of a commit.
#[derive(Debug, Serialize, Deserialize)]
struct Intent {
    version: u32,
    claim: ClaimToken,
    manifest: Manifest,
    /// Versions of older objects with the names of parts.
    replaced: BTreeMap<String, String>,
    /// Older objects of a job to be removed.
    removed: Vec<String>,
}

/// Writes the intent below `_temporary`.
pub(super) fn write_intent(
    bucket: &Bucket,
    token: ClaimToken,
    manifest: &Manifest,
) -> Result<(), Trouble> {
    for part in &manifest.parts {
        upload_of(bucket, part)?;
    }
    let names: BTreeSet<&str> = manifest
        .parts
        .iter()
        .map(|part| part.report.name.as_str())
        .collect();
    let listed: BTreeSet<String> = match bucket.get(SUCCESS)? {
        Some((text, _)) => SuccessFile::parse(&text).files().collect(),
        None => BTreeSet::new(),
    };
    let mut replaced = BTreeMap::new();
    let mut removed = Vec::new();
    for (name, entry) in bucket.objects()? {
        if names.contains(name.as_str()) {
            replaced.insert(name, entry.version);
        } else if listed.contains(&name) || is_part(OsStr::new(&name)) {
            removed.push(name);
        }
    }
    let intent = Intent {
        version: INTENT_VERSION,
        claim: token,
        manifest: manifest.clone(),
        replaced,
        removed,
    };
    let intent = serde_json::to_vec(&intent)
        .map_err(|error| Trouble::Final(format!("cannot encode the commit intent: {error}")))?;
    bucket.put(INTENT, &intent, PutCondition::Always).map(drop)
}

/// Carries out the remaining steps of a claim's recorded intent.
pub(super) fn roll_forward(bucket: &Bucket, token: ClaimToken) -> Result<(), Trouble> {
    let written = bucket
        .get(SUCCESS)?
        .map(|(text, _)| SuccessFile::parse(&text));
    if written
        .as_ref()
        .is_some_and(|written| written.claim == Some(token))
    {
        // `_SUCCESS` is written last.
        return Ok(());
    }
    let intent = read_intent(bucket, token)?;
    verify(bucket, token)?;
    if written.is_some() {
        bucket.remove(SUCCESS)?;
    }
    all_of(&intent.removed, |name| bucket.remove(name))?;
    let versions = all_of(&intent.manifest.parts, |part| {
        Ok((
            part.report.name.clone(),
            complete(bucket, part, &intent.replaced)?,
        ))
    })?;
    verify(bucket, token)?;
    let text = intent
        .manifest
        .text(token, &versions.into_iter().collect())?;
    bucket.put(SUCCESS, &text, PutCondition::Always).map(drop)
}

/// Applies a function to all items with limited concurrency; returns the first trouble, if any.
fn all_of<T: Sync, R: Send>(
    list: &[T],
    act: impl Fn(&T) -> Result<R, Trouble> + Sync,
) -> Result<Vec<R>, Trouble> {
    let share = list.len().div_ceil(AT_ONCE).max(1);
    let done = in_shares(list, share, |part| {
        part.iter().map(&act).collect::<Result<Vec<R>, Trouble>>()
    });
    Ok(done
        .into_iter()
        .collect::<Result<Vec<_>, _>>()?
        .into_iter()
        .flatten()
        .collect())
}

/// Completes the upload of a part and returns its version. Succeeds if it was completed before.
fn complete(
    bucket: &Bucket,
    part: &CommittedPart,
    replaced: &BTreeMap<String, String>,
) -> Result<String, Trouble> {
    let name = &part.report.name;
    let upload = upload_of(bucket, part)?;
    if let Some(version) = bucket.complete(name, upload)? {
        return Ok(version);
    }
    let found = bucket.find(name)?;
    let expected = bucket.version_of(name, upload);
    let is_it = |version: &String, bytes: u64| {
        Some(version) == expected.as_ref()
            || (replaced.get(name) != Some(version) && bytes == part.report.bytes)
    };
    match found {
        Some(found) if is_it(&found.version, found.bytes) => Ok(found.version),
        _ => Err(Trouble::Final(format!(
            "cannot complete {}: both the object and its upload are missing; check whether a lifecycle rule \
             of the bucket aborts uploads",
            bucket.path_of(name)
        ))),
    }
}

fn upload_of<'a>(bucket: &Bucket, part: &'a CommittedPart) -> Result<&'a PendingUpload, Trouble> {
    part.upload.as_ref().ok_or_else(|| {
        let name = bucket.path_of(&part.report.name);
        Trouble::Final(format!(
            "cannot complete {name}: {} did not report its upload",
            part.attempt
        ))
    })
}

fn read_intent(bucket: &Bucket, token: ClaimToken) -> Result<Intent, Trouble> {
    let unusable = |what: String| {
        Trouble::Final(format!(
            "cannot continue the commit in {}: {what}",
            bucket.path_of(INTENT)
        ))
    };
    let Some((text, _)) = bucket.get(INTENT)? else {
        verify(bucket, token)?;
        return Err(unusable("the file is missing".to_owned()));
    };
    let intent: Intent =
        serde_json::from_slice(&text).map_err(|error| unusable(error.to_string()))?;
    if intent.version != INTENT_VERSION {
        let what = format!(
            "it has version {}, but this program reads {INTENT_VERSION}",
            intent.version
        );
        return Err(unusable(what));
    }
    if intent.claim != token {
        return Err(unusable(format!("it belongs to claim {}", intent.claim)));
    }
    Ok(intent)
}
