//! `nap preemption`: who took whose slots, and what it cost; of a running cluster or of a history.

use std::path::PathBuf;

use anyhow::{Result, ensure};
use clap::builder::PossibleValuesParser;
use clap::{Args, Subcommand, ValueEnum};
use jiff::Timestamp;
use jiff::tz::TimeZone;
use napreduce_answers::{
    ENDS, FlowAnswer, GroupAnswer, LatencyAnswer, LedgerFilter, PreemptionAnswer, PreemptionTotals,
};
use napreduce_engine::Primitive;
use napreduce_history::HistoryFolder;
use napreduce_protocol::printing::print_error;
use napreduce_web::clock::now_millis;
use napreduce_web::{ClusterSource, FlowEnds, HistorySource, LedgerWindow, PageSource, Window};
use serde::Serialize;

use crate::cluster::ClusterArguments;
use crate::failure::usage;
use crate::format::{FormatArguments, or_dash, span};
use crate::moments::WrittenMoment;
use crate::screen::{Column, Fit, Screen};

/// List preemptions: who took whose slots, why, and what it cost
#[derive(Debug, Clone, Args)]
#[command(after_help = "\
Examples:
  nap preemption list                       today's, in groups, newest first
  nap preemption list --since 2h --queue nightly
  nap preemption list --each --primitive kill
  nap preemption flows                      from which queue to which
  nap preemption flows --between job --since 2h
  nap preemption totals                     slot time saved and lost today
  nap preemption totals --since 7d --format json
  nap preemption list --history /srv/nap    of a stopped cluster")]
pub struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Clone, Subcommand)]
enum Command {
    /// List preemptions, newest first; those of the same jobs and reason within a second are one row
    List {
        /// A row for each request
        #[arg(long)]
        each: bool,

        /// Maximum number of rows
        #[arg(long, value_name = "N", default_value = "20", value_parser = clap::value_parser!(u32).range(1..))]
        limit: u32,

        #[command(flatten)]
        choice: Choice,
    },
    /// Print how many slots went from whom to whom, those with most first
    Flows {
        /// The ends of a flow
        #[arg(long, value_name = "ENDS", default_value = "queue")]
        between: Ends,

        #[command(flatten)]
        choice: Choice,
    },
    /// Print counts, latencies, and the work saved and lost
    Totals {
        #[command(flatten)]
        choice: Choice,
    },
}

/// The ends of a flow of slots.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Ends {
    /// Queues
    Queue,
    /// Jobs
    Job,
}

/// The preemptions that are meant.
#[derive(Debug, Clone, Args)]
struct Choice {
    /// Earliest request: 2026-11-23, 2026-11-23T10:30, or 2h for two hours ago [default: midnight]
    #[arg(long, value_name = "TIME")]
    since: Option<WrittenMoment>,

    /// Time before which slots were requested [default: now]
    #[arg(long, value_name = "TIME")]
    until: Option<WrittenMoment>,

    /// Queue of the job that lost or got the slot [default: all]
    #[arg(long, value_name = "QUEUE")]
    queue: Option<String>,

    /// Name of a scheduler, operator or engine [default: all]
    #[arg(long, value_name = "NAME")]
    by: Option<String>,

    /// Primitives [default: all]
    #[arg(long, value_name = "PRIMITIVE,...", value_delimiter = ',', hide_possible_values = true,
        value_parser = PossibleValuesParser::new(Primitive::WORDS))]
    primitive: Vec<String>,

    /// Outcomes: suspended, checkpointed, killed, finished, ended, withdrawn, open [default: all]
    #[arg(long, value_name = "END,...", value_delimiter = ',', hide_possible_values = true,
        value_parser = PossibleValuesParser::new(ENDS))]
    end: Vec<String>,

    /// Read ended jobs without a cluster: its directory, the folder `coordinator`, or a copy of its history
    #[arg(long, value_name = "PATH")]
    history: Option<PathBuf>,

    #[command(flatten)]
    format: FormatArguments,
}

pub fn run(arguments: &Arguments, cluster: &ClusterArguments) -> Result<()> {
    match &arguments.command {
        Command::List {
            each,
            limit,
            choice,
        } => list(choice.read(cluster)?, choice.format, *each, *limit),
        Command::Flows { between, choice } => {
            flows(&choice.read(cluster)?, choice.format, *between)
        }
        Command::Totals { choice } => {
            let totals = choice.read(cluster)?.totals();
            choice
                .format
                .print(|screen| totals_text(&totals, screen), || &totals)?;
            remark(&totals.remarks);
            Ok(())
        }
    }
}

impl Choice {
    fn read(&self, cluster: &ClusterArguments) -> Result<LedgerWindow> {
        let zone = if self.format.utc {
            TimeZone::UTC
        } else {
            TimeZone::system()
        };
        let window = self.window(Timestamp::now(), &zone).map_err(usage)?;
        let filter = LedgerFilter {
            by: self.by.clone(),
            primitives: self.primitive.clone(),
            ends: self.end.clone(),
            queue: self.queue.clone(),
            ..LedgerFilter::default()
        };
        Ok(LedgerWindow::read(&*self.source(cluster)?, window, filter)?)
    }

    fn source(&self, cluster: &ClusterArguments) -> Result<Box<dyn PageSource>> {
        if let Some(path) = &self.history {
            HistoryFolder::open(path).map_err(usage)?;
            return Ok(Box::new(HistorySource::open(path)?));
        }
        // Waits for the coordinator, and reports why it does not answer.
        drop(cluster.connect()?);
        Ok(Box::new(ClusterSource::new(cluster.place()?)))
    }

    /// Returns the window; by default since midnight, or all of a history.
    fn window(&self, now: Timestamp, zone: &TimeZone) -> Result<Window> {
        let midnight = match &self.history {
            Some(_) => Timestamp::UNIX_EPOCH,
            None => now.to_zoned(zone.clone()).start_of_day()?.timestamp(),
        };
        let millis = |moment: Option<WrittenMoment>, default: Timestamp| {
            moment
                .unwrap_or(WrittenMoment::At(default))
                .millis(now, zone)
        };
        let window = Window {
            from: millis(self.since, midnight)?,
            until: millis(self.until, now)?,
        };
        ensure!(
            window.from <= window.until,
            "--since must be before --until"
        );
        Ok(window)
    }
}

fn list(ledger: LedgerWindow, format: FormatArguments, each: bool, limit: u32) -> Result<()> {
    let limit = limit as usize;
    let total = if each {
        let rows = ledger.rows();
        let shown: Vec<&PreemptionAnswer> =
            rows.iter().take(limit).map(|row| &row.answer).collect();
        format.print(
            |screen| entries_text(&shown, now_millis(), screen),
            || &shown,
        )?;
        rows.len()
    } else {
        let mut groups = ledger.groups();
        let total = groups.len();
        groups.truncate(limit);
        format.print(
            |screen| groups_text(&groups, now_millis(), screen),
            || &groups,
        )?;
        total
    };
    remark(&ledger.remarks);
    if total > limit {
        let more = total - limit;
        print_error(format_args!(
            "nap: {more} more not shown; raise --limit, or filter with --since, --queue"
        ));
    }
    Ok(())
}

/// A flow, with names for its ends.
#[derive(Debug, Clone, PartialEq, Serialize)]
struct NamedFlow {
    #[serde(flatten)]
    flow: FlowAnswer,
    /// The names of the jobs; `null` for queues, and for jobs that are no longer known.
    from_name: Option<String>,
    to_name: Option<String>,
}

fn flows(ledger: &LedgerWindow, format: FormatArguments, between: Ends) -> Result<()> {
    let ends = match between {
        Ends::Queue => FlowEnds::Queues,
        Ends::Job => FlowEnds::Jobs,
    };
    let name = |end: &str| {
        end.parse()
            .ok()
            .and_then(|job| ledger.name_of(job))
            .map(str::to_owned)
    };
    let named = |flow: FlowAnswer| NamedFlow {
        from_name: name(&flow.from).filter(|_| between == Ends::Job),
        to_name: flow
            .to
            .as_deref()
            .and_then(name)
            .filter(|_| between == Ends::Job),
        flow,
    };
    let mut flows: Vec<NamedFlow> = ledger.flows(ends).into_iter().map(named).collect();
    flows.sort_by_key(|named| std::cmp::Reverse(named.flow.count));
    format.print(|screen| flows_text(&flows, screen), || &flows)?;
    remark(&ledger.remarks);
    Ok(())
}

fn flows_text(flows: &[NamedFlow], screen: &Screen) -> String {
    if flows.is_empty() {
        return "no slot was taken\n".to_owned();
    }
    let has_names = flows
        .iter()
        .any(|named| named.from_name.is_some() || named.to_name.is_some());
    let columns: [Column<NamedFlow>; 9] = [
        Column::new(
            "FROM",
            if has_names { Fit::Whole } else { Fit::Cut },
            |named, _| named.flow.from.clone(),
        ),
        Column::new("NAME", Fit::Cut, |named: &NamedFlow, _| {
            or_dash(named.from_name.clone())
        })
        .only_if(has_names),
        Column::new(
            "TO",
            if has_names { Fit::Whole } else { Fit::Cut },
            |named, _| or_dash(named.flow.to.clone()),
        ),
        Column::new("NAME", Fit::Cut, |named: &NamedFlow, _| {
            or_dash(named.to_name.clone())
        })
        .only_if(has_names),
        Column::new("HOW", Fit::Whole, |named, _| named.flow.primitive.clone()),
        Column::new("SLOTS", Fit::Whole, |named, _| named.flow.count.to_string()),
        Column::new("WITHOUT SLOT", Fit::Drop(1), |named, _| {
            span(named.flow.slot_millis)
        }),
        Column::new("SAVED", Fit::Drop(2), |named, _| {
            span(named.flow.work_saved_millis)
        }),
        Column::new("LOST", Fit::Drop(3), |named, _| {
            span(named.flow.work_lost_millis)
        }),
    ];
    screen.list(&columns, flows)
}

fn remark(remarks: &[String]) {
    for remark in remarks {
        print_error(format_args!("nap: {remark}"));
    }
}

fn groups_text(groups: &[GroupAnswer], now_millis: u64, screen: &Screen) -> String {
    type Row<'a> = (u64, &'a GroupAnswer);
    let columns: [Column<Row<'_>>; 9] = [
        Column::new("TIME", Fit::Whole, |(now, group), screen| {
            screen.clock(group.requested_micros / 1_000, *now)
        }),
        Column::new("SLOTS", Fit::Whole, |(_, group), _| group.count.to_string()),
        Column::new("FROM", Fit::Cut, |(_, group), _| {
            group
                .victim_name
                .clone()
                .unwrap_or_else(|| group.victim.clone())
        }),
        Column::new("TO", Fit::Cut, |(_, group), _| {
            or_dash(
                group
                    .beneficiary_name
                    .clone()
                    .or_else(|| group.beneficiary.clone()),
            )
        }),
        Column::new("HOW", Fit::Whole, |(_, group), _| outcome(group)),
        Column::new("FREE", Fit::Drop(1), |(_, group), _| {
            or_dash(group.free_micros.map(latency))
        }),
        Column::new("SAVED", Fit::Drop(2), |(_, group), _| {
            span(group.work_saved_millis)
        }),
        Column::new("LOST", Fit::Drop(3), |(_, group), _| {
            span(group.work_lost_millis)
        }),
        Column::new("WHY", Fit::Below, |(_, group), _| {
            format!("{}: {}", group.by, group.reason)
        }),
    ];
    let rows: Vec<Row<'_>> = groups.iter().map(|group| (now_millis, group)).collect();
    screen.list(&columns, &rows)
}

/// The end of all requests of a group, or the number of each: `suspended`, `4 killed, 1 open`.
fn outcome(group: &GroupAnswer) -> String {
    match group.ends.iter().collect::<Vec<_>>().as_slice() {
        [(end, _)] => (*end).clone(),
        several => several
            .iter()
            .map(|(end, count)| format!("{count} {end}"))
            .collect::<Vec<_>>()
            .join(", "),
    }
}

fn entries_text(entries: &[&PreemptionAnswer], now_millis: u64, screen: &Screen) -> String {
    type Row<'a> = (u64, &'a PreemptionAnswer);
    let columns: [Column<Row<'_>>; 8] = [
        Column::new("TIME", Fit::Whole, |(now, entry), screen| {
            screen.clock(entry.requested_micros / 1_000, *now)
        }),
        Column::new("FROM", Fit::Whole, |(_, entry), _| entry.attempt.clone()),
        Column::new("TO", Fit::Whole, |(_, entry), _| {
            or_dash(entry.beneficiary.clone())
        }),
        Column::new("HOW", Fit::Whole, |(_, entry), _| {
            entry.end.unwrap_or("open").to_owned()
        }),
        Column::new("FREE", Fit::Drop(1), |(_, entry), _| {
            let freed = entry
                .freed_micros
                .map(|freed| freed.saturating_sub(entry.requested_micros));
            or_dash(freed.map(latency))
        }),
        Column::new("SAVED", Fit::Drop(2), |(_, entry), _| {
            span(entry.work_saved_millis)
        }),
        Column::new("LOST", Fit::Drop(3), |(_, entry), _| {
            span(entry.work_lost_millis)
        }),
        Column::new("WHY", Fit::Below, |(_, entry), _| {
            format!("{}: {}", entry.by, entry.reason)
        }),
    ];
    let rows: Vec<Row<'_>> = entries.iter().map(|entry| (now_millis, *entry)).collect();
    screen.list(&columns, &rows)
}

fn totals_text(totals: &PreemptionTotals, screen: &Screen) -> String {
    let head = format!(
        "{} to {}: {} slots requested, {} taken; {} of work saved, {} lost, {} without a slot\n",
        screen.moment(totals.from_millis),
        screen.moment(totals.until_millis),
        totals.count,
        totals.taken,
        span(totals.work_saved_millis),
        span(totals.work_lost_millis),
        span(totals.slot_millis)
    );
    if totals.count == 0 {
        return head;
    }
    let percentile = |known: &LatencyAnswer| {
        [known.p50_micros, known.p95_micros, known.p99_micros]
            .map(|micros| or_dash(micros.map(latency)))
    };
    let primitive = totals.primitives.iter().map(|one| {
        let counts = [one.primitive.clone(), one.count.to_string()];
        let work = [one.work_saved_millis, one.work_lost_millis].map(span);
        let ends: Vec<String> = one
            .ends
            .iter()
            .map(|(end, count)| format!("{count} {end}"))
            .collect();
        counts
            .into_iter()
            .chain(percentile(&one.freeing))
            .chain(work)
            .chain([ends.join(", ")])
            .collect()
    });
    let headings = [
        "HOW", "SLOTS", "FREE p50", "p95", "p99", "SAVED", "LOST", "REMARK",
    ];
    let by_primitive = screen.table(&headings, primitive);
    let returns = [("resume", &totals.resuming), ("restore", &totals.restoring)];
    let returns = returns
        .into_iter()
        .filter(|(_, known)| known.count > 0)
        .map(|(name, known)| {
            [name.to_owned(), known.count.to_string()]
                .into_iter()
                .chain(percentile(known))
                .collect()
        });
    let returns = screen.table(&["RETURN", "COUNT", "p50", "p95", "p99"], returns);
    // Without returns there is only the line with the headings.
    let returns = if returns.lines().count() > 1 {
        format!("\n{returns}")
    } else {
        String::new()
    };
    format!("{head}\n{by_primitive}{returns}")
}

/// Formats a duration that is usually short.
fn latency(micros: u64) -> String {
    match micros {
        0..10_000 => format!("{:.1} ms", micros as f64 / 1e3),
        10_000..1_000_000 => format!("{} ms", micros / 1_000),
        _ => span(micros / 1_000),
    }
}

#[cfg(test)]
mod tests {
    use clap::FromArgMatches;
    use napreduce_answers::PrimitiveTotals;

    use super::*;

    fn group() -> GroupAnswer {
        GroupAnswer {
            group: "job_0007_m_0003.1@1790000000123000".to_owned(),
            requested_micros: 1_790_000_000_123_000,
            until_micros: 1_790_000_000_200_000,
            count: 6,
            taken: 6,
            victim: "job_0007".to_owned(),
            victim_name: Some("nightly index".to_owned()),
            victim_queue: "nightly".to_owned(),
            beneficiary: Some("job_0009".to_owned()),
            beneficiary_name: Some("hourly billing".to_owned()),
            beneficiary_queue: Some("hourly".to_owned()),
            primitive: "suspend".to_owned(),
            by: "fair".to_owned(),
            reason: "job_0009 starves: it holds 0 of 6 map slots, its share is 6".to_owned(),
            ends: [("suspended".to_owned(), 6)].into(),
            free_micros: Some(26_000),
            slot_millis: 9_000,
            work_saved_millis: 4_200,
            work_lost_millis: 0,
        }
    }

    #[test]
    fn group_is_a_row_of_80_columns_with_its_reason_below() {
        let other = GroupAnswer {
            beneficiary: None,
            beneficiary_name: None,
            ends: [("killed".to_owned(), 1), ("open".to_owned(), 1)].into(),
            free_micros: None,
            ..group()
        };
        let text = groups_text(&[group(), other], 1_790_000_001_000, &Screen::of(80));
        assert_eq!(
            text,
            "TIME       SLOTS  FROM         TO          HOW               FREE   SAVED  LOST\n\
             14:13:20Z  6      nightly in…  hourly bi…  suspended         26 ms  4.2 s  0.0 s\n  \
             fair: job_0009 starves: it holds 0 of 6 map slots, its share is 6\n\
             14:13:20Z  6      nightly in…  -           1 killed, 1 open  -      4.2 s  0.0 s\n  \
             fair: job_0009 starves: it holds 0 of 6 map slots, its share is 6\n"
        );
    }

    #[test]
    fn flows_have_names_only_between_jobs() {
        let flow = |from: &str, to: Option<&str>, count| FlowAnswer {
            from: from.to_owned(),
            to: to.map(str::to_owned),
            primitive: "suspend".to_owned(),
            count,
            slot_millis: 65_000,
            work_saved_millis: 4_200,
            work_lost_millis: 0,
        };
        let queues = [("research", Some("production"), 6), ("adhoc", None, 1)];
        let queues = queues.map(|(from, to, count)| NamedFlow {
            flow: flow(from, to, count),
            from_name: None,
            to_name: None,
        });
        assert_eq!(
            flows_text(&queues, &Screen::of(80)),
            "FROM      TO          HOW      SLOTS  WITHOUT SLOT  SAVED  LOST\n\
             research  production  suspend  6      1 min 5 s     4.2 s  0.0 s\n\
             adhoc     -           suspend  1      1 min 5 s     4.2 s  0.0 s\n"
        );
        let jobs = [NamedFlow {
            flow: flow("job_0007", Some("job_0009"), 6),
            from_name: Some("nightly index of the northern region".to_owned()),
            to_name: Some("hourly billing\u{1b}[2J".to_owned()),
        }];
        let text = flows_text(&jobs, &Screen::of(80));
        assert!(
            text.lines().all(|line| line.chars().count() <= 80) && !text.contains('\u{1b}'),
            "{text}"
        );
        assert!(
            text.starts_with("FROM      NAME         TO        NAME"),
            "{text}"
        );
        assert_eq!(flows_text(&[], &Screen::plain()), "no slot was taken\n");
    }

    #[test]
    fn totals_have_a_row_for_each_primitive() {
        let none = PreemptionTotals {
            until_millis: 1_790_000_000_000,
            ..PreemptionTotals::default()
        };
        let text = |totals| totals_text(&totals, &Screen::plain());
        assert_eq!(
            text(none.clone()),
            "1970-01-01T00:00:00Z to 2026-09-21T14:13:20Z: 0 slots requested, 0 taken; 0.0 s of work saved, \
             0.0 s lost, 0.0 s without a slot\n"
        );
        let quick = |count, micros| {
            let known = Some(micros);
            LatencyAnswer {
                count,
                p50_micros: known,
                p95_micros: known,
                p99_micros: known,
            }
        };
        let suspend = PrimitiveTotals {
            primitive: "suspend".to_owned(),
            count: 6,
            ends: [("open".to_owned(), 1), ("suspended".to_owned(), 5)].into(),
            work_saved_millis: 4_200,
            work_lost_millis: 0,
            freeing: quick(5, 26_000),
        };
        let some = PreemptionTotals {
            count: 6,
            primitives: vec![suspend],
            resuming: quick(4, 3_100),
            ..none
        };
        let tables = text(some)
            .split_once("\n\n")
            .expect("two parts")
            .1
            .to_owned();
        assert_eq!(
            tables,
            "HOW      SLOTS  FREE p50  p95    p99    SAVED  LOST   REMARK\n\
             suspend  6      26 ms     26 ms  26 ms  4.2 s  0.0 s  1 open, 5 suspended\n\
             \n\
             RETURN  COUNT  p50     p95     p99\n\
             resume  4      3.1 ms  3.1 ms  3.1 ms\n"
        );
    }

    #[test]
    fn window_begins_at_midnight_or_with_the_history() {
        let parse = |line: &[&str]| {
            let command = clap::Command::new("list");
            let matches = Choice::augment_args(command)
                .try_get_matches_from(line)
                .expect("it makes sense");
            Choice::from_arg_matches(&matches).expect("it is whole")
        };
        let now = Timestamp::from_second(1_790_000_000).expect("a time");
        let window = |line: &[&str]| parse(line).window(now, &TimeZone::UTC);
        let midnight = 1_789_948_800_000;
        let now = 1_790_000_000_000;
        for (line, from) in [
            (&["list"][..], midnight),
            (&["list", "--since", "2h"], now - 7_200_000),
            (&["list", "--history", "/srv/nap"], 0),
        ] {
            assert_eq!(
                window(line).expect("a window"),
                Window { from, until: now },
                "{line:?}"
            );
        }
        let error = window(&["list", "--until", "3d"]).expect_err("it ends before it begins");
        assert_eq!(error.to_string(), "--since must be before --until");
    }
}
