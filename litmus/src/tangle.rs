//! Which lanes of a subgroup execute a subgroup operation together, as far as the text of a test says it.

use std::ops::Range;

use crate::test::{Flow, InstructionKind, LabelId, Scope, Test, Thread, ThreadId};

/// A lane that executes a subgroup operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TangledLane {
    /// Its number in the subgroup.
    pub lane: u32,
    /// The thread that it is.
    pub thread: ThreadId,
    /// Index of the operation in the thread.
    pub instruction: usize,
}

/// A piece of code with subgroup operations that a branch skips: `bne r0, 1, L`, what follows, and `L:`. Blocks of one subgroup
/// with one label are one piece of the shader.
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
    /// The subgroup operation with this index.
    Operation(usize),
    /// A block within the block.
    Block(GuardedBlock),
}

impl Thread {
    /// The outermost blocks with subgroup operations, in order.
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
            if kind.subgroup_operation().is_some() {
                parts.push(BlockPart::Operation(here));
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
            } else if !matches!(kind, InstructionKind::Flow(Flow::Label(_))) {
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
        inside.iter().any(|found| found.kind.subgroup_operation().is_some()).then_some((target, end))
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

    /// Whether a branch may skip some subgroup operation.
    pub fn has_guarded_operations(&self) -> bool {
        self.has_subgroup_operations() && self.threads.iter().any(|thread| !thread.blocks().is_empty())
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

    /// The threads of the subgroup that have this operation, by lane. Where no branch may skip it they are its tangle, since each
    /// of them comes to it once, whatever it reads.
    pub fn tangle(&self, thread: ThreadId, id: &str) -> Vec<TangledLane> {
        let lanes = self.lanes_beside(thread).filter_map(|thread| {
            let instruction = self.thread(thread).instructions.iter().position(|instruction| {
                instruction.kind.subgroup_operation().is_some_and(|operation| operation.id == id)
            })?;
            Some(TangledLane { lane: self.lane(thread), thread, instruction })
        });
        lanes.collect()
    }
}
