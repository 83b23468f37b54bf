//! The static files of the page. Their addresses contain a hash of all files, so that browsers may cache them
//! forever.

use std::borrow::Cow;

use axum::body::Body;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::http::{Response, StatusCode};
use axum::response::IntoResponse;
use include_dir::{Dir, DirEntry, File, include_dir};
use xxhash_rust::xxh3::Xxh3;

use crate::problem::Problem;

static FILES: Dir<'static> = include_dir!("$CARGO_MANIFEST_DIR/assets");
/// The placeholder for the address of the files in the page.
const PLACE: &str = "{{assets}}";

/// The files of the page.
#[derive(Debug)]
pub struct Assets {
    hash: String,
    page: String,
}

impl Assets {
    pub fn new() -> Assets {
        let hash = hash_of(&FILES);
        let page = FILES
            .get_file("index.html")
            .and_then(|file| file.contents_utf8())
            .unwrap_or_default();
        Assets {
            page: page.replace(PLACE, &format!("/assets/{hash}")),
            hash,
        }
    }

    /// Returns the page, which serves every view.
    pub fn page(&self) -> Response<Body> {
        let headers = [
            (CONTENT_TYPE, "text/html; charset=utf-8"),
            (CACHE_CONTROL, "no-cache"),
        ];
        (headers, Body::from(self.page.clone())).into_response()
    }

    /// Returns a file under `/assets/`.
    pub fn file(&self, path: &str) -> Response<Body> {
        let within = path
            .strip_prefix("/assets/")
            .and_then(|rest| rest.strip_prefix(self.hash.as_str()));
        let file = within.and_then(|rest| FILES.get_file(rest.strip_prefix('/')?));
        let kind = file.and_then(|file| kind_of(file.path().to_str()?));
        let (Some(file), Some(kind)) = (file, kind) else {
            return Problem::new(StatusCode::NOT_FOUND, "no such file").into_response();
        };
        let headers = [
            (CONTENT_TYPE, kind),
            (CACHE_CONTROL, "public, max-age=31536000, immutable"),
        ];
        (headers, Body::from(served(file))).into_response()
    }
}

/// Returns a file as browsers get it: scripts and styles without the lines that are comments, which are a tenth of them.
fn served(file: &'static File<'static>) -> Cow<'static, [u8]> {
    let has_comments = file
        .path()
        .extension()
        .is_some_and(|kind| kind == "js" || kind == "css");
    match file.contents_utf8() {
        Some(text) if has_comments => Cow::Owned(without_comments(text).into_bytes()),
        _ => Cow::Borrowed(file.contents()),
    }
}

/// Leaves out lines that are a comment as a whole. A comment behind code stays.
fn without_comments(text: &str) -> String {
    let mut kept = String::with_capacity(text.len());
    let mut is_comment = false;
    for line in text.lines() {
        let words = line.trim();
        let begins = words.starts_with("/*") && (words.ends_with("*/") || !words.contains("*/"));
        if is_comment || begins {
            is_comment = !words.ends_with("*/");
            continue;
        }
        if words.starts_with("//") {
            continue;
        }
        kept.push_str(line);
        kept.push('\n');
    }
    kept
}

fn kind_of(path: &str) -> Option<&'static str> {
    match path.rsplit_once('.')?.1 {
        "js" => Some("text/javascript; charset=utf-8"),
        "css" => Some("text/css; charset=utf-8"),
        "svg" => Some("image/svg+xml"),
        _ => None,
    }
}

fn hash_of(files: &Dir<'_>) -> String {
    fn feed(hasher: &mut Xxh3, files: &Dir<'_>) {
        for entry in files.entries() {
            match entry {
                DirEntry::Dir(inner) => feed(hasher, inner),
                DirEntry::File(file) => {
                    hasher.update(file.path().as_os_str().as_encoded_bytes());
                    hasher.update(file.contents());
                }
            }
        }
    }
    let mut hasher = Xxh3::new();
    feed(&mut hasher, files);
    format!("{:016x}", hasher.digest())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(files: &'static Dir<'static>) -> Vec<&'static File<'static>> {
        files.dirs().flat_map(all).chain(files.files()).collect()
    }

    fn bytes_of(end: &str) -> usize {
        let files = all(&FILES);
        let ours = files
            .iter()
            .filter(|file| file.path().to_str().is_some_and(|path| path.ends_with(end)));
        ours.map(|file| served(file).len()).sum()
    }

    #[test]
    fn page_is_small() {
        assert!(
            (1..=220_000).contains(&bytes_of(".js")),
            "{}",
            bytes_of(".js")
        );
        assert!(
            (1..=30_000).contains(&bytes_of(".css")),
            "{}",
            bytes_of(".css")
        );
        assert!(bytes_of("") <= 250_000, "{}", bytes_of(""));
    }

    #[test]
    fn only_comments_are_left_out_of_served_files() {
        let text = "// head\na(); // stays\n  /** of\n   * b */\n  b(`//`);\n/* c */ c();\n/* d */\nd(\"*/\");\n";
        assert_eq!(
            without_comments(text),
            "a(); // stays\n  b(`//`);\n/* c */ c();\nd(\"*/\");\n"
        );
        for file in all(&FILES) {
            let name = file.path().display();
            let text = file.contents_utf8().expect("text");
            let kept = String::from_utf8(served(file).into_owned()).expect("text");
            let left_out = text
                .lines()
                .filter(|line| !kept.lines().any(|known| known == *line));
            for line in left_out.map(str::trim) {
                assert!(
                    line.starts_with(['/', '*']) || line.ends_with("*/"),
                    "{name} is served without {line}"
                );
            }
            // No text spans lines, so that no line of one looks like a comment.
            let is_whole = |line: &str| line.matches('`').count().is_multiple_of(2);
            assert!(
                name.to_string().ends_with(".html") || text.lines().all(is_whole),
                "{name} has a text of several lines"
            );
        }
    }

    #[test]
    fn page_has_no_injection_and_no_foreign_address() {
        let banned = [
            "innerHTML",
            "outerHTML",
            "insertAdjacentHTML",
            "document.write",
            "eval(",
            "new Function",
            "//cdn",
        ];
        for file in all(&FILES) {
            let name = file.path().display();
            let text = file.contents_utf8().expect("text");
            for word in banned {
                assert!(!text.contains(word), "{name} has {word}");
            }
            let addresses = text.matches("http://").count() + text.matches("https://").count();
            let allowed = text.matches("http://www.w3.org/").count();
            assert_eq!(addresses, allowed, "{name} contains an address");
            assert!(
                !text.contains(" style=\"") && !text.contains(" onclick"),
                "{name} has an inline style or handler"
            );
        }
    }

    #[test]
    fn only_the_clock_module_reads_the_clock() {
        for file in all(&FILES)
            .into_iter()
            .filter(|file| !file.path().ends_with("js/clock.js"))
        {
            let name = file.path().display();
            let text = file.contents_utf8().expect("text");
            let text: String = text.split_whitespace().collect();
            for reading in [
                "Date.now",
                "newDate()",
                "newDate;",
                "Date()",
                "timeOrigin",
                "Temporal.",
            ] {
                assert!(!text.contains(reading), "{name} has {reading}");
            }
        }
        assert!(FILES.get_file("js/clock.js").is_some());
    }

    #[test]
    fn files_are_served_only_under_their_hash() {
        let assets = Assets::new();
        let status = |path: &str| assets.file(path).status();
        let script = format!("/assets/{}/js/main.js", assets.hash);
        assert_eq!(status(&script), StatusCode::OK);
        assert!(assets.page.contains(&script) && !assets.page.contains(PLACE));
        for path in [
            "/assets/js/main.js",
            "/assets/0/js/main.js",
            "/assets/",
            "/assets/../Cargo.toml",
        ] {
            assert_eq!(status(path), StatusCode::NOT_FOUND, "{path}");
        }
        assert_eq!(
            status(&format!("/assets/{}/index.html", assets.hash)),
            StatusCode::NOT_FOUND
        );
    }
}
