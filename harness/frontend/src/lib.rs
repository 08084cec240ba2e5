//! The SPIR-V front end: reads the modules of users and lifts their kernels to litmus tests.
//!
//! [`read`] takes a module in words or as text; [`lift`] walks the invocations of a grid through a kernel and gives a
//! [`litmus::Test`] that a model answers.
//!
//! ```
//! use frontend::{Asking, Options};
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
//! let module = frontend::read(text.as_bytes())?;
//! let lifted = frontend::lift(&module, &Options { grid: Some([2, 1, 1]), ..Options::default() })?;
//! let vulkan = Model::shipped("vulkan").ok_or("no such model")??;
//! let asking = Asking { budget: Budget::default(), race: true, question: true, places: true };
//! let answer = frontend::answer(&lifted, &vulkan, &asking)?;
//! assert_eq!(answer.race, litmus::Race::Racy);
//! assert_eq!(answer.race_found.ok_or("no place")?.element, "data");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod access;
pub mod annotations;
mod answer;

mod assemble;
mod atomic;
mod dispatch;
mod emit;
mod error;
mod execute;
mod foreign;
mod fork;
pub mod grid;
mod guards;
pub mod inputs;
mod judge;
mod lacking;
mod launch;
mod layout;
mod lift;
mod lines;
mod lint;
mod mend;
mod module;
mod opcode;
mod order;
mod outcomes;
mod overwritten;
mod question;
mod quiet;
mod relation;
mod section;
mod smallest;
mod stage;
mod state;
mod suspicion;
mod text;
mod tried;
mod until;
mod value;
mod walk;
mod word;

pub use annotations::parse_formula;
pub use answer::{Answer, Asking, RaceSpot, answer};
pub use dispatch::{Dispatch, DispatchBuffer, DispatchImage, dispatch, element_names};
pub use error::{Place, Problem, Refusal};
pub use judge::{beside_races, judge, wider};
pub use lift::{Case, DEFAULT_UNROLL, Finding, FindingKind, Identity, Lifted, Options, Spot, lift};
pub use lint::{Lint, RULES, lint};
pub use mend::{Change, Lack, Mended, WalkedChange, WalkedMends, lack, mend, mend_walked};
pub use module::{Module, SourceLine, read};
pub use outcomes::{FinalCell, FinalSays, Finals, finals};
pub use question::{Claim, check_claim, claim};
pub use smallest::smallest;
pub use stage::Stage;
pub use text::{Assembled, assemble};
pub use until::Until;
