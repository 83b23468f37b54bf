//! Detects hanging task processes: they send no messages, or report no progress.
//!
//! The caller passes elapsed time, so only time spent watching counts: not while this daemon was stopped or
//! the attempt suspended.

use std::time::Duration;

/// The limits for an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Limits {
    /// Maximum time without a message.
    pub(super) silence: Duration,
    /// Maximum time without progress; `None` for no limit.
    pub(super) standstill: Option<Duration>,
}

/// The reason for killing a hung attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Hang {
    Silent,
    /// No progress beyond these bytes; the total is 0 while unknown.
    Standing {
        bytes_done: u64,
        bytes_total: u64,
    },
}

/// The watch over one attempt.
#[derive(Debug)]
pub(super) struct HangWatch {
    limits: Limits,
    silent: Duration,
    standing: Duration,
    bytes_done: u64,
    bytes_total: u64,
    /// Counter of liveness reports without progress.
    signs: u64,
    waits: bool,
    said_hello: bool,
    /// Set while no time counts: from the stop until a grace period after the resume.
    paused: Option<Pause>,
}

impl HangWatch {
    pub(super) fn new(limits: Limits) -> HangWatch {
        HangWatch {
            limits,
            silent: Duration::ZERO,
            standing: Duration::ZERO,
            bytes_done: 0,
            bytes_total: 0,
            signs: 0,
            waits: false,
            said_hello: false,
            paused: None,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Pause {
    Stopped,
    Grace(Duration),
}

impl HangWatch {
    /// Returns the check interval.
    pub(super) fn interval(&self) -> Duration {
        let standstill = self.limits.standstill.unwrap_or(Duration::MAX);
        let shortest = self.limits.silence.min(standstill);
        (shortest / 8).clamp(Duration::from_millis(10), Duration::from_secs(1))
    }

    /// Records a message.
    pub(super) fn on_message(&mut self) {
        self.said_hello = true;
        self.silent = Duration::ZERO;
    }

    /// Records a progress report.
    pub(super) fn on_progress(&mut self, bytes_done: u64, bytes_total: u64, signs: u64) {
        let is_unchanged =
            bytes_done == self.bytes_done && bytes_total == self.bytes_total && signs == self.signs;
        if !is_unchanged {
            self.standing = Duration::ZERO;
        }
        self.bytes_done = bytes_done;
        self.bytes_total = bytes_total;
        self.signs = signs;
    }

    /// Sets whether it waits for a commit grant; that is not a hang.
    pub(super) fn set_waits(&mut self, waits: bool) {
        self.waits = waits;
    }

    /// Pauses the watch before a stop.
    pub(super) fn pause(&mut self) {
        self.paused = Some(Pause::Stopped);
    }

    /// Resumes the watch after `grace`, in which its memory may be paged in.
    pub(super) fn resume(&mut self, grace: Duration) {
        self.silent = Duration::ZERO;
        self.standing = Duration::ZERO;
        self.paused = Some(Pause::Grace(grace));
    }

    /// Returns the part of the elapsed time that counts.
    fn counted(&mut self, passed: Duration) -> Duration {
        match self.paused {
            None => passed,
            Some(Pause::Stopped) => Duration::ZERO,
            Some(Pause::Grace(left)) if left > passed => {
                self.paused = Some(Pause::Grace(left - passed));
                Duration::ZERO
            }
            Some(Pause::Grace(left)) => {
                self.paused = None;
                passed - left
            }
        }
    }

    /// Accounts elapsed time since the last check, in which all received messages were processed. Returns a
    /// hang.
    pub(super) fn on_tick(&mut self, passed: Duration) -> Option<Hang> {
        // The rest was not spent watching: the daemon was stopped or starved of CPU.
        let watched = passed.min(self.interval() * 2);
        let watched = self.counted(watched);
        self.silent += watched;
        if self.waits {
            self.standing = Duration::ZERO;
        } else {
            self.standing += watched;
        }
        if self.silent >= self.limits.silence {
            return Some(Hang::Silent);
        }
        let limit = self.limits.standstill?;
        if self.standing < limit {
            return None;
        }
        Some(Hang::Standing {
            bytes_done: self.bytes_done,
            bytes_total: self.bytes_total,
        })
    }

    /// Describes a hang for messages.
    pub(super) fn describe(&self, hang: Hang) -> String {
        match hang {
            Hang::Silent if !self.said_hello => format!(
                "the task process sent no Hello within {}; is the machine overloaded, or does the program do \
                 something before it calls its main function?",
                shown(self.limits.silence)
            ),
            Hang::Silent => format!(
                "the task process was silent for {}, stopped from outside or stuck; it was killed",
                shown(self.limits.silence)
            ),
            Hang::Standing {
                bytes_done,
                bytes_total,
            } => {
                let limit = shown(self.limits.standstill.unwrap_or_default());
                let of = if bytes_total > 0 {
                    format!(" of {bytes_total}")
                } else {
                    String::new()
                };
                format!(
                    "no progress for {limit}, at byte {bytes_done}{of} of its input; see its log, raise the job's task \
                     timeout if it may take that long, or call napreduce::progress() meanwhile"
                )
            }
        }
    }
}

fn shown(duration: Duration) -> String {
    if duration.subsec_nanos() == 0 {
        format!("{} s", duration.as_secs())
    } else {
        format!("{} ms", duration.as_millis())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn watch() -> HangWatch {
        let standstill = Some(Duration::from_secs(600));
        HangWatch::new(Limits {
            silence: Duration::from_secs(30),
            standstill,
        })
    }

    fn ticks_until_hang(watch: &mut HangWatch, max: u32) -> Option<(u32, Hang)> {
        (1..=max).find_map(|tick| Some((tick, watch.on_tick(SECOND)?)))
    }

    #[test]
    fn silent_attempt_is_a_hang() {
        let mut watch = watch();
        assert_eq!(ticks_until_hang(&mut watch, 29), None);
        assert_eq!(watch.on_tick(SECOND), Some(Hang::Silent));
        assert!(
            watch
                .describe(Hang::Silent)
                .starts_with("the task process sent no Hello within 30 s")
        );
        watch.on_message();
        assert_eq!(ticks_until_hang(&mut watch, 99), Some((30, Hang::Silent)));
        assert!(
            watch
                .describe(Hang::Silent)
                .starts_with("the task process was silent for 30 s")
        );
    }

    #[test]
    fn attempt_without_progress_hangs_after_timeout() {
        let mut watch = watch();
        let mut report = None;
        for second in 1..=700 {
            watch.on_message();
            watch.on_progress(5, 10, 0);
            if let Some(hang) = watch.on_tick(SECOND) {
                report = Some((second, watch.describe(hang)));
                break;
            }
        }
        let (second, text) = report.expect("it stands still");
        assert_eq!(second, 600);
        assert!(
            text.starts_with("no progress for 600 s, at byte 5 of 10 of its input; "),
            "{text}"
        );
    }

    #[test]
    fn progress_and_waiting_are_not_a_hang() {
        let mut watch = watch();
        for second in 0..5_000 {
            watch.on_message();
            watch.set_waits(second > 2_000);
            watch.on_progress(second.min(1_000), 0, second.min(2_000));
            assert_eq!(watch.on_tick(SECOND), None);
        }
        watch.set_waits(false);
        let mut seconds = 0;
        while watch.on_tick(SECOND).is_none() {
            watch.on_message();
            seconds += 1;
        }
        assert_eq!(seconds, 599);
    }

    #[test]
    fn unwatched_time_does_not_count() {
        let mut watch = watch();
        for _ in 0..10 {
            assert_eq!(watch.on_tick(Duration::from_secs(3_600)), None);
        }
    }

    #[test]
    fn suspended_attempt_does_not_hang() {
        let mut watch = watch();
        watch.on_message();
        assert_eq!(ticks_until_hang(&mut watch, 20), None);
        watch.pause();
        assert_eq!(ticks_until_hang(&mut watch, 10_000), None);
        watch.resume(Duration::from_millis(4_500));
        assert_eq!(ticks_until_hang(&mut watch, 99), Some((35, Hang::Silent)));
    }

    #[test]
    fn attempt_without_timeout_does_not_hang() {
        let mut watch = HangWatch::new(Limits {
            silence: Duration::from_secs(30),
            standstill: None,
        });
        for _ in 0..100_000 {
            watch.on_message();
            assert_eq!(watch.on_tick(SECOND), None);
        }
    }
}
