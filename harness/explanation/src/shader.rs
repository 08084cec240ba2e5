//! Renders the findings on shaders as an HTML page, each with the surrounding source lines.

use std::fmt::Write;

use crate::html::STYLE;
use crate::svg::escape;

/// Number of context lines around a location.
const AROUND: u32 = 3;

/// Result for an entry point.
#[derive(Clone, Debug)]
pub struct ShaderAnswer {
    /// Name of the entry point.
    pub title: String,
    /// The answer in a word or two.
    pub verdict: String,
    /// Coverage of the analysis, and its limits.
    pub notes: Vec<String>,
    /// The findings.
    pub findings: Vec<ShaderFinding>,
}

/// Something that is wrong.
#[derive(Clone, Debug)]
pub struct ShaderFinding {
    /// Its kind.
    pub kind: String,
    /// In words.
    pub message: String,
    /// Where.
    pub places: Vec<ShaderPlace>,
    /// Suggested fixes with their locations.
    pub mend: Vec<String>,
}

/// A place of the source.
#[derive(Clone, Debug)]
pub struct ShaderPlace {
    /// The event, and the invocation that performs it.
    pub what: String,
    /// The file.
    pub file: String,
    /// Line number, if known.
    pub line: Option<u32>,
    /// Text of the file, if available.
    pub source: Option<String>,
}

/// The page of these answers.
pub fn write(answers: &[ShaderAnswer]) -> String {
    let mut page = format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<title>Shaders</title>\n\
         <meta name=\"viewport\" content=\"width=device-width\">\n<style>{STYLE} \
         .places {{ display: flex; flex-wrap: wrap; gap: 1em }} .places div {{ flex: 1 1 30em; min-width: 0 }}\
         </style>\n</head>\n<body>\n"
    );
    for answer in answers {
        page += &format!("<h1>{}: {}</h1>\n", escape(&answer.title), escape(&answer.verdict));
        for note in &answer.notes {
            page += &format!("<p>{}</p>\n", escape(note));
        }
        for finding in &answer.findings {
            page += &format!(
                "<h2>{}</h2>\n<p>{}</p>\n<div class=\"places\">\n",
                escape(&finding.kind),
                escape(&finding.message)
            );
            finding.places.iter().for_each(|one| place(&mut page, one));
            page += "</div>\n";
            for (number, change) in finding.mend.iter().enumerate() {
                let lead = if number == 0 { "Fix: " } else { "and " };
                page += &format!("<p>{lead}{}</p>\n", escape(change));
            }
        }
    }
    page + "</body>\n</html>\n"
}

fn place(page: &mut String, place: &ShaderPlace) {
    let number = place.line.map_or(String::new(), |line| format!(":{line}"));
    *page += &format!("<div>\n<p>{} at {}{number}</p>\n", escape(&place.what), escape(&place.file));
    if let (Some(line), Some(source)) = (place.line, &place.source) {
        *page += "<pre>";
        for (number, text) in (1..).zip(source.lines()) {
            if number + AROUND < line || number > line + AROUND {
                continue;
            }
            let text = format!("<span class=\"number\">{number:>4}  </span>{}", escape(text));
            // Writing to a text does not fail.
            let _ = match number == line {
                true => writeln!(page, "<mark>{text}</mark>"),
                false => writeln!(page, "{text}"),
            };
        }
        *page += "</pre>\n";
    }
    *page += "</div>\n";
}
