//! Renders explanations as SVG: threads as columns, events as boxes, edges as curved arrows.

use std::fmt::Write;

use super::Explained;
use super::layout::{LABEL_LINE_HEIGHT, PictureLayout, lay_out, text_width};
use super::picture::{Arrow, ArrowKind, Picture, build_pictures, caption};

/// The narrowest picture, so that its texts have room.
pub(crate) const MIN_WIDTH: f64 = 640.0;
pub(crate) const MARGIN: f64 = 20.0;
const LINE_HEIGHT: f64 = 18.0;

/// Renders the pictures of an explanation, one above the other.
pub fn render(explained: Explained<'_>) -> String {
    render_document(
        &super::phrases::headline(explained.test, explained.explanation),
        build_pictures(explained),
    )
}

/// Renders pictures, one above the other.
pub fn render_document(title: &str, pictures: Vec<Picture<'_>>) -> String {
    let drawn: Vec<(Picture<'_>, PictureLayout)> = pictures
        .into_iter()
        .map(|picture| {
            let lines = |event: usize| caption(picture.execution, event).to_vec();
            let layout = lay_out(&picture.columns, &picture.arrows, &lines);
            (picture, layout)
        })
        .collect();
    let width = drawn.iter().map(|(_, layout)| layout.width).fold(MIN_WIDTH, f64::max) + 2.0 * MARGIN;
    let mut body = String::new();
    let mut y = MARGIN;
    for (picture, layout) in &drawn {
        y = draw_picture(&mut body, picture, layout, y, width);
    }
    let mut markers = String::new();
    // Writing to a string cannot fail, here and below.
    for kind in ArrowKind::ALL {
        let _ = writeln!(
            markers,
            "<marker id=\"{kind:?}\" viewBox=\"0 0 10 10\" refX=\"9\" refY=\"5\" markerWidth=\"9\" markerHeight=\"9\" \
             markerUnits=\"userSpaceOnUse\" orient=\"auto\"><path d=\"M0 0 L10 5 L0 10 z\" fill=\"{}\"/></marker>",
            kind.colour()
        );
    }
    let _ = writeln!(
        markers,
        "<marker id=\"order\" viewBox=\"0 0 10 10\" refX=\"9\" refY=\"5\" markerWidth=\"8\" markerHeight=\"8\" \
         markerUnits=\"userSpaceOnUse\" orient=\"auto\"><path d=\"M0 0 L10 5 L0 10 z\" fill=\"#bbbbbb\"/></marker>"
    );
    wrap_document(title, width, y, &markers, &body)
}

/// The smallest scale of a picture on a narrow screen: its text stays legible.
const MIN_SCALE: f64 = 0.7;

/// Wraps drawn elements in an SVG document with a title and the definitions of markers.
pub(crate) fn wrap_document(title: &str, width: f64, height: f64, markers: &str, body: &str) -> String {
    // What an image contains has no roles.
    let role = if body.contains("<a ") { "group" } else { "img" };
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width:.0}\" height=\"{height:.0}\" \
         viewBox=\"0 0 {width:.0} {height:.0}\" style=\"max-width:100%;min-width:{:.0}px;height:auto\" \
         font-family=\"DejaVu Sans Mono, Menlo, Consolas, monospace\" \
         font-size=\"12\" role=\"{role}\">\n<title>{}</title>\n\
         <style>@media (prefers-color-scheme: dark) {{ svg {{ filter: invert(.9) hue-rotate(180deg) }} }}</style>\n\
         <defs>\n{markers}</defs>\n<rect width=\"{width:.0}\" height=\"{height:.0}\" fill=\"#ffffff\"/>\n{body}</svg>\n",
        MIN_SCALE * width,
        escape(title)
    )
}

/// Draws a picture below `y` and returns its lower end.
fn draw_picture(
    out: &mut String,
    picture: &Picture<'_>,
    layout: &PictureLayout,
    mut y: f64,
    width: f64,
) -> f64 {
    for (index, title) in picture.title.iter().enumerate() {
        let weight = if index == 0 { "bold" } else { "normal" };
        y = draw_text(out, title, y, width, weight);
    }
    y += 12.0;
    let left = ((width - layout.width) / 2.0).max(0.0);
    let _ = writeln!(out, "<g transform=\"translate({left:.1} {y:.1})\">");
    for ((x, header), column) in layout.headers.iter().zip(&picture.columns) {
        let _ = writeln!(
            out,
            "<text x=\"{x:.1}\" y=\"{header:.1}\" text-anchor=\"middle\" fill=\"#333333\" font-weight=\"bold\">{}</text>",
            escape(&column.title)
        );
        if column.has_program_order {
            draw_program_order(out, layout, &column.events);
        }
    }
    // From the least to the most important, each above the others; boxes above arrows, labels above boxes.
    for (arrow, (curve, _)) in picture.arrows.iter().zip(&layout.arrows).rev() {
        let Some([start, ..]) = curve.0.first() else { continue };
        let mut path = format!("M{:.1} {:.1}", start.0, start.1);
        for [_, b, c, d] in &curve.0 {
            let _ = write!(path, " C{:.1} {:.1} {:.1} {:.1} {:.1} {:.1}", b.0, b.1, c.0, c.1, d.0, d.1);
        }
        let is_emphasized = matches!(arrow.kind, ArrowKind::Broken | ArrowKind::Race);
        let head = if arrow.kind == ArrowKind::Race {
            String::new()
        } else {
            format!(" marker-end=\"url(#{:?})\"", arrow.kind)
        };
        let _ = writeln!(
            out,
            "<path d=\"{path}\" fill=\"none\" stroke=\"{}\" \
             stroke-width=\"{}\" stroke-dasharray=\"{}\"{head}/>",
            arrow.kind.colour(),
            if is_emphasized { 2.6 } else { 1.5 },
            if arrow.kind.dashes().is_empty() { "none" } else { arrow.kind.dashes() },
        );
    }
    for (event, rectangle) in &layout.boxes {
        let is_highlighted = picture.highlighted.contains(event);
        let (stroke, stroke_width, fill) = if is_highlighted {
            (ArrowKind::Broken.colour(), 2.4, "#fff4ec")
        } else {
            ("#888888", 1.0, "#f7f7f7")
        };
        let _ = writeln!(
            out,
            "<rect x=\"{:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"{:.1}\" rx=\"5\" fill=\"{fill}\" stroke=\"{stroke}\" \
             stroke-width=\"{stroke_width}\"/>",
            rectangle.x, rectangle.y, rectangle.width, rectangle.height
        );
        for (line, text) in caption(picture.execution, *event).iter().enumerate() {
            let _ = writeln!(
                out,
                "<text x=\"{:.1}\" y=\"{:.1}\" fill=\"{}\" xml:space=\"preserve\">{}</text>",
                rectangle.x + 10.0,
                rectangle.y + 17.0 + 16.0 * line as f64,
                if line == 0 { "#000000" } else { "#555555" },
                escape(text)
            );
        }
    }
    for (arrow, (_, rectangle)) in picture.arrows.iter().zip(&layout.arrows) {
        let _ = writeln!(
            out,
            "<rect x=\"{:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"{:.1}\" fill=\"#ffffff\" fill-opacity=\"0.92\"/>",
            rectangle.x, rectangle.y, rectangle.width, rectangle.height
        );
        for (line, text) in arrow.label.iter().enumerate() {
            let _ = writeln!(
                out,
                "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\" font-size=\"11\" fill=\"{}\"{}>{}</text>",
                rectangle.x + rectangle.width / 2.0,
                rectangle.y + LABEL_LINE_HEIGHT * (line as f64 + 0.9),
                arrow.kind.colour(),
                if line == 0 { " font-weight=\"bold\"" } else { "" },
                escape(text)
            );
        }
    }
    out.push_str("</g>\n");
    y += layout.height;
    y = draw_legend(out, &picture.arrows, y, width);
    for note in picture.notes.iter().chain(&picture.rules) {
        y = draw_text(out, note, y, width, "normal");
    }
    y + 2.0 * MARGIN
}

fn draw_program_order(out: &mut String, layout: &PictureLayout, events: &[usize]) {
    let rectangle = |event: &usize| layout.boxes.iter().find(|(found, _)| found == event).map(|(_, r)| *r);
    for pair in events.windows(2) {
        let [Some(above), Some(below)] = [rectangle(&pair[0]), rectangle(&pair[1])] else { continue };
        let x = above.x + above.width / 2.0;
        let _ = writeln!(
            out,
            "<path d=\"M{x:.1} {:.1} L{x:.1} {:.1}\" stroke=\"#bbbbbb\" marker-end=\"url(#order)\"/>",
            above.y + above.height,
            below.y
        );
    }
}

/// Draws the legend of the arrows, with as many entries per line as fit.
fn draw_legend(out: &mut String, arrows: &[Arrow], mut y: f64, width: f64) -> f64 {
    let mut x = MARGIN;
    let mut entry = |out: &mut String, colour: &str, dashes: &str, stroke: f64, meaning: &str| {
        let entry_width = 40.0 + text_width(meaning);
        if x > MARGIN && x + entry_width > width - MARGIN {
            x = MARGIN;
            y += LINE_HEIGHT;
        }
        let _ = writeln!(
            out,
            "<path d=\"M{x:.1} {:.1} h30\" stroke=\"{colour}\" stroke-width=\"{stroke}\" stroke-dasharray=\"{}\"/>\
             <text x=\"{:.1}\" y=\"{:.1}\" fill=\"#333333\">{}</text>",
            y + 9.0,
            if dashes.is_empty() { "none" } else { dashes },
            x + 36.0,
            y + 13.0,
            escape(meaning)
        );
        x += entry_width + 22.0;
    };
    let mut has_entries = false;
    for kind in ArrowKind::ALL.into_iter().filter(|kind| arrows.iter().any(|arrow| arrow.kind == *kind)) {
        let stroke = if matches!(kind, ArrowKind::Broken | ArrowKind::Race) { 2.6 } else { 1.5 };
        entry(out, kind.colour(), kind.dashes(), stroke, kind.legend());
        has_entries = true;
    }
    if has_entries {
        entry(out, "#bbbbbb", "", 1.0, "program order");
        y += LINE_HEIGHT + 8.0;
    }
    y
}

/// Draws a wrapped paragraph below `y` and returns its lower end.
pub(crate) fn draw_text(out: &mut String, text: &str, mut y: f64, width: f64, weight: &str) -> f64 {
    let characters = ((width - 2.0 * MARGIN) / text_width("m")).max(20.0) as usize;
    for line in wrap_lines(text, characters) {
        y += LINE_HEIGHT;
        let _ = writeln!(
            out,
            "<text x=\"{MARGIN}\" y=\"{:.1}\" fill=\"#000000\" font-weight=\"{weight}\" xml:space=\"preserve\">{}</text>",
            y - 4.0,
            escape(&line)
        );
    }
    y
}

/// Breaks a text into lines at spaces; later lines are indented as the first and a little more.
fn wrap_lines(text: &str, characters: usize) -> Vec<String> {
    let indent: String = text.chars().take_while(|c| *c == ' ').collect();
    let mut lines: Vec<String> = Vec::new();
    let mut current = indent.clone();
    let mut is_line_empty = true;
    for word in text.split_whitespace() {
        if !is_line_empty && current.chars().count() + 1 + word.chars().count() > characters {
            lines.push(std::mem::replace(&mut current, format!("{indent}  ")));
            is_line_empty = true;
        }
        if !is_line_empty {
            current.push(' ');
        }
        current.push_str(word);
        is_line_empty = false;
    }
    lines.push(current);
    lines
}

/// Escapes text for XML and HTML, and replaces characters that XML cannot represent.
pub fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            '\n' | '\t' => out.push(c),
            c if c.is_control() || matches!(c, '\u{fffe}' | '\u{ffff}') => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
}
