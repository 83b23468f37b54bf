//! `nap` and `wordcount` built statically in both ways of docs/writing-jobs.md, run in a root directory without
//! libc. The builds take minutes, so this runs only if `NAPREDUCE_REQUIRE` lists `static`. Needs root and
//! the target of musl.

use std::fs::{self, File};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use napreduce_tests::{Folder, is_required, joined, program, run, wait_until};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

const TEXT: &str = "a rose is a rose is a rose\n";
const ENTER: &str = r#"mount --rbind /proc "$0/proc" && mount --bind /dev/null "$0/dev/null" && exec chroot "$0" "$@""#;

/// A root directory that contains only two programs.
struct EmptySystem {
    folder: Folder,
}

impl EmptySystem {
    fn with_programs(built: &Path) -> EmptySystem {
        let folder = Folder::new();
        for name in ["nap", "wordcount"] {
            fs::create_dir_all(folder.path("root")).expect("a folder");
            fs::copy(built.join(name), folder.path("root").join(name)).expect("a built program");
        }
        for name in ["proc", "tmp"] {
            fs::create_dir(folder.path("root").join(name)).expect("a folder");
        }
        folder.write("root/dev/null", "");
        folder.write("root/etc/hosts", "127.0.0.1 head\n");
        folder.write("root/in.txt", TEXT);
        fs::DirBuilder::new()
            .mode(0o700)
            .create(folder.path("root/cluster"))
            .expect("a folder");
        EmptySystem { folder }
    }

    /// Returns a program that runs in this root directory.
    fn program(&self, name: &str) -> Command {
        let mut command = Command::new("unshare");
        command
            .args(["--mount", "--propagation", "private", "sh", "-c", ENTER])
            .arg(self.folder.path("root"));
        command
            .arg(format!("/{name}"))
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default());
        command.stdin(Stdio::null());
        command
    }

    fn counted(&self, output: &str) -> Vec<u8> {
        joined(&self.folder.path("root").join(output))
    }
}

/// Builds the programs for a target such as `musl`, and returns their folder.
fn built(libc: &str, flags: &str) -> PathBuf {
    let debug = PathBuf::from(program("nap").get_program());
    let target = debug
        .ancestors()
        .nth(2)
        .expect("a program lies in a target folder")
        .to_owned();
    let platform = format!("{}-unknown-linux-{libc}", std::env::consts::ARCH);
    let mut cargo = Command::new(env!("CARGO"));
    cargo
        .env("RUSTFLAGS", flags)
        .args(["build", "--locked", "--target", &platform]);
    cargo.args([
        "-p",
        "napreduce-cli",
        "-p",
        "napreduce-examples",
        "--bin",
        "nap",
        "--bin",
        "wordcount",
    ]);
    cargo
        .arg("--manifest-path")
        .arg(concat!(env!("CARGO_MANIFEST_DIR"), "/../Cargo.toml"));
    run(cargo.arg("--target-dir").arg(&target)).succeeded();
    target.join(platform).join("debug")
}

/// Returns whether the test is required; reports a skip otherwise.
fn wanted() -> bool {
    let wanted = is_required("static");
    if !wanted {
        println!(
            "skipped: programs are built once more for it; say NAPREDUCE_REQUIRE=static, as root"
        );
    }
    wanted
}

/// A cluster that ends with the test.
struct Up(Child);

impl Up {
    fn start(system: &EmptySystem) -> Up {
        let mut nap = system.program("nap");
        nap.args([
            "--dir",
            "/cluster",
            "up",
            "--workers",
            "1",
            "--map-slots",
            "1",
            "--reduce-slots",
            "1",
        ]);
        let log = File::create(system.folder.path("up.log")).expect("a log");
        let up = Up(nap
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .expect("nap up"));
        let listing = ["--dir", "/cluster", "worker", "list", "--wait", "1"];
        wait_until("a worker", || {
            run(system.program("nap").args(listing)).status.success()
        });
        up
    }
}

impl Drop for Up {
    fn drop(&mut self) {
        if kill_process(Pid::from_child(&self.0), Signal::INT).is_ok() {
            let _ = self.0.wait();
        }
    }
}

#[test]
fn musl_programs_run_without_libc() {
    if wanted() {
        assert_run_in_empty_system(&built("musl", ""));
    }
}

#[test]
fn static_glibc_programs_run_without_libc() {
    if wanted() {
        assert_run_in_empty_system(&built("gnu", "-C target-feature=+crt-static"));
    }
}

fn assert_run_in_empty_system(built: &Path) {
    let system = EmptySystem::with_programs(built);
    let outside = system.folder.path("outside");
    run(program("wordcount")
        .arg(system.folder.path("root/in.txt"))
        .arg("--output")
        .arg(&outside))
    .succeeded();
    run(system
        .program("wordcount")
        .args(["in.txt", "--output", "here"]))
    .succeeded();
    assert_eq!(system.counted("here"), joined(&outside));

    let up = Up::start(&system);
    run(system
        .program("wordcount")
        .args(["in.txt", "--output", "there", "--cluster", "/cluster"]))
    .succeeded();
    assert_eq!(system.counted("there"), joined(&outside));
    // Resolves a host name without the libraries that libc would load for it.
    let filed = fs::read(system.folder.path("root/cluster/coordinator.json")).expect("it is up");
    let filed: Value = serde_json::from_slice(&filed).expect("JSON");
    let address = filed["address"].as_str().expect("an address");
    let port = address.rsplit(':').next().expect("a port");
    let named = format!("head:{port}");
    let secret = ["--secret-file", "/cluster/secret"];
    let counting = ["in.txt", "--output", "named", "--cluster", &named];
    run(system.program("wordcount").args(counting).args(secret)).succeeded();
    assert_eq!(system.counted("named"), joined(&outside));
    drop(up);
}
