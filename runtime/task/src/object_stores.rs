//! The object stores that this program supports, depending on its features.

use std::path::Path;
use std::sync::OnceLock;

use napreduce_protocol::{ObjectStores, StorageScheme};

static STORES: OnceLock<fn(&Path) -> &'static dyn ObjectStores> = OnceLock::new();

/// Lets this process write to stores. To be called before any job or task runs; called again, it
/// changes nothing.
pub fn set_object_stores(stores_of: fn(&Path) -> &'static dyn ObjectStores) {
    // The first ones are as good: a program has one set of features.
    let _ = STORES.set(stores_of);
}

/// The stores of this process that an object is in; where there are none, what to do about one there.
pub fn object_stores(object: &Path) -> Result<&'static dyn ObjectStores, String> {
    STORES.get().map(|stores_of| stores_of(object)).ok_or_else(|| match StorageScheme::of(object) {
        Some(store) => format!(
            "{} is in {store}, which this program was built without; build it with the feature {} of napreduce",
            object.display(),
            store.feature()
        ),
        None => format!("invalid object name {}", object.display()),
    })
}
