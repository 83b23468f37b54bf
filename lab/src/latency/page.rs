//! Owns what a page that is looked at costs a preemption: the same samples without readers and with
//! many, again and again by turns. Samples and the job that they come from belong to `latency`,
//! readers to `page_load`.

use std::io;

use serde::Serialize;

use super::{LatencyReport, LatencySettings, Measuring, Pair};
use crate::error::{LabError, LiveClusterError};
use crate::machine::Machine;
use crate::page_load::{PageFigures, PageLoad, REQUESTS_PER_SECOND, STREAMS};
use crate::session::Session;
use crate::statistics::{Interval, median, median_interval};
use crate::table::{dash, table};

/// What p50 may grow by.
const GROWTH_MAX_MS: f64 = 0.1;
/// Where the interval of the ratio has to begin below.
const RATIO_MAX: f64 = 1.05;

/// Suspends without and with readers of the page, one after the other.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct PagePair {
    pub without_p50_ms: f64,
    pub with_p50_ms: f64,
}

/// All of one measurement.
#[derive(Clone, Debug, Serialize)]
pub struct PageReport {
    /// Always `latency-page`.
    pub experiment: &'static str,
    pub machine: Machine,
    pub streams: u32,
    pub requests_per_second: u32,
    /// Suspends behind each figure.
    pub samples: u32,
    pub pairs: Vec<PagePair>,
    /// Median of the differences within a pair.
    pub growth_ms: Option<f64>,
    /// Median of the ratios within a pair, and its bootstrap interval (95 %).
    pub ratio: Option<f64>,
    pub ratio_interval: Option<Interval>,
    pub page: PageFigures,
    /// Whether every preempted job had the output of an undisturbed one.
    pub identical: bool,
}

/// Measures so many pairs.
///
/// # Errors
/// As `latency`, and when the page cannot be served or asked.
pub fn latency_with_page(
    settings: &LatencySettings,
    pairs: u32,
    session: &Session,
) -> Result<PageReport, LabError> {
    Measuring::with_cluster(settings, session, |measuring, nap| {
        let reference = measuring.reference()?;
        let place = measuring.cluster.serve_page(nap)?;
        let mut identical = true;
        let mut sample = |measuring: &mut Measuring<'_>| {
            measuring.report = LatencyReport::new(Machine::describe());
            while measuring.report.count(Pair::SuspendAndResume) < settings.samples as usize {
                measuring.one_job(Pair::SuspendAndResume, settings.samples as usize, &reference)?;
            }
            measuring.report.conclude(settings.samples as usize);
            identical &= measuring.report.identical;
            Ok::<_, LabError>(measuring.report.suspend.p50_ms.unwrap_or(f64::NAN))
        };
        let (mut taken, mut page) = (Vec::new(), PageFigures::default());
        for number in 0..pairs {
            let mut p50 = [0.0; 2];
            // Who is first changes, so that what grows with time favours neither.
            for is_read in [number % 2 == 1, number % 2 == 0] {
                let load = if is_read { Some(PageLoad::start(&place).map_err(unread)?) } else { None };
                p50[usize::from(is_read)] = sample(measuring)?;
                page = page.with(load.map(PageLoad::stop).unwrap_or_default());
            }
            taken.push(PagePair { without_p50_ms: p50[0], with_p50_ms: p50[1] });
        }
        Ok(PageReport::new(settings.samples, taken, page, identical))
    })
}

fn unread(source: io::Error) -> LabError {
    LiveClusterError::Page { source }.into()
}

impl PageReport {
    fn new(samples: u32, pairs: Vec<PagePair>, page: PageFigures, identical: bool) -> PageReport {
        let of = |figure: fn(&PagePair) -> f64| pairs.iter().map(figure).collect::<Vec<_>>();
        let ratios = of(|pair| pair.with_p50_ms / pair.without_p50_ms);
        PageReport {
            experiment: "latency-page",
            machine: Machine::describe(),
            streams: STREAMS,
            requests_per_second: REQUESTS_PER_SECOND,
            samples,
            growth_ms: median(&of(|pair| pair.with_p50_ms - pair.without_p50_ms)),
            ratio: median(&ratios),
            ratio_interval: median_interval(&ratios),
            pairs,
            page,
            identical,
        }
    }

    /// Whether the page costs next to nothing, was read, and every output is right.
    pub fn succeeded(&self) -> bool {
        let is_small = self.growth_ms.is_some_and(|growth| growth <= GROWTH_MAX_MS)
            || self.ratio_interval.is_some_and(|interval| interval.low < RATIO_MAX);
        let was_read = self.page.requests > 0 && self.page.events > 0 && self.page.not_answered == 0;
        is_small && was_read && self.identical
    }

    /// The figures as a table.
    pub fn table(&self) -> String {
        let row = |(number, pair): (usize, &PagePair)| {
            let ratio = pair.with_p50_ms / pair.without_p50_ms;
            let [without, with] =
                [pair.without_p50_ms, pair.with_p50_ms].map(|millis| format!("{millis:.3}"));
            vec![(number + 1).to_string(), without, with, format!("{ratio:.3}")]
        };
        let rows = self.pairs.iter().enumerate().map(row).collect();
        let columns = ["p50 without readers, ms", "with readers, ms", "ratio"];
        let shown = |value: Option<f64>| value.map_or_else(dash, |value| format!("{value:.3}"));
        let interval = self
            .ratio_interval
            .map_or_else(String::new, |interval| format!(" ({:.3} to {:.3})", interval.low, interval.high));
        let PageFigures { requests, not_answered, events } = self.page;
        format!(
            "{}\n\n{}\n\nmedian of the differences {} ms, of the ratios {}{interval}; {} streams read {events} events, \
             {requests} requests were answered, {not_answered} were not\n{}\n",
            self.machine.line(),
            table(&["pair"], &columns, rows),
            shown(self.growth_ms),
            shown(self.ratio),
            self.streams,
            if self.succeeded() { "kept" } else { "NOT KEPT" },
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(pairs: &[(f64, f64)], not_answered: u64) -> PageReport {
        let pair = |(without_p50_ms, with_p50_ms): &(f64, f64)| PagePair {
            without_p50_ms: *without_p50_ms,
            with_p50_ms: *with_p50_ms,
        };
        let page = PageFigures { requests: 10, not_answered, events: 5 };
        PageReport::new(9, pairs.iter().map(pair).collect(), page, true)
    }

    #[test]
    fn a_page_is_judged_by_its_growth_or_its_ratio() {
        let same = report(&[(1.0, 1.0), (1.2, 1.25), (1.1, 1.05)], 0);
        assert!(same.succeeded() && same.growth_ms == Some(0.0), "{}", same.table());
        let slow = report(&[(1.0, 1.5), (1.2, 1.9), (1.1, 1.7)], 0);
        assert!(!slow.succeeded() && slow.table().contains("NOT KEPT"), "{}", slow.table());
    }

    #[test]
    fn a_page_that_did_not_answer_proves_nothing() {
        assert!(!report(&[(1.0, 1.0)], 1).succeeded());
        assert!(!PageReport::new(9, Vec::new(), PageFigures::default(), true).succeeded());
    }
}
