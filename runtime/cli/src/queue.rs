//! `nap queue`: the queues of a cluster's scheduler.

use anyhow::Result;
use clap::{Args, Subcommand};
use napreduce_protocol::requests::ListQueues;
use napreduce_protocol::{QueueListing, QueueSlots, QueueSummary, printing::print_error};
use napreduce_web::answers::QueueAnswer;

use crate::cluster::ClusterArguments;
use crate::format::{Format, FormatArguments, or_dash};
use crate::screen::Screen;

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
        format: FormatArguments,
    },
}

pub fn run(arguments: &Arguments, cluster: &ClusterArguments) -> Result<()> {
    let Command::List { format } = &arguments.command;
    let QueueListing { scheduler, queues, .. } = cluster.connect()?.ask(ListQueues)?;
    let Some(queues) = queues else {
        print_error(format_args!(
            "nap: the scheduler {scheduler} has no queues; those with queues are fair, capacity, natjam and hfsp (with weights)"
        ));
        return match format.format {
            Format::Table => Ok(()),
            Format::Json => format.print(|_| String::new(), Vec::<QueueAnswer>::new),
        };
    };
    format.print(|screen| text(&queues, screen), || queues.iter().map(QueueAnswer::from).collect::<Vec<_>>())
}

/// Formats a table without empty columns.
fn text(queues: &[QueueSummary], screen: &Screen) -> String {
    let has = |column: fn(&QueueSummary) -> bool| queues.iter().any(column);
    let mut columns: Vec<QueueColumn> = vec![("QUEUE", |queue| queue.name.clone())];
    if has(|queue| queue.weight_permille.is_some()) {
        columns.push(("WEIGHT", |queue| or_dash(queue.weight_permille.map(thousandths))));
    }
    if has(|queue| both(queue).iter().any(|slots| slots.guaranteed_permille.is_some())) {
        columns.push(("GUARANTEED", |queue| {
            pair(both(queue).map(|slots| or_dash(slots.guaranteed_permille.map(thousandths))))
        }));
    }
    if has(|queue| both(queue).iter().any(|slots| slots.maximum.is_some())) {
        columns.push(("MAXIMUM", |queue| {
            pair(both(queue).map(|slots| or_dash(slots.maximum.map(|slots| slots.to_string()))))
        }));
    }
    columns.push(("USED", |queue| pair(both(queue).map(|slots| slots.used.to_string()))));
    columns.push(("WANTED", |queue| pair(both(queue).map(|slots| slots.wanted.to_string()))));
    columns.push(("RUNNING", |queue| queue.running.to_string()));
    columns.push(("WAITING", |queue| queue.waiting.to_string()));
    if has(|queue| queue.remark.is_some()) {
        columns.push(("REMARK", |queue| queue.remark.clone().unwrap_or_default()));
    }
    let headings: Vec<&str> = columns.iter().map(|(heading, _)| *heading).collect();
    let rows = queues.iter().map(|queue| columns.iter().map(|(_, cell)| cell(queue)).collect());
    format!("slots: maps+reduces\n{}", screen.table(&headings, rows))
}

/// A heading and its cell for a queue.
type QueueColumn = (&'static str, fn(&QueueSummary) -> String);

fn both(queue: &QueueSummary) -> [QueueSlots; 2] {
    [queue.map, queue.reduce]
}

fn pair([map, reduce]: [String; 2]) -> String {
    format!("{map}+{reduce}")
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
        let slots = QueueSlots { guaranteed_permille: guaranteed, maximum: None, used: 3, wanted: 1 };
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
            text(&[queue("etl", Some(2_500), None), queue("adhoc", None, None)], &Screen::plain()),
            "slots: maps+reduces\n\
             QUEUE  GUARANTEED  USED  WANTED  RUNNING  WAITING\n\
             etl    2.5+2.5     3+3   1+1     1        2\n\
             adhoc  -+-         3+3   1+1     1        2\n"
        );
        let natjam = text(&[queue("production", None, Some("goes first"))], &Screen::plain());
        assert!(
            natjam.contains("REMARK\nproduction  3+3   1+1     1        2        goes first\n"),
            "{natjam}"
        );
    }

    #[test]
    fn thousandths_omit_trailing_zeros() {
        for (number, expected) in [(0, "0"), (1_000, "1"), (2_500, "2.5"), (333, "0.333"), (10_000, "10")] {
            assert_eq!(thousandths(number), expected);
        }
    }
}
