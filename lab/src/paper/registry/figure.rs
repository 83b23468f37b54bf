//! What an entry says of a figure: the claims of the paper, what is expected for each, how it is drawn.
//!
//! Owns the form. Does not own the runs that it refers to (`campaign`).

use serde::Deserialize;

use crate::paper::quantity::Quantity;

/// A figure, a table, or a result in the text.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Figure {
    pub title: String,
    /// What the paper says of it, sentence by sentence.
    #[serde(rename = "claim", default)]
    pub claims: Vec<Claim>,
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
    pub plot: Option<Plot>,
}

/// One sentence of a paper in our words, with the expectations that judge it.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Claim {
    pub says: String,
    /// The section, figure or table of the paper that has it.
    pub from: String,
    #[serde(default)]
    pub expect: Vec<Expectation>,
    /// Why nothing judges it.
    pub not_measured: Option<String>,
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
    /// The mean of several ratios.
    pub mean_ratio: Option<Vec<[Quantity; 2]>>,
    /// The least of several ratios.
    pub least_ratio: Option<Vec<[Quantity; 2]>>,
    /// Spearman's coefficient of several ratios against their order.
    pub rank_ratio: Option<Vec<[Quantity; 2]>>,
    /// Largest over smallest of the first quantities, over the same of the second.
    pub spread_ratio: Option<[Vec<Quantity>; 2]>,
    /// The second difference of three quantities: above 0 where growth grows.
    pub curvature: Option<[Quantity; 3]>,
    pub above: Option<f64>,
    pub below: Option<f64>,
    pub published: Option<f64>,
    pub source: Option<Source>,
    /// Where the paper has a bound or a margin that is not simply "any effect", or what it is derived from.
    pub bound: Option<String>,
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
    pub(in crate::paper) fn expectations(&self) -> impl Iterator<Item = &Expectation> {
        self.claims.iter().flat_map(|claim| &claim.expect)
    }

    pub(in crate::paper) fn quantities(&self) -> Vec<&Quantity> {
        let mut all: Vec<&Quantity> = self.expectations().flat_map(Expectation::quantities).collect();
        for series in self.plot.iter().flat_map(|plot| &plot.series) {
            all.extend(series.points.iter().map(Point::quantity));
            all.extend(&series.jobs);
        }
        all
    }

    /// Every number that the entry takes from the paper: what was published, and bounds other than "any effect".
    pub fn published(&self) -> Vec<f64> {
        let points = self.plot.iter().flat_map(|plot| &plot.series).flat_map(|series| &series.points);
        self.expectations()
            .flat_map(|expected| expected.published.into_iter().chain(expected.foreign_bounds()))
            .chain(points.filter_map(Point::published))
            .collect()
    }
}

impl Claim {
    pub(super) fn check(&self) -> Result<(), String> {
        if self.from.trim().is_empty() {
            return Err("name the section, figure or table of the paper".to_owned());
        }
        match (self.expect.is_empty(), &self.not_measured) {
            (true, None) => {
                Err("nothing judges it; give expect, or say why not with not-measured".to_owned())
            }
            (false, Some(_)) => Err("give expect or not-measured, not both".to_owned()),
            _ => Ok(()),
        }
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

/// Ours over what was published, where an entry gives no margin.
const WITHIN: [f64; 2] = [0.8, 1.25];

impl Expectation {
    pub(super) fn check(&self) -> Result<(), String> {
        let forms = [
            self.value.is_some(),
            self.difference.is_some(),
            self.rank.is_some(),
            self.rank_ratio.is_some(),
            self.curvature.is_some(),
            self.is_ratio(),
        ];
        if forms.iter().filter(|given| **given).count() != 1 {
            return Err("give one form, such as value, ratio, difference or rank".to_owned());
        }
        let direction = self.above.is_some() || self.below.is_some();
        match self.published {
            Some(_) if direction => {
                return Err("give a direction (above, below) or a magnitude (published)".to_owned());
            }
            Some(_) if self.source.is_none() => return Err("say the source of what was published".to_owned()),
            None if !direction => return Err("give above or below, or what was published".to_owned()),
            _ => {}
        }
        if self.bound.is_some() || self.given {
            return Ok(());
        }
        if let Some(bound) = self.foreign_bounds().next() {
            return Err(format!("say with `bound` where the paper has {bound}"));
        }
        if let Some(published) = self.published {
            let (effect, [least, most]) = ((published - self.no_effect()).abs(), self.accepted(published));
            if least < most && (published - least).max(most - published) >= effect {
                return Err(format!("its margin is as large as the effect, {effect:.3}, or larger"));
            }
        }
        Ok(())
    }

    /// What it is where nothing has an effect.
    fn no_effect(&self) -> f64 {
        if self.is_ratio() { 1.0 } else { 0.0 }
    }

    pub(in crate::paper) fn is_ratio(&self) -> bool {
        self.ratio.is_some()
            || self.mean_ratio.is_some()
            || self.least_ratio.is_some()
            || self.spread_ratio.is_some()
    }

    /// Bounds that say more than that there is an effect in one direction.
    fn foreign_bounds(&self) -> impl Iterator<Item = f64> {
        let none = self.no_effect();
        self.above.into_iter().chain(self.below).filter(move |bound| *bound != none)
    }

    /// From where to where ours is taken for what was published. Without a margin from 0.8 to 1.25 of it, and of a
    /// ratio at most half of the effect away.
    pub(in crate::paper) fn accepted(&self, published: f64) -> [f64; 2] {
        if let Some(most) = self.within_absolute {
            return [published - most, published + most];
        }
        let [least, most] = self.within.unwrap_or(WITHIN).map(|times| published * times);
        if self.within.is_some() || !self.is_ratio() {
            return [least.min(most), least.max(most)];
        }
        let half = (published - self.no_effect()).abs() / 2.0;
        [least.max(published - half), most.min(published + half)]
    }

    pub(in crate::paper) fn quantities(&self) -> Vec<&Quantity> {
        let mut all: Vec<&Quantity> = self.value.iter().collect();
        all.extend(self.ratio.iter().chain(&self.difference).flatten());
        all.extend(self.rank.iter().flatten());
        let ratios = self.mean_ratio.iter().chain(&self.least_ratio).chain(&self.rank_ratio);
        all.extend(ratios.flatten().flatten());
        all.extend(self.spread_ratio.iter().flatten().flatten());
        all.extend(self.curvature.iter().flatten());
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str) -> Result<(), String> {
        let expected: Expectation = toml::from_str(text).expect("an expectation");
        expected.check()
    }

    const RATIO: &str = "what = \"a\"\nratio = [\"a: makespan\", \"b: makespan\"]\n";

    #[test]
    fn bound_without_a_place_in_the_paper_is_refused() {
        assert_eq!(check(&format!("{RATIO}below = 1.0")), Ok(()));
        let error = check(&format!("{RATIO}below = 1.02")).expect_err("a bound of ours");
        assert!(error.contains("1.02"), "{error}");
        assert_eq!(check(&format!("{RATIO}below = 1.02\nbound = \"section 1\"")), Ok(()));
        let value = "what = \"a\"\nvalue = \"a: makespan\"\n";
        assert!(check(&format!("{value}above = 1.0")).is_err(), "no effect of a number is 0");
        assert_eq!(check(&format!("{value}above = 0.0")), Ok(()));
    }

    #[test]
    fn margin_as_large_as_the_effect_is_refused() {
        let published = format!("{RATIO}source = \"text\"\npublished = ");
        let error = check(&format!("{published}1.02\nwithin-absolute = 0.1")).expect_err("too wide");
        assert!(error.contains("0.020"), "{error}");
        assert!(check(&format!("{published}1.02\nwithin = [0.9, 1.1]")).is_err());
        assert_eq!(check(&format!("{published}1.02\nwithin-absolute = 0.01")), Ok(()));
        assert_eq!(check(&format!("{published}1.02")), Ok(()));
    }

    #[test]
    fn margin_is_half_of_a_small_effect_and_a_fifth_of_a_large_one() {
        let accepted = |published: f64| {
            let expected: Expectation = toml::from_str(&format!("{RATIO}below = 1.0")).expect("a ratio");
            expected.accepted(published).map(|bound| (bound * 1000.0).round() / 1000.0)
        };
        assert_eq!(accepted(1.02), [1.01, 1.03]);
        assert_eq!(accepted(0.5), [0.4, 0.625]);
    }

    #[test]
    fn claim_without_a_judge_is_refused() {
        let check = |text: &str| toml::from_str::<Claim>(text).expect("a claim").check();
        let claim = "says = \"a\"\nfrom = \"section 1\"\n";
        assert!(check(claim).expect_err("no judge").contains("not-measured"));
        assert_eq!(check(&format!("{claim}not-measured = \"why\"")), Ok(()));
        assert!(check("says = \"a\"\nfrom = \"\"\nnot-measured = \"why\"").is_err(), "no place");
    }
}
