//! SVG plots: rates of weak outcomes, instances per second, and both over several runs.

use std::ops::Range;

use plotters::coord::Shift;
use plotters::coord::combinators::LogCoord;
use plotters::coord::ranged1d::SegmentedCoord;
use plotters::coord::types::RangedCoordusize;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use super::number::{format_count, format_probability};
use super::site::SiteFile;
use crate::escape;
use crate::report::{Report, count_weak, never_seen_bound, rate_interval};
use crate::statistics::{Interval, Proportion};
use crate::wire::{RunLine, VerdictWord};

/// Width of a plot in pixels.
const WIDTH: u32 = 900;
/// Height of a test's row in pixels.
const ROW_HEIGHT: u32 = 18;
/// Height of heading and axis in pixels.
const FRAME_HEIGHT: u32 = 100;
/// Width of the test names in pixels.
const NAMES_WIDTH: u32 = 290;
/// Colours of the pages (Okabe and Ito): observed outcomes, violations, outcomes with count zero, speed.
const OBSERVED_COLOUR: RGBColor = RGBColor(0xe6, 0x9f, 0x00);
const VIOLATION_COLOUR: RGBColor = RGBColor(0xd5, 0x5e, 0x00);
const ZERO_COUNT_COLOUR: RGBColor = RGBColor(0x56, 0x56, 0x56);
const SPEED_COLOUR: RGBColor = RGBColor(0x00, 0x72, 0xb2);
/// Colours of lines; further tests go into further plots.
const SERIES_COLOURS: [RGBColor; 6] = [
    RGBColor(0x00, 0x72, 0xb2),
    RGBColor(0xd5, 0x5e, 0x00),
    RGBColor(0x00, 0x9e, 0x73),
    RGBColor(0xcc, 0x79, 0xa7),
    RGBColor(0xe6, 0x9f, 0x00),
    RGBColor(0x56, 0xb4, 0xe9),
];

/// An error of the plotting library.
#[derive(Debug, thiserror::Error)]
#[error("a plot cannot be drawn: {0}")]
pub struct PlotError(String);

type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;
type RowChart<'a, 'b> =
    ChartContext<'a, SVGBackend<'b>, Cartesian2d<LogCoord<f64>, SegmentedCoord<RangedCoordusize>>>;

fn plot_error(error: impl std::fmt::Display) -> PlotError {
    PlotError(error.to_string())
}

/// Draws the plots of a report; `names` are the file names of its devices.
///
/// For each device: `NAME-weak.svg`, the rates of weak outcomes with their intervals, and `NAME-speed.svg`,
/// instances per second. For a device with several columns also `NAME-runs-1.svg` and so on, the rates by
/// column. A plot without points is omitted.
///
/// # Errors
/// Returns an error if the library cannot draw a plot.
pub fn draw_plots(report: &Report, names: &[String]) -> Result<Vec<SiteFile>, PlotError> {
    let mut files = Vec::new();
    for (index, (device, name)) in report.devices.iter().zip(names).enumerate() {
        let label = escape::escape_line(&device.label);
        let lines: Vec<&RunLine> = report
            .tests
            .iter()
            .filter_map(|row| row.cells.get(index)?.as_ref())
            .filter(|line| resolved_instances(line) > 0)
            .collect();
        let weak: Vec<&RunLine> = lines
            .iter()
            .copied()
            .filter(|line| {
                line.outcomes.iter().any(|outcome| outcome.weak && (outcome.allowed || outcome.count > 0))
            })
            .collect();
        if !weak.is_empty() {
            files.push(plot_file(name, "weak", draw_weak_rates(&label, &weak)?));
        }
        let timed: Vec<&RunLine> = lines.into_iter().filter(|line| line.seconds > 0.0).collect();
        if !timed.is_empty() {
            files.push(plot_file(name, "speed", draw_speeds(&label, &timed)?));
        }
    }
    files.extend(draw_runs(report, names)?);
    Ok(files)
}

fn resolved_instances(line: &RunLine) -> u64 {
    line.instances.saturating_sub(line.unresolved)
}

fn plot_file(name: &str, what: &str, text: String) -> SiteFile {
    SiteFile { path: format!("{name}-{what}.svg"), bytes: text.into_bytes() }
}

/// Draws a picture with this height in pixels.
fn draw_svg(height: u32, draw: impl FnOnce(&Area<'_>) -> Result<(), PlotError>) -> Result<String, PlotError> {
    let mut text = String::new();
    {
        let area = SVGBackend::with_string(&mut text, (WIDTH, height)).into_drawing_area();
        area.fill(&WHITE).map_err(plot_error)?;
        draw(&area)?;
        area.present().map_err(plot_error)?;
    }
    Ok(text)
}

fn plot_height(tests: usize) -> u32 {
    FRAME_HEIGHT + ROW_HEIGHT * u32::try_from(tests).unwrap_or(u32::MAX / (2 * ROW_HEIGHT))
}

/// Returns the test name at a position of the axis.
fn name_at(lines: &[&RunLine], position: &SegmentValue<usize>) -> String {
    match position {
        SegmentValue::CenterOf(index) | SegmentValue::Exact(index) => {
            lines.get(*index).map_or_else(String::new, |line| escape::escape_line(&line.id).into_owned())
        }
        SegmentValue::Last => String::new(),
    }
}

/// Returns the power of ten at or below the smallest positive value, for the start of a logarithmic axis.
fn power_of_ten_below(values: impl Iterator<Item = f64>) -> f64 {
    let smallest = values.filter(|value| *value > 0.0).fold(0.1_f64, f64::min);
    10_f64.powf(smallest.log10().floor()).max(1e-15)
}

/// Builds a chart with one row per test and a logarithmic axis with a title and a number format.
fn build_row_chart<'a, 'b>(
    area: &'a Area<'b>,
    title: &str,
    lines: &[&RunLine],
    values: Range<f64>,
    axis: &str,
    number: &dyn Fn(&f64) -> String,
) -> Result<RowChart<'a, 'b>, PlotError> {
    let mut chart = ChartBuilder::on(area)
        .caption(title, ("sans-serif", 18))
        .margin(10)
        .margin_right(35)
        .x_label_area_size(45)
        .y_label_area_size(NAMES_WIDTH)
        .build_cartesian_2d(values.log_scale(), (0..lines.len()).into_segmented())
        .map_err(plot_error)?;
    chart
        .configure_mesh()
        .disable_y_mesh()
        .y_labels(lines.len() + 1)
        .y_label_formatter(&|place| name_at(lines, place))
        .x_label_formatter(&number)
        .x_desc(axis)
        .draw()
        .map_err(plot_error)?;
    Ok(chart)
}

fn draw_weak_rates(device: &str, lines: &[&RunLine]) -> Result<String, PlotError> {
    let rate = |line: &RunLine| {
        let resolved = resolved_instances(line);
        let bound = never_seen_bound(line).unwrap_or(1.0 / resolved as f64);
        (Proportion::new(count_weak(line), resolved).rate(), bound)
    };
    let axis_start = power_of_ten_below(lines.iter().map(|line| {
        let (rate, bound) = rate(line);
        if count_weak(line) > 0 { rate / 3.0 } else { bound }
    }));
    draw_svg(plot_height(lines.len()), |area| {
        let axis = "rate, 95 % interval; ◁ never seen: the rate is below with 95 %; red: a rule was broken";
        let title = format!("Weak outcomes on {device}");
        let mut chart =
            build_row_chart(area, &title, lines, axis_start..1.0, axis, &|rate| format_probability(*rate))?;
        for (index, line) in lines.iter().enumerate() {
            let at = SegmentValue::CenterOf(index);
            let (rate, bound) = rate(line);
            if count_weak(line) == 0 {
                let style = ("sans-serif", 14)
                    .into_font()
                    .color(&ZERO_COUNT_COLOUR)
                    .pos(Pos::new(HPos::Left, VPos::Center));
                let mark = Text::new("◁", (bound.max(axis_start), at), style);
                chart.draw_series(std::iter::once(mark)).map_err(plot_error)?;
                continue;
            }
            let colour =
                if line.verdict == VerdictWord::Violates { VIOLATION_COLOUR } else { OBSERVED_COLOUR };
            // With batches, the interval is that of the share of batches.
            let weak: Vec<_> = line.outcomes.iter().filter(|outcome| outcome.weak).collect();
            if let Some(Interval { low, high }) =
                rate_interval(line, &weak).filter(|_| line.batches.is_none())
            {
                let ends = [(low.max(axis_start), at.clone()), (high.max(axis_start), at.clone())];
                chart.draw_series(LineSeries::new(ends, colour.stroke_width(2))).map_err(plot_error)?;
            }
            let point = Circle::new((rate.max(axis_start), at), 4, colour.filled());
            chart.draw_series(std::iter::once(point)).map_err(plot_error)?;
        }
        Ok(())
    })
}

fn draw_speeds(device: &str, lines: &[&RunLine]) -> Result<String, PlotError> {
    let speed = |line: &RunLine| (line.instances as f64 / line.seconds).max(1.0);
    let most = lines.iter().map(|line| speed(line)).fold(10.0_f64, f64::max);
    let least = 10_f64.powf(lines.iter().map(|line| speed(line)).fold(most, f64::min).log10().floor());
    draw_svg(plot_height(lines.len()), |area| {
        let title = format!("Instances a second on {device}");
        let number = |speed: &f64| format_count(speed.round() as u64);
        let mut chart =
            build_row_chart(area, &title, lines, least..most * 1.1, "instances a second", &number)?;
        let bars = lines.iter().enumerate().map(|(index, line)| {
            let mut bar = Rectangle::new(
                [(least, SegmentValue::Exact(index)), (speed(line), SegmentValue::Exact(index + 1))],
                SPEED_COLOUR.filled(),
            );
            bar.set_margin(3, 3, 0, 0);
            bar
        });
        chart.draw_series(bars).map_err(plot_error)?;
        Ok(())
    })
}

/// Draws the rates of weak outcomes by column of one device, for tests with a weak outcome in some column.
fn draw_runs(report: &Report, names: &[String]) -> Result<Vec<SiteFile>, PlotError> {
    let device_uuid = |index: &usize| report.devices.get(*index)?.record.as_ref().map(|record| &record.uuid);
    let mut files = Vec::new();
    let all: Vec<usize> = (0..report.devices.len()).filter(|index| device_uuid(index).is_some()).collect();
    for (index, name) in names.iter().enumerate() {
        let runs: Vec<usize> =
            all.iter().copied().filter(|other| device_uuid(other) == device_uuid(&index)).collect();
        if runs.len() < 2 || runs.first() != Some(&index) {
            continue;
        }
        let series: Vec<RunSeries> = report
            .tests
            .iter()
            .filter_map(|row| {
                let rates = runs.iter().enumerate().filter_map(|(run, column)| {
                    let line =
                        row.cells.get(*column)?.as_ref().filter(|line| resolved_instances(line) > 0)?;
                    let weak: Vec<_> = line.outcomes.iter().filter(|outcome| outcome.weak).collect();
                    let interval = rate_interval(line, &weak).filter(|_| line.batches.is_none());
                    Some((run, Proportion::new(count_weak(line), resolved_instances(line)).rate(), interval))
                });
                let rates: Vec<(usize, f64, Option<Interval>)> = rates.collect();
                rates
                    .iter()
                    .any(|(_, rate, _)| *rate > 0.0)
                    .then(|| RunSeries { id: escape::escape_line(&row.id).into_owned(), rates })
            })
            .collect();
        for (number, part) in series.chunks(SERIES_COLOURS.len()).enumerate() {
            let text = draw_rates_by_run(&escape::escape_line(name), runs.len(), part)?;
            files.push(plot_file(name, &format!("runs-{}", number + 1), text));
        }
    }
    Ok(files)
}

/// The rates of weak outcomes of a test: the number of the run, the rate and its interval.
struct RunSeries {
    id: String,
    rates: Vec<(usize, f64, Option<Interval>)>,
}

fn draw_rates_by_run(name: &str, runs: usize, series: &[RunSeries]) -> Result<String, PlotError> {
    let least = power_of_ten_below(series.iter().flat_map(|one| one.rates.iter().map(|(_, rate, _)| *rate)));
    draw_svg(420, |area| {
        let mut chart = ChartBuilder::on(area)
            .caption(format!("Weak outcomes from run to run: {name}"), ("sans-serif", 18))
            .margin(10)
            .margin_right(35)
            .x_label_area_size(40)
            .y_label_area_size(70)
            .build_cartesian_2d(1..runs, (least / 10.0..1.0).log_scale())
            .map_err(plot_error)?;
        chart
            .configure_mesh()
            .x_desc("run, in the order of the command line; bars: 95 % intervals; 0 is on the axis")
            .x_labels(runs.min(20))
            .y_label_formatter(&|rate| format_probability(*rate))
            .draw()
            .map_err(plot_error)?;
        for (RunSeries { id, rates }, colour) in series.iter().zip(SERIES_COLOURS) {
            for (run, _, interval) in rates {
                let Some(Interval { low, high }) = *interval else { continue };
                let ends = [low, high].map(|rate| (run + 1, rate.max(least / 10.0)));
                let bar = PathElement::new(ends.to_vec(), colour.stroke_width(1));
                chart.draw_series(std::iter::once(bar)).map_err(plot_error)?;
            }
            let points = rates.iter().map(|(run, rate, _)| (run + 1, rate.max(least / 10.0)));
            chart
                .draw_series(LineSeries::new(points, colour.stroke_width(2)).point_size(3))
                .map_err(plot_error)?
                .label(id.as_str())
                .legend(move |(x, y)| PathElement::new([(x, y), (x + 16, y)], colour.stroke_width(2)));
        }
        chart
            .configure_series_labels()
            .background_style(WHITE)
            .border_style(ZERO_COUNT_COLOUR)
            .draw()
            .map_err(plot_error)?;
        Ok(())
    })
}
