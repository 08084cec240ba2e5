//! Tangles: the lanes of a subgroup that execute a subgroup operation or a subgroup barrier together, as far
//! as the text determines it.

use std::ops::Range;

use crate::test::{Flow, InstructionKind, LabelId, Operand, RegisterInit, Scope, Test, Thread, ThreadId};

/// Identity of a shader instruction that the lanes of a tangle execute together.
///
/// Lanes of one subgroup with an equal instance execute the same instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TangleInstance<'t> {
    /// A subgroup operation.
    Operation(&'t str),
    /// A control barrier whose execution scope is the subgroup.
    Barrier(&'t str),
}

/// A lane that executes an instruction together with others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TangledLane {
    /// Its number in the subgroup.
    pub lane: u32,
    /// Its thread.
    pub thread: ThreadId,
    /// Index of the instruction in the thread.
    pub instruction: usize,
}

/// A piece of code with subgroup operations or barriers that a branch skips: `bne r0, 1, L`, the code, and
/// `L:`.
///
/// Blocks of one subgroup with the same label are one piece of the shader.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GuardedBlock {
    /// Index of the branch in the thread; a taken branch skips the block.
    pub branch: usize,
    /// Index of the label.
    pub end: usize,
    /// The label.
    pub label: LabelId,
    /// Its contents, in order.
    pub parts: Vec<BlockPart>,
}

/// A part of a block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BlockPart {
    /// Instructions that only this lane executes, in divergent control flow.
    LaneLocal(Range<usize>),
    /// The subgroup operation or barrier with this index.
    Converged(usize),
    /// A block within the block.
    Block(GuardedBlock),
}

impl Thread {
    /// Returns the outermost blocks, in order.
    pub fn guarded_blocks(&self) -> Vec<GuardedBlock> {
        let parts = self.block_parts(0..self.instructions.len());
        parts
            .into_iter()
            .filter_map(|part| if let BlockPart::Block(block) = part { Some(block) } else { None })
            .collect()
    }

    fn block_parts(&self, range: Range<usize>) -> Vec<BlockPart> {
        let mut parts: Vec<BlockPart> = Vec::new();
        let mut next = range.start;
        while next < range.end {
            let current = next;
            next += 1;
            let Some(kind) = self.instructions.get(current).map(|instruction| &instruction.kind) else {
                break;
            };
            if kind.tangle_instance().is_some() {
                parts.push(BlockPart::Converged(current));
            } else if let Some((label, end)) = self.skipped_block(current).filter(|(_, end)| *end < range.end)
            {
                parts.push(BlockPart::Block(GuardedBlock {
                    branch: current,
                    end,
                    label,
                    parts: self.block_parts(next..end),
                }));
                next = end + 1;
            } else if let Some(BlockPart::LaneLocal(own)) = parts.last_mut()
                && own.end == current
            {
                own.end = next;
            } else if !matches!(kind, InstructionKind::Flow(Flow::Label(label)) if !self.is_loop_head(*label, current))
            {
                parts.push(BlockPart::LaneLocal(current..next));
            }
        }
        parts
    }

    /// Returns the label of the block that a branch skips, and the label's index.
    fn skipped_block(&self, branch: usize) -> Option<(LabelId, usize)> {
        let InstructionKind::Flow(Flow::Branch { target, .. }) = self.instructions.get(branch)?.kind else {
            return None;
        };
        let end = self.label_index(target).filter(|end| *end > branch)?;
        let skipped = self.instructions.get(branch..end)?;
        let is_shared = skipped.iter().any(|found| found.kind.tangle_instance().is_some());
        (is_shared && !self.is_crossed(branch, end)).then_some((target, end))
    }

    /// Returns true if another jump leaves or enters the code between a branch and its label, or targets that
    /// label.
    pub(crate) fn is_crossed(&self, branch: usize, end: usize) -> bool {
        let is_inside = |at: usize| branch < at && at < end;
        (0..).zip(&self.instructions).any(|(from, instruction)| {
            let Some(target) = instruction.kind.jump_target() else { return false };
            let to = self.label_index(target);
            from != branch && to.is_some_and(|to| is_inside(from) != is_inside(to) || to == end)
        })
    }

    /// Returns true if a loop begins at a label.
    fn is_loop_head(&self, label: LabelId, at: usize) -> bool {
        self.instructions.iter().skip(at).any(|instruction| instruction.kind.jump_target() == Some(label))
    }

    /// Returns true if constants and initial values decide that a branch is taken.
    fn always_takes(&self, branch: usize) -> bool {
        let constant = |operand: Operand| match operand {
            Operand::Constant(value) => Some(value),
            Operand::Register(register) => {
                let assigned = |instruction: &crate::test::Instruction| {
                    instruction.kind.destinations().any(|found| found == register)
                };
                let init = self.registers.get(usize::from(register.0)).map(|found| found.init);
                match init {
                    Some(RegisterInit::Constant(value)) if !self.instructions.iter().any(assigned) => {
                        Some(value)
                    }
                    _ => None,
                }
            }
        };
        match self.instructions.get(branch).map(|instruction| &instruction.kind) {
            Some(InstructionKind::Flow(Flow::Branch { relation, left, right, .. })) => {
                constant(*left).zip(constant(*right)).is_some_and(|(left, right)| relation.holds(left, right))
            }
            _ => false,
        }
    }

    /// Returns the index of a label among the instructions.
    pub fn label_index(&self, label: LabelId) -> Option<usize> {
        self.instructions.iter().position(|i| i.kind == InstructionKind::Flow(Flow::Label(label)))
    }

    /// Returns the name of a label.
    pub fn label_name(&self, label: LabelId) -> &str {
        self.labels.get(usize::from(label.0)).map_or("", |label| label.name.as_str())
    }
}

impl GuardedBlock {
    /// Returns the blocks that are direct parts of this one.
    pub fn inner_blocks(&self) -> impl Iterator<Item = &GuardedBlock> {
        self.parts.iter().filter_map(|part| match part {
            BlockPart::Block(inner) => Some(inner),
            BlockPart::LaneLocal(_) | BlockPart::Converged(_) => None,
        })
    }

    /// Returns true if the block contains an instruction.
    pub fn contains(&self, instruction: usize) -> bool {
        self.branch < instruction && instruction < self.end
    }
}

impl Test {
    /// Returns true if some thread has a subgroup operation.
    pub fn has_subgroup_operations(&self) -> bool {
        let mut all = self.threads.iter().flat_map(|thread| &thread.instructions);
        all.any(|instruction| instruction.kind.subgroup_operation().is_some())
    }

    /// Returns true if a branch may skip some subgroup operation or barrier.
    pub fn has_guarded_blocks(&self) -> bool {
        let is_branch = |kind: &InstructionKind| matches!(kind, InstructionKind::Flow(Flow::Branch { .. }));
        self.threads.iter().any(|thread| {
            let has_instruction = |predicate: &dyn Fn(&InstructionKind) -> bool| {
                thread.instructions.iter().any(|instruction| predicate(&instruction.kind))
            };
            has_instruction(&is_branch)
                && has_instruction(&|kind| kind.tangle_instance().is_some())
                && !thread.guarded_blocks().is_empty()
        })
    }

    /// Returns true if the meaning of the test depends on which lanes form a tangle.
    pub fn has_tangles(&self) -> bool {
        self.has_subgroup_operations() || self.has_guarded_blocks()
    }

    /// Returns true if a tangle depends on uniform control flow in a block that a whole workgroup may enter.
    ///
    /// Such a block has a private instruction or an inner block before a shared one, and the threads of the
    /// workgroup reconverge in between. No other rule makes them reconverge there.
    pub fn reconverges_in_blocks(&self) -> bool {
        if self.metadata.maximal_reconvergence {
            return false;
        }
        (0..).map(ThreadId).zip(&self.threads).any(|(id, own)| {
            let outermost: Vec<(ThreadId, Vec<GuardedBlock>)> = (0..)
                .map(ThreadId)
                .zip(&self.threads)
                .filter(|(other, thread)| {
                    *other == id || thread.place.shares_scope(own.place, Scope::Workgroup)
                })
                .map(|(other, thread)| (other, thread.guarded_blocks()))
                .collect();
            let copies: Vec<(ThreadId, &[GuardedBlock])> =
                outermost.iter().map(|(thread, blocks)| (*thread, blocks.as_slice())).collect();
            own.guarded_blocks()
                .iter()
                .any(|block| self.reconverges_in_block(own.label_name(block.label), &copies))
        })
    }

    /// Returns true if the block with this label does so; `threads` are those of one workgroup.
    fn reconverges_in_block(&self, label: &str, threads: &[(ThreadId, &[GuardedBlock])]) -> bool {
        let copy = |(id, blocks): &(ThreadId, &[GuardedBlock])| {
            let thread = self.thread(*id);
            let block = blocks.iter().find(|block| thread.label_name(block.label) == label)?;
            (!thread.always_takes(block.branch)).then(|| (*id, block.clone()))
        };
        let Some(copies) = threads.iter().map(copy).collect::<Option<Vec<_>>>() else { return false };
        let is_shared = |part: &BlockPart| !matches!(part, BlockPart::LaneLocal(_));
        let has_divergent_prefix = |(_, block): &(ThreadId, GuardedBlock)| {
            let mut rest = block.parts.iter().skip_while(|part| matches!(part, BlockPart::Converged(_)));
            rest.next().is_some() && rest.any(is_shared)
        };
        if copies.iter().any(has_divergent_prefix) {
            return true;
        }
        let inner: Vec<(ThreadId, Vec<GuardedBlock>)> =
            copies.iter().map(|(id, block)| (*id, block.inner_blocks().cloned().collect())).collect();
        let threads: Vec<(ThreadId, &[GuardedBlock])> =
            inner.iter().map(|(id, blocks)| (*id, blocks.as_slice())).collect();
        inner.iter().any(|(id, blocks)| {
            blocks
                .iter()
                .any(|block| self.reconverges_in_block(self.thread(*id).label_name(block.label), &threads))
        })
    }

    /// Returns the index of a thread in its subgroup.
    ///
    /// The threads of a subgroup are its first lanes, in the order of the columns.
    pub fn lane_index(&self, thread: ThreadId) -> u32 {
        let own = self.thread(thread).place;
        let before = self.threads.iter().take(usize::from(thread.0));
        before.filter(|other| other.place.shares_scope(own, Scope::Subgroup)).count() as u32
    }

    /// Returns the threads of the subgroup of a thread, including itself.
    pub fn subgroup_threads(&self, thread: ThreadId) -> impl Iterator<Item = ThreadId> + '_ {
        let own = self.thread(thread).place;
        let numbered = (0..).map(ThreadId).zip(&self.threads);
        numbered
            .filter(move |(number, other)| {
                *number == thread || other.place.shares_scope(own, Scope::Subgroup)
            })
            .map(|(number, _)| number)
    }

    /// Returns the threads of the subgroup that have this instruction, by lane.
    ///
    /// If no branch may skip it, they are its tangle: each of them executes it once, independent of read values.
    pub fn tangle_lanes(&self, thread: ThreadId, instance: TangleInstance<'_>) -> Vec<TangledLane> {
        let lanes = self.subgroup_threads(thread).filter_map(|thread| {
            let instruction = self.thread(thread).instance_index(instance)?;
            Some(TangledLane { lane: self.lane_index(thread), thread, instruction })
        });
        lanes.collect()
    }
}

impl Thread {
    /// Returns the index of the instruction with this instance in the thread.
    pub fn instance_index(&self, instance: TangleInstance<'_>) -> Option<usize> {
        self.instructions.iter().position(|found| found.kind.tangle_instance() == Some(instance))
    }
}

impl InstructionKind {
    /// Returns the identity of an instruction that the lanes of a tangle execute together.
    ///
    /// `None` for a control barrier whose participants are given by a name or by a number of arrivals.
    pub fn tangle_instance(&self) -> Option<TangleInstance<'_>> {
        match self {
            InstructionKind::Subgroup(operation) => Some(TangleInstance::Operation(&operation.id)),
            InstructionKind::ControlBarrier(barrier)
                if barrier.execution_scope == Scope::Subgroup
                    && barrier.resource.is_none()
                    && barrier.quorum.is_none() =>
            {
                Some(TangleInstance::Barrier(&barrier.id))
            }
            _ => None,
        }
    }
}
