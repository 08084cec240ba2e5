//! `tests --device`: coverage of devices as tables: CTS names by stage and parameter, and tests by family and
//! stage.

use std::collections::BTreeMap;

use campaign::targets::{self, DeviceTarget, SimulatedFallback};
use litmus::convert::to_device_program;
use litmus::corpus;
use litmus::cts::{self, CtsCase, Stage};

use crate::exit::{Failure, Outcome};
use crate::output::{print_message, print_text};

/// For each device: `None` if the test runs, else the reason why it is skipped.
type SkipReasons = Vec<Option<String>>;

/// One table row: the number of tests, and of those that run on each device.
#[derive(Clone, Debug, Default)]
struct CoverageRow {
    tests: usize,
    run: Vec<usize>,
}

impl CoverageRow {
    fn add(&mut self, answers: &SkipReasons) {
        self.tests += 1;
        self.run.resize(answers.len(), 0);
        for (count, answer) in self.run.iter_mut().zip(answers) {
            *count += usize::from(answer.is_none());
        }
    }
}

/// Number of skipped tests by reason and device.
#[derive(Default)]
struct ReasonCounts(BTreeMap<String, Vec<usize>>);

impl ReasonCounts {
    fn add(&mut self, answers: &SkipReasons) {
        for (device, answer) in answers.iter().enumerate() {
            let Some(reason) = answer else { continue };
            let counts = self.0.entry(reason.clone()).or_insert_with(|| vec![0; answers.len()]);
            if let Some(count) = counts.get_mut(device) {
                *count += 1;
            }
        }
    }
}

/// Prints the tables.
///
/// # Errors
/// Returns an error if a device does not exist or the output cannot be written.
pub fn print_coverage(devices: &[String], with_cts: bool) -> Result<Outcome, Failure> {
    let targets =
        targets::select_targets(devices, None, &SimulatedFallback::from_environment(), &print_message)?;
    let mut text = String::new();
    if with_cts {
        for (stage, name) in STAGES {
            text += &cts_table(&targets, stage, name)?;
        }
        text += &layout_table();
    }
    text += &corpus_table(&targets, "", "Tests of our own")?;
    text += &corpus_table(&targets, "vertex", "Tests of our own in vertex shaders")?;
    text += &corpus_table(&targets, "fragment", "Tests of our own in fragment shaders")?;
    text += &corpus_table(&targets, "vertex-fragment", "Tests of our own whose threads are in both")?;
    print_text(&text)
}

fn skip_reasons(
    test: &litmus::Test,
    variant: &str,
    targets: &[DeviceTarget],
) -> Result<SkipReasons, Failure> {
    let variant = variant.parse().map_err(Failure::input_error)?;
    Ok(targets.iter().map(|target| target.compile_test(test, variant).err()).collect())
}

/// The stages of CTS names, with their headings.
const STAGES: [(Stage, &str); 3] =
    [(Stage::Compute, "Compute"), (Stage::Vertex, "Vertex"), (Stage::Fragment, "Fragment")];

/// Lists the CTS names without a test here, with the reason.
fn layout_table() -> String {
    let mut text =
        "## Names of the CTS that are no tests here\n\n| names | how many | why |\n|---|---:|---|\n"
            .to_owned();
    for (names, count, why) in cts::EXCLUDED_GROUPS {
        text += &format!("| {names} | {count} | {why} |\n");
    }
    text + "\n"
}

fn cts_table(targets: &[DeviceTarget], stage: Stage, name: &str) -> Result<String, Failure> {
    let mut dimensions: Vec<(&str, Vec<(&str, CoverageRow)>)> = Vec::new();
    let mut reasons = ReasonCounts::default();
    let mut all = CoverageRow::default();
    for case in cts::all_cases() {
        let case_stage = match &case {
            CtsCase::Generated(case) => case.stage,
            CtsCase::Transitive(_) | CtsCase::Permuted(_) => Stage::Compute,
        };
        if case_stage != stage {
            continue;
        }
        let test = litmus::parse(&case.litmus_text(), &case.test_id()).map_err(Failure::input)?;
        let answers = skip_reasons(&test, &case.variant(), targets)?;
        for (dimension, value) in cts_parameters(&case) {
            let values: &mut Vec<(&str, CoverageRow)> = entry_mut(&mut dimensions, dimension);
            entry_mut(values, value).add(&answers);
        }
        reasons.add(&answers);
        all.add(&answers);
    }
    let mut rows: Vec<(String, CoverageRow)> = vec![(format!("all {} names", name.to_lowercase()), all)];
    for (dimension, values) in dimensions {
        rows.extend(values.into_iter().map(|(value, row)| (format!("{dimension}: {value}"), row)));
    }
    Ok(format!(
        "## {name} names of the CTS\n\n{}\n## What they are skipped for\n\n{}\n",
        coverage_table("parameter", "names", targets, &rows),
        reason_table(targets, &reasons)
    ))
}

fn corpus_table(targets: &[DeviceTarget], variant: &str, heading: &str) -> Result<String, Failure> {
    let mut families: Vec<(String, CoverageRow)> = Vec::new();
    let mut reasons = ReasonCounts::default();
    let mut all = CoverageRow::default();
    for test_file in corpus::tests() {
        let test = litmus::parse(test_file.text, &test_file.path).map_err(Failure::input)?;
        let answers = match to_device_program(&test) {
            Ok(program) => skip_reasons(&program, variant, targets)?,
            Err(why) => vec![Some(why.to_string()); targets.len()],
        };
        let family = test_file.id.split('/').next().unwrap_or_default();
        entry_mut(&mut families, family.to_owned()).add(&answers);
        reasons.add(&answers);
        all.add(&answers);
    }
    families.insert(0, ("all tests".to_owned(), all));
    Ok(format!(
        "## {heading}\n\n{}\n## What they are skipped for\n\n{}\n",
        coverage_table("family", "tests", targets, &families),
        reason_table(targets, &reasons)
    ))
}

/// Returns the parameters of a CTS name with their values.
fn cts_parameters(case: &CtsCase) -> Vec<(&'static str, &'static str)> {
    match case {
        CtsCase::Generated(case) => vec![
            ("shape", case.shape.name()),
            ("model", case.model.name()),
            ("type", case.scalar.name()),
            ("coherence", case.coherence.name()),
            ("synchronization", case.sync.name()),
            ("guard access", case.guard_access.name()),
            ("scope", case.range.name()),
            ("payload memory", case.payload.locality.name()),
            ("payload storage", case.payload.storage.name()),
            ("guard memory", case.guard.locality.name()),
            ("guard storage", case.guard.storage.name()),
        ],
        CtsCase::Transitive(case) => vec![("shape", "transitive"), ("transitive", case.acquirer.name())],
        CtsCase::Permuted(case) => vec![("shape", "permuted_index"), ("permuted_index", case.name())],
    }
}

/// Returns the entry of a name in a list; a new one is appended.
fn entry_mut<N: PartialEq, T: Default>(list: &mut Vec<(N, T)>, name: N) -> &mut T {
    let index = list.iter().position(|(known, _)| *known == name).unwrap_or_else(|| {
        list.push((name, T::default()));
        list.len() - 1
    });
    &mut list[index].1
}

fn coverage_table(
    first: &str,
    second: &str,
    targets: &[DeviceTarget],
    rows: &[(String, CoverageRow)],
) -> String {
    let names: Vec<String> = targets.iter().map(|target| format!(" run on {} |", target.name)).collect();
    let mut text = format!("| {first} | {second} |{}\n", names.concat());
    text += &format!("|---|---:|{}\n", "---:|".repeat(targets.len()));
    for (name, row) in rows {
        let counts: Vec<String> = row.run.iter().map(|count| format!(" {count} |")).collect();
        text += &format!("| {name} | {} |{}\n", row.tests, counts.concat());
    }
    text
}

fn reason_table(targets: &[DeviceTarget], reasons: &ReasonCounts) -> String {
    let names: Vec<String> = targets.iter().map(|target| format!(" {} |", target.name)).collect();
    let mut text = format!("| reason |{}\n|---|{}\n", names.concat(), "---:|".repeat(targets.len()));
    for (reason, counts) in &reasons.0 {
        let counts: Vec<String> = counts.iter().map(|count| format!(" {count} |")).collect();
        text += &format!("| {reason} |{}\n", counts.concat());
    }
    text
}
