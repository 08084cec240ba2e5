//! Sections shared by the HTML report and the site.

use std::collections::BTreeMap;

use maud::{Markup, Render, html};

use super::ExplainedPicture;
use crate::conclusion;
use crate::drift::significant_drifts;
use crate::escape;
use crate::mutants::MutantVerdicts;
use crate::number::plural;
use crate::portability::portability_class;
use crate::power;
use crate::report::{
    DeviceColumn, HistogramBar, OutcomeClass, Report, Tally, TallyGroups, TestRow, VERDICTS, count_weak,
    histogram_bars, interval_source, weak_reproducibility,
};
use crate::state;
use crate::wire::{DeviceRecord, MachineCodeLine, RunLine, VerdictWord};
use crate::write::code;
use crate::write::number::{format_count, format_probability, format_seconds};

/// Largest number of outcomes listed for a test.
const MAX_OUTCOMES: usize = 64;
/// Largest amount of machine code on a page, in bytes.
const MAX_CODE_BYTES: usize = 2_000_000;

/// Untrusted text on one line.
pub(in crate::write) struct EscapedLine<'a>(pub(in crate::write) &'a str);

impl Render for EscapedLine<'_> {
    fn render_to(&self, out: &mut String) {
        escape::escape_line(self.0).as_ref().render_to(out);
    }
}

/// Untrusted text of several lines.
pub(in crate::write) struct EscapedBlock<'a>(pub(in crate::write) &'a str);

impl Render for EscapedBlock<'_> {
    fn render_to(&self, out: &mut String) {
        escape::escape_block(self.0).as_ref().render_to(out);
    }
}

/// Advice; what it quotes in backticks becomes code.
struct Advice<'a>(&'a str);

impl Render for Advice<'_> {
    fn render_to(&self, out: &mut String) {
        let parts = self.0.split('`').enumerate();
        let part = |(index, part)| html! { @if index % 2 == 1 { code { (part) } } @else { (part) } };
        parts.map(part).for_each(|part| part.render_to(out));
    }
}

/// Parts of the summary that differ between the report and the site: addresses and explanations.
pub(in crate::write) struct Links<'a> {
    /// Returns the address of a test, by its index in the report.
    pub(in crate::write) test: &'a dyn Fn(usize) -> String,
    /// Returns the address of a search for a word.
    pub(in crate::write) find: &'a dyn Fn(&str) -> String,
    /// Returns in one line why an outcome of a test is forbidden, by its index in the report.
    pub(in crate::write) why: &'a dyn Fn(usize) -> Option<&'a str>,
}

/// Percent-encodes text for an address.
pub(in crate::write) fn percent_encode(text: &str) -> String {
    let is_kept = |byte: u8| byte.is_ascii_alphanumeric() || b".-_/".contains(&byte);
    escape::percent_encode(&escape::escape_line(text), is_kept)
}

pub(in crate::write) fn verdict_symbol(verdict: VerdictWord) -> &'static str {
    match verdict {
        VerdictWord::Violates => "✖",
        VerdictWord::Inconclusive => "?",
        VerdictWord::Undefined => "~",
        VerdictWord::Conforms => "✓",
        VerdictWord::Skipped => "–",
    }
}

/// Renders the verdict on each device in one sentence, with driver, model, suite, date and version.
pub(in crate::write) fn render_conclusions(report: &Report) -> Markup {
    html! {
        section id="conclusion" {
            @for conclusion in conclusion::conclude_report(report) {
                p class={ "conclusion" @if conclusion.violates { " alarm" } } {
                    b { (EscapedLine(&conclusion.sentence)) }
                    br; span class="quiet" { (EscapedLine(&conclusion.provenance)) }
                }
            }
        }
    }
}

/// Largest number of inconclusive tests that are listed; the filter of the tests finds the others.
const MAX_UNDECIDED: usize = 50;

/// Renders the tests without a verdict, by reason, with the advice for one.
fn render_inconclusive(report: &Report, links: &Links<'_>) -> Markup {
    let found = conclusion::inconclusive_tests(report);
    let mut reasons: BTreeMap<&str, Vec<(usize, &RunLine)>> = BTreeMap::new();
    for (index, _, line) in &found {
        reasons.entry(line.reason.as_deref().unwrap_or("inconclusive")).or_default().push((*index, line));
    }
    html! {
        @if !found.is_empty() {
            h2 { "? Inconclusive tests" }
            @for (reason, lines) in reasons {
                details open[lines.len() <= 10] {
                    summary { (lines.len()) " " (EscapedLine(reason)) ": " (Advice(conclusion::advice_for_reason(reason, lines.iter().all(|(_, line)| line.shader.is_some())))) }
                    ul {
                        @for (index, line) in lines.iter().take(MAX_UNDECIDED) {
                            li { a href=((links.test)(*index)) { (EscapedLine(&line.id)) } " on " (EscapedLine(&line.device)) }
                        }
                        @if lines.len() > MAX_UNDECIDED { li { (lines.len() - MAX_UNDECIDED) " more" } }
                    }
                }
            }
        }
    }
}

/// Renders devices with their verdicts, violations, families and clauses.
pub(in crate::write) fn render_summary(report: &Report, links: &Links<'_>) -> Markup {
    let totals = report.totals();
    html! {
        section id="summary" {
            div class="cards" {
                @for (device, tally) in report.devices.iter().zip(&totals) { (render_device_card(device, tally, report.tests.len())) }
            }
            (render_violations(report, links))
            (render_inconclusive(report, links))
            (render_drifts(report, links))
            (render_powers(report))
            (render_group("family", &report.families(), report, links))
            (render_group("clause", &report.clauses(), report, links))
        }
    }
}

/// Renders the detection power of the runs.
fn render_powers(report: &Report) -> Markup {
    let powers = power::embedded_matrix()
        .map(|matrix| power::compute_powers(matrix, report.lines()))
        .unwrap_or_default();
    html! {
        @if !powers.is_empty() { h2 { "Power" } }
        @for power in &powers {
            details class="power" {
                summary { (EscapedLine(&power.device)) ": this run " (power.summarize()) }
                p {
                    @for family in &power.families { (family.family) " " (family.found) " of " (family.known) "; " }
                }
                @if !power.missed.is_empty() {
                    ul {
                        @for missed in &power.missed {
                            li { (missed.fault) ": " (missed.rule) ". " (missed.why) "; " (missed.describe_found_by()) }
                        }
                    }
                }
            }
        }
    }
}

/// Renders the number of tests by verdict as a bar of constant width.
pub(in crate::write) fn render_verdict_bar(tally: &Tally) -> Markup {
    html! {
        div class="strip" {
            @for (verdict, number) in VERDICTS.iter().zip(tally.verdicts).filter(|(_, number)| *number > 0) {
                span class={ "v " (verdict.name()) } style=(format!("flex:{number}"))
                    title=(format!("{number} {}", verdict.name())) { (verdict_symbol(*verdict)) (number) }
            }
        }
    }
}

fn render_device_card(device: &DeviceColumn, tally: &Tally, tests: usize) -> Markup {
    let record = device.record.as_ref();
    html! {
        article class="card" {
            h2 { (EscapedLine(&device.label)) }
            @if let Some(record) = record {
                p { (EscapedLine(&record.device_name)) br; span class="quiet" { (EscapedLine(&record.driver_name)) " " (EscapedLine(&record.driver_info)) } }
            }
            (render_verdict_bar(tally))
            ul {
                @for (verdict, number) in VERDICTS.iter().zip(tally.verdicts).filter(|(_, number)| *number > 0) {
                    li {
                        span class={ "chip " (verdict.name()) } { (verdict_symbol(*verdict)) " " (verdict.name()) } " " (number)
                        @if *verdict == VerdictWord::Inconclusive && tally.unexercised > 0 {
                            span class="quiet" { " (" (tally.unexercised) " not exercised)" }
                        }
                    }
                }
            }
            p { (plural(tally.weak as u64, "test")) " showed weak outcomes, " (tally.weak_unseen) " allow some and showed none" br;
                (format_count(tally.instances)) " instances, " (format_count(tally.interleaved)) " interleaved" }
            @if device.unfinished > 0 {
                p class="warning" { "Incomplete: " (device.unfinished) " of " (tests) " tests have no verdict" }
            }
        }
    }
}

pub(in crate::write) fn render_violations(report: &Report, links: &Links<'_>) -> Markup {
    let mut found: Vec<(usize, &RunLine)> = Vec::new();
    for (index, row) in report.tests.iter().enumerate() {
        let violating = row.cells.iter().flatten().filter(|line| line.verdict == VerdictWord::Violates);
        found.extend(violating.map(|line| (index, line)));
    }
    html! {
        @if !found.is_empty() {
            h2 class="alarm" { "✖ Broken rules" }
            ul class="broken" {
                @for (index, line) in found {
                    li {
                        a href=((links.test)(index)) { (EscapedLine(&line.id)) } " on " (EscapedLine(&line.device)) ": "
                        (EscapedLine(line.detail.as_deref().unwrap_or_default()))
                        @if let Some(why) = (links.why)(index) { br; (EscapedLine(why)) }
                    }
                }
            }
        }
    }
}

/// Renders the runs with a rate change, whose intervals are therefore less meaningful.
fn render_drifts(report: &Report, links: &Links<'_>) -> Markup {
    let found = significant_drifts(report.lines());
    html! {
        @if !found.is_empty() {
            h2 { "Rates that drifted" }
            ul class="drifted" {
                @for (line, drift, p) in found {
                    li {
                        @if let Some(index) = report.tests.iter().position(|row| row.id == line.id) {
                            a href=((links.test)(index)) { (EscapedLine(&line.id)) }
                        }
                        " on " (EscapedLine(&line.device)) ": " (EscapedLine(&state::format_state(&drift.state))) " from " (format_probability(drift.earlier))
                        " to " (format_probability(drift.later)) " during the run (p = " (format!("{p:.1e}")) ")"
                    }
                }
            }
        }
    }
}

fn render_group(word: &str, groups: &TallyGroups, report: &Report, links: &Links<'_>) -> Markup {
    html! {
        @if !groups.is_empty() {
            details open[word == "family"] {
                summary { h2 { "By " (word) } }
                table class="groups" {
                    thead { tr { th { (word) } th class="n" { "tests" }
                        @for device in &report.devices { th { (EscapedLine(&device.label)) } } } }
                    tbody {
                        @for (name, tests, tallies) in groups {
                            tr {
                                th { a href=((links.find)(name)) { (EscapedLine(name)) } }
                                td class="n" { (tests) }
                                @for tally in tallies {
                                    td {
                                        (render_verdict_bar(tally))
                                        @if tally.weak > 0 { span class="sign k1" { "◆" } " weak in " (tally.weak) }
                                    }
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}

/// The most violating tests that a page shows unfolded.
const MAX_OPEN_TESTS: usize = 3;

/// Renders the tests with their filters.
pub(in crate::write) fn render_tests(report: &Report, pictures: &[Option<ExplainedPicture>]) -> Markup {
    let mut bytes = 0_usize;
    let with_code: Vec<bool> = report
        .tests
        .iter()
        .map(|row| {
            let parts = row.machine_code.iter().flat_map(|(_, line)| code::code_sections(line));
            bytes += parts.map(|part| part.text.len()).sum::<usize>();
            row.machine_code.is_empty() || bytes <= MAX_CODE_BYTES
        })
        .collect();
    let violates =
        |row: &TestRow| row.cells.iter().flatten().any(|line| line.verdict == VerdictWord::Violates);
    let violations = report.tests.iter().enumerate().filter(|(_, row)| violates(row));
    let open: Vec<usize> = violations.map(|(index, _)| index).take(MAX_OPEN_TESTS).collect();
    let mutants = MutantVerdicts::from_lines(report.lines());
    html! {
        section id="tests" {
            h2 { "Tests" }
            form id="filter" {
                input type="search" id="find" placeholder="id, name or clause" aria-label="find";
                select id="verdict" aria-label="verdict" {
                    option value="" { "any verdict" }
                    @for verdict in VERDICTS { option value=(verdict.name()) { (verdict_symbol(verdict)) " " (verdict.name()) } }
                }
                select id="device" aria-label="device" {
                    option value="" { "on any device" }
                    @for (index, device) in report.devices.iter().enumerate() {
                        option value=(index) { "on " (EscapedLine(&device.label)) }
                    }
                }
                label { input type="checkbox" id="weak"; " weak outcome seen" }
                label { input type="checkbox" id="differs"; " devices differ" }
                select id="order" aria-label="order" {
                    option value="" { "as planned" }
                    option value="differs" { "differences first" }
                    option value="worst" { "worst verdict first" }
                    option value="weak" { "most weak outcomes first" }
                }
                (render_linear_switch())
                output id="shown" { (report.tests.len()) " tests" }
            }
            div class="test head" {
                span { "test" }
                @for device in &report.devices { span { (EscapedLine(&device.label)) } }
            }
            @for (index, (row, with_code)) in report.tests.iter().zip(with_code).enumerate() {
                (render_test(index, row, pictures.get(index).and_then(Option::as_ref), with_code, open.contains(&index), report, &mutants))
            }
        }
    }
}

fn render_test(
    index: usize,
    row: &TestRow,
    picture: Option<&ExplainedPicture>,
    with_code: bool,
    is_open: bool,
    report: &Report,
    mutants: &MutantVerdicts<'_>,
) -> Markup {
    let verdicts: Vec<&str> =
        row.cells.iter().map(|cell| cell.as_ref().map_or("none", |line| line.verdict.name())).collect();
    let weak: Vec<&str> = row
        .cells
        .iter()
        .map(|cell| if cell.as_ref().is_some_and(|line| count_weak(line) > 0) { "1" } else { "0" })
        .collect();
    html! {
        details class="test" open[is_open] id={ "t" (index) } data-v=(verdicts.join(" ")) data-w=(weak.join(" "))
            data-d=[row.has_differences().then_some("1")] data-s=[max_weak_rate(row).map(|share| format!("{share:.2e}"))] {
            summary {
                span class="id" { (EscapedLine(&row.id)) }
                @for cell in &row.cells { (render_chip(cell.as_ref())) }
            }
            p { b { (EscapedLine(&row.name)) }
                @for clause in &row.clauses { " " code class="clause" { (EscapedLine(clause)) } } }
            div class="wide" { (render_histogram(row, report, mutants)) }
            div class="sides" {
                @if !row.text.is_empty() {
                    pre class="source" { (EscapedBlock(&row.text)) }
                }
                @if let Some(picture) = picture { (render_picture(picture)) }
            }
            @if with_code {
                @for (device, line) in &row.machine_code {
                    (render_machine_code(report.devices.get(*device).map_or("", |device| &device.label), line))
                }
            } @else {
                p { "The machine code of this test is in the results folder: the page has no room for it." }
            }
        }
    }
}

/// Renders the compiled code of a violating test.
pub(in crate::write) fn render_machine_code(device: &str, line: &MachineCodeLine) -> Markup {
    html! {
        details class="code" open {
            summary { "machine code on " (EscapedLine(device)) " (" (EscapedLine(&line.driver)) ")" }
            @if let Some(why) = &line.no_code_reason { p { (EscapedLine(&code::format_no_code_reason(why))) } }
            @for part in code::code_sections(line) {
                details open[part.is_aligned] { summary { (EscapedLine(&part.heading)) } pre { (EscapedBlock(&part.text)) } }
            }
            @if line.no_code_reason.is_none() { p class="replay" { "again: " code { (EscapedLine(&line.replay)) } } }
        }
    }
}

pub(in crate::write) fn render_chip(cell: Option<&RunLine>) -> Markup {
    html! {
        @match cell {
            None => span class="chip none" { "no verdict" },
            Some(line) => span {
                span class={ "chip " (line.verdict.name()) } { (verdict_symbol(line.verdict)) " " (line.shown_word()) }
                @if let Some(reason) = &line.reason { " " small { (EscapedLine(reason)) } }
                @if let Some(class) = portability_class(line) { " " small { (EscapedLine(class)) } }
                @if count_weak(line) > 0 {
                    " " small { span class="sign k1" { "◆" } " " (format_probability(share_of_resolved(count_weak(line), line))) }
                }
            },
        }
    }
}

/// Returns the highest rate of weak outcomes on any device, if there are any.
fn max_weak_rate(row: &TestRow) -> Option<f64> {
    row.cells
        .iter()
        .flatten()
        .map(|line| share_of_resolved(count_weak(line), line))
        .filter(|share| *share > 0.0)
        .reduce(f64::max)
}

pub(in crate::write) fn share_of_resolved(seen: u64, line: &RunLine) -> f64 {
    let resolved = line.instances.saturating_sub(line.unresolved);
    if resolved == 0 { 0.0 } else { seen as f64 / resolved as f64 }
}

pub(in crate::write) fn render_picture(picture: &ExplainedPicture) -> Markup {
    html! {
        figure {
            img loading="lazy" alt=(escape::escape_line(&picture.headline)) src=(data_uri(&picture.svg));
            figcaption { (EscapedLine(&picture.headline)) }
            details { summary { "in words" } pre { (EscapedBlock(&picture.text)) } }
        }
    }
}

/// Encodes an SVG as a data URI: as an image it runs no script and loads no file.
fn data_uri(svg: &str) -> String {
    let is_kept = |byte: u8| byte.is_ascii_alphanumeric() || b" /='.:-_,();".contains(&byte);
    format!("data:image/svg+xml;charset=utf-8,{}", escape::percent_encode(&svg.replace('"', "'"), is_kept))
}

/// Renders the switch of the bars' scale; it needs no script.
pub(in crate::write) fn render_linear_switch() -> Markup {
    html! { label { input type="checkbox" id="linear"; " linear bars" } }
}

/// Renders the outcomes of a test with the counts and verdict of each device.
pub(in crate::write) fn render_histogram(
    row: &TestRow,
    report: &Report,
    mutants: &MutantVerdicts<'_>,
) -> Markup {
    let columns: Vec<Option<(&RunLine, Vec<HistogramBar>)>> =
        row.cells.iter().map(|cell| cell.as_ref().map(|line| (line, histogram_bars(line)))).collect();
    let outcomes = collect_outcomes(&columns);
    let more = outcomes.len().saturating_sub(MAX_OUTCOMES);
    html! {
        table class="histogram" {
            thead {
                tr { th { } @for device in &report.devices { th { (EscapedLine(&device.label)) } } }
                tr { th { "verdict" } @for column in &columns { td { @if let Some((line, _)) = column { (render_verdict(line, mutants)) } } } }
                tr class="axis" { th { } @for column in &columns { td { @if let Some((line, _)) = column { (render_axis(line)) } } } }
            }
            tbody {
                @for (kind, outcome, places) in outcomes.iter().take(MAX_OUTCOMES) {
                    tr class={ "k" (*kind as u8) } {
                        th { span class="sign" { (kind.symbol()) } " " (EscapedLine(outcome)) " " small { (kind.name()) } }
                        @for (column, place) in columns.iter().zip(places) {
                            @match column.as_ref().zip(*place) {
                                Some(((line, bars), place)) => (render_bar(line, &bars[place])),
                                None => td { },
                            }
                        }
                    }
                }
            }
            @if more > 0 { tfoot { tr { td colspan=(columns.len() + 1) { (more) " more outcomes, seen less often or never" } } } }
        }
    }
}

/// Collects the outcomes of all columns: the worst class, the text, and the index in each column. If there
/// are too many to list, forbidden and frequent ones come first.
fn collect_outcomes<'a>(
    columns: &'a [Option<(&RunLine, Vec<HistogramBar>)>],
) -> Vec<(OutcomeClass, &'a str, Vec<Option<usize>>)> {
    let mut places: BTreeMap<(bool, &str), usize> = BTreeMap::new();
    let mut found: Vec<(OutcomeClass, &str, Vec<Option<usize>>)> = Vec::new();
    for (index, column) in columns.iter().enumerate() {
        let Some((_, bars)) = column else { continue };
        for (place, bar) in bars.iter().enumerate() {
            let key = (bar.kind == OutcomeClass::Unexpected, bar.outcome.as_str());
            let at = *places.entry(key).or_insert_with(|| {
                found.push((bar.kind, &bar.outcome, vec![None; columns.len()]));
                found.len() - 1
            });
            let (kind, _, places) = &mut found[at];
            *kind = (*kind).max(bar.kind);
            places[index] = Some(place);
        }
    }
    if found.len() > MAX_OUTCOMES {
        found.sort_by_key(|(kind, _, places)| {
            let seen = columns.iter().zip(places).filter_map(|(column, place)| {
                let ((_, bars), place) = column.as_ref().zip(*place)?;
                Some(bars.get(place)?.count)
            });
            (*kind < OutcomeClass::Forbidden, std::cmp::Reverse(seen.max().unwrap_or_default()))
        });
    }
    found
}

fn render_verdict(line: &RunLine, mutants: &MutantVerdicts<'_>) -> Markup {
    let words = mutants.summarize(line);
    html! {
        span class={ "chip " (line.verdict.name()) } { (verdict_symbol(line.verdict)) " " (line.shown_word()) }
        @if !words.is_empty() { " (" (words) ")" }
        " under " (EscapedLine(&line.model))
        @if let Some(reason) = &line.reason { br; (EscapedLine(reason)) }
        @if let Some(detail) = line.detail.as_ref().filter(|detail| line.reason.as_ref() != Some(detail)) { br; small { (EscapedLine(detail)) } }
        @for mutant in mutants.describe_counts(line) { br; small { "mutant " (mutant) } }
        @if line.verdict != VerdictWord::Skipped {
            br;
            small class="quiet" {
                (format_count(line.instances)) " instances, " (format_count(line.interleaved)) " interleaved"
                @if !line.outcomes.is_empty() { "; " (interval_source(line)) }
                @if line.unresolved > 0 { ", " (format_count(line.unresolved)) " unresolved" }
                @if line.not_executed > 0 { ", " (format_count(line.not_executed)) " not executed" }
                "; " @if line.exercised { "exercised" } @else { b { "not exercised" } }
                @if let Some(score) = weak_reproducibility(line) { "; reproducibility " (format_probability(score)) }
                "; " (format_seconds(line.seconds))
            }
            br;
            code class="replay" { (EscapedLine(&line.replay)) }
        }
    }
}

/// Renders the range of the bars of a column.
fn render_axis(line: &RunLine) -> Markup {
    html! {
        @if line.instances > 0 {
            span class="log" { "0, 1, 10, …" } span class="linear" { "0" } span { (format_count(line.instances)) }
        }
    }
}

fn render_bar(line: &RunLine, bar: &HistogramBar) -> Markup {
    // Count 1 gets the width of a full decade, so that a single observation is visible.
    let scale = |count: u64| if count == 0 { 0.0 } else { 1.0 + (count as f64).log10() };
    let decades = scale(line.instances).max(1.0);
    let linear = bar.count as f64 / line.instances.max(1) as f64;
    let style = format!(
        "--w:{:.1}%;--l:{:.1}%;--g:{:.1}%",
        100.0 * scale(bar.count) / decades,
        100.0 * linear,
        100.0 / decades
    );
    html! {
        td class={ "k" (bar.kind as u8) } {
            @if bar.count > 0 { div style=(style) { i { } } }
            (format_count(bar.count)) " "
            small {
                @match (bar.interval.filter(|_| bar.kind != OutcomeClass::Ordinary), bar.bound) {
                    (Some(interval), _) => { (format_probability(bar.rate)) @if bar.counts_batches { "; seen in" } " [" (format_probability(interval.low)) ", " (format_probability(interval.high)) "]" @if bar.counts_batches { " of batches" } },
                    (None, Some(bound)) => { "below " (format_probability(bound)) @if bar.counts_batches { " of batches" } },
                    (None, None) => (format_probability(bar.rate)),
                }
                @if bar.is_filtered { " filtered" }
            }
        }
    }
}

/// Renders the table of device properties.
pub(in crate::write) fn render_devices(report: &Report) -> Markup {
    let mut limits: Vec<&String> = Vec::new();
    for record in report.devices.iter().filter_map(|device| device.record.as_ref()) {
        for name in record.limits.keys() {
            if !limits.contains(&name) {
                limits.push(name);
            }
        }
    }
    let line = |name: &str, value: &dyn Fn(&DeviceRecord) -> String| {
        render_property_row(report, name, &|device| device.record.as_ref().map(value).unwrap_or_default())
    };
    html! {
        section id="devices" {
            h2 { "Devices" }
            table class="sheet" {
                thead { tr { th { } @for device in &report.devices { th { (EscapedLine(&device.label)) } } } }
                tbody {
                    (line("device", &|r| r.device_name.clone()))
                    (line("kind", &|r| r.kind.clone()))
                    (line("driver", &|r| format!("{} {}", r.driver_name, r.driver_info)))
                    (line("driver id, version", &|r| format!("{}, {}", r.driver_id, r.driver_version)))
                    (line("Vulkan", &|r| r.api_version.clone()))
                    (line("vendor, device", &|r| format!("{:#06x}, {:#06x}", r.vendor_id, r.device_id)))
                    (line("UUID", &|r| r.uuid.clone()))
                    @for name in limits { (line(name, &|r| r.limits.get(name).cloned().unwrap_or_default())) }
                    (line("memory types", &|r| r.memory_types.join("; ")))
                    (line("features", &|r| r.features.join(", ")))
                    (render_property_row(report, "seed", &|d| d.seeds.iter().map(u64::to_string).collect::<Vec<_>>().join(", ")))
                    (render_property_row(report, "budget", &|d| d.budget.clone()))
                    (render_property_row(report, "stress", &|d| d.stress.clone()))
                    (render_property_row(report, "vk-litmus", &|d| d.tool.clone()))
                    (render_property_row(report, "started", &|d| d.environment.as_ref().map(|e| e.started.clone()).unwrap_or_default()))
                    (render_property_row(report, "suite", &|d| d.environment.as_ref().map(|e| e.suite.clone()).unwrap_or_default()))
                    (render_property_row(report, "environment", &|d| d.environment.as_ref().map(|e| {
                        let variables: Vec<String> = e.variables.iter().map(|(name, value)| format!("{name}={value}")).collect();
                        format!("{} {}, {} processors, {} jobs {}", e.os, e.architecture, e.processors, e.jobs, variables.join(" "))
                    }).unwrap_or_default()))
                }
            }
        }
    }
}

fn render_property_row(report: &Report, name: &str, value: &dyn Fn(&DeviceColumn) -> String) -> Markup {
    let values: Vec<String> = report.devices.iter().map(value).collect();
    html! {
        @if values.iter().any(|value| !value.trim().is_empty()) {
            tr { th { (EscapedLine(name)) } @for value in &values { td { (EscapedLine(value)) } } }
        }
    }
}
