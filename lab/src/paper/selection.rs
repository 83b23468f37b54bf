//! Which figures somebody means: `natjam 5`, `fcs 8-11,t2`, `all`.
//!
//! Owns the words. Does not own the figures (`registry`).

use super::registry::Paper;

/// What was asked for is not there.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum SelectionError {
    #[error("there is no paper {name:?}; there are {known}, and all")]
    Paper { name: String, known: String },
    #[error("{paper} has no figure {figure:?}; it has {known}")]
    Figure { paper: String, figure: String, known: String },
}

/// The figures that are meant, paper by paper, in their order. Without figures, all of the paper.
///
/// # Errors
/// When there is no such paper or figure.
pub fn select(
    papers: &[Paper],
    paper: &str,
    figures: Option<&str>,
) -> Result<Vec<(String, String)>, SelectionError> {
    let all = |paper: &Paper| -> Vec<(String, String)> {
        paper.ids().into_iter().map(|id| (paper.name.clone(), id.to_owned())).collect()
    };
    if paper == "all" {
        return Ok(papers.iter().flat_map(all).collect());
    }
    let Some(found) = papers.iter().find(|known| known.name == paper) else {
        let known: Vec<&str> = papers.iter().map(|known| known.name.as_str()).collect();
        return Err(SelectionError::Paper { name: paper.to_owned(), known: known.join(", ") });
    };
    let Some(figures) = figures else { return Ok(all(found)) };
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
            let (paper, figure) = (paper.to_owned(), part.to_owned());
            return Err(SelectionError::Figure { paper, figure, known: ids.join(", ") });
        };
        wanted.extend(first..=last);
    }
    wanted.sort_unstable();
    wanted.dedup();
    Ok(wanted.into_iter().map(|at| (paper.to_owned(), ids[at].to_owned())).collect())
}
