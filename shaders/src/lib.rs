//! Compiles litmus tests to SPIR-V with the Vulkan memory model.
//!
//! [`compile`] is pure: the same test and configuration give the same words. It does not access a device;
//! [`CompiledKernel::requirements`] lists the requirements of a kernel.
//!
//! ```
//! let text = "VULKAN SB { x = 0; y = 0; }
//! P0@sg 0, wg 0, qf 0  | P1@sg 0, wg 1, qf 0  ;
//! st.atom.dv.sc0 x, 1  | st.atom.dv.sc0 y, 1  ;
//! ld.atom.dv.sc0 r0, y | ld.atom.dv.sc0 r0, x ;
//! exists (P0:r0 == 0 /\\ P1:r0 == 0)";
//! let test = litmus::parse(text, "SB")?;
//! let config = shaders::KernelConfig { subgroup_size: 8, lanes: 8, ..shaders::KernelConfig::MINIMAL };
//! let kernel = shaders::compile(&test, &config)?;
//! assert!(shaders::disassemble(&kernel.words)?.contains("OpMemoryModel Logical Vulkan"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! | module | idea |
//! |---|---|
//! | [`program`](mod@program) | a test as several kernels, in sequence or concurrent |
//! | [`host`] | host threads of a test |
//! | [`kernel`] | compiled kernels and their configuration |
//! | [`contract`] | how a kernel runs: push constants, placement and layout |
//! | [`carrier`] | shader stages: the invocations that run the workgroups of a kernel, once each |
//! | [`draw`] | vertices and the fragments of their points as one draw |
//! | [`rules`] | why a test has no kernel: the complete list |
//! | `placement`, `segments`, `flow` | threads to lanes, barriers to segments, jumps to selections |
//! | `dispatch`, `thread` | the kernel around the threads, and the code of one thread |
//! | `memory`, `glsl`, `stage` | paths to memory; the meaning of a test in GLSL450, and without workgroups |
//! | [`stress`] | workgroups that generate memory stress |
//! | [`variant`] | the forms of a test for a compiler, including [workgroup sizes](variant::WorkgroupShape) |
//! | [`transform`] | legal transformations of a kernel's module |
//! | [`semantics`] | the valid memory semantics of each instruction |
//! | `module`, `loops` | SPIR-V under construction, and its loops |
//! | [`classify`] | kernels that reset memory and count outcomes on the device |
//! | [`canary`] | a kernel that shows whether a device executes its commands |
//! | [`progress`] | kernels whose loops may never end, released by the host |
//!
//! The crate `kernel_oracle` reads kernels back and compares them with their tests.

pub mod canary;
pub mod carrier;
pub mod checksum;
pub mod classify;
pub mod contract;
mod dependency;
mod dispatch;
pub mod draw;
mod fixed;
mod flow;
mod glsl;
pub mod host;
pub mod kernel;
mod loops;
mod memory;
mod module;
mod placement;
pub mod program;
pub mod progress;
mod queues;
pub mod rules;
mod segments;
pub mod semantics;
mod shape;
mod stage;
pub mod stress;
mod subgroup;
mod thread;
pub mod transform;
pub mod variant;

use rspirv::binary::Disassemble;
use rspirv::spirv::Op;

pub use contract::Parameters;
pub use fixed::{FixedDispatch, ResultPlacement};
pub use kernel::{
    Binding, CompileError, CompiledKernel, ImageBinding, KernelConfig, Requirements, ResultSlot, Roles,
    SaltedMemory, SaltedPath,
};
pub use program::{
    Dependency, DispatchPhase, Pipelines, Program, ProgramKernel, compile_fixed_program, compile_program,
};
pub use stress::StressParameters;
pub use variant::Variant;

/// Returns true if a thread of a test has a loop.
pub fn has_loops(test: &litmus::Test) -> bool {
    test.threads.iter().any(flow::has_loop)
}

/// Returns the assembly text of a module.
///
/// # Errors
/// [`ModuleError`] if the words are not a SPIR-V module.
pub fn disassemble(words: &[u32]) -> Result<String, ModuleError> {
    let module = parse_module(words)?;
    // The disassembler panics on a constant whose type is not a number, so such modules are refused first.
    let mut numbers = std::collections::BTreeSet::new();
    for instruction in &module.types_global_values {
        match instruction.class.opcode {
            Op::TypeInt | Op::TypeFloat => numbers.extend(instruction.result_id),
            Op::Constant if instruction.result_type.is_none_or(|ty| !numbers.contains(&ty)) => {
                let id = instruction.result_id.unwrap_or_default();
                return Err(ModuleError(format!("the type of constant %{id} is not a number")));
            }
            _ => {}
        }
    }
    Ok(module.disassemble())
}

/// Words before the first instruction of a module.
const HEADER_WORDS: usize = 5;

/// The words are not a SPIR-V module.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a SPIR-V module: {0}")]
pub struct ModuleError(String);

/// Parses words to a module that can be rewritten.
///
/// # Errors
/// [`ModuleError`] if the words are not a SPIR-V module.
pub fn parse_module(words: &[u32]) -> Result<rspirv::dr::Module, ModuleError> {
    // The parser assumes that instructions end where the words do.
    let mut at = HEADER_WORDS;
    while let Some(word) = words.get(at) {
        let length = (word >> 16) as usize;
        if length == 0 || at + length > words.len() {
            return Err(ModuleError(format!("the instruction at word {at} does not end within the module")));
        }
        at += length;
    }
    let module = rspirv::dr::load_words(words).map_err(|state| ModuleError(state.to_string()))?;
    // Recursive types would make a traversal endless.
    let mut known = std::collections::BTreeSet::new();
    for instruction in &module.types_global_values {
        let Some(id) = instruction.result_id else { continue };
        let is_made_of_known =
            || instruction.operands.iter().filter_map(|o| o.id_ref_any()).all(|id| known.contains(&id));
        let is_made = matches!(
            instruction.class.opcode,
            Op::TypeStruct | Op::TypeArray | Op::TypeRuntimeArray | Op::TypeVector | Op::TypeMatrix
        );
        if is_made && !is_made_of_known() {
            return Err(ModuleError(format!("type %{id} uses a type that is not declared before it")));
        }
        if !known.insert(id) {
            return Err(ModuleError(format!("%{id} is declared twice")));
        }
    }
    Ok(module)
}

/// Compiles a test to one compute kernel with all its threads.
///
/// # Errors
/// [`CompileError::NotPlaceable`] names the [rule](rules::Rule) that the test breaks.
/// [`CompileError::WorkgroupTooLarge`] means that the device is too small.
pub fn compile(test: &litmus::Test, config: &KernelConfig) -> Result<CompiledKernel, CompileError> {
    let test = &stage::effective_test(test, config.variant.stage);
    let apart = dispatch::separate_storages(test, config.variant)?;
    dispatch::compile(
        test,
        config,
        &dispatch::ProgramContext { separate_storages: apart, ..dispatch::ProgramContext::SINGLE_KERNEL },
    )
}

/// Returns the test that kernels of a variant execute; a model predicts its outcomes.
///
/// # Errors
/// [`CompileError::NotPlaceable`] if the variant cannot express the test.
pub fn effective_test(test: &litmus::Test, variant: Variant) -> Result<litmus::Test, CompileError> {
    match variant.model {
        variant::MemoryModel::Vulkan => Ok(stage::effective_test(test, variant.stage)),
        variant::MemoryModel::Glsl450 => {
            Ok(glsl::effective_test(&stage::effective_test(test, variant.stage))?)
        }
    }
}
