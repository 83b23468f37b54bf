//! Memory of processes and of this machine: reads `/proc` and the memory cgroup of this process.

use std::path::{Path, PathBuf};
use std::{fs, io};

use napreduce_task::{bytes_of, descendants_of};
use rustix::process::Pid;

use super::control_groups::group_of;

/// The memory of a process, or of all processes of a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ProcessMemory {
    pub resident: u64,
    pub swapped: u64,
    /// Page faults since the process started, minor and major.
    pub faults: u64,
    /// Bytes read from swap by this machine since boot, for all processes.
    pub machine_read: u64,
}

impl ProcessMemory {
    /// Returns the memory of a process that is not reaped.
    pub fn read(process: Pid) -> io::Result<ProcessMemory> {
        let read = |name| fs::read_to_string(format!("/proc/{}/{name}", process.as_raw_nonzero()));
        let status = read("status")?;
        Ok(ProcessMemory {
            resident: bytes_of(&status, "VmRSS:").unwrap_or(0),
            swapped: bytes_of(&status, "VmSwap:").unwrap_or(0),
            faults: faults_of(&read("stat")?).unwrap_or(0),
            machine_read: read_from_swap(),
        })
    }

    /// Returns the memory of a process that is not reaped and of its descendants: a task and its commands. Shared
    /// pages count for each process.
    pub fn with_descendants(leader: Pid) -> io::Result<ProcessMemory> {
        let mut sum = ProcessMemory::read(leader)?;
        for member in descendants_of(leader.as_raw_nonzero().get()).members {
            // A process that has just ended holds no memory.
            let Some(memory) =
                Pid::from_raw(member.process).and_then(|pid| ProcessMemory::read(pid).ok())
            else {
                continue;
            };
            sum.resident = sum.resident.saturating_add(memory.resident);
            sum.swapped = sum.swapped.saturating_add(memory.swapped);
            sum.faults = sum.faults.saturating_add(memory.faults);
        }
        Ok(sum)
    }
}

/// The available memory of this machine, or of the cgroup of this process if that is less.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SpareMemory {
    /// Memory usable without swapping.
    pub available: u64,
    pub swap_free: u64,
}

impl SpareMemory {
    /// Reads the present values.
    pub fn read() -> io::Result<SpareMemory> {
        let machine = of_machine(&fs::read_to_string("/proc/meminfo")?);
        let own = fs::read_to_string("/proc/self/cgroup").ok();
        let group = own.and_then(|own| Cgroup::find(&own, Path::new("/sys/fs/cgroup")));
        Ok(group.map_or(machine, |group| group.narrow(machine)))
    }
}

/// Returns the number of OOM kills since boot; 0 if the kernel does not report it.
pub fn oom_kills() -> u64 {
    virtual_memory_count("oom_kill ")
}

fn of_machine(meminfo: &str) -> SpareMemory {
    SpareMemory {
        available: bytes_of(meminfo, "MemAvailable:").unwrap_or(0),
        swap_free: bytes_of(meminfo, "SwapFree:").unwrap_or(0),
    }
}

/// The directory of a memory cgroup, by interface version.
#[derive(Debug, PartialEq, Eq)]
enum Cgroup {
    First(PathBuf),
    Second(PathBuf),
}

impl Cgroup {
    /// Finds the cgroup from the content of `/proc/self/cgroup`.
    fn find(own: &str, mounted: &Path) -> Option<Cgroup> {
        // If both versions are mounted, version 1 has the memory controller.
        let first =
            group_of(own, "memory").map(|path| Cgroup::First(mounted.join("memory").join(path)));
        first.or_else(|| group_of(own, "").map(|path| Cgroup::Second(mounted.join(path))))
    }

    fn narrow(&self, machine: SpareMemory) -> SpareMemory {
        let within = |spare: Option<u64>, free: u64| spare.map_or(free, |spare| spare.min(free));
        match self {
            Cgroup::First(path) => {
                let memory = spare(path, "memory.limit_in_bytes", "memory.usage_in_bytes");
                let available = within(memory, machine.available);
                // This limit is for memory and swap together: available memory counts towards it.
                let both = spare(
                    path,
                    "memory.memsw.limit_in_bytes",
                    "memory.memsw.usage_in_bytes",
                );
                let swap = both.map(|both| both.saturating_sub(available));
                SpareMemory {
                    available,
                    swap_free: within(swap, machine.swap_free),
                }
            }
            Cgroup::Second(path) => {
                let memory = spare(path, "memory.max", "memory.current");
                let swap = spare(path, "memory.swap.max", "memory.swap.current");
                let available = within(memory, machine.available);
                SpareMemory {
                    available,
                    swap_free: within(swap, machine.swap_free),
                }
            }
        }
    }
}

/// Returns the unused part of a limit; `None` for `max`. Version 1 reports a number beyond any memory
/// instead.
fn spare(path: &Path, limit: &str, usage: &str) -> Option<u64> {
    let number = |name: &str| {
        fs::read_to_string(path.join(name))
            .ok()?
            .trim()
            .parse::<u64>()
            .ok()
    };
    Some(number(limit)?.saturating_sub(number(usage)?))
}

/// Returns for how many microseconds since boot all tasks have stalled on memory; `None` if the kernel does
/// not count it.
pub fn stalled_micros() -> Option<u64> {
    full_micros(&fs::read_to_string("/proc/pressure/memory").ok()?)
}

fn full_micros(pressure: &str) -> Option<u64> {
    let line = pressure.lines().find(|line| line.starts_with("full "))?;
    line.split_ascii_whitespace()
        .find_map(|field| field.strip_prefix("total="))?
        .parse()
        .ok()
}

/// Returns the bytes read from swap since boot; 0 if the kernel does not report it.
fn read_from_swap() -> u64 {
    virtual_memory_count("pswpin ").saturating_mul(4096)
}

/// Returns a counter of `/proc/vmstat`; 0 if the kernel does not report it.
fn virtual_memory_count(name: &str) -> u64 {
    let counts = fs::read_to_string("/proc/vmstat").unwrap_or_default();
    let count = counts.lines().find_map(|line| line.strip_prefix(name));
    count
        .and_then(|count| count.trim().parse().ok())
        .unwrap_or(0)
}

/// Returns the sum of minor and major faults, the tenth and twelfth fields of `/proc/PID/stat`. The second
/// field is the program's name in parentheses and may contain anything.
fn faults_of(stat: &str) -> Option<u64> {
    let mut fields = stat.rsplit_once(')')?.1.split_ascii_whitespace();
    let without: u64 = fields.nth(7)?.parse().ok()?;
    let with: u64 = fields.nth(1)?.parse().ok()?;
    Some(without + with)
}

/// Returns the OOM score adjustment of a process, from -1000 to 1000.
pub fn oom_score_adjustment(process: Pid) -> io::Result<i32> {
    let text = fs::read_to_string(oom_file(process))?;
    text.trim().parse().map_err(|_| {
        io::Error::new(
            io::ErrorKind::InvalidData,
            "invalid number in oom_score_adj",
        )
    })
}

/// Sets the OOM score adjustment; lowering it below its initial value requires a privilege.
pub fn set_oom_score_adjustment(process: Pid, adjustment: i32) -> io::Result<()> {
    fs::write(oom_file(process), adjustment.to_string())
}

fn oom_file(process: Pid) -> String {
    format!("/proc/{}/oom_score_adj", process.as_raw_nonzero())
}

#[cfg(test)]
mod tests {
    use rustix::process::getpid;

    use super::*;

    #[test]
    fn own_memory_is_measured() {
        let memory = ProcessMemory::read(getpid()).expect("a status");
        assert!(memory.resident > 4096 && memory.faults > 0);
        assert_eq!(
            faults_of("7 (a) b) S 1 7 7 0 -1 4194560 900 800 30 20 5"),
            Some(930)
        );
        assert_eq!(faults_of("7 (a"), None);
        assert!(SpareMemory::read().expect("a machine").available > 0);
    }

    #[test]
    fn memory_lines_are_parsed_in_bytes() {
        let meminfo = "MemTotal: 900 kB\nMemAvailable:    512 kB\nSwapFree:  1 kB\n";
        assert_eq!(
            of_machine(meminfo),
            SpareMemory {
                available: 512 << 10,
                swap_free: 1 << 10
            }
        );
        assert_eq!(bytes_of("VmRSS:\t many kB\n", "VmRSS:"), None);
        let pressure = "some avg10=0.00 avg60=0.00 avg300=0.00 total=900\nfull avg10=0.00 avg60=0.0 total=77\n";
        assert_eq!(full_micros(pressure), Some(77));
        assert_eq!(full_micros("some total=3\n"), None);
    }

    #[test]
    fn memory_cgroup_of_either_version_is_found() {
        let mounted = Path::new("/c");
        let second = Cgroup::Second("/c/user/one".into());
        assert_eq!(Cgroup::find("0::/user/one\n", mounted), Some(second));
        let first = Cgroup::First("/c/memory/jobs".into());
        assert_eq!(
            Cgroup::find("0::/\n4:cpu,memory:/jobs\n2:pids:/x\n", mounted),
            Some(first)
        );
        assert_eq!(Cgroup::find("2:pids:/x\n", mounted), None);
    }

    #[test]
    fn cgroup_limit_bounds_spare_memory() {
        let place = tempfile::tempdir().expect("a directory");
        let write =
            |name: &str, text: &str| fs::write(place.path().join(name), text).expect("written");
        let machine = SpareMemory {
            available: 1_000,
            swap_free: 500,
        };
        let group = Cgroup::Second(place.path().to_owned());
        assert_eq!(
            group.narrow(machine),
            machine,
            "there is no limit to be read"
        );
        write("memory.max", "300\n");
        write("memory.current", "100\n");
        write("memory.swap.max", "max\n");
        write("memory.swap.current", "0\n");
        assert_eq!(
            group.narrow(machine),
            SpareMemory {
                available: 200,
                swap_free: 500
            }
        );
        write("memory.limit_in_bytes", "900\n");
        write("memory.usage_in_bytes", "1000\n");
        let group = Cgroup::First(place.path().to_owned());
        assert_eq!(
            group.narrow(machine),
            SpareMemory {
                available: 0,
                swap_free: 500
            }
        );
    }

    #[test]
    fn cgroup_limit_of_memory_and_swap_together_includes_available_memory() {
        let place = tempfile::tempdir().expect("a directory");
        let write =
            |name: &str, text: &str| fs::write(place.path().join(name), text).expect("written");
        let machine = SpareMemory {
            available: 1_000,
            swap_free: 500,
        };
        let group = Cgroup::First(place.path().to_owned());
        write("memory.limit_in_bytes", "900\n");
        write("memory.usage_in_bytes", "100\n");
        write("memory.memsw.usage_in_bytes", "150\n");
        for (limit, swap_free) in [
            ("900\n", 0),
            ("1150\n", 200),
            ("9223372036854771712\n", 500),
        ] {
            write("memory.memsw.limit_in_bytes", limit);
            assert_eq!(
                group.narrow(machine),
                SpareMemory {
                    available: 800,
                    swap_free
                },
                "{limit}"
            );
        }
    }

    #[test]
    fn oom_score_of_child_is_raised_and_restored() {
        let mut child = std::process::Command::new("sleep")
            .arg("1000")
            .spawn()
            .expect("sleep");
        let process = Pid::from_child(&child);
        let before = oom_score_adjustment(process).expect("a score");
        set_oom_score_adjustment(process, (before + 500).min(1000)).expect("raised");
        assert_eq!(
            oom_score_adjustment(process).expect("a score"),
            (before + 500).min(1000)
        );
        set_oom_score_adjustment(process, before).expect("put back");
        child.kill().expect("killed");
        child.wait().expect("reaped");
        assert!(set_oom_score_adjustment(process, 0).is_err());
    }

    #[test]
    fn memory_of_group_includes_started_commands() {
        use std::io::{BufRead, BufReader};
        use std::os::unix::process::CommandExt;
        use std::process::{Command, Stdio};

        let command =
            "sh -c 'x=$(head -c 50000000 /dev/zero | tr \"\\0\" x); echo ready; read stop'; true";
        let mut leader = Command::new("sh")
            .args(["-c", command])
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("a shell");
        let mut line = String::new();
        let printed = leader.stdout.take().expect("piped");
        BufReader::new(printed)
            .read_line(&mut line)
            .expect("it prints");
        let pid = Pid::from_child(&leader);
        let alone = ProcessMemory::read(pid);
        let group = ProcessMemory::with_descendants(pid);
        drop(leader.stdin.take());
        leader.wait().expect("reaped");
        let alone = alone.expect("it runs");
        let group = group.expect("it runs");
        assert!(alone.resident < 20_000_000, "{alone:?}");
        assert!(group.resident + group.swapped > 50_000_000, "{group:?}");
    }
}
