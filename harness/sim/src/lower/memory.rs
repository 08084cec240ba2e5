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
use crate::instruction::{LoadError, LocatedInstruction, malformed_module};
use crate::program::{
    Access, Binary, BuiltIn, INVOCATION, LaneMask, MemoryOp, MemoryOpKind, NONE, Op, QUEUE_FAMILY, Register,
    Rmw, SUBGROUP, WORKGROUP, level_of,
};

/// The maximal number of memory operations in a kernel.
const MOST_ACCESSES: usize = 4096;

/// Returns true if an instruction's result may come from memory.
pub(super) fn loads(operation: &SpirvOperation<'_>) -> bool {
    match operation.effect() {
        MemoryEffect::Access(accesses) => accesses.iter().flatten().any(|access| !access.writes),
        MemoryEffect::Texel { writes, .. } => !writes,
        MemoryEffect::Atomic(access) => access.kind.reads(),
        MemoryEffect::None
        | MemoryEffect::Barrier { .. }
        | MemoryEffect::Interlock
        | MemoryEffect::Unknown => false,
    }
}

pub(super) const NOTHING: MemoryOp = MemoryOp {
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
fn is_forgotten(half: &MemoryOp, fault: Fault) -> bool {
    match fault {
        Fault::SplitArrivalRelaxed => half.kind == MemoryOpKind::Arrive,
        Fault::SplitWaitRelaxed => half.kind == MemoryOpKind::Leave,
        Fault::SplitIgnored => true,
        _ => false,
    }
}

impl Lowering<'_> {
    /// Completes the halves of split barriers after the kernel is lowered, and removes operations that a fault drops.
    pub(super) fn split_barriers(&mut self, fault: Fault) {
        let aliased =
            |(id, own): &(u32, u16)| self.indices.iter().any(|(other, of)| other == id && of != own);
        let among_aliases = self.indices.iter().any(aliased);
        for half in self.program.memory.iter_mut().filter(|op| op.split) {
            half.among_aliases = among_aliases;
            if is_forgotten(half, fault) {
                *half = MemoryOp { kind: half.kind, execution: half.execution, split: true, ..NOTHING };
            }
        }
    }

    /// Removes operations that a fault drops at the ends of interlocked sections.
    pub(super) fn sections(&mut self, fault: Fault) {
        for op in &mut self.program.memory {
            match (op.kind, fault) {
                (MemoryOpKind::SectionBegin { .. }, Fault::SectionBeginAcquiresNothing)
                | (MemoryOpKind::SectionEnd, Fault::SectionEndReleasesNothing) => {
                    *op = MemoryOp { kind: op.kind, ..NOTHING };
                }
                _ => {}
            }
        }
    }

    /// Lowers a memory barrier. Its halves order different operations: an older store may sink below a younger
    /// load.
    pub(super) fn memory_barrier(
        &mut self,
        placed: &LocatedInstruction,
        scope: u32,
        semantics: u32,
    ) -> Result<(), LoadError> {
        let op = MemoryOp { kind: MemoryOpKind::Fence, scope: self.scope(placed, scope)?, ..NOTHING };
        let semantics = self.semantics(placed, semantics)?;
        if semantics.order.releases() {
            self.issue_fence(releasing(with(op, semantics)), NONE)?;
        }
        if semantics.order.acquires() {
            self.issue_fence(acquiring(with(op, semantics)), NONE)?;
        }
        Ok(())
    }

    /// Lowers a control barrier with these execution scope, memory scope and semantics, or half of one.
    pub(super) fn control_barrier(
        &mut self,
        placed: &LocatedInstruction,
        part: BarrierPart,
        [execution, scope, semantics]: [u32; 3],
    ) -> Result<(), LoadError> {
        let execution = self.scope(placed, execution)?;
        if !matches!(execution, SUBGROUP | WORKGROUP) {
            return Err(placed.refuse(" of this execution scope"));
        }
        let semantics = self.semantics(placed, semantics)?;
        let half = |kind| MemoryOp { kind, execution, ..NOTHING };
        let [mut arrive, mut leave] = [MemoryOpKind::Arrive, MemoryOpKind::Leave].map(half);
        arrive.scope = self.scope(placed, scope)?;
        leave.scope = arrive.scope;
        match part {
            BarrierPart::Arrive => {
                self.issue_fence(with(MemoryOp { split: true, ..arrive }, semantics), NONE)?;
            }
            BarrierPart::Wait => {
                self.issue_fence(with(MemoryOp { split: true, ..leave }, semantics), NONE)?;
            }
            BarrierPart::Whole => {
                let nested = self.program.nested.get(self.block as usize).copied().unwrap_or(false);
                let tangled = nested && execution == SUBGROUP;
                let meeting = if tangled { self.comes_together() } else { NONE };
                self.issue_fence(releasing(with(MemoryOp { tangled, ..arrive }, semantics)), meeting)?;
                self.issue_fence(acquiring(with(MemoryOp { tangled, ..leave }, semantics)), meeting)?;
            }
        }
        Ok(())
    }

    /// Lowers the begin or end of an interlocked section.
    pub(super) fn interlock(&mut self, placed: &LocatedInstruction, begins: bool) -> Result<(), LoadError> {
        let ordered = self
            .module
            .sections
            .ok_or_else(|| malformed_module(placed.word, "an interlock section without an execution mode"))?;
        let kind = if begins { MemoryOpKind::SectionBegin { ordered } } else { MemoryOpKind::SectionEnd };
        // The scope covers all fragments of the draw, on any subgroup or workgroup.
        let end = MemoryOp { kind, scope: QUEUE_FAMILY, classes: StorageClassSet::GLOBAL, ..NOTHING };
        self.issue_fence(MemoryOp { acquire: begins, release: !begins, ..end }, NONE)?;
        Ok(())
    }

    pub(super) fn load(
        &mut self,
        placed: &LocatedInstruction,
        pointer: u32,
        memory: MemoryOperands,
    ) -> Result<(), LoadError> {
        let (ty, result) = (placed.result_type_id()?, placed.result_id()?);
        let source = self.meaning(placed, pointer)?;
        if let LoweredValue::Image { .. } = source {
            self.meanings.insert(result, source);
            return Ok(());
        }
        let to = self.late(placed, result)?;
        let width = self.width_of(result);
        match source {
            LoweredValue::Variable(from) => {
                self.wait_for(from);
                self.copy(to, from, width);
            }
            LoweredValue::Element { first, offset, index, words } => {
                for word in 0..width {
                    let (to, offset) = (to + word, offset + word);
                    self.program.ops.push(Op::Pick { to, from: first, offset, index, words });
                }
            }
            LoweredValue::Handed => self.program.ops.push(Op::BuiltIn { to, built_in: BuiltIn::Handed }),
            LoweredValue::Parameters => self.load_parameters((0, NONE), self.leaves_of(pointer, ty, to))?,
            LoweredValue::Parameter { bytes, index } => {
                self.load_parameters((bytes, index), self.leaves_of(pointer, ty, to))?;
                if width == 2 && index == NONE {
                    self.addresses.insert(result, bytes / 4);
                }
            }
            LoweredValue::Input(built_in) => {
                let known = components(built_in)
                    .ok_or_else(|| LoadError::Lacks(format!("the built-in {built_in:?}")))?;
                for (to, built_in) in (to..to + width).zip(known) {
                    self.program.ops.push(Op::BuiltIn { to, built_in });
                }
            }
            LoweredValue::InputPart(built_in, part) => {
                let known = components(built_in).and_then(|known| known.get(usize::from(part)).copied());
                let built_in = known.ok_or_else(|| LoadError::Lacks(format!("the built-in {built_in:?}")))?;
                self.program.ops.push(Op::BuiltIn { to, built_in });
            }
            LoweredValue::Whole { .. } | LoweredValue::Pointer { .. } => {
                let (reference, address) = self.address_of(source)?;
                let coherence = self.plain(placed, pointer, reference, memory.visible, memory)?;
                let (scope, visible, private) = coherence;
                let class = self.class(reference);
                let is_first =
                    self.program.memory.iter().all(|op| op.is_access() && !op.acquire && !op.release);
                let streaming = memory.nontemporal && private && is_first;
                let load = MemoryOp { kind: MemoryOpKind::PlainLoad, reference, class, streaming, ..NOTHING };
                for leaf in self.leaves_of(pointer, ty, to) {
                    let op = MemoryOp { bytes: leaf.bytes, scope, visible, private, ..load };
                    let address = self.address_behind(address, leaf.offset);
                    let memory = self.issue(op, address, NONE, NONE, leaf.register)?;
                    if !streaming {
                        self.program.reads.push((address, memory));
                    }
                }
            }
            _ => return Err(placed.refuse(" of this variable")),
        }
        Ok(())
    }

    /// Returns the reference and the address of a pointer into memory, or of a whole variable.
    fn address_of(&mut self, pointer: LoweredValue) -> Result<(u16, Register), LoadError> {
        match pointer {
            LoweredValue::Whole { reference, ty } => Ok((reference, self.whole_address(reference, ty))),
            LoweredValue::Pointer { reference, address } => Ok((reference, address)),
            _ => Err(LoadError::Lacks("an address of this variable".into())),
        }
    }

    /// Returns the numbers of a value at a pointer, in registers from `first` on.
    fn leaves_of(&self, pointer: u32, ty: u32, first: Register) -> Vec<Leaf> {
        self.leaves_at(ty, self.strided(pointer), first)
    }

    /// Emits loads of whole and partial push constant words.
    fn load_parameters(
        &mut self,
        (bytes, index): (u32, Register),
        leaves: Vec<Leaf>,
    ) -> Result<(), LoadError> {
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
                return Err(LoadError::Lacks(
                    "numbers of less than 32 bits in arrays of push constants".into(),
                ));
            }
            let mask = if leaf.bytes == 1 { self.fixed.byte } else { self.fixed.half };
            let (by, whole, shifted) = (self.fixed_word(at % 4 * 8), self.register(), self.register());
            self.program.ops.push(Op::Parameter { to: whole, word: at / 4, index });
            self.program.ops.push(Op::Binary { op: Binary::ShiftRight, to: shifted, left: whole, right: by });
            let masked = self.register();
            self.program.ops.push(Op::Binary { op: Binary::And, to: masked, left: shifted, right: mask });
            self.copy(leaf.register, masked, 1);
        }
        Ok(())
    }

    /// Emits the address `bytes` after another one.
    fn address_behind(&mut self, address: Register, bytes: u32) -> Register {
        if bytes == 0 {
            return address;
        }
        let to = self.register();
        self.program.ops.push(Op::Behind { to, from: address, bytes });
        to
    }

    /// Returns the size of a number, or of a vector component, in memory.
    fn bytes_of(&self, placed: &LocatedInstruction, id: u32) -> Result<u8, LoadError> {
        let mut ty = self.types.get(&id).copied().unwrap_or(0);
        if let Some(SpirvType::Vector { element, .. }) = self.module.type_of(ty) {
            ty = *element;
        }
        match self.module.type_of(ty) {
            Some(SpirvType::Integer { bits, .. } | SpirvType::Float { bits }) => Ok((bits / 8) as u8),
            _ => Err(placed.refuse(" of this type")),
        }
    }

    pub(super) fn store(
        &mut self,
        placed: &LocatedInstruction,
        pointer: u32,
        value: u32,
        memory: MemoryOperands,
    ) -> Result<(), LoadError> {
        let target = self.meaning(placed, pointer)?;
        match target {
            LoweredValue::Variable(to) => {
                let from = self.value(placed, value)?;
                self.assign(to, from, self.width_of(value));
            }
            LoweredValue::Element { first, offset, index, words } => {
                let from = self.value(placed, value)?;
                for word in 0..self.width_of(value) {
                    let (from, offset) = (from + word, offset + word);
                    self.program.ops.push(Op::Put { to: first, offset, index, from, words });
                }
            }
            LoweredValue::Whole { .. } | LoweredValue::Pointer { .. } => {
                let (reference, address) = self.address_of(target)?;
                let coherence = self.plain(placed, pointer, reference, memory.available, memory)?;
                let (scope, available, private) = coherence;
                let (class, from) = (self.class(reference), self.late(placed, value)?);
                let ty = self.types.get(&value).copied().unwrap_or(0);
                let store = MemoryOp { kind: MemoryOpKind::PlainStore, reference, class, ..NOTHING };
                for leaf in self.leaves_of(pointer, ty, from) {
                    let op = MemoryOp { bytes: leaf.bytes, scope, available, private, ..store };
                    let address = self.address_behind(address, leaf.offset);
                    self.issue(op, address, leaf.register, NONE, NONE)?;
                }
            }
            _ => return Err(placed.refuse(" to this variable")),
        }
        Ok(())
    }

    pub(super) fn atomic(
        &mut self,
        placed: &LocatedInstruction,
        access: AtomicAccess,
    ) -> Result<(), LoadError> {
        let LoweredValue::Pointer { reference, address } = self.meaning(placed, access.pointer)? else {
            return Err(placed.refuse(" on this pointer"));
        };
        let (class, scope) = (self.class(reference), self.scope(placed, access.scope)?);
        let semantics = self.semantics(placed, access.semantics)?;
        let number = match access.kind {
            AtomicKind::Store { value } => value,
            _ => placed.result_id()?,
        };
        let bytes = self.bytes_of(placed, number)?;
        if bytes < 4 {
            return Err(placed.refuse(&format!(" of {bytes} bytes")));
        }
        let op = MemoryOp { reference, class, scope, bytes, ..NOTHING };
        // The semantics of one half must not order the other half.
        let bare = Semantics { classes: semantics.classes, ..Semantics::RELAXED };
        let change = match access.kind {
            AtomicKind::Load => {
                let to = self.late(placed, placed.result_id()?)?;
                let load = MemoryOp { kind: MemoryOpKind::AtomicLoad, ..op };
                let own = if semantics.make_visible { bare } else { semantics };
                let memory = self.issue(with(load, own), address, NONE, NONE, to)?;
                self.program.reads.push((address, memory));
                if semantics.make_visible {
                    let acquire = MemoryOp { kind: MemoryOpKind::AcquirePart, ..op };
                    self.issue_fence(with(acquire, semantics), NONE)?;
                }
                return Ok(());
            }
            AtomicKind::Store { value } => {
                let value = self.late(placed, value)?;
                let store = MemoryOp { kind: MemoryOpKind::AtomicStore, ..op };
                if semantics.make_available {
                    let release = MemoryOp { kind: MemoryOpKind::ReleasePart, ..op };
                    self.issue_fence(with(release, semantics), NONE)?;
                }
                let own = if semantics.make_available { bare } else { semantics };
                self.issue(with(store, own), address, value, NONE, NONE)?;
                return Ok(());
            }
            AtomicKind::Exchange { .. } => Rmw::Exchange,
            AtomicKind::CompareExchange { .. } => Rmw::CompareExchange,
            AtomicKind::Update { function, .. } => Rmw::Update(function),
        };
        let to = self.late(placed, placed.result_id()?)?;
        let compare = match access.kind {
            AtomicKind::CompareExchange { comparator, .. } => self.value(placed, comparator)?,
            _ => NONE,
        };
        let value = match access.kind.value() {
            Some(value) => self.late(placed, value)?,
            None => {
                let [low, high] = [self.register(), self.register()];
                self.program.constants.extend([(low, 1), (high, 0)]);
                low
            }
        };
        let rmw = MemoryOp { kind: MemoryOpKind::Rmw(change), ..op };
        self.issue(with(rmw, semantics), address, value, compare, to)?;
        Ok(())
    }

    /// Issues an operation without an address. The lanes of `meeting` execute it together.
    fn issue_fence(&mut self, op: MemoryOp, meeting: Register) -> Result<(), LoadError> {
        self.issue(op, NONE, NONE, meeting, NONE).map(|_| ())
    }

    pub(super) fn issue(
        &mut self,
        op: MemoryOp,
        address: Register,
        value: Register,
        compare: Register,
        to: Register,
    ) -> Result<u16, LoadError> {
        let memory = self.program.memory.len();
        // The wait conditions form a table over all pairs of operations.
        if memory >= MOST_ACCESSES {
            return Err(LoadError::Lacks(format!(
                "more than {MOST_ACCESSES} accesses of numbers in a kernel"
            )));
        }
        let memory = memory as u16;
        self.program.memory.push(op);
        self.program.ops.push(Op::Memory(Access { memory, address, value, compare, to }));
        // The register gets a new value, so later uses have to wait again.
        self.awaited.retain(|register| *register != to);
        Ok(memory)
    }

    fn class(&self, reference: u16) -> StorageClass {
        let known = self.program.references.get(usize::from(reference));
        known.map_or(StorageClass::Buffer, |reference| reference.class)
    }

    /// Returns the scope, availability or visibility, and privacy of a non-atomic access; `made` is the scope of its
    /// availability or visibility operation.
    fn plain(
        &self,
        placed: &LocatedInstruction,
        pointer: u32,
        reference: u16,
        made: Option<u32>,
        memory: MemoryOperands,
    ) -> Result<(u8, bool, bool), LoadError> {
        let scope = made.map(|scope| self.scope(placed, scope)).transpose()?;
        let coherent = self.into_coherent.contains(&pointer)
            || matches!(self.meaning(placed, pointer)?, LoweredValue::Whole { ty, .. } if self.holds_coherent(ty));
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
        let coherent = coherent || self.coherent.get(usize::from(reference)) == Some(&true);
        if !self.module.source().vulkan && coherent {
            let level =
                if self.class(reference) == StorageClass::Workgroup { WORKGROUP } else { QUEUE_FAMILY };
            return (level, true, false);
        }
        (scope.unwrap_or(INVOCATION), scope.is_some(), !non_private)
    }

    /// Returns the cache level of a scope operand.
    pub(super) fn scope(&self, placed: &LocatedInstruction, scope: u32) -> Result<u8, LoadError> {
        let vulkan = self.module.source().vulkan;
        Ok(match scope_from_word(self.constant(placed, scope)?.into(), vulkan)? {
            // Modules of the GLSL450 memory model do not distinguish devices from queue families.
            Scope::CrossDevice if !vulkan => QUEUE_FAMILY,
            scope => level_of(scope),
        })
    }

    fn semantics(&self, placed: &LocatedInstruction, semantics: u32) -> Result<Semantics, LoadError> {
        Ok(semantics_from_word(self.constant(placed, semantics)?.into())?)
    }
}

fn with(op: MemoryOp, semantics: Semantics) -> MemoryOp {
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
fn releasing(op: MemoryOp) -> MemoryOp {
    MemoryOp { acquire: false, make_visible: false, ..op }
}

/// Returns the half of the semantics that orders later operations.
fn acquiring(op: MemoryOp) -> MemoryOp {
    MemoryOp { release: false, make_available: false, ..op }
}

/// Returns a built-in for each of the three axes.
fn along(what: fn(u8) -> BuiltIn) -> Option<[BuiltIn; 4]> {
    Some([what(0), what(1), what(2), BuiltIn::Zero])
}

/// Returns the built-in of each component of an input.
fn components(built_in: SpirvBuiltIn) -> Option<[BuiltIn; 4]> {
    let first = match built_in {
        SpirvBuiltIn::WorkgroupId => return along(BuiltIn::Workgroup),
        SpirvBuiltIn::NumWorkgroups => return along(BuiltIn::Workgroups),
        SpirvBuiltIn::LocalInvocationId => return along(BuiltIn::Local),
        SpirvBuiltIn::GlobalInvocationId => return along(BuiltIn::Global),
        SpirvBuiltIn::WorkgroupSize => return along(BuiltIn::Size),
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
