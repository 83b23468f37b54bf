//! A mapper over lines with the name of their document: the name of the file without its folders. Files of one name in
//! several folders are one document.

use std::marker::PhantomData;
use std::path::Path;
use std::sync::Arc;

use napreduce::input::TextLines;
use napreduce::{Emit, Key, Mapper, Save, TaskError, TaskInfo, Value};

/// Calls a closure with the document and each of its lines; made by [`by_document`].
pub struct DocumentLines<K, V, F> {
    document: String,
    map: Arc<F>,
    types: PhantomData<fn() -> (K, V)>,
}

/// A mapper that calls `map` with the name of the document and each of its lines.
pub fn by_document<K, V, F>(map: F) -> DocumentLines<K, V, F>
where
    K: Key,
    V: Value,
    F: Fn(&str, &str, &mut Emit<K, V>) + Send + Sync + 'static,
{
    DocumentLines {
        document: String::new(),
        map: Arc::new(map),
        types: PhantomData,
    }
}

impl<K, V, F> Clone for DocumentLines<K, V, F> {
    fn clone(&self) -> Self {
        DocumentLines {
            document: self.document.clone(),
            map: Arc::clone(&self.map),
            types: PhantomData,
        }
    }
}

impl<K, V, F> Mapper for DocumentLines<K, V, F>
where
    K: Key,
    V: Value,
    F: Fn(&str, &str, &mut Emit<K, V>) + Send + Sync + 'static,
{
    type Input = TextLines;
    type Key = K;
    type Value = V;

    fn setup(&mut self, task: &TaskInfo) -> Result<(), TaskError> {
        let path = task.input().unwrap_or(Path::new(""));
        let name = path.file_name().and_then(|name| name.to_str());
        // Readers of the output split its lines at these.
        let name = name.filter(|name| !name.contains(['\t', '\n', '|'])).ok_or_else(|| {
            let shown = path.display();
            TaskError::fatal(format!(
                "the file name of {shown} has a tab, a newline or a |, or is not UTF-8; rename it"
            ))
        })?;
        name.clone_into(&mut self.document);
        Ok(())
    }

    fn map(&mut self, line: &str, out: &mut Emit<K, V>) -> Result<(), TaskError> {
        (self.map)(&self.document, line, out);
        Ok(())
    }

    /// `setup` finds the name again.
    fn save(&self, _: &mut Vec<u8>) -> Result<Save, TaskError> {
        Ok(Save::Stateless)
    }
}
