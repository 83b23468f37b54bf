//! PNG and PDF versions of the simulator's figures. The font is embedded, so that figures are equal on all machines.

mod pdf;

use std::fs;
use std::path::Path;
use std::sync::Arc;

use napreduce_sim::plot::PlotError;
use resvg::tiny_skia::{Pixmap, Transform};
use resvg::usvg::fontdb::Database;
use resvg::usvg::{Options, Tree};

use pdf::pdf;

/// The Latin part of DejaVu Sans, with the symbols that figures use (`fonts/README.md`).
const FONT: &[u8] = include_bytes!("../../fonts/DejaVuSans.ttf");
const FAMILY: &str = "DejaVu Sans";
/// PNG pixels per figure pixel.
const SCALE: f32 = 2.0;

/// Writes `NAME.png`, at double resolution, and `NAME.pdf` for a figure `NAME.svg`.
///
/// # Errors
/// Fails if the figure cannot be read or a file cannot be written.
pub fn pictures(figure: &Path) -> Result<(), PlotError> {
    let path = figure.with_extension("png");
    let failed = |what: String| PlotError {
        path: path.clone(),
        what,
    };
    let svg = fs::read_to_string(figure).map_err(text).map_err(failed)?;
    let mut fonts = Database::new();
    fonts.load_font_data(FONT.to_vec());
    fonts.set_sans_serif_family(FAMILY);
    let options = Options {
        fontdb: Arc::new(fonts),
        font_family: FAMILY.to_owned(),
        ..Options::default()
    };
    let tree = Tree::from_str(&svg, &options)
        .map_err(text)
        .map_err(failed)?;
    let size = tree.size();
    let pixels = |length: f32| (length * SCALE).ceil() as u32;
    let mut picture = Pixmap::new(pixels(size.width()), pixels(size.height()))
        .ok_or_else(|| failed("the figure has no size".to_owned()))?;
    resvg::render(
        &tree,
        Transform::from_scale(SCALE, SCALE),
        &mut picture.as_mut(),
    );
    let bytes = picture.encode_png().map_err(text).map_err(failed)?;
    fs::write(&path, bytes).map_err(text).map_err(failed)?;
    let path = figure.with_extension("pdf");
    let failed = |error: std::io::Error| PlotError {
        path: path.clone(),
        what: error.to_string(),
    };
    fs::write(&path, pdf(&tree)).map_err(failed)
}

fn text(error: impl ToString) -> String {
    error.to_string()
}

#[cfg(test)]
mod tests {
    use napreduce_sim::plot::{Series, distributions};

    use super::*;

    #[test]
    fn pictures_include_text() {
        let folder = tempfile::tempdir().expect("a temporary directory");
        let drawn = |name: &str| {
            let figure = folder.path().join("a.svg");
            let series = Series {
                name: name.to_owned(),
                points: vec![(1.0, 0.5), (9.0, 1.0)],
            };
            distributions(&figure, "Sojourn times", &[series]).expect("the figure is written");
            pictures(&figure).expect("the pictures are written");
            let pdf = fs::read(figure.with_extension("pdf")).expect("the PDF is readable");
            assert!(pdf.starts_with(b"%PDF-1.4") && pdf.ends_with(b"%%EOF\n"));
            let text = String::from_utf8(pdf).expect("the PDF is ASCII");
            let table = text
                .split("xref\n0 5\n")
                .nth(1)
                .expect("the PDF has a cross-reference table");
            for (number, line) in table.lines().take(5).enumerate().skip(1) {
                let place: usize = line[..10].parse().expect("an offset");
                assert!(
                    text[place..].starts_with(&format!("{number} 0 obj")),
                    "{line}"
                );
            }
            let picture = Pixmap::load_png(figure.with_extension("png")).expect("the PNG is valid");
            assert_eq!((picture.width(), picture.height()), (1_920, 1_080));
            picture
                .pixels()
                .iter()
                .filter(|pixel| pixel.red() < 128)
                .count()
        };
        let short = drawn("I");
        let long = drawn("Fair with sizes that are wrong, α = 0.5");
        assert!(
            short > 1_000 && long > short + 500,
            "{short} and {long} dark pixels"
        );
    }

    #[test]
    fn missing_figure_is_reported() {
        let folder = tempfile::tempdir().expect("a temporary directory");
        let error = pictures(&folder.path().join("gone.svg"))
            .expect_err("the figure is missing")
            .to_string();
        assert!(error.contains("gone.png"), "{error}");
    }
}
