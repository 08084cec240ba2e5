//! Renders explanations as Graphviz DOT.

use std::fmt::Write;

use super::Explained;
use super::picture::{ArrowKind, Picture, build_pictures, caption};

/// Renders the graphs of an explanation, concatenated as `dot` reads them.
pub fn render(explained: Explained<'_>) -> String {
    build_pictures(explained).iter().map(render_graph).collect()
}

pub fn render_graph(picture: &Picture<'_>) -> String {
    let mut out = String::from("digraph explanation {\n");
    let text: Vec<String> =
        picture.title.iter().chain(&picture.notes).chain(&picture.rules).cloned().collect();
    // Writing to a string cannot fail, here and below.
    let _ = writeln!(out, "  label={};", quote_lines(&text, "\\l"));
    out.push_str("  labelloc=\"t\"; labeljust=\"l\"; newrank=true; nodesep=1.2; ranksep=0.7;\n");
    out.push_str("  fontname=\"monospace\"; node [shape=box, style=\"rounded,filled\", fillcolor=\"#f7f7f7\", fontname=\"monospace\"];\n");
    out.push_str("  edge [fontname=\"monospace\", fontsize=11];\n");
    for (index, column) in picture.columns.iter().enumerate() {
        let _ = writeln!(out, "  subgraph cluster_{index} {{");
        let _ = writeln!(
            out,
            "    label={}; color=\"#cccccc\";",
            quote_lines(std::slice::from_ref(&column.title), "\\n")
        );
        for event in &column.events {
            let marked = if picture.highlighted.contains(event) {
                format!(", color=\"{}\", penwidth=2.4, fillcolor=\"#fff4ec\"", ArrowKind::Broken.colour())
            } else {
                String::new()
            };
            let _ = writeln!(
                out,
                "    e{event} [label={}{marked}];",
                quote_lines(&caption(picture.execution, *event), "\\l")
            );
        }
        if column.has_program_order {
            for pair in column.events.windows(2) {
                let _ = writeln!(out, "    e{} -> e{} [color=\"#bbbbbb\", weight=20];", pair[0], pair[1]);
            }
        }
        out.push_str("  }\n");
    }
    for arrow in &picture.arrows {
        let colour = arrow.kind.colour();
        let is_emphasized = matches!(arrow.kind, ArrowKind::Broken | ArrowKind::Race);
        let style = match (is_emphasized, arrow.kind) {
            (_, ArrowKind::Race) => "dashed",
            (_, ArrowKind::FromReads | ArrowKind::Derived | ArrowKind::Synchronizes) => "dashed",
            (_, ArrowKind::Modification) => "dotted",
            _ => "solid",
        };
        let head = if arrow.kind == ArrowKind::Race { ", dir=none" } else { "" };
        let _ = writeln!(
            out,
            "  e{} -> e{} [label={}, color=\"{colour}\", fontcolor=\"{colour}\", style={style}, penwidth={}, \
             constraint=false{head}];",
            arrow.from,
            arrow.to,
            quote_lines(&arrow.label, "\\n"),
            if is_emphasized { 2.6 } else { 1.3 },
        );
    }
    out.push_str("}\n");
    out
}

/// Returns a quoted string of lines, each ended by `end`.
fn quote_lines(lines: &[String], end: &str) -> String {
    let mut out = String::from("\"");
    for (index, line) in lines.iter().enumerate() {
        for c in line.chars() {
            match c {
                '"' => out.push_str("\\\""),
                '\\' => out.push_str("\\\\"),
                c if c.is_control() => out.push(' '),
                c => out.push(c),
            }
        }
        if end == "\\l" || index + 1 < lines.len() {
            out.push_str(end);
        }
    }
    out.push('"');
    out
}
