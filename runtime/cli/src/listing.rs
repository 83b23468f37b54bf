//! The flags that all lists have: which states to show, in which order, and how many rows.

use std::cmp::Ordering;
use std::str::FromStr;

use clap::Args;
use napreduce_protocol::printing::print_error;

pub type Compare<T> = fn(&T, &T) -> Ordering;

/// An item of a list.
pub trait Listed: Clone + Send + Sync + 'static {
    /// The name of an item: `job`.
    const KIND: &'static str;
    const STATES: &'static [&'static str];
    /// The columns by which it can be sorted.
    const SORTED: &'static [(&'static str, Compare<Self>)];
    /// Maximum rows without `--limit`.
    const LIMIT: Option<u32> = None;

    fn is_in(&self, state: &str) -> bool;
}

#[derive(Debug, Clone, Args)]
pub struct ListingArguments<T: Listed> {
    #[arg(long, value_name = "STATE,...", value_delimiter = ',', value_parser = state::<T>, help = states_help::<T>())]
    state: Vec<String>,

    #[arg(
        long,
        value_name = "[-]COLUMN,...",
        value_delimiter = ',',
        allow_hyphen_values = true,
        help = sort_help::<T>()
    )]
    sort: Vec<SortKey<T>>,

    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..), help = limit_help::<T>())]
    limit: Option<u32>,
}

/// A sort column and its direction.
#[derive(Debug, Clone)]
struct SortKey<T> {
    compare: Compare<T>,
    is_downwards: bool,
}

impl<T: Listed> FromStr for SortKey<T> {
    type Err = String;

    fn from_str(text: &str) -> Result<SortKey<T>, String> {
        let (is_downwards, name) = text
            .strip_prefix('-')
            .map_or((false, text), |name| (true, name));
        match T::SORTED.iter().find(|(column, _)| *column == name) {
            Some((_, compare)) => Ok(SortKey {
                compare: *compare,
                is_downwards,
            }),
            None => Err(format!(
                "unknown column {name:?}; expected one of {}",
                sort_columns::<T>()
            )),
        }
    }
}

impl<T: Listed> ListingArguments<T> {
    pub fn names_states(&self) -> bool {
        !self.state.is_empty()
    }

    /// Keeps the items to show, in their order. Returns how many there would be without the limit.
    pub fn select(&self, items: &mut Vec<T>) -> usize {
        items.retain(|item| {
            self.state.is_empty() || self.state.iter().any(|state| item.is_in(state))
        });
        items.sort_by(|one, other| {
            let orders = self.sort.iter().map(|key| {
                let order = (key.compare)(one, other);
                if key.is_downwards {
                    order.reverse()
                } else {
                    order
                }
            });
            orders.fold(Ordering::Equal, Ordering::then)
        });
        let total = items.len();
        let limit = self
            .limit
            .or(T::LIMIT)
            .and_then(|limit| usize::try_from(limit).ok());
        items.truncate(limit.unwrap_or(usize::MAX));
        total
    }
}

/// Prints how many items of a list that was cut are shown.
pub fn print_total<T: Listed>(shown: usize, total: usize) {
    if shown < total {
        print_error(format_args!(
            "nap: {shown} of {total} {}s are shown; raise --limit, or filter with --state",
            T::KIND
        ));
    }
}

fn state<T: Listed>(word: &str) -> Result<String, String> {
    if T::STATES.contains(&word) {
        return Ok(word.to_owned());
    }
    Err(format!(
        "unknown {} state {word:?}; expected one of {}",
        T::KIND,
        T::STATES.join(", ")
    ))
}

fn sort_columns<T: Listed>() -> String {
    T::SORTED
        .iter()
        .map(|(column, _)| *column)
        .collect::<Vec<_>>()
        .join(", ")
}

fn states_help<T: Listed>() -> String {
    format!("States to show: {} [default: all]", T::STATES.join(", "))
}

fn sort_help<T: Listed>() -> String {
    format!(
        "Sort columns: {}; -COLUMN for descending order",
        sort_columns::<T>()
    )
}

fn limit_help<T: Listed>() -> String {
    let default = T::LIMIT.map_or_else(|| "unlimited".to_owned(), |limit| limit.to_string());
    format!("Maximum number of {}s [default: {default}]", T::KIND)
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    /// A number whose state is its parity.
    impl Listed for u8 {
        const KIND: &'static str = "number";
        const STATES: &'static [&'static str] = &["even", "odd"];
        const SORTED: &'static [(&'static str, Compare<u8>)] = &[
            ("tens", |one, other| (one / 10).cmp(&(other / 10))),
            ("ones", |one, other| (one % 10).cmp(&(other % 10))),
        ];
        const LIMIT: Option<u32> = Some(4);

        fn is_in(&self, state: &str) -> bool {
            self.is_multiple_of(2) == (state == "even")
        }
    }

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        listing: ListingArguments<u8>,
    }

    fn select(line: &[&str]) -> (Vec<u8>, usize) {
        let line = Line::try_parse_from([&["list"], line].concat())
            .unwrap_or_else(|error| panic!("{error}"));
        let mut numbers = vec![13, 22, 11, 24, 12];
        let total = line.listing.select(&mut numbers);
        (numbers, total)
    }

    #[test]
    fn list_is_filtered_sorted_and_then_cut() {
        assert_eq!(select(&[]), (vec![13, 22, 11, 24], 5));
        assert_eq!(select(&["--limit", "9"]), (vec![13, 22, 11, 24, 12], 5));
        assert_eq!(select(&["--state", "even"]), (vec![22, 24, 12], 3));
        assert_eq!(
            select(&["--state", "even,odd", "--sort", "ones", "--limit", "2"]),
            (vec![11, 22], 5)
        );
        assert_eq!(select(&["--sort", "-tens,ones"]), (vec![22, 24, 11, 12], 5));
        assert_eq!(select(&["--sort", "tens"]), (vec![13, 11, 12, 22], 5));
    }

    #[test]
    fn unknown_words_are_refused_with_the_known_ones() {
        for (line, error) in [
            (
                ["--state", "even,prime"],
                "unknown number state \"prime\"; expected one of even, odd",
            ),
            (
                ["--sort", "-size"],
                "unknown column \"size\"; expected one of tens, ones",
            ),
            (["--limit", "0"], "0 is not in 1.."),
        ] {
            let refused = Line::try_parse_from([&["list"], &line[..]].concat())
                .err()
                .expect("a refusal");
            assert!(refused.to_string().contains(error), "{refused}");
        }
    }
}
