//! Which lanes of a subgroup execute a subgroup operation, or a control barrier of the subgroup, together, as far as the text of a
//! test says it.

use std::ops::Range;

use crate::test::{Flow, InstructionKind, LabelId, Scope, Test, Thread, ThreadId};

/// Which instruction of the shader it is that the lanes of a tangle execute together: those of a subgroup that name the same one
/// have the same one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TangleInstance<'t> {
    /// A subgroup operation.
    Operation(&'t str),
    /// A control barrier whose execution scope is the subgroup.
    Barrier(&'t str),
}

/// A lane that executes an instruction with others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TangledLane {
    /// Its number in the subgroup.
    pub lane: u32,
    /// The thread that it is.
    pub thread: ThreadId,
    /// Index of the instruction in the thread.
    pub instruction: usize,
}

/// A piece of code with subgroup operations or barriers that a branch skips: `bne r0, 1, L`, what follows, and `L:`. Blocks of one
/// subgroup with one label are one piece of the shader.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GuardedBlock {
    /// Index of the branch in the thread; who takes it skips the block.
    pub branch: usize,
    /// Index of the label.
    pub end: usize,
    /// The label.
    pub label: LabelId,
    /// What it is made of.
    pub parts: Vec<BlockPart>,
}

/// A part of a block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BlockPart {
    /// Instructions that the lane executes by itself: for these it leaves the way of the others.
    Own(Range<usize>),
    /// The subgroup operation or barrier with this index.
    Together(usize),
    /// A block within the block.
    Block(GuardedBlock),
}

impl Thread {
    /// The outermost blocks, in order.
    pub fn blocks(&self) -> Vec<GuardedBlock> {
        let parts = self.parts(0..self.instructions.len());
        parts
            .into_iter()
            .filter_map(|part| if let BlockPart::Block(block) = part { Some(block) } else { None })
            .collect()
    }

    fn parts(&self, range: Range<usize>) -> Vec<BlockPart> {
        let mut parts: Vec<BlockPart> = Vec::new();
        let mut next = range.start;
        while next < range.end {
            let here = next;
            next += 1;
            let Some(kind) = self.instructions.get(here).map(|instruction| &instruction.kind) else { break };
            if kind.tangle_instance().is_some() {
                parts.push(BlockPart::Together(here));
            } else if let Some((label, end)) = self.block_behind(here).filter(|(_, end)| *end < range.end) {
                parts.push(BlockPart::Block(GuardedBlock {
                    branch: here,
                    end,
                    label,
                    parts: self.parts(next..end),
                }));
                next = end + 1;
            } else if let Some(BlockPart::Own(own)) = parts.last_mut()
                && own.end == here
            {
                own.end = next;
            } else if !matches!(kind, InstructionKind::Flow(Flow::Label(label)) if !self.is_head(*label, here))
            {
                parts.push(BlockPart::Own(here..next));
            }
        }
        parts
    }

    /// The label of the block that a branch skips, and its place.
    fn block_behind(&self, branch: usize) -> Option<(LabelId, usize)> {
        let InstructionKind::Flow(Flow::Branch { target, .. }) = self.instructions.get(branch)?.kind else {
            return None;
        };
        let end = self.place_of(target).filter(|end| *end > branch)?;
        let inside = self.instructions.get(branch..end)?;
        let is_shared = inside.iter().any(|found| found.kind.tangle_instance().is_some());
        (is_shared && !self.is_crossed(branch, end)).then_some((target, end))
    }

    /// Whether some jump leaves the code between a branch and its label, comes into it, or goes to that label as well.
    pub(crate) fn is_crossed(&self, branch: usize, end: usize) -> bool {
        let inside = |at: usize| branch < at && at < end;
        (0..).zip(&self.instructions).any(|(from, instruction)| {
            let InstructionKind::Flow(
                Flow::Branch { target, .. } | Flow::Goto(target) | Flow::BranchIf { target, .. },
            ) = instruction.kind
            else {
                return false;
            };
            let to = self.place_of(target);
            from != branch && to.is_some_and(|to| inside(from) != inside(to) || to == end)
        })
    }

    /// Whether a loop begins at a label.
    fn is_head(&self, label: LabelId, at: usize) -> bool {
        self.instructions.iter().skip(at).any(|instruction| {
            matches!(instruction.kind, InstructionKind::Flow(
                Flow::Branch { target, .. } | Flow::Goto(target) | Flow::BranchIf { target, .. },
            ) if target == label)
        })
    }

    /// Where a label stands.
    pub(crate) fn place_of(&self, label: LabelId) -> Option<usize> {
        self.instructions.iter().position(|i| i.kind == InstructionKind::Flow(Flow::Label(label)))
    }

    /// The name of a label.
    pub fn label_name(&self, label: LabelId) -> &str {
        self.labels.get(usize::from(label.0)).map_or("", |label| label.name.as_str())
    }
}

impl GuardedBlock {
    /// Whether an instruction stands in the block.
    pub fn contains(&self, instruction: usize) -> bool {
        self.branch < instruction && instruction < self.end
    }
}

impl Test {
    /// Whether some thread has a subgroup operation.
    pub fn has_subgroup_operations(&self) -> bool {
        let mut all = self.threads.iter().flat_map(|thread| &thread.instructions);
        all.any(|instruction| instruction.kind.subgroup_operation().is_some())
    }

    /// Whether a branch may skip some subgroup operation or barrier.
    pub fn has_blocks(&self) -> bool {
        let is_branch = |kind: &InstructionKind| matches!(kind, InstructionKind::Flow(Flow::Branch { .. }));
        self.threads.iter().any(|thread| {
            let has = |wanted: &dyn Fn(&InstructionKind) -> bool| {
                thread.instructions.iter().any(|instruction| wanted(&instruction.kind))
            };
            has(&is_branch) && has(&|kind| kind.tangle_instance().is_some()) && !thread.blocks().is_empty()
        })
    }

    /// Whether what the test says hangs on who is in a tangle: on all lanes of a subgroup that come to some instruction, and no others.
    pub fn has_tangles(&self) -> bool {
        self.has_subgroup_operations() || self.has_blocks()
    }

    /// The number of a thread in its subgroup: the threads of a subgroup are its first lanes, in the order of the columns.
    pub fn lane(&self, thread: ThreadId) -> u32 {
        let own = self.thread(thread).place;
        let before = self.threads.iter().take(usize::from(thread.0));
        before.filter(|other| other.place.shares(own, Scope::Subgroup)).count() as u32
    }

    /// The threads of the subgroup of a thread, itself included.
    pub fn lanes_beside(&self, thread: ThreadId) -> impl Iterator<Item = ThreadId> + '_ {
        let own = self.thread(thread).place;
        let numbered = (0..).map(ThreadId).zip(&self.threads);
        numbered
            .filter(move |(number, other)| *number == thread || other.place.shares(own, Scope::Subgroup))
            .map(|(number, _)| number)
    }

    /// The threads of the subgroup that have this instruction, by lane. Where no branch may skip it they are its tangle, since each
    /// of them comes to it once, whatever it reads.
    pub fn tangle(&self, thread: ThreadId, instance: TangleInstance<'_>) -> Vec<TangledLane> {
        let lanes = self.lanes_beside(thread).filter_map(|thread| {
            let instruction = self.thread(thread).place_of_instance(instance)?;
            Some(TangledLane { lane: self.lane(thread), thread, instruction })
        });
        lanes.collect()
    }
}

impl Thread {
    /// Where the thread has an instruction of the shader.
    pub fn place_of_instance(&self, instance: TangleInstance<'_>) -> Option<usize> {
        self.instructions.iter().position(|found| found.kind.tangle_instance() == Some(instance))
    }
}

impl InstructionKind {
    /// Which instruction of the shader it is, where the lanes of a tangle execute it together. A control barrier that a name or a number
    /// of arrivals tells who meets is none.
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
