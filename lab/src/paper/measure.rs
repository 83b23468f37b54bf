//! The value of a quantity in one block: a statistic over the jobs of a run, or over the differences of the same jobs of
//! two runs.

use super::quantity::{
    JobMeasure, Quantity, RunMeasure, RunSelection, Statistic, Subject, VariantName,
};
use super::registry::{Figure, Paper};
use super::rows::{Executor, JobRow, MeasuredRun, RunKey, Runs};
use crate::statistics;

/// The runs of a figure by one executor.
#[derive(Clone, Copy)]
pub(super) struct Measured<'a> {
    pub(super) paper: &'a Paper,
    pub(super) figure: &'a Figure,
    pub(super) runs: &'a Runs,
    pub(super) executor: Executor,
}

#[derive(Clone, Copy)]
pub(super) struct Block<'a> {
    of: Measured<'a>,
    number: u32,
}

impl<'a> Measured<'a> {
    /// The blocks of the first campaign of a quantity.
    pub(super) fn blocks(self, quantity: &Quantity) -> impl Iterator<Item = Block<'a>> + use<'a> {
        let first = quantity
            .variants()
            .first()
            .map(|name| self.paper.resolve(self.figure, name).0);
        let blocks =
            first.map(|campaign| self.runs.blocks(&self.paper.name, campaign, self.executor));
        blocks
            .unwrap_or_default()
            .into_iter()
            .map(move |number| Block { of: self, number })
    }

    /// The value of a quantity in each block that has one.
    pub(super) fn values(self, quantity: &Quantity) -> Vec<f64> {
        self.blocks(quantity)
            .filter_map(|block| block.value(quantity))
            .collect()
    }
}

impl Block<'_> {
    /// `None` if a run, or every job of the quantity, is missing.
    pub(super) fn value(self, quantity: &Quantity) -> Option<f64> {
        match (&quantity.subject, &quantity.runs) {
            (Subject::Run(measure), RunSelection::Of(variant)) => {
                of_run(self.run(variant)?, *measure)
            }
            (Subject::Run(_), RunSelection::Difference(..)) => None,
            (Subject::Jobs { statistic, .. }, _) => summarise(&self.each(quantity)?, *statistic),
        }
    }

    /// The measure of each job of a quantity.
    pub(super) fn each(self, quantity: &Quantity) -> Option<Vec<f64>> {
        let Subject::Jobs { measure, of, .. } = &quantity.subject else {
            return None;
        };
        let wanted = |job: &&JobRow| {
            of.as_ref()
                .is_none_or(|of| job.class == *of || job.job == *of)
        };
        match &quantity.runs {
            RunSelection::Of(variant) => {
                let jobs = self.run(variant)?.jobs.iter().filter(wanted);
                Some(jobs.filter_map(|job| of_job(job, *measure)).collect())
            }
            RunSelection::Difference(first, second) => {
                let first = self.run(first)?;
                let second = self.run(second)?;
                let pairs = first.jobs.iter().filter(wanted).filter_map(|job| {
                    let other = second.jobs.iter().find(|other| other.job == job.job)?;
                    Some(of_job(job, *measure)? - of_job(other, *measure)?)
                });
                Some(pairs.collect())
            }
        }
    }

    fn run(&self, variant: &VariantName) -> Option<&MeasuredRun> {
        let Measured {
            paper,
            figure,
            runs,
            executor,
        } = self.of;
        let (campaign, variant) = paper.resolve(figure, variant);
        // A deterministic campaign has one block.
        let known = paper.campaigns.get(campaign);
        let once =
            executor != Executor::Live && known.is_some_and(|campaign| campaign.deterministic);
        let run = runs.get(&RunKey {
            paper: paper.name.clone(),
            campaign: campaign.to_owned(),
            variant: variant.to_owned(),
            block: if once { 0 } else { self.number },
            executor,
        });
        run.filter(|run| run.run.live.as_ref().is_none_or(|live| live.counts))
    }
}

fn of_run(run: &MeasuredRun, measure: RunMeasure) -> Option<f64> {
    let row = &run.run;
    if row.live.is_some() && !measure.is_live() {
        return None;
    }
    Some(match measure {
        RunMeasure::Makespan => row.makespan,
        RunMeasure::Missed => row.missed as f64,
        RunMeasure::Met => row.met as f64,
        RunMeasure::LocalShare => row.local_share,
        RunMeasure::Events => row.events as f64,
        RunMeasure::PagedOut => row.paged_out as f64,
    })
}

fn of_job(job: &JobRow, measure: JobMeasure) -> Option<f64> {
    let sojourn = job.ended - job.submitted;
    Some(match measure {
        JobMeasure::Sojourn => sojourn,
        JobMeasure::Slowdown if job.alone > 0.0 => sojourn / job.alone,
        JobMeasure::Slowdown => return None,
        JobMeasure::Alone => job.alone,
        JobMeasure::ReduceWait => return job.reduce_wait,
        JobMeasure::IdleShare => return job.idle_share,
        JobMeasure::Preemptions => job.preemptions as f64,
        JobMeasure::Wasted => job.wasted,
        JobMeasure::Margin => job.deadline? - job.ended,
        JobMeasure::Started => job.started,
        JobMeasure::Ended => job.ended,
    })
}

fn summarise(values: &[f64], statistic: Statistic) -> Option<f64> {
    if values.is_empty() {
        return None;
    }
    let share = |which: &dyn Fn(f64) -> bool| {
        values.iter().filter(|value| which(**value)).count() as f64 / values.len() as f64
    };
    Some(match statistic {
        Statistic::Mean => values.iter().sum::<f64>() / values.len() as f64,
        Statistic::Sum => values.iter().sum(),
        Statistic::Median => statistics::median(values)?,
        Statistic::Max => values.iter().copied().fold(f64::NEG_INFINITY, f64::max),
        Statistic::Min => values.iter().copied().fold(f64::INFINITY, f64::min),
        Statistic::Percentile(percent) => statistics::percentile(values, percent)?,
        Statistic::AtLeast(least) => share(&|value| value >= least),
        Statistic::AtMost(most) => share(&|value| value <= most),
    })
}
