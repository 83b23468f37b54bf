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
    figures: Counts,
    claims: Counts,
}

#[derive(Debug, Default)]
struct Counts {
    verdicts: Vec<Verdict>,
    not_measured: usize,
}

impl Tally {
    pub(super) fn new(papers: &[Paper], judgements: &[Judgement]) -> Tally {
        let mut groups = Vec::new();
        for (own, whose) in [(false, "papers"), (true, "our own questions")] {
            for executor in Executor::ALL {
                let mut group = Group {
                    name: format!("{whose}, {}", executor.in_words()),
                    ..Group::default()
                };
                for judgement in judgements.iter().filter(|one| one.executor == executor) {
                    let paper = papers.iter().find(|paper| paper.name == judgement.paper);
                    if paper.is_some_and(|paper| paper.own == own) {
                        group.add(judgement);
                    }
                }
                if !group.figures.verdicts.is_empty() {
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
        self.table("figures", |group| &group.figures)
    }

    /// A table of claims in Markdown.
    pub(super) fn claims(&self) -> String {
        self.table("claims", |group| &group.claims)
    }

    /// A row per group, and a column per verdict that occurs.
    fn table(&self, what: &str, of: fn(&Group) -> &Counts) -> String {
        let occurs = |verdict: &Verdict| self.groups.iter().any(|group| of(group).of(*verdict) > 0);
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
            let counts = of(group);
            text += &format!(
                "| {} | {} |",
                group.name,
                counts.verdicts.len() + counts.not_measured
            );
            for verdict in &columns {
                text += &format!(" {} |", counts.of(*verdict));
            }
            if has_rest {
                text += &format!(" {} |", counts.not_measured);
            }
            text.push('\n');
        }
        text
    }
}

impl Counts {
    fn of(&self, verdict: Verdict) -> usize {
        self.verdicts
            .iter()
            .filter(|other| **other == verdict)
            .count()
    }

    fn in_words(&self, thing: &str) -> String {
        let mut parts = Vec::new();
        for verdict in Verdict::ALL {
            let count = self.of(verdict);
            if count > 0 {
                parts.push(format!("{count} {}", verdict.in_words()));
            }
        }
        let all = counted(self.verdicts.len(), thing);
        let rest = match self.not_measured {
            0 => String::new(),
            count => format!(", {count} not measured"),
        };
        format!("{all}: {}{rest}", parts.join(", "))
    }
}

impl Group {
    fn add(&mut self, judgement: &Judgement) {
        self.figures.verdicts.push(judgement.verdict);
        for claim in &judgement.claims {
            match claim.verdict {
                Some(verdict) => self.claims.verdicts.push(verdict),
                None => self.claims.not_measured += 1,
            }
        }
    }

    fn line(&self) -> String {
        format!(
            "{}: {}; {}",
            self.name,
            self.figures.in_words("figure"),
            self.claims.in_words("claim")
        )
    }
}
