//! The module by the rules of its source language.
//!
//! A compiler may lose order that the language promises. The module by its language has the lost part again,
//! so that every engine answers for the source:
//!
//! - **WGSL** (Memory Model, "Private vs Non-Private"): plain accesses of storage buffers and textures are
//!   non-private, available and visible in the workgroup. naga emits no `Coherent` for them. A store of a component
//!   accesses the whole vector ([`SpirvModule::has_component_stores`]). An exchange may fail although the values are
//!   equal (`atomicCompareExchangeWeak`, "may spuriously fail"); SPIR-V for Vulkan has only exchanges that do not.
//! - **HLSL** (D3D11.3 functional specification, 7.14.4): a UAV without `globallycoherent` is coherent in the
//!   group. dxc, slangc and glslang emit no `Coherent` for it. Its 32-bit parts are atomic (7.14.2): an
//!   interlocked operation and a plain access, or two stores of one value, are a defined collision
//!   ([`SpirvModule::defines_collisions`]). In `groupshared` memory this holds for an interlocked operation and a
//!   load. [`HlslRules`] selects a candidate for other rules. glslang gives all buffers of one type the qualifiers of the
//!   first that is used; the text of `OpSource` has those of each.
//! - **Slang** (Memory Model and Consistency): barriers and atomics order earlier before later accesses, `globallycoherent` or
//!   not: who reads what an atomic released sees all side effects before it. Data races are undefined. Without a memory operand, slangc leaves `groupshared` memory private.
//! - **GLSL** (4.60, 8.16): memory other than `shared` needs both `barrier()` and a memory barrier, in no
//!   given order. The SPIR-V needs the memory barrier on both sides (Vulkan-Docs 2779). `shared` memory, and
//!   memory with a coherence qualifier in the text of `OpSource`, is coherent. glslang drops `devicecoherent` and
//!   `queuefamilycoherent` without `#pragma use_vulkan_memory_model`, and any qualifier for the store of `x++`.
//!
//! - **OpenCL C** (3.0, 6.15.12): what is ordered is visible; clspv declares buffers `Coherent` only beside fences. Atomics of
//!   version 1.2 are relaxed, and clspv gives them acquire and release. In a module of a later version these are not told from atomics
//!   with orders, and keep what clspv gives them.
//!
//! Of rules about uniform control flow, WGSL's is one of programs; a rule of `lint` applies it. Those of GLSL and HLSL are of
//! executions, which the walk follows.

use std::collections::BTreeMap;

use arithmetic::sign_extend;
use rspirv::spirv::{Op, StorageClass};
use vocabulary::Scope;

use crate::language::{HlslMemory, HlslRules, ShaderLanguage};
use crate::module::{SpirvFunction, SpirvInstruction, SpirvModule, SpirvType};
use crate::operation::{MemoryEffect, PointerAccess};

/// The version of OpenCL C from which atomics have memory orders.
const OPENCL_WITH_ORDERS: u32 = 200;
/// The first operand of an atomic instruction, after its type and result, that is of memory semantics.
const SEMANTICS_OPERAND: usize = 2;

impl SpirvModule {
    /// Returns the module by the rules of its source language; `None` if it has none or they change nothing.
    pub fn by_language_rules(&self, hlsl: HlslRules) -> Option<SpirvModule> {
        let mut module = self.clone();
        module.is_by_language = true;
        match self.language? {
            ShaderLanguage::Wgsl => {
                module.plain_access_scope = Some(Scope::Workgroup);
                module.widen_component_stores();
                module.weaken_exchanges();
            }
            ShaderLanguage::Hlsl => {
                module.plain_access_scope = Some(Scope::Workgroup);
                module.hlsl = hlsl;
                module.separate_coherence();
                module.add_lane_barriers();
            }
            ShaderLanguage::Slang => module.plain_access_scope = Some(Scope::QueueFamily),
            ShaderLanguage::OpenClC => {
                module.plain_access_scope = Some(Scope::QueueFamily);
                if module.has_stronger_atomics() {
                    module.relax_atomics();
                }
            }
            ShaderLanguage::Glsl => {
                let functions = module.functions.values_mut();
                let changed = functions
                    .map(|function| self.surround_control_barriers(function))
                    .filter(|changed| *changed)
                    .count();
                let is_changed =
                    changed > 0 || module.uses_vulkan_model || !self.coherence_declarations.is_empty();
                is_changed.then_some(())?;
                module.decorate_coherent();
            }
        }
        Some(module)
    }

    /// Returns true if the source language defines results of floats that SPIR-V leaves undefined.
    pub fn defines_float_results(&self) -> bool {
        self.is_by_language && self.language == Some(ShaderLanguage::Hlsl)
    }

    /// Returns true if the source language defines the remainder of integers of `bits` bits, of which one is negative.
    ///
    /// WGSL and OpenCL C follow C, HLSL only for equal signs. GLSL and Vulkan do not define it.
    pub fn defines_signed_remainder(&self, numbers: &[u64], bits: u32) -> bool {
        let mut signs = numbers.iter().map(|number| sign_extend(*number, bits) < 0);
        match self.language {
            Some(ShaderLanguage::Wgsl | ShaderLanguage::OpenClC) => true,
            Some(ShaderLanguage::Hlsl) => signs.all(|is_negative| is_negative),
            Some(ShaderLanguage::Glsl | ShaderLanguage::Slang) | None => false,
        }
    }

    /// Returns true if the module exchanges a value for one that it compares with.
    pub fn has_exchanges(&self) -> bool {
        self.has_instruction(Op::AtomicCompareExchange)
    }

    /// Returns true if such an exchange may fail although the values are equal.
    pub fn has_weak_exchanges(&self) -> bool {
        self.has_instruction(Op::AtomicCompareExchangeWeak)
    }

    fn has_instruction(&self, op: Op) -> bool {
        self.functions.values().flat_map(|function| &function.code).any(|instruction| instruction.op == op)
    }

    /// Makes each exchange whose success `OpIEqual` computes, as naga emits it, one that may fail although the values are equal.
    pub fn weaken_exchanges(&mut self) {
        let mut functions = std::mem::take(&mut self.functions);
        for function in functions.values_mut() {
            let comparisons = function.code.iter().filter(|one| one.op == Op::IEqual);
            let compared: Vec<&[u32]> = comparisons.map(|one| self.operands_of(one)).collect();
            for exchange in function.code.iter_mut().filter(|one| one.op == Op::AtomicCompareExchange) {
                let comparator = self.operands_of(exchange).last().copied().unwrap_or(0);
                if compared.contains(&&[exchange.result, comparator][..]) {
                    exchange.op = Op::AtomicCompareExchangeWeak;
                }
            }
        }
        self.functions = functions;
    }

    /// Returns true if the language defines the collision of an atomic and a plain access, or of equal stores.
    pub fn defines_collisions(&self) -> bool {
        let is_hlsl = self.language == Some(ShaderLanguage::Hlsl);
        self.is_by_language && is_hlsl && self.hlsl.memory == HlslMemory::Direct3d
    }

    /// Returns true if the source is in OpenCL C 1.2 and has atomics: its compilers give them orders that the language does not.
    pub fn has_stronger_atomics(&self) -> bool {
        self.language == Some(ShaderLanguage::OpenClC)
            && self.language_version < OPENCL_WITH_ORDERS
            && !self.semantics_of_atomics().is_empty()
    }

    /// Makes all atomics relaxed.
    fn relax_atomics(&mut self) {
        let relaxed = self.new_number(0);
        for place in self.semantics_of_atomics() {
            if let Some(word) = self.words.get_mut(place) {
                *word = relaxed;
            }
        }
    }

    /// Returns the indices of the words that are the memory semantics of atomics.
    fn semantics_of_atomics(&self) -> Vec<usize> {
        let code = self.functions.values().flat_map(|function| &function.code);
        let semantics = |instruction: &SpirvInstruction| {
            let operation = self.operation(instruction);
            let is_atomic = matches!(operation.memory_effect(), MemoryEffect::Atomic(_));
            let count = if is_atomic { operation.semantics_ids().count() } else { 0 };
            let first = instruction.operands.0 as usize + SEMANTICS_OPERAND;
            first..first + count
        };
        code.flat_map(semantics).collect()
    }

    /// Returns the variables of each type of which the source declares some UAVs coherent and others not.
    fn declared_coherence(&self) -> BTreeMap<u32, BTreeMap<u32, bool>> {
        let declared = |variable: &u32| {
            let name = self.names.get(variable)?;
            let mut found = self.coherence_declarations.iter().filter(|one| one.name == *name);
            let first = found.next()?.is_coherent;
            found.all(|one| one.is_coherent == first).then_some(first)
        };
        let mut by_type: BTreeMap<u32, BTreeMap<u32, Option<bool>>> = BTreeMap::new();
        self.variable_types.iter().for_each(|(variable, pointer)| {
            if let Some(SpirvType::Pointer { pointee, .. }) = self.types.get(pointer) {
                let ty = self.element_type(*pointee);
                by_type.entry(ty).or_default().insert(*variable, declared(variable));
            }
        });
        let known = by_type.into_iter().filter_map(|(ty, variables)| {
            let known = variables.into_iter().map(|(variable, known)| Some((variable, known?)));
            Some((ty, known.collect::<Option<BTreeMap<u32, bool>>>()?))
        });
        known
            .filter(|(_, variables)| [true, false].iter().all(|one| variables.values().any(|is| is == one)))
            .collect()
    }

    /// Returns true if the source declares a variable coherent.
    pub fn is_declared_coherent(&self, variable: u32) -> bool {
        let name = self.names.get(&variable);
        self.coherence_declarations.iter().any(|one| one.is_coherent && Some(&one.name) == name)
    }

    /// Returns true if the module decorates an HLSL UAV as coherent that its source does not.
    pub fn has_excess_coherence(&self) -> bool {
        let is_decorated =
            |ty: u32| self.member_decorations.get(&(ty, 0)).is_some_and(|member| member.coherent);
        self.language == Some(ShaderLanguage::Hlsl) && self.declared_coherence().into_keys().any(is_decorated)
    }

    /// Decorates UAVs as their declarations do. glslang gives buffers of one type the decoration of the first that is used.
    fn separate_coherence(&mut self) {
        for (ty, variables) in self.declared_coherence() {
            if let Some(member) = self.member_decorations.get_mut(&(ty, 0)) {
                member.coherent = false;
            }
            for (variable, is_coherent) in variables {
                self.decorations.entry(variable).or_default().coherent = is_coherent;
            }
        }
    }

    /// Decorates the declared variables, members and blocks as coherent.
    fn decorate_coherent(&mut self) {
        let is_coherent = |name: &String| self.coherence_declarations.iter().any(|one| one.name == *name);
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

    /// Puts memory barriers before and after each control barrier that no shared access and no control flow
    /// separates from them. Returns true if any was added.
    fn surround_control_barriers(&self, function: &mut SpirvFunction) -> bool {
        let old = std::mem::take(&mut function.code);
        let count = old.len();
        let is_movable =
            |instruction: &SpirvInstruction| self.is_movable_over_barriers(function, instruction);
        let mut code = Vec::with_capacity(count);
        for run in old.chunk_by(|first, second| is_movable(first) && is_movable(second)) {
            let is_memory = |barrier: &&SpirvInstruction| barrier.op == Op::MemoryBarrier;
            let memory: Vec<SpirvInstruction> = run.iter().filter(is_memory).copied().collect();
            let has_control = run.iter().any(|instruction| instruction.op == Op::ControlBarrier);
            for instruction in run {
                match instruction.op {
                    Op::ControlBarrier => {
                        code.extend(&memory);
                        code.push(*instruction);
                        code.extend(&memory);
                    }
                    Op::MemoryBarrier if has_control => {}
                    _ => code.push(*instruction),
                }
            }
        }
        let labels = code.iter().enumerate().filter(|(_, instruction)| instruction.op == Op::Label);
        function.labels = labels.map(|(at, label)| (label.result, at)).collect();
        function.code = code;
        function.code.len() > count
    }

    /// Returns true if an instruction accesses memory that other invocations may access.
    pub(crate) fn accesses_shared_memory(
        &self,
        function: &SpirvFunction,
        instruction: &SpirvInstruction,
    ) -> bool {
        let is_unshared = |access: PointerAccess| {
            let global = self.variable_types.get(&access.pointer);
            let ty = global.or_else(|| function.types.get(&access.pointer));
            let Some(SpirvType::Pointer { class, .. }) = ty.and_then(|ty| self.types.get(ty)) else {
                return false;
            };
            matches!(
                class,
                StorageClass::Function
                    | StorageClass::Private
                    | StorageClass::Input
                    | StorageClass::PushConstant
                    | StorageClass::UniformConstant
            )
        };
        match self.operation(instruction).memory_effect() {
            MemoryEffect::None | MemoryEffect::Barrier { .. } | MemoryEffect::Interlock => false,
            MemoryEffect::Access(accesses) => !accesses.into_iter().flatten().all(is_unshared),
            MemoryEffect::Texel { .. } | MemoryEffect::Atomic(_) | MemoryEffect::Unknown => true,
        }
    }

    /// Returns true if an instruction is a barrier, or neither accesses shared memory nor changes control flow.
    fn is_movable_over_barriers(&self, function: &SpirvFunction, instruction: &SpirvInstruction) -> bool {
        let operation = self.operation(instruction);
        match operation.memory_effect() {
            MemoryEffect::None => !operation.is_terminator() && instruction.op != Op::Label,
            MemoryEffect::Barrier { .. } => matches!(instruction.op, Op::MemoryBarrier | Op::ControlBarrier),
            MemoryEffect::Interlock => false,
            MemoryEffect::Access(_)
            | MemoryEffect::Texel { .. }
            | MemoryEffect::Atomic(_)
            | MemoryEffect::Unknown => !self.accesses_shared_memory(function, instruction),
        }
    }
}
