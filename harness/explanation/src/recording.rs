//! Renders the answers about a recorded program as an HTML page: the queues of each process with their commands, barriers and
//! hazards as SVG, then each hazard and each shader.
//!
//! Time goes down, and each queue is a column. Of a long recording the picture has the commands of hazards with their neighbours and the
//! first commands, up to [`MAX_ROWS`]; the rest are counted.

use std::collections::BTreeSet;
use std::fmt::Write;

use results::wire::{
    HazardLine, JudgementLine, RaceVerdict, RecordedCommand, RecordedProcess, RecordingRecord,
};
use results::write::recording::{format_hazard, hazard_title};

use crate::html;
use crate::shader::{ShaderAnswer, page_end, page_start, render_answer};
use crate::svg::{MARGIN, escape, wrap_document};

/// The answers about a recording.
#[derive(Clone, Copy, Debug)]
pub struct RecordingPage<'a> {
    pub recording: &'a RecordingRecord,
    pub hazards: &'a [HazardLine],
    pub judgement: &'a JudgementLine,
    /// The verdicts on entry points with their kinds.
    pub verdicts: &'a [(u64, RaceVerdict)],
    /// The counts, as text.
    pub summary: &'a str,
    /// The answers that are not clean.
    pub shaders: &'a [ShaderAnswer],
}

impl RecordingPage<'_> {
    fn verdicts_of(&self, kind: u64) -> impl Iterator<Item = RaceVerdict> {
        self.verdicts.iter().filter(move |(of, _)| *of == kind).map(|(_, verdict)| *verdict)
    }
}

/// A process with its hazards, each with the number of its section.
struct ProcessPicture<'a> {
    page: RecordingPage<'a>,
    process: &'a RecordedProcess,
    hazards: Vec<(usize, &'a HazardLine)>,
}

/// The class of a command, which decides its colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CommandClass {
    Dispatch,
    RacyDispatch,
    Other,
    Barrier,
    RedundantBarrier,
}

/// Writes the page; `command` is the command line that repeats it.
pub fn render(answers: &RecordingPage<'_>, command: &str) -> String {
    let title = format!("Recording of {}", answers.recording.program.join(" "));
    let mut page = page_start(&title);
    page +=
        &format!("<h1>{}</h1>\n<pre class=\"command\">{}</pre>\n", escape(&title), escape(answers.summary));
    for process in &answers.recording.processes {
        let title = format!("Process {} on {}", process.process, process.devices.join(", "));
        let hazards = (1..).zip(answers.hazards).filter(|(_, line)| line.process == process.process);
        let picture = ProcessPicture { page: *answers, process, hazards: hazards.collect() }.draw(&title);
        page += &format!(
            "<h2>{}</h2>\n<div class=\"picture\" tabindex=\"0\">\n{picture}</div>\n",
            escape(&title)
        );
    }
    for (number, hazard) in (1..).zip(answers.hazards) {
        page += &format!("<h2 id=\"hazard-{number}\">{number}. {}</h2>\n", escape(&hazard_title(hazard)));
        let text: String =
            format_hazard(hazard).lines().skip(1).map(|line| format!("{}\n", line.trim_start())).collect();
        page += &format!("<pre class=\"command\">{}</pre>\n", escape(&text));
    }
    page += "<h2>Shaders</h2>\n<div class=\"picture\" tabindex=\"0\">\n<table>\n";
    let row = |tag: &str, cells: [String; 5]| {
        let cells = cells.map(|cell| format!("<{tag} align=\"left\">{}</{tag}>", html::escape_prose(&cell)));
        format!("<tr>{}</tr>\n", cells.concat())
    };
    page += &row("th", ["kind", "shader", "dispatches", "label", "verdict"].map(str::to_owned));
    for kind in &answers.recording.kinds {
        let mut verdicts: Vec<&str> = answers.verdicts_of(kind.kind).map(RaceVerdict::name).collect();
        verdicts.dedup();
        let cells = [
            kind.kind.to_string(),
            format!(
                "`{}`{} in kinds/{}/module.spv",
                kind.entry,
                kind.name.as_ref().map_or(String::new(), |name| format!(" of {name}")),
                kind.kind
            ),
            kind.dispatches.to_string(),
            kind.label.clone().unwrap_or_default(),
            verdicts.join(", "),
        ];
        page += &row("td", cells);
    }
    page += "</table>\n</div>\n";
    answers.shaders.iter().for_each(|shader| render_answer(&mut page, shader, "h2"));
    page + &page_end(command)
}

/// Upper bound on the drawn commands.
const MAX_ROWS: usize = 160;
/// Commands around a hazard that are drawn.
const CONTEXT: usize = 3;
/// The narrowest column of a queue, and the width that the columns share.
const MIN_COLUMN_WIDTH: f64 = 400.0;
const COLUMNS_WIDTH: f64 = 1000.0;
const COLUMN_GAP: f64 = 16.0;
const ROW_HEIGHT: f64 = 26.0;
const BOX_HEIGHT: f64 = 20.0;
/// Width of the space for the line of one hazard.
const LANE_WIDTH: f64 = 26.0;
const MAX_LANES: usize = 6;
/// Width of a character in the text of a command.
const CHARACTER_WIDTH: f64 = 7.3;

impl ProcessPicture<'_> {
    fn column_width(&self) -> f64 {
        (COLUMNS_WIDTH / self.process.queues.len().max(1) as f64).max(MIN_COLUMN_WIDTH)
    }

    /// Returns the column of a command.
    fn queue_number(&self, command: &RecordedCommand) -> usize {
        self.process.queues.iter().position(|queue| queue.queue == command.queue).unwrap_or(0)
    }

    fn class(&self, command: &RecordedCommand) -> CommandClass {
        let key = (self.process.process, command.index);
        let mut redundant = self.page.judgement.redundant_barriers.iter().map(|one| (one.process, one.index));
        match command.kind {
            Some(kind) if self.page.verdicts_of(kind).any(|verdict| verdict == RaceVerdict::Racy) => {
                CommandClass::RacyDispatch
            }
            Some(_) => CommandClass::Dispatch,
            None if redundant.any(|barrier| barrier == key) => CommandClass::RedundantBarrier,
            None if command.is_barrier => CommandClass::Barrier,
            None => CommandClass::Other,
        }
    }

    /// Returns the commands to draw: those of hazards with their neighbours, then the first ones.
    fn drawn_commands(&self) -> BTreeSet<usize> {
        let count = self.process.commands.len();
        let mut drawn = BTreeSet::new();
        let ends = self.hazards.iter().flat_map(|(_, line)| &line.commands);
        for end in ends.map(|command| command.index as usize) {
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
    fn draw(&self, title: &str) -> String {
        let process = self.process;
        let lanes = self.hazards.len().min(MAX_LANES) as f64;
        let column_width = self.column_width();
        let column_x = |queue: usize| MARGIN + queue as f64 * (column_width + COLUMN_GAP);
        let right = column_x(process.queues.len().max(1)) - COLUMN_GAP;
        let width = right + lanes * LANE_WIDTH + MARGIN;
        let (mut body, mut y) = (String::new(), MARGIN + 10.0);
        // Writing to a string cannot fail, here and below.
        for (number, queue) in process.queues.iter().enumerate() {
            let (x, name) = (column_x(number), format!("queue {}, family {}", queue.index, queue.family));
            let _ = writeln!(body, "<text x=\"{x:.1}\" y=\"{y:.1}\" font-weight=\"bold\">{name}</text>");
        }
        y += 12.0;
        let (mut rows, mut boxes) = (Vec::new(), String::new());
        let (mut next, mut submission) = (0, None);
        for index in self.drawn_commands().into_iter().chain([process.commands.len()]) {
            if index > next {
                let (base, count) = (y + 14.0, index - next);
                let text = format!(
                    "<text x=\"{MARGIN}\" y=\"{base:.1}\" fill=\"#666666\">{count} commands</text>\n"
                );
                boxes += &text;
                (y, submission) = (y + ROW_HEIGHT, None);
            }
            next = index + 1;
            let Some(command) = process.commands.get(index) else { continue };
            let x = column_x(self.queue_number(command));
            if submission != Some((command.queue, command.submission)) {
                submission = Some((command.queue, command.submission));
                let (base, number) = (y + 12.0, command.submission);
                let _ = writeln!(
                    boxes,
                    "<path d=\"M{x:.1} {y:.1} h{column_width:.1}\" stroke=\"#cccccc\"/>\n\
                     <text x=\"{x:.1}\" y=\"{base:.1}\" font-size=\"10\" fill=\"#666666\">submission {number}</text>"
                );
                y += 18.0;
            }
            self.draw_command(&mut boxes, command, x, y);
            rows.push((index, y + BOX_HEIGHT / 2.0));
            y += ROW_HEIGHT;
        }
        let row = |index: usize| rows.iter().find(|(of, _)| *of == index).map(|(_, y)| *y);
        for (lane, (section, hazard)) in self.hazards.iter().enumerate() {
            let mut ends = hazard.commands.iter().map(|command| command.index as usize);
            let ends = [ends.next(), ends.next()];
            let Some(first) = ends[0].and_then(row) else { continue };
            let second = ends[1].map_or(Some(first + ROW_HEIGHT / 2.0), row).unwrap_or(y);
            let lane = right + (lane % MAX_LANES) as f64 * LANE_WIDTH + 14.0;
            let queue_end = |index: Option<usize>| {
                let command = index.and_then(|index| process.commands.get(index));
                command.map_or(right, |command| column_x(self.queue_number(command)) + column_width)
            };
            let (colour, dashes) = if hazard.is_possible { ("#a15c00", "4 3") } else { ("#c62828", "none") };
            let [from, to] = ends.map(queue_end);
            let middle = f64::midpoint(first, second);
            let base = middle + 4.0;
            let _ = writeln!(
                body,
                "<path d=\"M{from:.1} {first:.1} H{lane:.1} V{second:.1} H{to:.1}\" fill=\"none\" stroke=\"{colour}\" \
                 stroke-width=\"2\" stroke-dasharray=\"{dashes}\"/>"
            );
            let _ = writeln!(
                boxes,
                "<a href=\"#hazard-{section}\"><circle cx=\"{lane:.1}\" cy=\"{middle:.1}\" r=\"10\" fill=\"{colour}\"/>\
                 <text x=\"{lane:.1}\" y=\"{base:.1}\" text-anchor=\"middle\" font-size=\"11\" font-weight=\"bold\" \
                 fill=\"#ffffff\">{section}</text></a>"
            );
        }
        wrap_document(title, width, y + MARGIN / 2.0, "", &(body + &boxes))
    }

    /// Draws a command: a barrier as a line with its scopes, everything else as a box.
    fn draw_command(&self, out: &mut String, command: &RecordedCommand, x: f64, y: f64) {
        let (fill, stroke, note) = match self.class(command) {
            CommandClass::Dispatch => ("#e8f0fe", "#4a6fa5", ""),
            CommandClass::RacyDispatch => ("#ffe9e7", "#c62828", "races: "),
            CommandClass::Other => ("#eef6ec", "#5b8a5b", ""),
            CommandClass::Barrier => ("none", "#777777", ""),
            CommandClass::RedundantBarrier => ("none", "#bbbbbb", "redundant "),
        };
        let label = command.label.as_ref().map_or(String::new(), |label| format!("{label}: "));
        let whole = format!("{} {note}{label}{}", command.index, command.what);
        let width = self.column_width();
        let max_characters = (width / CHARACTER_WIDTH) as usize - 2;
        let cut: String = whole.chars().take(max_characters).collect();
        let text = if cut.len() < whole.len() { format!("{cut}…") } else { cut };
        let line = y + BOX_HEIGHT;
        let shape = match fill {
            "none" => {
                format!("<path d=\"M{x:.1} {line:.1} h{width}\" stroke=\"{stroke}\" stroke-width=\"2\"/>")
            }
            _ => format!(
                "<rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width}\" height=\"{BOX_HEIGHT}\" rx=\"4\" fill=\"{fill}\" stroke=\"{stroke}\"/>"
            ),
        };
        let (left, base, whole, text) = (x + 6.0, y + 14.5, escape(&whole), escape(&text));
        *out += &format!(
            "<g><title>{whole}</title>{shape}<text x=\"{left:.1}\" y=\"{base:.1}\" fill=\"#222222\">{text}</text></g>\n"
        );
    }
}
