//! PDF output for papers: vector graphics with text as outlines.

use std::fmt::Write;

use resvg::tiny_skia::{PathSegment, Transform};
use resvg::usvg::{Group, Node, Paint, Path, Tree};

/// Points per pixel.
const SCALE: f32 = 0.75;

/// Converts a drawing with plain colours.
pub fn pdf(tree: &Tree) -> Vec<u8> {
    let width = tree.size().width() * SCALE;
    let height = tree.size().height() * SCALE;
    // The origin of a page is at its lower left.
    let mut drawing = format!("{SCALE} 0 0 -{SCALE} 0 {height} cm\n");
    paint(tree.root(), Transform::identity(), &mut drawing);
    let objects = [
        "<< /Type /Catalog /Pages 2 0 R >>".to_owned(),
        "<< /Type /Pages /Kids [3 0 R] /Count 1 >>".to_owned(),
        format!(
            "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 {width} {height}] /Contents 4 0 R /Resources << >> >>"
        ),
        format!(
            "<< /Length {} >>\nstream\n{drawing}endstream",
            drawing.len()
        ),
    ];
    let mut file = "%PDF-1.4\n".to_owned();
    let mut places = Vec::new();
    for (number, object) in (1..).zip(&objects) {
        places.push(file.len());
        add(
            &mut file,
            format_args!("{number} 0 obj\n{object}\nendobj\n"),
        );
    }
    let table = file.len();
    add(
        &mut file,
        format_args!("xref\n0 {}\n0000000000 65535 f \n", objects.len() + 1),
    );
    for place in &places {
        add(&mut file, format_args!("{place:010} 00000 n \n"));
    }
    add(
        &mut file,
        format_args!(
            "trailer\n<< /Size {} /Root 1 0 R >>\nstartxref\n{table}\n%%EOF\n",
            objects.len() + 1
        ),
    );
    file.into_bytes()
}

fn add(text: &mut String, more: std::fmt::Arguments<'_>) {
    // Writing to a string cannot fail.
    let _ = text.write_fmt(more);
}

fn paint(group: &Group, around: Transform, drawing: &mut String) {
    let transform = around.pre_concat(group.transform());
    for node in group.children() {
        match node {
            Node::Group(group) => paint(group, transform, drawing),
            Node::Path(path) => trace(path, transform, drawing),
            Node::Text(text) => paint(text.flattened(), transform, drawing),
            Node::Image(_) => {}
        }
    }
}

fn trace(path: &Path, transform: Transform, drawing: &mut String) {
    add(
        drawing,
        format_args!(
            "q {} {} {} {} {} {} cm\n",
            transform.sx, transform.ky, transform.kx, transform.sy, transform.tx, transform.ty
        ),
    );
    let mut at = (0.0, 0.0);
    let mut first = (0.0, 0.0);
    for segment in path.data().segments() {
        match segment {
            PathSegment::MoveTo(to) => {
                add(drawing, format_args!("{} {} m\n", to.x, to.y));
                (at, first) = ((to.x, to.y), (to.x, to.y));
            }
            PathSegment::LineTo(to) => {
                add(drawing, format_args!("{} {} l\n", to.x, to.y));
                at = (to.x, to.y);
            }
            // PDF has cubic curves only.
            PathSegment::QuadTo(by, to) => {
                let third = |from: f32, by: f32| from + (by - from) * 2.0 / 3.0;
                let one = (third(at.0, by.x), third(at.1, by.y));
                let two = (third(to.x, by.x), third(to.y, by.y));
                add(
                    drawing,
                    format_args!(
                        "{} {} {} {} {} {} c\n",
                        one.0, one.1, two.0, two.1, to.x, to.y
                    ),
                );
                at = (to.x, to.y);
            }
            PathSegment::CubicTo(one, two, to) => {
                add(
                    drawing,
                    format_args!(
                        "{} {} {} {} {} {} c\n",
                        one.x, one.y, two.x, two.y, to.x, to.y
                    ),
                );
                at = (to.x, to.y);
            }
            PathSegment::Close => {
                drawing.push_str("h\n");
                at = first;
            }
        }
    }
    let fill = path.fill().and_then(|fill| colour(fill.paint()));
    let stroke = path
        .stroke()
        .and_then(|stroke| Some((stroke, colour(stroke.paint())?)));
    if let Some(colour) = &fill {
        add(drawing, format_args!("{colour} rg\n"));
    }
    if let Some((stroke, colour)) = &stroke {
        add(
            drawing,
            format_args!("{colour} RG {} w 1 j\n", stroke.width().get()),
        );
        if let Some(dashes) = stroke.dasharray() {
            let dashes: Vec<String> = dashes.iter().map(f32::to_string).collect();
            add(
                drawing,
                format_args!("[{}] {} d\n", dashes.join(" "), stroke.dashoffset()),
            );
        }
    }
    drawing.push_str(match (fill.is_some(), stroke.is_some()) {
        (true, true) => "B Q\n",
        (true, false) => "f Q\n",
        (false, true) => "S Q\n",
        (false, false) => "n Q\n",
    });
}

fn colour(paint: &Paint) -> Option<String> {
    let Paint::Color(colour) = paint else {
        return None;
    };
    let share = |part: u8| f32::from(part) / 255.0;
    Some(format!(
        "{:.3} {:.3} {:.3}",
        share(colour.red),
        share(colour.green),
        share(colour.blue)
    ))
}
