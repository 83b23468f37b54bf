//! The selection of figures on the command line: `natjam 5`, `fcs 8-11,t2`, `all`.

use super::registry::Paper;
use anyhow::{Result, bail};

/// The papers and ids of the selected figures, in order; all of the paper if no figures are named.
pub fn select(
    papers: &[Paper],
    paper: &str,
    figures: Option<&str>,
) -> Result<Vec<(String, String)>> {
    let all = |paper: &Paper| -> Vec<(String, String)> {
        paper
            .ids()
            .into_iter()
            .map(|id| (paper.name.clone(), id.to_owned()))
            .collect()
    };
    if paper == "all" {
        return Ok(papers.iter().flat_map(all).collect());
    }
    let Some(found) = papers.iter().find(|known| known.name == paper) else {
        let known: Vec<&str> = papers.iter().map(|known| known.name.as_str()).collect();
        bail!(
            "unknown paper {paper:?}; there are {}, and all",
            known.join(", ")
        );
    };
    let Some(figures) = figures else {
        return Ok(all(found));
    };
    let ids = found.ids();
    let mut wanted = Vec::new();
    for part in figures.split(',').map(str::trim) {
        let place = |id: &str| ids.iter().position(|known| *known == id);
        let range = match (place(part), part.split_once('-')) {
            (Some(at), _) => Some((at, at)),
            (None, Some((first, last))) => place(first).zip(place(last)),
            (None, None) => None,
        };
        let Some((first, last)) = range.filter(|(first, last)| first <= last) else {
            bail!("{paper} has no figure {part:?}; it has {}", ids.join(", "));
        };
        wanted.extend(first..=last);
    }
    wanted.sort_unstable();
    wanted.dedup();
    Ok(wanted
        .into_iter()
        .map(|at| (paper.to_owned(), ids[at].to_owned()))
        .collect())
}
