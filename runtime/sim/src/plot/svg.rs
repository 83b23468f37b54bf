//! SVG primitives of the figures.

use std::fmt::Write;

/// The alignment of a label at its point.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Anchor {
    Start,
    Middle,
    End,
}

/// A line style, in pixels; without dashes it is solid.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Stroke {
    pub colour: &'static str,
    pub width: f64,
    pub dashes: &'static [u32],
}

/// The shape of a mark; distinguishes series without colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mark {
    Circle,
    Square,
    Triangle,
    Diamond,
    Wedge,
    Cross,
}

/// A drawing; later shapes cover earlier ones.
#[derive(Debug, Default)]
pub struct Svg(String);

impl Stroke {
    pub fn solid(colour: &'static str, width: f64) -> Stroke {
        Stroke {
            colour,
            width,
            dashes: &[],
        }
    }

    fn attributes(self) -> String {
        let dashes: Vec<String> = self.dashes.iter().map(u32::to_string).collect();
        let dashes = if dashes.is_empty() {
            String::new()
        } else {
            format!(" stroke-dasharray=\"{}\"", dashes.join(" "))
        };
        format!(
            "stroke=\"{}\" stroke-width=\"{}\"{dashes}",
            self.colour,
            short(self.width)
        )
    }
}

impl Svg {
    /// Adds an open line.
    pub fn line(&mut self, points: &[(f64, f64)], stroke: Stroke) {
        self.add(format_args!(
            "<polyline points=\"{}\" fill=\"none\" stroke-linejoin=\"round\" {}/>",
            joined(points),
            stroke.attributes()
        ));
    }

    /// Adds a closed shape with an outline.
    pub fn shape(&mut self, points: &[(f64, f64)], fill: &str, stroke: Stroke) {
        self.add(format_args!(
            "<polygon points=\"{}\" fill=\"{fill}\" {}/>",
            joined(points),
            stroke.attributes()
        ));
    }

    /// Adds a filled or hollow mark.
    pub fn mark(
        &mut self,
        mark: Mark,
        at: (f64, f64),
        radius: f64,
        colour: &'static str,
        hollow: bool,
    ) {
        let (x, y) = at;
        let fill = if hollow { "#ffffff" } else { colour };
        let stroke = Stroke::solid(colour, 2.0);
        let around = |points: &[(f64, f64)]| {
            points
                .iter()
                .map(|(a, b)| (x + a * radius, y + b * radius))
                .collect()
        };
        let points: Vec<(f64, f64)> = match mark {
            Mark::Circle => {
                let x = short(x);
                let y = short(y);
                let radius = short(radius);
                self.add(format_args!(
                    "<circle cx=\"{x}\" cy=\"{y}\" r=\"{radius}\" fill=\"{fill}\" {}/>",
                    stroke.attributes()
                ));
                return;
            }
            Mark::Square => around(&[(-0.9, -0.9), (0.9, -0.9), (0.9, 0.9), (-0.9, 0.9)]),
            Mark::Triangle => around(&[(0.0, -1.2), (1.1, 0.8), (-1.1, 0.8)]),
            Mark::Diamond => around(&[(0.0, -1.3), (1.3, 0.0), (0.0, 1.3), (-1.3, 0.0)]),
            Mark::Wedge => around(&[(0.0, 1.2), (1.1, -0.8), (-1.1, -0.8)]),
            Mark::Cross => around(&[
                (-1.0, -0.4),
                (-0.4, -0.4),
                (-0.4, -1.0),
                (0.4, -1.0),
                (0.4, -0.4),
                (1.0, -0.4),
                (1.0, 0.4),
                (0.4, 0.4),
                (0.4, 1.0),
                (-0.4, 1.0),
                (-0.4, 0.4),
                (-1.0, 0.4),
            ]),
        };
        self.shape(&points, fill, stroke);
    }

    /// Adds text, 13 pixels high.
    pub fn text(&mut self, at: (f64, f64), anchor: Anchor, words: &str) {
        self.words(
            &format!("x=\"{}\" y=\"{}\"", short(at.0), short(at.1)),
            anchor,
            "#000000",
            words,
        );
    }

    /// Adds coloured text.
    pub fn coloured(&mut self, at: (f64, f64), anchor: Anchor, colour: &str, words: &str) {
        self.words(
            &format!("x=\"{}\" y=\"{}\"", short(at.0), short(at.1)),
            anchor,
            colour,
            words,
        );
    }

    /// Adds text rotated to read from below.
    pub fn upward(&mut self, at: (f64, f64), words: &str) {
        let place = format!(
            "transform=\"translate({} {}) rotate(-90)\"",
            short(at.0),
            short(at.1)
        );
        self.words(&place, Anchor::Middle, "#000000", words);
    }

    fn words(&mut self, place: &str, anchor: Anchor, colour: &str, words: &str) {
        let anchor = match anchor {
            Anchor::Start => "start",
            Anchor::Middle => "middle",
            Anchor::End => "end",
        };
        self.add(format_args!(
            "<text {place} text-anchor=\"{anchor}\" font-family=\"sans-serif\" font-size=\"13\" fill=\"{colour}\">{}</text>",
            escaped(words)
        ));
    }

    fn add(&mut self, shape: std::fmt::Arguments<'_>) {
        // Writing to a string cannot fail.
        let _ = writeln!(self.0, "{shape}");
    }

    /// Returns the SVG file. The title is for screen readers and is not drawn.
    pub fn finish(self, size: (f64, f64), title: &str) -> String {
        let (width, height) = size;
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" viewBox=\"0 0 {width} {height}\" role=\"img\">\n\
             <title>{}</title>\n<rect width=\"{width}\" height=\"{height}\" fill=\"#ffffff\"/>\n{}</svg>\n",
            escaped(title),
            self.0
        )
    }
}

fn joined(points: &[(f64, f64)]) -> String {
    let mut text = String::new();
    for (number, (x, y)) in points.iter().enumerate() {
        let gap = if number == 0 { "" } else { " " };
        // Writing to a string cannot fail.
        let _ = write!(text, "{gap}{},{}", short(*x), short(*y));
    }
    text
}

/// Rounds a length to a tenth of a pixel.
fn short(length: f64) -> f64 {
    (length * 10.0).round() / 10.0
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}
