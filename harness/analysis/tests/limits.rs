//! Limits of the phases of an analysis.

use std::sync::Arc;

use analysis::{AnalysisRequest, InputMode, ProofMode, RacePhase, analyze_module};
use entry_point::{AnalysisOptions, StopFunction};
use model::Model;
use results::wire::RaceVerdict;

/// A kernel without a race, with a proof.
const KERNEL: &[u8] = include_bytes!("../../prove/tests/kernels/global-index.spvasm");

/// A kernel whose store only a positive number reaches.
const GUARDED: &[u8] = include_bytes!("../../prove/tests/kernels/stride-with-guarded-access.spvasm");

/// The limit of an entry point ends the choice of inputs, the walks and the proof, whose own limits do not.
#[test]
fn one_limit_ends_choice_walks_and_proof() {
    let model = Model::shipped("vulkan").unwrap().unwrap();
    let (optional, required) = (ProofMode::Optional, ProofMode::Required);
    let cases = [
        (KERNEL, None, optional, RaceVerdict::Clean, true),
        (KERNEL, Some(RacePhase::Entry), optional, RaceVerdict::Clean, false),
        (KERNEL, Some(RacePhase::EntryWalks), optional, RaceVerdict::Undecided, false),
        // Without time for the choice of inputs, it is not known whether an input has to be given.
        (GUARDED, Some(RacePhase::InputSearch), optional, RaceVerdict::Undecided, false),
        // A proof decides what a limit of walks leaves open.
        (KERNEL, Some(RacePhase::EntryWalks), required, RaceVerdict::Clean, true),
    ];
    for (kernel, ended, proofs, verdict, has_proof) in cases {
        let start_limit = |phase: RacePhase| -> StopFunction { Arc::new(move || ended == Some(phase)) };
        let request = AnalysisRequest {
            file: "kernel",
            inputs: InputMode::Auto,
            model: &model,
            start_limit: &start_limit,
            creates_tests: false,
            proofs,
            solver: None,
            searches_fixes: false,
            source: None,
            save_inputs: None,
        };
        let answers = analyze_module(&request, kernel, &AnalysisOptions::default(), &|_| {});
        let line = &answers[0].line;
        assert_eq!((line.verdict, line.proof.is_some()), (verdict, has_proof), "{ended:?}");
    }
}
