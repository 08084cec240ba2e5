//! The SPIR-V front end: reads shaders, lifts kernels to litmus tests, and detects races of whole grids.
//!
//! [`read_module`] parses a module from words or text. [`lift`] executes a kernel symbolically and returns
//! litmus tests for an axiomatic model. [`grid`] detects races of a whole grid dynamically.
//!
//! ```
//! use frontend::{AnalysisOptions, ModelQuery};
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
//! let module = frontend::read_module(text.as_bytes())?;
//! let lifted = frontend::lift(&module, &AnalysisOptions { grid: Some([2, 1, 1]), ..AnalysisOptions::default() })?;
//! let vulkan = Model::shipped("vulkan").ok_or("no such model")??;
//! let query = ModelQuery { budget: Budget::default(), decide_race: true, decide_question: true, locate_race: true };
//! let answer = frontend::answer_with_model(&lifted, &vulkan, &query)?;
//! assert_eq!(answer.race, litmus::Race::Racy);
//! assert_eq!(answer.race_spot.ok_or("no place")?.element, "data");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod access;
mod accessed_variable;
mod address_offset;
mod answer;
mod assemble;
mod assumed;
mod atomic;
mod atomic_features;
mod axes;
mod candidate_values;
mod choose;
mod clean_checks;
mod contents;
mod context;
mod counters;
mod coverage;
mod dataflow;
mod deadline;
mod dispatch;
mod element_names;
mod emit;
mod error;
mod execute;
mod finding;
mod fix;
mod fork;
mod function;
pub mod grid;
mod input_place;
pub mod inputs;
mod interlock;
mod judge;
mod launch;
mod launch_part;
mod layout;
mod lift;
mod lifted;
mod lint;
mod liveness;
mod minimize;
mod needs;
mod non_observable;
mod open_memory;
mod options;
mod order;
mod outcomes;
mod question;
mod ray_queries;
mod refine;
mod relation;
mod round;
mod stage;
mod state;
mod suspicion;
mod texel;
mod undefined_result;
mod unused_inputs;
mod update;
mod value;
mod walk;

pub use accessed_variable::variable_label;
pub use answer::{ModelAnswer, ModelQuery, RaceSpot, answer_with_model};
pub use choose::{InputChoice, InputGrid, InputMode, InputNeeds, choose_inputs};
pub use coverage::{CoverageLimit, DecidingModel, WiderGridFinding};
pub use deadline::DeadlinePredicate;
pub use dispatch::{DispatchBuffer, DispatchImage, KernelDispatch, plan_dispatch};
pub use element_names::element_names;
pub use error::{Problem, Refusal, read_module};
pub use finding::{FindingCause, FindingKind, InvocationId, LiftFinding, Spot};
pub use fix::{
    ChangeKind, FixResult, InsertionAnchor, InsertionSide, KernelChange, MissingSync, WalkFixes,
    find_missing_sync, fix_races, fix_walk_findings,
};
pub use input_place::{AssumedInput, InputPlace, OverrideRole, OverrideValue, UnsetOverride};
pub use inputs::read_bound_module;
pub use judge::{InputChoiceReport, judge, judge_choice};
pub use launch_part::LaunchPart;
pub use lift::lift;
pub use lifted::{Lifted, LiftedCase};
pub use lint::{InvalidUse, Lint, LintRule, ValidityRule, invalid_uses, lint};
pub use minimize::minimize_race;
pub use open_memory::{OpenMemory, OpenPart, OpenParts};
pub use options::{AnalysisOptions, DEFAULT_UNROLL};
pub use outcomes::{FinalCell, FinalContent, FinalContents, final_contents};
pub use question::{Claim, check_claim, resolve_claim, resolve_open_part};
pub use ray_queries::RayResults;
pub use refine::{
    Counterexample, Refinement, RefinementCoverage, RefinementQuery, RefinementVerdict, refine,
    with_open_memory,
};
pub use spirv_reader::annotations::{self, Formula, FormulaTerm, parse_formula};
pub use spirv_reader::{
    AssembledModule, ShaderLanguage, SourceLine, SourcePosition, SpirvModule, Stage, assemble_text,
};
pub use unused_inputs::{resolve_names, unused_inputs};
