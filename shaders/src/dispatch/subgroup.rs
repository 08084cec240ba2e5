//! Operations of a subgroup's lanes between segments, after all lanes have converged: subgroup operations,
//! and blocks that lanes may skip, with operations and barriers of the subgroup.
//!
//! Each operation is emitted once for all its lanes. The operand of a lane, and its decision to skip a block,
//! are selected without a branch, because a branch would separate lanes that are converged in the test. Only
//! the individual code of a lane within a block is a branch, as in the test.

use litmus::{BlockPart, Comparison, Flow, InstructionKind, SubgroupKind, SubgroupOperation, Test, ThreadId};
use rspirv::dr::Operand;
use rspirv::spirv::{self, Op, Word};

use super::rendezvous::InvocationStart;
use super::{DispatchEmitter, SegmentCode};
use crate::flow;
use crate::kernel::CompileError;
use crate::memory::{AccessTarget, ReferencePath};
use crate::rules::Rule;
use crate::segments::{CommonBarrier, ThreadSegment};
use crate::subgroup;
use crate::thread::{Registers, ThreadEmitter};

/// A common operation of some lanes of a subgroup, with the thread of each lane and the position in its code.
pub(super) enum SharedOperation {
    /// A subgroup operation or, in a block, a barrier.
    Instruction(Vec<(usize, usize)>),
    /// A block that a branch skips.
    Block {
        /// The branches.
        lanes: Vec<(usize, usize)>,
        /// The common operations in it.
        operations: Vec<SharedOperation>,
        /// The individual code of lanes before each of these, and after the last.
        lane_codes: Vec<Vec<SegmentCode>>,
    },
}

impl SharedOperation {
    /// Merges the parts of several threads, which must have one shape; `None` if there are none.
    pub fn new(test: &Test, lanes: &[(usize, &BlockPart)]) -> Result<Option<SharedOperation>, Rule> {
        let shape_error = || Rule::Internal("a block of another shape");
        let Some((_, first)) = lanes.first() else { return Ok(None) };
        if matches!(first, BlockPart::Converged(_)) {
            let instruction = |(thread, part): &(usize, &BlockPart)| match part {
                BlockPart::Converged(at) => Some((*thread, *at)),
                BlockPart::LaneLocal(_) | BlockPart::Block(_) => None,
            };
            let lanes: Option<Vec<_>> = lanes.iter().map(instruction).collect();
            return Ok(Some(SharedOperation::Instruction(lanes.ok_or_else(shape_error)?)));
        }
        let mut branches = Vec::new();
        let mut own: Vec<Vec<SegmentCode>> = vec![Vec::new()];
        let mut common: Vec<Vec<(usize, &BlockPart)>> = Vec::new();
        for (thread, part) in lanes {
            let BlockPart::Block(block) = part else { return Err(shape_error()) };
            branches.push((*thread, block.branch));
            let mut next = 0;
            for part in &block.parts {
                match part {
                    BlockPart::LaneLocal(body) => {
                        let steps =
                            flow::structure_control_flow(test.thread(ThreadId(*thread as u16)), body.clone());
                        let code = SegmentCode { part: ThreadSegment::new(*thread, body.clone()), steps };
                        own.get_mut(next).ok_or_else(shape_error)?.push(code);
                    }
                    BlockPart::Converged(_) | BlockPart::Block(_) => {
                        if next == common.len() {
                            common.push(Vec::new());
                            own.push(Vec::new());
                        }
                        common.get_mut(next).ok_or_else(shape_error)?.push((*thread, part));
                        next += 1;
                    }
                }
            }
        }
        let parts = common.iter().filter_map(|lanes| SharedOperation::new(test, lanes).transpose());
        let parts: Vec<SharedOperation> = parts.collect::<Result<_, _>>()?;
        Ok(Some(SharedOperation::Block { lanes: branches, operations: parts, lane_codes: own }))
    }

    /// Returns all individual code of lanes in it.
    pub fn all_lane_codes(&self) -> Vec<&SegmentCode> {
        match self {
            SharedOperation::Instruction(_) => Vec::new(),
            SharedOperation::Block { operations: parts, lane_codes: own, .. } => {
                own.iter().flatten().chain(parts.iter().flat_map(SharedOperation::all_lane_codes)).collect()
            }
        }
    }
}

impl DispatchEmitter<'_> {
    /// Emits a common operation after a segment: the branch that its lanes take, and their operations.
    pub(super) fn emit_shared(
        &mut self,
        shared: &SharedOperation,
        place: &InvocationStart,
        instance: Word,
        targets: &[(ReferencePath, AccessTarget)],
        registers: &mut [Registers],
    ) -> Result<(), CompileError> {
        let mut takes_part = None;
        let (SharedOperation::Instruction(lanes) | SharedOperation::Block { lanes, .. }) = shared;
        for (thread, position) in lanes {
            let mut participates = self.emit_runs_thread(*thread, place);
            if matches!(shared, SharedOperation::Block { .. }) {
                let enters = self.emit_enters_block(*thread, *position, targets, registers)?;
                participates = self.module.emit_bool(Op::LogicalAnd, &[participates, enters]);
            }
            takes_part = Some(takes_part.map_or(participates, |others| {
                self.module.emit_bool(Op::LogicalOr, &[others, participates])
            }));
        }
        let Some(takes_part) = takes_part else { return Ok(()) };
        let [together, merge] = std::array::from_fn(|_| self.module.id());
        self.module.begin_if(takes_part, together, merge);
        self.emit_shared_body(shared, place, instance, targets, registers)?;
        self.module.continue_at(merge);
        Ok(())
    }

    /// Emits the operations of the lanes that reached it.
    fn emit_shared_body(
        &mut self,
        shared: &SharedOperation,
        place: &InvocationStart,
        instance: Word,
        targets: &[(ReferencePath, AccessTarget)],
        registers: &mut [Registers],
    ) -> Result<(), CompileError> {
        let (parts, own) = match shared {
            SharedOperation::Instruction(lanes) => return Ok(self.emit_converged(lanes, place, registers)?),
            SharedOperation::Block { operations: parts, lane_codes: own, .. } => (parts, own),
        };
        let parts = parts.iter().map(Some).chain([None]);
        for (codes, part) in own.iter().zip(parts) {
            self.emit_segment(codes, place, instance, targets, registers)?;
            match part {
                // Every lane that is here has the instruction.
                Some(instruction @ SharedOperation::Instruction(_)) => {
                    self.emit_shared_body(instruction, place, instance, targets, registers)?;
                }
                Some(block @ SharedOperation::Block { .. }) => {
                    self.emit_shared(block, place, instance, targets, registers)?;
                }
                None => {}
            }
        }
        Ok(())
    }

    /// Emits the condition that the invocation runs a thread.
    fn emit_runs_thread(&mut self, thread: usize, place: &InvocationStart) -> Word {
        let number = self.module.constant(thread as u32);
        self.module.emit_bool(Op::IEqual, &[place.role, number])
    }

    /// Emits the condition that a thread enters a block; an arbitrary value in other threads' invocations.
    fn emit_enters_block(
        &mut self,
        thread: usize,
        branch: usize,
        targets: &[(ReferencePath, AccessTarget)],
        registers: &mut [Registers],
    ) -> Result<Word, Rule> {
        self.with_thread_emitter(thread, targets, registers, |code| {
            match code.instruction_at(branch).map(|instruction| &instruction.kind) {
                Some(InstructionKind::Flow(Flow::Branch { relation, left, right, .. })) => {
                    let stays: Comparison = relation.opposite();
                    code.emit_comparison(stays, *left, *right)
                }
                _ => Err(Rule::Internal("no branch before a block")),
            }
        })
    }

    /// Emits code with the registers of a thread.
    fn with_thread_emitter<T>(
        &mut self,
        thread: usize,
        targets: &[(ReferencePath, AccessTarget)],
        registers: &mut [Registers],
        emit: impl FnOnce(&mut ThreadEmitter<'_>) -> Result<T, Rule>,
    ) -> Result<T, Rule> {
        let context = self.thread_context(targets);
        let registers = registers.get_mut(thread).ok_or(Rule::Internal("a thread without registers"))?;
        let thread = ThreadId(thread as u16);
        emit(&mut ThreadEmitter { module: &mut self.module, context, thread, registers })
    }

    /// Selects a word for each lane by the thread of the invocation. If all lanes have the same constant, it
    /// stays a constant.
    fn emit_select_by_thread(
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
                    let plays = self.emit_runs_thread(*thread, place);
                    self.module.emit_word(Op::Select, &[plays, own, others])
                }
                _ => own,
            });
        }
        chosen.ok_or(Rule::Internal("a subgroup operation without lanes"))
    }

    fn subgroup_operation(&self, thread: usize, instruction: usize) -> Result<SubgroupOperation, Rule> {
        let found = self.test.thread(ThreadId(thread as u16)).instructions.get(instruction);
        let operation = found.and_then(|found| found.kind.subgroup_operation()).cloned();
        operation.ok_or(Rule::Internal("not a subgroup operation"))
    }

    /// Emits an instruction for converged lanes.
    fn emit_converged(
        &mut self,
        lanes: &[(usize, usize)],
        place: &InvocationStart,
        registers: &mut [Registers],
    ) -> Result<(), Rule> {
        let Some((thread, instruction)) = lanes.first() else { return Ok(()) };
        let found = self.test.thread(ThreadId(*thread as u16)).instructions.get(*instruction);
        if let Some(barrier) = found.and_then(|found| CommonBarrier::from_instruction(&found.kind)) {
            // The parser checks that all lanes have the same one.
            return self.emit_barrier(&barrier);
        }
        let kind = self.subgroup_operation(*thread, *instruction)?.kind;
        let value = self.emit_select_by_thread(lanes, place, |emitter, thread, instruction| {
            let value = emitter.subgroup_operation(thread, instruction)?.value;
            let value = value.unwrap_or(litmus::Operand::Constant(0));
            emitter.with_thread_emitter(thread, &[], registers, |code| code.operand_value(value, 32))
        })?;
        let source = match kind {
            SubgroupKind::Shuffle(_) => {
                Some(self.emit_select_by_thread(lanes, place, |emitter, thread, instruction| {
                    match emitter.subgroup_operation(thread, instruction)?.kind {
                        SubgroupKind::Shuffle(source) => Ok(emitter.module.constant(source)),
                        _ => Err(Rule::Internal("no shuffle")),
                    }
                })?)
            }
            _ => None,
        };
        let result = self.emit_subgroup_operation(kind, value, source)?;
        for (thread, instruction) in lanes {
            // The register of a thread that the lane does not run is never read.
            if let Some(destination) = self.subgroup_operation(*thread, *instruction)?.destination {
                self.with_thread_emitter(*thread, &[], registers, |code| {
                    code.assign_register(destination, result)
                })?;
            }
        }
        Ok(())
    }

    fn emit_subgroup_operation(
        &mut self,
        kind: SubgroupKind,
        value: Word,
        source: Option<Word>,
    ) -> Result<Word, Rule> {
        let op = subgroup::opcode(kind).ok_or(Rule::Internal("no such scan"))?;
        let (zero, one) = (self.module.constant(0), self.module.constant(1));
        let scope = Operand::IdScope(self.module.constant(spirv::Scope::Subgroup as u32));
        let (word, truth) = (self.module.u32, self.module.bool);
        let result = match kind {
            SubgroupKind::Elect => self.module.emit_value(op, truth, [scope]),
            SubgroupKind::AllEqual => self.module.emit_value(op, truth, [scope, Operand::IdRef(value)]),
            SubgroupKind::All | SubgroupKind::Any => {
                let predicate = self.module.emit_bool(Op::INotEqual, &[value, zero]);
                self.module.emit_value(op, truth, [scope, Operand::IdRef(predicate)])
            }
            SubgroupKind::Ballot => {
                let predicate = self.module.emit_bool(Op::INotEqual, &[value, zero]);
                let words = self.module.type_vector(word, 4);
                let ballot = self.module.emit_value(op, words, [scope, Operand::IdRef(predicate)]);
                // A test has fewer than 32 lanes.
                return Ok(self.module.extract(word, ballot, 0));
            }
            SubgroupKind::BroadcastFirst => {
                return Ok(self.module.emit_value(op, word, [scope, Operand::IdRef(value)]));
            }
            SubgroupKind::Shuffle(_) => {
                let source = source.ok_or(Rule::Internal("a shuffle from nowhere"))?;
                let operands = [scope, Operand::IdRef(value), Operand::IdRef(source)];
                return Ok(self.module.emit_value(op, word, operands));
            }
            SubgroupKind::Arithmetic(span, _) => {
                let over = Operand::GroupOperation(subgroup::group_operation(span));
                return Ok(self.module.emit_value(op, word, [scope, over, Operand::IdRef(value)]));
            }
            SubgroupKind::Broadcast(_)
            | SubgroupKind::ShuffleXor(_)
            | SubgroupKind::ShuffleUp(_)
            | SubgroupKind::ShuffleDown(_)
            | SubgroupKind::Rotate { .. }
            | SubgroupKind::QuadBroadcast(_)
            | SubgroupKind::QuadSwap(_) => {
                let numbers = match kind {
                    SubgroupKind::QuadSwap(direction) => vec![subgroup::quad_direction(direction)],
                    _ => kind.constant_arguments(),
                };
                let mut operands = vec![scope, Operand::IdRef(value)];
                for number in numbers {
                    operands.push(Operand::IdRef(self.module.constant(number)));
                }
                return Ok(self.module.emit_value(op, word, operands));
            }
        };
        Ok(self.module.emit_word(Op::Select, &[result, one, zero]))
    }
}
