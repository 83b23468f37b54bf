//! The figures of the papers, as the files in `papers/` have them.
//!
//! Owns the form of an entry and its checks: a quantity that names no variant is refused before anything
//! runs. Does not own what an entry comes to (`verdict`).

mod campaign;
mod figure;
mod recipe;

use std::collections::BTreeMap;

use napreduce_schedulers::SchedulerName;
use serde::Deserialize;

pub(super) use self::campaign::{Alone, Campaign, Variant};
pub use self::figure::Figure;
pub(super) use self::figure::{Claim, Expectation, Label, Plot, PlotKind, Point, Series};
pub(super) use self::recipe::LiveRecipe;

use super::quantity::{Quantity, VariantName};

/// The papers, and their files.
const FILES: [(&str, &str); 6] = [
    ("os", include_str!("../../../papers/os.toml")),
    ("natjam", include_str!("../../../papers/natjam.toml")),
    ("fcs", include_str!("../../../papers/fcs.toml")),
    ("hfsp", include_str!("../../../papers/hfsp.toml")),
    ("yarn", include_str!("../../../papers/yarn.toml")),
    ("auto", include_str!("../../../papers/auto.toml")),
];

/// One paper.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Paper {
    #[serde(skip)]
    pub name: String,
    /// Its title and year.
    #[serde(rename = "paper")]
    pub title: String,
    #[serde(default)]
    pub calibration: Vec<Calibration>,
    #[serde(rename = "campaign", default)]
    pub campaigns: BTreeMap<String, Campaign>,
    #[serde(rename = "figure")]
    pub figures: BTreeMap<String, Figure>,
}

/// What was fitted, and with which published numbers.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Calibration {
    pub what: String,
    pub with: String,
}

/// A file of the registry cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("papers/{paper}.toml: {what}")]
pub struct RegistryError {
    pub paper: String,
    pub what: String,
}

/// All papers, checked.
///
/// # Errors
/// Never with the files of a release: they are tested.
pub fn papers() -> Result<Vec<Paper>, RegistryError> {
    FILES.iter().map(|(name, text)| read(name, text)).collect()
}

/// One paper from its text.
///
/// # Errors
/// When it is malformed, or a quantity names what is not there.
pub fn read(name: &str, text: &str) -> Result<Paper, RegistryError> {
    let refuse = |what: String| RegistryError { paper: name.to_owned(), what };
    let mut paper: Paper = toml::from_str(text).map_err(|error| refuse(error.to_string()))?;
    paper.name = name.to_owned();
    for (id, figure) in &paper.figures {
        paper.check(figure).map_err(|what| refuse(format!("figure {id}: {what}")))?;
    }
    for (id, campaign) in &paper.campaigns {
        for (variant, way) in &campaign.variants {
            let refuse = |what: String| refuse(format!("campaign {id}, variant {variant}: {what}"));
            campaign.file(way).map_err(refuse)?;
            way.configuration().map_err(refuse)?;
        }
        if let Some(live) = &campaign.live {
            live.check(&campaign.variants).map_err(|what| refuse(format!("campaign {id}, {what}")))?;
        }
    }
    Ok(paper)
}

impl Paper {
    fn check(&self, figure: &Figure) -> Result<(), String> {
        if figure.claims.is_empty() {
            return Err("it has no claim".to_owned());
        }
        if let Some(named) = figure.campaign.as_ref().filter(|named| !self.campaigns.contains_key(*named)) {
            return Err(format!("there is no campaign {named:?}"));
        }
        for claim in &figure.claims {
            claim.check().map_err(|what| format!("{:?}: {what}", claim.says))?;
        }
        for expectation in figure.expectations() {
            expectation.check().map_err(|what| format!("{:?}: {what}", expectation.what))?;
        }
        for quantity in figure.quantities() {
            for name in quantity.variants() {
                let found = self.having(figure, name).count();
                if found != 1 {
                    let (quantity, variant) = (quantity.to_string(), &name.variant);
                    return Err(format!(
                        "{quantity:?}: {found} campaigns have a variant {variant}; name one that does"
                    ));
                }
            }
        }
        Ok(())
    }

    /// The campaign and the variant that a name in a figure means.
    pub(in crate::paper) fn resolve<'a>(
        &'a self,
        figure: &'a Figure,
        name: &'a VariantName,
    ) -> (&'a str, &'a str) {
        (self.having(figure, name).next().unwrap_or_default(), &name.variant)
    }

    /// The campaigns that a name in a figure may mean; one, in a registry that was read.
    fn having<'a>(&'a self, figure: &'a Figure, name: &'a VariantName) -> impl Iterator<Item = &'a str> {
        let named = name.campaign.as_ref().or(figure.campaign.as_ref());
        self.campaigns
            .iter()
            .filter(move |(id, campaign)| {
                named.is_none_or(|named| *id == named) && campaign.variants.contains_key(&name.variant)
            })
            .map(|(id, _)| id.as_str())
    }

    /// The variants that a figure needs, by campaign.
    pub(in crate::paper) fn needed(&self, figure: &Figure) -> Vec<(String, String)> {
        let mut needed: Vec<(String, String)> = figure
            .quantities()
            .into_iter()
            .flat_map(Quantity::variants)
            .map(|name| self.resolve(figure, name))
            .map(|(campaign, variant)| (campaign.to_owned(), variant.to_owned()))
            .collect();
        needed.sort();
        needed.dedup();
        needed
    }

    /// Whether everything that an expectation needs runs live, and is measured there.
    pub(in crate::paper) fn is_live(&self, figure: &Figure, expected: &Expectation) -> bool {
        expected.quantities().into_iter().all(|quantity| {
            quantity.is_live()
                && quantity.variants().into_iter().all(|name| {
                    let (campaign, variant) = self.resolve(figure, name);
                    let campaign = self.campaigns.get(campaign);
                    campaign.and_then(|campaign| campaign.live.as_ref()).is_some_and(|live| live.has(variant))
                })
        })
    }

    /// Whether every run that quantities need is the same in all blocks.
    pub(in crate::paper) fn is_deterministic(&self, figure: &Figure, of: &[&Quantity]) -> bool {
        of.iter().flat_map(|quantity| quantity.variants()).all(|name| {
            let campaign = self.campaigns.get(self.resolve(figure, name).0);
            campaign.is_some_and(|campaign| campaign.deterministic)
        })
    }

    /// How many runs a figure takes in each block.
    pub fn runs_of(&self, figure: &Figure) -> usize {
        self.needed(figure).len()
    }

    /// Ids in the order in which people count: 3, 10, t2.
    pub fn ids(&self) -> Vec<&str> {
        let mut ids: Vec<&str> = self.figures.keys().map(String::as_str).collect();
        let key = |id: &str| {
            let digits = id.find(|c: char| c.is_ascii_digit()).unwrap_or(id.len());
            let end = id[digits..].find(|c: char| !c.is_ascii_digit()).map_or(id.len(), |at| digits + at);
            (id[..digits].to_owned(), id[digits..end].parse::<u32>().unwrap_or(0), id[end..].to_owned())
        };
        ids.sort_by_key(|id| key(id));
        ids
    }

    /// Has another policy in the place of one, everywhere: what depends on it must then fail.
    pub fn swap_policy(&mut self, from: SchedulerName, to: SchedulerName) {
        let variants = self.campaigns.values_mut().flat_map(|campaign| campaign.variants.values_mut());
        for variant in variants.filter(|variant| variant.scheduler == from) {
            (variant.scheduler, variant.settings) = (to, None);
        }
    }
}
