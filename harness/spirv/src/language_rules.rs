//! The module by the rules of its source language.
//!
//! A compiler may lose order that the language promises. The module by its language has the lost part again,
//! so that every engine answers for the source:
//!
//! - **WGSL** (Memory Model, "Private vs Non-Private"): plain accesses of storage buffers and textures are
//!   non-private, available and visible in the workgroup. naga emits no `Coherent` for them.
//! - **HLSL** (D3D11.3 functional specification, 7.14.4): a UAV without `globallycoherent` is coherent in the
//!   group. dxc, slangc and glslang emit no `Coherent` for it. Its 32-bit parts are atomic (7.14.2): an
//!   interlocked operation and a plain access, or two stores of one value, are a defined collision
//!   ([`SpirvModule::defines_collisions`]). In `groupshared` memory this holds for an interlocked operation and a
//!   load.
//! - **Slang** (Memory Model and Consistency): a barrier orders earlier before later accesses of its memory in
//!   the group. Data races are undefined. Without a memory operand, slangc leaves `groupshared` memory private.
//! - **GLSL** (4.60, 8.16): memory other than `shared` needs both `barrier()` and a memory barrier, in no
//!   given order. The SPIR-V needs the memory barrier on both sides (Vulkan-Docs 2779). `shared` memory, and
//!   memory with a coherence qualifier in the text of `OpSource`, is coherent. glslang drops `devicecoherent` and
//!   `queuefamilycoherent` without `#pragma use_vulkan_memory_model`, and any qualifier for the store of `x++`.
//!
//! The modules of OpenCL C have what the language promises: clspv declares buffers `Coherent`. Rules about uniform
//! control flow are not applied.

use rspirv::spirv::Op;
use vocabulary::Scope;

use crate::language::ShaderLanguage;
use crate::module::{SpirvFunction, SpirvInstruction, SpirvModule};

impl SpirvModule {
    /// Returns the module by the rules of its source language; `None` if it has none or they change nothing.
    pub fn by_language_rules(&self) -> Option<SpirvModule> {
        let mut module = self.clone();
        module.is_by_language = true;
        match self.language? {
            ShaderLanguage::Wgsl | ShaderLanguage::Hlsl | ShaderLanguage::Slang => {
                module.plain_access_scope = Some(Scope::Workgroup);
            }
            ShaderLanguage::Glsl => {
                let functions = module.functions.values_mut();
                let changed = functions.map(surround_control_barriers).filter(|changed| *changed).count();
                let is_changed = changed > 0 || module.uses_vulkan_model || !self.coherent_names.is_empty();
                is_changed.then_some(())?;
                module.decorate_coherent();
            }
        }
        Some(module)
    }

    /// Returns true if the language defines the collision of an atomic and a plain access, or of equal stores.
    pub fn defines_collisions(&self) -> bool {
        self.is_by_language && self.language == Some(ShaderLanguage::Hlsl)
    }

    /// Decorates the variables, members and blocks of [`SpirvModule::coherent_names`] as coherent.
    fn decorate_coherent(&mut self) {
        let is_coherent = |name: &String| self.coherent_names.contains(name);
        for (id, _) in self.names.iter().filter(|(_, name)| is_coherent(name)) {
            self.decorations.entry(*id).or_default().coherent = true;
        }
        let is_member = |(member, name): &(&(u32, u32), &String)| {
            let block = self.names.get(&member.0);
            block.is_some_and(|block| is_coherent(block) || is_coherent(&format!("{block}.{name}")))
        };
        for (member, _) in self.member_names.iter().filter(is_member) {
            self.member_decorations.entry(*member).or_default().coherent = true;
        }
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
