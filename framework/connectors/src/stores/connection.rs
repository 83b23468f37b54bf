//! Connections to buckets, one per bucket, configured by the environment. Credentials are checked first.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, Once};
use std::time::Duration;

use napreduce_protocol::{StorageScheme, lock};
use object_store::client::{HttpClient, HttpConnector};
use object_store::list::PaginatedListStore;
use object_store::multipart::MultipartStore;
use object_store::signer::Signer;
use object_store::{ClientConfigKey, ClientOptions, CredentialProvider, ObjectStore, RetryConfig};

#[cfg(any(feature = "s3", feature = "gcs", feature = "azure"))]
use crate::stores::crypto::PlainCrypto;
use crate::stores::requests::{RetryBudget, TracingConnector, innermost, retried};
use crate::stores::{ObjectUri, StorageError, threads};

/// Time to look for credentials: without any, the address of the metadata service does not answer.
const CREDENTIALS_PATIENCE: Duration = Duration::from_secs(10);
/// Timeouts of requests: a response may be long, but must not pause for long.
const TIMES: [(ClientConfigKey, &str); 3] = [
    (ClientConfigKey::ConnectTimeout, "10 seconds"),
    (ClientConfigKey::ReadTimeout, "30 seconds"),
    (ClientConfigKey::Timeout, "1 hour"),
];

/// The default endpoint of Google.
#[cfg(feature = "gcs")]
const GOOGLE: &str = "https://storage.googleapis.com";

/// A bucket of `object_store`.
#[derive(Clone)]
pub(crate) struct Bucket {
    pub(crate) objects: Arc<dyn ObjectStore>,
    pub(crate) uploads: Arc<dyn MultipartStore>,
    /// Lists pages, each with its own retries; HDFS has none.
    pub(crate) pages: Option<Arc<dyn PaginatedListStore>>,
    pub(crate) listing: Option<UploadListing>,
}

/// Authentication of requests for lists of uploads, which `object_store` does not make.
#[derive(Clone)]
pub(crate) enum UploadListing {
    /// A signed URL.
    #[cfg_attr(
        not(feature = "s3"),
        expect(dead_code, reason = "S3 alone is asked so")
    )]
    Signed(Arc<dyn Signer>),
    /// A bearer token. Google signs URLs only with a further permission and by another service.
    #[cfg(feature = "gcs")]
    Bearer {
        bucket: String,
        credentials: Option<object_store::gcp::GcpCredentialProvider>,
    },
}

impl Bucket {
    #[cfg(any(feature = "s3", feature = "gcs", feature = "azure"))]
    fn of<B: ObjectStore + MultipartStore + PaginatedListStore>(
        bucket: Arc<B>,
        listing: Option<UploadListing>,
    ) -> Bucket {
        let pages: Option<Arc<dyn PaginatedListStore>> = Some(Arc::clone(&bucket) as _);
        Bucket {
            objects: Arc::clone(&bucket) as _,
            uploads: bucket,
            pages,
            listing,
        }
    }

    #[cfg(any(feature = "hdfs", test))]
    fn without_pages<B: ObjectStore + MultipartStore>(bucket: Arc<B>) -> Bucket {
        Bucket {
            objects: Arc::clone(&bucket) as _,
            uploads: bucket,
            pages: None,
            listing: None,
        }
    }

    /// An in-memory bucket for tests.
    #[cfg(test)]
    pub(crate) fn in_memory() -> Bucket {
        Bucket::without_pages(Arc::new(object_store::memory::InMemory::new()))
    }
}

impl std::fmt::Debug for Bucket {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.objects.fmt(formatter)
    }
}

static BUCKETS: Mutex<Option<HashMap<(StorageScheme, String), Bucket>>> = Mutex::new(None);
static TLS: Once = Once::new();

/// Returns the bucket of an object, connecting if necessary.
pub(crate) fn bucket(uri: &ObjectUri) -> Result<Bucket, StorageError> {
    let key = (uri.scheme(), uri.bucket().to_owned());
    // Held while connecting, so that others wait for the connection.
    let mut buckets = lock(&BUCKETS);
    let known = buckets.get_or_insert_default();
    if let Some(bucket) = known.get(&key) {
        return Ok(bucket.clone());
    }
    // Keeps an existing crypto provider.
    TLS.call_once(|| drop(rustls_graviola::default_provider().install_default()));
    let bucket = connect(uri)?;
    known.insert(key, bucket.clone());
    Ok(bucket)
}

fn connect(uri: &ObjectUri) -> Result<Bucket, StorageError> {
    match uri.scheme() {
        #[cfg(feature = "s3")]
        StorageScheme::S3 => s3(uri),
        #[cfg(feature = "gcs")]
        StorageScheme::Gcs => gcs(uri),
        #[cfg(feature = "azure")]
        StorageScheme::Azure => azure(uri),
        #[cfg(feature = "hdfs")]
        StorageScheme::Hdfs => hdfs(uri),
        #[allow(unreachable_patterns, reason = "without all features some are left")]
        scheme => Err(StorageError::FeatureOff {
            uri: uri.to_string(),
            store: scheme.to_string(),
            feature: scheme.feature(),
        }),
    }
}

/// Builds a bucket from one of the builders, which have no common trait; also returns whether requests are
/// unsigned.
#[cfg(any(feature = "s3", feature = "gcs", feature = "azure"))]
macro_rules! built {
    ($builder:ident, $key:ident, $uri:expr) => {{
        let mut builder = $builder;
        for (key, value) in TIMES {
            builder = builder.with_config($key::Client(key), value);
        }
        let is_public = builder.get_config_value(&$key::SkipSignature).as_deref() == Some("true");
        let built = builder
            .with_http_connector(TracingConnector)
            .with_crypto_provider(Arc::new(PlainCrypto))
            .with_retry(once())
            .build();
        (built.map_err(|error| settings($uri, &error))?, is_public)
    }};
}

#[cfg(feature = "s3")]
fn s3(uri: &ObjectUri) -> Result<Bucket, StorageError> {
    use object_store::aws::{AmazonS3Builder, AmazonS3ConfigKey as Key};

    let mut builder = AmazonS3Builder::from_env().with_bucket_name(uri.bucket());
    // An endpoint without TLS is explicit.
    let endpoints = [Key::Endpoint, Key::S3Endpoint].map(|key| builder.get_config_value(&key));
    if endpoints
        .iter()
        .flatten()
        .any(|endpoint| endpoint.starts_with("http://"))
    {
        builder = builder.with_allow_http(true);
    }
    let (bucket, is_public) = built!(builder, Key, uri);
    if !is_public {
        let provider = Arc::clone(bucket.credentials());
        let remedy = "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, run where a role is given, or set \
                      AWS_SKIP_SIGNATURE=true for a public bucket";
        credentials(uri, remedy, provider)?;
    }
    let bucket = Arc::new(bucket);
    Ok(Bucket::of(
        Arc::clone(&bucket),
        Some(UploadListing::Signed(bucket)),
    ))
}

#[cfg(feature = "gcs")]
fn gcs(uri: &ObjectUri) -> Result<Bucket, StorageError> {
    use object_store::gcp::{GoogleCloudStorageBuilder, GoogleConfigKey as Key};

    let mut builder = GoogleCloudStorageBuilder::from_env().with_bucket_name(uri.bucket());
    let base = builder
        .get_config_value(&Key::BaseUrl)
        .unwrap_or_else(|| GOOGLE.to_owned());
    // An endpoint without TLS is explicit.
    if base.starts_with("http://") {
        builder = builder.with_config(Key::Client(ClientConfigKey::AllowHttp), "true");
    }
    let (bucket, is_public) = built!(builder, Key, uri);
    let provider = (!is_public).then(|| Arc::clone(bucket.credentials()));
    if let Some(provider) = &provider {
        let remedy = "set GOOGLE_APPLICATION_CREDENTIALS to the file of a service account, run where one is given, or set \
                      GOOGLE_SKIP_SIGNATURE=true for a public bucket";
        credentials(uri, remedy, Arc::clone(provider))?;
    }
    let listing = UploadListing::Bearer {
        bucket: format!("{}/{}", base.trim_end_matches('/'), uri.bucket()),
        credentials: provider,
    };
    Ok(Bucket::of(Arc::new(bucket), Some(listing)))
}

#[cfg(feature = "azure")]
fn azure(uri: &ObjectUri) -> Result<Bucket, StorageError> {
    use object_store::azure::{AzureConfigKey as Key, MicrosoftAzureBuilder};

    let mut builder = MicrosoftAzureBuilder::from_env().with_url(uri.with_key("").to_string());
    if let Some(endpoint) = builder.get_config_value(&Key::Endpoint) {
        // An endpoint without TLS is explicit.
        if endpoint.starts_with("http://") {
            builder = builder.with_allow_http(true);
        }
        // The library appends a slash.
        builder = builder.with_endpoint(endpoint.trim_end_matches('/').to_owned());
    }
    let (bucket, is_public) = built!(builder, Key, uri);
    if !is_public {
        let provider = Arc::clone(bucket.credentials());
        let remedy = "set AZURE_STORAGE_ACCOUNT_KEY or AZURE_STORAGE_SAS_KEY, run on a host with a managed identity, or set \
                      AZURE_SKIP_SIGNATURE=true for a public container";
        credentials(uri, remedy, provider)?;
    }
    // Azure discards uncommitted blocks after a week.
    Ok(Bucket::of(Arc::new(bucket), None))
}

/// HDFS writes files through `hdfs_files`. No request is made before the first use.
#[cfg(feature = "hdfs")]
fn hdfs(uri: &ObjectUri) -> Result<Bucket, StorageError> {
    let files = Arc::new(crate::stores::hdfs::HdfsObjects(
        crate::stores::hdfs::connected(uri)?,
    ));
    Ok(Bucket::without_pages(files))
}

/// Checks the credentials, so that missing credentials are not reported as an unreachable store. The provider
/// caches and renews them.
fn credentials<C: std::fmt::Debug + Send + Sync + 'static>(
    uri: &ObjectUri,
    remedy: &'static str,
    provider: Arc<dyn CredentialProvider<Credential = C>>,
) -> Result<(), StorageError> {
    let object = uri.clone();
    let found = threads::wait(uri, async move {
        let budget = RetryBudget::of(CREDENTIALS_PATIENCE);
        let request = || async { provider.get_credential().await.map(drop) };
        retried(&object, budget, request).await
    });
    let none = |reason: String| StorageError::NoCredentials {
        uri: uri.to_string(),
        reason,
        remedy,
    };
    match found? {
        Ok(()) => Ok(()),
        Err(StorageError::Unreachable { reason, .. }) => Err(none(format!(
            "the environment contains none, and the metadata service is unreachable: {reason}"
        ))),
        Err(StorageError::Denied { answer, .. } | StorageError::Refused { answer, .. }) => {
            Err(none(format!("the metadata service returned {answer}")))
        }
        Err(_) => Err(none(
            "the metadata service has none for this process".to_owned(),
        )),
    }
}

/// Returns a client for our own requests, with the timeouts of `object_store`.
pub(crate) fn client() -> object_store::Result<HttpClient> {
    let mut options = ClientOptions::new().with_allow_http(true);
    for (key, value) in TIMES {
        options = options.with_config(key, value);
    }
    TracingConnector.connect(&options)
}

/// Disables retries of `object_store`; `requests` retries.
fn once() -> RetryConfig {
    RetryConfig {
        max_retries: 0,
        ..RetryConfig::default()
    }
}

fn settings(uri: &ObjectUri, error: &object_store::Error) -> StorageError {
    StorageError::Settings {
        uri: uri.to_string(),
        reason: innermost(error),
    }
}
