//! A site of static HTML pages: one page per device and per test, with the records for download.
//!
//! The pages need no server and load nothing from other hosts, so they work from any file host and from disk.
//! To add a device, add its results file and build the site again.

mod file;

use std::collections::BTreeSet;
use std::io;

use maud::{Markup, html};

pub use self::file::SiteFile;
use super::html::parts::{
    Block, Line, Links, broken, chip, conclusions, devices, encoded, explained, histogram, linear,
    machine_code, share, sign, strip, summary,
};
use super::html::{ExplainedPicture, STYLE, Shell, description, title, words};
use super::number::{count, probability};
use super::plots;
use crate::baseline;
use crate::mutants::Mutants;
use crate::read::Results;
use crate::report::{Column, Report, TestRow, VERDICTS, device_names, weak_seen};
use crate::wire::{RunLine, VerdictWord};

/// The script of the index page.
pub const SCRIPT: &str = include_str!("site/site.js");
/// The SHA-256 hash of [`SCRIPT`] in the form of a content security policy; a test computes it.
pub const SCRIPT_HASH: &str = "sha256-PuxxjZZnRBHcMNIeoMDarSa1B9JCDLPIUS/QeqZ2y44=";
/// The style sheet added to that of a single page.
const SITE_STYLE: &str = include_str!("site/site.css");
/// Name of the file that lists all others, one path per line, so that the site can be rebuilt in place.
pub const LIST: &str = "site-files.txt";
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
pub fn files(
    results: &[Results],
    report: &Report,
    pictures: &[Option<ExplainedPicture>],
) -> io::Result<Vec<SiteFile>> {
    let places = PagePaths::new(report);
    let mut files = vec![
        SiteFile { path: "index.html".to_owned(), bytes: index(report, &places).into_bytes() },
        SiteFile { path: "site.css".to_owned(), bytes: format!("{STYLE}{SITE_STYLE}").into_bytes() },
    ];
    let drawn = plots::files(report, &places.devices).map_err(io::Error::other)?;
    for (device, place) in places.devices.iter().enumerate() {
        let own = |what: &str| drawn.iter().any(|plot| plot.path == format!("{place}-{what}.svg"));
        let shown: Vec<&str> = ["weak", "speed"].into_iter().filter(|what| own(what)).collect();
        let page = device_page(report, device, &places, &shown);
        files.push(SiteFile { path: format!("device/{place}.html"), bytes: page.into_bytes() });
    }
    let mutants = Mutants::of(report.lines());
    for (test, (row, place)) in report.tests.iter().zip(&places.tests).enumerate() {
        let page = test_page((report, &mutants), row, pictures.get(test).and_then(Option::as_ref), &places);
        files.push(SiteFile { path: format!("test/{place}.html"), bytes: page.into_bytes() });
    }
    let columns =
        results.iter().flat_map(|results| device_names(results).into_iter().map(move |name| (results, name)));
    for ((results, name), place) in columns.zip(&places.devices) {
        let bytes = baseline::of_device(results, &name)?;
        files.push(SiteFile { path: format!("data/{place}.jsonl"), bytes });
    }
    let schemas = SCHEMAS
        .iter()
        .map(|(path, text)| SiteFile { path: (*path).to_owned(), bytes: text.as_bytes().to_vec() });
    files.extend(schemas);
    let list: String = files.iter().map(|file| format!("{}\n", file.path)).collect();
    files.push(SiteFile { path: LIST.to_owned(), bytes: list.into_bytes() });
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
    let shell = Shell {
        title: heading,
        description,
        policy: &format!(
            "default-src 'none'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; script-src {script_source}; base-uri 'none'; form-action 'none'"
        ),
        style: html! { link rel="stylesheet" href={ (up) "site.css" }; },
        devices: columns,
        script,
    };
    shell.around(&header, main)
}

fn index(report: &Report, places: &PagePaths) -> String {
    let test = |index: usize| {
        places.tests.get(index).map_or_else(String::new, |place| format!("test/{}.html", encoded(place)))
    };
    let links = Links { test: &test, find: &|name| format!("#find={}", encoded(name)) };
    let main = html! {
        (conclusions(report))
        (every_device(report, places))
        (broken(report, &links))
        (render_map(report, &links))
        section {
            h2 { "Data" }
            p { "The records of each device are JSON lines: a header with the plan, then one line for each test (schemas: "
                @for (index, (path, _)) in SCHEMAS.iter().enumerate() { @if index > 0 { ", " } a href=(path) { (path.trim_start_matches("schema/")) } }
                "). " code { "vk-litmus report" } ", " code { "diff" } " and " code { "report --site" }
                " read these files. To add a device, add the file that " code { "vk-litmus run --save-baseline" }
                " writes, and build the site again." }
        }
        (words())
    };
    render_page((&title(report), &description(report)), "", Some(SCRIPT), report.devices.len(), &main)
}

fn every_device(report: &Report, places: &PagePaths) -> Markup {
    html! {
        section id="devices" {
            h2 { "Devices" }
            div class="wide" {
                table class="groups" {
                    thead { tr { th { "device" } th { "driver" } th { "Vulkan" } th { "verdicts" } th class="n" { "weak in" } th class="n" { "instances" } th { "data" } } }
                    tbody {
                        @for ((device, tally), place) in report.devices.iter().zip(report.totals()).zip(&places.devices) {
                            tr {
                                th { a href={ "device/" (encoded(place)) ".html" } { (Line(&device.label)) } }
                                td { @if let Some(record) = &device.record { (Line(&record.driver_name)) " " (Line(&record.driver_info)) } }
                                td { @if let Some(record) = &device.record { (Line(&record.api_version)) } }
                                td { (strip(&tally))
                                    @if device.unfinished > 0 { span class="warning" { (device.unfinished) " tests have no verdict" } } }
                                td class="n" { (tally.weak) " of " (tally.weak + tally.weak_unseen) }
                                td class="n" { (count(tally.instances)) }
                                td { a href={ "data/" (encoded(place)) ".jsonl" } { "JSON lines" } }
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
    order.sort_by_key(|index| report.tests.get(*index).map(|row| (!verdicts_differ(row), !row.differs())));
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
                        @for device in &report.devices { th { button type="button" { (Line(&device.label)) } } }
                    } }
                    tbody {
                        @for (index, row) in order.into_iter().filter_map(|index| Some((index, report.tests.get(index)?))) {
                            tr data-d=[row.differs().then_some("1")] data-n={ (Line(&row.name)) @for clause in &row.clauses { " " (Line(clause)) } } {
                                th data-s=(index) { a href=((links.test)(index)) { (Line(&row.id)) } }
                                @for cell in &row.cells { (cell_of_map(cell.as_ref())) }
                            }
                        }
                    }
                }
            }
        }
    }
}

fn cell_of_map(cell: Option<&RunLine>) -> Markup {
    let Some(line) = cell else { return html! { td class="m" data-s="9" { } } };
    let weak = share(weak_seen(line), line);
    let rank = VERDICTS.iter().position(|verdict| *verdict == line.verdict).unwrap_or_default();
    html! {
        td class={ "m " (line.verdict.text()) } data-s=(format!("{:.6}", rank as f64 - weak.min(0.999)))
            title={ (line.verdict.text()) @if let Some(reason) = &line.reason { ": " (Line(reason)) } } {
            (sign(line.verdict))
            @if weak > 0.0 { " " span class="sign k1" { "◆" } (probability(weak)) }
        }
    }
}

/// Returns the report of one device, and the index of each of its tests in the whole report.
fn of_device(report: &Report, device: usize) -> (Report, Vec<usize>) {
    let column: Vec<Column> = report.devices.get(device).cloned().into_iter().collect();
    let mut places = Vec::new();
    let tests = report.tests.iter().enumerate().filter_map(|(index, row)| {
        let line = row.cells.get(device)?.clone()?;
        places.push(index);
        Some(TestRow { cells: vec![Some(line)], machine_code: Vec::new(), ..row.clone() })
    });
    (Report { devices: column, tests: tests.collect() }, places)
}

fn device_page(report: &Report, device: usize, places: &PagePaths, plots: &[&str]) -> String {
    let (own, whole) = of_device(report, device);
    let place = |index: usize| whole.get(index).and_then(|index| places.tests.get(*index));
    let test = |index: usize| {
        place(index).map_or_else(String::new, |place| format!("../test/{}.html", encoded(place)))
    };
    let links = Links { test: &test, find: &|name| format!("../index.html#find={}", encoded(name)) };
    let data = places.devices.get(device).map_or("", String::as_str);
    let alone: Vec<usize> = (0..own.tests.len())
        .filter(|index| {
            whole.get(*index).and_then(|index| report.tests.get(*index)).is_some_and(TestRow::differs)
        })
        .collect();
    let main = html! {
        (conclusions(&own))
        p { "All records: " a href={ "../data/" (encoded(data)) ".jsonl" } { "JSON lines" } }
        (summary(&own, &links))
        section {
            h2 { "Tests" }
            p { (alone.len()) " of " (own.tests.len()) " tests differ between devices: here marked by " b { "≠" } "." }
            div class="wide" {
                table class="map" {
                    thead { tr { th { "test" } th { "verdict" } th { } } }
                    tbody {
                        @for (index, row) in own.tests.iter().enumerate() {
                            tr {
                                th { a href=((links.test)(index)) { (Line(&row.id)) } }
                                td { (chip(row.cells.first().and_then(Option::as_ref))) }
                                td { @if alone.binary_search(&index).is_ok() { b title="devices differ" { "≠" } } }
                            }
                        }
                    }
                }
            }
        }
        @for what in plots {
            figure { img loading="lazy" alt=(what) src={ "../plot/" (encoded(data)) "-" (what) ".svg" }; }
        }
        (devices(&own))
    };
    let heading =
        own.devices.first().map_or_else(String::new, |device| crate::show::line(&device.label).into_owned());
    render_page((&heading, &description(&own)), "../", None, 1, &main)
}

fn test_page(
    (report, mutants): (&Report, &Mutants<'_>),
    row: &TestRow,
    picture: Option<&ExplainedPicture>,
    places: &PagePaths,
) -> String {
    let main = html! {
        p { b { (Line(&row.name)) }
            @for clause in &row.clauses { " " a class="clause" href={ "../index.html#find=" (encoded(clause)) } { (Line(clause)) } } }
        p { (linear()) " " @for (device, place) in report.devices.iter().zip(&places.devices) {
            a href={ "../device/" (encoded(place)) ".html" } { (Line(&device.label)) } " " } }
        div class="wide" { (histogram(row, report, mutants)) }
        div class="sides" {
            @if !row.text.is_empty() { pre class="source" { (Block(&row.text)) } }
            @if let Some(picture) = picture { (explained(picture)) }
        }
        @for (device, line) in &row.machine_code {
            (machine_code(report.devices.get(*device).map_or("", |device| &device.label), line))
        }
        details { summary { h2 { "Runs" } } (conclusions(report)) }
    };
    render_page((&crate::show::line(&row.id), &row.name), "../", None, report.devices.len(), &main)
}
