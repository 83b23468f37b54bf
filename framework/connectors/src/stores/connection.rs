//! Connections to buckets, one for each, with what the environment says.
//!
//! Credentials are there before anything else is asked for.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, Once, PoisonError};
use std::time::Duration;

use napreduce_protocol::StorageScheme;
use object_store::client::{HttpClient, HttpConnector};
use object_store::list::PaginatedListStore;
use object_store::multipart::MultipartStore;
use object_store::signer::Signer;
use object_store::{ClientConfigKey, ClientOptions, CredentialProvider, ObjectStore, RetryConfig};

#[cfg(any(feature = "s3", feature = "gcs", feature = "azure"))]
use crate::stores::crypto::PlainCrypto;
use crate::stores::requests::{RetryBudget, TracingConnector, innermost, retried};
use crate::stores::{ObjectUri, StorageError, threads};

/// How long credentials are looked for: where there are none, the address that hands them out answers nobody.
const CREDENTIALS_PATIENCE: Duration = Duration::from_secs(10);
/// How long requests take at most: an answer may be long, but not silent for long.
const TIMES: [(ClientConfigKey, &str); 3] = [
    (ClientConfigKey::ConnectTimeout, "10 seconds"),
    (ClientConfigKey::ReadTimeout, "30 seconds"),
    (ClientConfigKey::Timeout, "1 hour"),
];

/// Where Google answers those who name no other place.
#[cfg(feature = "gcs")]
const GOOGLE: &str = "https://storage.googleapis.com";

/// A bucket, as the library has it.
#[derive(Clone)]
pub(crate) struct Bucket {
    pub(crate) objects: Arc<dyn ObjectStore>,
    pub(crate) uploads: Arc<dyn MultipartStore>,
    /// Lists by pages, each of which is asked for by itself; HDFS has none.
    pub(crate) pages: Option<Arc<dyn PaginatedListStore>>,
    pub(crate) listing: Option<UploadListing>,
}

/// How uploads are asked for, by requests that the library does not make itself.
#[derive(Clone)]
pub(crate) enum UploadListing {
    /// With a signature in the address.
    #[cfg_attr(not(feature = "s3"), expect(dead_code, reason = "S3 alone is asked so"))]
    Signed(Arc<dyn Signer>),
    /// With a token in the head. Google signs only for those who may do that beside reading and writing, and
    /// by another service.
    #[cfg(feature = "gcs")]
    Bearer { bucket: String, credentials: Option<object_store::gcp::GcpCredentialProvider> },
}

impl Bucket {
    #[cfg(any(feature = "s3", feature = "gcs", feature = "azure"))]
    fn of<B: ObjectStore + MultipartStore + PaginatedListStore>(
        bucket: Arc<B>,
        listing: Option<UploadListing>,
    ) -> Bucket {
        let pages: Option<Arc<dyn PaginatedListStore>> = Some(Arc::clone(&bucket) as _);
        Bucket { objects: Arc::clone(&bucket) as _, uploads: bucket, pages, listing }
    }

    #[cfg(any(feature = "hdfs", test))]
    fn without_pages<B: ObjectStore + MultipartStore>(bucket: Arc<B>) -> Bucket {
        Bucket { objects: Arc::clone(&bucket) as _, uploads: bucket, pages: None, listing: None }
    }

    /// One in the memory of a test.
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

/// The bucket that an object is in, connected before or now.
pub(crate) fn bucket(uri: &ObjectUri) -> Result<Bucket, StorageError> {
    let key = (uri.scheme(), uri.bucket().to_owned());
    // Held while connecting: others who want the bucket wait for this one.
    let mut buckets = BUCKETS.lock().unwrap_or_else(PoisonError::into_inner);
    let known = buckets.get_or_insert_default();
    if let Some(bucket) = known.get(&key) {
        return Ok(bucket.clone());
    }
    // Another one that is there already serves as well.
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

/// What a builder makes, after what is said to all of them, which have no trait in common; and whether its
/// requests are not signed.
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
    // Whoever names an endpoint without TLS means it.
    let endpoints = [Key::Endpoint, Key::S3Endpoint].map(|key| builder.get_config_value(&key));
    if endpoints.iter().flatten().any(|endpoint| endpoint.starts_with("http://")) {
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
    Ok(Bucket::of(Arc::clone(&bucket), Some(UploadListing::Signed(bucket))))
}

#[cfg(feature = "gcs")]
fn gcs(uri: &ObjectUri) -> Result<Bucket, StorageError> {
    use object_store::gcp::{GoogleCloudStorageBuilder, GoogleConfigKey as Key};

    let mut builder = GoogleCloudStorageBuilder::from_env().with_bucket_name(uri.bucket());
    let base = builder.get_config_value(&Key::BaseUrl).unwrap_or_else(|| GOOGLE.to_owned());
    // Whoever names an endpoint without TLS means it.
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
        // Whoever names one without TLS means it.
        if endpoint.starts_with("http://") {
            builder = builder.with_allow_http(true);
        }
        // The library writes a slash behind it.
        builder = builder.with_endpoint(endpoint.trim_end_matches('/').to_owned());
    }
    let (bucket, is_public) = built!(builder, Key, uri);
    if !is_public {
        let provider = Arc::clone(bucket.credentials());
        let remedy = "set AZURE_STORAGE_ACCOUNT_KEY or AZURE_STORAGE_SAS_KEY, run where an identity is given, or set \
                      AZURE_SKIP_SIGNATURE=true for a public container";
        credentials(uri, remedy, provider)?;
    }
    // What is left of uploads goes by itself after a week.
    Ok(Bucket::of(Arc::new(bucket), None))
}

/// Files are written by ways of their own, and nothing is asked for before the first is looked at.
#[cfg(feature = "hdfs")]
fn hdfs(uri: &ObjectUri) -> Result<Bucket, StorageError> {
    let files = Arc::new(crate::stores::hdfs::HdfsObjects(crate::stores::hdfs::connected(uri)?));
    Ok(Bucket::without_pages(files))
}

/// Looks for credentials, so that a lack of them is told from a store that does not answer. They stay in the
/// provider, which renews them.
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
    let none = |reason: String| StorageError::NoCredentials { uri: uri.to_string(), reason, remedy };
    match found? {
        Ok(()) => Ok(()),
        Err(StorageError::Unreachable { reason, .. }) => {
            Err(none(format!("the environment has none, and the address that hands them out says: {reason}")))
        }
        Err(StorageError::Denied { answer, .. } | StorageError::Refused { answer, .. }) => {
            Err(none(format!("whoever hands them out answered {answer}")))
        }
        Err(_) => Err(none("whoever hands them out knows none for this process".to_owned())),
    }
}

/// What a request of one's own goes through: as the library's, with the same patience.
pub(crate) fn client() -> object_store::Result<HttpClient> {
    let mut options = ClientOptions::new().with_allow_http(true);
    for (key, value) in TIMES {
        options = options.with_config(key, value);
    }
    TracingConnector.connect(&options)
}

/// `object_store` makes each request once: `requests` makes it again.
fn once() -> RetryConfig {
    RetryConfig { max_retries: 0, ..RetryConfig::default() }
}

fn settings(uri: &ObjectUri, error: &object_store::Error) -> StorageError {
    StorageError::Settings { uri: uri.to_string(), reason: innermost(error) }
}
