//! Suspended tasks whose memory is swapped out: the reported bytes equal those of the kernel.
//!
//! The test adds a swap file, which needs root and affects the whole machine, so it is a program of its own.
//! Without root it is skipped, unless `NAPREDUCE_REQUIRE` lists `swap`.

use std::fs::{self, OpenOptions};
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;
use std::process::Command;

use napreduce_tests::{Folder, GatedJob, OwnCluster, counter, skipped, wait_until};

/// Size of the swap file, equal to the memory of the task.
const SWAP_BYTES: u64 = 512 << 20;
const PAGE_BYTES: u64 = 4096;

/// A swap file that is active until it is dropped.
struct SwapFile(PathBuf);

impl SwapFile {
    fn start(folder: &Folder) -> Result<SwapFile, String> {
        let path = folder.path("swap");
        let file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&path);
        let file = file.map_err(|error| format!("a file for it: {error}"))?;
        rustix::fs::fallocate(&file, rustix::fs::FallocateFlags::empty(), 0, SWAP_BYTES)
            .map_err(|error| format!("{SWAP_BYTES} bytes for it: {error}"))?;
        for program in ["mkswap", "swapon"] {
            let said = Command::new(program).arg(&path).output();
            let said = said.map_err(|error| format!("{program}: {error}"))?;
            if !said.status.success() {
                return Err(format!(
                    "{program}: {}",
                    String::from_utf8_lossy(&said.stderr).trim()
                ));
            }
        }
        Ok(SwapFile(path))
    }
}

impl Drop for SwapFile {
    fn drop(&mut self) {
        let ended = Command::new("swapoff").arg(&self.0).status();
        if !ended.is_ok_and(|status| status.success()) {
            eprintln!(
                "the kernel still swaps to {}: swapoff it by hand",
                self.0.display()
            );
        }
    }
}

/// Returns the number of bytes that the kernel has swapped since boot, from a counter of `/proc/vmstat`.
fn moved_bytes(name: &str) -> u64 {
    let text = fs::read_to_string("/proc/vmstat").expect("the kernel's counters");
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    line.and_then(|number| number.parse::<u64>().ok())
        .expect(name)
        * PAGE_BYTES
}

#[test]
fn swapped_bytes_equal_kernel_counts() {
    let folder = Folder::new();
    let swap = match SwapFile::start(&folder) {
        Ok(swap) => swap,
        Err(why) => {
            return skipped(
                "swap",
                &format!("this test makes a swap file, which needs root: {why}"),
            );
        }
    };
    let settings = "[worker]\npage-out = \"always\"\n";
    let cluster = OwnCluster::start(&folder, 1, "fifo", settings);
    let job = GatedJob::submit(&folder, &cluster, "gated-holding", "holding", 1, 1);
    let out_before = moved_bytes("pswpout");
    let in_before = moved_bytes("pswpin");
    job.until("m_0000.1", "running");
    let task = cluster.tasks()[0];
    let in_swap = || -> u64 {
        let status =
            fs::read_to_string(format!("/proc/{}/status", task.number)).expect("a process");
        let line = status
            .lines()
            .find_map(|line| line.strip_prefix("VmSwap:"))
            .expect("its swap");
        line.trim()
            .trim_end_matches("kB")
            .trim()
            .parse::<u64>()
            .expect("a number")
            << 10
    };
    let resident = || {
        let status = fs::read_to_string(format!("/proc/{}/statm", task.number)).expect("a process");
        status
            .split(' ')
            .nth(1)
            .and_then(|pages| pages.parse::<u64>().ok())
            .expect("pages")
            * PAGE_BYTES
    };
    wait_until("the task holds its memory", || resident() > 130 << 20);
    job.command("suspend", "m_0000");
    wait_until("its memory is in swap", || in_swap() > 120 << 20);
    job.command("resume", "m_0000");
    job.until("m_0000.1", "running");
    job.ends_as_undisturbed();
    let out = job.output();
    for (name, kernels, before) in [
        ("SWAPPED_OUT_BYTES", "pswpout", out_before),
        ("SWAPPED_IN_BYTES", "pswpin", in_before),
    ] {
        let told = counter(&out, name);
        let seen = moved_bytes(kernels) - before;
        println!("{name} {told}, {kernels} {seen} bytes");
        // If memory is plentiful, the kernel keeps pages that it has written and need not read them again.
        // Some pages belong to libraries of every process.
        let close = told.abs_diff(seen) * 10 <= seen.max(1 << 20);
        assert!(
            close,
            "{name} is {told}, and the kernel counts {seen} bytes"
        );
    }
    drop(cluster);
    drop(swap);
}
