//! The description of the machine of an experiment, from `/proc`. A missing value never fails an experiment.

use std::sync::OnceLock;
use std::time::{SystemTime, UNIX_EPOCH};
use std::{fs, thread};

use napreduce_protocol::ByteSize;
use serde::Serialize;

/// The load per processor above which figures are doubtful.
const BUSY: f64 = 0.5;

#[derive(Clone, Debug, Serialize)]
pub struct Machine {
    /// Available to this process.
    pub cpus: usize,
    /// Processor model.
    pub model: Option<String>,
    pub memory_bytes: Option<ByteSize>,
    /// Operating system and kernel release.
    pub kernel: Option<String>,
    /// When the experiment began.
    pub started_unix_seconds: u64,
    /// Load average of the minute before.
    pub load: Option<f64>,
}

impl Machine {
    pub fn describe() -> Machine {
        Machine {
            cpus: cpus(),
            model: read("/proc/cpuinfo").and_then(|text| field(&text, "model name")),
            memory_bytes: read("/proc/meminfo")
                .and_then(|text| kibibytes(&field(&text, "MemTotal")?)),
            kernel: kernel(),
            started_unix_seconds: unix_seconds(),
            load: load_at_start(),
        }
    }

    /// A warning if other load makes figures doubtful.
    pub fn warning(&self) -> Option<String> {
        let load = self.load.filter(|load| *load > BUSY * self.cpus as f64)?;
        Some(format!(
            "the machine is busy: a load average of {load:.1} on {}; stop other programs, or results will be slow and uneven",
            if self.cpus == 1 {
                "one processor".to_owned()
            } else {
                format!("{} processors", self.cpus)
            }
        ))
    }

    /// One line for the head of a report.
    pub fn line(&self) -> String {
        let unknown = || "unknown".to_owned();
        let busy = self
            .warning()
            .map_or_else(String::new, |warning| format!("\nWARNING: {warning}"));
        format!(
            "{} cpus ({}), {} memory, {}{busy}",
            self.cpus,
            self.model.clone().unwrap_or_else(unknown),
            self.memory_bytes.map_or_else(unknown, ByteSize::rounded),
            self.kernel.clone().unwrap_or_else(unknown),
        )
    }
}

pub fn unix_seconds() -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| since.as_secs())
}

/// Processors available to this process; 1 if that is not known.
pub fn cpus() -> usize {
    thread::available_parallelism().map_or(1, |count| count.get())
}

/// The load average of the last minute.
pub fn load_average() -> Option<f64> {
    read("/proc/loadavg")?
        .split_whitespace()
        .next()?
        .parse()
        .ok()
}

/// The load average at the first call: later values include the experiment.
pub fn load_at_start() -> Option<f64> {
    static LOAD: OnceLock<Option<f64>> = OnceLock::new();
    *LOAD.get_or_init(load_average)
}

fn kernel() -> Option<String> {
    let system = read("/proc/sys/kernel/ostype")?;
    let release = read("/proc/sys/kernel/osrelease")?;
    Some(format!("{} {}", system.trim(), release.trim()))
}

fn read(path: &str) -> Option<String> {
    fs::read_to_string(path).ok()
}

/// The value of the first `name : value` line.
pub fn field(text: &str, name: &str) -> Option<String> {
    text.lines().find_map(|line| {
        let (key, value) = line.split_once(':')?;
        (key.trim() == name).then(|| value.trim().to_owned())
    })
}

/// `5 kB`, as the kernel writes it.
pub fn kibibytes(text: &str) -> Option<ByteSize> {
    let number: u64 = text.split_whitespace().next()?.parse().ok()?;
    number.checked_mul(1024).map(ByteSize::new)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_of_proc_files_are_parsed() {
        let text = "processor\t: 0\nmodel name\t: A Processor @ 2 GHz\nmodel name\t: second\n";
        assert_eq!(
            field(text, "model name").as_deref(),
            Some("A Processor @ 2 GHz")
        );
        assert_eq!(field(text, "absent"), None);
        assert_eq!(
            kibibytes("24682416 kB"),
            Some(ByteSize::new(24_682_416 * 1024))
        );
    }

    #[test]
    fn report_of_a_busy_machine_has_a_warning() {
        let machine = |load| Machine {
            cpus: 2,
            load,
            ..Machine::describe()
        };
        assert_eq!(
            (machine(Some(0.9)).warning(), machine(None).warning()),
            (None, None)
        );
        let line = machine(Some(1.5)).line();
        assert!(
            line.contains("WARNING: the machine is busy: a load average of 1.5 on 2 processors"),
            "{line}"
        );
    }

    #[test]
    fn description_has_processors() {
        let machine = Machine::describe();
        assert!(machine.cpus >= 1);
        assert!(machine.line().contains("cpus"));
    }
}
