//! The reader of SPIR-V modules, binary and text.
//!
//! [`read_module`] parses words or assembly into a [`SpirvModule`]: declarations by id, and the instructions of
//! functions with their positions and source lines. It is the only reader of the product: lifting, the walk
//! over grids and the simulated GPU use it.

mod alias;
pub mod annotations;
mod atomic;
mod component_stores;
mod control_flow;
mod decode;
mod enumerant;
mod error;
mod guards;
mod kernel_argument;
mod lane_order;
mod language;
mod language_rules;
mod layout;
mod lines;
mod module;
pub mod opcode;
mod operands;
mod operation;
mod reflection;
mod stage;
mod terms;
mod text;

pub use atomic::{AtomicAccess, AtomicFunction, AtomicKind};
pub use control_flow::{SwitchCase, switch_cases};
pub use enumerant::extended_instruction_number;
pub use error::{SourcePosition, SpirvError, SpirvProblem};
pub use kernel_argument::{ArgumentPlace, KernelArgument};
pub use language::{HlslExecution, HlslMemory, HlslRules, ShaderLanguage};
pub use layout::{ConstantValue, MAX_PARTS, Specialized, TypePart};
pub use module::{
    CodePlace, Decorations, GlobalVariable, HEADER_WORDS, ModuleEntryPoint, SourceLine, SpirvConstant,
    SpirvFunction, SpirvInstruction, SpirvModule, SpirvType, is_synthetic_name, read_module, read_words,
};
pub use operands::{MemoryOperands, TexelOperands};
pub use operation::{
    BallotQuery, BarrierPart, CompositeOperation, ImageOperation, ImageQuery, ImageSampling, MatrixAccess,
    MatrixOperation, MemoryEffect, PointerAccess, PointerComparison, RayQueryFunction, SpirvOperation,
    SubgroupFunction, SubgroupInstruction, reduction_identity,
};
pub use stage::{BuiltInComponents, Stage};
pub use terms::{memory_class, scope_from_word, scope_word, semantics_from_word, semantics_word};
pub use text::{AssembledModule, assemble_text, decode_string, to_half_bits};
