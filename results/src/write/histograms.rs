//! Pictures of outcome histograms as SVG: a row per test, a cell per device, a bar per outcome on a logarithmic axis.
//!
//! Colour and hatching both show the class of an outcome, so that a print in grey is readable. A whisker is the 95 %
//! interval of a rate; a triangle is the upper bound on the rate of an outcome with count zero. [`histogram_csv`] has
//! the numbers.

use std::collections::BTreeSet;
use std::fmt::{self, Write as _};
use std::str::FromStr;

use litmus::closed_enum;

use super::number::{format_count, format_probability};
use super::site::SiteFile;
use crate::escape;
use crate::report::{
    DeviceColumn, HistogramBar, OutcomeClass, Report, TestRow, histogram_bars, interval_source,
};
use crate::statistics::Interval;
use crate::wire::{PartUnit, RunLine, RunParts};

closed_enum! {
    /// The size of a picture.
    #[derive(Default)]
    pub enum PictureSize {
        /// A slide of 1600 × 900 pixels, taller if it has many outcomes.
        #[default]
        Slide = "slide",
        /// A column of a paper, 340 pixels wide.
        Column = "column",
    }

    /// The background of a picture.
    #[derive(Default)]
    pub enum PictureTheme {
        /// Dark on white.
        #[default]
        Light = "light",
        /// Light on dark.
        Dark = "dark",
    }
}

impl FromStr for PictureSize {
    type Err = String;

    fn from_str(word: &str) -> Result<PictureSize, String> {
        PictureSize::from_name(word).ok_or_else(|| "expected slide or column".to_owned())
    }
}

impl FromStr for PictureTheme {
    type Err = String;

    fn from_str(word: &str) -> Result<PictureTheme, String> {
        PictureTheme::from_name(word).ok_or_else(|| "expected light or dark".to_owned())
    }
}

/// The lengths of a picture in pixels.
struct Layout {
    width: f64,
    min_height: f64,
    margin: f64,
    font: f64,
    /// The most cells next to each other.
    columns: usize,
    /// Bounds on the height of a bar with its gap.
    bar: (f64, f64),
}

impl PictureSize {
    fn layout(self) -> Layout {
        match self {
            PictureSize::Slide => Layout {
                width: 1600.0,
                min_height: 900.0,
                margin: 40.0,
                font: 23.0,
                columns: 4,
                bar: (34.0, 110.0),
            },
            PictureSize::Column => Layout {
                width: 340.0,
                min_height: 0.0,
                margin: 8.0,
                font: 8.5,
                columns: 2,
                bar: (12.0, 12.0),
            },
        }
    }
}

/// The colours of a picture.
struct Colours {
    background: &'static str,
    text: &'static str,
    quiet: &'static str,
    grid: &'static str,
    /// By class: allowed, weak, forbidden, from nowhere (Okabe and Ito).
    classes: [&'static str; 4],
}

impl PictureTheme {
    fn colours(self) -> Colours {
        match self {
            PictureTheme::Light => Colours {
                background: "#ffffff",
                text: "#1a1a1a",
                quiet: "#5c5c5c",
                grid: "#dcdcdc",
                classes: ["#0072b2", "#e69f00", "#d55e00", "#cc79a7"],
            },
            PictureTheme::Dark => Colours {
                background: "#14171c",
                text: "#ececec",
                quiet: "#a9b0ba",
                grid: "#363c45",
                classes: ["#56b4e9", "#f0b429", "#ff6f4d", "#e59ac4"],
            },
        }
    }
}

/// A test of the picture: its outcomes, and the bars of each device that ran it.
struct Panel<'a> {
    row: &'a TestRow,
    outcomes: Vec<String>,
    cells: Vec<(&'a DeviceColumn, &'a RunLine, Vec<HistogramBar>)>,
}

fn panels<'a>(report: &'a Report, rows: &[&'a TestRow]) -> Vec<Panel<'a>> {
    let panel = |row: &&'a TestRow| {
        let cells: Vec<_> = report
            .devices
            .iter()
            .zip(&row.cells)
            .filter_map(|(device, cell)| {
                let line = cell.as_ref().filter(|line| line.instances > 0 && !line.outcomes.is_empty())?;
                Some((device, line, histogram_bars(line)))
            })
            .collect();
        let mut outcomes: Vec<String> = Vec::new();
        for bar in cells.iter().flat_map(|(_, _, bars)| bars) {
            if !outcomes.contains(&bar.outcome) {
                outcomes.push(bar.outcome.clone());
            }
        }
        Panel { row, outcomes, cells }
    };
    rows.iter().map(panel).filter(|panel| !panel.cells.is_empty()).collect()
}

/// Text as content or attribute of XML.
struct Xml<'a>(&'a str);

impl fmt::Display for Xml<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        escape::escape_line(self.0).chars().try_for_each(|c| match c {
            '&' => f.write_str("&amp;"),
            '<' => f.write_str("&lt;"),
            '>' => f.write_str("&gt;"),
            '"' => f.write_str("&quot;"),
            other => f.write_char(other),
        })
    }
}

/// Returns the first characters of a text that fit a width, in a font with this average width of a character.
fn shorten(text: &str, width: f64, character: f64) -> String {
    let most = (width / character).max(4.0) as usize;
    match text.chars().count() {
        count if count <= most => text.to_owned(),
        _ => text.chars().take(most - 1).chain(['…']).collect(),
    }
}

/// Returns driver and date, number of instances, and the source of the intervals of a cell.
fn describe_cell(device: &DeviceColumn, line: &RunLine) -> [String; 3] {
    let driver = device.record.as_ref().map(|record| match record.driver_info.trim() {
        "" => record.driver_name.trim(),
        info => info,
    });
    let date = device.environment.as_ref().and_then(|environment| environment.started.get(..10));
    let facts: Vec<&str> = driver.into_iter().chain(date).filter(|fact| !fact.is_empty()).collect();
    let source = match (&line.parts, line.batches) {
        (None, None) => "no intervals".to_owned(),
        (None, Some(_)) => "no intervals of instances".to_owned(),
        (Some(RunParts { unit: PartUnit::Part, instances }), _) => {
            format!("whiskers: this run ({} parts)", instances.len())
        }
        (Some(RunParts { unit: PartUnit::Run, instances }), _) => {
            format!("whiskers: another run ({} runs)", instances.len())
        }
    };
    [facts.join(" · "), format!("{} instances", format_count(line.instances)), source]
}

/// Draws the histograms of tests on the devices of a report; `None` if no device ran one of them.
pub fn draw_histograms(
    report: &Report,
    rows: &[&TestRow],
    size: PictureSize,
    theme: PictureTheme,
) -> Option<String> {
    let panels = panels(report, rows);
    let most_cells = panels.iter().map(|panel| panel.cells.len()).max()?;
    let (layout, colours) = (size.layout(), theme.colours());
    let Layout { width, margin, font, .. } = layout;
    let columns = most_cells.min(layout.columns);
    let inner = width - 2.0 * margin;
    let character = 0.56 * font;
    let longest = panels.iter().flat_map(|panel| &panel.outcomes).map(|o| o.chars().count()).max()?;
    let labels = (longest as f64 * character + font).min(0.4 * inner);
    let gap = 1.2 * font;
    let cell_width = (inner - labels - gap * columns as f64) / columns as f64;
    // Rates have a separate column, so that no bar or whisker crosses them.
    let bar_width = cell_width - 3.6 * font;
    // Title of a panel; device, driver and instances of a cell; axis.
    let (title_height, head_height, axis_height) = (2.2 * font, 4.9 * font, 2.2 * font);
    let legend_height = 3.2 * font;
    let cell_rows = |panel: &Panel<'_>| panel.cells.len().div_ceil(columns);
    let fixed: f64 =
        panels.iter().map(|panel| title_height + cell_rows(panel) as f64 * (head_height + axis_height)).sum();
    let bars: f64 = panels.iter().map(|panel| (cell_rows(panel) * panel.outcomes.len()) as f64).sum();
    let (least, most) = layout.bar;
    let bar_height = ((layout.min_height - 2.0 * margin - fixed - legend_height) / bars).clamp(least, most);
    let height = (2.0 * margin + fixed + legend_height + bars * bar_height).max(layout.min_height);

    let shown = || panels.iter().flat_map(|panel| &panel.cells).flat_map(|(_, _, bars)| bars);
    let smallest = shown()
        .flat_map(|bar| [bar.rate, bar.bound.unwrap_or_default(), bar.interval.map_or(0.0, |i| i.low)])
        .filter(|rate| *rate > 0.0)
        .fold(0.1_f64, f64::min);
    let decades = (-smallest.log10()).ceil().clamp(3.0, 12.0);
    let at = |rate: f64| (1.0 + rate.max(1e-300).log10() / decades).clamp(0.0, 1.0) * bar_width;

    let mut svg = format!(
        r#"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0} {height:.0}" width="{width:.0}" height="{height:.0}" font-family="Inter, Helvetica, Arial, sans-serif" font-size="{font}" fill="{}"><rect width="100%" height="100%" fill="{}"/>"#,
        colours.text, colours.background
    );
    svg += &hatchings(&colours, font);
    let mut y = margin;
    for panel in &panels {
        let question =
            panel.cells.first().and_then(|(_, line, _)| line.question.as_deref()).unwrap_or_default();
        let title = shorten(&panel.row.id, inner, character * 1.3);
        let rest = inner - title.chars().count() as f64 * character * 1.3;
        let _ = write!(
            svg,
            r#"<text x="{margin}" y="{:.1}" font-size="{:.1}" font-weight="600">{}<tspan dx="{font}" font-size="{font}" font-weight="400" fill="{}">{}</tspan></text>"#,
            y + 1.3 * font,
            1.3 * font,
            Xml(&title),
            colours.quiet,
            Xml(&shorten(question, rest - font, character))
        );
        y += title_height;
        for cells in panel.cells.chunks(columns) {
            let top = y + head_height;
            let bottom = top + panel.outcomes.len() as f64 * bar_height;
            for (index, outcome) in panel.outcomes.iter().enumerate() {
                let _ = write!(
                    svg,
                    r#"<text x="{:.1}" y="{:.1}" text-anchor="end" dominant-baseline="central">{}</text>"#,
                    margin + labels - 0.5 * font,
                    top + (index as f64 + 0.5) * bar_height,
                    Xml(&shorten(outcome, labels, character))
                );
            }
            for (column, (device, line, bars)) in cells.iter().enumerate() {
                let x = margin + labels + column as f64 * (cell_width + gap);
                let [facts, instances, source] = describe_cell(device, line);
                for (index, (text, weight, fill, scale)) in [
                    (device.label.as_str(), 600, colours.text, 1.0),
                    (facts.as_str(), 400, colours.quiet, 0.8),
                    (instances.as_str(), 400, colours.quiet, 0.8),
                    (source.as_str(), 400, colours.quiet, 0.8),
                ]
                .into_iter()
                .enumerate()
                {
                    let _ = write!(
                        svg,
                        r#"<text x="{x:.1}" y="{:.1}" font-size="{:.1}" font-weight="{weight}" fill="{fill}">{}</text>"#,
                        y + (1.0 + 1.1 * index as f64) * font,
                        scale * font,
                        Xml(&shorten(
                            text,
                            cell_width,
                            character * scale * if weight > 400 { 1.15 } else { 0.95 }
                        ))
                    );
                }
                draw_axis(&mut svg, &colours, (x, top, bottom), font, decades, bar_width);
                for bar in bars {
                    let Some(index) = panel.outcomes.iter().position(|outcome| *outcome == bar.outcome)
                    else {
                        continue;
                    };
                    let center = top + (index as f64 + 0.5) * bar_height;
                    draw_bar(&mut svg, &colours, bar, (x, center), (font, 0.62 * bar_height, bar_width), &at);
                }
            }
            y = bottom + axis_height;
        }
    }
    draw_legend(&mut svg, &colours, shown(), margin, height - margin - 1.6 * font, font, inner);
    Some(svg + "</svg>\n")
}

/// The hatching of each class: none, diagonal, crossed, dotted.
fn hatchings(colours: &Colours, font: f64) -> String {
    let step = 0.5 * font;
    let line = format!(r#"stroke="{}" stroke-width="{:.2}""#, colours.background, 0.12 * font);
    let marks = [
        String::new(),
        format!(r#"<path d="M0 0V{step}" {line}/>"#),
        format!(r#"<path d="M0 0V{step}M0 0H{step}" {line}/>"#),
        format!(
            r#"<circle cx="{0}" cy="{0}" r="{1}" fill="{2}"/>"#,
            step / 2.0,
            step / 5.0,
            colours.background
        ),
    ];
    let pattern = |(index, (mark, colour)): (usize, (String, &&str))| {
        format!(
            r#"<pattern id="c{index}" width="{step}" height="{step}" patternUnits="userSpaceOnUse" patternTransform="rotate(45)"><rect width="{step}" height="{step}" fill="{colour}"/>{mark}</pattern>"#
        )
    };
    let patterns: String = marks.into_iter().zip(&colours.classes).enumerate().map(pattern).collect();
    format!("<defs>{patterns}</defs>")
}

/// Draws the grid lines at powers of a hundred, with their rates.
fn draw_axis(
    svg: &mut String,
    colours: &Colours,
    (x, top, bottom): (f64, f64, f64),
    font: f64,
    decades: f64,
    width: f64,
) {
    let step = if decades > 6.0 { 3 } else { 2 };
    for decade in (0..=decades as i32).filter(|decade| decade % step == 0) {
        let at = x + (1.0 - f64::from(decade) / decades) * width;
        let percent = 10_f64.powi(2 - decade);
        let rate = if decade <= 4 { format!("{percent} %") } else { format!("1e-{decade}") };
        let anchor = if f64::from(decade) > decades - 1.0 { "start" } else { "middle" };
        let _ = write!(
            svg,
            r#"<path d="M{at:.1} {top:.1}V{bottom:.1}" stroke="{}"/><text x="{at:.1}" y="{:.1}" text-anchor="{anchor}" font-size="{:.1}" fill="{}">{rate}</text>"#,
            colours.grid,
            bottom + 1.0 * font,
            0.75 * font,
            colours.quiet,
        );
    }
}

/// Draws a bar with its whisker and its rate, or the bound of an outcome with count zero.
fn draw_bar(
    svg: &mut String,
    colours: &Colours,
    bar: &HistogramBar,
    (x, center): (f64, f64),
    (font, height, width): (f64, f64, f64),
    at: &dyn Fn(f64) -> f64,
) {
    let class = bar.kind as usize;
    let (place, text, fill) = if bar.count > 0 {
        let _ = write!(
            svg,
            r#"<rect x="{x:.1}" y="{:.1}" width="{:.1}" height="{height:.1}" fill="url(#c{class})"/>"#,
            center - height / 2.0,
            at(bar.rate).max(0.15 * font)
        );
        // A whisker of batches is not one of instances.
        if let Some(Interval { low, high }) = bar.interval.filter(|_| !bar.counts_batches) {
            let (low, high) = (x + at(low), x + at(high));
            let cap = 0.25 * height;
            let _ = write!(
                svg,
                r#"<path d="M{low:.1} {center:.1}H{high:.1}M{low:.1} {0:.1}v{1:.1}M{high:.1} {0:.1}v{1:.1}" stroke="{2}" stroke-width="{3:.1}" fill="none"/>"#,
                center - cap,
                2.0 * cap,
                colours.text,
                0.09 * font
            );
        }
        (x + width + 0.4 * font, format_probability(bar.rate), colours.text)
    } else {
        let mut end = 0.0;
        if let Some(bound) = bar.bound.filter(|_| !bar.counts_batches) {
            end = at(bound);
            let (tip, half) = (x + end, 0.3 * font);
            let _ = write!(
                svg,
                r#"<path d="M{:.1} {center:.1}l{half:.1} {:.1}v{:.1}z" fill="none" stroke="{}" stroke-width="{:.1}"/>"#,
                tip - half,
                -half,
                2.0 * half,
                colours.classes[class],
                0.08 * font
            );
        }
        (x + end + 0.4 * font, format!("0, {}", bar.kind.name()), colours.quiet)
    };
    let _ = write!(
        svg,
        r#"<text x="{place:.1}" y="{center:.1}" dominant-baseline="central" font-size="{:.1}" fill="{fill}">{}</text>"#,
        0.85 * font,
        Xml(&text)
    );
}

/// Draws the classes that occur, and what whiskers and triangles are.
fn draw_legend<'a>(
    svg: &mut String,
    colours: &Colours,
    shown: impl Iterator<Item = &'a HistogramBar> + Clone,
    x: f64,
    y: f64,
    font: f64,
    inner: f64,
) {
    let small = 0.85 * font;
    let mut at = x;
    for class in OutcomeClass::ALL.into_iter().filter(|class| shown.clone().any(|bar| bar.kind == *class)) {
        let _ = write!(
            svg,
            r#"<rect x="{at:.1}" y="{:.1}" width="{small:.1}" height="{small:.1}" fill="url(#c{})"/><text x="{:.1}" y="{y:.1}" font-size="{small:.1}">{}</text>"#,
            y - 0.8 * small,
            class as usize,
            at + 1.4 * small,
            class.name()
        );
        at += small * (2.8 + 0.56 * class.name().chars().count() as f64);
    }
    let notes = "rate of instances, log scale; whisker: 95 % interval; ◁: never seen, the rate is below";
    let is_narrow = at + notes.chars().count() as f64 * 0.5 * small > x + inner;
    let (place, line) = if is_narrow { (x, y + 1.3 * small) } else { (at, y) };
    let _ = write!(
        svg,
        r#"<text x="{place:.1}" y="{line:.1}" font-size="{small:.1}" fill="{}">{notes}</text>"#,
        colours.quiet
    );
}

/// Tests in one picture of a family.
const MAX_FAMILY_TESTS: usize = 8;

/// Draws the tests of each family with a weak or forbidden outcome that some device showed, in every size and theme:
/// `histograms-FAMILY-SIZE-THEME.svg`, and their numbers as `histograms.csv`.
pub fn family_pictures(report: &Report) -> Vec<SiteFile> {
    let is_shown = |row: &&TestRow| {
        let outcomes = row.cells.iter().flatten().flat_map(|line| &line.outcomes);
        outcomes.into_iter().any(|outcome| outcome.count > 0 && (outcome.weak || !outcome.allowed))
    };
    let shown: Vec<&TestRow> = report.tests.iter().filter(is_shown).collect();
    let mut files = Vec::new();
    for family in shown.iter().map(|row| row.family()).collect::<BTreeSet<&str>>() {
        let rows: Vec<&TestRow> = shown.iter().copied().filter(|row| row.family() == family).collect();
        let name = family.replace(|c: char| !c.is_ascii_alphanumeric() && !"+-_".contains(c), "-");
        for (number, rows) in rows.chunks(MAX_FAMILY_TESTS).enumerate() {
            let number = if number == 0 { String::new() } else { format!("-{}", number + 1) };
            for (size, theme) in
                PictureSize::ALL.into_iter().flat_map(|size| PictureTheme::ALL.map(|theme| (size, theme)))
            {
                let path = format!("histograms-{name}{number}-{}-{}.svg", size.name(), theme.name());
                let picture = draw_histograms(report, rows, size, theme);
                files.extend(picture.map(|svg| SiteFile { path, bytes: svg.into_bytes() }));
            }
        }
    }
    if !files.is_empty() {
        let bytes = histogram_csv(report, &shown).into_bytes();
        files.push(SiteFile { path: "histograms.csv".to_owned(), bytes });
    }
    files
}

/// Returns the numbers of the pictures as CSV.
pub fn histogram_csv(report: &Report, rows: &[&TestRow]) -> String {
    let mut text =
        "test,device,driver,date,instances,outcome,class,count,rate,low,high,never_seen_below,intervals\n"
            .to_owned();
    let quoted = |field: &str| format!("\"{}\"", escape::escape_line(field).replace('"', "\"\""));
    let number = |value: Option<f64>| value.map_or_else(String::new, |value| value.to_string());
    for panel in panels(report, rows) {
        for (device, line, bars) in &panel.cells {
            let record = device.record.as_ref();
            let driver = record.map(|record| record.driver_info.trim()).unwrap_or_default();
            let date = device.environment.as_ref().and_then(|e| e.started.get(..10)).unwrap_or_default();
            for bar in bars {
                let _ = writeln!(
                    text,
                    "{},{},{},{date},{},{},{},{},{},{},{},{},{}",
                    quoted(&panel.row.id),
                    quoted(&device.label),
                    quoted(driver),
                    line.instances,
                    quoted(&bar.outcome),
                    bar.kind.name(),
                    bar.count,
                    bar.rate,
                    number(bar.interval.map(|interval| interval.low)),
                    number(bar.interval.map(|interval| interval.high)),
                    number(bar.bound),
                    quoted(&interval_source(line)),
                );
            }
        }
    }
    text
}
