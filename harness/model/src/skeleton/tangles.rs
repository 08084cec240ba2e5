//! Tangles: the sets of lanes that execute a subgroup operation or subgroup barrier together.
//!
//! Outside blocks, control flow is uniform and all lanes with the instruction execute it together. It stays
//! uniform in a block that every thread of the workgroup enters (SPIR-V, "Uniform Control Flow"). Lanes that
//! enter any other block converge at its start. Inside, they diverge when they skip different blocks or
//! execute private instructions. Readings of the specification differ in whether they reconverge afterwards,
//! so a choice of paths can have several tangle assignments.

use litmus::{BlockPart, GuardedBlock, Scope, TangleInstance, TangledLane, Test, Thread, ThreadId};

use crate::PredictError;
use crate::cat::options::Tangling;
use crate::path::ThreadPath;

/// Bound on the tangle assignments of one choice of paths.
const MAX_CHOICES: usize = 4096;

/// The tangles of all operations, and of the barriers that a branch may skip.
#[derive(Clone, Debug, Default)]
pub(super) struct Tangles(Vec<Vec<TangledLane>>);

impl Tangles {
    /// The lanes that a lane executes an instruction with, itself included; none for a barrier that no branch skips.
    pub(super) fn of(&self, thread: ThreadId, instruction: u16) -> &[TangledLane] {
        let is_it =
            |lane: &TangledLane| lane.thread == thread && lane.instruction == usize::from(instruction);
        self.0.iter().find(|tangle| tangle.iter().any(is_it)).map_or(&[], Vec::as_slice)
    }

    /// Every choice of tangles that a reading has for some paths.
    pub(super) fn choices(
        test: &Test,
        paths: &[&ThreadPath],
        reading: Tangling,
    ) -> Result<Vec<Tangles>, PredictError> {
        if !test.has_tangles() {
            return Ok(vec![Tangles::default()]);
        }
        let reading = if test.metadata.maximal_reconvergence { Tangling::Together } else { reading };
        let blocks: Vec<Vec<GuardedBlock>> = test.threads.iter().map(Thread::guarded_blocks).collect();
        // Operations outside all blocks are in uniform control flow: one tangle, independent of the
        // paths.
        let mut fixed = Tangles::default();
        for (thread, blocks) in (0..).map(ThreadId).zip(&blocks) {
            for (at, instruction) in test.thread(thread).instructions.iter().enumerate() {
                let Some(instance @ TangleInstance::Operation(_)) = instruction.kind.tangle_instance() else {
                    continue;
                };
                let known = !fixed.of(thread, at as u16).is_empty();
                if !known && !blocks.iter().any(|block| block.contains(at)) {
                    fixed.0.push(test.tangle_lanes(thread, instance));
                }
            }
        }
        let mut choices = vec![fixed];
        let mut walked: Vec<(ThreadId, usize)> = Vec::new();
        for (thread, own) in (0..).map(ThreadId).zip(&blocks) {
            for block in own {
                // The first lane that has the block walks it for all lanes of its subgroup. A label
                // names the copies of one block.
                if walked.contains(&(thread, block.branch)) {
                    continue;
                }
                let name = test.thread(thread).label_name(block.label);
                let columns: Vec<BlockCopy<'_>> = test
                    .subgroup_threads(thread)
                    .filter_map(|thread| {
                        let is_it =
                            |block: &&GuardedBlock| test.thread(thread).label_name(block.label) == name;
                        let block = blocks.get(usize::from(thread.0))?.iter().find(is_it)?;
                        Some(BlockCopy { thread, block })
                    })
                    .collect();
                walked.extend(columns.iter().map(|column| (column.thread, column.block.branch)));
                let walker = TangleWalker { test, paths, reading };
                let columns = walker.entering(&columns);
                let workgroup = walker.workgroup_of(thread);
                let uniform = walker.if_all_enter(name, &workgroup, |thread| {
                    blocks.get(usize::from(thread.0)).into_iter().flatten().collect()
                });
                let begin: Vec<ThreadId> = columns.iter().map(|column| column.thread).collect();
                let states = choices
                    .into_iter()
                    .map(|tangles| TangleAssignment { tangles, ways: vec![begin.clone()] });
                let states = walker.walk(&columns, uniform.as_deref(), states.collect())?;
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
    /// Lanes that are together, way by way.
    ways: Vec<Vec<ThreadId>>,
}

impl TangleAssignment {
    /// Leaves lanes together only where `key` is the same.
    fn part<K: PartialEq>(&mut self, key: impl Fn(ThreadId) -> K) {
        let mut ways: Vec<Vec<ThreadId>> = Vec::new();
        for way in std::mem::take(&mut self.ways) {
            let begin = ways.len();
            for thread in way {
                match ways.get_mut(begin..).into_iter().flatten().find(|way| key(way[0]) == key(thread)) {
                    Some(way) => way.push(thread),
                    None => ways.push(vec![thread]),
                }
            }
        }
        self.ways = ways;
    }
}

struct TangleWalker<'a> {
    test: &'a Test,
    paths: &'a [&'a ThreadPath],
    reading: Tangling,
}

/// A part of a block that its lanes have in common.
enum Common<'b> {
    Together(Vec<(ThreadId, usize)>),
    Block(Vec<BlockCopy<'b>>),
}

impl TangleWalker<'_> {
    /// Returns the lanes that enter a block, or may still enter it. The others wait for the latter.
    fn entering<'b>(&self, columns: &[BlockCopy<'b>]) -> Vec<BlockCopy<'b>> {
        let enters = |column: &&BlockCopy<'b>| {
            let path = self.paths[usize::from(column.thread.0)];
            !path.taken_branches.contains(&(column.block.branch as u16))
        };
        columns.iter().filter(enters).copied().collect()
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
    fn if_all_enter<'b>(
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
        (self.entering(&copies).len() == copies.len()).then_some(copies)
    }

    /// Executes a block with the lanes that have entered it.
    ///
    /// `uniform` has the copies of all threads of the workgroup if control flow is uniform in the block. Then
    /// every block and private instruction in it starts in uniform control flow, and all lanes reconverge
    /// after it.
    fn walk(
        &self,
        columns: &[BlockCopy<'_>],
        uniform: Option<&[BlockCopy<'_>]>,
        mut states: Vec<TangleAssignment>,
    ) -> Result<Vec<TangleAssignment>, PredictError> {
        let Some(first) = columns.first() else { return Ok(states) };
        let is_common = |part: &&BlockPart| !matches!(part, BlockPart::Own(_));
        let count = first.block.parts.iter().filter(is_common).count();
        for number in 0..=count {
            // Each lane has at most one private part between the previous common part and this one.
            let alone: Vec<ThreadId> = columns
                .iter()
                .filter(|column| {
                    let mut before = 0;
                    column.block.parts.iter().any(|part| match part {
                        BlockPart::Own(_) => before == number,
                        BlockPart::Together(_) | BlockPart::Block(_) => {
                            before += 1;
                            false
                        }
                    })
                })
                .map(|column| column.thread)
                .collect();
            for state in &mut states {
                if uniform.is_some() {
                    state.ways = vec![columns.iter().map(|column| column.thread).collect()];
                } else {
                    // A lane with private code in this gap diverges from all others, each lane on
                    // its own.
                    state.part(|thread| alone.contains(&thread).then_some(thread));
                }
            }
            let here: Vec<(ThreadId, &BlockPart)> = columns
                .iter()
                .filter_map(|column| {
                    Some((column.thread, column.block.parts.iter().filter(is_common).nth(number)?))
                })
                .collect();
            match common_parts(&here) {
                Some(Common::Together(lanes)) => states = self.meet(&lanes, states)?,
                Some(Common::Block(inner)) => {
                    let entering = self.entering(&inner);
                    let enters = |thread: ThreadId| entering.iter().any(|column| column.thread == thread);
                    for state in &mut states {
                        state.part(enters);
                    }
                    let all_enter = uniform.zip(inner.first()).and_then(|(outer, first)| {
                        let label = self.test.thread(first.thread).label_name(first.block.label);
                        let threads: Vec<ThreadId> = outer.iter().map(|column| column.thread).collect();
                        self.if_all_enter(label, &threads, |thread| {
                            let own = outer.iter().filter(|column| column.thread == thread);
                            own.flat_map(|column| column.block.inner_blocks()).collect()
                        })
                    });
                    states = self.walk(&entering, all_enter.as_deref(), states)?;
                }
                None => {}
            }
        }
        Ok(states)
    }

    /// Executes an instruction in every way that the reading has.
    fn meet(
        &self,
        lanes: &[(ThreadId, usize)],
        states: Vec<TangleAssignment>,
    ) -> Result<Vec<TangleAssignment>, PredictError> {
        let mut next = Vec::new();
        for state in states {
            let is_there = |way: &Vec<ThreadId>| lanes.iter().any(|(thread, _)| way.contains(thread));
            // Lanes that do not reach the instruction stay in the groups that they were in.
            let (there, elsewhere): (Vec<_>, Vec<_>) = state.ways.into_iter().partition(is_there);
            for joined in possible_joins(&there, self.reading) {
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
                let ways = joined.into_iter().chain(elsewhere.iter().cloned()).collect();
                next.push(TangleAssignment { tangles, ways });
                if next.len() > MAX_CHOICES {
                    return Err(PredictError::TooManyTangles { bound: MAX_CHOICES });
                }
            }
        }
        Ok(next)
    }
}

/// The same part of each lane.
fn common_parts<'b>(here: &[(ThreadId, &'b BlockPart)]) -> Option<Common<'b>> {
    let together = here.iter().filter_map(|(thread, part)| match part {
        BlockPart::Together(at) => Some((*thread, *at)),
        BlockPart::Own(_) | BlockPart::Block(_) => None,
    });
    let together: Vec<_> = together.collect();
    if !together.is_empty() {
        return Some(Common::Together(together));
    }
    let blocks = here.iter().filter_map(|(thread, part)| match part {
        BlockPart::Block(block) => Some(BlockCopy { thread: *thread, block }),
        BlockPart::Own(_) | BlockPart::Together(_) => None,
    });
    let blocks: Vec<_> = blocks.collect();
    (!blocks.is_empty()).then_some(Common::Block(blocks))
}

/// Returns the possible groupings of lanes that arrive along different paths.
fn possible_joins(ways: &[Vec<ThreadId>], reading: Tangling) -> Vec<Vec<Vec<ThreadId>>> {
    match reading {
        Tangling::Apart => vec![ways.to_vec()],
        Tangling::Together => vec![vec![ways.concat()]],
        Tangling::Any => {
            let Some((last, before)) = ways.split_last() else { return vec![Vec::new()] };
            let mut all = Vec::new();
            // All set partitions of the groups, by recursion: the last group joins an earlier block
            // of the partition or forms its own. Their number grows as the Bell numbers, hence
            // `MAX_CHOICES`.
            for joined in possible_joins(before, reading) {
                for with in 0..joined.len() {
                    let mut joined = joined.clone();
                    joined[with].extend(last);
                    all.push(joined);
                }
                all.push([joined, vec![last.clone()]].concat());
            }
            all
        }
    }
}
