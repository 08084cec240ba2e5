//! A site of static HTML pages: one page per device and per test, with the records for download.
//!
//! The pages need no server and load nothing from other hosts, so they work from any file host and from disk.
//! To add a device, add its results file and build the site again.

mod file;

use std::collections::BTreeSet;
use std::io;

use maud::{Markup, html};

pub use self::file::SiteFile;
use super::html::sections::{
    EscapedBlock, EscapedLine, Links, percent_encode, render_chip, render_conclusions, render_devices,
    render_histogram, render_linear_switch, render_machine_code, render_picture, render_summary,
    render_verdict_bar, render_violations, share_of_resolved, verdict_symbol,
};
use super::html::{ExplainedPicture, PageFrame, STYLE, page_description, page_title, render_glossary};
use super::number::{format_count, format_probability};
use super::plots;
use crate::baseline;
use crate::mutants::MutantVerdicts;
use crate::read::Results;
use crate::report::{DeviceColumn, Report, TestRow, VERDICTS, count_weak, device_names};
use crate::wire::{RunLine, VerdictWord};

/// The script of the index page.
pub const SCRIPT: &str = include_str!("site/site.js");
/// The SHA-256 hash of [`SCRIPT`] in the form of a content security policy; a test computes it.
pub const SCRIPT_HASH: &str = "sha256-PuxxjZZnRBHcMNIeoMDarSa1B9JCDLPIUS/QeqZ2y44=";
/// The style sheet added to that of a single page.
const SITE_STYLE: &str = include_str!("site/site.css");
/// Name of the file that lists all others, one path per line, so that the site can be rebuilt in place.
pub const FILE_LIST: &str = "site-files.txt";
/// The schemas of the records in [`crate::wire`].
const SCHEMAS: [(&str, &str); 3] = [
    ("schema/baseline.schema.json", include_str!("../../schema/baseline.schema.json")),
    ("schema/plan.schema.json", include_str!("../../schema/plan.schema.json")),
    ("schema/run.schema.json", include_str!("../../schema/run.schema.json")),
];

/// File names of the pages.
struct PagePaths {
    devices: Vec<String>,
    tests: Vec<String>,
}

impl PagePaths {
    fn new(report: &Report) -> PagePaths {
        let mut taken = BTreeSet::new();
        let devices =
            report.devices.iter().map(|device| unique_file_name(&device.label, &mut taken)).collect();
        taken.clear();
        let tests = report.tests.iter().map(|row| unique_file_name(&row.id, &mut taken)).collect();
        PagePaths { devices, tests }
    }
}

/// Returns a distinct file name for each device of a report.
pub fn device_files(report: &Report) -> Vec<String> {
    PagePaths::new(report).devices
}

/// Makes a safe file name from untrusted text, distinct from those in `taken` when case is ignored.
fn unique_file_name(name: &str, taken: &mut BTreeSet<String>) -> String {
    let mut base = String::new();
    for c in name.chars().take(100) {
        match c {
            c if c.is_ascii_alphanumeric() || "+_@-".contains(c) => base.push(c),
            // A leading dot would hide the file.
            '.' | '/' if !base.is_empty() => base.push('.'),
            _ if !base.is_empty() && !base.ends_with('-') => base.push('-'),
            _ => {}
        }
    }
    let base = base.trim_end_matches(['-', '.']);
    let base = if base.is_empty() { "unnamed" } else { base };
    let mut name = base.to_owned();
    let mut number = 2;
    while !taken.insert(name.to_ascii_lowercase()) {
        name = format!("{base}-{number}");
        number += 1;
    }
    name
}

/// Builds the files of a site for `report`, which was built from `results`. `pictures` has one entry per
/// test, in the order of the report; `None` for a test without an explanation.
///
/// # Errors
/// Returns an error if a record cannot be written as JSON or a plot cannot be drawn.
pub fn build_files(
    results: &[Results],
    report: &Report,
    pictures: &[Option<ExplainedPicture>],
) -> io::Result<Vec<SiteFile>> {
    let paths = PagePaths::new(report);
    let mut files = vec![
        SiteFile { path: "index.html".to_owned(), bytes: render_index(report, &paths).into_bytes() },
        SiteFile { path: "site.css".to_owned(), bytes: format!("{STYLE}{SITE_STYLE}").into_bytes() },
    ];
    let drawn = plots::draw_plots(report, &paths.devices).map_err(io::Error::other)?;
    for (device, place) in paths.devices.iter().enumerate() {
        let has_plot = |what: &str| drawn.iter().any(|plot| plot.path == format!("{place}-{what}.svg"));
        let shown: Vec<&str> = ["weak", "speed"].into_iter().filter(|what| has_plot(what)).collect();
        let page = render_device_page(report, device, &paths, &shown);
        files.push(SiteFile { path: format!("device/{place}.html"), bytes: page.into_bytes() });
    }
    let mutants = MutantVerdicts::from_lines(report.lines());
    for (test, (row, place)) in report.tests.iter().zip(&paths.tests).enumerate() {
        let page =
            render_test_page(report, &mutants, row, pictures.get(test).and_then(Option::as_ref), &paths);
        files.push(SiteFile { path: format!("test/{place}.html"), bytes: page.into_bytes() });
    }
    let columns =
        results.iter().flat_map(|results| device_names(results).into_iter().map(move |name| (results, name)));
    for ((results, name), place) in columns.zip(&paths.devices) {
        let bytes = baseline::format_device(results, &name)?;
        files.push(SiteFile { path: format!("data/{place}.jsonl"), bytes });
    }
    let schemas = SCHEMAS
        .iter()
        .map(|(path, text)| SiteFile { path: (*path).to_owned(), bytes: text.as_bytes().to_vec() });
    files.extend(schemas);
    let list: String = files.iter().map(|file| format!("{}\n", file.path)).collect();
    files.push(SiteFile { path: FILE_LIST.to_owned(), bytes: list.into_bytes() });
    Ok(files)
}

/// Renders a page; `up` is the relative path to the index.
fn render_page(
    heading: (&str, &str),
    up: &str,
    script: Option<&str>,
    columns: usize,
    main: &Markup,
) -> String {
    let (heading, description) = heading;
    let header = html! {
        h1 { (heading) }
        nav {
            a href={ (up) "index.html" } { "All devices" }
            a href={ (up) "index.html#tests" } { "Tests" }
            a href={ (up) "index.html#words" } { "Words" }
        }
    };
    let script_source = if script.is_some() { format!("'{SCRIPT_HASH}'") } else { "'none'".to_owned() };
    let shell = PageFrame {
        title: heading,
        description,
        policy: &format!(
            "default-src 'none'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; script-src {script_source}; base-uri 'none'; form-action 'none'"
        ),
        style: html! { link rel="stylesheet" href={ (up) "site.css" }; },
        devices: columns,
        script,
    };
    shell.render(&header, main)
}

fn render_index(report: &Report, paths: &PagePaths) -> String {
    let test = |index: usize| {
        paths
            .tests
            .get(index)
            .map_or_else(String::new, |place| format!("test/{}.html", percent_encode(place)))
    };
    let links =
        Links { test: &test, find: &|name| format!("#find={}", percent_encode(name)), why: &|_| None };
    let main = html! {
        (render_conclusions(report))
        (render_device_list(report, paths))
        (render_violations(report, &links))
        (render_map(report, &links))
        section {
            h2 { "Data" }
            p { "The records of each device are JSON lines: a header with the plan, then one line for each test (schemas: "
                @for (index, (path, _)) in SCHEMAS.iter().enumerate() { @if index > 0 { ", " } a href=(path) { (path.trim_start_matches("schema/")) } }
                "). " code { "vk-litmus report" } ", " code { "diff" } " and " code { "report --site" }
                " read these files. To add a device, add the file that " code { "vk-litmus run --save-baseline" }
                " writes, and build the site again." }
        }
        (render_glossary())
    };
    render_page(
        (&page_title(report), &page_description(report)),
        "",
        Some(SCRIPT),
        report.devices.len(),
        &main,
    )
}

fn render_device_list(report: &Report, paths: &PagePaths) -> Markup {
    html! {
        section id="devices" {
            h2 { "Devices" }
            div class="wide" {
                table class="groups" {
                    thead { tr { th { "device" } th { "driver" } th { "Vulkan" } th { "verdicts" } th class="n" { "weak in" } th class="n" { "instances" } th { "data" } } }
                    tbody {
                        @for ((device, tally), place) in report.devices.iter().zip(report.totals()).zip(&paths.devices) {
                            tr {
                                th { a href={ "device/" (percent_encode(place)) ".html" } { (EscapedLine(&device.label)) } }
                                td { @if let Some(record) = &device.record { (EscapedLine(&record.driver_name)) " " (EscapedLine(&record.driver_info)) } }
                                td { @if let Some(record) = &device.record { (EscapedLine(&record.api_version)) } }
                                td { (render_verdict_bar(&tally))
                                    @if device.unfinished > 0 { span class="warning" { (device.unfinished) " tests have no verdict" } } }
                                td class="n" { (tally.weak) " of " (tally.weak + tally.weak_unseen) }
                                td class="n" { (format_count(tally.instances)) }
                                td { a href={ "data/" (percent_encode(place)) ".jsonl" } { "JSON lines" } }
                            }
                        }
                    }
                }
            }
        }
    }
}

/// Renders the table of tests by device, differing tests first.
fn render_map(report: &Report, links: &Links<'_>) -> Markup {
    let mut order: Vec<usize> = (0..report.tests.len()).collect();
    let verdicts_differ = |row: &TestRow| {
        let mut verdicts =
            row.cells.iter().flatten().map(|line| line.verdict).filter(|v| *v != VerdictWord::Skipped);
        verdicts.next().is_some_and(|first| verdicts.any(|other| other != first))
    };
    order.sort_by_key(|index| {
        report.tests.get(*index).map(|row| (!verdicts_differ(row), !row.has_differences()))
    });
    html! {
        section id="tests" {
            h2 { "Tests and devices" }
            form id="filter" {
                input type="search" id="find" placeholder="id, name, clause or verdict" aria-label="find";
                label { input type="checkbox" id="differs"; " devices differ" }
                output id="shown" { (report.tests.len()) " tests" }
                span class="quiet" { "Tests that differ come first; a heading sorts by its column." }
            }
            div class="wide" {
                table class="map" {
                    thead { tr {
                        th { button type="button" { "test" } }
                        @for device in &report.devices { th { button type="button" { (EscapedLine(&device.label)) } } }
                    } }
                    tbody {
                        @for (index, row) in order.into_iter().filter_map(|index| Some((index, report.tests.get(index)?))) {
                            tr data-d=[row.has_differences().then_some("1")] data-n={ (EscapedLine(&row.name)) @for clause in &row.clauses { " " (EscapedLine(clause)) } } {
                                th data-s=(index) { a href=((links.test)(index)) { (EscapedLine(&row.id)) } }
                                @for cell in &row.cells { (render_map_cell(cell.as_ref())) }
                            }
                        }
                    }
                }
            }
        }
    }
}

fn render_map_cell(cell: Option<&RunLine>) -> Markup {
    let Some(line) = cell else { return html! { td class="m" data-s="9" { } } };
    let weak = share_of_resolved(count_weak(line), line);
    let rank = VERDICTS.iter().position(|verdict| *verdict == line.verdict).unwrap_or_default();
    html! {
        td class={ "m " (line.verdict.name()) } data-s=(format!("{:.6}", rank as f64 - weak.min(0.999)))
            title={ (line.verdict.name()) @if let Some(reason) = &line.reason { ": " (EscapedLine(reason)) } } {
            (verdict_symbol(line.verdict))
            @if weak > 0.0 { " " span class="sign k1" { "◆" } (format_probability(weak)) }
        }
    }
}

/// Returns the report of one device, and the index of each of its tests in the whole report.
fn device_report(report: &Report, device: usize) -> (Report, Vec<usize>) {
    let column: Vec<DeviceColumn> = report.devices.get(device).cloned().into_iter().collect();
    let mut places = Vec::new();
    let tests = report.tests.iter().enumerate().filter_map(|(index, row)| {
        let line = row.cells.get(device)?.clone()?;
        places.push(index);
        Some(TestRow { cells: vec![Some(line)], machine_code: Vec::new(), ..row.clone() })
    });
    (Report { devices: column, tests: tests.collect() }, places)
}

fn render_device_page(report: &Report, device: usize, paths: &PagePaths, plots: &[&str]) -> String {
    let (device_report, report_indices) = device_report(report, device);
    let place = |index: usize| report_indices.get(index).and_then(|index| paths.tests.get(*index));
    let test = |index: usize| {
        place(index).map_or_else(String::new, |place| format!("../test/{}.html", percent_encode(place)))
    };
    let links = Links {
        test: &test,
        find: &|name| format!("../index.html#find={}", percent_encode(name)),
        why: &|_| None,
    };
    let data = paths.devices.get(device).map_or("", String::as_str);
    let differing: Vec<usize> = (0..device_report.tests.len())
        .filter(|index| {
            report_indices
                .get(*index)
                .and_then(|index| report.tests.get(*index))
                .is_some_and(TestRow::has_differences)
        })
        .collect();
    let main = html! {
        (render_conclusions(&device_report))
        p { "All records: " a href={ "../data/" (percent_encode(data)) ".jsonl" } { "JSON lines" } }
        (render_summary(&device_report, &links))
        section {
            h2 { "Tests" }
            p { (differing.len()) " of " (device_report.tests.len()) " tests differ between devices: here marked by " b { "≠" } "." }
            div class="wide" {
                table class="map" {
                    thead { tr { th { "test" } th { "verdict" } th { } } }
                    tbody {
                        @for (index, row) in device_report.tests.iter().enumerate() {
                            tr {
                                th { a href=((links.test)(index)) { (EscapedLine(&row.id)) } }
                                td { (render_chip(row.cells.first().and_then(Option::as_ref))) }
                                td { @if differing.binary_search(&index).is_ok() { b title="devices differ" { "≠" } } }
                            }
                        }
                    }
                }
            }
        }
        @for what in plots {
            figure { img loading="lazy" alt=(what) src={ "../plot/" (percent_encode(data)) "-" (what) ".svg" }; }
        }
        (render_devices(&device_report))
    };
    let heading = device_report
        .devices
        .first()
        .map_or_else(String::new, |device| crate::escape::escape_line(&device.label).into_owned());
    render_page((&heading, &page_description(&device_report)), "../", None, 1, &main)
}

fn render_test_page(
    report: &Report,
    mutants: &MutantVerdicts<'_>,
    row: &TestRow,
    picture: Option<&ExplainedPicture>,
    paths: &PagePaths,
) -> String {
    let main = html! {
        p { b { (EscapedLine(&row.name)) }
            @for clause in &row.clauses { " " a class="clause" href={ "../index.html#find=" (percent_encode(clause)) } { (EscapedLine(clause)) } } }
        p { (render_linear_switch()) " " @for (device, place) in report.devices.iter().zip(&paths.devices) {
            a href={ "../device/" (percent_encode(place)) ".html" } { (EscapedLine(&device.label)) } " " } }
        div class="wide" { (render_histogram(row, report, mutants)) }
        div class="sides" {
            @if !row.text.is_empty() { pre class="source" { (EscapedBlock(&row.text)) } }
            @if let Some(picture) = picture { (render_picture(picture)) }
        }
        @for (device, line) in &row.machine_code {
            (render_machine_code(report.devices.get(*device).map_or("", |device| &device.label), line))
        }
        details { summary { h2 { "Runs" } } (render_conclusions(report)) }
    };
    render_page((&crate::escape::escape_line(&row.id), &row.name), "../", None, report.devices.len(), &main)
}
