//! Symbolic execution: lifts an entry point to litmus tests, and a model answers about them.
//!
//! [`lift`] executes a kernel symbolically and returns litmus tests for an axiomatic model.
//!
//! ```
//! use entry_point::{AnalysisOptions, read_module};
//! use model::{Budget, Model};
//! use symbolic::ModelQuery;
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
//! let lifted = symbolic::lift(&module, &AnalysisOptions { grid: Some([2, 1, 1]), ..AnalysisOptions::default() })?;
//! let vulkan = Model::shipped("vulkan").ok_or("no such model")??;
//! let query = ModelQuery { budget: Budget::default(), decide_race: true, decide_question: true, locate_race: true };
//! let answer = symbolic::answer_with_model(&lifted, &vulkan, &query)?;
//! assert_eq!(answer.race, litmus::Race::Racy);
//! assert_eq!(answer.race_spot.ok_or("no place")?.element, "data");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod access;
mod answer;
mod assemble;
mod atomic;
mod candidate_values;
mod compute;
mod constants;
mod context;
pub mod emit;
mod execute;
mod executor;
mod fork;
pub mod function;
mod lift;
mod lifted;
mod liveness;
mod relation;
mod round;
mod state;
mod suspicion;
mod texel;
mod value;

pub use answer::{ModelAnswer, ModelQuery, RaceSpot, answer_with_model, decide_with_model, locate_race};
pub use candidate_values::compared_values;
pub use lift::{MAX_INVOCATIONS, lift};
pub use lifted::{Lifted, LiftedCase};
pub use suspicion::confirm_suspicions;
pub use value::{NumberDomain, SymbolicNumber};
