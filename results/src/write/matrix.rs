//! HTML page of memory orders in machine code: one table per kernel form, orderings as rows, devices as
//! columns.
//!
//! The page starts with the differences between driver versions of the same chip.

use std::collections::{BTreeMap, BTreeSet};

use maud::{Markup, PreEscaped, html};

use crate::wire::{CodegenLine, CodegenOrder, CodegenOrderVerdict, CodegenVerdict};
use crate::write::html::{PageFrame, STYLE};

/// Largest number of tests listed in a cell.
const MAX_NAMED: usize = 12;
/// Verdicts, worst first.
const VERDICTS: [CodegenOrderVerdict; 6] = [
    CodegenOrderVerdict::Lost,
    CodegenOrderVerdict::Weakened,
    CodegenOrderVerdict::Unknown,
    CodegenOrderVerdict::NotCovered,
    CodegenOrderVerdict::Kept,
    CodegenOrderVerdict::Stronger,
];

/// The accesses with one ordering on one compiler, by rank of their verdict.
type VerdictCell = BTreeMap<usize, Vec<AccessPair>>;

/// An ordered access pair in a test's kernel, and the reason of its verdict.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct AccessPair {
    id: String,
    kernel: String,
    why: String,
}

/// Cells by form, ordering and device.
type OrderTable = BTreeMap<String, BTreeMap<String, BTreeMap<String, VerdictCell>>>;

/// Renders the page from lines of `codegen --emit order --format json`.
pub fn render_page(lines: &[CodegenLine]) -> String {
    let mut devices: Vec<(&str, &str)> = Vec::new();
    for line in lines {
        if !devices.iter().any(|(device, _)| *device == line.device) {
            devices.push((&line.device, &line.driver));
        }
    }
    let table = build_table(lines);
    let header = html! {
        h1 { "Orders in machine code" }
        nav {
            a href="#differs" { "What differs" }
            @for form in table.keys() { a href={ "#" (form) } { (form) } }
        }
    };
    let main = html! {
        section #differs {
            h2 { "What differs between drivers of a chip" }
            (render_differences(&table, &devices))
        }
        (render_crashes(lines))
        @for (form, rows) in &table {
            section id=(form) {
                h2 { (form) }
                (render_rows(rows, &devices))
            }
        }
        section #words {
            h2 { "Words" }
            dl {
                dt { "kept" } dd { "Everything that the order needs is between the two accesses." }
                dt { "weakened" } dd { "A part of it is." }
                dt { "lost" } dd { "The two are not ordered, or are in the opposite order." }
                dt { "unknown" } dd { "No table lists what it needs, or the text does not distinguish the accesses." }
            }
        }
    };
    let shell = PageFrame {
        title: "Orders in machine code",
        description: "",
        policy: "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'",
        style: html! { style { (PreEscaped(STYLE)) } },
        devices: devices.len(),
        script: None,
    };
    shell.render(&header, &main)
}

fn build_table(lines: &[CodegenLine]) -> OrderTable {
    let mut table = OrderTable::new();
    for line in lines {
        for kernel in &line.kernels {
            for order in &kernel.orders {
                let rows = table.entry(kernel.form.clone()).or_default();
                let cell =
                    rows.entry(describe_ordering(order)).or_default().entry(line.device.clone()).or_default();
                let rank = VERDICTS.iter().position(|verdict| *verdict == order.code.verdict);
                let pair = AccessPair {
                    id: line.id.clone(),
                    kernel: kernel.kernel.clone(),
                    why: order.code.why.clone(),
                };
                cell.entry(rank.unwrap_or(VERDICTS.len())).or_default().push(pair);
            }
        }
    }
    table
}

/// Describes an ordering without names and values: `acquire at dv: ld.atom.sc0 → ld.vis.sc2`.
fn describe_ordering(order: &CodegenOrder) -> String {
    format!(
        "{} at {}: {} → {}",
        order.order,
        order.scope,
        describe_access(&order.first),
        describe_access(&order.second)
    )
}

/// Describes an access without its order and scope: `P1.0: ld.atom.acq.dv.sc0.semsc0 r0, f` becomes
/// `ld.atom.sc0`.
fn describe_access(source: &str) -> String {
    const LEFT_OUT: [&str; 12] =
        ["acq", "rel", "acqrel", "sc", "inv", "sg", "wg", "call", "fi", "qf", "dv", "xd"];
    let word = source.split_once(": ").map_or(source, |(_, text)| text);
    let word = word.split_whitespace().next().unwrap_or_default();
    let parts = word.split('.').filter(|part| !LEFT_OUT.contains(part) && !part.starts_with("sem"));
    parts.collect::<Vec<_>>().join(".")
}

fn verdict_word(rank: usize) -> &'static str {
    VERDICTS.get(rank).map_or("unknown", |verdict| verdict.name())
}

/// Returns the CSS class of a verdict; it matches the colours of run verdicts.
fn css_class(rank: usize) -> &'static str {
    match VERDICTS.get(rank) {
        Some(CodegenOrderVerdict::Lost) => "chip violates",
        Some(CodegenOrderVerdict::Weakened) => "chip inconclusive",
        Some(CodegenOrderVerdict::Kept | CodegenOrderVerdict::Stronger) => "chip conforms",
        Some(CodegenOrderVerdict::Unknown | CodegenOrderVerdict::NotCovered) | None => "chip undefined",
    }
}

fn render_rows(rows: &BTreeMap<String, BTreeMap<String, VerdictCell>>, devices: &[(&str, &str)]) -> Markup {
    html! {
        div.wide { table {
            thead { tr {
                th { "ordering" }
                @for (device, driver) in devices { th title=(driver) { (device) } }
            } }
            tbody {
                @for (ordering, cells) in rows {
                    tr {
                        th { code { (ordering) } }
                        @for (device, _) in devices { td { @if let Some(cell) = cells.get(*device) { (render_cell(cell)) } } }
                    }
                }
            }
        } }
    }
}

fn render_cell(cell: &VerdictCell) -> Markup {
    html! {
        @for (rank, places) in cell {
            @if verdict_word(*rank) == "kept" {
                span class=(css_class(*rank)) { (verdict_word(*rank)) " " (places.len()) }
            } @else {
                details {
                    summary { span class=(css_class(*rank)) { (verdict_word(*rank)) " " (places.len()) } }
                    ul {
                        @for place in places.iter().take(MAX_NAMED) {
                            li { code { (place.id) " " (place.kernel) } " " small { (place.why) } }
                        }
                        @if places.len() > MAX_NAMED { li { "and " (places.len() - MAX_NAMED) " more" } }
                    }
                }
            }
        }
    }
}

/// The extent of a change between two drivers.
#[derive(Default)]
struct VerdictChange<'a> {
    /// Number of changed access pairs, by form.
    forms: BTreeMap<&'a str, usize>,
    /// Tests with their kernels.
    tests: BTreeSet<String>,
}

/// Renders the orderings whose verdict differs between adjacent driver versions of one chip, in the same test
/// and kernel.
fn render_differences(table: &OrderTable, devices: &[(&str, &str)]) -> Markup {
    let parts = |device: &str| {
        let (chip, version) = device.split_once('@').unwrap_or((device, ""));
        let numbers = version.split(|c: char| !c.is_ascii_digit()).filter_map(|number| number.parse().ok());
        (chip.to_owned(), numbers.collect::<Vec<u64>>())
    };
    let mut sorted: Vec<&str> = devices.iter().map(|(device, _)| *device).collect();
    sorted.sort_by_key(|device| parts(device));
    let neighbours =
        || sorted.iter().zip(sorted.iter().skip(1)).filter(|(old, new)| parts(old).0 == parts(new).0);
    // Keyed by driver pair, ordering and change.
    let mut found: BTreeMap<(String, &str, String), VerdictChange<'_>> = BTreeMap::new();
    for (old, new) in neighbours() {
        for (form, rows) in table {
            for (ordering, cells) in rows {
                let ranks_on = |device: &str| -> BTreeSet<(&str, &str, usize)> {
                    let places = cells.get(device).into_iter().flatten();
                    places
                        .flat_map(|(rank, places)| {
                            places.iter().map(|one| (one.id.as_str(), one.kernel.as_str(), *rank))
                        })
                        .collect()
                };
                let (before, after) = (ranks_on(old), ranks_on(new));
                for (id, kernel, rank) in after.difference(&before) {
                    let same = |other: &&(&str, &str, usize)| other.0 == *id && other.1 == *kernel;
                    let Some((.., old_rank)) = before.difference(&after).find(same) else { continue };
                    let change = format!("{} → {}", verdict_word(*old_rank), verdict_word(*rank));
                    let changed = found.entry((format!("{old} → {new}"), ordering, change)).or_default();
                    *changed.forms.entry(form).or_default() += 1;
                    changed.tests.insert(format!("{id} {kernel}"));
                }
            }
        }
    }
    html! {
        @if neighbours().next().is_none() {
            p.quiet { "No chip was compiled for with two drivers." }
        } @else if found.is_empty() {
            p { "Nothing." }
        } @else {
            div.wide { table {
                thead { tr { @for word in ["drivers", "ordering", "change", "forms", "tests"] { th { (word) } } } }
                tbody { @for ((drivers, ordering, change), VerdictChange { forms, tests }) in &found { tr {
                    th { (drivers) }
                    td { code { (ordering) } }
                    td { (change) }
                    td { @for (form, count) in forms { span { (form) " " (count) } " " } }
                    td { details {
                        summary { (tests.len()) }
                        ul { @for test in tests { li { code { (test) } } } }
                    } }
                } } }
            } }
        }
    }
}

/// Renders the compiler crashes.
fn render_crashes(lines: &[CodegenLine]) -> Markup {
    let crashed = || lines.iter().filter(|line| line.verdict == CodegenVerdict::Crashes);
    html! {
        @if crashed().next().is_some() {
            section #crashes {
                h2 { "Crashes" }
                ul { @for line in crashed() {
                    li { code { (line.id) } " on " (line.device) ": " (line.reason.as_deref().unwrap_or_default()) " "
                        small { (line.replay) } }
                } }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::{CODEGEN_SCHEMA, CodegenKernel, CodegenOrdered};

    fn line(device: &str, verdict: CodegenOrderVerdict) -> CodegenLine {
        CodegenLine {
            schema: CODEGEN_SCHEMA.to_owned(),
            id: "storage/MP<b>".to_owned(),
            name: "MP".to_owned(),
            device: device.to_owned(),
            driver: "a driver".to_owned(),
            verdict: CodegenVerdict::Compiles,
            kernels: vec![CodegenKernel {
                form: "split".to_owned(),
                kernel: "P1".to_owned(),
                role: "consumer".to_owned(),
                orders: vec![CodegenOrder {
                    order: "acquire".to_owned(),
                    scope: "dv".to_owned(),
                    first: "P1.0: ld.atom.acq.dv.sc0.semsc0 r0, f".to_owned(),
                    second: "P1.3: ld.vis.dv.sc2 r1, x".to_owned(),
                    code: CodegenOrdered { verdict, why: "a bit".to_owned(), source: None, is_merged: false },
                    nir: None,
                }],
                ..CodegenKernel::default()
            }],
            ..CodegenLine::default()
        }
    }

    #[test]
    fn orderings_omit_names_and_scopes_of_accesses() {
        let order = line("a", CodegenOrderVerdict::Kept).kernels.remove(0).orders.remove(0);
        assert_eq!(describe_ordering(&order), "acquire at dv: ld.atom.sc0 → ld.vis.sc2");
        assert_eq!(
            describe_access("P0.1: rmw.add.atom.acqrel.dv.sc1.semsc0.semsc1 r0, x, 1"),
            "rmw.add.atom.sc1"
        );
    }

    #[test]
    fn changes_of_a_new_driver_are_first() {
        let (kept, weak) = (CodegenOrderVerdict::Kept, CodegenOrderVerdict::Weakened);
        let page = render_page(&[
            line("radv:navi31@26.2.6", weak),
            line("nvk:ga102@26", kept),
            line("radv:navi31@9.0.7", kept),
        ]);
        assert!(page.contains("<td>kept → weakened</td>"), "{page}");
        assert_eq!(page.matches("radv:navi31@9.0.7 → radv:navi31@26.2.6").count(), 1, "{page}");
        // Test names are escaped.
        assert!(page.contains("storage/MP&lt;b&gt; P1") && !page.contains("MP<b>"), "{page}");
    }

    #[test]
    fn one_driver_per_chip_has_no_differences() {
        let page = render_page(&[line("radv:navi31@25", CodegenOrderVerdict::Lost)]);
        assert!(
            page.contains("No chip was compiled for with two drivers.") && page.contains("lost 1"),
            "{page}"
        );
    }
}
