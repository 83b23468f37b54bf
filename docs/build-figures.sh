#!/usr/bin/env bash
# What it takes to compile a job program, at one or several revisions, compared with the first of them.
# Needs cargo, git and an idle machine; every revision is built in a folder of its own, from nothing.
# Usage: docs/build-figures.sh REVISION..., for example: docs/build-figures.sh v0.3.0 HEAD
set -euo pipefail
[ $# -gt 0 ] || { sed -n '2,4s/^# //p' "$0"; exit 2; }
repository=$(git -C "$(dirname "$0")" rev-parse --show-toplevel)
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
export CARGO_INCREMENTAL TIMEFORMAT='%U %S %R'

# cost COMMAND...: the processor's and the wall's seconds of a command, as "CPU WALL".
cost() {
  { time "$@" > /dev/null 2> "$place/log"; } 2>&1 | tail -n 1 | awk '{ print $1 + $2, $3 }'
  [ "${PIPESTATUS[0]}" = 0 ] || { cat "$place/log" >&2; return 1; }
}

# A crate of a user whose job counts words longer than N.
user_crate() {
  mkdir -p "$place/user/src"
  cat > "$place/user/Cargo.toml" << END
[package]
name = "user"
version = "0.1.0"
edition = "2024"
[workspace]
[dependencies]
napreduce = { path = "$place/at/framework"$1 }
END
  cp "$place/at/Cargo.lock" "$place/at/rust-toolchain.toml" "$place/user/"
}

closure() {
  cat > "$place/user/src/main.rs" << END
use napreduce::{Emit, Job, words};

fn long_words(_: &()) -> Job {
    Job::text()
        .map(|line: &str, out: &mut Emit<String, u64>| {
            for word in words(line).filter(|word| word.len() > $1) {
                out.emit(word, 1);
            }
        })
        .combine(|count, more| *count += more)
        .reduce_total(|word, count, out| out.emit(word, count))
}

fn main() -> std::process::ExitCode {
    napreduce::main(long_words)
}
END
}

packages() {
  (cd "$1" && cargo tree --offline --edges normal,build --prefix none "${@:2}" | sed 's/ (.*//' | sort -u | wc -l)
}

row() { printf '| %-52s' "$1"; shift; printf ' | %10s' "$@"; printf ' |\n'; }

declare -A first
# shown NAME VALUE: the value, and what it is of the first revision's.
shown() {
  : "${first[$1]:=$2}"
  row "$1" "$2" "$(awk -v a="$2" -v b="${first[$1]}" 'BEGIN { printf "%.2f", a / b }')"
}

for revision in "$@"; do
  rm -rf "$place/at" "$place/user"
  git clone --quiet "$repository" "$place/at"
  git -C "$place/at" checkout --quiet --detach "$revision"
  row "$revision" "figure" "ratio"
  row '---' '---' '---'
  (cd "$place/at" && cargo fetch --quiet --locked)
  CARGO_INCREMENTAL=1
  shown 'packages of a word count' "$(packages "$place/at/examples")"
  cd "$place/at"
  # The README names the package: without that, Cargo builds what is shared with the features of all default members.
  package=$(grep -m 1 -o -e '-p napreduce-examples' README.md || true)
  read -r cpu wall < <(cost cargo build --release $package --bin wordcount --locked --offline)
  shown 'README, first command: s of processor' "$cpu"
  shown 'README, first command: s of wall time' "$wall"
  rm -rf target
  user_crate ''
  cd "$place/user"
  for profile in dev release; do
    closure 1
    read -r cpu wall < <(cost cargo build --profile "$profile" --offline)
    shown "a crate of its own, $profile: s of processor" "$cpu"
    closure 2
    read -r cpu wall < <(cost cargo build --profile "$profile" --offline)
    shown "after a changed closure, $profile: s of processor" "$cpu"
    shown "after a changed closure, $profile: s of wall time" "$wall"
    shown "its binary, $profile: MB" "$(($(stat -c %s "target/${profile/dev/debug}/user") / 1000000))"
    rm -rf target
  done
  user_crate ', default-features = false'
  closure 1
  shown 'packages of it without default features' "$(packages "$place/user")"
  cd "$repository"
done
