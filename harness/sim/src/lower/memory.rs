//! Lowers loads, stores, atomics and barriers to memory operations with scopes and semantics.

use rspirv::spirv::{BuiltIn as SpirvBuiltIn, MemoryAccess, MemorySemantics, Op as SpirvOp, Scope};
use spirv_reader::SpirvType;

use super::{LoweredValue, Lowering};
use crate::fault::Fault;
use crate::instruction::{LoadError, LocatedInstruction, malformed_module};
use crate::program::{
    Access, Binary, BuiltIn, DEVICE, IMAGE, INVOCATION, LaneMask, MemoryOp, MemoryOpKind, NONE, Op,
    QUEUE_FAMILY, Register, Rmw, SUBGROUP, WORKGROUP, WORKGROUP_MEMORY,
};

/// The maximal number of memory operations in a kernel.
const MOST_ACCESSES: usize = 4096;

/// Returns true if an instruction accesses memory, or may.
pub(super) fn is_memory(op: SpirvOp) -> bool {
    loads(op) && op != SpirvOp::ImageRead
        || matches!(
            op,
            SpirvOp::Store
                | SpirvOp::AtomicStore
                | SpirvOp::MemoryBarrier
                | SpirvOp::ControlBarrier
                | SpirvOp::ControlBarrierArriveINTEL
                | SpirvOp::ControlBarrierWaitINTEL
                | SpirvOp::BeginInvocationInterlockEXT
                | SpirvOp::EndInvocationInterlockEXT
        )
}

/// Returns true if an instruction's result may come from memory.
pub(super) fn loads(op: SpirvOp) -> bool {
    matches!(op, SpirvOp::Load | SpirvOp::AtomicLoad | SpirvOp::ImageRead) || rmw(op).is_some()
}

fn rmw(op: SpirvOp) -> Option<Rmw> {
    Some(match op {
        SpirvOp::AtomicExchange => Rmw::Exchange,
        SpirvOp::AtomicCompareExchange => Rmw::CompareExchange,
        SpirvOp::AtomicIAdd => Rmw::Add,
        SpirvOp::AtomicISub => Rmw::Subtract,
        SpirvOp::AtomicAnd => Rmw::And,
        SpirvOp::AtomicOr => Rmw::Or,
        SpirvOp::AtomicXor => Rmw::Xor,
        SpirvOp::AtomicSMin => Rmw::SignedMin,
        SpirvOp::AtomicUMin => Rmw::Min,
        SpirvOp::AtomicSMax => Rmw::SignedMax,
        SpirvOp::AtomicUMax => Rmw::Max,
        SpirvOp::AtomicFAddEXT => Rmw::FloatAdd,
        SpirvOp::AtomicFMinEXT => Rmw::FloatMin,
        SpirvOp::AtomicFMaxEXT => Rmw::FloatMax,
        _ => return None,
    })
}

/// The memory semantics that the machine implements.
#[derive(Clone, Copy, Default)]
struct Semantics {
    acquire: bool,
    release: bool,
    make_available: bool,
    make_visible: bool,
    mask: u8,
}

pub(super) const NOTHING: MemoryOp = MemoryOp {
    kind: MemoryOpKind::Fence,
    reference: 0,
    class: 0,
    bytes: 4,
    scope: INVOCATION,
    execution: INVOCATION,
    split: false,
    among_aliases: false,
    tangled: false,
    mask: 0,
    acquire: false,
    release: false,
    make_available: false,
    make_visible: false,
    available: false,
    visible: false,
    private: false,
    read_only: false,
    reused: false,
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
    /// Completes the halves of split barriers after the kernel is lowered, and removes what a fault drops.
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

    /// Removes what a fault drops at the ends of interlocked sections.
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

    /// Lowers a load, store, atomic or barrier.
    pub(super) fn memory(&mut self, placed: &LocatedInstruction) -> Result<(), LoadError> {
        match placed.op {
            SpirvOp::Load => self.load(placed),
            SpirvOp::Store => self.store(placed),
            SpirvOp::MemoryBarrier => {
                let op = MemoryOp { kind: MemoryOpKind::Fence, scope: self.scope(placed, 0)?, ..NOTHING };
                let semantics = self.semantics(placed, 1)?;
                // The halves order different operations: an older store may sink below a younger load.
                if semantics.release {
                    let half = Semantics { acquire: false, make_visible: false, ..semantics };
                    self.issue(with(op, half), NONE, NONE, NONE, NONE)?;
                }
                if semantics.acquire {
                    let half = Semantics { release: false, make_available: false, ..semantics };
                    self.issue(with(op, half), NONE, NONE, NONE, NONE)?;
                }
                Ok(())
            }
            op @ (SpirvOp::ControlBarrier
            | SpirvOp::ControlBarrierArriveINTEL
            | SpirvOp::ControlBarrierWaitINTEL) => {
                let execution = self.scope(placed, 0)?;
                if !matches!(execution, SUBGROUP | WORKGROUP) {
                    return Err(LoadError::Lacks(format!("Op{op:?} of this execution scope")));
                }
                let split = op != SpirvOp::ControlBarrier;
                let semantics = self.semantics(placed, 2)?;
                if split {
                    let kind = if op == SpirvOp::ControlBarrierArriveINTEL {
                        MemoryOpKind::Arrive
                    } else {
                        MemoryOpKind::Leave
                    };
                    let half = MemoryOp { kind, execution, split, scope: self.scope(placed, 1)?, ..NOTHING };
                    self.issue(with(half, semantics), NONE, NONE, NONE, NONE)?;
                    return Ok(());
                }
                let nested = self.program.nested.get(self.block as usize).copied().unwrap_or(false);
                let tangled = nested && execution == SUBGROUP;
                let meeting = if tangled { self.comes_together() } else { NONE };
                let op = MemoryOp { execution, tangled, scope: self.scope(placed, 1)?, ..NOTHING };
                let arrive = Semantics { acquire: false, make_visible: false, ..semantics };
                let leave = Semantics { release: false, make_available: false, ..semantics };
                self.issue(
                    with(MemoryOp { kind: MemoryOpKind::Arrive, ..op }, arrive),
                    NONE,
                    NONE,
                    meeting,
                    NONE,
                )?;
                self.issue(
                    with(MemoryOp { kind: MemoryOpKind::Leave, ..op }, leave),
                    NONE,
                    NONE,
                    meeting,
                    NONE,
                )?;
                Ok(())
            }
            op @ (SpirvOp::BeginInvocationInterlockEXT | SpirvOp::EndInvocationInterlockEXT) => {
                let ordered = self.module.sections;
                let ordered = ordered.ok_or_else(|| {
                    malformed_module(placed.word, "an interlock section without an execution mode")
                })?;
                let begins = op == SpirvOp::BeginInvocationInterlockEXT;
                let kind =
                    if begins { MemoryOpKind::SectionBegin { ordered } } else { MemoryOpKind::SectionEnd };
                // The scope covers all fragments of the draw, on any subgroup or workgroup.
                let end = MemoryOp { kind, scope: QUEUE_FAMILY, mask: 1 | 1 << IMAGE, ..NOTHING };
                self.issue(MemoryOp { acquire: begins, release: !begins, ..end }, NONE, NONE, NONE, NONE)?;
                Ok(())
            }
            _ => self.atomic(placed),
        }
    }

    fn load(&mut self, placed: &LocatedInstruction) -> Result<(), LoadError> {
        let (ty, result) = (placed.result_type_id()?, placed.result_id()?);
        let source = self.meaning(placed, placed.operand(0)?)?;
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
            LoweredValue::Parameters => self.load_parameters(placed, (0, NONE), ty, to)?,
            LoweredValue::Parameter { bytes, index } => {
                self.load_parameters(placed, (bytes, index), ty, to)?;
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
            LoweredValue::Whole { reference, ty: whole } => {
                let address = self.whole_address(reference, whole);
                self.load_from(placed, reference, address, (ty, to))?;
            }
            LoweredValue::Pointer { reference, address } => {
                self.load_from(placed, reference, address, (ty, to))?;
            }
            _ => return Err(LoadError::Lacks("OpLoad of this variable".into())),
        }
        Ok(())
    }

    /// Emits the unordered loads of the numbers of a value.
    fn load_from(
        &mut self,
        placed: &LocatedInstruction,
        reference: u16,
        address: Register,
        (ty, to): (u32, Register),
    ) -> Result<(), LoadError> {
        let (scope, visible, private) =
            self.plain(placed, 1, reference, MemoryAccess::MAKE_POINTER_VISIBLE)?;
        let class = self.class(reference);
        for leaf in self.leaves_at(ty, self.strided(placed.operand(0)?), to) {
            let op = MemoryOp {
                kind: MemoryOpKind::PlainLoad,
                reference,
                class,
                bytes: leaf.bytes,
                scope,
                visible,
                private,
                ..NOTHING
            };
            let address = self.address_behind(address, leaf.offset);
            let memory = self.issue(op, address, NONE, NONE, leaf.register)?;
            self.program.reads.push((address, memory));
        }
        Ok(())
    }

    /// Emits loads of whole and partial push constant words.
    fn load_parameters(
        &mut self,
        placed: &LocatedInstruction,
        (bytes, index): (u32, Register),
        ty: u32,
        to: Register,
    ) -> Result<(), LoadError> {
        for leaf in self.leaves_at(ty, self.strided(placed.operand(0)?), to) {
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
            _ => Err(LoadError::Lacks(format!("Op{:?} of this type", placed.op))),
        }
    }

    fn store(&mut self, placed: &LocatedInstruction) -> Result<(), LoadError> {
        let id = placed.operand(1)?;
        match self.meaning(placed, placed.operand(0)?)? {
            LoweredValue::Variable(to) => {
                let from = self.value(placed, id)?;
                self.assign(to, from, self.width_of(id));
            }
            LoweredValue::Element { first, offset, index, words } => {
                let from = self.value(placed, id)?;
                for word in 0..self.width_of(id) {
                    let (from, offset) = (from + word, offset + word);
                    self.program.ops.push(Op::Put { to: first, offset, index, from, words });
                }
            }
            LoweredValue::Whole { reference, ty } => {
                let address = self.whole_address(reference, ty);
                self.store_to(placed, reference, address, id)?;
            }
            LoweredValue::Pointer { reference, address } => self.store_to(placed, reference, address, id)?,
            _ => return Err(LoadError::Lacks("OpStore to this variable".into())),
        }
        Ok(())
    }

    /// Emits the stores of the numbers of a value.
    fn store_to(
        &mut self,
        placed: &LocatedInstruction,
        reference: u16,
        address: Register,
        id: u32,
    ) -> Result<(), LoadError> {
        let (scope, available, private) =
            self.plain(placed, 2, reference, MemoryAccess::MAKE_POINTER_AVAILABLE)?;
        let (class, value) = (self.class(reference), self.late(placed, id)?);
        let ty = self.types.get(&id).copied().unwrap_or(0);
        for leaf in self.leaves_at(ty, self.strided(placed.operand(0)?), value) {
            let op = MemoryOp {
                kind: MemoryOpKind::PlainStore,
                reference,
                class,
                bytes: leaf.bytes,
                scope,
                available,
                private,
                ..NOTHING
            };
            let address = self.address_behind(address, leaf.offset);
            self.issue(op, address, leaf.register, NONE, NONE)?;
        }
        Ok(())
    }

    fn atomic(&mut self, placed: &LocatedInstruction) -> Result<(), LoadError> {
        let LoweredValue::Pointer { reference, address } = self.meaning(placed, placed.operand(0)?)? else {
            return Err(LoadError::Lacks(format!("Op{:?} on this pointer", placed.op)));
        };
        let (class, scope) = (self.class(reference), self.scope(placed, 1)?);
        let semantics = self.semantics(placed, 2)?;
        let number =
            if placed.op == SpirvOp::AtomicStore { placed.operand(3)? } else { placed.result_id()? };
        let bytes = self.bytes_of(placed, number)?;
        if bytes < 4 {
            return Err(LoadError::Lacks(format!("Op{:?} of {bytes} bytes", placed.op)));
        }
        let op = MemoryOp { reference, class, scope, bytes, ..NOTHING };
        // The semantics of one half must not order the other half.
        let bare = Semantics { mask: semantics.mask, ..Semantics::default() };
        match placed.op {
            SpirvOp::AtomicLoad => {
                let to = self.late(placed, placed.result_id()?)?;
                let load = MemoryOp { kind: MemoryOpKind::AtomicLoad, ..op };
                if semantics.make_visible {
                    let memory = self.issue(with(load, bare), address, NONE, NONE, to)?;
                    self.program.reads.push((address, memory));
                    self.issue(
                        with(MemoryOp { kind: MemoryOpKind::AcquirePart, ..op }, semantics),
                        NONE,
                        NONE,
                        NONE,
                        NONE,
                    )?;
                } else {
                    let memory = self.issue(with(load, semantics), address, NONE, NONE, to)?;
                    self.program.reads.push((address, memory));
                }
            }
            SpirvOp::AtomicStore => {
                let value = self.late(placed, placed.operand(3)?)?;
                let store = MemoryOp { kind: MemoryOpKind::AtomicStore, ..op };
                if semantics.make_available {
                    self.issue(
                        with(MemoryOp { kind: MemoryOpKind::ReleasePart, ..op }, semantics),
                        NONE,
                        NONE,
                        NONE,
                        NONE,
                    )?;
                    self.issue(with(store, bare), address, value, NONE, NONE)?;
                } else {
                    self.issue(with(store, semantics), address, value, NONE, NONE)?;
                }
            }
            other => {
                let Some(change) = rmw(other) else {
                    return Err(LoadError::Lacks(format!("Op{other:?}")));
                };
                let to = self.late(placed, placed.result_id()?)?;
                let (value, compare) = if change == Rmw::CompareExchange {
                    let compare = self.value(placed, placed.operand(5)?)?;
                    (self.late(placed, placed.operand(4)?)?, compare)
                } else {
                    (self.late(placed, placed.operand(3)?)?, NONE)
                };
                self.issue(
                    with(MemoryOp { kind: MemoryOpKind::Rmw(change), ..op }, semantics),
                    address,
                    value,
                    compare,
                    to,
                )?;
            }
        }
        Ok(())
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

    fn class(&self, reference: u16) -> u8 {
        self.program.references.get(usize::from(reference)).map_or(0, |reference| reference.class)
    }

    /// Returns the scope, availability or visibility, and privacy of a non-atomic access.
    fn plain(
        &self,
        placed: &LocatedInstruction,
        at: usize,
        reference: u16,
        coherent: MemoryAccess,
    ) -> Result<(u8, bool, bool), LoadError> {
        let access = MemoryAccess::from_bits_retain(placed.operands.get(at).copied().unwrap_or(0));
        let skipped = usize::from(access.contains(MemoryAccess::ALIGNED));
        let scope =
            if access.contains(coherent) { Some(self.scope(placed, at + 1 + skipped)?) } else { None };
        let pointer = placed.operand(0)?;
        let coherent = self.into_coherent.contains(&pointer)
            || matches!(self.meaning(placed, pointer)?, LoweredValue::Whole { ty, .. } if self.holds_coherent(ty));
        let non_private = access.contains(MemoryAccess::NON_PRIVATE_POINTER);
        Ok(self.coherence(reference, coherent, scope, non_private))
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
            let level = if self.class(reference) == WORKGROUP_MEMORY { WORKGROUP } else { QUEUE_FAMILY };
            return (level, true, false);
        }
        (scope.unwrap_or(INVOCATION), scope.is_some(), !non_private)
    }

    /// Returns the cache level of a scope operand.
    pub(super) fn scope(&self, placed: &LocatedInstruction, at: usize) -> Result<u8, LoadError> {
        let word = self.constant(placed, placed.operand(at)?)?;
        match Scope::from_u32(word) {
            // Without the Vulkan memory model, Device denotes the queue family instance.
            Some(Scope::CrossDevice | Scope::Device) if !self.module.source().vulkan => Ok(QUEUE_FAMILY),
            Some(Scope::CrossDevice | Scope::Device) => Ok(DEVICE),
            Some(Scope::QueueFamily) => Ok(QUEUE_FAMILY),
            Some(Scope::Workgroup) => Ok(WORKGROUP),
            Some(Scope::Subgroup) => Ok(SUBGROUP),
            Some(Scope::Invocation) => Ok(INVOCATION),
            _ => Err(malformed_module(placed.word, format!("no scope {word}"))),
        }
    }

    fn semantics(&self, placed: &LocatedInstruction, at: usize) -> Result<Semantics, LoadError> {
        let word = self.constant(placed, placed.operand(at)?)?;
        let has = |bit: MemorySemantics| word & bit.bits() != 0;
        let both = has(MemorySemantics::ACQUIRE_RELEASE) || has(MemorySemantics::SEQUENTIALLY_CONSISTENT);
        let classes = [
            MemorySemantics::UNIFORM_MEMORY,
            MemorySemantics::WORKGROUP_MEMORY,
            MemorySemantics::IMAGE_MEMORY,
            MemorySemantics::OUTPUT_MEMORY,
        ];
        Ok(Semantics {
            acquire: both || has(MemorySemantics::ACQUIRE),
            release: both || has(MemorySemantics::RELEASE),
            make_available: has(MemorySemantics::MAKE_AVAILABLE),
            make_visible: has(MemorySemantics::MAKE_VISIBLE),
            mask: classes.iter().enumerate().map(|(class, bit)| u8::from(has(*bit)) << class).sum(),
        })
    }
}

fn with(op: MemoryOp, semantics: Semantics) -> MemoryOp {
    let Semantics { acquire, release, make_available, make_visible, mask } = semantics;
    MemoryOp { acquire, release, make_available, make_visible, mask, ..op }
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
