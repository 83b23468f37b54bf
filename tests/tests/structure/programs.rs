//! Names of programs. README puts the folder of built programs first in `PATH`, where a program with the name
//! of one of the system would take its place in every script.

use super::files::{SourceFile, Violation};

/// Utilities of POSIX, GNU coreutils, and what else is on every usual Linux.
const OF_THE_SYSTEM: &str = "
    admin alias ar arch asa at awk b2sum base32 base64 basename basenc batch bc bunzip2 bzcat bzip2 c17 c99 cal cat cc cflow
    chcon chgrp chmod chown chroot cksum clear cmp col column comm command compress cp cpio crontab csplit ctags curl cut
    cxref dash date dd delta df diff diff3 dir dircolors dirname dmesg du echo ed egrep env ex expand expr factor fallocate
    false fc fg fgrep file find findmnt flock fmt fold free ftp fuser gawk gcc gdb gencat get getconf getent getopt getopts git
    grep groups gunzip gzip hash head hexdump hostid hostname iconv id info init install ionice ip ipcrm ipcs join journalctl
    kill killall last ld ldd less lex link ln locale localedef locate logger login logname look lp ls lsblk lscpu lsof lz4 m4
    mail mailx make man md5sum mesg mkdir mkfifo mknod mktemp more mount msgcat msgfmt mv nano nc newgrp ngettext nice nl nm
    node nohup nproc nsenter numfmt objdump od openssl passwd paste patch pathchk pax perl pgrep pidof ping pinky pkill pr
    printenv printf prlimit prs ps ptx pwd pwdx python python3 qalter qdel qhold qmove qmsg qrerun qrls qselect qsig qstat
    qsub read readelf readlink realpath renice reset rev rm rmdel rmdir rsync runcon sact scp sccs script sdiff sed seq
    service setpriv setsid sftp sh sha1sum sha224sum sha256sum sha384sum sha512sum shred shuf sleep snice sort split ss ssh
    stat stdbuf strace strings strip stty su sudo sum sync sysctl systemctl tabs tac tail talk tar taskset tee telnet test
    time timeout top touch tput tr true truncate tsort tty type ul ulimit umask umount unalias uname uncompress unexpand
    unget uniq unlink unshare unxz unzip uptime users utmpdump uucp uudecode uuencode uustat uux val vdir vi vim vmstat w wait
    wall watch wc wget what whatis whereis which who whoami write xargs xgettext xxd xz xzcat yacc yes zcat zip zstd zstdcat";

/// Builtins and words of bash, which come before any program.
const OF_BASH: &str = "
    bash bg bind break builtin caller case cd compgen complete compopt continue coproc declare dirs disown do done elif else
    enable esac eval exec exit export fi for function help history if in jobs let local logout mapfile popd pushd readarray
    readonly return select set shift shopt source suspend then times trap typeset unset until while";

/// A program that cargo builds has a name of its own.
pub fn own_names(files: &[SourceFile]) -> Vec<Violation> {
    let mut violations = Vec::new();
    for file in files {
        for (line, name) in programs_of(file) {
            if [OF_THE_SYSTEM, OF_BASH]
                .iter()
                .flat_map(|names| names.split_whitespace())
                .any(|own| own == name)
            {
                violations.push(file.at(line, format!("{name} is a program of the system")));
            }
        }
    }
    violations
}

/// The programs that a file makes, each with its line: those that a manifest lists, and a file of `src/bin`.
fn programs_of(file: &SourceFile) -> Vec<(usize, String)> {
    let mut parts = file.path.rsplit('/');
    match (parts.next(), parts.next(), parts.next()) {
        (Some("Cargo.toml"), ..) => names_in(&file.text),
        (Some(name), Some("bin"), Some("src")) if file.is_rust() => {
            vec![(0, name.trim_end_matches(".rs").to_owned())]
        }
        (Some("main.rs"), Some(name), Some("bin")) => vec![(0, name.to_owned())],
        _ => Vec::new(),
    }
}

/// Names of the tables `[[bin]]`, and of the package, by whose name `src/main.rs` goes.
fn names_in(manifest: &str) -> Vec<(usize, String)> {
    let mut names = Vec::new();
    let mut table = "";
    for (index, line) in manifest.lines().enumerate() {
        if line.starts_with('[') {
            table = line.trim();
        } else if let (true, Some(name)) =
            (["[[bin]]", "[package]"].contains(&table), line.strip_prefix("name = "))
        {
            names.push((index + 1, name.trim_matches('"').to_owned()));
        }
    }
    names
}

#[cfg(test)]
mod tests {
    use super::super::files::{check_caught, check_passes};
    use super::*;

    #[test]
    fn programs_with_a_name_of_the_system_are_found() {
        let table = "[package]\nname = \"x\"\n\n[[bin]]\nname = \"sort\"\n";
        check_caught(own_names, SourceFile::sample("examples/Cargo.toml", table), "Cargo.toml:5: sort is");
        for path in ["examples/src/bin/grep.rs", "examples/src/bin/grep/main.rs"] {
            check_caught(own_names, SourceFile::sample(path, ""), "grep is a program of the system");
        }
        check_caught(own_names, SourceFile::sample("a/src/bin/history.rs", ""), "history is");
    }

    #[test]
    fn programs_with_names_of_their_own_pass() {
        for path in ["examples/src/bin/wordcount.rs", "runtime/engine/src/sort.rs", "a/src/bin/x/sort.rs"] {
            check_passes(own_names, SourceFile::sample(path, ""));
        }
        check_passes(own_names, SourceFile::sample("Cargo.toml", "[dependencies.sort]\nname = \"sort\"\n"));
    }
}
