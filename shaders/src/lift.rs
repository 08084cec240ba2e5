//! Reads a kernel back to the memory events of its threads, to prove that nothing of a test was lost on the way.
//!
//! The reader shares no code with the emitter: it starts from the words. It knows one convention, that a `switch` tells the
//! threads apart and that its literals are their numbers. [`verify`] compares what it finds with the test.

mod verify;

pub use verify::verify;

use std::collections::{BTreeMap, BTreeSet};

use litmus::{Access, Scope, Semantics, ThreadId};
use rspirv::dr::{Block, Instruction, Operand};
use rspirv::spirv::{MemoryAccess, Op, Word};

use crate::ModuleError;
use crate::kernel::Binding;
use crate::reader::{Reader, ids, scope, semantics};

/// An access to the memory of a test, or a barrier.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// A load, plain or atomic.
    Load {
        /// Descriptor binding that it goes through.
        binding: u32,
        /// Private or not, coherent or atomic, and with what scope and semantics.
        access: Access,
    },
    /// A store, plain or atomic.
    Store {
        /// Descriptor binding that it goes through.
        binding: u32,
        /// Private or not, coherent or atomic, and with what scope and semantics.
        access: Access,
        /// What is written.
        value: Written,
    },
    /// An atomic read-modify-write.
    Rmw {
        /// Descriptor binding that it goes through.
        binding: u32,
        /// The instruction, such as `AtomicIAdd`.
        instruction: Op,
        /// Memory scope.
        scope: Scope,
        /// Memory semantics; those of success for a compare-exchange.
        semantics: Semantics,
        /// Semantics of failure of a compare-exchange.
        unequal: Option<Semantics>,
        /// Value operands in the order of SPIR-V: the value, then what it is compared with.
        values: Vec<Written>,
    },
    /// A memory barrier.
    Fence {
        /// Memory scope.
        scope: Scope,
        /// Memory semantics.
        semantics: Semantics,
    },
    /// A control barrier.
    ControlBarrier {
        /// Execution scope.
        execution: Scope,
        /// Memory scope.
        memory: Scope,
        /// Memory semantics; relaxed for a barrier that is no memory barrier.
        semantics: Semantics,
    },
    /// A plain store of a result word.
    Report,
}

/// A value operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Written {
    /// A constant of the module.
    Constant(u32),
    /// Something computed.
    Computed,
}

/// Why a module cannot be read, or differs from its test.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LiftError {
    /// Not a module.
    #[error(transparent)]
    Module(#[from] ModuleError),
    /// The module has no function, or more than one.
    #[error("{0} functions instead of one")]
    Functions(usize),
    /// An operand is missing or is not of the kind that the instruction has.
    #[error("malformed {0:?}")]
    Malformed(Op),
    /// An id that is not a constant where one must stand.
    #[error("%{0} is not a constant")]
    NotConstant(Word),
    /// A scope that no litmus test has.
    #[error("scope {0}")]
    Scope(u32),
    /// Memory semantics that no litmus test has.
    #[error("memory semantics {0:#x}")]
    Semantics(u32),
    /// An access to a location by an instruction that belongs to no thread.
    #[error("{0:?} on a location outside all threads")]
    Stray(Op),
    /// The events of a thread are not those of the test.
    #[error("thread {thread:?}, event {position}: the test has {expected}, the kernel {found}")]
    Differs {
        /// The thread.
        thread: ThreadId,
        /// Index of the event in the kernel.
        position: usize,
        /// What the test has there.
        expected: String,
        /// What the kernel has there.
        found: String,
    },
}

/// The events of each thread of a kernel, in the order of the program, whatever guards them.
///
/// `bindings` says what stands behind each binding; meetings of workgroups are not among the events.
///
/// # Errors
/// [`LiftError`] where the module is not of the form that kernels have.
pub fn lift(words: &[u32], bindings: &[Binding]) -> Result<BTreeMap<ThreadId, Vec<Event>>, LiftError> {
    let reader = Reader::new(words)?;
    let [function] = &reader.module.functions[..] else {
        return Err(LiftError::Functions(reader.module.functions.len()));
    };
    let owners = owners(&function.blocks)?;
    let threads: BTreeSet<ThreadId> = owners.values().copied().collect();
    let mut events: BTreeMap<ThreadId, Vec<Event>> =
        threads.iter().map(|thread| (*thread, Vec::new())).collect();
    for block in &function.blocks {
        let owner = block.label_id().and_then(|label| owners.get(&label)).copied();
        for instruction in &block.instructions {
            let Some(event) = event(&reader, bindings, instruction)? else { continue };
            match (owner, &event) {
                (Some(thread), _) => events.entry(thread).or_default().push(event),
                // All invocations meet.
                (None, Event::ControlBarrier { .. }) => {
                    events.values_mut().for_each(|events| events.push(event.clone()));
                }
                (None, _) => return Err(LiftError::Stray(instruction.class.opcode)),
            }
        }
    }
    Ok(events)
}

/// The thread that each block belongs to: the case of a switch from which it is reached before the switch's end.
fn owners(blocks: &[Block]) -> Result<BTreeMap<Word, ThreadId>, LiftError> {
    let successors: BTreeMap<Word, Vec<Word>> =
        blocks.iter().filter_map(|block| Some((block.label_id()?, targets(block)))).collect();
    let mut owners = BTreeMap::new();
    for block in blocks {
        let [.., merge, switch] = &block.instructions[..] else { continue };
        if switch.class.opcode != Op::Switch {
            continue;
        }
        let end = *ids(merge).first().ok_or(LiftError::Malformed(merge.class.opcode))?;
        for case in switch.operands.get(2..).unwrap_or_default().chunks(2) {
            let [Operand::LiteralBit32(thread), Operand::IdRef(target)] = case else {
                return Err(LiftError::Malformed(Op::Switch));
            };
            let mut open = vec![*target];
            while let Some(label) = open.pop() {
                if label != end && owners.insert(label, ThreadId(*thread as u16)).is_none() {
                    open.extend(successors.get(&label).into_iter().flatten());
                }
            }
        }
    }
    Ok(owners)
}

fn targets(block: &Block) -> Vec<Word> {
    let Some(terminator) = block.instructions.last() else { return Vec::new() };
    let ids = ids(terminator);
    match terminator.class.opcode {
        Op::Branch => ids,
        Op::BranchConditional | Op::Switch => ids.into_iter().skip(1).collect(),
        _ => Vec::new(),
    }
}

/// The event that an instruction makes, if any.
fn event(
    reader: &Reader,
    bindings: &[Binding],
    instruction: &Instruction,
) -> Result<Option<Event>, LiftError> {
    let op = instruction.class.opcode;
    let ids = ids(instruction);
    let id = |index: usize| ids.get(index).copied().ok_or(LiftError::Malformed(op));
    let scope_at = |index: usize| read_scope(reader, id(index)?);
    let semantics_at = |index: usize| read_semantics(reader, id(index)?);
    let value_at = |index: usize| -> Result<Written, LiftError> {
        Ok(reader.constant(id(index)?).map_or(Written::Computed, Written::Constant))
    };
    match op {
        Op::MemoryBarrier => {
            return Ok(Some(Event::Fence { scope: scope_at(0)?, semantics: semantics_at(1)? }));
        }
        Op::ControlBarrier => {
            return Ok(Some(Event::ControlBarrier {
                execution: scope_at(0)?,
                memory: scope_at(1)?,
                semantics: semantics_at(2)?,
            }));
        }
        _ if is_access(op) => {}
        _ => return Ok(None),
    }
    let Some(binding) = reader.binding(id(0)?) else { return Ok(None) };
    match bindings.get(binding as usize) {
        Some(Binding::Locations) => {}
        Some(Binding::Results) if op == Op::Store && instruction.operands.len() == 2 => {
            return Ok(Some(Event::Report));
        }
        Some(Binding::Rendezvous) => return Ok(None),
        _ => return Err(LiftError::Malformed(op)),
    }
    Ok(Some(match op {
        Op::Load => {
            let access = plain(reader, instruction, 1, MemoryAccess::MAKE_POINTER_VISIBLE)?;
            Event::Load { binding, access }
        }
        Op::Store => {
            let access = plain(reader, instruction, 2, MemoryAccess::MAKE_POINTER_AVAILABLE)?;
            Event::Store { binding, access, value: value_at(1)? }
        }
        Op::AtomicLoad => Event::Load {
            binding,
            access: Access::Atomic { scope: scope_at(1)?, semantics: semantics_at(2)? },
        },
        Op::AtomicStore => Event::Store {
            binding,
            access: Access::Atomic { scope: scope_at(1)?, semantics: semantics_at(2)? },
            value: value_at(3)?,
        },
        Op::AtomicCompareExchange => Event::Rmw {
            binding,
            instruction: op,
            scope: scope_at(1)?,
            semantics: semantics_at(2)?,
            unequal: Some(semantics_at(3)?),
            values: vec![value_at(4)?, value_at(5)?],
        },
        _ => Event::Rmw {
            binding,
            instruction: op,
            scope: scope_at(1)?,
            semantics: semantics_at(2)?,
            unequal: None,
            values: vec![value_at(3)?],
        },
    }))
}

fn is_access(op: Op) -> bool {
    matches!(op, Op::Load | Op::Store | Op::AtomicLoad | Op::AtomicStore) || is_rmw(op)
}

/// Whether the instruction is an atomic read-modify-write with a value.
pub(crate) fn is_rmw(op: Op) -> bool {
    matches!(
        op,
        Op::AtomicExchange
            | Op::AtomicCompareExchange
            | Op::AtomicIAdd
            | Op::AtomicISub
            | Op::AtomicAnd
            | Op::AtomicOr
            | Op::AtomicXor
            | Op::AtomicSMin
            | Op::AtomicUMin
            | Op::AtomicSMax
            | Op::AtomicUMax
    )
}

fn read_scope(reader: &Reader, id: Word) -> Result<Scope, LiftError> {
    let word = reader.constant(id).ok_or(LiftError::NotConstant(id))?;
    scope(word).ok_or(LiftError::Scope(word))
}

fn read_semantics(reader: &Reader, id: Word) -> Result<Semantics, LiftError> {
    let word = reader.constant(id).ok_or(LiftError::NotConstant(id))?;
    semantics(word).ok_or(LiftError::Semantics(word))
}

/// How a plain access with its memory operands from position `from` on accesses memory.
fn plain(
    reader: &Reader,
    instruction: &Instruction,
    from: usize,
    coherent: MemoryAccess,
) -> Result<Access, LiftError> {
    match instruction.operands.get(from..).unwrap_or_default() {
        [] => Ok(Access::Private),
        [Operand::MemoryAccess(bits)] if *bits == MemoryAccess::NON_PRIVATE_POINTER => Ok(Access::NonPrivate),
        [Operand::MemoryAccess(bits), Operand::IdScope(id)]
            if *bits == coherent | MemoryAccess::NON_PRIVATE_POINTER =>
        {
            Ok(Access::Coherent { scope: read_scope(reader, *id)? })
        }
        _ => Err(LiftError::Malformed(instruction.class.opcode)),
    }
}
