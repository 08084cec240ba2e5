//! Lowers loads, stores, atomics and barriers to memory operations with scopes and semantics.

use rspirv::spirv::BuiltIn as SpirvBuiltIn;
use spirv_reader::{
    AtomicAccess, AtomicKind, BarrierPart, MemoryEffect, MemoryOperands, SpirvOperation, SpirvType,
    scope_from_word, semantics_from_word,
};
use vocabulary::{Scope, Semantics, StorageClass, StorageClassSet};

use super::path::Leaf;
use super::{LoweredValue, Lowering};
use crate::fault::Fault;
use crate::instruction::{LoadError, malformed_module};
use crate::program::{
    Access, Binary, BuiltIn, INVOCATION, LaneMask, MemoryOp, MemoryOpKind, NONE, Op, QUEUE_FAMILY, Register,
    Rmw, SUBGROUP, WORKGROUP, cache_level,
};

/// The maximal number of memory operations in a kernel.
const MAX_ACCESSES: usize = 4096;

/// Returns true if an instruction's result may come from memory.
pub(super) fn reads_memory(operation: &SpirvOperation<'_>) -> bool {
    match operation.memory_effect() {
        MemoryEffect::Access(accesses) => accesses.iter().flatten().any(|access| !access.writes),
        MemoryEffect::Texel { writes, .. } => !writes,
        MemoryEffect::Atomic(access) => access.kind.reads(),
        MemoryEffect::None
        | MemoryEffect::Barrier { .. }
        | MemoryEffect::Interlock
        | MemoryEffect::Unknown => false,
    }
}

pub(super) const NO_EFFECT: MemoryOp = MemoryOp {
    kind: MemoryOpKind::Fence,
    reference: 0,
    class: StorageClass::Buffer,
    bytes: 4,
    scope: INVOCATION,
    execution: INVOCATION,
    split: false,
    among_aliases: false,
    tangled: false,
    classes: StorageClassSet::EMPTY,
    acquire: false,
    release: false,
    make_available: false,
    make_visible: false,
    available: false,
    visible: false,
    private: false,
    read_only: false,
    reused: false,
    streaming: false,
};

/// Returns true if a fault removes all memory effects of half of a split barrier.
fn is_dropped(half: &MemoryOp, fault: Fault) -> bool {
    match fault {
        Fault::SplitArrivalRelaxed => half.kind == MemoryOpKind::Arrive,
        Fault::SplitWaitRelaxed => half.kind == MemoryOpKind::Leave,
        Fault::SplitIgnored => true,
        _ => false,
    }
}

impl Lowering<'_> {
    /// Completes the halves of split barriers after the kernel is lowered, and removes operations that a fault drops.
    pub(super) fn complete_split_barriers(&mut self, fault: Fault) {
        let aliased =
            |(id, own): &(u32, u16)| self.indices.iter().any(|(other, of)| other == id && of != own);
        let among_aliases = self.indices.iter().any(aliased);
        for half in self.program.memory.iter_mut().filter(|op| op.split) {
            half.among_aliases = among_aliases;
            if is_dropped(half, fault) {
                *half = MemoryOp { kind: half.kind, execution: half.execution, split: true, ..NO_EFFECT };
            }
        }
    }

    /// Removes operations that a fault drops at the ends of interlocked sections.
    pub(super) fn drop_section_effects(&mut self, fault: Fault) {
        for op in &mut self.program.memory {
            match (op.kind, fault) {
                (MemoryOpKind::SectionBegin { .. }, Fault::SectionBeginAcquiresNothing)
                | (MemoryOpKind::SectionEnd, Fault::SectionEndReleasesNothing) => {
                    *op = MemoryOp { kind: op.kind, ..NO_EFFECT };
                }
                _ => {}
            }
        }
    }

    /// Lowers a memory barrier. Its halves order different operations: an older store may sink below a younger
    /// load.
    pub(super) fn lower_memory_barrier(&mut self, scope: u32, semantics: u32) -> Result<(), LoadError> {
        let op = MemoryOp { kind: MemoryOpKind::Fence, scope: self.scope_level(scope)?, ..NO_EFFECT };
        let semantics = self.semantics_operand(semantics)?;
        if semantics.order.releases() {
            self.emit_fence(release_half(with_semantics(op, semantics)), NONE)?;
        }
        if semantics.order.acquires() {
            self.emit_fence(acquire_half(with_semantics(op, semantics)), NONE)?;
        }
        Ok(())
    }

    /// Lowers a control barrier with these execution scope, memory scope and semantics, or half of one.
    pub(super) fn lower_control_barrier(
        &mut self,
        part: BarrierPart,
        [execution, scope, semantics]: [u32; 3],
    ) -> Result<(), LoadError> {
        let execution = self.scope_level(execution)?;
        if !matches!(execution, SUBGROUP | WORKGROUP) {
            return Err(self.current.unsupported_error(" of this execution scope"));
        }
        let semantics = self.semantics_operand(semantics)?;
        let half = |kind| MemoryOp { kind, execution, ..NO_EFFECT };
        let [mut arrive, mut leave] = [MemoryOpKind::Arrive, MemoryOpKind::Leave].map(half);
        arrive.scope = self.scope_level(scope)?;
        leave.scope = arrive.scope;
        match part {
            BarrierPart::Arrive => {
                self.emit_fence(with_semantics(MemoryOp { split: true, ..arrive }, semantics), NONE)?;
            }
            BarrierPart::Wait => {
                self.emit_fence(with_semantics(MemoryOp { split: true, ..leave }, semantics), NONE)?;
            }
            BarrierPart::Whole => {
                let nested = self.program.nested_blocks.get(self.block as usize).copied().unwrap_or(false);
                let tangled = nested && execution == SUBGROUP;
                let meeting = if tangled { self.emit_reconvergence() } else { NONE };
                self.emit_fence(
                    release_half(with_semantics(MemoryOp { tangled, ..arrive }, semantics)),
                    meeting,
                )?;
                self.emit_fence(
                    acquire_half(with_semantics(MemoryOp { tangled, ..leave }, semantics)),
                    meeting,
                )?;
            }
        }
        Ok(())
    }

    /// Lowers the begin or end of an interlocked section.
    pub(super) fn lower_interlock(&mut self, begins: bool) -> Result<(), LoadError> {
        let ordered = self.module.interlock_is_ordered.ok_or_else(|| {
            malformed_module(self.current.word, "an interlock section without an execution mode")
        })?;
        let kind = if begins { MemoryOpKind::SectionBegin { ordered } } else { MemoryOpKind::SectionEnd };
        // The scope covers all fragments of the draw, on any subgroup or workgroup.
        let end = MemoryOp { kind, scope: QUEUE_FAMILY, classes: StorageClassSet::GLOBAL, ..NO_EFFECT };
        self.emit_fence(MemoryOp { acquire: begins, release: !begins, ..end }, NONE)?;
        Ok(())
    }

    pub(super) fn lower_load(&mut self, pointer: u32, memory: MemoryOperands) -> Result<(), LoadError> {
        let (ty, result) = (self.current.result_type_id()?, self.current.result_id()?);
        let source = self.lowered_value(pointer)?;
        if let LoweredValue::Image { .. } = source {
            self.lowered_values.insert(result, source);
            return Ok(());
        }
        let to = self.pending_register(result)?;
        let width = self.width_of(result);
        match source {
            LoweredValue::Variable(from) => {
                self.wait_for(from);
                self.emit_copies(to, from, width);
            }
            LoweredValue::Element { first, offset, index, words } => {
                for word in 0..width {
                    let (to, offset) = (to + word, offset + word);
                    self.program.ops.push(Op::ReadIndexed { to, from: first, offset, index, words });
                }
            }
            LoweredValue::VertexWord => {
                self.program.ops.push(Op::BuiltIn { to, built_in: BuiltIn::VertexWord })
            }
            LoweredValue::PushConstantBlock => {
                self.load_parameters(0, NONE, self.pointee_leaves(pointer, ty, to))?
            }
            LoweredValue::PushConstant { bytes, index } => {
                self.load_parameters(bytes, index, self.pointee_leaves(pointer, ty, to))?;
                if width == 2 && index == NONE {
                    self.addresses.insert(result, bytes / 4);
                }
            }
            LoweredValue::Input(built_in) => {
                let known = built_in_components(built_in)
                    .ok_or_else(|| LoadError::Unsupported(format!("the built-in {built_in:?}")))?;
                for (to, built_in) in (to..to + width).zip(known) {
                    self.program.ops.push(Op::BuiltIn { to, built_in });
                }
            }
            LoweredValue::InputComponent(built_in, part) => {
                let known =
                    built_in_components(built_in).and_then(|known| known.get(usize::from(part)).copied());
                let built_in =
                    known.ok_or_else(|| LoadError::Unsupported(format!("the built-in {built_in:?}")))?;
                self.program.ops.push(Op::BuiltIn { to, built_in });
            }
            LoweredValue::MemoryVariable { .. } | LoweredValue::Pointer { .. } => {
                let (reference, address) = self.memory_address(source)?;
                let coherence = self.nonatomic_coherence(pointer, reference, memory.visible, memory)?;
                let (scope, visible, private) = coherence;
                let class = self.storage_class(reference);
                let is_first =
                    self.program.memory.iter().all(|op| op.is_access() && !op.acquire && !op.release);
                let streaming = memory.nontemporal && private && is_first;
                let load =
                    MemoryOp { kind: MemoryOpKind::PlainLoad, reference, class, streaming, ..NO_EFFECT };
                for leaf in self.pointee_leaves(pointer, ty, to) {
                    let op = MemoryOp { bytes: leaf.bytes, scope, visible, private, ..load };
                    let address = self.emit_offset_address(address, leaf.offset);
                    let memory = self.emit_memory_op(op, address, NONE, NONE, leaf.register)?;
                    if !streaming {
                        self.program.load_pointers.push((address, memory));
                    }
                }
            }
            _ => return Err(self.current.unsupported_error(" of this variable")),
        }
        Ok(())
    }

    /// Returns the reference and the address of a pointer into memory, or of a whole variable.
    fn memory_address(&mut self, pointer: LoweredValue) -> Result<(u16, Register), LoadError> {
        match pointer {
            LoweredValue::MemoryVariable { reference, ty } => {
                Ok((reference, self.emit_variable_address(reference, ty)))
            }
            LoweredValue::Pointer { reference, address } => Ok((reference, address)),
            _ => Err(LoadError::Unsupported("an address of this variable".into())),
        }
    }

    /// Returns the numbers of a value at a pointer, in registers from `first` on.
    fn pointee_leaves(&self, pointer: u32, ty: u32, first: Register) -> Vec<Leaf> {
        self.leaves_at(ty, self.matrix_layout_of(pointer), first)
    }

    /// Emits loads of whole and partial push constant words.
    fn load_parameters(&mut self, bytes: u32, index: Register, leaves: Vec<Leaf>) -> Result<(), LoadError> {
        for leaf in leaves {
            let at = bytes.wrapping_add(leaf.offset);
            let words = u32::from(leaf.bytes).div_ceil(4);
            self.program.parameter_words = self.program.parameter_words.max((at / 4).saturating_add(words));
            if leaf.bytes >= 4 {
                for part in 0..words {
                    let (to, word) = (leaf.register + part, (at / 4).wrapping_add(part));
                    self.program.ops.push(Op::Parameter { to, word, index });
                }
                continue;
            }
            if index != NONE {
                return Err(LoadError::Unsupported(
                    "numbers of less than 32 bits in arrays of push constants".into(),
                ));
            }
            let mask = if leaf.bytes == 1 { self.fixed.byte } else { self.fixed.half };
            let (by, whole, shifted) =
                (self.constant_register(at % 4 * 8), self.new_register(), self.new_register());
            self.program.ops.push(Op::Parameter { to: whole, word: at / 4, index });
            self.program.ops.push(Op::Binary { op: Binary::ShiftRight, to: shifted, left: whole, right: by });
            let masked = self.new_register();
            self.program.ops.push(Op::Binary { op: Binary::And, to: masked, left: shifted, right: mask });
            self.emit_copies(leaf.register, masked, 1);
        }
        Ok(())
    }

    /// Emits the address `bytes` after another one.
    fn emit_offset_address(&mut self, address: Register, bytes: u32) -> Register {
        if bytes == 0 {
            return address;
        }
        let to = self.new_register();
        self.program.ops.push(Op::AddressOffset { to, from: address, bytes });
        to
    }

    /// Returns the size of a number, or of a vector component, in memory.
    fn bytes_of(&self, id: u32) -> Result<u8, LoadError> {
        let mut ty = self.types.get(&id).copied().unwrap_or(0);
        if let Some(SpirvType::Vector { element, .. }) = self.module.type_of(ty) {
            ty = *element;
        }
        match self.module.type_of(ty) {
            Some(SpirvType::Integer { bits, .. } | SpirvType::Float { bits }) => Ok((bits / 8) as u8),
            _ => Err(self.current.unsupported_error(" of this type")),
        }
    }

    pub(super) fn lower_store(
        &mut self,
        pointer: u32,
        value: u32,
        memory: MemoryOperands,
    ) -> Result<(), LoadError> {
        let target = self.lowered_value(pointer)?;
        match target {
            LoweredValue::Variable(to) => {
                let from = self.awaited_register(value)?;
                self.emit_assignments(to, from, self.width_of(value));
            }
            LoweredValue::Element { first, offset, index, words } => {
                let from = self.awaited_register(value)?;
                for word in 0..self.width_of(value) {
                    let (from, offset) = (from + word, offset + word);
                    self.program.ops.push(Op::WriteIndexed { to: first, offset, index, from, words });
                }
            }
            LoweredValue::MemoryVariable { .. } | LoweredValue::Pointer { .. } => {
                let (reference, address) = self.memory_address(target)?;
                let coherence = self.nonatomic_coherence(pointer, reference, memory.available, memory)?;
                let (scope, available, private) = coherence;
                let (class, from) = (self.storage_class(reference), self.pending_register(value)?);
                let ty = self.types.get(&value).copied().unwrap_or(0);
                let store = MemoryOp { kind: MemoryOpKind::PlainStore, reference, class, ..NO_EFFECT };
                for leaf in self.pointee_leaves(pointer, ty, from) {
                    let op = MemoryOp { bytes: leaf.bytes, scope, available, private, ..store };
                    let address = self.emit_offset_address(address, leaf.offset);
                    self.emit_memory_op(op, address, leaf.register, NONE, NONE)?;
                }
            }
            _ => return Err(self.current.unsupported_error(" to this variable")),
        }
        Ok(())
    }

    pub(super) fn lower_atomic(&mut self, access: AtomicAccess) -> Result<(), LoadError> {
        let LoweredValue::Pointer { reference, address } = self.lowered_value(access.pointer)? else {
            return Err(self.current.unsupported_error(" on this pointer"));
        };
        let (class, scope) = (self.storage_class(reference), self.scope_level(access.scope)?);
        let semantics = self.semantics_operand(access.semantics)?;
        let number = match access.kind {
            AtomicKind::Store { value } => value,
            _ => self.current.result_id()?,
        };
        let bytes = self.bytes_of(number)?;
        if bytes < 4 {
            return Err(self.current.unsupported_error(&format!(" of {bytes} bytes")));
        }
        let op = MemoryOp { reference, class, scope, bytes, ..NO_EFFECT };
        // The semantics of one half must not order the other half.
        let relaxed = Semantics { classes: semantics.classes, ..Semantics::RELAXED };
        let change = match access.kind {
            AtomicKind::Load => {
                let to = self.pending_register(self.current.result_id()?)?;
                let load = MemoryOp { kind: MemoryOpKind::AtomicLoad, ..op };
                let own = if semantics.make_visible { relaxed } else { semantics };
                let memory = self.emit_memory_op(with_semantics(load, own), address, NONE, NONE, to)?;
                self.program.load_pointers.push((address, memory));
                if semantics.make_visible {
                    let acquire = MemoryOp { kind: MemoryOpKind::AcquirePart, ..op };
                    self.emit_fence(with_semantics(acquire, semantics), NONE)?;
                }
                return Ok(());
            }
            AtomicKind::Store { value } => {
                let value = self.pending_register(value)?;
                let store = MemoryOp { kind: MemoryOpKind::AtomicStore, ..op };
                if semantics.make_available {
                    let release = MemoryOp { kind: MemoryOpKind::ReleasePart, ..op };
                    self.emit_fence(with_semantics(release, semantics), NONE)?;
                }
                let own = if semantics.make_available { relaxed } else { semantics };
                self.emit_memory_op(with_semantics(store, own), address, value, NONE, NONE)?;
                return Ok(());
            }
            AtomicKind::Exchange { .. } => Rmw::Exchange,
            AtomicKind::CompareExchange { .. } => Rmw::CompareExchange,
            AtomicKind::Update { function, .. } => Rmw::Update(function),
        };
        let to = self.pending_register(self.current.result_id()?)?;
        let compare = match access.kind {
            AtomicKind::CompareExchange { comparator, .. } => self.awaited_register(comparator)?,
            _ => NONE,
        };
        let value = match access.kind.value() {
            Some(value) => self.pending_register(value)?,
            None => {
                let [low, high] = [self.new_register(), self.new_register()];
                self.program.constants.extend([(low, 1), (high, 0)]);
                low
            }
        };
        let rmw = MemoryOp { kind: MemoryOpKind::Rmw(change), ..op };
        self.emit_memory_op(with_semantics(rmw, semantics), address, value, compare, to)?;
        Ok(())
    }

    /// Issues an operation without an address. The lanes of `meeting` execute it together.
    fn emit_fence(&mut self, op: MemoryOp, meeting: Register) -> Result<(), LoadError> {
        self.emit_memory_op(op, NONE, NONE, meeting, NONE).map(|_| ())
    }

    pub(super) fn emit_memory_op(
        &mut self,
        op: MemoryOp,
        address: Register,
        value: Register,
        compare: Register,
        to: Register,
    ) -> Result<u16, LoadError> {
        let memory = self.program.memory.len();
        // The wait conditions form a table over all pairs of operations.
        if memory >= MAX_ACCESSES {
            return Err(LoadError::Unsupported(format!(
                "more than {MAX_ACCESSES} accesses of numbers in a kernel"
            )));
        }
        let memory = memory as u16;
        self.program.memory.push(op);
        self.program.ops.push(Op::Memory(Access { memory, address, value, compare, to }));
        // The register gets a new value, so later uses have to wait again.
        self.awaited_registers.retain(|register| *register != to);
        Ok(memory)
    }

    fn storage_class(&self, reference: u16) -> StorageClass {
        let known = self.program.references.get(usize::from(reference));
        known.map_or(StorageClass::Buffer, |reference| reference.class)
    }

    /// Returns the scope, availability or visibility, and privacy of a non-atomic access; `scope_id` is the scope
    /// of its availability or visibility operation.
    fn nonatomic_coherence(
        &self,
        pointer: u32,
        reference: u16,
        scope_id: Option<u32>,
        memory: MemoryOperands,
    ) -> Result<(u8, bool, bool), LoadError> {
        let scope = scope_id.map(|scope| self.scope_level(scope)).transpose()?;
        let coherent = self.coherent_pointers.contains(&pointer)
            || matches!(self.lowered_value(pointer)?, LoweredValue::MemoryVariable { ty, .. } if self.has_coherent_member(ty));
        Ok(self.coherence(reference, coherent, scope, memory.non_private))
    }

    /// Returns the coherence of a non-atomic access: from its operands, or, under GLSL450, from its variable
    /// and members.
    pub(super) fn coherence(
        &self,
        reference: u16,
        coherent: bool,
        scope: Option<u8>,
        non_private: bool,
    ) -> (u8, bool, bool) {
        let coherent = coherent || self.coherent_references.get(usize::from(reference)) == Some(&true);
        if !self.module.source().uses_vulkan_model && coherent {
            let level = if self.storage_class(reference) == StorageClass::Workgroup {
                WORKGROUP
            } else {
                QUEUE_FAMILY
            };
            return (level, true, false);
        }
        (scope.unwrap_or(INVOCATION), scope.is_some(), !non_private)
    }

    /// Returns the cache level of a scope operand.
    pub(super) fn scope_level(&self, scope: u32) -> Result<u8, LoadError> {
        let vulkan = self.module.source().uses_vulkan_model;
        Ok(match scope_from_word(self.constant_operand(scope)?.into(), vulkan)? {
            // Modules of the GLSL450 memory model do not distinguish devices from queue families.
            Scope::CrossDevice if !vulkan => QUEUE_FAMILY,
            scope => cache_level(scope),
        })
    }

    fn semantics_operand(&self, semantics: u32) -> Result<Semantics, LoadError> {
        Ok(semantics_from_word(self.constant_operand(semantics)?.into())?)
    }
}

fn with_semantics(op: MemoryOp, semantics: Semantics) -> MemoryOp {
    let Semantics { order, classes, make_available, make_visible, .. } = semantics;
    MemoryOp {
        acquire: order.acquires(),
        release: order.releases(),
        classes,
        make_available,
        make_visible,
        ..op
    }
}

/// Returns the half of the semantics that orders earlier operations.
fn release_half(op: MemoryOp) -> MemoryOp {
    MemoryOp { acquire: false, make_visible: false, ..op }
}

/// Returns the half of the semantics that orders later operations.
fn acquire_half(op: MemoryOp) -> MemoryOp {
    MemoryOp { release: false, make_available: false, ..op }
}

/// Returns a built-in for each of the three axes.
fn built_in_axes(what: fn(u8) -> BuiltIn) -> Option<[BuiltIn; 4]> {
    Some([what(0), what(1), what(2), BuiltIn::Zero])
}

/// Returns the built-in of each component of an input.
fn built_in_components(built_in: SpirvBuiltIn) -> Option<[BuiltIn; 4]> {
    let first = match built_in {
        SpirvBuiltIn::WorkgroupId => return built_in_axes(BuiltIn::Workgroup),
        SpirvBuiltIn::NumWorkgroups => return built_in_axes(BuiltIn::Workgroups),
        SpirvBuiltIn::LocalInvocationId => return built_in_axes(BuiltIn::Local),
        SpirvBuiltIn::GlobalInvocationId => return built_in_axes(BuiltIn::Global),
        SpirvBuiltIn::WorkgroupSize => return built_in_axes(BuiltIn::Size),
        SpirvBuiltIn::SubgroupSize => BuiltIn::SubgroupSize,
        SpirvBuiltIn::NumSubgroups => BuiltIn::Subgroups,
        SpirvBuiltIn::SubgroupEqMask => BuiltIn::Mask(LaneMask::Equal),
        SpirvBuiltIn::SubgroupGeMask => BuiltIn::Mask(LaneMask::GreaterOrEqual),
        SpirvBuiltIn::SubgroupGtMask => BuiltIn::Mask(LaneMask::Greater),
        SpirvBuiltIn::SubgroupLeMask => BuiltIn::Mask(LaneMask::LessOrEqual),
        SpirvBuiltIn::SubgroupLtMask => BuiltIn::Mask(LaneMask::Less),
        SpirvBuiltIn::LocalInvocationIndex => BuiltIn::LocalIndex,
        SpirvBuiltIn::SubgroupId => BuiltIn::Subgroup,
        SpirvBuiltIn::SubgroupLocalInvocationId => BuiltIn::Lane,
        SpirvBuiltIn::VertexIndex => BuiltIn::Vertex,
        SpirvBuiltIn::HelperInvocation => BuiltIn::Helper,
        SpirvBuiltIn::FragCoord => {
            return Some([BuiltIn::Fragment(0), BuiltIn::Fragment(1), BuiltIn::Zero, BuiltIn::One]);
        }
        _ => return None,
    };
    Some([first, BuiltIn::Zero, BuiltIn::Zero, BuiltIn::Zero])
}
