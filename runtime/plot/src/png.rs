//! Figures as pixels, for slides and chats that take no SVG.
//!
//! Owns the way from the one to the other, with a font of its own, so that a figure is the same on every
//! machine. Does not own what is drawn.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use resvg::tiny_skia::{Pixmap, Transform};
use resvg::usvg::fontdb::Database;
use resvg::usvg::{Options, Tree};

use crate::drawing::{PlotError, text};

/// The Latin part of DejaVu Sans, with the signs that figures use (`fonts/README.md`).
const FONT: &[u8] = include_bytes!("../fonts/DejaVuSans.ttf");
const FAMILY: &str = "DejaVu Sans";
/// Pixels for each of the figure.
const SCALE: f32 = 2.0;

/// Writes `NAME.png` beside a figure `NAME.svg`, twice as wide and as high.
///
/// # Errors
/// When the figure cannot be read or the picture cannot be written.
pub fn png(figure: &Path) -> Result<(), PlotError> {
    let path = figure.with_extension("png");
    let failed = |what: String| PlotError { path: path.clone(), what };
    let svg = fs::read_to_string(figure).map_err(text).map_err(failed)?;
    let mut fonts = Database::new();
    fonts.load_font_data(FONT.to_vec());
    fonts.set_sans_serif_family(FAMILY);
    let options = Options { fontdb: Arc::new(fonts), font_family: FAMILY.to_owned(), ..Options::default() };
    let tree = Tree::from_str(&svg, &options).map_err(text).map_err(failed)?;
    let size = tree.size();
    let pixels = |length: f32| (length * SCALE).ceil() as u32;
    let mut picture = Pixmap::new(pixels(size.width()), pixels(size.height()))
        .ok_or_else(|| failed("it has no size".to_owned()))?;
    resvg::render(&tree, Transform::from_scale(SCALE, SCALE), &mut picture.as_mut());
    let bytes = picture.encode_png().map_err(text).map_err(failed)?;
    fs::write(&path, bytes).map_err(text).map_err(failed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Series, distributions};

    #[test]
    fn a_figure_is_drawn_with_its_words() {
        let folder = tempfile::tempdir().expect("a folder");
        let drawn = |title: &str| {
            let figure = folder.path().join("a.svg");
            let series = Series { name: "Fair".to_owned(), points: vec![(1.0, 0.5), (9.0, 1.0)] };
            distributions(&figure, title, &[series]).expect("a figure");
            png(&figure).expect("a picture");
            let picture = Pixmap::load_png(figure.with_extension("png")).expect("a picture that can be read");
            assert_eq!((picture.width(), picture.height()), (1_920, 1_080));
            picture.pixels().iter().filter(|pixel| pixel.red() < 128).count()
        };
        let (short, long) = (drawn("I"), drawn("Sojourn times of jobs, α = 0.5"));
        assert!(short > 1_000 && long > short + 500, "{short} and {long} dark pixels");
    }

    #[test]
    fn what_is_no_figure_is_named() {
        let folder = tempfile::tempdir().expect("a folder");
        let error = png(&folder.path().join("gone.svg")).expect_err("it is not there").to_string();
        assert!(error.contains("gone.png"), "{error}");
    }
}
