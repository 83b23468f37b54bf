//! `nap top` on a pseudo-terminal.

use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::process::{Child, Stdio};
use std::sync::{Arc, Mutex};
use std::thread;

use napreduce_tests::{Ended, Folder, cluster, program, run, wait_until};
use rustix::process::{Pid, Signal, kill_process};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{LocalModes, Winsize, tcgetattr, tcsetwinsize};

/// Sent to a terminal to show what was on it before a full-screen program.
const LEAVE_FULL_SCREEN: &str = "\u{1b}[?1049l";

/// Starts `nap top` on a new pseudo-terminal; returns it with the ends of the user and the program.
fn spawn() -> (Child, File, File) {
    let keyboard = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC)
        .expect("a pseudo-terminal");
    grantpt(&keyboard)
        .and_then(|()| unlockpt(&keyboard))
        .expect("a pseudo-terminal to use");
    let path = ptsname(&keyboard, Vec::new())
        .expect("its name")
        .into_string()
        .expect("text");
    let terminal = OpenOptions::new()
        .read(true)
        .write(true)
        .open(path)
        .expect("its other end");
    let size = Winsize {
        ws_row: 24,
        ws_col: 80,
        ws_xpixel: 0,
        ws_ypixel: 0,
    };
    tcsetwinsize(&terminal, size).expect("a size");
    let end = || Stdio::from(terminal.try_clone().expect("another handle"));
    let mut command = program("nap");
    command
        .env_remove("NAPREDUCE_CLUSTER")
        .env("TERM", "xterm-256color")
        .arg("top");
    let process = command
        .stdin(end())
        .stdout(end())
        .stderr(end())
        .spawn()
        .expect("it starts");
    (process, File::from(keyboard), terminal)
}

/// `nap top` on a terminal of 80x24.
struct Top {
    process: Child,
    /// The end of the user.
    keyboard: File,
    /// The end of the program.
    terminal: File,
    written: Arc<Mutex<Vec<u8>>>,
}

impl Top {
    /// Starts it and waits for the first answer of the coordinator.
    fn start() -> Top {
        let (process, keyboard, terminal) = spawn();
        let written = Arc::default();
        let mut screen = keyboard.try_clone().expect("another handle");
        let top = Top {
            process,
            keyboard,
            terminal,
            written: Arc::clone(&written),
        };
        thread::spawn(move || {
            let mut bytes = [0; 4096];
            while let Ok(length @ 1..) = screen.read(&mut bytes) {
                written
                    .lock()
                    .expect("no panic")
                    .extend_from_slice(&bytes[..length]);
            }
        });
        wait_until("the first answer is shown", || {
            top.shown().contains("scheduler")
        });
        top
    }

    fn shown(&self) -> String {
        String::from_utf8_lossy(&self.written.lock().expect("no panic")).into_owned()
    }

    fn press(&mut self, keys: &str) {
        self.keyboard
            .write_all(keys.as_bytes())
            .expect("it is open");
    }

    fn is_line_mode(&self) -> bool {
        tcgetattr(&self.terminal)
            .expect("its modes")
            .local_modes
            .contains(LocalModes::ICANON | LocalModes::ECHO)
    }

    /// Waits for the end; the terminal must be as before. Returns the exit status.
    fn ends(mut self) -> Option<i32> {
        let status = self.process.wait().expect("a process of this test");
        assert!(self.is_line_mode(), "the terminal reads lines again");
        wait_until("the full screen is left", || {
            self.shown().contains(LEAVE_FULL_SCREEN)
        });
        status.code()
    }
}

impl Drop for Top {
    fn drop(&mut self) {
        // Fails if it has already ended.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn nap(arguments: &[&str]) -> Ended {
    run(program("nap")
        .env_remove("NAPREDUCE_CLUSTER")
        .args(arguments))
}

#[test]
fn job_is_held_by_a_key_and_the_terminal_restored() {
    let folder = Folder::new();
    folder.write("in", "b a\n".repeat(3000));
    let directory = cluster()
        .expect("these tests have a cluster")
        .display()
        .to_string();
    let mut command = program("testjobs");
    command.current_dir(folder.root()).args([
        "in", "--job", "slow", "--number", "20000", "--output", "out",
    ]);
    command
        .env_remove("NAPREDUCE_CLUSTER")
        .args(["--cluster", &directory, "--detach"]);
    let job = run(&mut command).succeeded().stdout.trim().to_owned();
    let mut top = Top::start();
    assert!(!top.is_line_mode());
    top.press(&format!("/{job}\rjh"));
    wait_until("it is held", || {
        nap(&["job", "explain", &job])
            .stdout
            .contains("held: requested in nap top")
    });
    top.press("q");
    assert_eq!(top.ends(), Some(0));
    nap(&["job", "kill", &job]).succeeded();
}

#[test]
fn terminal_is_restored_after_a_signal() {
    let top = Top::start();
    kill_process(Pid::from_child(&top.process), Signal::TERM).expect("it runs");
    assert_eq!(top.ends(), Some(143));
}

#[test]
fn closed_terminal_ends_it_without_a_panic() {
    let (mut process, mut keyboard, terminal) = spawn();
    drop(terminal);
    keyboard.read_exact(&mut [0; 64]).expect("it draws");
    drop(keyboard);
    // A panic in a panic would abort it.
    assert_eq!(
        process.wait().expect("a process of this test").code(),
        Some(1)
    );
}
