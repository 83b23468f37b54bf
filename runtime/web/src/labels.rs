//! Labels of metrics. The library writes their values as they are, so they are escaped here: the name of a queue may have
//! any characters, and a single quote mark would make the whole response invalid.

use std::fmt::{self, Write};

use prometheus_client::encoding::{EncodeLabelValue, LabelValueEncoder};

pub type Labels = Vec<(&'static str, LabelValue)>;

/// The value of a label.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct LabelValue(String);

impl<T: Into<String>> From<T> for LabelValue {
    fn from(text: T) -> LabelValue {
        LabelValue(text.into())
    }
}

impl EncodeLabelValue for LabelValue {
    fn encode(&self, encoder: &mut LabelValueEncoder<'_>) -> fmt::Result {
        for character in self.0.chars() {
            match character {
                '\n' => encoder.write_str("\\n")?,
                '"' => encoder.write_str("\\\"")?,
                '\\' => encoder.write_str("\\\\")?,
                other => encoder.write_char(other)?,
            }
        }
        Ok(())
    }
}

/// Returns labels that consist of one.
pub fn label(name: &'static str, value: &str) -> Labels {
    vec![(name, value.into())]
}
