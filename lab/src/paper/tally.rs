//! The numbers of figures and claims by verdict: papers and our own questions, simulated and live, each counted apart.

use super::registry::Paper;
use super::rows::Executor;
use super::verdict::{Judgement, Verdict};
use crate::report::counted;

#[derive(Debug, Default)]
pub(super) struct Tally {
    groups: Vec<Group>,
}

/// Judgements that are counted together.
#[derive(Debug, Default)]
struct Group {
    name: String,
    figures: Vec<Verdict>,
    claims: Vec<Verdict>,
    not_measured: usize,
}

/// The verdicts of a group that a table counts.
struct Counted<'a> {
    verdicts: &'a [Verdict],
    not_measured: usize,
}

impl Tally {
    pub(super) fn new(papers: &[Paper], judgements: &[Judgement]) -> Tally {
        let mut groups = Vec::new();
        for (own, whose) in [(false, "papers"), (true, "our own questions")] {
            for executor in Executor::ALL {
                let mut group =
                    Group { name: format!("{whose}, {}", executor.in_words()), ..Group::default() };
                for judgement in judgements.iter().filter(|one| one.executor == executor) {
                    let paper = papers.iter().find(|paper| paper.name == judgement.paper);
                    if paper.is_some_and(|paper| paper.own == own) {
                        group.add(judgement);
                    }
                }
                if !group.figures.is_empty() {
                    groups.push(group);
                }
            }
        }
        Tally { groups }
    }

    /// One line per group.
    pub(super) fn text(&self) -> String {
        let lines: Vec<String> = self.groups.iter().map(Group::line).collect();
        lines.join("\n")
    }

    /// A table of figures in Markdown.
    pub(super) fn figures(&self) -> String {
        self.table("figures", |group| Counted { verdicts: &group.figures, not_measured: 0 })
    }

    /// A table of claims in Markdown.
    pub(super) fn claims(&self) -> String {
        self.table("claims", |group| Counted { verdicts: &group.claims, not_measured: group.not_measured })
    }

    /// A row per group, and a column per verdict that occurs.
    fn table(&self, what: &str, of: fn(&Group) -> Counted<'_>) -> String {
        let occurs =
            |verdict: &Verdict| self.groups.iter().any(|group| count(of(group).verdicts, *verdict) > 0);
        let columns: Vec<Verdict> = Verdict::ALL.into_iter().filter(occurs).collect();
        let mut head = format!("| {what} | all |");
        let mut rule = "|---|---|".to_owned();
        for verdict in &columns {
            head += &format!(" {} |", verdict.in_words());
            rule += "---|";
        }
        let has_rest = self.groups.iter().any(|group| of(group).not_measured > 0);
        if has_rest {
            head += " not measured |";
            rule += "---|";
        }
        let mut text = format!("{head}\n{rule}\n");
        for group in &self.groups {
            let Counted { verdicts, not_measured } = of(group);
            text += &format!("| {} | {} |", group.name, verdicts.len() + not_measured);
            for verdict in &columns {
                text += &format!(" {} |", count(verdicts, *verdict));
            }
            if has_rest {
                text += &format!(" {not_measured} |");
            }
            text.push('\n');
        }
        text
    }
}

impl Group {
    fn add(&mut self, judgement: &Judgement) {
        self.figures.push(judgement.verdict);
        for claim in &judgement.claims {
            match claim.verdict {
                Some(verdict) => self.claims.push(verdict),
                None => self.not_measured += 1,
            }
        }
    }

    fn line(&self) -> String {
        let figures = in_words("figure", &self.figures);
        let claims = in_words("claim", &self.claims);
        let rest = match self.not_measured {
            0 => String::new(),
            count => format!(", {count} not measured"),
        };
        format!("{}: {figures}; {claims}{rest}", self.name)
    }
}

fn count(verdicts: &[Verdict], verdict: Verdict) -> usize {
    verdicts.iter().filter(|other| **other == verdict).count()
}

fn in_words(thing: &str, verdicts: &[Verdict]) -> String {
    let mut parts = Vec::new();
    for verdict in Verdict::ALL {
        let count = count(verdicts, verdict);
        if count > 0 {
            parts.push(format!("{count} {}", verdict.in_words()));
        }
    }
    format!("{}: {}", counted(verdicts.len(), thing), parts.join(", "))
}
