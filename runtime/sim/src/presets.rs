//! Overheads by name: what the papers' systems take besides work.
//!
//! Owns the names and their numbers, and how a workload file names one and changes some of it. Does not own
//! what they do (`settings`).

use std::str::FromStr;

use napreduce_engine::{Span, listed};
use serde::{Deserialize, Deserializer};

use crate::settings::{Cost, Overheads};

listed! {
    /// Overheads that have a name.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum OverheadPreset {
        /// Hadoop 1: heartbeats of 3 s (its least interval), set-up and clean-up tasks of each job, and 2.63
        /// s to start a task, for which the only number that the papers measure is Natjam's.
        Hadoop1 = "hadoop-1",
        /// Hadoop 0.23 with Natjam, as its paper measured (section 5): a task or a master starts in 2.63 s, a
        /// suspend or checkpoint takes 1.35 s, going on from it 3.88 s, the start included.
        Yarn023 = "yarn-0.23",
    }
}

impl OverheadPreset {
    /// What takes time.
    pub fn overheads(self) -> Overheads {
        let launch = Span::from_millis(2_630);
        match self {
            OverheadPreset::Hadoop1 => {
                Overheads { heartbeat: Span::from_secs(3), launch, job_tasks: true, ..Overheads::default() }
            }
            OverheadPreset::Yarn023 => Overheads {
                launch,
                master: launch,
                suspend: Cost::fixed(Span::from_millis(1_350)),
                resume: Cost::fixed(Span::from_millis(3_880)),
                checkpoint_write: Cost::fixed(Span::from_millis(1_350)),
                checkpoint_read: Cost::fixed(Span::from_millis(3_880 - 2_630)),
                ..Overheads::default()
            },
        }
    }
}

impl FromStr for OverheadPreset {
    type Err = String;

    fn from_str(name: &str) -> Result<OverheadPreset, String> {
        OverheadPreset::of_word(name).ok_or_else(|| {
            let names = OverheadPreset::WORDS;
            format!("there are no overheads of the name {name:?}; give {}, or a table", names.join(" or "))
        })
    }
}

/// Reads a table of overheads, the name of some, or a table with such a name as `preset` that
/// changes some of them.
pub(crate) fn read<'de, D: Deserializer<'de>>(from: D) -> Result<Overheads, D::Error> {
    use serde::de::Error;
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Form {
        Name(String),
        Table(toml::Table),
    }
    let preset = |name: &str| name.parse::<OverheadPreset>().map_err(Error::custom);
    match Form::deserialize(from)? {
        Form::Name(name) => Ok(preset(&name)?.overheads()),
        Form::Table(mut table) => {
            let name = table.remove("preset");
            let name =
                name.as_ref().map(|name| name.as_str().ok_or_else(|| Error::custom("preset is a name")));
            let base = match name.transpose()? {
                Some(name) => toml::Table::try_from(preset(name)?.overheads()).map_err(Error::custom)?,
                None => toml::Table::new(),
            };
            base.into_iter().chain(table).collect::<toml::Table>().try_into().map_err(Error::custom)
        }
    }
}
