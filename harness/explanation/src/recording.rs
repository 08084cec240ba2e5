//! Renders the answers about a recorded program as an HTML page: the queues of each process with their commands, barriers and
//! hazards as SVG, then each hazard and each shader.
//!
//! Time goes down, and each queue is a column. Of a long recording the picture has the commands of hazards with their neighbours and the
//! first commands, up to [`MAX_ROWS`]; the rest are counted.

use std::collections::BTreeSet;
use std::fmt::Write;

use crate::html;
use crate::shader::{ShaderAnswer, page_end, page_start, render_answer};
use crate::svg::{MARGIN, escape, wrap_document};

/// The answers about a recording.
#[derive(Clone, Debug)]
pub struct RecordingPage {
    pub title: String,
    /// The counts, as text.
    pub summary: String,
    pub processes: Vec<ProcessPicture>,
    pub hazards: Vec<HazardSection>,
    /// Column heads, then the rows.
    pub kinds: Vec<Vec<String>>,
    pub shaders: Vec<ShaderAnswer>,
}

/// A process with its commands in order.
#[derive(Clone, Debug)]
pub struct ProcessPicture {
    pub title: String,
    pub queues: Vec<String>,
    pub commands: Vec<TimelineCommand>,
    pub hazards: Vec<HazardMark>,
}

/// A command of a timeline.
#[derive(Clone, Debug)]
pub struct TimelineCommand {
    /// Index of its queue.
    pub queue: usize,
    pub submission: u64,
    pub text: String,
    pub class: CommandClass,
}

/// The class of a command in the timeline, which decides its colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CommandClass {
    Dispatch,
    RacyDispatch,
    Other,
    Barrier,
    RedundantBarrier,
}

/// A hazard in a timeline.
#[derive(Clone, Copy, Debug)]
pub struct HazardMark {
    /// Index of its section.
    pub section: usize,
    /// Index of the first command.
    pub first: usize,
    /// Index of the second command; none for the host.
    pub second: Option<usize>,
    pub is_possible: bool,
}

/// A hazard with its commands, the missing order and the fix.
#[derive(Clone, Debug)]
pub struct HazardSection {
    pub title: String,
    pub text: String,
}

/// Writes the page; `command` is the command line that repeats it.
pub fn render(recording: &RecordingPage, command: &str) -> String {
    let mut page = page_start(&recording.title);
    page += &format!("<h1>{}</h1>\n<pre>{}</pre>\n", escape(&recording.title), escape(&recording.summary));
    for process in &recording.processes {
        let (title, picture) = (escape(&process.title), draw(process));
        page += &format!("<h2>{title}</h2>\n<div class=\"picture\">\n{picture}</div>\n");
    }
    for (number, hazard) in (1..).zip(&recording.hazards) {
        let (title, text) = (escape(&hazard.title), escape(&hazard.text));
        page += &format!("<h2 id=\"hazard-{number}\">{number}. {title}</h2>\n");
        page += &format!("<pre class=\"command\">{text}</pre>\n");
    }
    page += "<h2>Shaders</h2>\n<div class=\"picture\">\n<table>\n";
    for (number, row) in recording.kinds.iter().enumerate() {
        let tag = if number == 0 { "th" } else { "td" };
        let cells =
            row.iter().map(|cell| format!("<{tag} align=\"left\">{}</{tag}>", html::escape_prose(cell)));
        page += &format!("<tr>{}</tr>\n", cells.collect::<String>());
    }
    page += "</table>\n</div>\n";
    recording.shaders.iter().for_each(|shader| render_answer(&mut page, shader, "h2"));
    page + &page_end(command)
}

/// Upper bound on the drawn commands.
const MAX_ROWS: usize = 160;
/// Commands around a hazard that are drawn.
const CONTEXT: usize = 3;
const COLUMN_WIDTH: f64 = 400.0;
const COLUMN_GAP: f64 = 16.0;
const ROW_HEIGHT: f64 = 26.0;
const BOX_HEIGHT: f64 = 20.0;
/// Width of the space for the line of one hazard.
const LANE_WIDTH: f64 = 26.0;
const MAX_LANES: usize = 6;
/// The longest text of a command, in characters.
const MAX_TEXT: usize = 52;

/// Returns the commands to draw: those of hazards with their neighbours, then the first ones.
fn drawn_commands(process: &ProcessPicture) -> BTreeSet<usize> {
    let count = process.commands.len();
    let mut drawn = BTreeSet::new();
    let ends = process.hazards.iter().flat_map(|mark| std::iter::once(mark.first).chain(mark.second));
    for end in ends {
        if drawn.len() < MAX_ROWS {
            drawn.extend(end.saturating_sub(CONTEXT)..count.min(end.saturating_add(CONTEXT + 1)));
        }
    }
    let free = MAX_ROWS.saturating_sub(drawn.len());
    let others: Vec<usize> = (0..count).filter(|index| !drawn.contains(index)).take(free).collect();
    drawn.extend(others);
    drawn
}

/// Draws a process.
fn draw(process: &ProcessPicture) -> String {
    let lanes = process.hazards.len().min(MAX_LANES) as f64;
    let column_x = |queue: usize| MARGIN + queue as f64 * (COLUMN_WIDTH + COLUMN_GAP);
    let right = column_x(process.queues.len().max(1)) - COLUMN_GAP;
    let width = right + lanes * LANE_WIDTH + MARGIN;
    let (mut body, mut y) = (String::new(), MARGIN + 10.0);
    // Writing to a string cannot fail, here and below.
    for (queue, name) in process.queues.iter().enumerate() {
        let (x, name) = (column_x(queue), escape(name));
        let _ = writeln!(body, "<text x=\"{x:.1}\" y=\"{y:.1}\" font-weight=\"bold\">{name}</text>");
    }
    y += 12.0;
    let (mut rows, mut boxes) = (Vec::new(), String::new());
    let (mut next, mut submission) = (0, None);
    for index in drawn_commands(process).into_iter().chain([process.commands.len()]) {
        if index > next {
            let (base, count) = (y + 14.0, index - next);
            let text =
                format!("<text x=\"{MARGIN}\" y=\"{base:.1}\" fill=\"#666666\">{count} commands</text>\n");
            boxes += &text;
            (y, submission) = (y + ROW_HEIGHT, None);
        }
        next = index + 1;
        let Some(command) = process.commands.get(index) else { continue };
        let x = column_x(command.queue);
        if submission != Some((command.queue, command.submission)) {
            submission = Some((command.queue, command.submission));
            let (base, number) = (y + 12.0, command.submission);
            let _ = writeln!(
                boxes,
                "<path d=\"M{x:.1} {y:.1} h{COLUMN_WIDTH:.1}\" stroke=\"#cccccc\"/>\n\
                 <text x=\"{x:.1}\" y=\"{base:.1}\" font-size=\"10\" fill=\"#666666\">submission {number}</text>"
            );
            y += 18.0;
        }
        draw_command(&mut boxes, command, index, x, y);
        rows.push((index, y + BOX_HEIGHT / 2.0));
        y += ROW_HEIGHT;
    }
    let row = |index: usize| rows.iter().find(|(of, _)| *of == index).map(|(_, y)| *y);
    for (number, mark) in process.hazards.iter().enumerate() {
        let Some(first) = row(mark.first) else { continue };
        let second = mark.second.map_or(Some(first + ROW_HEIGHT / 2.0), row).unwrap_or(y);
        let lane = right + (number % MAX_LANES) as f64 * LANE_WIDTH + 14.0;
        let queue_end = |index: Option<usize>| {
            let command = index.and_then(|index| process.commands.get(index));
            command.map_or(right, |command| column_x(command.queue) + COLUMN_WIDTH)
        };
        let (colour, dashes) = if mark.is_possible { ("#a15c00", "4 3") } else { ("#c62828", "none") };
        let (from, to) = (queue_end(Some(mark.first)), queue_end(mark.second));
        let (middle, number) = (f64::midpoint(first, second), mark.section + 1);
        let base = middle + 4.0;
        let _ = writeln!(
            body,
            "<path d=\"M{from:.1} {first:.1} H{lane:.1} V{second:.1} H{to:.1}\" fill=\"none\" stroke=\"{colour}\" \
             stroke-width=\"2\" stroke-dasharray=\"{dashes}\"/>"
        );
        let _ = writeln!(
            boxes,
            "<a href=\"#hazard-{number}\"><circle cx=\"{lane:.1}\" cy=\"{middle:.1}\" r=\"10\" fill=\"{colour}\"/>\
             <text x=\"{lane:.1}\" y=\"{base:.1}\" text-anchor=\"middle\" font-size=\"11\" font-weight=\"bold\" \
             fill=\"#ffffff\">{number}</text></a>"
        );
    }
    wrap_document(&process.title, width, y + MARGIN / 2.0, "", &(body + &boxes))
}

/// Draws a command: a barrier as a line with its scopes, everything else as a box.
fn draw_command(out: &mut String, command: &TimelineCommand, index: usize, x: f64, y: f64) {
    let (fill, stroke, note) = match command.class {
        CommandClass::Dispatch => ("#e8f0fe", "#4a6fa5", ""),
        CommandClass::RacyDispatch => ("#ffe9e7", "#c62828", "races: "),
        CommandClass::Other => ("#eef6ec", "#5b8a5b", ""),
        CommandClass::Barrier => ("none", "#777777", ""),
        CommandClass::RedundantBarrier => ("none", "#bbbbbb", "redundant "),
    };
    let whole = format!("{index} {note}{}", command.text);
    let cut: String = whole.chars().take(MAX_TEXT).collect();
    let text = if cut.len() < whole.len() { format!("{cut}…") } else { cut };
    let line = y + BOX_HEIGHT;
    let shape = match fill {
        "none" => {
            format!("<path d=\"M{x:.1} {line:.1} h{COLUMN_WIDTH}\" stroke=\"{stroke}\" stroke-width=\"2\"/>")
        }
        _ => format!(
            "<rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{COLUMN_WIDTH}\" height=\"{BOX_HEIGHT}\" rx=\"4\" fill=\"{fill}\" stroke=\"{stroke}\"/>"
        ),
    };
    let (left, base, whole, text) = (x + 6.0, y + 14.5, escape(&whole), escape(&text));
    *out += &format!(
        "<g><title>{whole}</title>{shape}<text x=\"{left:.1}\" y=\"{base:.1}\" fill=\"#222222\">{text}</text></g>\n"
    );
}
