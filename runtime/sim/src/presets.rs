//! Named overheads of the systems in the papers.

use std::str::FromStr;

use napreduce_engine::{Span, listed};
use serde::{Deserialize, Deserializer};

use crate::settings::{Cost, Overheads};

listed! {
    /// A named set of overheads.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum OverheadPreset {
        /// Hadoop 1: heartbeats of 3 s (its minimum interval), a setup and a cleanup task per job, and task
        /// launches of 2.63 s, the only value measured in the papers (Natjam's).
        Hadoop1 = "hadoop-1",
        /// Hadoop 0.23 with Natjam, as measured in its paper (section 5): launching a task or master takes
        /// 2.63 s, a suspend or checkpoint 1.35 s, a resume 3.88 s including the launch.
        Yarn023 = "yarn-0.23",
    }
}

impl OverheadPreset {
    pub fn overheads(self) -> Overheads {
        let launch = Span::from_millis(2_630);
        match self {
            OverheadPreset::Hadoop1 => Overheads {
                heartbeat: Span::from_secs(3),
                launch,
                job_tasks: true,
                ..Overheads::default()
            },
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
            format!(
                "unknown overheads {name:?}; give {}, or a table",
                names.join(" or ")
            )
        })
    }
}

/// Reads overheads from a preset name, a table, or a table with a `preset` whose values it overrides.
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
            let name = name.as_ref().map(|name| {
                name.as_str()
                    .ok_or_else(|| Error::custom("preset must be a string"))
            });
            let base = match name.transpose()? {
                Some(name) => {
                    toml::Table::try_from(preset(name)?.overheads()).map_err(Error::custom)?
                }
                None => toml::Table::new(),
            };
            base.into_iter()
                .chain(table)
                .collect::<toml::Table>()
                .try_into()
                .map_err(Error::custom)
        }
    }
}
