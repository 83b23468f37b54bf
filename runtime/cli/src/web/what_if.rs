//! The process with which the dashboard simulates a history: `nap sim`. It ends with the server.

use std::path::{Path, PathBuf};

use napreduce_schedulers::SchedulerName;
use napreduce_web::WhatIfSettings;

use crate::parent::PARENT_VARIABLE;

/// Returns settings that keep results in `folder` and read scheduler parameters from the directory `tables`, or
/// from `file`.
pub fn what_if_settings(folder: PathBuf, tables: &Path, file: Option<&Path>) -> WhatIfSettings {
    // This very program, even if its file was replaced.
    let mut settings = WhatIfSettings::new("/proc/self/exe".into(), folder);
    settings.begin = vec!["sim".into(), "--dir".into(), tables.into()];
    settings.begin.extend(file.into_iter().flat_map(|file| ["--config".into(), file.into()]));
    settings.environment = vec![(PARENT_VARIABLE.to_owned(), std::process::id().to_string())];
    settings.schedulers = SchedulerName::ALL.map(|name| name.to_string()).to_vec();
    settings
}
