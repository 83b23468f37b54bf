//! The object stores that this program supports, depending on its features.

use std::path::Path;
use std::sync::OnceLock;

use napreduce_protocol::{ObjectStores, StorageScheme};

static STORES: OnceLock<fn(&Path) -> &'static dyn ObjectStores> = OnceLock::new();

/// Sets the object stores of this process. Must be called before any job or task runs; later calls have no
/// effect.
pub fn set_object_stores(stores_of: fn(&Path) -> &'static dyn ObjectStores) {
    // A program has one set of features, so the first call is as good.
    let _ = STORES.set(stores_of);
}

/// Returns the store client for an object; the error names the missing feature.
pub fn object_stores(object: &Path) -> Result<&'static dyn ObjectStores, String> {
    STORES.get().map(|stores_of| stores_of(object)).ok_or_else(|| match StorageScheme::from_path(object) {
        Some(store) => format!(
            "{} is in {store}, which this program was built without; build it with the feature {} of napreduce",
            object.display(),
            store.feature()
        ),
        None => format!("invalid object name {}", object.display()),
    })
}
