#!/usr/bin/env bash
# Builds all pages as a book, target/book/html/index.html, with the chapters of docs/SUMMARY.md.
# Needs mdbook: cargo install mdbook@0.5.4 --locked --no-default-features
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

# mdbook copies every file of its source folder, so the pages get a folder of their own, with the pictures and examples
# that they link to. They keep their paths in it, and so their links to each other.
rm -rf target/book
mkdir -p target/book/pages
git ls-files -z '*.md' docs/pictures examples | xargs -0 cp --parents --target-directory target/book/pages
sed -e 's|](|](docs/|' -e 's|](docs/\.\./|](|' docs/SUMMARY.md > target/book/pages/SUMMARY.md
cp docs/book.toml docs/book.css target/book
mdbook build target/book
