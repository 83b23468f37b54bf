//! The terminal: table width, colours and time zone.

use std::env;
use std::io::{self, IsTerminal};

use comfy_table::{Cell, Color, ContentArrangement, Table, presets};
use jiff::Timestamp;
use jiff::tz::TimeZone;
use napreduce_protocol::one_line;

/// Maximum columns of a cell, and of the last cell of a row, which contains sentences.
const CELL_COLUMNS_MAX: usize = 48;
const LAST_CELL_COLUMNS_MAX: usize = 200;
/// Columns between cells.
const GAP: usize = 2;
/// Minimum columns of a cut cell, and of a table.
const CELL_COLUMNS_MIN: usize = 5;
const TABLE_COLUMNS_MIN: usize = 80;
/// Columns with sentences, which move below their rows if the table is too wide.
const SENTENCES: [&str; 3] = ["WHY", "WHY IT WAITS", "REMARK"];
/// Columns that may be cut; others that do not fit move below their rows.
const NAMES: [&str; 7] = ["NAME", "USER", "QUEUE", "HOST", "RACK", "FROM", "TO"];

/// The width, colours and time zone of the output.
#[derive(Debug, Clone)]
pub struct Screen {
    /// `None` for files and other programs: nothing is cut.
    columns: Option<usize>,
    colours: bool,
    zone: TimeZone,
}

impl Screen {
    /// Returns the properties of standard output, with the local time zone or UTC. `COLUMNS` overrides its width;
    /// `NO_COLOR` disables colours.
    pub fn of_stdout(utc: bool) -> Screen {
        let variable = |name| env::var(name).ok().filter(|value| !value.is_empty());
        let is_terminal = io::stdout().is_terminal();
        let columns = variable("COLUMNS").and_then(|columns| columns.parse().ok());
        let wide = || Table::new().width().filter(|_| is_terminal).map(usize::from);
        let dumb = variable("TERM").is_none_or(|terminal| terminal == "dumb");
        Screen {
            columns: columns.filter(|columns| *columns > 0).or_else(wide),
            colours: is_terminal && !dumb && variable("NO_COLOR").is_none(),
            zone: if utc { TimeZone::UTC } else { TimeZone::system() },
        }
    }

    /// Returns a screen of unlimited width, without colours, in UTC.
    pub fn plain() -> Screen {
        Screen { columns: None, colours: false, zone: TimeZone::UTC }
    }

    #[cfg(test)]
    pub fn of_columns(columns: usize) -> Screen {
        Screen { columns: Some(columns), ..Screen::plain() }
    }

    /// Formats a time in the time zone; with `Z` in UTC.
    pub fn moment(&self, millis: u64) -> String {
        match stamp(millis) {
            None => "?".to_owned(),
            Some(stamp) if self.zone == TimeZone::UTC => format!("{stamp:.0}"),
            Some(stamp) => stamp.to_zoned(self.zone.clone()).strftime("%Y-%m-%d %H:%M:%S").to_string(),
        }
    }

    /// Formats a time without seconds.
    pub fn minute(&self, millis: u64) -> String {
        let form = if self.zone == TimeZone::UTC { "%Y-%m-%dT%H:%MZ" } else { "%Y-%m-%d %H:%M" };
        let zoned = stamp(millis).map(|stamp| stamp.to_zoned(self.zone.clone()));
        zoned.map_or_else(|| "?".to_owned(), |zoned| zoned.strftime(form).to_string())
    }

    /// Formats a time of the day of `now_millis` without the date, another one without seconds.
    pub fn clock(&self, millis: u64, now_millis: u64) -> String {
        let day = |millis| stamp(millis).map(|stamp| stamp.to_zoned(self.zone.clone()).date());
        if day(millis) != day(now_millis) {
            return self.minute(millis);
        }
        // `2026-09-21T14:13:20Z` or `2026-09-21 14:13:20`
        self.moment(millis).chars().skip("2026-09-21 ".len()).collect()
    }

    /// Formats a table that fits the width. Long names are cut, except in the first column; columns that do not
    /// fit move below their rows.
    pub fn table(&self, headings: &[&str], rows: impl IntoIterator<Item = Vec<String>>) -> String {
        let mut headings = headings.to_vec();
        let mut rows: Vec<Vec<String>> = rows.into_iter().map(shown).collect();
        let mut sentences: Vec<Option<String>> = Vec::new();
        let mut taken_off = Vec::new();
        if let Some(wide) = self.columns.map(|columns| columns.max(TABLE_COLUMNS_MIN)) {
            let all = headings.len() - 1;
            if total(&widths(&headings, &rows)) > wide && SENTENCES.contains(&headings[all]) {
                headings.pop();
                sentences = rows.iter_mut().map(|row| row.split_off(all.min(row.len())).pop()).collect();
            }
            taken_off = fit(&mut headings, &mut rows, wide);
        }
        let at = headings.iter().position(|heading| *heading == "STATE").filter(|_| self.colours);
        let lines = drawn(&headings, &rows, at);
        let mut text = String::new();
        for (number, line) in lines.lines().enumerate() {
            text.push_str(&format!("{}\n", line.trim_end()));
            let Some(row) = number.checked_sub(1) else { continue };
            let sentence = sentences.get(row).and_then(Option::as_ref);
            for below in taken_off.get(row).into_iter().chain(sentence).filter(|below| !below.is_empty()) {
                text.push_str(&format!("  {below}\n"));
            }
        }
        text
    }
}

fn stamp(millis: u64) -> Option<Timestamp> {
    i64::try_from(millis).ok().and_then(|millis| Timestamp::from_millisecond(millis).ok())
}

/// Escapes and cuts the cells of a row.
fn shown(row: Vec<String>) -> Vec<String> {
    let last = row.len().saturating_sub(1);
    let most = |at| if at == last { LAST_CELL_COLUMNS_MAX } else { CELL_COLUMNS_MAX };
    row.into_iter().enumerate().map(|(at, cell)| one_line(&cell, most(at))).collect()
}

fn laid_out(headings: &[&str], rows: impl IntoIterator<Item = Vec<Cell>>) -> Table {
    let mut table = Table::new();
    table.load_preset(presets::NOTHING).set_content_arrangement(ContentArrangement::Disabled);
    table.set_header(headings.iter().copied());
    for row in rows {
        table.add_row(row);
    }
    for column in table.column_iter_mut() {
        column.set_padding((0, GAP as u16));
    }
    table
}

fn widths(headings: &[&str], rows: &[Vec<String>]) -> Vec<usize> {
    let table = laid_out(headings, rows.iter().map(|row| row.iter().map(Cell::new).collect()));
    table.column_max_content_widths().into_iter().map(usize::from).collect()
}

fn total(widths: &[usize]) -> usize {
    widths.iter().sum::<usize>() + GAP * widths.len().saturating_sub(1)
}

/// Cuts names and removes the last columns until the table fits. Returns the removed cells of each row as text,
/// with their headings.
fn fit(headings: &mut Vec<&str>, rows: &mut [Vec<String>], wide: usize) -> Vec<String> {
    let full = widths(headings, rows);
    let is_name = |at: usize| at > 0 && NAMES.contains(&headings[at]);
    let least = |at: usize| {
        if is_name(at) { full[at].min(headings[at].len().max(CELL_COLUMNS_MIN)) } else { full[at] }
    };
    let fits = |count: usize| total(&(0..count).map(least).collect::<Vec<_>>()) <= wide;
    let kept = (1..=full.len()).rev().find(|count| fits(*count)).unwrap_or(1);
    let mut widths = full[..kept].to_vec();
    while total(&widths) > wide {
        let can_shrink = (0..kept).filter(|at| widths[*at] > least(*at));
        let Some(widest) = can_shrink.max_by_key(|at| widths[*at]) else { break };
        widths[widest] -= 1;
    }
    let below = headings.split_off(kept);
    let mut texts = Vec::new();
    for row in rows {
        for (at, cell) in row.iter_mut().enumerate().take(kept).skip(1) {
            *cell = one_line(cell, widths[at]);
        }
        let cells = row.split_off(kept.min(row.len()));
        let filled = below.iter().zip(cells).filter(|(_, cell)| !cell.is_empty() && cell != "-");
        texts.push(filled.map(|(heading, cell)| format!("{heading} {cell}")).collect::<Vec<_>>().join("  "));
    }
    texts
}

/// The table as text; the cells of a column of states have the colour of what they say.
fn drawn(headings: &[&str], rows: &[Vec<String>], states: Option<usize>) -> String {
    let cell = |(at, text): (usize, &String)| match colour(text).filter(|_| states == Some(at)) {
        Some(colour) => Cell::new(text).fg(colour),
        None => Cell::new(text),
    };
    let mut table = laid_out(headings, rows.iter().map(|row| row.iter().enumerate().map(cell).collect()));
    table.style_text_only();
    match states {
        Some(_) => table.enforce_styling(),
        None => table.force_no_tty(),
    };
    table.to_string()
}

/// Returns the colour of a state; ignores remarks after a comma.
fn colour(state: &str) -> Option<Color> {
    match state.split([',', ' ']).next().unwrap_or_default() {
        "succeeded" | "done" => Some(Color::Green),
        "failed" | "lost" => Some(Color::Red),
        "killed" | "excluded" | "held" | "suspended" | "checkpointed" | "draining" | "leaving"
        | "stopping" => Some(Color::Yellow),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(cells: &[&str]) -> Vec<String> {
        cells.iter().map(|cell| (*cell).to_owned()).collect()
    }

    #[test]
    fn column_is_as_wide_as_its_longest_cell() {
        let rows = [row(&["a", "b c"]), row(&["long", ""])];
        assert_eq!(Screen::plain().table(&["X", "Y"], rows), "X     Y\na     b c\nlong\n");
    }

    #[test]
    fn cell_is_escaped_and_cut() {
        let rows = ["a\nfake_0001  row", "\u{1b}[2Jgone", "\u{202e}back", &"wide ".repeat(1_000)];
        let rows = rows.map(|text| row(&[text, "b"]));
        let text = Screen::plain().table(&["X", "Y"], rows);
        assert_eq!(text.lines().count(), 5, "{text}");
        assert!(!text.contains(['\u{1b}', '\u{202e}']) && text.contains("a\\nfake_0001  row"), "{text}");
        assert!(text.lines().all(|line| line.chars().count() <= CELL_COLUMNS_MAX + 3), "{text}");
        assert!(text.contains('…'), "{text}");
        let last = Screen::plain().table(&["X"], [row(&[&"日".repeat(5_000)])]);
        assert!(last.lines().all(|line| line.chars().count() <= LAST_CELL_COLUMNS_MAX / 2), "{last}");
    }

    #[test]
    fn wide_table_is_cut_except_for_first_column() {
        let long = "a-name-that-goes-on-and-on-for-long";
        let wide = ["job_0007", long, long, "succeeded", "2026-09-21 14:13"];
        let headings = ["JOB", "NAME", "USER", "STATE", "SUBMITTED"];
        let text = Screen::of_columns(80).table(&headings, [row(&wide)]);
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
        assert!(text.contains("job_0007") && text.contains("succeeded") && text.contains("14:13"), "{text}");
        assert!(text.matches('…').count() == 2, "{text}");
        assert_eq!(Screen::of_columns(40).table(&headings, [row(&wide)]), text, "80 is the least");
        assert!(
            Screen::of_columns(200).table(&headings, [row(&wide)]).contains(long),
            "there is room for it"
        );
    }

    #[test]
    fn sentences_move_below_rows_of_wide_table() {
        let why = "it waits for a slot that job_0009 holds until a job of higher priority arrives";
        let headings = ["JOB", "STATE", "WHY"];
        let rows = [row(&["job_0007", "active", why]), row(&["job_0008", "active", ""])];
        let wide = Screen::plain().table(&headings, rows.clone());
        assert_eq!(wide.lines().count(), 3);
        let below = Screen::of_columns(80).table(&headings, rows);
        let lines: Vec<&str> = below.lines().collect();
        assert_eq!(lines[..2], ["JOB       STATE", "job_0007  active"]);
        assert_eq!(lines[2], format!("  {why}"));
        assert_eq!(lines[3], "job_0008  active");
    }

    #[test]
    fn columns_move_below_rows_of_wide_table() {
        let headings = ["JOB", "NAME", "QUEUE", "STATE", "SUBMITTED", "TOOK"];
        let (state, time) = ("succeeded, after quite a long while", "2026-09-21T14:13Z");
        let rows = [row(&["job_0007", "wordcount", "nightly", state, time, "12 min 34 s"])];
        assert_eq!(
            Screen::of_columns(80).table(&headings, rows.clone()),
            "JOB       NAME    QUEUE   STATE                                SUBMITTED\n\
             job_0007  wordc…  night…  succeeded, after quite a long while  2026-09-21T14:13Z\n  TOOK 12 min 34 s\n"
        );
        assert_eq!(Screen::of_columns(120).table(&headings, rows).lines().count(), 2);
    }

    #[test]
    fn states_are_coloured_on_terminals_only() {
        let rows = [row(&["job_0007", "failed", "x"]), row(&["job_0008", "active", "x"])];
        let coloured = Screen { colours: true, ..Screen::plain() };
        let text = coloured.table(&["JOB", "STATE", "Y"], rows.clone());
        assert!(text.contains('\u{1b}') && text.contains("failed"), "{text:?}");
        let plain = Screen::plain().table(&["JOB", "STATE", "Y"], rows);
        assert_eq!(plain, "JOB       STATE   Y\njob_0007  failed  x\njob_0008  active  x\n");
        let active = text.lines().nth(2).expect("the second job");
        assert_eq!(active, "job_0008  active  x", "and what is as it should be has none");
    }

    #[test]
    fn times_are_in_the_time_zone_of_the_screen() {
        assert_eq!(Screen::plain().moment(1_790_000_000_123), "2026-09-21T14:13:20Z");
        assert_eq!(Screen::plain().moment(u64::MAX), "?");
        assert_eq!(Screen::plain().minute(1_790_000_000_123), "2026-09-21T14:13Z");
        let zone = TimeZone::posix("CET-1CEST,M3.5.0,M10.5.0/3").expect("a zone");
        let here = Screen { zone, ..Screen::plain() };
        assert_eq!(here.moment(1_790_000_000_123), "2026-09-21 16:13:20");
        assert_eq!(here.minute(1_790_000_000_123), "2026-09-21 16:13");
        assert_eq!(here.clock(1_790_000_000_123, 1_790_000_001_000), "16:13:20");
        assert_eq!(here.clock(1_790_000_000_123, 1_790_090_000_000), "2026-09-21 16:13");
        assert_eq!(Screen::plain().clock(1_790_000_000_123, 1_790_000_001_000), "14:13:20Z");
    }
}
