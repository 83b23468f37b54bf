//! Lists of incomplete uploads. `object_store` does not make this request.

use std::time::Duration;

use http::Request;
use object_store::client::{HttpRequest, HttpRequestBody};
use object_store::path::Path;
use object_store::signer::SignedUrlOptions;
use serde::Deserialize;

use crate::stores::connection::{UploadListing, bucket, client};
use crate::stores::object::path_of;
use crate::stores::requests::{Failure, RetryBudget, innermost, traced};
use crate::stores::{ObjectUri, StorageError, threads};

/// Validity of a signed URL.
const VALID: Duration = Duration::from_secs(300);

/// One page of the response.
#[derive(Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
struct Page {
    is_truncated: bool,
    next_key_marker: String,
    next_upload_id_marker: String,
    #[serde(rename = "Upload")]
    uploads: Vec<ListedUpload>,
}

#[derive(Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct ListedUpload {
    key: String,
    upload_id: String,
}

/// Lists the uploads of objects whose keys begin with that of `uri` and a slash, with their upload ids.
pub(crate) fn uploads(uri: &ObjectUri) -> Result<Vec<(ObjectUri, String)>, StorageError> {
    let bucket = bucket(uri)?;
    let Some(listing) = bucket.listing.clone() else {
        return Ok(Vec::new());
    };
    let failed = |error: &object_store::Error| StorageError::Settings {
        uri: uri.to_string(),
        reason: innermost(error),
    };
    let client = client().map_err(|error| failed(&error))?;
    let prefix = path_of(uri)?;
    let prefix = if prefix.is_root() {
        String::new()
    } else {
        format!("{prefix}/")
    };
    let mut found = Vec::new();
    let mut markers: Option<(String, String)> = None;
    loop {
        let mut query = vec![
            ("uploads".to_owned(), String::new()),
            ("prefix".to_owned(), prefix.clone()),
        ];
        if let Some((key, upload)) = &markers {
            query.push(("key-marker".to_owned(), key.clone()));
            query.push(("upload-id-marker".to_owned(), upload.clone()));
        }
        let listing = listing.clone();
        let client = client.clone();
        let asked = uri.clone();
        let page = threads::wait(uri, async move {
            let mut budget = RetryBudget::new();
            loop {
                let request = async {
                    let request = question(&listing, &query).await?;
                    let answer = client.execute(request).await.map_err(generic)?;
                    let is_good = answer.status().is_success();
                    let body = answer.into_body().bytes().await.map_err(generic)?;
                    // The tracing connector has recorded the failure.
                    if is_good {
                        Ok(body)
                    } else {
                        Err(generic("an error response"))
                    }
                };
                match traced(request).await {
                    Ok(body) => return Ok(body),
                    Err(failure) => budget.wait(&asked, &failure).await?,
                }
            }
        });
        let page = parse(&page??).map_err(|reason| {
            let answer = Failure::Odd(reason).to_string();
            StorageError::Refused {
                uri: uri.to_string(),
                answer,
                hint: "",
            }
        })?;
        found.extend(
            page.uploads
                .into_iter()
                .map(|listed| (uri.with_key(&listed.key), listed.upload_id)),
        );
        // A truncated page without a marker is the last one.
        if !page.is_truncated || page.next_key_marker.is_empty() {
            return Ok(found);
        }
        markers = Some((page.next_key_marker, page.next_upload_id_marker));
    }
}

/// Returns the request for a page.
async fn question(
    listing: &UploadListing,
    query: &[(String, String)],
) -> object_store::Result<HttpRequest> {
    let request = match listing {
        UploadListing::Signed(signer) => {
            let options = SignedUrlOptions::new().with_query(query.to_vec());
            let url = signer
                .signed_url_opts(http::Method::GET, &Path::from(""), VALID, &options)
                .await?;
            Request::get(url.as_str())
        }
        #[cfg(feature = "gcs")]
        UploadListing::Bearer {
            bucket,
            credentials,
        } => {
            let url = reqwest::Url::parse_with_params(bucket, query).map_err(generic)?;
            let request = Request::get(url.as_str());
            match credentials {
                Some(provider) => {
                    let token = provider.get_credential().await?;
                    request.header(
                        http::header::AUTHORIZATION,
                        format!("Bearer {}", token.bearer),
                    )
                }
                None => request,
            }
        }
    };
    request.body(HttpRequestBody::empty()).map_err(generic)
}

fn generic(source: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> object_store::Error {
    object_store::Error::Generic {
        store: "store",
        source: source.into(),
    }
}

fn parse(body: &[u8]) -> Result<Page, String> {
    let text =
        std::str::from_utf8(body).map_err(|_| "a list of uploads that is not UTF-8".to_owned())?;
    quick_xml::de::from_str(text).map_err(|_| "an invalid list of uploads".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn upload_listing_is_parsed() {
        let listed = r#"<?xml version="1.0" encoding="UTF-8"?>
            <ListMultipartUploadsResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/">
              <Bucket>b</Bucket><KeyMarker/><UploadIdMarker/><NextKeyMarker>out/b &amp; c</NextKeyMarker>
              <NextUploadIdMarker>2</NextUploadIdMarker><MaxUploads>2</MaxUploads><IsTruncated>true</IsTruncated>
              <Upload><Key>out/a</Key><UploadId>1</UploadId><Owner><ID>x</ID></Owner></Upload>
              <Upload><Key>out/b &amp; c</Key><UploadId>2</UploadId><Initiated>2026-01-01T00:00:00Z</Initiated></Upload>
            </ListMultipartUploadsResult>"#;
        let page = parse(listed.as_bytes()).expect("a page");
        let uploads: Vec<(&str, &str)> = page
            .uploads
            .iter()
            .map(|listed| (&listed.key[..], &listed.upload_id[..]))
            .collect();
        assert_eq!(uploads, [("out/a", "1"), ("out/b & c", "2")]);
        assert_eq!(
            (page.is_truncated, &page.next_key_marker[..]),
            (true, "out/b & c")
        );
        let none = parse(
            b"<ListMultipartUploadsResult><IsTruncated>false</IsTruncated></ListMultipartUploadsResult>",
        );
        assert_eq!(none, Ok(Page::default()));
    }

    #[test]
    fn invalid_upload_listing_is_rejected() {
        for body in [&b""[..], b"<a", b"not XML", b"\xff"] {
            assert!(parse(body).is_err(), "{body:?}");
        }
    }
}
