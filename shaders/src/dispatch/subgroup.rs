//! Operations of a subgroup's lanes between segments, after all lanes have converged: subgroup operations,
//! and blocks that lanes may skip, with operations and barriers of the subgroup.
//!
//! Each operation is emitted once for all its lanes. The operand of a lane, and its decision to skip a block,
//! are selected without a branch, because a branch would separate lanes that are converged in the test. Only
//! the individual code of a lane within a block is a branch, as in the test.

use litmus::{
    BlockPart, BranchRelation, Flow, InstructionKind, SubgroupKind, SubgroupOperation, Test, ThreadId,
};
use rspirv::dr::Operand;
use rspirv::spirv::{self, Op, Word};

use super::place::InvocationStart;
use super::{DispatchEmitter, SegmentCode};
use crate::flow;
use crate::kernel::CompileError;
use crate::memory::{AccessTarget, ReferencePath};
use crate::rules::Rule;
use crate::segments::{Meeting, ThreadSegment};
use crate::subgroup;
use crate::thread::{Registers, ThreadEmitter};

/// A common operation of some lanes of a subgroup, with the thread of each lane and the position in its code.
pub(super) enum Shared {
    /// A subgroup operation or, in a block, a barrier.
    Instruction(Vec<(usize, usize)>),
    /// A block that a branch skips.
    Block {
        /// The branches.
        lanes: Vec<(usize, usize)>,
        /// The common operations in it.
        parts: Vec<Shared>,
        /// The individual code of lanes before each of these, and after the last.
        own: Vec<Vec<SegmentCode>>,
    },
}

impl Shared {
    /// Merges the parts of several threads, which must have one shape; `None` if there are none.
    pub fn new(test: &Test, lanes: &[(usize, &BlockPart)]) -> Result<Option<Shared>, Rule> {
        let uneven = || Rule::Internal("a block of another shape");
        let Some((_, first)) = lanes.first() else { return Ok(None) };
        if matches!(first, BlockPart::Together(_)) {
            let instruction = |(thread, part): &(usize, &BlockPart)| match part {
                BlockPart::Together(at) => Some((*thread, *at)),
                BlockPart::Own(_) | BlockPart::Block(_) => None,
            };
            let lanes: Option<Vec<_>> = lanes.iter().map(instruction).collect();
            return Ok(Some(Shared::Instruction(lanes.ok_or_else(uneven)?)));
        }
        let mut branches = Vec::new();
        let mut own: Vec<Vec<SegmentCode>> = vec![Vec::new()];
        let mut common: Vec<Vec<(usize, &BlockPart)>> = Vec::new();
        for (thread, part) in lanes {
            let BlockPart::Block(block) = part else { return Err(uneven()) };
            branches.push((*thread, block.branch));
            let mut next = 0;
            for part in &block.parts {
                match part {
                    BlockPart::Own(body) => {
                        let steps = flow::structure(test.thread(ThreadId(*thread as u16)), body.clone());
                        let code = SegmentCode { part: ThreadSegment::new(*thread, body.clone()), steps };
                        own.get_mut(next).ok_or_else(uneven)?.push(code);
                    }
                    BlockPart::Together(_) | BlockPart::Block(_) => {
                        if next == common.len() {
                            common.push(Vec::new());
                            own.push(Vec::new());
                        }
                        common.get_mut(next).ok_or_else(uneven)?.push((*thread, part));
                        next += 1;
                    }
                }
            }
        }
        let parts = common.iter().filter_map(|lanes| Shared::new(test, lanes).transpose());
        let parts: Vec<Shared> = parts.collect::<Result<_, _>>()?;
        Ok(Some(Shared::Block { lanes: branches, parts, own }))
    }

    /// Returns all individual code of lanes in it.
    pub fn codes(&self) -> Vec<&SegmentCode> {
        match self {
            Shared::Instruction(_) => Vec::new(),
            Shared::Block { parts, own, .. } => {
                own.iter().flatten().chain(parts.iter().flat_map(Shared::codes)).collect()
            }
        }
    }
}

impl DispatchEmitter<'_> {
    /// Emits a common operation after a segment: the branch that its lanes take, and their operations.
    pub(super) fn shared(
        &mut self,
        shared: &Shared,
        place: &InvocationStart,
        instance: Word,
        targets: &[(ReferencePath, AccessTarget)],
        registers: &mut [Registers],
    ) -> Result<(), CompileError> {
        let mut takes_part = None;
        let (Shared::Instruction(lanes) | Shared::Block { lanes, .. }) = shared;
        for (thread, position) in lanes {
            let mut takes = self.plays(*thread, place);
            if matches!(shared, Shared::Block { .. }) {
                let enters = self.enters(*thread, *position, targets, registers)?;
                takes = self.module.truth(Op::LogicalAnd, &[takes, enters]);
            }
            takes_part =
                Some(takes_part.map_or(takes, |others| self.module.truth(Op::LogicalOr, &[others, takes])));
        }
        let Some(takes_part) = takes_part else { return Ok(()) };
        let [together, merge] = std::array::from_fn(|_| self.module.id());
        self.module.selection_merge(merge);
        self.module.branch_if(takes_part, together, merge);
        self.module.begin(together);
        self.within(shared, place, instance, targets, registers)?;
        self.module.branch(merge);
        self.module.begin(merge);
        Ok(())
    }

    /// Emits the operations of the lanes that reached it.
    fn within(
        &mut self,
        shared: &Shared,
        place: &InvocationStart,
        instance: Word,
        targets: &[(ReferencePath, AccessTarget)],
        registers: &mut [Registers],
    ) -> Result<(), CompileError> {
        let (parts, own) = match shared {
            Shared::Instruction(lanes) => return Ok(self.together(lanes, place, registers)?),
            Shared::Block { parts, own, .. } => (parts, own),
        };
        let parts = parts.iter().map(Some).chain([None]);
        for (codes, part) in own.iter().zip(parts) {
            self.segment(codes, place, instance, targets, registers)?;
            match part {
                // Every lane that is here has the instruction.
                Some(instruction @ Shared::Instruction(_)) => {
                    self.within(instruction, place, instance, targets, registers)?;
                }
                Some(block @ Shared::Block { .. }) => {
                    self.shared(block, place, instance, targets, registers)?;
                }
                None => {}
            }
        }
        Ok(())
    }

    /// Returns whether the invocation runs a thread.
    fn plays(&mut self, thread: usize, place: &InvocationStart) -> Word {
        let number = self.module.constant(thread as u32);
        self.module.truth(Op::IEqual, &[place.role, number])
    }

    /// Returns whether a thread enters a block; an arbitrary value in other threads' invocations.
    fn enters(
        &mut self,
        thread: usize,
        branch: usize,
        targets: &[(ReferencePath, AccessTarget)],
        registers: &mut [Registers],
    ) -> Result<Word, Rule> {
        self.of_thread(thread, targets, registers, |code| {
            match code.instruction_at(branch).map(|instruction| &instruction.kind) {
                Some(InstructionKind::Flow(Flow::Branch { relation, left, right, .. })) => {
                    let stays: BranchRelation = relation.opposite();
                    code.compared(stays, *left, *right)
                }
                _ => Err(Rule::Internal("no branch before a block")),
            }
        })
    }

    /// Emits code with the registers of a thread.
    fn of_thread<T>(
        &mut self,
        thread: usize,
        targets: &[(ReferencePath, AccessTarget)],
        registers: &mut [Registers],
        emit: impl FnOnce(&mut ThreadEmitter<'_>) -> Result<T, Rule>,
    ) -> Result<T, Rule> {
        let around = self.surroundings(targets);
        let registers = registers.get_mut(thread).ok_or(Rule::Internal("a thread without registers"))?;
        let thread = ThreadId(thread as u16);
        emit(&mut ThreadEmitter { module: &mut self.module, around, thread, registers })
    }

    /// Selects a word for each lane by the thread of the invocation. If all lanes have the same constant, it
    /// stays a constant.
    fn chosen(
        &mut self,
        lanes: &[(usize, usize)],
        place: &InvocationStart,
        mut word_of: impl FnMut(&mut Self, usize, usize) -> Result<Word, Rule>,
    ) -> Result<Word, Rule> {
        let mut chosen: Option<Word> = None;
        for (thread, instruction) in lanes {
            let own = word_of(self, *thread, *instruction)?;
            chosen = Some(match chosen {
                Some(others) if others != own => {
                    let plays = self.plays(*thread, place);
                    self.module.word(Op::Select, &[plays, own, others])
                }
                _ => own,
            });
        }
        chosen.ok_or(Rule::Internal("a subgroup operation without lanes"))
    }

    fn operation_of(&self, thread: usize, instruction: usize) -> Result<SubgroupOperation, Rule> {
        let found = self.test.thread(ThreadId(thread as u16)).instructions.get(instruction);
        let operation = found.and_then(|found| found.kind.subgroup_operation()).cloned();
        operation.ok_or(Rule::Internal("not a subgroup operation"))
    }

    /// Emits an instruction for converged lanes.
    fn together(
        &mut self,
        lanes: &[(usize, usize)],
        place: &InvocationStart,
        registers: &mut [Registers],
    ) -> Result<(), Rule> {
        let Some((thread, instruction)) = lanes.first() else { return Ok(()) };
        let found = self.test.thread(ThreadId(*thread as u16)).instructions.get(*instruction);
        if let Some(barrier) = found.and_then(|found| Meeting::of(&found.kind)) {
            // The parser checks that all lanes have the same one.
            return self.barrier(&barrier);
        }
        let kind = self.operation_of(*thread, *instruction)?.kind;
        let value = self.chosen(lanes, place, |emitter, thread, instruction| {
            let value = emitter.operation_of(thread, instruction)?.value;
            let value = value.unwrap_or(litmus::Operand::Constant(0));
            emitter.of_thread(thread, &[], registers, |code| code.operand(value, 32))
        })?;
        let source = match kind {
            SubgroupKind::Shuffle(_) => Some(self.chosen(lanes, place, |emitter, thread, instruction| {
                match emitter.operation_of(thread, instruction)?.kind {
                    SubgroupKind::Shuffle(source) => Ok(emitter.module.constant(source)),
                    _ => Err(Rule::Internal("no shuffle")),
                }
            })?),
            _ => None,
        };
        let result = self.exchanged(kind, value, source)?;
        for (thread, instruction) in lanes {
            // The register of a thread that the lane does not run is never read.
            if let Some(destination) = self.operation_of(*thread, *instruction)?.destination {
                self.of_thread(*thread, &[], registers, |code| code.assign(destination, result))?;
            }
        }
        Ok(())
    }

    fn exchanged(&mut self, kind: SubgroupKind, value: Word, source: Option<Word>) -> Result<Word, Rule> {
        let op = subgroup::instruction(kind).ok_or(Rule::Internal("no such scan"))?;
        let (zero, one) = (self.module.constant(0), self.module.constant(1));
        let scope = Operand::IdScope(self.module.constant(spirv::Scope::Subgroup as u32));
        let (word, truth) = (self.module.u32, self.module.bool);
        let result = match kind {
            SubgroupKind::Elect => self.module.value(op, truth, [scope]),
            SubgroupKind::AllEqual => self.module.value(op, truth, [scope, Operand::IdRef(value)]),
            SubgroupKind::All | SubgroupKind::Any => {
                let predicate = self.module.truth(Op::INotEqual, &[value, zero]);
                self.module.value(op, truth, [scope, Operand::IdRef(predicate)])
            }
            SubgroupKind::Ballot => {
                let predicate = self.module.truth(Op::INotEqual, &[value, zero]);
                let words = self.module.vector(word, 4);
                let ballot = self.module.value(op, words, [scope, Operand::IdRef(predicate)]);
                // A test has fewer than 32 lanes.
                let first = [Operand::IdRef(ballot), Operand::LiteralBit32(0)];
                return Ok(self.module.value(Op::CompositeExtract, word, first));
            }
            SubgroupKind::BroadcastFirst => {
                return Ok(self.module.value(op, word, [scope, Operand::IdRef(value)]));
            }
            SubgroupKind::Shuffle(_) => {
                let source = source.ok_or(Rule::Internal("a shuffle from nowhere"))?;
                let operands = [scope, Operand::IdRef(value), Operand::IdRef(source)];
                return Ok(self.module.value(op, word, operands));
            }
            SubgroupKind::Arithmetic(span, _) => {
                let over = Operand::GroupOperation(subgroup::group_operation(span));
                return Ok(self.module.value(op, word, [scope, over, Operand::IdRef(value)]));
            }
            SubgroupKind::Broadcast(_)
            | SubgroupKind::ShuffleXor(_)
            | SubgroupKind::ShuffleUp(_)
            | SubgroupKind::ShuffleDown(_)
            | SubgroupKind::Rotate { .. }
            | SubgroupKind::QuadBroadcast(_)
            | SubgroupKind::QuadSwap(_) => {
                let numbers = match kind {
                    SubgroupKind::QuadSwap(direction) => vec![subgroup::direction(direction)],
                    _ => kind.constant_arguments(),
                };
                let mut operands = vec![scope, Operand::IdRef(value)];
                for number in numbers {
                    operands.push(Operand::IdRef(self.module.constant(number)));
                }
                return Ok(self.module.value(op, word, operands));
            }
        };
        Ok(self.module.word(Op::Select, &[result, one, zero]))
    }
}
