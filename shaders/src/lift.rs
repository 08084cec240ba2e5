//! Reads a kernel back to the memory events of its threads, to prove that nothing of a test was lost on the way.
//!
//! The reader shares no code with the emitter: it starts from the words. It knows one convention, that a `switch` tells the
//! threads apart and that its literals are their numbers. [`verify`] compares what it finds with the test.

mod subgroup;
mod verify;

pub use verify::verify;

use std::collections::{BTreeMap, BTreeSet};

use litmus::{Access, InterlockEnd, InterlockOrder, Scope, Semantics, SplitHalf, StorageClass, ThreadId};
use rspirv::dr::{Block, Instruction, Operand};
use rspirv::spirv::{Decoration, GroupOperation, ImageOperands, MemoryAccess, MemorySemantics, Op, Word};

use crate::ModuleError;
use crate::glsl;
use crate::kernel::Binding;
use crate::reader::{Pointee, Reader, ids, scope, semantics};

pub use crate::reader::{Memory, Site};

/// An access to the memory of a test, or a barrier.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KernelEvent {
    /// A load, plain or atomic.
    Load {
        /// Where.
        site: Site,
        /// Declared volatile.
        volatile: bool,
        /// Private or not, coherent or atomic, and with what scope and semantics.
        access: Access,
    },
    /// A store, plain or atomic.
    Store {
        /// Where.
        site: Site,
        /// Declared volatile.
        volatile: bool,
        /// Private or not, coherent or atomic, and with what scope and semantics.
        access: Access,
        /// What is written: a value, or one for each component of a vector.
        values: Vec<Written>,
    },
    /// An atomic read-modify-write.
    Rmw {
        /// Where.
        site: Site,
        /// Declared volatile.
        volatile: bool,
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
        /// How many branches of the thread's own decide whether it comes to it.
        branches: usize,
    },
    /// A half of a split barrier.
    SplitBarrier {
        /// Which half.
        half: SplitHalf,
        /// Execution scope.
        execution: Scope,
        /// Memory scope.
        memory: Scope,
        /// Memory semantics; relaxed for one that is no memory barrier.
        semantics: Semantics,
    },
    /// A subgroup operation, in the lanes that execute it.
    Subgroup {
        /// The instruction.
        instruction: Op,
        /// Which lanes a scan counts.
        span: Option<GroupOperation>,
        /// Its constant operands behind the value.
        numbers: Vec<u32>,
        /// How many branches of the thread's own decide whether it comes to it.
        branches: usize,
    },
    /// An end of the interlocked section.
    Interlock(InterlockEnd),
    /// A plain store of a result word.
    Report,
    /// A relaxed atomic access to scratch memory: it orders nothing and touches nothing of the test.
    Stress(Op),
}

impl KernelEvent {
    /// The same in a lane that comes to it by so many branches of its own.
    fn under(mut self, number: usize) -> KernelEvent {
        if let KernelEvent::Subgroup { branches, .. } | KernelEvent::ControlBarrier { branches, .. } =
            &mut self
        {
            *branches = number;
        }
        self
    }
}

/// A value operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Written {
    /// The bits of a constant of the module.
    Constant(u64),
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
    /// The variant cannot say the test.
    #[error("the variant cannot say it: {0}")]
    Unsayable(String),
    /// An access to scratch memory that is no relaxed atomic, or stands in the code of a thread.
    #[error("{0:?} on scratch memory")]
    Stress(Op),
    /// Stress is missing where it should be, or is no such stress.
    #[error("memory stress by {0:?}")]
    StressDiffers(Vec<Op>),
    /// What belongs to no thread is not what makes and reads workgroup memory.
    #[error("outside the threads: expected {expected}, the kernel has {found}")]
    Outside {
        /// What should be there.
        expected: String,
        /// What the kernel has there.
        found: String,
    },
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

/// What a kernel does with the memory of a test.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LiftedKernel {
    /// The events of each thread in the order of the program, whatever guards them.
    pub threads: BTreeMap<ThreadId, Vec<KernelEvent>>,
    /// What belongs to no thread: private accesses that make workgroup memory and read its final values, and their results.
    pub outside: Vec<KernelEvent>,
    /// Whether all workgroup memory begins as zero; `None` where there is none.
    pub zeroed: Option<bool>,
    /// Whether the kernel declares maximal reconvergence.
    pub reconverges: bool,
    /// In which order fragments that overlap execute their sections, as its execution mode says.
    pub interlock: Option<InterlockOrder>,
    /// Accesses to scratch memory, none of which belongs to a thread.
    pub stress: Vec<Op>,
}

/// The events of a kernel. `bindings` says what stands behind each binding; bindings past them are images. Meetings of
/// workgroups before rounds are not among the events.
///
/// # Errors
/// [`LiftError`] where the module is not of the form that kernels have.
pub fn lift(words: &[u32], bindings: &[Binding]) -> Result<LiftedKernel, LiftError> {
    let reader = Reader::new(words)?;
    let [function] = &reader.module.functions[..] else {
        return Err(LiftError::Functions(reader.module.functions.len()));
    };
    let owners = owners(&function.blocks)?;
    let members = subgroup::members(&reader, &function.blocks)?;
    let threads: BTreeSet<ThreadId> = owners.values().copied().collect();
    let mut lifted = LiftedKernel {
        threads: threads.iter().map(|thread| (*thread, Vec::new())).collect(),
        outside: Vec::new(),
        zeroed: reader.is_workgroup_zeroed(),
        reconverges: reader.is_maximally_reconverging(),
        interlock: reader.interlock_order(),
        stress: Vec::new(),
    };
    for block in &function.blocks {
        let owner = block.label_id().and_then(|label| owners.get(&label)).copied();
        let lanes = block.label_id().and_then(|label| members.get(&label));
        for instruction in &block.instructions {
            let Some(event) = event(&reader, bindings, instruction)? else { continue };
            match (owner, &event) {
                (Some(_), KernelEvent::Stress(op)) => return Err(LiftError::Stress(*op)),
                (None, KernelEvent::Stress(op)) => lifted.stress.push(*op),
                (Some(thread), _) => lifted.threads.entry(thread).or_default().push(event),
                (None, KernelEvent::Subgroup { .. } | KernelEvent::ControlBarrier { .. })
                    if lanes.is_some() =>
                {
                    for (thread, branches) in lanes.into_iter().flatten() {
                        let stray = LiftError::Stray(instruction.class.opcode);
                        let thread = lifted.threads.get_mut(thread).ok_or(stray)?;
                        thread.push(event.clone().under(*branches));
                    }
                }
                // A tangle of none: it belongs to no thread.
                (None, KernelEvent::Subgroup { .. }) => {}
                // All invocations meet.
                (
                    None,
                    KernelEvent::ControlBarrier { .. }
                    | KernelEvent::SplitBarrier { .. }
                    | KernelEvent::Interlock(_),
                ) => {
                    lifted.threads.values_mut().for_each(|events| events.push(event.clone()));
                }
                (None, KernelEvent::Report) => lifted.outside.push(event),
                (None, KernelEvent::Load { site, access, .. } | KernelEvent::Store { site, access, .. })
                    if matches!(site.memory, Memory::Workgroup(_)) && is_ordered(&reader, *access) =>
                {
                    lifted.outside.push(event);
                }
                (None, _) => return Err(LiftError::Stray(instruction.class.opcode)),
            }
        }
    }
    Ok(lifted)
}

/// Whether an access is one that the barriers of the workgroup order: those that make and read workgroup memory are.
fn is_ordered(reader: &Reader, access: Access) -> bool {
    if reader.has_vulkan_model() {
        access == Access::NonPrivate
    } else {
        access == Access::Coherent { scope: Scope::Workgroup }
    }
}

/// The thread that each block belongs to: the case of a switch from which it is reached before the switch's end.
pub(crate) fn owners(blocks: &[Block]) -> Result<BTreeMap<Word, ThreadId>, LiftError> {
    let successors = successors(blocks);
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
            for label in until(&successors, *target, end) {
                owners.entry(label).or_insert(ThreadId(*thread as u16));
            }
        }
    }
    Ok(owners)
}

/// The blocks that are reached from one before another one.
fn until(successors: &BTreeMap<Word, Vec<Word>>, from: Word, end: Word) -> BTreeSet<Word> {
    let mut reached = BTreeSet::new();
    let mut open = vec![from];
    while let Some(label) = open.pop() {
        if label != end && reached.insert(label) {
            open.extend(successors.get(&label).into_iter().flatten());
        }
    }
    reached
}

/// The blocks that may follow each block.
fn successors(blocks: &[Block]) -> BTreeMap<Word, Vec<Word>> {
    blocks.iter().filter_map(|block| Some((block.label_id()?, targets(block)))).collect()
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
) -> Result<Option<KernelEvent>, LiftError> {
    let op = instruction.class.opcode;
    let ids = ids(instruction);
    let id = |index: usize| ids.get(index).copied().ok_or(LiftError::Malformed(op));
    let scope_at = |index: usize| read_scope(reader, id(index)?);
    let value_at = |index: usize| -> Result<Written, LiftError> {
        Ok(reader.constant_bits(id(index)?).map_or(Written::Computed, Written::Constant))
    };
    let ordered = |index: usize| read_semantics(reader, id(index)?);
    match op {
        Op::MemoryBarrier => {
            return Ok(Some(KernelEvent::Fence { scope: scope_at(0)?, semantics: ordered(1)?.0 }));
        }
        Op::ControlBarrier | Op::ControlBarrierArriveINTEL | Op::ControlBarrierWaitINTEL => {
            let (execution, memory, semantics) = (scope_at(0)?, scope_at(1)?, ordered(2)?.0);
            let half = match op {
                Op::ControlBarrierArriveINTEL => SplitHalf::Arrive,
                Op::ControlBarrierWaitINTEL => SplitHalf::Wait,
                _ => {
                    let branches = 0;
                    return Ok(Some(KernelEvent::ControlBarrier { execution, memory, semantics, branches }));
                }
            };
            return Ok(Some(KernelEvent::SplitBarrier { half, execution, memory, semantics }));
        }
        Op::BeginInvocationInterlockEXT => return Ok(Some(KernelEvent::Interlock(InterlockEnd::Begin))),
        Op::EndInvocationInterlockEXT => return Ok(Some(KernelEvent::Interlock(InterlockEnd::End))),
        _ if subgroup::is_operation(op) => return subgroup::event(reader, instruction).map(Some),
        Op::ImageRead | Op::ImageWrite => return texel_event(reader, instruction).map(Some),
        _ if is_access(op) => {}
        _ => return Ok(None),
    }
    let (site, variable) = match reader.pointee(id(0)?) {
        Some(Pointee::Memory(site, variable)) if reader.choices_agree(id(0)?) => (site, variable),
        Some(Pointee::Elsewhere) => return Ok(None),
        _ => return Err(LiftError::Malformed(op)),
    };
    if let Memory::Binding(binding) = site.memory {
        match bindings.get(binding as usize) {
            Some(Binding::Locations | Binding::Apart) | None => {}
            Some(Binding::Results) if op == Op::Store && instruction.operands.len() == 2 => {
                return Ok(Some(KernelEvent::Report));
            }
            Some(Binding::Rendezvous | Binding::Claims) => return Ok(None),
            Some(Binding::Scratch) if matches!(op, Op::AtomicLoad | Op::AtomicStore) => {
                return match ordered(2)?.0 {
                    Semantics::RELAXED => Ok(Some(KernelEvent::Stress(op))),
                    _ => Err(LiftError::Stress(op)),
                };
            }
            Some(Binding::Scratch) => return Err(LiftError::Stress(op)),
            Some(Binding::Results) => return Err(LiftError::Malformed(op)),
        }
    }
    let class = match site.memory {
        Memory::Workgroup(_) => StorageClass::Workgroup,
        _ => StorageClass::Buffer,
    };
    let coherent = coherence_of(reader, variable, class);
    let alignment = match site.memory {
        Memory::Address => Some(reader.alignment(&site, variable).ok_or(LiftError::Malformed(op))?),
        Memory::Binding(_) | Memory::Workgroup(_) => None,
    };
    if site.components > 1 && !matches!(op, Op::Load | Op::Store) {
        return Err(LiftError::Malformed(op));
    }
    let atomic = || -> Result<(Access, bool), LiftError> {
        let (semantics, volatile) = ordered(2)?;
        Ok((Access::Atomic { scope: scope_at(1)?, semantics }, volatile))
    };
    Ok(Some(match op {
        Op::Load => {
            let visible = MemoryAccess::MAKE_POINTER_VISIBLE;
            let (access, volatile) = plain(reader, instruction, 1, visible, alignment, coherent)?;
            KernelEvent::Load { site, volatile, access }
        }
        Op::Store => {
            let available = MemoryAccess::MAKE_POINTER_AVAILABLE;
            let (access, volatile) = plain(reader, instruction, 2, available, alignment, coherent)?;
            let values = if site.components > 1 {
                let made = reader.maker(id(1)?).filter(|made| made.class.opcode == Op::CompositeConstruct);
                let parts = crate::reader::ids(made.ok_or(LiftError::Malformed(op))?);
                let part = |id| reader.constant_bits(id).map_or(Written::Computed, Written::Constant);
                parts.into_iter().map(part).collect()
            } else {
                vec![value_at(1)?]
            };
            KernelEvent::Store { site, volatile, access, values }
        }
        Op::AtomicLoad => {
            let (access, volatile) = atomic()?;
            KernelEvent::Load { site, volatile, access }
        }
        Op::AtomicStore => {
            let (access, volatile) = atomic()?;
            KernelEvent::Store { site, volatile, access, values: vec![value_at(3)?] }
        }
        _ => {
            let (semantics, volatile) = ordered(2)?;
            let (unequal, values) = if op == Op::AtomicCompareExchange {
                (Some(ordered(3)?.0), vec![value_at(4)?, value_at(5)?])
            } else {
                (None, vec![value_at(3)?])
            };
            KernelEvent::Rmw {
                site,
                volatile,
                instruction: op,
                scope: scope_at(1)?,
                semantics,
                unequal,
                values,
            }
        }
    }))
}

/// The event of a plain access to an image.
fn texel_event(reader: &Reader, instruction: &Instruction) -> Result<KernelEvent, LiftError> {
    let op = instruction.class.opcode;
    let malformed = || LiftError::Malformed(op);
    let ids = ids(instruction);
    let id = |index: usize| ids.get(index).copied().ok_or_else(malformed);
    let (texels, operands, target) = if op == Op::ImageRead {
        (instruction.result_id.ok_or_else(malformed)?, 2, ImageOperands::MAKE_TEXEL_VISIBLE)
    } else {
        (id(2)?, 3, ImageOperands::MAKE_TEXEL_AVAILABLE)
    };
    let (site, variable) = reader.image_site(id(0)?, id(1)?, texels).ok_or_else(malformed)?;
    let coherent = coherence_of(reader, variable, StorageClass::Image);
    let (access, volatile) = match instruction.operands.get(operands..).unwrap_or_default() {
        [] => (coherent.unwrap_or(Access::Private), false),
        [Operand::ImageOperands(bits), rest @ ..] => {
            let volatile = bits.contains(ImageOperands::VOLATILE_TEXEL);
            match (*bits - ImageOperands::VOLATILE_TEXEL, rest) {
                (ImageOperands::NON_PRIVATE_TEXEL, []) => (Access::NonPrivate, volatile),
                (bits, [Operand::IdScope(scope)]) if bits == target | ImageOperands::NON_PRIVATE_TEXEL => {
                    (Access::Coherent { scope: read_scope(reader, *scope)? }, volatile)
                }
                _ => return Err(malformed()),
            }
        }
        _ => return Err(malformed()),
    };
    if op == Op::ImageRead {
        return Ok(KernelEvent::Load { site, volatile, access });
    }
    // All components of a texel hold the same; the first is the one that counts.
    let Some(maker) = reader.maker(texels) else { return Err(malformed()) };
    let first = crate::reader::ids(maker).first().copied().ok_or_else(malformed)?;
    let value = reader.constant_bits(first).map_or(Written::Computed, Written::Constant);
    Ok(KernelEvent::Store { site, volatile, access, values: vec![value] })
}

/// What plain accesses through a variable are under GLSL450; `None` under the Vulkan memory model, where each says so.
fn coherence_of(reader: &Reader, variable: Word, class: StorageClass) -> Option<Access> {
    if reader.has_vulkan_model() {
        return None;
    }
    let coherent = class == StorageClass::Workgroup || reader.is_decorated(variable, Decoration::Coherent);
    Some(if coherent { Access::Coherent { scope: glsl::coherent_scope(class) } } else { Access::Private })
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
            | Op::AtomicFAddEXT
            | Op::AtomicFMinEXT
            | Op::AtomicFMaxEXT
    )
}

fn read_scope(reader: &Reader, id: Word) -> Result<Scope, LiftError> {
    let word = reader.constant(id).ok_or(LiftError::NotConstant(id))?;
    let scope = scope(word).ok_or(LiftError::Scope(word))?;
    Ok(if reader.has_vulkan_model() { scope } else { glsl::widened(scope) })
}

/// Memory semantics, and whether they are volatile.
fn read_semantics(reader: &Reader, id: Word) -> Result<(Semantics, bool), LiftError> {
    let word = reader.constant(id).ok_or(LiftError::NotConstant(id))?;
    let volatile = MemorySemantics::VOLATILE.bits();
    let semantics = semantics(word & !volatile).ok_or(LiftError::Semantics(word))?;
    Ok((semantics, word & volatile != 0))
}

/// How a plain access with its memory operands from position `from` on accesses memory, and whether it is volatile. Where
/// it needs an `alignment`, it must say that one.
fn plain(
    reader: &Reader,
    instruction: &Instruction,
    from: usize,
    coherent: MemoryAccess,
    alignment: Option<u32>,
    nature: Option<Access>,
) -> Result<(Access, bool), LiftError> {
    let malformed = LiftError::Malformed(instruction.class.opcode);
    let (mut bits, mut rest) = match instruction.operands.get(from..).unwrap_or_default() {
        [] => (MemoryAccess::NONE, &[][..]),
        [Operand::MemoryAccess(bits), rest @ ..] => (*bits, rest),
        _ => return Err(malformed),
    };
    let volatile = bits.contains(MemoryAccess::VOLATILE);
    bits -= MemoryAccess::VOLATILE;
    if let Some(alignment) = alignment {
        match rest {
            [Operand::LiteralBit32(stated), others @ ..]
                if *stated == alignment && bits.contains(MemoryAccess::ALIGNED) =>
            {
                bits -= MemoryAccess::ALIGNED;
                rest = others;
            }
            _ => return Err(malformed),
        }
    }
    let access = match (bits, rest) {
        (MemoryAccess::NONE, []) => nature.unwrap_or(Access::Private),
        (MemoryAccess::NON_PRIVATE_POINTER, []) => Access::NonPrivate,
        (bits, [Operand::IdScope(id)]) if bits == coherent | MemoryAccess::NON_PRIVATE_POINTER => {
            Access::Coherent { scope: read_scope(reader, *id)? }
        }
        _ => return Err(malformed),
    };
    Ok((access, volatile))
}
