//! Escapes untrusted text for terminals (control, bidirectional and invisible characters) and truncates long
//! lines.

use std::borrow::Cow;

use unicode_width::UnicodeWidthChar;

/// The most columns shown of a line.
const LINE_COLUMNS_MAX: usize = 2_000;
/// The most characters in the name of a job, queue or user.
pub const NAME_CHARS_MAX: usize = 200;

const BLACK_FLAG: char = '\u{1f3f4}';
/// The flags of England, Scotland and Wales, which Unicode recommends, behind a black flag: `gbeng`, `gbsct` and `gbwls` as
/// tags, and the tag that ends them.
const TAGS_OF_FLAGS: [&str; 3] = [
    "\u{e0067}\u{e0062}\u{e0065}\u{e006e}\u{e0067}\u{e007f}",
    "\u{e0067}\u{e0062}\u{e0073}\u{e0063}\u{e0074}\u{e007f}",
    "\u{e0067}\u{e0062}\u{e0077}\u{e006c}\u{e0073}\u{e007f}",
];

/// Returns text as one line of limited width: also escapes line ends and tabs, and ends a truncated line with
/// an ellipsis.
///
/// ```
/// use napreduce_protocol::one_line;
///
/// assert_eq!(one_line("a\u{1b}[2J\nb", 80), "a\\u{1b}[2J\\nb");
/// assert_eq!(one_line("a long name", 6), "a lon…");
/// ```
pub fn one_line(text: &str, columns_max: usize) -> String {
    let mut line = String::new();
    let mut columns = 0;
    let mut fits = 0;
    let mut before = None;
    let mut rest = text;
    while let Some(character) = rest.chars().next() {
        rest = &rest[character.len_utf8()..];
        let is_joined = joins(before, character, rest.chars().next());
        before = Some(character);
        if is_shown(character) || is_joined {
            line.push(character);
            columns += character.width().unwrap_or(0);
            let tags = flag_tags(character, rest);
            line.push_str(tags);
            rest = &rest[tags.len()..];
        } else {
            let escaped = character.escape_default();
            columns += escaped.len();
            line.extend(escaped);
        }
        if columns < columns_max {
            fits = line.len();
        } else if columns > columns_max {
            line.truncate(fits);
            line.push('…');
            break;
        }
    }
    line
}

/// Escapes text of several lines and keeps its line ends.
pub fn several_lines(text: &str) -> String {
    text.split('\n')
        .map(|line| one_line(line, LINE_COLUMNS_MAX))
        .collect::<Vec<_>>()
        .join("\n")
}

/// Checks a name; the error mentions `what` it names and the `flag` to change it.
pub fn check_name(what: &str, name: &str, flag: &str) -> Result<(), String> {
    let chars = name.chars().count();
    if chars > NAME_CHARS_MAX {
        return Err(format!(
            "the {what} {} has {chars} characters (limit {NAME_CHARS_MAX}); give a shorter one with {flag}",
            one_line(name, 40)
        ));
    }
    // Every character takes at most ten columns when it is escaped.
    if one_line(name, NAME_CHARS_MAX * 10 + 1) == name {
        return Ok(());
    }
    let shown = one_line(name, NAME_CHARS_MAX);
    Err(format!(
        "the {what} {shown} has unprintable characters; give another one with {flag}"
    ))
}

/// Whether the character joins or separates its neighbours, as in emoji and in Persian and Indic words. Between
/// other characters it would only hide in a name.
fn joins(before: Option<char>, character: char, after: Option<char>) -> bool {
    let is_letter = |neighbour: Option<char>| {
        neighbour.is_some_and(|neighbour| {
            !neighbour.is_ascii() && !neighbour.is_whitespace() && is_shown(neighbour)
        })
    };
    matches!(character, '\u{200c}' | '\u{200d}') && is_letter(before) && is_letter(after)
}

/// Returns the tags that make a flag of the black flag before them; empty if there are none. Elsewhere tags only hide in a
/// name.
fn flag_tags(flag: char, rest: &str) -> &str {
    if flag != BLACK_FLAG {
        return "";
    }
    for tags in TAGS_OF_FLAGS {
        if rest.starts_with(tags) {
            return &rest[..tags.len()];
        }
    }
    ""
}

/// Whether a terminal shows the character without side effects.
fn is_shown(character: char) -> bool {
    let turns_or_hides = matches!(
        character,
        '\u{ad}'
            | '\u{61c}'
            | '\u{180e}'
            | '\u{200b}'..='\u{200f}'
            | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}'
            | '\u{feff}'
            | '\u{fff9}'..='\u{fffb}'
            | '\u{e0000}'..='\u{e0fff}'
    );
    !character.is_control() && !turns_or_hides
}

/// First characters of formulas, also as full-width letters, and white space that a spreadsheet drops before them.
const FORMULA_STARTS: [char; 11] = [
    '=', '+', '-', '@', '\t', '\r', '\n', '\u{ff1d}', '\u{ff0b}', '\u{ff0d}', '\u{ff20}',
];

/// Returns a cell of a csv file that no spreadsheet takes for a formula: a text that begins like one gets an apostrophe
/// in front, numbers stay numbers.
///
/// ```
/// use napreduce_protocol::without_formula;
///
/// assert_eq!(without_formula("=1+1"), "'=1+1");
/// assert_eq!(without_formula("-1.5e-7"), "-1.5e-7");
/// assert_eq!(without_formula("a=b"), "a=b");
/// ```
pub fn without_formula(cell: &str) -> Cow<'_, str> {
    if cell.starts_with(FORMULA_STARTS) && !is_number(cell) {
        return Cow::Owned(format!("'{cell}"));
    }
    Cow::Borrowed(cell)
}

/// Whether a cell is a finite number, such as `-1.5` or `1e-7`.
fn is_number(cell: &str) -> bool {
    let has_digits_only = cell
        .bytes()
        .all(|byte| byte.is_ascii_digit() || matches!(byte, b'+' | b'-' | b'.' | b'e' | b'E'));
    has_digits_only && cell.parse::<f64>().is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_line_strips_control_characters() {
        for (text, shown) in [
            ("plain text, größer, 日本", "plain text, größer, 日本"),
            ("\u{1b}[31mred\u{7}", "\\u{1b}[31mred\\u{7}"),
            ("row\nrow\r\ttab", "row\\nrow\\r\\ttab"),
            ("\u{9b}2J\u{7f}", "\\u{9b}2J\\u{7f}"),
            ("abc\u{202e}cba\u{2066}", "abc\\u{202e}cba\\u{2066}"),
            ("a\u{200b}b\u{feff}", "a\\u{200b}b\\u{feff}"),
            ("a\u{200d}b", "a\\u{200d}b"),
            ("é\u{200d}\u{200d}é", "é\\u{200d}\\u{200d}é"),
            ("é\u{200c}", "é\\u{200c}"),
            (
                "👩\u{200d}💻, 🏳\u{fe0f}\u{200d}🌈",
                "👩\u{200d}💻, 🏳\u{fe0f}\u{200d}🌈",
            ),
            ("می\u{200c}خواهم, क्\u{200d}ष", "می\u{200c}خواهم, क्\u{200d}ष"),
            (
                "1\u{fe0f}\u{20e3}, #\u{fe0f}\u{20e3}",
                "1\u{fe0f}\u{20e3}, #\u{fe0f}\u{20e3}",
            ),
            ("1\u{200d}\u{fe0f}\u{20e3}", "1\\u{200d}\u{fe0f}\u{20e3}"),
            (
                "🏴\u{e0067}\u{e0062}\u{e0077}\u{e006c}\u{e0073}\u{e007f}!",
                "🏴\u{e0067}\u{e0062}\u{e0077}\u{e006c}\u{e0073}\u{e007f}!",
            ),
            ("🏴\u{e0067}\u{e0062}", "🏴\\u{e0067}\\u{e0062}"),
            ("a\u{e0061}\u{e007f}", "a\\u{e0061}\\u{e007f}"),
        ] {
            assert_eq!(one_line(text, 80), shown);
        }
        assert_eq!(
            several_lines("one\ntwo\u{1b}\nthree"),
            "one\ntwo\\u{1b}\nthree"
        );
    }

    #[test]
    fn one_line_truncates_by_columns_with_mark() {
        for (text, columns, shown) in [
            ("12345", 5, "12345"),
            ("123456", 5, "1234…"),
            ("日本語", 6, "日本語"),
            ("日本語x", 6, "日本…"),
            ("123\n", 4, "123…"),
            ("e\u{301}e\u{301}e", 3, "e\u{301}e\u{301}e"),
        ] {
            assert_eq!(one_line(text, columns), shown);
        }
        let endless = "x".repeat(1 << 20);
        assert_eq!(several_lines(&endless).chars().count(), LINE_COLUMNS_MAX);
    }

    #[test]
    fn check_name_rejects_unprintable_and_long_names() {
        assert_eq!(
            check_name("name", "Größen, 日本, می\u{200c}خواهم", "--name"),
            Ok(())
        );
        assert_eq!(
            check_name("name", "日".repeat(NAME_CHARS_MAX).as_str(), "--name"),
            Ok(())
        );
        assert_eq!(
            check_name("name", &"x".repeat(NAME_CHARS_MAX), "--name"),
            Ok(())
        );
        let error = check_name("name", &"x".repeat(5_000), "--name").expect_err("too long");
        assert!(
            error.contains("has 5000 characters (limit 200); give a shorter one with --name"),
            "{error}"
        );
        assert!(error.len() < 200, "{error}");
        let error = check_name("queue", "a\nb", "--queue").expect_err("two lines");
        assert_eq!(
            error,
            "the queue a\\nb has unprintable characters; give another one with --queue"
        );
    }
}
