//! The terminal: its width, colours and time zone, and the tables that fit it.

use std::env;
use std::io::{self, IsTerminal};

use jiff::Timestamp;
use jiff::tz::TimeZone;
use napreduce_protocol::one_line;
use unicode_width::UnicodeWidthStr;

/// Columns between cells, and before a sentence below its row.
const GAP: usize = 2;
/// Columns to which names are cut before a column is left out, and after none can be.
const NAME_COLUMNS: usize = 10;
const NAME_COLUMNS_MIN: usize = 5;

/// The treatment of a column if the table is wider than the terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fit {
    /// It stays: IDs and states.
    Whole,
    /// It is cut: names.
    Cut,
    /// It is left out; columns of higher numbers go first.
    Drop(u8),
    /// It moves below its row: sentences.
    Below,
}

/// A column of a table of `T`s.
pub struct Column<T> {
    heading: &'static str,
    fit: Fit,
    is_shown: bool,
    cell: fn(&T, &Screen) -> String,
}

impl<T> Column<T> {
    pub const fn new(
        heading: &'static str,
        fit: Fit,
        cell: fn(&T, &Screen) -> String,
    ) -> Column<T> {
        Column {
            heading,
            fit,
            is_shown: true,
            cell,
        }
    }

    /// Shows the column only under this condition.
    pub fn only_if(self, is_shown: bool) -> Column<T> {
        Column { is_shown, ..self }
    }
}

/// The width, colours and time zone of the output.
#[derive(Debug, Clone)]
pub struct Screen {
    /// `None` for files and other programs, for which nothing is cut or left out.
    columns: Option<usize>,
    /// Whether sentences are cut instead of moved below their rows.
    has_rows_only: bool,
    colours: bool,
    zone: TimeZone,
}

impl Screen {
    /// Returns the properties of standard output, with the local time zone or UTC. `COLUMNS` overrides its width;
    /// `NO_COLOR` disables colours.
    pub fn of_stdout(utc: bool) -> Screen {
        let variable = |name| env::var(name).ok().filter(|value| !value.is_empty());
        let is_terminal = io::stdout().is_terminal();
        let named = variable("COLUMNS").and_then(|columns| columns.parse().ok());
        let size = rustix::termios::tcgetwinsize(io::stdout())
            .ok()
            .filter(|_| is_terminal);
        let columns = named.or(size.map(|size| usize::from(size.ws_col)));
        let dumb = variable("TERM").is_none_or(|terminal| terminal == "dumb");
        Screen {
            columns: columns.filter(|columns| *columns > 0),
            has_rows_only: false,
            colours: is_terminal && !dumb && variable("NO_COLOR").is_none(),
            zone: if utc {
                TimeZone::UTC
            } else {
                TimeZone::system()
            },
        }
    }

    /// Returns a screen of unlimited width, without colours, in UTC.
    pub fn plain() -> Screen {
        Screen {
            columns: None,
            has_rows_only: false,
            colours: false,
            zone: TimeZone::UTC,
        }
    }

    /// Returns a screen without colours on which every item of a list is one row.
    pub fn of_rows(columns: usize) -> Screen {
        Screen {
            columns: Some(columns),
            has_rows_only: true,
            zone: TimeZone::system(),
            ..Screen::plain()
        }
    }

    /// Returns a plain screen of limited width.
    #[cfg(test)]
    pub fn of(columns: usize) -> Screen {
        Screen {
            columns: Some(columns),
            ..Screen::plain()
        }
    }

    /// Returns whether a line of this width fits.
    pub fn fits(&self, width: usize) -> bool {
        self.columns.is_none_or(|columns| width <= columns)
    }

    /// Formats a time in the time zone; with `Z` in UTC.
    pub fn moment(&self, millis: u64) -> String {
        match stamp(millis) {
            None => "?".to_owned(),
            Some(stamp) if self.zone == TimeZone::UTC => format!("{stamp:.0}"),
            Some(stamp) => stamp
                .to_zoned(self.zone.clone())
                .strftime("%Y-%m-%d %H:%M:%S")
                .to_string(),
        }
    }

    /// Formats a time without seconds.
    pub fn minute(&self, millis: u64) -> String {
        let form = if self.zone == TimeZone::UTC {
            "%Y-%m-%dT%H:%MZ"
        } else {
            "%Y-%m-%d %H:%M"
        };
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
        self.moment(millis)
            .chars()
            .skip("2026-09-21 ".len())
            .collect()
    }

    /// Formats a row per item, as wide as the terminal at most.
    pub fn list<T>(&self, columns: &[Column<T>], items: &[T]) -> String {
        let shown = |column: &Column<T>| {
            let cells = items.iter().map(|item| (column.cell)(item, self)).collect();
            ShownColumn::new(column.heading, column.fit, cells)
        };
        self.draw(
            columns
                .iter()
                .filter(|column| column.is_shown)
                .map(shown)
                .collect(),
            items.len(),
        )
    }

    /// Formats a table whose columns all stay whole.
    pub fn table(&self, headings: &[&str], rows: impl IntoIterator<Item = Vec<String>>) -> String {
        let rows: Vec<Vec<String>> = rows.into_iter().collect();
        let shown = |(at, heading)| {
            let cells = rows
                .iter()
                .map(|row| row.get(at).cloned().unwrap_or_default())
                .collect();
            ShownColumn::new(heading, Fit::Whole, cells)
        };
        self.draw(
            headings.iter().copied().enumerate().map(shown).collect(),
            rows.len(),
        )
    }

    fn draw(&self, mut columns: Vec<ShownColumn>, rows: usize) -> String {
        let below = self
            .columns
            .map_or_else(Vec::new, |wide| fit(&mut columns, wide, self.has_rows_only));
        let mut text = String::new();
        for row in std::iter::once(None).chain((0..rows).map(Some)) {
            let line: String = columns
                .iter()
                .map(|column| column.padded(row, self.colours))
                .collect();
            text.push_str(&format!("{}\n", line.trim_end()));
            let sentences = below.iter().filter_map(|column| column.cells.get(row?));
            for line in sentences.flat_map(|sentence| wrapped(sentence, self.columns)) {
                text.push_str(&format!("{:GAP$}{line}\n", ""));
            }
        }
        text
    }
}

fn stamp(millis: u64) -> Option<Timestamp> {
    i64::try_from(millis)
        .ok()
        .and_then(|millis| Timestamp::from_millisecond(millis).ok())
}

/// A column with its cells, whose control characters are escaped.
struct ShownColumn<'a> {
    heading: &'a str,
    fit: Fit,
    cells: Vec<String>,
    width: usize,
}

impl<'a> ShownColumn<'a> {
    fn new(heading: &'a str, fit: Fit, cells: Vec<String>) -> ShownColumn<'a> {
        let cells: Vec<String> = cells
            .iter()
            .map(|cell| one_line(cell, usize::MAX))
            .collect();
        let width = cells
            .iter()
            .map(|cell| cell.width())
            .chain([heading.width()])
            .max()
            .unwrap_or(0);
        ShownColumn {
            heading,
            fit,
            cells,
            width,
        }
    }

    /// Returns the width if names are cut to `name` columns, and sentences to twice as many.
    fn least(&self, name: usize) -> usize {
        match self.fit {
            Fit::Cut => self.width.min(name.max(self.heading.len())),
            Fit::Below => self.width.min(2 * name),
            Fit::Whole | Fit::Drop(_) => self.width,
        }
    }

    /// Returns the heading or the cell of a row, as wide as the column and the gap after it.
    fn padded(&self, row: Option<usize>, has_colours: bool) -> String {
        let text = row.map_or(self.heading, |row| &self.cells[row]);
        let text = one_line(text, self.width);
        let gap = " ".repeat((self.width + GAP).saturating_sub(text.width()));
        match colour(&text).filter(|_| has_colours && row.is_some() && self.heading == "STATE") {
            Some(colour) => format!("\u{1b}[{colour}m{text}\u{1b}[0m{gap}"),
            None => text + &gap,
        }
    }
}

/// Makes the columns fit the width: moves sentences below their rows, leaves out columns, then cuts names, the
/// widest first. Returns the columns of sentences.
fn fit<'a>(
    columns: &mut Vec<ShownColumn<'a>>,
    wide: usize,
    has_rows_only: bool,
) -> Vec<ShownColumn<'a>> {
    let total = |columns: &[ShownColumn], of: fn(&ShownColumn) -> usize| {
        columns.iter().map(of).sum::<usize>() + GAP * columns.len().saturating_sub(1)
    };
    let mut below = Vec::new();
    if total(columns, |column| column.width) > wide && !has_rows_only {
        below.extend(columns.extract_if(.., |column| column.fit == Fit::Below));
    }
    while total(columns, |column| column.least(NAME_COLUMNS)) > wide {
        let rank = |column: &ShownColumn| match column.fit {
            Fit::Drop(rank) => Some(rank),
            _ => None,
        };
        let Some(first) = columns.iter().filter_map(rank).max() else {
            break;
        };
        columns.retain(|column| rank(column) != Some(first));
    }
    while total(columns, |column| column.width) > wide {
        let can_shrink = columns
            .iter_mut()
            .filter(|column| column.width > column.least(NAME_COLUMNS_MIN));
        let Some(widest) = can_shrink.max_by_key(|column| column.width) else {
            break;
        };
        widest.width -= 1;
    }
    below
}

/// Breaks a sentence at spaces into lines that fit below a row.
fn wrapped(sentence: &str, columns: Option<usize>) -> Vec<String> {
    let wide = columns.unwrap_or(usize::MAX).saturating_sub(GAP);
    let mut lines: Vec<String> = Vec::new();
    for word in sentence.split_whitespace() {
        match lines
            .last_mut()
            .filter(|line| line.width() + 1 + word.width() <= wide)
        {
            Some(line) => *line += &format!(" {word}"),
            None => lines.push(word.to_owned()),
        }
    }
    lines
}

/// Returns the colour of a state, as a number of ANSI; ignores remarks after a comma.
pub fn colour(state: &str) -> Option<u8> {
    match state.split([',', ' ']).next().unwrap_or_default() {
        "succeeded" => Some(32),
        "failed" | "lost" => Some(31),
        "killed" | "excluded" | "held" | "suspended" | "checkpointed" | "draining" | "leaving"
        | "stopping" => Some(33),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Row = [&'static str; 6];

    const COLUMNS: [Column<Row>; 6] = [
        Column::new("JOB", Fit::Whole, |row, _| row[0].to_owned()),
        Column::new("NAME", Fit::Cut, |row, _| row[1].to_owned()),
        Column::new("STATE", Fit::Whole, |row, _| row[2].to_owned()),
        Column::new("SUBMITTED", Fit::Drop(2), |row, _| row[3].to_owned()),
        Column::new("TOOK", Fit::Drop(1), |row, _| row[4].to_owned()),
        Column::new("WHY", Fit::Below, |row, _| row[5].to_owned()),
    ];
    const WHY: &str =
        "it waits for a slot that job_0009 holds until a job of higher priority arrives";
    const ROWS: [Row; 2] = [
        [
            "job_0007",
            "a-name-that-is-rather-too-long",
            "suspended",
            "2026-09-21 14:13",
            "12 min 34 s",
            WHY,
        ],
        [
            "job_0008",
            "short",
            "failed",
            "2026-09-21 14:14",
            "2.0 s",
            "",
        ],
    ];

    fn row(cells: &[&str]) -> Vec<String> {
        cells.iter().map(|cell| (*cell).to_owned()).collect()
    }

    #[test]
    fn column_is_as_wide_as_its_longest_cell() {
        let rows = [row(&["a", "b c"]), row(&["long", ""]), row(&["日本", "d"])];
        assert_eq!(
            Screen::plain().table(&["X", "Y"], rows),
            "X     Y\na     b c\nlong\n日本  d\n"
        );
    }

    #[test]
    fn cells_are_escaped() {
        let rows =
            ["a\nfake_0001  row", "\u{1b}[2Jgone", "\u{202e}back"].map(|text| row(&[text, "b"]));
        let text = Screen::plain().table(&["X", "Y"], rows);
        assert_eq!(text.lines().count(), 4, "{text}");
        assert!(
            !text.contains(['\u{1b}', '\u{202e}']) && text.contains("a\\nfake_0001  row"),
            "{text}"
        );
    }

    #[test]
    fn nothing_is_cut_without_a_terminal() {
        let long: &'static str = "a-long-name".repeat(30).leak();
        let text = Screen::plain().list(
            &COLUMNS,
            &[["job_0007", long, "failed", "today", "2.0 s", WHY]],
        );
        assert_eq!(text.lines().count(), 2);
        assert!(
            text.contains(long) && text.ends_with(&format!("failed  today      2.0 s  {WHY}\n")),
            "{text}"
        );
    }

    #[test]
    fn narrow_table_moves_sentences_then_drops_columns_then_cuts_names() {
        let whole = Screen::of(170).list(&COLUMNS, &ROWS);
        assert!(whole.contains(&format!("12 min 34 s  {WHY}")), "{whole}");
        assert_eq!(
            Screen::of(80).list(&COLUMNS, &ROWS),
            "JOB       NAME                          STATE      SUBMITTED         TOOK\n\
             job_0007  a-name-that-is-rather-too-l…  suspended  2026-09-21 14:13  12 min 34 s\n\
             \x20 it waits for a slot that job_0009 holds until a job of higher priority arrives\n\
             job_0008  short                         failed     2026-09-21 14:14  2.0 s\n"
        );
        assert_eq!(
            Screen::of(50).list(&COLUMNS, &ROWS),
            "JOB       NAME              STATE      TOOK\n\
             job_0007  a-name-that-is-…  suspended  12 min 34 s\n\
             \x20 it waits for a slot that job_0009 holds until a\n\
             \x20 job of higher priority arrives\n\
             job_0008  short             failed     2.0 s\n"
        );
        let narrowest = Screen::of(10).list(&COLUMNS, &ROWS);
        assert!(
            narrowest.starts_with("JOB       NAME   STATE\njob_0007  a-na…  suspended\n"),
            "{narrowest}"
        );
    }

    #[test]
    fn states_are_coloured_on_terminals_only() {
        let coloured = Screen {
            colours: true,
            ..Screen::plain()
        }
        .list(&COLUMNS, &ROWS);
        assert!(
            coloured.contains("  \u{1b}[31mfailed\u{1b}[0m     2026"),
            "{coloured:?}"
        );
        assert!(!Screen::plain().list(&COLUMNS, &ROWS).contains('\u{1b}'));
        let running = [["job_0007", "name", "running", "", "", ""]];
        let text = Screen {
            colours: true,
            ..Screen::plain()
        }
        .list(&COLUMNS, &running);
        assert!(
            !text.contains('\u{1b}'),
            "a state that needs no attention has no colour: {text:?}"
        );
    }

    #[test]
    fn times_are_in_the_time_zone_of_the_screen() {
        assert_eq!(
            Screen::plain().moment(1_790_000_000_123),
            "2026-09-21T14:13:20Z"
        );
        assert_eq!(Screen::plain().moment(u64::MAX), "?");
        assert_eq!(
            Screen::plain().minute(1_790_000_000_123),
            "2026-09-21T14:13Z"
        );
        let zone = TimeZone::posix("CET-1CEST,M3.5.0,M10.5.0/3").expect("a zone");
        let here = Screen {
            zone,
            ..Screen::plain()
        };
        assert_eq!(here.moment(1_790_000_000_123), "2026-09-21 16:13:20");
        assert_eq!(here.minute(1_790_000_000_123), "2026-09-21 16:13");
        assert_eq!(here.clock(1_790_000_000_123, 1_790_000_001_000), "16:13:20");
        assert_eq!(
            here.clock(1_790_000_000_123, 1_790_090_000_000),
            "2026-09-21 16:13"
        );
        assert_eq!(
            Screen::plain().clock(1_790_000_000_123, 1_790_000_001_000),
            "14:13:20Z"
        );
    }
}
