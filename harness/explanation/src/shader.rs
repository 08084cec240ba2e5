//! Renders the findings on shaders as an HTML page or as SVG: the invocations, the source around each location, the
//! reason and the fix.

use std::fmt::Write;

use results::wire::{FindingPlace, FindingRecord};
use results::write::change::describe_placed_change;

use crate::html::{self, STYLE};
use crate::layout::text_width;
use crate::picture::ArrowKind;
use crate::svg::{self, MARGIN, draw_text, escape};

/// Number of context lines around a location.
const CONTEXT_LINES: u32 = 3;

/// Result for an entry point.
#[derive(Clone, Debug)]
pub struct ShaderAnswer {
    /// Name of the entry point.
    pub title: String,
    /// The answer in a word or two.
    pub verdict: String,
    /// Coverage of the analysis, and its limits.
    pub notes: Vec<String>,
    pub findings: Vec<ShaderFinding>,
}

/// A finding with what its picture and its text need.
#[derive(Clone, Debug)]
pub struct ShaderFinding {
    pub record: FindingRecord,
    /// The kind of the finding in words.
    pub heading: String,
    /// True if the two locations are accesses that no order of the model separates.
    pub is_race: bool,
    /// Why the accesses are not ordered, if known.
    pub reason: Option<String>,
    /// The fix as a unified diff, if it consists of insertions.
    pub diff: Option<String>,
    /// The file of each place, with its text if available.
    pub sources: Vec<(String, Option<String>)>,
}

impl ShaderFinding {
    /// Returns the places with their files.
    fn places(&self) -> impl Iterator<Item = (&FindingPlace, &(String, Option<String>))> {
        self.record.at.iter().zip(&self.sources)
    }

    /// Returns the changes of the fix with their locations, each as a sentence.
    fn fixes(&self) -> impl Iterator<Item = String> {
        let lead = |number| if number == 0 { "Fix: " } else { "and " };
        let changes = self.record.changes().iter().enumerate();
        changes.map(move |(number, change)| format!("{}{}", lead(number), describe_placed_change(change)))
    }
}

/// Writes the page of these answers; `command` is the command line that repeats them.
pub fn render_page(answers: &[ShaderAnswer], command: &str) -> String {
    let mut page = page_start(&answers.first().map_or_else(|| "Shaders".to_owned(), headline));
    answers.iter().for_each(|answer| render_answer(&mut page, answer, "h1"));
    page + &page_end(command)
}

/// Returns the part of a page before its contents.
pub(crate) fn page_start(title: &str) -> String {
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<title>{0}</title>\n\
         <meta name=\"viewport\" content=\"width=device-width\">\n<meta property=\"og:title\" content=\"{0}\">\n\
         <style>{STYLE} \
         .places {{ display: flex; flex-wrap: wrap; gap: 1em }} .places div {{ flex: 1 1 30em; min-width: 0 }} \
         .command {{ white-space: pre-wrap; overflow-wrap: anywhere }}</style>\n</head>\n<body>\n<main>\n",
        escape(title)
    )
}

/// Returns the part of a page after its contents: the command line that repeats it.
pub(crate) fn page_end(command: &str) -> String {
    format!(
        "<h2>Reproduce</h2>\n<pre class=\"command\">{}</pre>\n</main>\n</body>\n</html>\n",
        escape(command)
    )
}

/// Writes the answer about an entry point below a heading.
pub(crate) fn render_answer(page: &mut String, answer: &ShaderAnswer, heading: &str) {
    *page += &format!("<{heading}>{}</{heading}>\n", escape(&headline(answer)));
    for note in &answer.notes {
        *page += &format!("<p>{}</p>\n", html::escape_prose(note));
    }
    answer.findings.iter().for_each(|one| render_finding(page, one));
}

/// Writes one picture of the findings, one below the other.
pub fn render_svg(answers: &[ShaderAnswer]) -> String {
    let pictures: Vec<FindingPicture<'_>> =
        answers.iter().flat_map(|answer| &answer.findings).map(FindingPicture::new).collect();
    let title = answers.first().map_or_else(String::new, headline);
    let width = pictures.iter().map(FindingPicture::width).fold(svg::MIN_WIDTH, f64::max) + 2.0 * MARGIN;
    let (mut body, mut y) = (String::new(), MARGIN);
    for answer in answers {
        y = draw_text(&mut body, &headline(answer), y, width, "bold");
        for finding in &answer.findings {
            y = FindingPicture::new(finding).draw(&mut body, y + MARGIN, width, true);
        }
        y += MARGIN;
    }
    svg::wrap_document(&title, width, y, "", &body)
}

fn headline(answer: &ShaderAnswer) -> String {
    format!("{}: {}", answer.title, answer.verdict)
}

fn render_finding(page: &mut String, finding: &ShaderFinding) {
    *page += &format!(
        "<h2>{}</h2>\n<p>{}</p>\n",
        escape(&finding.heading),
        html::escape_prose(&finding.record.message)
    );
    if let Some(reason) = &finding.reason {
        *page += &format!("<p>{}</p>\n", html::escape_prose(reason));
    }
    if !finding.record.at.is_empty() {
        let picture = FindingPicture::new(finding);
        let width = picture.width() + 2.0 * MARGIN;
        let mut body = String::new();
        let height = picture.draw(&mut body, 0.0, width, false);
        let drawn = svg::wrap_document(&finding.record.message, width, height + MARGIN, "", &body);
        *page += &format!("<div class=\"picture\" tabindex=\"0\">\n{drawn}</div>\n<div class=\"places\">\n");
        finding.places().for_each(|(place, source)| render_place(page, place, source));
        *page += "</div>\n";
    }
    for change in finding.fixes() {
        *page += &format!("<p>{}</p>\n", html::escape_prose(&change));
    }
    if let Some(diff) = &finding.diff {
        *page += &html::render_diff(diff);
    }
}

fn render_place(page: &mut String, place: &FindingPlace, (file, source): &(String, Option<String>)) {
    let number = place.line.map_or(String::new(), |line| format!(":{line}"));
    let by = place.invocation.as_deref().map(|by| format!(" by invocation {by}")).unwrap_or_default();
    let event = place.access.as_deref().unwrap_or("reached");
    *page += &format!("<div>\n<p>{event}{} at {}{number}</p>\n", escape(&by), escape(file));
    if let (Some(line), Some(source)) = (place.line, source) {
        *page += "<pre tabindex=\"0\">";
        for (number, text) in (1..).zip(source.lines()) {
            if number + CONTEXT_LINES < line || number > line + CONTEXT_LINES {
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

/// A finding as a picture: a column for each location, and between the accesses of a race a dashed line.
struct FindingPicture<'a> {
    finding: &'a ShaderFinding,
    /// The texts of each column: the invocation, the event, the source line.
    columns: Vec<[String; 3]>,
    column_width: f64,
}

/// The longest source line of a picture, in characters.
const MAX_CODE_LENGTH: usize = 56;
/// Width between two columns, which holds the label of the line.
const COLUMN_GAP: f64 = 170.0;
const HEADER_HEIGHT: f64 = 22.0;
const BOX: f64 = 48.0;

impl FindingPicture<'_> {
    fn new(finding: &ShaderFinding) -> FindingPicture<'_> {
        let column = |(place, (_, source)): (&FindingPlace, &(String, Option<String>))| {
            let invocation = place.invocation.as_deref().map(|by| format!("invocation {by}"));
            let index = place.line.and_then(|line| (line as usize).checked_sub(1));
            let code = index.and_then(|index| source.as_ref()?.lines().nth(index)).unwrap_or_default().trim();
            let cut: String = code.chars().take(MAX_CODE_LENGTH).collect();
            let code = if cut.len() < code.len() { format!("{cut}…") } else { cut };
            let line = place.line.map_or(String::new(), |line| format!(", line {line}"));
            let event = format!("{}{line}", place.access.as_deref().unwrap_or("here"));
            [invocation.unwrap_or_default(), event, code]
        };
        let columns: Vec<_> = finding.places().map(column).collect();
        let widest = columns.iter().flatten().map(|text| text_width(text)).fold(120.0, f64::max);
        FindingPicture { finding, columns, column_width: widest + 20.0 }
    }

    fn width(&self) -> f64 {
        let count = self.columns.len() as f64;
        count * self.column_width + (count - 1.0).max(0.0) * COLUMN_GAP
    }

    /// Draws the picture below `y`, optionally with message, reason and fix as text, and returns its lower end.
    fn draw(&self, out: &mut String, mut y: f64, width: f64, with_text: bool) -> f64 {
        if with_text {
            y = draw_text(
                out,
                &format!("{}: {}", self.finding.heading, self.finding.record.message),
                y,
                width,
                "bold",
            );
        }
        let left = ((width - self.width()) / 2.0).max(MARGIN);
        let top = y + HEADER_HEIGHT + 10.0;
        let x = |index: usize| left + index as f64 * (self.column_width + COLUMN_GAP);
        let (race, middle) = (ArrowKind::Race, top + BOX / 2.0);
        for (index, [invocation, event, code]) in self.columns.iter().enumerate() {
            let (x, stroke) = (x(index), if self.finding.is_race { race.colour() } else { "#888888" });
            // Writing to a string cannot fail.
            let _ = write!(
                out,
                "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\" fill=\"#333333\" font-weight=\"bold\">{}</text>\n\
                 <rect x=\"{x:.1}\" y=\"{top:.1}\" width=\"{:.1}\" height=\"{BOX:.1}\" rx=\"5\" fill=\"#fff4ec\" \
                 stroke=\"{stroke}\" stroke-width=\"1.6\"/>\n\
                 <text x=\"{:.1}\" y=\"{:.1}\" fill=\"#000000\">{}</text>\n\
                 <text x=\"{:.1}\" y=\"{:.1}\" fill=\"#555555\" xml:space=\"preserve\">{}</text>\n",
                x + self.column_width / 2.0,
                top - 10.0,
                escape(invocation),
                self.column_width,
                x + 10.0,
                top + 19.0,
                escape(event),
                x + 10.0,
                top + 37.0,
                escape(code),
            );
        }
        if let (true, [_, _]) = (self.finding.is_race, &self.columns[..]) {
            let (from, to) = (x(0) + self.column_width, x(1));
            let _ = write!(
                out,
                "<path d=\"M{from:.1} {middle:.1} L{to:.1} {middle:.1}\" fill=\"none\" stroke=\"{0}\" stroke-width=\"2.6\" \
                 stroke-dasharray=\"{1}\"/>\n\
                 <text x=\"{2:.1}\" y=\"{3:.1}\" text-anchor=\"middle\" font-size=\"11\" font-weight=\"bold\" \
                 fill=\"{0}\">{4}</text>\n",
                race.colour(),
                race.dashes(),
                (from + to) / 2.0,
                middle - 8.0,
                escape(race.legend()),
            );
        }
        y = if self.columns.is_empty() { y } else { top + BOX };
        if with_text {
            for line in self.finding.reason.iter().cloned().chain(self.finding.fixes()) {
                y = draw_text(out, &line, y + 4.0, width, "normal");
            }
        }
        y
    }
}
