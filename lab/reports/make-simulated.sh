#!/bin/sh
# Makes lab/reports/simulated again with this commit, and the tables that count its verdicts: about 70 minutes of processor time.
# Give --repetitions N for fewer blocks, to try it.
set -eu
cd "$(dirname "$0")/../.."
cargo build --release --locked -p napreduce-lab --bin nap-lab
lab=${CARGO_TARGET_DIR:-target}/release/nap-lab
made=$(mktemp -d)
trap 'rm -rf "$made"' EXIT

# Status 1 and 3 are verdicts.
status=0
"$lab" paper all --simulate --report "$made/simulated" "$@" >/dev/null || status=$?
[ "$status" -ne 2 ]
for file in runs.jsonl.xz report.json environment.json; do
    cp "$made/simulated/$file" lab/reports/simulated/
done
"$lab" paper --from lab/reports/*/ >/dev/null || status=$?
[ "$status" -ne 2 ]
xz -9 -f lab/reports/*/verdicts.json
NAPREDUCE_WRITE_COUNTS=1 cargo test --locked -p napreduce-lab --test lab kept_rows_reproduce_the_docs
