//! The text of a phase: `45% 18/40 tasks, 2 running, 512.0 MiB, 820.0 MiB/s, 1 s left`.

use std::time::Duration;

use napreduce_protocol::PhaseProgress;

/// Minimum time for a meaningful rate.
const RATE_AFTER: Duration = Duration::from_millis(100);

/// Returns the text of a phase after `elapsed`. Omits the least important parts if it exceeds `columns`.
pub(super) fn phase_text(phase: &PhaseProgress, elapsed: Duration, columns: usize) -> String {
    let PhaseProgress { tasks, done, running, suspended, checkpointed, bytes_done, .. } = phase;
    let has_rate = *bytes_done > 0 && elapsed >= RATE_AFTER;
    // Each part has a rank; the highest rank is omitted first.
    let mut parts =
        vec![(0, format!("{:>3}% {done}/{tasks} tasks", phase.percent())), (3, format!("{running} running"))];
    parts.extend((*suspended > 0).then(|| (2, format!("{suspended} suspended"))));
    parts.extend((*checkpointed > 0).then(|| (2, format!("{checkpointed} checkpointed"))));
    parts.extend((*bytes_done > 0).then(|| (5, bytes_text(*bytes_done))));
    parts.extend(has_rate.then(|| (4, format!("{}/s", bytes_text(bytes_per_second(*bytes_done, elapsed))))));
    parts.extend(time_left(phase, elapsed).map(|left| (1, format!("{} left", time_text(left)))));
    loop {
        let text = parts.iter().map(|(_, part)| part.as_str()).collect::<Vec<_>>().join(", ");
        let least = (1..parts.len()).max_by_key(|at| parts[*at].0);
        match least.filter(|_| text.len() > columns) {
            Some(least) => drop(parts.remove(least)),
            None => return text,
        }
    }
}

fn bytes_per_second(bytes: u64, elapsed: Duration) -> u64 {
    let micros = elapsed.as_micros().max(1);
    u64::try_from(u128::from(bytes) * 1_000_000 / micros).unwrap_or(u64::MAX)
}

/// Estimates the remaining time from the average rate; `None` if the rate or the total is unknown.
fn time_left(phase: &PhaseProgress, elapsed: Duration) -> Option<Duration> {
    let left = phase.bytes_total.checked_sub(phase.bytes_done).filter(|_| !phase.is_done())?;
    if phase.bytes_done == 0 || elapsed < RATE_AFTER {
        return None;
    }
    let micros = elapsed.as_micros() * u128::from(left) / u128::from(phase.bytes_done);
    Some(Duration::from_micros(u64::try_from(micros).unwrap_or(u64::MAX)))
}

/// Formats bytes in the largest binary unit in which the value is at least 1.
fn bytes_text(bytes: u64) -> String {
    const UNITS: [&str; 6] = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
    let mut unit = 0;
    let mut value = bytes as f64;
    while value >= 1024.0 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    if unit == 0 { format!("{bytes} B") } else { format!("{value:.1} {}", UNITS[unit]) }
}

/// Formats a time in seconds, minutes and seconds, or hours and minutes.
fn time_text(time: Duration) -> String {
    let seconds = time.as_secs() + u64::from(time.subsec_millis() >= 500);
    match seconds {
        0..60 => format!("{seconds} s"),
        60..3600 => format!("{} min {} s", seconds / 60, seconds % 60),
        _ => format!("{} h {} min", seconds / 3600, seconds / 60 % 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn phase_is_shown_on_one_line() {
        let phase = PhaseProgress {
            tasks: 40,
            done: 18,
            running: 2,
            bytes_done: 512 << 20,
            bytes_total: 1024 << 20,
            ..PhaseProgress::default()
        };
        assert_eq!(
            phase_text(&phase, Duration::from_secs(2), 73),
            " 50% 18/40 tasks, 2 running, 512.0 MiB, 256.0 MiB/s, 2 s left"
        );
    }

    #[test]
    fn progress_without_bytes_counts_tasks() {
        let phase = PhaseProgress { tasks: 4, done: 1, ..PhaseProgress::default() };
        assert_eq!(phase_text(&phase, Duration::from_secs(2), 73), " 25% 1/4 tasks, 0 running");
    }

    #[test]
    fn long_line_leaves_out_bytes_and_rates_first() {
        let phase = PhaseProgress {
            tasks: 100_000,
            done: 99_999,
            running: 4096,
            suspended: 4096,
            checkpointed: 4096,
            bytes_done: 1023 << 40,
            bytes_total: 1024 << 40,
        };
        let text = |columns| phase_text(&phase, Duration::from_secs(3_600_000), columns);
        let all = text(200);
        assert_eq!(
            all,
            " 99% 99999/100000 tasks, 4096 running, 4096 suspended, 4096 checkpointed, 1023.0 TiB, 298.0 MiB/s, \
             58 min 39 s left"
        );
        assert_eq!(
            text(90),
            " 99% 99999/100000 tasks, 4096 running, 4096 suspended, 4096 checkpointed, 58 min 39 s left"
        );
        assert_eq!(text(60), " 99% 99999/100000 tasks, 4096 suspended, 58 min 39 s left");
        for columns in 40..130 {
            assert!(text(columns).len() <= columns, "{}", text(columns));
        }
    }

    #[test]
    fn phase_with_all_bytes_read_is_not_complete() {
        let mut phase =
            PhaseProgress { tasks: 2, done: 1, bytes_done: 10, bytes_total: 10, ..PhaseProgress::default() };
        assert_eq!(phase.percent(), 99);
        phase.done = 2;
        assert_eq!(phase.percent(), 100);
    }

    #[test]
    fn sizes_and_times_are_readable() {
        assert_eq!(bytes_text(1023), "1023 B");
        assert_eq!(bytes_text(1536), "1.5 KiB");
        assert_eq!(bytes_text(u64::MAX), "16384.0 PiB");
        assert_eq!(time_text(Duration::from_millis(1600)), "2 s");
        assert_eq!(time_text(Duration::from_secs(61)), "1 min 1 s");
        assert_eq!(time_text(Duration::from_secs(7260)), "2 h 1 min");
    }
}
