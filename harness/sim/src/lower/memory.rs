//! Loads, stores, atomics and barriers: instructions with their scopes and semantics as memory operations.

use rspirv::dr::Operand;
use rspirv::spirv::{MemoryAccess, MemorySemantics, Op as SpirvOp, Scope};

use super::{Lowering, Meaning, components};
use crate::module::{LoadError, Placed, Type, malformed};
use crate::program::{
    Access, BuiltIn, DEVICE, INVOCATION, Kind, MemoryOp, NONE, Op, QUEUE_FAMILY, Register, Rmw, SUBGROUP,
    WORKGROUP,
};

/// Whether an instruction touches memory, or may.
pub(super) fn is_memory(op: SpirvOp) -> bool {
    loads(op)
        || matches!(
            op,
            SpirvOp::Store | SpirvOp::AtomicStore | SpirvOp::MemoryBarrier | SpirvOp::ControlBarrier
        )
}

/// Whether an instruction's result may come from memory.
pub(super) fn loads(op: SpirvOp) -> bool {
    matches!(op, SpirvOp::Load | SpirvOp::AtomicLoad) || rmw(op).is_some()
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
        _ => return None,
    })
}

/// Memory semantics as far as the machine knows them.
#[derive(Clone, Copy, Default)]
struct Semantics {
    acquire: bool,
    release: bool,
    make_available: bool,
    make_visible: bool,
    mask: u8,
}

const NOTHING: MemoryOp = MemoryOp {
    kind: Kind::Fence,
    reference: 0,
    class: 0,
    scope: INVOCATION,
    execution: INVOCATION,
    mask: 0,
    acquire: false,
    release: false,
    make_available: false,
    make_visible: false,
    available: false,
    visible: false,
    private: false,
};

impl Lowering<'_> {
    /// A load, store, atomic or barrier.
    pub(super) fn memory(&mut self, placed: &Placed) -> Result<(), LoadError> {
        match placed.op() {
            SpirvOp::Load => self.load(placed),
            SpirvOp::Store => self.store(placed),
            SpirvOp::MemoryBarrier => {
                let op = MemoryOp { kind: Kind::Fence, scope: self.scope(placed, 0)?, ..NOTHING };
                let semantics = self.semantics(placed, 1)?;
                // Its halves order different things: an older store may sink below a younger load.
                if semantics.release {
                    let half = Semantics { acquire: false, make_visible: false, ..semantics };
                    self.issue(with(op, half), NONE, NONE, NONE, NONE);
                }
                if semantics.acquire {
                    let half = Semantics { release: false, make_available: false, ..semantics };
                    self.issue(with(op, half), NONE, NONE, NONE, NONE);
                }
                Ok(())
            }
            SpirvOp::ControlBarrier => {
                let execution = self.scope(placed, 0)?;
                if !matches!(execution, SUBGROUP | WORKGROUP) {
                    return Err(LoadError::Lacks("OpControlBarrier of this execution scope".into()));
                }
                let op = MemoryOp { execution, scope: self.scope(placed, 1)?, ..NOTHING };
                let semantics = self.semantics(placed, 2)?;
                let arrive = Semantics { acquire: false, make_visible: false, ..semantics };
                let leave = Semantics { release: false, make_available: false, ..semantics };
                self.issue(with(MemoryOp { kind: Kind::Arrive, ..op }, arrive), NONE, NONE, NONE, NONE);
                self.issue(with(MemoryOp { kind: Kind::Leave, ..op }, leave), NONE, NONE, NONE, NONE);
                Ok(())
            }
            _ => self.atomic(placed),
        }
    }

    fn load(&mut self, placed: &Placed) -> Result<(), LoadError> {
        let ty = placed.result_type()?;
        let to = self.late(placed, placed.result()?)?;
        match self.meaning(placed, placed.id(0)?)? {
            Meaning::Variable(from) => {
                self.wait_for(from);
                self.program.ops.push(Op::Copy { to, from });
            }
            Meaning::Parameter(word) => self.program.ops.push(Op::Parameter { to, word }),
            Meaning::Input(built_in) => {
                let first = components(built_in)
                    .ok_or_else(|| LoadError::Lacks(format!("the built-in {built_in:?}")))?;
                let count = match self.module.types.get(&ty) {
                    Some(Type::Vector { count, .. }) => *count,
                    _ => 1,
                };
                for component in 0..count {
                    let built_in = if component == 0 { first } else { BuiltIn::Zero };
                    self.program.ops.push(Op::BuiltIn { to: to + component, built_in });
                }
            }
            Meaning::Pointer { reference, address } => {
                let (scope, visible, private) = self.plain(placed, 1, MemoryAccess::MAKE_POINTER_VISIBLE)?;
                let class = self.class(reference);
                let op =
                    MemoryOp { kind: Kind::PlainLoad, reference, class, scope, visible, private, ..NOTHING };
                let memory = self.issue(op, address, NONE, NONE, to);
                self.program.plain_reads.push((address, memory));
            }
            _ => return Err(LoadError::Lacks("OpLoad of a whole variable".into())),
        }
        Ok(())
    }

    fn store(&mut self, placed: &Placed) -> Result<(), LoadError> {
        let value = placed.id(1)?;
        match self.meaning(placed, placed.id(0)?)? {
            Meaning::Variable(to) => {
                let from = self.value(placed, value)?;
                self.program.ops.push(Op::Assign { to, from });
            }
            Meaning::Pointer { reference, address } => {
                let (scope, available, private) =
                    self.plain(placed, 2, MemoryAccess::MAKE_POINTER_AVAILABLE)?;
                let class = self.class(reference);
                let value = self.late(placed, value)?;
                let op = MemoryOp {
                    kind: Kind::PlainStore,
                    reference,
                    class,
                    scope,
                    available,
                    private,
                    ..NOTHING
                };
                self.issue(op, address, value, NONE, NONE);
            }
            _ => return Err(LoadError::Lacks("OpStore to a whole variable".into())),
        }
        Ok(())
    }

    fn atomic(&mut self, placed: &Placed) -> Result<(), LoadError> {
        let Meaning::Pointer { reference, address } = self.meaning(placed, placed.id(0)?)? else {
            return Err(LoadError::Lacks(format!("Op{:?} on this pointer", placed.op())));
        };
        let (class, scope) = (self.class(reference), self.scope(placed, 1)?);
        let semantics = self.semantics(placed, 2)?;
        let op = MemoryOp { reference, class, scope, ..NOTHING };
        // What one half of an operation orders must not bind the other.
        let bare = Semantics { mask: semantics.mask, ..Semantics::default() };
        match placed.op() {
            SpirvOp::AtomicLoad => {
                let to = self.late(placed, placed.result()?)?;
                let load = MemoryOp { kind: Kind::AtomicLoad, ..op };
                if semantics.make_visible {
                    self.issue(with(load, bare), address, NONE, NONE, to);
                    self.issue(
                        with(MemoryOp { kind: Kind::AcquirePart, ..op }, semantics),
                        NONE,
                        NONE,
                        NONE,
                        NONE,
                    );
                } else {
                    self.issue(with(load, semantics), address, NONE, NONE, to);
                }
            }
            SpirvOp::AtomicStore => {
                let value = self.late(placed, placed.id(3)?)?;
                let store = MemoryOp { kind: Kind::AtomicStore, ..op };
                if semantics.make_available {
                    self.issue(
                        with(MemoryOp { kind: Kind::ReleasePart, ..op }, semantics),
                        NONE,
                        NONE,
                        NONE,
                        NONE,
                    );
                    self.issue(with(store, bare), address, value, NONE, NONE);
                } else {
                    self.issue(with(store, semantics), address, value, NONE, NONE);
                }
            }
            other => {
                let Some(change) = rmw(other) else {
                    return Err(LoadError::Lacks(format!("Op{other:?}")));
                };
                let to = self.late(placed, placed.result()?)?;
                let (value, compare) = if change == Rmw::CompareExchange {
                    let compare = self.value(placed, placed.id(5)?)?;
                    (self.late(placed, placed.id(4)?)?, compare)
                } else {
                    (self.late(placed, placed.id(3)?)?, NONE)
                };
                self.issue(
                    with(MemoryOp { kind: Kind::Rmw(change), ..op }, semantics),
                    address,
                    value,
                    compare,
                    to,
                );
            }
        }
        Ok(())
    }

    fn issue(
        &mut self,
        op: MemoryOp,
        address: Register,
        value: Register,
        compare: Register,
        to: Register,
    ) -> u16 {
        let memory = self.program.memory.len() as u16;
        self.program.memory.push(op);
        self.program.ops.push(Op::Memory(Access { memory, address, value, compare, to }));
        // A new value: who used the one before has to wait again.
        self.awaited.retain(|register| *register != to);
        memory
    }

    fn class(&self, reference: u16) -> u8 {
        self.program.references.get(usize::from(reference)).map_or(0, |reference| reference.class)
    }

    /// Scope, whether the access is available or visible there, whether it is private.
    fn plain(
        &self,
        placed: &Placed,
        at: usize,
        coherent: MemoryAccess,
    ) -> Result<(u8, bool, bool), LoadError> {
        let Some(Operand::MemoryAccess(access)) = placed.instruction.operands.get(at) else {
            return Ok((INVOCATION, false, true));
        };
        let private = !access.contains(MemoryAccess::NON_PRIVATE_POINTER);
        if !access.contains(coherent) {
            return Ok((INVOCATION, false, private));
        }
        let skipped = usize::from(access.contains(MemoryAccess::ALIGNED));
        Ok((self.scope(placed, at + 1 + skipped)?, true, private))
    }

    /// The level of a scope operand.
    fn scope(&self, placed: &Placed, at: usize) -> Result<u8, LoadError> {
        let word = self.constant(placed, placed.id(at)?)?;
        match Scope::from_u32(word) {
            Some(Scope::CrossDevice | Scope::Device) => Ok(DEVICE),
            Some(Scope::QueueFamily) => Ok(QUEUE_FAMILY),
            Some(Scope::Workgroup) => Ok(WORKGROUP),
            Some(Scope::Subgroup) => Ok(SUBGROUP),
            Some(Scope::Invocation) => Ok(INVOCATION),
            _ => Err(malformed(placed.word, format!("no scope {word}"))),
        }
    }

    fn semantics(&self, placed: &Placed, at: usize) -> Result<Semantics, LoadError> {
        let word = self.constant(placed, placed.id(at)?)?;
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
