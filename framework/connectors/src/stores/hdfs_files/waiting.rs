//! Blocking calls of the NameNode with retries.

use crate::stores::figures::WRITTEN;
use crate::stores::requests::{Failure, RetryBudget, insist};
use crate::stores::{ObjectUri, StorageError, threads};

/// Makes a call that changes nothing.
pub(super) fn read<T, F>(
    uri: &ObjectUri,
    request: impl FnMut() -> F + Send + 'static,
) -> Result<T, StorageError>
where
    T: Send + 'static,
    F: Future<Output = Result<T, Failure>> + Send + 'static,
{
    let object = uri.clone();
    threads::wait(uri, async move {
        insist(&object, RetryBudget::new(), request).await
    })?
}

/// Makes a call that is idempotent.
pub(super) fn written<T, F>(
    uri: &ObjectUri,
    mut request: impl FnMut() -> F + Send + 'static,
) -> Result<T, StorageError>
where
    T: Send + 'static,
    F: Future<Output = Result<T, Failure>> + Send + 'static,
{
    let object = uri.clone();
    let counted = move || {
        WRITTEN.count_request();
        request()
    };
    threads::wait(uri, async move {
        insist(&object, RetryBudget::writing(), counted).await
    })?
}
