//! Proofs of race freedom for the lines of `race`, and the replay of their counterexamples by walks.
//!
//! A counterexample sets only inputs that no option supplies. It is reported if a walk with these inputs finds a race.

use frontend::grid::{GridReport, analyze_grid};
use frontend::{AnalysisOptions, FindingKind, SpirvModule};
use prove::{InputMemory, ProofOptions, ProofReport, RacyInputs};

/// Bytes of a buffer that a counterexample sets in part.
const BUFFER_BYTES: usize = 64 * 1024;
/// Upper bound on the steps of a proof.
const PROOF_STEPS: u64 = 300_000;

/// A race that a walk with the inputs of a counterexample found.
#[derive(Clone, Debug)]
pub(crate) struct ReplayedRace {
    pub report: GridReport,
    pub options: AnalysisOptions,
    /// The inputs that the counterexample sets, with their values.
    pub inputs: Vec<(String, String)>,
}

/// Attempts to prove the entry point of the options; `None` if an option contradicts what a proof assumes.
pub(crate) fn prove_entry(module: &SpirvModule, options: &AnalysisOptions) -> Option<ProofReport> {
    if !options.aliases.is_empty() || options.open.is_some() {
        return None;
    }
    let options = ProofOptions {
        entry: options.entry.clone(),
        specialization: options.specialization.clone(),
        grid: options.grid,
        assumed: Vec::new(),
        steps: PROOF_STEPS,
    };
    Some(prove::prove(module, &options))
}

/// Returns the first counterexample with which a walk finds a race or a divergent barrier.
pub(crate) fn replay(
    module: &SpirvModule,
    options: &AnalysisOptions,
    proof: &ProofReport,
) -> Option<ReplayedRace> {
    proof.counterexamples.iter().find_map(|(_, counterexample)| {
        let (options, inputs) = inputs_of(options, counterexample)?;
        let report = analyze_grid(module, &options).ok()?;
        let is_racy = report
            .findings
            .iter()
            .any(|found| found.kind.is_race() || found.kind == FindingKind::DivergentBarrier);
        is_racy.then_some(ReplayedRace { report, options, inputs })
    })
}

/// Returns the options with the inputs of a counterexample, and these inputs; `None` if it needs an input that options set.
fn inputs_of(
    given: &AnalysisOptions,
    counterexample: &RacyInputs,
) -> Option<(AnalysisOptions, Vec<(String, String)>)> {
    let mut options = given.clone();
    let mut inputs = Vec::new();
    if given.grid.is_none() {
        let [x, y, z] = counterexample.grid;
        options.grid = Some(counterexample.grid);
        inputs.push(("grid".to_owned(), format!("{x},{y},{z}")));
    }
    for (number, value) in &counterexample.specialization {
        options.specialization.insert(*number, *value);
        inputs.push((format!("constant {number}"), value.to_string()));
    }
    for input in &counterexample.inputs {
        let bytes = input.value.to_le_bytes();
        let bytes = bytes.get(..input.bytes as usize)?;
        match input.memory {
            InputMemory::PushConstants => {
                for (at, byte) in (input.offset..).zip(bytes) {
                    if given.push.get(&at).is_some_and(|known| known != byte) {
                        return None;
                    }
                    options.push.insert(at, *byte);
                }
            }
            InputMemory::Buffer(set, binding, 0) if !given.buffers.contains_key(&(set, binding)) => {
                let contents = options.buffers.entry((set, binding)).or_default();
                let (start, end) = (input.offset as usize, input.offset as usize + bytes.len());
                if end > BUFFER_BYTES {
                    return None;
                }
                contents.resize(contents.len().max(BUFFER_BYTES), 0);
                contents[start..end].copy_from_slice(bytes);
            }
            InputMemory::Buffer(..) => return None,
        }
        inputs.push((input.name.clone(), input.value.to_string()));
    }
    Some((options, inputs))
}
