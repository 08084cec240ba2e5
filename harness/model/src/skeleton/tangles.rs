//! Tangles: the sets of lanes that execute a subgroup operation or subgroup barrier together.
//!
//! Outside blocks, control flow is uniform and all lanes with the instruction execute it together. It stays
//! uniform in a block that every thread of the workgroup enters (SPIR-V, "Uniform Control Flow"). Lanes that
//! enter any other block converge at its start. Inside, they diverge when they skip different blocks or
//! execute private instructions. Readings of the specification differ in whether they reconverge afterwards,
//! so a choice of paths can have several tangle assignments.

use litmus::{BlockPart, GuardedBlock, Scope, TangleInstance, TangledLane, Test, Thread, ThreadId};

use crate::PredictError;
use crate::cat::options::TangleRule;
use crate::path::ThreadPath;

/// Bound on the tangle assignments of one choice of paths.
const MAX_TANGLE_ASSIGNMENTS: usize = 4096;

/// The tangles of all operations, and of the barriers that a branch may skip.
#[derive(Clone, Debug, Default)]
pub(super) struct Tangles(Vec<Vec<TangledLane>>);

impl Tangles {
    /// Returns the lanes in a lane's tangle at an instruction; empty for a barrier that no branch skips.
    pub(super) fn lanes_with(&self, thread: ThreadId, instruction: u16) -> &[TangledLane] {
        let is_lane =
            |lane: &TangledLane| lane.thread == thread && lane.instruction == usize::from(instruction);
        self.0.iter().find(|tangle| tangle.iter().any(is_lane)).map_or(&[], Vec::as_slice)
    }

    /// Returns every tangle assignment of these paths under a reading of the specification.
    pub(super) fn enumerate_assignments(
        test: &Test,
        paths: &[&ThreadPath],
        reading: TangleRule,
    ) -> Result<Vec<Tangles>, PredictError> {
        if !test.has_tangles() {
            return Ok(vec![Tangles::default()]);
        }
        let reading = if test.metadata.maximal_reconvergence { TangleRule::Together } else { reading };
        let blocks: Vec<Vec<GuardedBlock>> = test.threads.iter().map(Thread::guarded_blocks).collect();
        // Operations outside all blocks are in uniform control flow: one tangle, independent of the
        // paths.
        let mut fixed = Tangles::default();
        for (thread, blocks) in (0..).map(ThreadId).zip(&blocks) {
            for (at, instruction) in test.thread(thread).instructions.iter().enumerate() {
                let Some(instance @ TangleInstance::Operation(_)) = instruction.kind.tangle_instance() else {
                    continue;
                };
                let is_assigned = !fixed.lanes_with(thread, at as u16).is_empty();
                if !is_assigned && !blocks.iter().any(|block| block.contains(at)) {
                    fixed.0.push(test.tangle_lanes(thread, instance));
                }
            }
        }
        let mut choices = vec![fixed];
        let mut visited: Vec<(ThreadId, usize)> = Vec::new();
        for (thread, thread_blocks) in (0..).map(ThreadId).zip(&blocks) {
            for block in thread_blocks {
                // The first lane that has the block walks it for all lanes of its subgroup. A label
                // names the copies of one block.
                if visited.contains(&(thread, block.branch)) {
                    continue;
                }
                let name = test.thread(thread).label_name(block.label);
                let copies: Vec<BlockCopy<'_>> = test
                    .subgroup_threads(thread)
                    .filter_map(|thread| {
                        let has_label =
                            |block: &&GuardedBlock| test.thread(thread).label_name(block.label) == name;
                        let block = blocks.get(usize::from(thread.0))?.iter().find(has_label)?;
                        Some(BlockCopy { thread, block })
                    })
                    .collect();
                visited.extend(copies.iter().map(|column| (column.thread, column.block.branch)));
                let enumerator = TangleEnumerator { test, paths, reading };
                let entering_copies = enumerator.entering_lanes(&copies);
                let workgroup = enumerator.workgroup_of(thread);
                let uniform = enumerator.uniform_copies(name, &workgroup, |thread| {
                    blocks.get(usize::from(thread.0)).into_iter().flatten().collect()
                });
                let lanes: Vec<ThreadId> = entering_copies.iter().map(|column| column.thread).collect();
                let states = choices
                    .into_iter()
                    .map(|tangles| TangleAssignment { tangles, groups: vec![lanes.clone()] });
                let states =
                    enumerator.execute_block(&entering_copies, uniform.as_deref(), states.collect())?;
                choices = states.into_iter().map(|state| state.tangles).collect();
            }
        }
        Ok(choices)
    }
}

/// A lane's copy of a block.
#[derive(Clone, Copy)]
struct BlockCopy<'b> {
    thread: ThreadId,
    block: &'b GuardedBlock,
}

/// Partial tangle assignment.
#[derive(Clone)]
struct TangleAssignment {
    tangles: Tangles,
    /// Groups of lanes that execute together.
    groups: Vec<Vec<ThreadId>>,
}

impl TangleAssignment {
    /// Splits each group into lanes with equal keys.
    fn split_groups<K: PartialEq>(&mut self, key: impl Fn(ThreadId) -> K) {
        let mut groups: Vec<Vec<ThreadId>> = Vec::new();
        for group in std::mem::take(&mut self.groups) {
            let begin = groups.len();
            for thread in group {
                match groups.get_mut(begin..).into_iter().flatten().find(|way| key(way[0]) == key(thread)) {
                    Some(way) => way.push(thread),
                    None => groups.push(vec![thread]),
                }
            }
        }
        self.groups = groups;
    }
}

struct TangleEnumerator<'a> {
    test: &'a Test,
    paths: &'a [&'a ThreadPath],
    reading: TangleRule,
}

/// A part of a block that its lanes have in common.
enum CommonPart<'b> {
    Together(Vec<(ThreadId, usize)>),
    Block(Vec<BlockCopy<'b>>),
}

impl TangleEnumerator<'_> {
    /// Returns the lanes that enter a block, or may still enter it. The others wait for the latter.
    fn entering_lanes<'b>(&self, copies: &[BlockCopy<'b>]) -> Vec<BlockCopy<'b>> {
        let enters = |column: &&BlockCopy<'b>| {
            let path = self.paths[usize::from(column.thread.0)];
            !path.taken_branches.contains(&(column.block.branch as u16))
        };
        copies.iter().filter(enters).copied().collect()
    }

    /// Returns the threads of the workgroup of a thread, itself included.
    fn workgroup_of(&self, thread: ThreadId) -> Vec<ThreadId> {
        let own = self.test.thread(thread).place;
        let numbered = (0..).map(ThreadId).zip(&self.test.threads);
        let members = numbered
            .filter(|(number, other)| *number == thread || other.place.shares_scope(own, Scope::Workgroup));
        members.map(|(number, _)| number).collect()
    }

    /// Returns each thread's copy of the block with a label if all of these threads enter it.
    ///
    /// `blocks_of` lists the blocks of a thread that may be that copy.
    fn uniform_copies<'b>(
        &self,
        label: &str,
        threads: &[ThreadId],
        blocks_of: impl Fn(ThreadId) -> Vec<&'b GuardedBlock>,
    ) -> Option<Vec<BlockCopy<'b>>> {
        let copy = |thread: &ThreadId| {
            let has_label =
                |block: &&GuardedBlock| self.test.thread(*thread).label_name(block.label) == label;
            let block = blocks_of(*thread).into_iter().find(has_label)?;
            Some(BlockCopy { thread: *thread, block })
        };
        let copies: Vec<BlockCopy<'b>> = threads.iter().map(copy).collect::<Option<_>>()?;
        (self.entering_lanes(&copies).len() == copies.len()).then_some(copies)
    }

    /// Executes a block with the lanes that have entered it.
    ///
    /// `uniform` has the copies of all threads of the workgroup if control flow is uniform in the block. Then
    /// every block and private instruction in it starts in uniform control flow, and all lanes reconverge
    /// after it.
    fn execute_block(
        &self,
        copies: &[BlockCopy<'_>],
        uniform: Option<&[BlockCopy<'_>]>,
        mut states: Vec<TangleAssignment>,
    ) -> Result<Vec<TangleAssignment>, PredictError> {
        let Some(first) = copies.first() else { return Ok(states) };
        let is_common = |part: &&BlockPart| !matches!(part, BlockPart::LaneLocal(_));
        let count = first.block.parts.iter().filter(is_common).count();
        for number in 0..=count {
            // Each lane has at most one private part between the previous common part and this one.
            let diverging: Vec<ThreadId> = copies
                .iter()
                .filter(|column| {
                    let mut before = 0;
                    column.block.parts.iter().any(|part| match part {
                        BlockPart::LaneLocal(_) => before == number,
                        BlockPart::Converged(_) | BlockPart::Block(_) => {
                            before += 1;
                            false
                        }
                    })
                })
                .map(|column| column.thread)
                .collect();
            for state in &mut states {
                if uniform.is_some() {
                    state.groups = vec![copies.iter().map(|column| column.thread).collect()];
                } else {
                    // A lane with private code in this gap diverges from all others, each lane on
                    // its own.
                    state.split_groups(|thread| diverging.contains(&thread).then_some(thread));
                }
            }
            let parts: Vec<(ThreadId, &BlockPart)> = copies
                .iter()
                .filter_map(|column| {
                    Some((column.thread, column.block.parts.iter().filter(is_common).nth(number)?))
                })
                .collect();
            match common_parts(&parts) {
                Some(CommonPart::Together(lanes)) => states = self.execute_together(&lanes, states)?,
                Some(CommonPart::Block(inner)) => {
                    let entering = self.entering_lanes(&inner);
                    let enters = |thread: ThreadId| entering.iter().any(|column| column.thread == thread);
                    for state in &mut states {
                        state.split_groups(enters);
                    }
                    let all_enter = uniform.zip(inner.first()).and_then(|(outer, first)| {
                        let label = self.test.thread(first.thread).label_name(first.block.label);
                        let threads: Vec<ThreadId> = outer.iter().map(|column| column.thread).collect();
                        self.uniform_copies(label, &threads, |thread| {
                            let own = outer.iter().filter(|column| column.thread == thread);
                            own.flat_map(|column| column.block.inner_blocks()).collect()
                        })
                    });
                    states = self.execute_block(&entering, all_enter.as_deref(), states)?;
                }
                None => {}
            }
        }
        Ok(states)
    }

    /// Executes an instruction with every grouping that the reading allows.
    fn execute_together(
        &self,
        lanes: &[(ThreadId, usize)],
        states: Vec<TangleAssignment>,
    ) -> Result<Vec<TangleAssignment>, PredictError> {
        let mut next = Vec::new();
        for state in states {
            let has_arrived = |way: &Vec<ThreadId>| lanes.iter().any(|(thread, _)| way.contains(thread));
            // Lanes that do not reach the instruction stay in the groups that they were in.
            let (arriving, remaining): (Vec<_>, Vec<_>) = state.groups.into_iter().partition(has_arrived);
            for joined in possible_joins(&arriving, self.reading) {
                let mut tangles = state.tangles.clone();
                for way in &joined {
                    let mut tangle: Vec<TangledLane> = lanes
                        .iter()
                        .filter(|(thread, _)| way.contains(thread))
                        .map(|(thread, instruction)| TangledLane {
                            lane: self.test.lane_index(*thread),
                            thread: *thread,
                            instruction: *instruction,
                        })
                        .collect();
                    tangle.sort_unstable_by_key(|lane| lane.lane);
                    tangles.0.push(tangle);
                }
                let ways = joined.into_iter().chain(remaining.iter().cloned()).collect();
                next.push(TangleAssignment { tangles, groups: ways });
                if next.len() > MAX_TANGLE_ASSIGNMENTS {
                    return Err(PredictError::TooManyTangles { bound: MAX_TANGLE_ASSIGNMENTS });
                }
            }
        }
        Ok(next)
    }
}

/// Combines the parts of the lanes at one position of a block.
fn common_parts<'b>(parts: &[(ThreadId, &'b BlockPart)]) -> Option<CommonPart<'b>> {
    let together = parts.iter().filter_map(|(thread, part)| match part {
        BlockPart::Converged(at) => Some((*thread, *at)),
        BlockPart::LaneLocal(_) | BlockPart::Block(_) => None,
    });
    let together: Vec<_> = together.collect();
    if !together.is_empty() {
        return Some(CommonPart::Together(together));
    }
    let blocks = parts.iter().filter_map(|(thread, part)| match part {
        BlockPart::Block(block) => Some(BlockCopy { thread: *thread, block }),
        BlockPart::LaneLocal(_) | BlockPart::Converged(_) => None,
    });
    let blocks: Vec<_> = blocks.collect();
    (!blocks.is_empty()).then_some(CommonPart::Block(blocks))
}

/// Returns the possible groupings of lanes that arrive along different paths.
fn possible_joins(groups: &[Vec<ThreadId>], reading: TangleRule) -> Vec<Vec<Vec<ThreadId>>> {
    match reading {
        TangleRule::Apart => vec![groups.to_vec()],
        TangleRule::Together => vec![vec![groups.concat()]],
        TangleRule::Any => {
            let Some((last, before)) = groups.split_last() else { return vec![Vec::new()] };
            let mut all = Vec::new();
            // All set partitions of the groups, by recursion: the last group joins an earlier block
            // of the partition or forms its own. Their number grows as the Bell numbers, hence
            // `MAX_TANGLE_ASSIGNMENTS`.
            for joined in possible_joins(before, reading) {
                for target in 0..joined.len() {
                    let mut joined = joined.clone();
                    joined[target].extend(last);
                    all.push(joined);
                }
                all.push([joined, vec![last.clone()]].concat());
            }
            all
        }
    }
}
