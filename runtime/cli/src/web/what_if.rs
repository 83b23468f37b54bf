//! The process that a page starts to simulate a history: this program, as `nap sim`. It ends with the page.

use std::path::{Path, PathBuf};

use napreduce_schedulers::SchedulerName;
use napreduce_web::WhatIfSettings;

use crate::parent::PARENT_VARIABLE;

/// Keeps what it makes in a folder. Tables of schedulers are those of a directory, or of a file in
/// their place.
pub fn what_if_settings(folder: PathBuf, tables: &Path, file: Option<&Path>) -> WhatIfSettings {
    // This very program, even when another one has taken its place on the disk.
    let mut settings = WhatIfSettings::new("/proc/self/exe".into(), folder);
    settings.begin = vec!["sim".into(), "--dir".into(), tables.into()];
    settings.begin.extend(file.into_iter().flat_map(|file| ["--config".into(), file.into()]));
    settings.environment = vec![(PARENT_VARIABLE.to_owned(), std::process::id().to_string())];
    settings.schedulers = SchedulerName::ALL.map(|name| name.to_string()).to_vec();
    settings
}
