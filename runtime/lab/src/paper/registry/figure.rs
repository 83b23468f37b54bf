//! What an entry says of a figure: its claim, what is expected, how it is drawn.
//!
//! Owns the form. Does not own the runs that it refers to (`campaign`).

use serde::Deserialize;

use crate::paper::quantity::Quantity;

/// A figure, a table, or a result in the text.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Figure {
    pub title: String,
    pub claim: String,
    /// Why it cannot be tested.
    pub cannot: Option<String>,
    /// What stands in for an input that is not public.
    pub stand_in: Option<String>,
    /// Why a magnitude differs.
    pub because: Option<String>,
    /// The same at the live scale, where it differs for another reason.
    pub because_live: Option<String>,
    /// The campaign whose variants need not be named with it.
    pub campaign: Option<String>,
    #[serde(default)]
    pub expect: Vec<Expectation>,
    pub plot: Option<Plot>,
}

/// What must be so.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Expectation {
    pub what: String,
    pub value: Option<Quantity>,
    pub ratio: Option<[Quantity; 2]>,
    pub difference: Option<[Quantity; 2]>,
    pub rank: Option<Vec<Quantity>>,
    pub above: Option<f64>,
    pub below: Option<f64>,
    pub published: Option<f64>,
    pub source: Option<Source>,
    /// It was calibrated with, and judges nothing.
    #[serde(default)]
    pub given: bool,
    /// Ours over what was published.
    pub within: Option<[f64; 2]>,
    pub within_absolute: Option<f64>,
}

/// Where a published number stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Source {
    Text,
    Table,
    /// Worked out of others.
    Derived,
}

/// How it is drawn.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Plot {
    pub kind: PlotKind,
    pub x: String,
    pub y: String,
    pub series: Vec<Series>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PlotKind {
    Bars,
    Curves,
    Ecdf,
    Table,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Series {
    pub name: String,
    #[serde(default)]
    pub points: Vec<Point>,
    /// Of a distribution: the jobs' measure, whose statistic is not used.
    pub jobs: Option<Quantity>,
}

/// A label or a number, a quantity, and what was published.
#[derive(Debug, Clone, Deserialize)]
#[serde(untagged)]
pub enum Point {
    Published(Label, Quantity, f64),
    Ours(Label, Quantity),
}

#[derive(Debug, Clone, Deserialize)]
#[serde(untagged)]
pub enum Label {
    At(f64),
    Named(String),
}

impl Label {
    pub(in crate::paper) fn in_words(&self) -> String {
        match self {
            Label::At(at) => at.to_string(),
            Label::Named(name) => name.clone(),
        }
    }
}

impl Figure {
    pub(in crate::paper) fn quantities(&self) -> Vec<&Quantity> {
        let mut all: Vec<&Quantity> = self.expect.iter().flat_map(Expectation::quantities).collect();
        for series in self.plot.iter().flat_map(|plot| &plot.series) {
            all.extend(series.points.iter().map(Point::quantity));
            all.extend(&series.jobs);
        }
        all
    }
}

impl Figure {
    /// Every number that is called published.
    pub fn published(&self) -> Vec<f64> {
        let points = self.plot.iter().flat_map(|plot| &plot.series).flat_map(|series| &series.points);
        self.expect
            .iter()
            .filter_map(|expected| expected.published)
            .chain(points.filter_map(Point::published))
            .collect()
    }
}

impl Point {
    pub(in crate::paper) fn quantity(&self) -> &Quantity {
        match self {
            Point::Published(_, quantity, _) | Point::Ours(_, quantity) => quantity,
        }
    }

    pub(in crate::paper) fn place(&self) -> &Label {
        match self {
            Point::Published(place, ..) | Point::Ours(place, _) => place,
        }
    }

    pub(in crate::paper) fn published(&self) -> Option<f64> {
        match self {
            Point::Published(.., published) => Some(*published),
            Point::Ours(..) => None,
        }
    }
}

impl Expectation {
    pub(super) fn check(&self) -> Result<(), String> {
        let forms =
            [self.value.is_some(), self.ratio.is_some(), self.difference.is_some(), self.rank.is_some()];
        if forms.iter().filter(|given| **given).count() != 1 {
            return Err("give one of value, ratio, difference and rank".to_owned());
        }
        let direction = self.above.is_some() || self.below.is_some();
        match self.published {
            Some(_) if direction => {
                Err("give a direction (above, below) or a magnitude (published)".to_owned())
            }
            Some(_) if self.source.is_none() => Err("say the source of what was published".to_owned()),
            None if !direction => Err("give above or below, or what was published".to_owned()),
            _ => Ok(()),
        }
    }

    pub(in crate::paper) fn quantities(&self) -> Vec<&Quantity> {
        let mut all: Vec<&Quantity> = self.value.iter().collect();
        all.extend(self.ratio.iter().chain(&self.difference).flatten());
        all.extend(self.rank.iter().flatten());
        all
    }
}
