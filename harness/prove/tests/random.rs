//! Random kernels: what is proved is race-free in the walk and in the model for the values of small domains, and
//! counterexamples replay.
//!
//! Kernels have one or two symbolic push constants, a workgroup of four and up to three workgroups, nested branches and
//! loops, barriers of different strength, workgroup memory, a buffer and a counter. `VK_LITMUS_KERNELS` sets their number.
//! The walk runs with every value. The model takes longer: it judges about one value in `VK_LITMUS_MODEL_PART`.

use std::sync::Arc;

use entry_point::{AnalysisOptions, FindingCause, FindingKind};
use litmus::Race;
use model::{Budget, Model};
use prove::{InputMemory, ProofOptions, ProofReport, RacyInputs, prove};
use spirv_reader::SpirvModule;
use symbolic::{ModelQuery, answer_with_model, lift};
use walk::analyze_grid;

use crate::derivation::{Derivation, Random};

/// The values of each push constant.
const VALUES: u32 = 4;
/// Kernels that had counterexamples which did not replay: a counter that wrapped in iterations that no invocation reaches, and
/// an address that only a large input makes small.
const KNOWN: [u64; 2] = [3_012_928, 3_013_763];
/// The size of a buffer that a counterexample sets.
const BUFFER_BYTES: usize = 1 << 16;
/// The steps of the model for one kernel and value.
const MODEL_STEPS: u64 = 10_000;

const HEADER: &str = include_str!("random.spvasm");

/// Returns a random kernel, and true if an address or condition may depend on memory.
fn random_kernel(seed: u64) -> (String, bool) {
    let mut random = Random::new(seed + 1);
    let coherent = if random.below(2) == 0 { "OpMemberDecorate %block 0 Coherent" } else { "" };
    let body = Derivation::new(include_str!("random.grammar"), random).expand_kernel("kernel");
    let depends_on_memory = body.contains("%ticket") || body.contains("OpLoad %uint %memory");
    let stride = if seed.is_multiple_of(3) { "ArrayStride 12" } else { "ArrayStride 4" };
    let text = HEADER.replace("; COHERENT", coherent).replace("ArrayStride 4", stride);
    (text.replace("; BODY", &body), depends_on_memory)
}

fn options(grid: u32, a: u32, b: u32) -> AnalysisOptions {
    let push = (0..).zip(a.to_le_bytes().into_iter().chain(b.to_le_bytes())).collect();
    AnalysisOptions { grid: Some([grid, 1, 1]), push, ..AnalysisOptions::default() }
}

/// Returns the races and divergent barriers that the walk finds, and true if all accesses are in bounds.
fn defects(module: &SpirvModule, options: &AnalysisOptions) -> (Vec<String>, bool) {
    let Ok(report) = analyze_grid(module, options) else { return (Vec::new(), true) };
    let is_defect = |kind: FindingKind| kind.is_race() || kind == FindingKind::DivergentBarrier;
    let defects = report.findings.iter().filter(|found| is_defect(found.kind));
    let is_in_bounds = report.findings.iter().all(|found| found.kind != FindingKind::OutOfBounds);
    (defects.map(|found| found.message.clone()).collect(), is_in_bounds)
}

/// Returns true if the model has a race or the lifter a divergent barrier; `None` if their bounds are exceeded.
fn has_defect_in_model(module: &SpirvModule, options: &AnalysisOptions, model: &Model) -> Option<bool> {
    let lifted = lift(module, options).ok()?;
    if lifted.findings.iter().any(|found| found.cause == FindingCause::MissedBarrier) {
        return Some(true);
    }
    let budget = Budget::default().with_step_limit(MODEL_STEPS);
    let query = ModelQuery { budget, decide_race: true, decide_question: false, locate_race: false };
    match answer_with_model(&lifted, model, &query).ok()?.race {
        Race::Racy => Some(true),
        Race::Free => Some(false),
        Race::Unknown => None,
    }
}

/// Returns true if values satisfy the conditions of a proof. Small values do not wrap, except in differences.
fn satisfies(report: &ProofReport, grid: u32, a: u32, b: u32) -> Option<bool> {
    let number = |word: &str| match word {
        "pc.a" => Some(a),
        "pc.b" => Some(b),
        "groups.x" => Some(grid),
        word => word.parse().ok(),
    };
    let mut all = report.grid[0].is_none_or(|count| count == grid);
    for condition in &report.conditions {
        let words: Vec<&str> = condition.split(' ').collect();
        all &= match words.as_slice() {
            [x, ">=", y] => number(x)? >= number(y)?,
            [x, "<=", y] => number(x)? <= number(y)?,
            [x, "==", y] => number(x)? == number(y)?,
            [x, "!=", y] => number(x)? != number(y)?,
            [x, "%", y, "==", "0"] => number(x)? % number(y)? == 0,
            [x, "&", ..] => number(x)?.count_ones() <= 1,
            [x, "*", y, "<=", z] => number(x)? * number(y)? <= number(z)?,
            [x, "*", y, ">=", z] => number(x)? * number(y)? >= number(z)?,
            _ if condition.ends_with("are in bounds") => true,
            _ if condition.ends_with("does not wrap") && !condition.contains(" - ") => true,
            _ => return None,
        };
    }
    Some(all)
}

#[test]
fn proofs_of_random_kernels_hold_in_the_walk() {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse().ok());
    let (first, count) = (number("VK_LITMUS_SEED").unwrap_or(0), number("VK_LITMUS_KERNELS").unwrap_or(300));
    let (mut proved, mut conditional, mut replayed, mut missed) = (0, 0, 0, 0);
    let part = number("VK_LITMUS_MODEL_PART").unwrap_or(50);
    let model = Model::shipped("vulkan").unwrap().unwrap();
    let (mut compared, mut undecided) = (0, 0);
    let mut failures = Vec::new();
    for seed in (first..first + count).chain(KNOWN) {
        let (text, depends_on_memory) = random_kernel(seed);
        let module = entry_point::read_module(text.as_bytes()).unwrap_or_else(|why| panic!("{why}\n{text}"));
        let report = prove(&module, &ProofOptions { steps: 20_000, ..ProofOptions::default() }, None, None);
        let (mut racy, mut points) = (0, 0);
        for (grid, a, b) in
            (1..=3).flat_map(|grid| (0..VALUES * VALUES).map(move |n| (grid, n / VALUES, n % VALUES)))
        {
            if !report.is_proved && racy > 0 {
                break;
            }
            if report.is_proved && satisfies(&report, grid, a, b) != Some(true) {
                continue;
            }
            let (found, is_in_bounds) = defects(&module, &options(grid, a, b));
            if report.is_proved && !found.is_empty() {
                failures.push(format!(
                    "seed {seed}, grid {grid}, a = {a}, b = {b}: proved if {:?}, but {found:?}\n{text}",
                    report.conditions
                ));
                break;
            }
            racy += usize::from(!found.is_empty());
            points += 1;
            // A proof assumes accesses in bounds; for the model, an address beyond them is a place like others.
            if !report.is_proved || !is_in_bounds || !(points + seed).is_multiple_of(part) {
                continue;
            }
            let has_defect = has_defect_in_model(&module, &options(grid, a, b), &model);
            compared += usize::from(has_defect.is_some());
            undecided += usize::from(has_defect.is_none());
            if has_defect == Some(true) {
                failures
                    .push(format!("seed {seed}, grid {grid}, a = {a}, b = {b}: racy in the model\n{text}"));
            }
        }
        proved += usize::from(report.is_proved);
        conditional += usize::from(report.is_proved && !report.conditions.is_empty());
        missed += usize::from(!report.is_proved && racy == 0);
        let is_small = |one: &RacyInputs| {
            one.grid[0] <= 64 && one.inputs.iter().all(|input| input.offset < BUFFER_BYTES as u64 - 4)
        };
        for (why, counterexample) in report.counterexamples.iter().take(1).filter(|one| is_small(&one.1)) {
            let mut inputs = options(counterexample.grid[0], 0, 0);
            for input in &counterexample.inputs {
                if let InputMemory::Buffer(set, binding, _) = input.memory {
                    let contents =
                        inputs.buffers.entry((set, binding)).or_insert_with(|| vec![0; BUFFER_BYTES].into());
                    let start = input.offset as usize;
                    Arc::make_mut(contents)[start..start + 4].copy_from_slice(&input.bytes);
                    continue;
                }
                inputs.push.extend((input.offset..).zip(input.bytes.iter().copied()));
            }
            let is_found = !defects(&module, &inputs).0.is_empty();
            replayed += usize::from(is_found);
            if !is_found && !depends_on_memory {
                failures.push(format!("seed {seed}: {why:?} {counterexample:?} does not replay\n{text}"));
            }
        }
    }
    println!(
        "{count} kernels: {proved} proved ({conditional} under a condition), {replayed} counterexamples replayed, {missed} race-free in small domains and not proved"
    );
    println!("the model agrees with {compared} proofs for one value, and has no answer for {undecided}");
    assert!(failures.is_empty(), "{}", failures.join("\n"));
    assert!(compared > undecided);
    assert!(proved > count as usize / 10 && replayed > count as usize / 10);
}
