//! The module by the rules of its source language.
//!
//! A compiler may lose order that the language promises. The module by its language has the lost part again,
//! so that every engine answers for the source:
//!
//! - **WGSL** (Memory Model, "Private vs Non-Private"): plain accesses of storage buffers and textures are
//!   non-private, available and visible in the workgroup. naga emits no `Coherent` for them.
//! - **HLSL** (D3D11.3 functional specification, 7.14.4): a UAV without `globallycoherent` is coherent in the
//!   group. dxc, slangc and glslang emit no `Coherent` for it.
//! - **GLSL** (4.60, 8.16): memory other than `shared` needs both `barrier()` and a memory barrier, in no
//!   given order. The SPIR-V needs the memory barrier on both sides (Vulkan-Docs 2779).
//!
//! Slang promises no scope. Rules about uniform control flow and about colliding accesses are not applied.

use rspirv::spirv::Op;
use vocabulary::Scope;

use crate::language::ShaderLanguage;
use crate::module::{SpirvFunction, SpirvInstruction, SpirvModule};

impl SpirvModule {
    /// Returns the module by the rules of its source language; `None` if it has none or they change nothing.
    pub fn by_language_rules(&self) -> Option<SpirvModule> {
        let mut module = self.clone();
        match self.language? {
            ShaderLanguage::Wgsl | ShaderLanguage::Hlsl if !self.uses_vulkan_model => {
                module.plain_access_scope = Some(Scope::Workgroup);
            }
            ShaderLanguage::Glsl => {
                let functions = module.functions.values_mut();
                let changed = functions.map(surround_control_barriers).filter(|changed| *changed).count();
                (changed > 0).then_some(())?;
            }
            ShaderLanguage::Wgsl | ShaderLanguage::Hlsl | ShaderLanguage::Slang => return None,
        }
        Some(module)
    }
}

/// Puts the memory barriers next to each control barrier on both of its sides. Returns true if any was added.
fn surround_control_barriers(function: &mut SpirvFunction) -> bool {
    let is_barrier = |op: Op| matches!(op, Op::MemoryBarrier | Op::ControlBarrier);
    let old = std::mem::take(&mut function.code);
    let count = old.len();
    for run in old.chunk_by(|first, second| is_barrier(first.op) && is_barrier(second.op)) {
        let (controls, memory): (Vec<_>, Vec<_>) =
            run.iter().copied().partition(|barrier: &SpirvInstruction| barrier.op == Op::ControlBarrier);
        if controls.is_empty() || memory.is_empty() {
            function.code.extend(run);
            continue;
        }
        function.code.extend(&memory);
        for control in controls {
            function.code.push(control);
            function.code.extend(&memory);
        }
    }
    let labels = function.code.iter().enumerate().filter(|(_, instruction)| instruction.op == Op::Label);
    function.labels = labels.map(|(at, label)| (label.result, at)).collect();
    function.code.len() > count
}
