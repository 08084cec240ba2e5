//! The SPIR-V front end: lifts kernels to litmus tests, and answers about them.
//!
//! [`lift`] executes a kernel symbolically and returns litmus tests for an axiomatic model.
//!
//! ```
//! use entry_point::{AnalysisOptions, read_module};
//! use frontend::ModelQuery;
//! use model::{Budget, Model};
//!
//! let text = "OpCapability Shader
//! OpCapability VulkanMemoryModel
//! OpMemoryModel Logical Vulkan
//! OpEntryPoint GLCompute %main \"main\"
//! OpExecutionMode %main LocalSize 1 1 1
//! OpDecorate %block Block
//! OpMemberDecorate %block 0 Offset 0
//! OpDecorate %data DescriptorSet 0
//! OpDecorate %data Binding 0
//! %void = OpTypeVoid
//! %uint = OpTypeInt 32 0
//! %block = OpTypeStruct %uint
//! %to_block = OpTypePointer StorageBuffer %block
//! %to_uint = OpTypePointer StorageBuffer %uint
//! %function = OpTypeFunction %void
//! %zero = OpConstant %uint 0
//! %data = OpVariable %to_block StorageBuffer
//! %main = OpFunction %void None %function
//! %entry = OpLabel
//! %first = OpAccessChain %to_uint %data %zero
//! OpStore %first %zero
//! OpReturn
//! OpFunctionEnd";
//! let module = entry_point::read_module(text.as_bytes())?;
//! let lifted = frontend::lift(&module, &AnalysisOptions { grid: Some([2, 1, 1]), ..AnalysisOptions::default() })?;
//! let vulkan = Model::shipped("vulkan").ok_or("no such model")??;
//! let query = ModelQuery { budget: Budget::default(), decide_race: true, decide_question: true, locate_race: true };
//! let answer = frontend::answer_with_model(&lifted, &vulkan, &query)?;
//! assert_eq!(answer.race, litmus::Race::Racy);
//! assert_eq!(answer.race_spot.ok_or("no place")?.element, "data");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod access;
mod answer;
mod assemble;
mod atomic;
mod atomic_features;
mod axes;
mod candidate_values;
mod choose;
mod clean_checks;
mod constants;
mod context;
mod counters;
mod dispatch;
mod emit;
mod execute;
mod fix;
mod fork;
mod function;
mod judge;
mod lift;
mod lifted;
mod lint;
mod liveness;
mod minimize;
mod needs;
mod outcomes;
mod refine;
mod relation;
mod round;
mod state;
mod suspicion;
mod texel;
mod unused_inputs;
mod value;
mod walk;

pub use answer::{ModelAnswer, ModelQuery, RaceSpot, answer_with_model};
pub use choose::{InputChoice, InputGrid, InputMode, InputNeeds, choose_inputs};
pub use dispatch::{DispatchBuffer, DispatchImage, KernelDispatch, plan_dispatch};
pub use fix::{
    ChangeKind, FixResult, InsertionAnchor, InsertionSide, KernelChange, MissingSync, WalkFixes,
    find_missing_sync, fix_races, fix_walk_findings,
};
pub use judge::{InputChoiceReport, judge, judge_choice};
pub use lift::lift;
pub use lifted::{Lifted, LiftedCase};
pub use lint::{InvalidUse, Lint, LintRule, ValidityRule, invalid_uses, lint};
pub use minimize::minimize_race;
pub use outcomes::{FinalCell, FinalContent, FinalContents, final_contents};
pub use refine::{
    Counterexample, Refinement, RefinementCoverage, RefinementQuery, RefinementVerdict, refine,
    with_open_memory,
};
pub use unused_inputs::{resolve_names, unused_inputs};
