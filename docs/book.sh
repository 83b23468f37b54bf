#!/usr/bin/env bash
# Builds all pages as a book, target/book/html/index.html, with the chapters of docs/SUMMARY.md. The page with the results of the
# papers is written from the reports in lab/reports.
# Needs mdbook: cargo install mdbook@0.5.4 --locked --no-default-features
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

# mdbook copies every file of its source folder, so the pages get a folder of their own, with the pictures and examples
# that they link to. They keep their paths in it, and so their links to each other.
rm -rf target/book
mkdir -p target/book/pages
git ls-files -z '*.md' docs/pictures examples | xargs -0 cp --parents --target-directory target/book/pages
sed -e 's|](|](docs/|' -e 's|](docs/\.\./|](|' docs/SUMMARY.md > target/book/pages/SUMMARY.md

# Uses the program that the tests have built, if it exists. Status 1 and 3 are verdicts.
lab=${CARGO_TARGET_DIR:-target}/debug/nap-lab
[ -x "$lab" ] || cargo build --locked -p napreduce-lab --bin nap-lab
results=target/book/pages/docs/results.md
status=0
"$lab" paper --from lab/reports/*/ --markdown "$results" > /dev/null || status=$?
case $status in 0 | 1 | 3) ;; *) exit "$status" ;; esac
sed -i '/lab\/reports\/README.md/a\  - [Results compared with the papers](docs/results.md)' target/book/pages/SUMMARY.md
grep -q docs/results.md target/book/pages/SUMMARY.md
cp docs/book.toml docs/book.css target/book
mdbook build target/book
