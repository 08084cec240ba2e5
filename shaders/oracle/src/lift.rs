//! Reads a kernel back to the memory events of its threads, to verify the compiler.
//!
//! The reader shares no code with the emitter: it starts from the words. It relies on one convention: a
//! `switch` separates the threads, and its literals are their indices. [`verify()`] compares the events with
//! the test.

mod subgroup;
mod verify;

pub use verify::verify;

use std::collections::{BTreeMap, BTreeSet};

use litmus::{Access, InterlockEnd, InterlockOrder, Scope, Semantics, SplitHalf, StorageClass, ThreadId};
use rspirv::dr::{Block, Instruction, Operand};
use rspirv::spirv::{Decoration, GroupOperation, ImageOperands, MemoryAccess, MemorySemantics, Op, Word};

use crate::reader::{Pointee, Reader, operand_ids, parse_scope, parse_semantics};
use shaders::ModuleError;
use shaders::kernel::Binding;

pub use crate::reader::{KernelMemory, Site};

/// An access to the memory of a test, or a barrier.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KernelEvent {
    /// A load, plain or atomic.
    Load {
        site: Site,
        volatile: bool,
        /// Private or not, coherent or atomic, with scope and semantics.
        access: Access,
    },
    /// A store, plain or atomic.
    Store {
        site: Site,
        volatile: bool,
        /// Private or not, coherent or atomic, with scope and semantics.
        access: Access,
        /// The written value, or one for each component of a vector.
        values: Vec<ValueOperand>,
    },
    Rmw {
        site: Site,
        volatile: bool,
        /// The instruction, such as `AtomicIAdd`.
        instruction: Op,
        scope: Scope,
        /// Memory semantics; those of success for a compare-exchange.
        semantics: Semantics,
        /// Semantics of failure of a compare-exchange.
        unequal: Option<Semantics>,
        /// Value operands in the order of SPIR-V: the value, then the comparator.
        values: Vec<ValueOperand>,
    },
    Fence {
        scope: Scope,
        semantics: Semantics,
    },
    ControlBarrier {
        /// The half of a split barrier.
        half: Option<SplitHalf>,
        execution: Scope,
        memory: Scope,
        /// Memory semantics; relaxed if it is not a memory barrier.
        semantics: Semantics,
        /// The number of the thread's own branches around it; 0 for a half.
        branches: usize,
    },
    /// A subgroup operation, in the lanes that execute it.
    Subgroup {
        instruction: Op,
        /// The lanes of a reduction or scan.
        span: Option<GroupOperation>,
        /// Its constant operands after the value.
        numbers: Vec<u32>,
        /// The number of the thread's own branches around it.
        branches: usize,
    },
    /// An end of the interlocked section.
    Interlock(InterlockEnd),
    /// A plain store of a result word.
    Report,
    /// A relaxed atomic access to scratch memory, which orders nothing and accesses no memory of the test.
    Stress(Op),
}

impl KernelEvent {
    /// Returns the event for a lane with this many own branches around it.
    fn with_branches(mut self, number: usize) -> KernelEvent {
        if let KernelEvent::Subgroup { branches, .. } | KernelEvent::ControlBarrier { branches, .. } =
            &mut self
        {
            *branches = number;
        }
        self
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ValueOperand {
    /// The bits of a constant of the module.
    Constant(u64),
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
    /// An operand is missing or has the wrong kind.
    #[error("malformed {0:?}")]
    Malformed(Op),
    /// An operand that must be a constant is not.
    #[error("%{0} is not a constant")]
    NotConstant(Word),
    /// A scope that no litmus test has.
    #[error("scope {0}")]
    Scope(u32),
    /// Memory semantics that no litmus test has.
    #[error("memory semantics {0:#x}")]
    Semantics(u32),
    #[error("{0:?} on a location outside all threads")]
    OutsideThreads(Op),
    #[error("the variant cannot express it: {0}")]
    Inexpressible(String),
    /// An access to scratch memory that is not a relaxed atomic, or is in the code of a thread.
    #[error("{0:?} on scratch memory")]
    Stress(Op),
    /// Memory stress is missing, or has another form.
    #[error("memory stress by {0:?}")]
    StressDiffers(Vec<Op>),
    /// A salt is missing, is read twice, or is not at the place of an access of the test.
    #[error("salts at {0:?}")]
    WrongSalts(Vec<Site>),
    #[error("outside the threads: expected {expected}, the kernel has {found}")]
    OutsideDiffers { expected: String, found: String },
    #[error("thread {thread:?}, event {position}: the test has {expected}, the kernel {found}")]
    Differs { thread: ThreadId, position: usize, expected: String, found: String },
}

/// The memory events of a kernel.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LiftedKernel {
    /// The events of each thread in program order, with any conditions.
    pub threads: BTreeMap<ThreadId, Vec<KernelEvent>>,
    /// The events outside of threads: private accesses that initialize and read workgroup memory, and their
    /// results.
    pub outside: Vec<KernelEvent>,
    /// True if all workgroup memory is zero-initialized; `None` if there is none.
    pub zeroed: Option<bool>,
    /// The kernel declares maximal reconvergence.
    pub maximally_reconverges: bool,
    /// The order of interlocked sections, by the execution mode.
    pub interlock: Option<InterlockOrder>,
    /// Accesses to scratch memory, all outside of threads.
    pub stress: Vec<Op>,
    /// Plain private loads from memory of the test outside of threads: those of salts.
    pub salts: Vec<Site>,
}

/// Returns the events of a kernel. `bindings` are its buffers; later bindings are images. Rendezvous of
/// workgroups are not events.
///
/// # Errors
/// [`LiftError`] if the module does not have the form of kernels.
pub fn lift(words: &[u32], bindings: &[Binding]) -> Result<LiftedKernel, LiftError> {
    let reader = Reader::new(words)?;
    let [function] = &reader.module.functions[..] else {
        return Err(LiftError::Functions(reader.module.functions.len()));
    };
    let owners = block_threads(&function.blocks)?;
    let members = subgroup::block_members(&reader, &function.blocks)?;
    let threads: BTreeSet<ThreadId> = owners.values().copied().collect();
    let mut lifted = LiftedKernel {
        threads: threads.iter().map(|thread| (*thread, Vec::new())).collect(),
        outside: Vec::new(),
        zeroed: reader.is_workgroup_zeroed(),
        maximally_reconverges: reader.is_maximally_reconverging(),
        interlock: reader.interlock_order(),
        stress: Vec::new(),
        salts: Vec::new(),
    };
    for block in &function.blocks {
        let owner = block.label_id().and_then(|label| owners.get(&label)).copied();
        let lanes = block.label_id().and_then(|label| members.get(&label));
        for instruction in &block.instructions {
            let Some(event) = lift_instruction(&reader, bindings, instruction)? else { continue };
            match (owner, &event) {
                (Some(_), _) if is_nontemporal(instruction) => {
                    return Err(LiftError::Malformed(instruction.class.opcode));
                }
                (Some(_), KernelEvent::Stress(op)) => return Err(LiftError::Stress(*op)),
                (None, KernelEvent::Stress(op)) => lifted.stress.push(*op),
                (Some(thread), _) => lifted.threads.entry(thread).or_default().push(event),
                (None, KernelEvent::Subgroup { .. } | KernelEvent::ControlBarrier { half: None, .. })
                    if lanes.is_some() =>
                {
                    for (thread, branches) in lanes.into_iter().flatten() {
                        let error = LiftError::OutsideThreads(instruction.class.opcode);
                        let thread = lifted.threads.get_mut(thread).ok_or(error)?;
                        thread.push(event.clone().with_branches(*branches));
                    }
                }
                // A subgroup operation outside of threads belongs to no tangle of the test.
                (None, KernelEvent::Subgroup { .. }) => {}
                // All invocations execute it.
                (None, KernelEvent::ControlBarrier { .. } | KernelEvent::Interlock(_)) => {
                    lifted.threads.values_mut().for_each(|events| events.push(event.clone()));
                }
                (None, KernelEvent::Report) => lifted.outside.push(event),
                (None, KernelEvent::Load { site, access, .. } | KernelEvent::Store { site, access, .. })
                    if matches!(site.memory, KernelMemory::Workgroup(_)) && is_ordered(&reader, *access) =>
                {
                    lifted.outside.push(event);
                }
                (None, KernelEvent::Load { site, volatile: false, access })
                    if !matches!(site.memory, KernelMemory::Workgroup(_))
                        && (*access == Access::Private || !reader.has_vulkan_model())
                        && !access.is_atomic() =>
                {
                    lifted.salts.push(*site);
                }
                (None, _) => return Err(LiftError::OutsideThreads(instruction.class.opcode)),
            }
        }
    }
    Ok(lifted)
}

fn is_nontemporal(instruction: &Instruction) -> bool {
    let mut operands = instruction.operands.iter();
    operands.any(|own| matches!(own, Operand::MemoryAccess(bits) if bits.contains(MemoryAccess::NONTEMPORAL)))
}

/// Returns true if barriers of the workgroup order an access, as required for the initialization of workgroup
/// memory.
fn is_ordered(reader: &Reader, access: Access) -> bool {
    if reader.has_vulkan_model() {
        access == Access::NonPrivate
    } else {
        access == Access::Coherent { scope: Scope::Workgroup }
    }
}

/// Returns the thread of each block: the switch case that reaches it before the end of the switch.
pub(crate) fn block_threads(blocks: &[Block]) -> Result<BTreeMap<Word, ThreadId>, LiftError> {
    let successors = block_successors(blocks);
    let mut owners = BTreeMap::new();
    for block in blocks {
        let [.., merge, switch] = &block.instructions[..] else { continue };
        if switch.class.opcode != Op::Switch {
            continue;
        }
        let end = *operand_ids(merge).first().ok_or(LiftError::Malformed(merge.class.opcode))?;
        for case in switch.operands.get(2..).unwrap_or_default().chunks(2) {
            let [Operand::LiteralBit32(thread), Operand::IdRef(target)] = case else {
                return Err(LiftError::Malformed(Op::Switch));
            };
            for label in reachable_blocks_before(&successors, *target, end) {
                owners.entry(label).or_insert(ThreadId(*thread as u16));
            }
        }
    }
    Ok(owners)
}

/// Returns the blocks that are reachable without passing through `end`.
fn reachable_blocks_before(successors: &BTreeMap<Word, Vec<Word>>, from: Word, end: Word) -> BTreeSet<Word> {
    let mut reached = BTreeSet::new();
    let mut pending = vec![from];
    while let Some(label) = pending.pop() {
        if label != end && reached.insert(label) {
            pending.extend(successors.get(&label).into_iter().flatten());
        }
    }
    reached
}

fn block_successors(blocks: &[Block]) -> BTreeMap<Word, Vec<Word>> {
    blocks.iter().filter_map(|block| Some((block.label_id()?, branch_targets(block)))).collect()
}

fn branch_targets(block: &Block) -> Vec<Word> {
    let Some(terminator) = block.instructions.last() else { return Vec::new() };
    let ids = operand_ids(terminator);
    match terminator.class.opcode {
        Op::Branch => ids,
        Op::BranchConditional | Op::Switch => ids.into_iter().skip(1).collect(),
        _ => Vec::new(),
    }
}

/// Returns the event of an instruction, if it has one.
fn lift_instruction(
    reader: &Reader,
    bindings: &[Binding],
    instruction: &Instruction,
) -> Result<Option<KernelEvent>, LiftError> {
    let op = instruction.class.opcode;
    let ids = operand_ids(instruction);
    let id = |index: usize| ids.get(index).copied().ok_or(LiftError::Malformed(op));
    let scope_at = |index: usize| read_scope(reader, id(index)?);
    let value_at = |index: usize| Ok::<_, LiftError>(value_operand(reader, id(index)?));
    let ordered = |index: usize| read_semantics(reader, id(index)?);
    match op {
        Op::MemoryBarrier => {
            return Ok(Some(KernelEvent::Fence { scope: scope_at(0)?, semantics: ordered(1)?.0 }));
        }
        Op::ControlBarrier | Op::ControlBarrierArriveINTEL | Op::ControlBarrierWaitINTEL => {
            let (execution, memory, semantics) = (scope_at(0)?, scope_at(1)?, ordered(2)?.0);
            let half = match op {
                Op::ControlBarrierArriveINTEL => Some(SplitHalf::Arrive),
                Op::ControlBarrierWaitINTEL => Some(SplitHalf::Wait),
                _ => None,
            };
            let barrier = KernelEvent::ControlBarrier { half, execution, memory, semantics, branches: 0 };
            return Ok(Some(barrier));
        }
        Op::BeginInvocationInterlockEXT => return Ok(Some(KernelEvent::Interlock(InterlockEnd::Begin))),
        Op::EndInvocationInterlockEXT => return Ok(Some(KernelEvent::Interlock(InterlockEnd::End))),
        _ if subgroup::is_subgroup_operation(op) => {
            return subgroup::lift_operation(reader, instruction).map(Some);
        }
        Op::ImageRead | Op::ImageWrite => return texel_event(reader, instruction).map(Some),
        _ if is_access(op) => {}
        _ => return Ok(None),
    }
    let (site, variable) = match reader.pointee(id(0)?) {
        Some(Pointee::Memory(site, variable)) if reader.has_one_base_variable(id(0)?) => (site, variable),
        Some(Pointee::OtherMemory) => return Ok(None),
        _ => return Err(LiftError::Malformed(op)),
    };
    if let KernelMemory::Binding(binding) = site.memory {
        match bindings.get(binding as usize) {
            Some(Binding::Locations | Binding::SeparateLocations) | None => {}
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
        KernelMemory::Workgroup(_) => StorageClass::Workgroup,
        _ => StorageClass::Buffer,
    };
    let coherent = variable_coherence(reader, variable, class);
    let alignment = match site.memory {
        KernelMemory::Address => {
            Some(reader.required_alignment(&site, variable).ok_or(LiftError::Malformed(op))?)
        }
        KernelMemory::Binding(_) | KernelMemory::Workgroup(_) => None,
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
            let (access, volatile) = lift_plain_access(reader, instruction, 1, visible, alignment, coherent)?;
            KernelEvent::Load { site, volatile, access }
        }
        Op::Store => {
            let available = MemoryAccess::MAKE_POINTER_AVAILABLE;
            let (access, volatile) =
                lift_plain_access(reader, instruction, 2, available, alignment, coherent)?;
            let values = if site.components > 1 {
                let construct =
                    reader.definition(id(1)?).filter(|made| made.class.opcode == Op::CompositeConstruct);
                let parts = crate::reader::operand_ids(construct.ok_or(LiftError::Malformed(op))?);
                parts.into_iter().map(|part| value_operand(reader, part)).collect()
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

fn value_operand(reader: &Reader, id: Word) -> ValueOperand {
    reader.constant_bits(id).map_or(ValueOperand::Computed, ValueOperand::Constant)
}

/// Returns the event of a plain access to an image.
fn texel_event(reader: &Reader, instruction: &Instruction) -> Result<KernelEvent, LiftError> {
    let op = instruction.class.opcode;
    let malformed = || LiftError::Malformed(op);
    let ids = operand_ids(instruction);
    let id = |index: usize| ids.get(index).copied().ok_or_else(malformed);
    let (texels, operands, target) = if op == Op::ImageRead {
        (instruction.result_id.ok_or_else(malformed)?, 2, ImageOperands::MAKE_TEXEL_VISIBLE)
    } else {
        (id(2)?, 3, ImageOperands::MAKE_TEXEL_AVAILABLE)
    };
    let (site, variable) = reader.image_site(id(0)?, id(1)?, texels).ok_or_else(malformed)?;
    let coherent = variable_coherence(reader, variable, StorageClass::Image);
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
    // All components of a texel are equal, and only the first counts.
    let Some(construct) = reader.definition(texels) else { return Err(malformed()) };
    let first = crate::reader::operand_ids(construct).first().copied().ok_or_else(malformed)?;
    Ok(KernelEvent::Store { site, volatile, access, values: vec![value_operand(reader, first)] })
}

/// Returns the access kind of a variable's plain accesses in GLSL450; `None` in the Vulkan memory model,
/// where each access has its own.
fn variable_coherence(reader: &Reader, variable: Word, class: StorageClass) -> Option<Access> {
    if reader.has_vulkan_model() {
        return None;
    }
    Some(match class {
        StorageClass::Workgroup => Access::Coherent { scope: Scope::Workgroup },
        _ if reader.is_decorated(variable, Decoration::Coherent) => {
            Access::Coherent { scope: Scope::QueueFamily }
        }
        _ => Access::Private,
    })
}

fn is_access(op: Op) -> bool {
    matches!(op, Op::Load | Op::Store | Op::AtomicLoad | Op::AtomicStore) || is_rmw(op)
}

/// Returns true for an atomic read-modify-write with a value operand.
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
    let scope = parse_scope(word).ok_or(LiftError::Scope(word))?;
    // In GLSL450, Device scope is queue-family scope.
    let is_family = scope == Scope::Device && !reader.has_vulkan_model();
    Ok(if is_family { Scope::QueueFamily } else { scope })
}

/// Returns memory semantics, and whether they are volatile.
fn read_semantics(reader: &Reader, id: Word) -> Result<(Semantics, bool), LiftError> {
    let word = reader.constant(id).ok_or(LiftError::NotConstant(id))?;
    let volatile = MemorySemantics::VOLATILE.bits();
    let semantics = parse_semantics(word & !volatile).ok_or(LiftError::Semantics(word))?;
    Ok((semantics, word & volatile != 0))
}

/// Parses the memory operands of a plain access from position `from` on; returns the access and whether it is
/// volatile. If it needs an `alignment`, it must have that one.
fn lift_plain_access(
    reader: &Reader,
    instruction: &Instruction,
    from: usize,
    coherent: MemoryAccess,
    alignment: Option<u32>,
    variable_access: Option<Access>,
) -> Result<(Access, bool), LiftError> {
    let malformed = LiftError::Malformed(instruction.class.opcode);
    let (mut bits, mut rest) = match instruction.operands.get(from..).unwrap_or_default() {
        [] => (MemoryAccess::NONE, &[][..]),
        [Operand::MemoryAccess(bits), rest @ ..] => (*bits, rest),
        _ => return Err(malformed),
    };
    let volatile = bits.contains(MemoryAccess::VOLATILE);
    // Only salts are nontemporal, which are read outside of threads.
    bits -= MemoryAccess::VOLATILE | MemoryAccess::NONTEMPORAL;
    if let Some(alignment) = alignment {
        match rest {
            [Operand::LiteralBit32(declared), others @ ..]
                if *declared == alignment && bits.contains(MemoryAccess::ALIGNED) =>
            {
                bits -= MemoryAccess::ALIGNED;
                rest = others;
            }
            _ => return Err(malformed),
        }
    }
    let access = match (bits, rest) {
        (MemoryAccess::NONE, []) => variable_access.unwrap_or(Access::Private),
        (MemoryAccess::NON_PRIVATE_POINTER, []) => Access::NonPrivate,
        (bits, [Operand::IdScope(id)]) if bits == coherent | MemoryAccess::NON_PRIVATE_POINTER => {
            Access::Coherent { scope: read_scope(reader, *id)? }
        }
        _ => return Err(malformed),
    };
    Ok((access, volatile))
}
