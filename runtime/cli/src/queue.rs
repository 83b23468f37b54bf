//! `nap queue`: the queues of a cluster's scheduler.

use anyhow::Result;
use clap::{Args, Subcommand};
use napreduce_answers::QueueAnswer;
use napreduce_protocol::requests::ListQueues;
use napreduce_protocol::{QueueListing, QueueSlots, QueueSummary, printing::print_error};

use crate::cluster::ClusterArguments;
use crate::format::{Format, FormatArguments, or_dash};
use crate::listing::{Compare, Listed, ListingArguments, print_total};
use crate::screen::{Column, Fit, Screen};

/// List the queues of the scheduler
#[derive(Debug, Clone, Args)]
#[command(after_help = "\
Examples:
  nap queue list
  nap queue list --format json   an empty array if the scheduler has no queues")]
pub struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Clone, Subcommand)]
enum Command {
    /// List weights, guarantees, slots and jobs of each queue
    List {
        #[command(flatten)]
        listing: ListingArguments<QueueSummary>,

        #[command(flatten)]
        format: FormatArguments,
    },
}

pub fn run(arguments: &Arguments, cluster: &ClusterArguments) -> Result<()> {
    let Command::List { listing, format } = &arguments.command;
    let QueueListing {
        scheduler, queues, ..
    } = cluster.connect()?.ask(ListQueues)?;
    let Some(mut queues) = queues else {
        print_error(format_args!(
            "nap: the scheduler {scheduler} has no queues; those with queues are fair, capacity, natjam and hfsp (with weights)"
        ));
        return match format.format {
            Format::Table => Ok(()),
            Format::Json => format.print(|_| String::new(), Vec::<QueueAnswer>::new),
        };
    };
    let total = listing.select(&mut queues);
    format.print(
        |screen| text(&queues, screen),
        || queues.iter().map(QueueAnswer::from).collect::<Vec<_>>(),
    )?;
    print_total::<QueueSummary>(queues.len(), total);
    Ok(())
}

/// Its states are those of its jobs.
impl Listed for QueueSummary {
    const KIND: &'static str = "queue";
    const STATES: &'static [&'static str] = &["waiting", "running", "idle"];
    const SORTED: &'static [(&'static str, Compare<QueueSummary>)] = &[
        ("queue", |one, other| one.name.cmp(&other.name)),
        ("used", |one, other| {
            slots(one, |slots| slots.used).cmp(&slots(other, |slots| slots.used))
        }),
        ("wanted", |one, other| {
            slots(one, |slots| slots.wanted).cmp(&slots(other, |slots| slots.wanted))
        }),
        ("running", |one, other| one.running.cmp(&other.running)),
        ("waiting", |one, other| one.waiting.cmp(&other.waiting)),
    ];

    fn is_in(&self, state: &str) -> bool {
        match state {
            "waiting" => self.waiting > 0,
            "running" => self.running > 0,
            _ => self.waiting + self.running == 0,
        }
    }
}

/// Sums slots of both kinds.
fn slots(queue: &QueueSummary, of: fn(&QueueSlots) -> u64) -> u64 {
    of(&queue.map) + of(&queue.reduce)
}

fn text(queues: &[QueueSummary], screen: &Screen) -> String {
    format!("slots: maps+reduces\n{}", table(queues, screen))
}

/// Formats a table without empty columns.
pub fn table(queues: &[QueueSummary], screen: &Screen) -> String {
    let has = |column: fn(&QueueSummary) -> bool| queues.iter().any(column);
    let has_weights = has(|queue| queue.weight_permille.is_some());
    let has_guarantees = has(|queue| {
        both(queue)
            .iter()
            .any(|slots| slots.guaranteed_permille.is_some())
    });
    let has_maximums = has(|queue| both(queue).iter().any(|slots| slots.maximum.is_some()));
    let has_remarks = has(|queue| queue.remark.is_some());
    let columns: [Column<QueueSummary>; 9] = [
        Column::new("QUEUE", Fit::Whole, |queue, _| queue.name.clone()),
        Column::new("WEIGHT", Fit::Drop(2), |queue: &QueueSummary, _| {
            or_dash(queue.weight_permille.map(thousandths))
        })
        .only_if(has_weights),
        Column::new("GUARANTEED", Fit::Whole, |queue: &QueueSummary, _| {
            pair(queue, |slots| {
                or_dash(slots.guaranteed_permille.map(thousandths))
            })
        })
        .only_if(has_guarantees),
        Column::new("MAXIMUM", Fit::Drop(1), |queue: &QueueSummary, _| {
            pair(queue, |slots| {
                or_dash(slots.maximum.map(|slots| slots.to_string()))
            })
        })
        .only_if(has_maximums),
        Column::new("USED", Fit::Whole, |queue, _| {
            pair(queue, |slots| slots.used.to_string())
        }),
        Column::new("WANTED", Fit::Whole, |queue, _| {
            pair(queue, |slots| slots.wanted.to_string())
        }),
        Column::new("RUNNING", Fit::Whole, |queue, _| queue.running.to_string()),
        Column::new("WAITING", Fit::Whole, |queue, _| queue.waiting.to_string()),
        Column::new("REMARK", Fit::Below, |queue: &QueueSummary, _| {
            queue.remark.clone().unwrap_or_default()
        })
        .only_if(has_remarks),
    ];
    screen.list(&columns, queues)
}

fn both(queue: &QueueSummary) -> [QueueSlots; 2] {
    [queue.map, queue.reduce]
}

/// Formats something of the slots of both kinds.
fn pair(queue: &QueueSummary, of: fn(&QueueSlots) -> String) -> String {
    format!("{}+{}", of(&queue.map), of(&queue.reduce))
}

/// Formats thousandths as a decimal without trailing zeros.
fn thousandths(number: u64) -> String {
    let text = format!("{}.{:03}", number / 1_000, number % 1_000);
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn queue(name: &str, guaranteed: Option<u64>, remark: Option<&str>) -> QueueSummary {
        let slots = QueueSlots {
            guaranteed_permille: guaranteed,
            maximum: None,
            used: 3,
            wanted: 1,
        };
        QueueSummary {
            name: name.to_owned(),
            parent: None,
            weight_permille: None,
            map: slots,
            reduce: slots,
            running: 1,
            waiting: 2,
            remark: remark.map(str::to_owned),
        }
    }

    #[test]
    fn queue_list_omits_empty_columns() {
        assert_eq!(
            text(
                &[queue("etl", Some(2_500), None), queue("adhoc", None, None)],
                &Screen::plain()
            ),
            "slots: maps+reduces\n\
             QUEUE  GUARANTEED  USED  WANTED  RUNNING  WAITING\n\
             etl    2.5+2.5     3+3   1+1     1        2\n\
             adhoc  -+-         3+3   1+1     1        2\n"
        );
        let natjam = text(
            &[queue("production", None, Some("goes first"))],
            &Screen::plain(),
        );
        assert!(
            natjam.contains("REMARK\nproduction  3+3   1+1     1        2        goes first\n"),
            "{natjam}"
        );
    }

    #[test]
    fn thousandths_omit_trailing_zeros() {
        for (number, expected) in [
            (0, "0"),
            (1_000, "1"),
            (2_500, "2.5"),
            (333, "0.333"),
            (10_000, "10"),
        ] {
            assert_eq!(thousandths(number), expected);
        }
    }
}
