//! Numbers, sizes and times for people.

use jiff::Timestamp;
use napreduce_protocol::ByteSize;

/// Formats a number: `1,234,567`.
pub fn grouped<T: TryInto<u64>>(number: T) -> String {
    let digits = number.try_into().unwrap_or(u64::MAX).to_string();
    let mut grouped = String::new();
    for (at, digit) in digits.char_indices() {
        if at > 0 && (digits.len() - at) % 3 == 0 {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

/// Formats milliseconds: `0.120 s`, `12.3 s`, `2 min 5 s`, `3 h 7 min`, `2 d 3 h`.
pub fn stretch(millis: u64) -> String {
    let seconds = millis / 1_000;
    match seconds {
        0 => format!("0.{millis:03} s"),
        1..10 => format!("{:.2} s", millis as f64 / 1_000.0),
        10..60 => format!("{:.1} s", millis as f64 / 1_000.0),
        60..3_600 => format!("{} min {} s", seconds / 60, seconds % 60),
        3_600..86_400 => format!("{} h {} min", seconds / 3_600, seconds % 3_600 / 60),
        _ => format!(
            "{} d {} h",
            grouped(seconds / 86_400),
            seconds % 86_400 / 3_600
        ),
    }
}

/// Formats a size; empty for 0.
pub fn bytes(bytes: u64) -> String {
    if bytes == 0 {
        String::new()
    } else {
        ByteSize::new(bytes).rounded()
    }
}

/// Formats milliseconds since 1970 in UTC: `2026-11-22 01:29:01.250`.
pub fn moment(millis: u64) -> String {
    let moment = i64::try_from(millis)
        .ok()
        .and_then(|millis| Timestamp::from_millisecond(millis).ok());
    moment.map_or_else(
        || "invalid time".to_owned(),
        |moment| moment.strftime("%F %T%.3f").to_string(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_grouped_by_three() {
        let cases = [
            (0, "0"),
            (999, "999"),
            (1_000, "1,000"),
            (1_234_567, "1,234,567"),
            (100_000, "100,000"),
        ];
        for (number, expected) in cases {
            assert_eq!(grouped(number), expected);
        }
        assert_eq!(grouped(u64::MAX), "18,446,744,073,709,551,615");
    }

    #[test]
    fn stretches_use_fitting_units() {
        for (millis, expected) in [
            (0, "0.000 s"),
            (120, "0.120 s"),
            (1_200, "1.20 s"),
            (12_340, "12.3 s"),
            (125_000, "2 min 5 s"),
            (11_220_000, "3 h 7 min"),
            (183_600_000, "2 d 3 h"),
        ] {
            assert_eq!(stretch(millis), expected);
        }
    }

    #[test]
    fn moments_are_in_utc() {
        assert_eq!(moment(0), "1970-01-01 00:00:00.000");
        assert_eq!(moment(1_790_000_000_250), "2026-09-21 14:13:20.250");
        assert_eq!(moment(u64::MAX), "invalid time");
    }
}
