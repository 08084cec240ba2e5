//! Kernels of real projects with their cases, and the findings in their whole grids.
//!
//! The expected table is `kernels.tsv`; `VK_LITMUS_BLESS` rewrites it.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::{Path, PathBuf};

use analysis::decide;
use entry_point::inputs;
use model::{Budget, Model};
use spirv_reader::SpirvModule;
use walk::{GridReport, RaceVerdict};

/// Rows with another result than expected, each with a reason.
const KNOWN_DIFFERENCES: [(&str, &str); 1] = [(
    "ggml_argsort_new",
    "an invocation reads both elements of its pair before its partner, which exchanges them, comes to a barrier",
)];

/// A kernel of the manifest.
struct Row {
    id: String,
    expected: String,
    /// Lines; a finding must name at least one of them.
    lines: Vec<u32>,
}

fn read_manifest(corpus: &Path) -> Result<Vec<Row>, Box<dyn std::error::Error>> {
    let mut reader = csv::Reader::from_path(corpus.join("manifest.csv"))?;
    let headers = reader.headers()?.clone();
    let column = |name: &str| headers.iter().position(|header| header == name);
    let columns = column("id").zip(column("expected")).zip(column("racy_lines"));
    let ((id, expected), lines) = columns.ok_or("a column is missing")?;
    let mut rows = Vec::new();
    for record in reader.records() {
        let record = record?;
        let numbers = record[lines].split(|c: char| !c.is_ascii_digit());
        let lines = numbers.filter_map(|number| number.parse().ok()).collect();
        rows.push(Row { id: record[id].to_owned(), expected: record[expected].to_owned(), lines });
    }
    rows.sort_by(|a, b| a.id.cmp(&b.id));
    Ok(rows)
}

/// Returns the verdict, with class and lines of each finding.
fn summarize_report(module: &SpirvModule, report: &GridReport) -> String {
    let verdict = match report.verdict {
        RaceVerdict::Clean if report.is_schedule_dependent => "clean in the orders tried",
        verdict => verdict.name(),
    };
    let mut found: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for finding in &report.findings {
        let line = |line: u32| module.source_line(line).map_or("?".to_owned(), |line| line.line.to_string());
        let lines: Vec<String> = finding.at.iter().map(|spot| line(spot.line)).collect();
        found.entry(finding.kind.name()).or_default().push(lines.join("/"));
    }
    let mut text = verdict.to_owned();
    for (kind, lines) in found {
        text += &format!("\t{kind} {}", lines.join(" "));
    }
    text
}

#[test]
fn kernels_have_their_expected_verdicts() {
    let corpus = std::env::var_os("VK_LITMUS_CORPORA").map(|corpora| PathBuf::from(corpora).join("kernels"));
    let Some(corpus) = corpus.filter(|corpus| corpus.join("manifest.csv").exists()) else {
        println!("skipped: VK_LITMUS_CORPORA has no kernels");
        return;
    };
    let model = Model::shipped("vulkan").expect("a model").expect("it compiles");
    let (mut table, mut wrong) = (String::new(), Vec::new());
    // The cases of the validation layers: faults to find, and correct kernels, including their false alarms.
    let (mut layers_found, mut layers_silent) = ((0, 0), (0, 0));
    for row in read_manifest(&corpus).expect("a manifest") {
        let folder = corpus.join(&row.id);
        let text = std::fs::read_to_string(folder.join("case.toml")).expect("a case");
        let case = inputs::parse_case_file(&text, &|name| Err(format!("{name} is not there")))
            .expect("a case that is understood");
        let bytes = std::fs::read(folder.join(case.module.as_deref().unwrap_or("k.spv"))).expect("a module");
        let module = entry_point::read_module(&bytes).expect("a module that is read");
        let judged = decide(&module, &case.options, &model, Budget::default().with_step_limit(2_000_000));
        let line = match &judged {
            Ok(report) => summarize_report(&module, report),
            Err(refusal) => format!("refused\t{refusal}"),
        };
        writeln!(table, "{}\t{line}", row.id).expect("text");
        let named = judged.as_ref().is_ok_and(|report| {
            let spots = report.findings.iter().flat_map(|finding| &finding.at);
            let mut lines = spots.filter_map(|spot| module.source_line(spot.line)).map(|line| line.line);
            lines.any(|line| row.lines.contains(&line))
        });
        let clean = judged.as_ref().is_ok_and(|report| report.verdict == RaceVerdict::Clean);
        let as_expected = match row.expected.as_str() {
            expected if ["racy", "divergent", "out-of"].iter().any(|start| expected.starts_with(start)) => {
                named
            }
            expected if expected.starts_with("race-free") => clean,
            _ => true,
        };
        if row.id.starts_with("vvl_") {
            let (met, all) = match row.expected.starts_with("racy") {
                true => (named, &mut layers_found),
                false => (clean, &mut layers_silent),
            };
            *all = (all.0 + usize::from(met), all.1 + 1);
        }
        let explained = KNOWN_DIFFERENCES.iter().any(|(id, _)| *id == row.id);
        if as_expected == explained {
            wrong.push(format!("{}: {}; {line}", row.id, row.expected));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    println!(
        "the layers' own cases: {layers_found:?} of the racy ones found, {layers_silent:?} of the others silent"
    );
    assert!(layers_found.0 == layers_found.1 && layers_silent.0 == layers_silent.1);
    assert!(layers_found.1 >= 5 && layers_silent.1 >= 4, "{layers_found:?} {layers_silent:?}");
    let committed = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/kernels.tsv");
    if std::env::var_os("VK_LITMUS_BLESS").is_some() {
        std::fs::write(&committed, &table).expect("written");
    }
    let committed = std::fs::read_to_string(committed).expect("a table");
    let changed: Vec<(&str, &str)> =
        committed.lines().zip(table.lines()).filter(|(before, now)| before != now).collect();
    assert!(committed == table, "{changed:#?}");
}

/// Kernels that are correct for certain inputs only, which lint rules report.
const KNOWN_LINT_FINDINGS: [(&str, &str); 1] = [(
    "nbody_ok",
    "invocations beyond the count leave before a barrier: right for multiples of the workgroup",
)];

#[test]
fn lint_reports_nothing_for_correct_kernels() {
    let corpus = std::env::var_os("VK_LITMUS_CORPORA").map(|corpora| PathBuf::from(corpora).join("kernels"));
    let Some(corpus) = corpus.filter(|corpus| corpus.join("manifest.csv").exists()) else {
        println!("skipped: VK_LITMUS_CORPORA has no kernels");
        return;
    };
    let correct = read_manifest(&corpus)
        .expect("a manifest")
        .into_iter()
        .filter(|row| row.expected.starts_with("race-free"));
    let mut linted = Vec::new();
    let mut count = 0;
    for row in correct {
        let bytes = std::fs::read(corpus.join(&row.id).join("k.spv")).expect("a module");
        let module = entry_point::read_module(&bytes).expect("a module that is read");
        count += 1;
        if !lint::lint(&module).is_empty() {
            linted.push(row.id);
        }
    }
    assert!(count >= 20, "{count}");
    assert_eq!(linted, KNOWN_LINT_FINDINGS.map(|(id, _)| id));
}
