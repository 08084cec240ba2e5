//! Code that is not reached because of an implicit flow: a branch determined a value that a later branch
//! tests.
//!
//! Taint follows only explicit flows. In `bool hit = false; if (mode == 7) hit = true; if (hit) …`, and in a
//! call that returns early, the second condition has no taint. A backward slice of the condition finds the branches
//! that decide which store or which predecessor determines its value. The slice ends at calls, parameters and private
//! memory: then each input counts too whose branches all invocations took to one side, which may name an input too many.

use std::collections::BTreeSet;

use rspirv::spirv::StorageClass;
use rustc_hash::FxHashMap;
use spirv_reader::{CodePlace, SpirvOperation};

use super::program::{DecodedFunction, DecodedInstruction, DecodedProgram};

/// Unreached code behind a condition that may join values.
#[derive(Debug)]
pub(super) struct JoinedCondition {
    /// The blocks with effects, by the number of their label.
    pub blocks: BTreeSet<u32>,
    /// The places of the effects.
    pub lines: BTreeSet<CodePlace>,
    /// The branches that decide the value, by site.
    pub branches: BTreeSet<u32>,
    /// True if others may decide it too.
    pub is_open: bool,
}

impl DecodedProgram<'_> {
    /// Returns the unreached code with effects behind conditions that may join values, other than `known` blocks.
    pub fn skipped_by_joined_values(&self, reached: &[bool], known: &BTreeSet<u32>) -> Vec<JoinedCondition> {
        let mut found = Vec::new();
        let effects = self.unreached_effects(reached);
        if effects.iter().all(|(block, _)| known.contains(block)) {
            return found;
        }
        let is_reached = |site: u32| reached.get(site as usize).copied().unwrap_or_default();
        for function in self.functions.iter().filter(|function| is_reached(function.first_site)) {
            let mut is_here = false;
            for (site, inst) in (function.first_site..).zip(&function.code) {
                if inst.operation == SpirvOperation::Label {
                    is_here = is_reached(site);
                }
                let Some(condition) = branch_condition(inst).filter(|_| is_here) else { continue };
                let skipped = self.skipped_by_branch(site, reached).blocks;
                let of_branch =
                    effects.iter().filter(|(block, _)| skipped.contains(block) && !known.contains(block));
                let (blocks, lines): (BTreeSet<u32>, BTreeSet<CodePlace>) = of_branch.copied().unzip();
                if blocks.is_empty() {
                    continue;
                }
                let (branches, is_open) = JoinSlice::new(self, function).deciding_branches(condition);
                found.push(JoinedCondition { blocks, lines, branches, is_open });
            }
        }
        found
    }
}

/// Returns the value that decides a branch.
fn branch_condition(inst: &DecodedInstruction<'_>) -> Option<u32> {
    match inst.operation {
        SpirvOperation::BranchConditional { condition, .. } => Some(condition),
        SpirvOperation::Switch { selector, .. } => Some(selector),
        _ => None,
    }
}

/// A backward slice over the joins of one function.
struct JoinSlice<'p, 'm> {
    program: &'p DecodedProgram<'m>,
    predecessors: FxHashMap<u32, Vec<u32>>,
    /// Each instruction with the label of its block, by its result.
    results: FxHashMap<u32, (u32, &'p DecodedInstruction<'m>)>,
    /// The stores of local variables: variable, block and value.
    stores: Vec<(u32, u32, u32)>,
    /// The site and the condition of each branch, by block.
    branches: FxHashMap<u32, (u32, u32)>,
}

impl<'p, 'm> JoinSlice<'p, 'm> {
    fn new(program: &'p DecodedProgram<'m>, function: &'p DecodedFunction<'m>) -> JoinSlice<'p, 'm> {
        let mut slice = JoinSlice {
            program,
            predecessors: FxHashMap::default(),
            results: FxHashMap::default(),
            stores: Vec::new(),
            branches: FxHashMap::default(),
        };
        let mut edges: Vec<(u32, u32)> = function.edge_by_blocks.keys().copied().collect();
        edges.sort_unstable();
        for (block, target) in edges {
            slice.predecessors.entry(target).or_default().push(block);
        }
        let mut block = 0;
        for (site, inst) in (function.first_site..).zip(&function.code) {
            if inst.operation == SpirvOperation::Label {
                block = inst.raw.result;
            }
            if let SpirvOperation::Store { pointer, value, .. } = inst.operation {
                slice.stores.push((slice.variable_of(pointer), block, value));
            }
            if let Some(condition) = branch_condition(inst) {
                slice.branches.insert(block, (site, condition));
            }
            slice.results.insert(inst.raw.result, (block, inst));
        }
        slice
    }

    /// Returns the variable that a pointer is part of.
    fn variable_of(&self, mut pointer: u32) -> u32 {
        while let Some((_, inst)) = self.results.get(&pointer)
            && let SpirvOperation::AccessChain { base, .. } = inst.operation
        {
            pointer = base;
        }
        pointer
    }

    /// Returns the branches that decide which of several values a condition has, and true if others may decide it too.
    fn deciding_branches(&self, condition: u32) -> (BTreeSet<u32>, bool) {
        let (mut sites, mut is_open) = (BTreeSet::new(), false);
        let (mut worklist, mut seen) = (vec![condition], BTreeSet::new());
        while let Some(id) = worklist.pop() {
            let module = self.program.module;
            if !seen.insert(id) || module.constants.contains_key(&id) || module.variables.contains_key(&id) {
                continue;
            }
            // A parameter has no instruction.
            let Some((block, inst)) = self.results.get(&id).copied() else {
                is_open = true;
                continue;
            };
            let mut joined = Vec::new();
            match inst.operation {
                SpirvOperation::Phi { sources } => {
                    joined.extend(sources.iter().map(|[value, from]| (*value, *from)));
                }
                SpirvOperation::Load { pointer, .. } => {
                    match self.program.pointee_of(self.program.type_of(pointer)).map(|of| of.0) {
                        Some(StorageClass::Function) => {
                            let variable = self.variable_of(pointer);
                            let stores = self.stores.iter().filter(|(stored, ..)| *stored == variable);
                            joined.extend(stores.map(|(_, from, value)| (*value, *from)));
                        }
                        Some(StorageClass::Private) => is_open = true,
                        _ => {}
                    }
                }
                SpirvOperation::Call { .. } => is_open = true,
                SpirvOperation::Compute { operands, .. } => worklist.extend(operands),
                // Some of these operands are literals.
                _ => {
                    let operands = module.operands_of(&inst.raw).iter();
                    worklist.extend(operands.filter(|id| self.results.contains_key(id)));
                }
            }
            for (value, from) in joined {
                worklist.push(value);
                for (site, condition) in self.branches_between(from, block) {
                    sites.insert(site);
                    worklist.push(condition);
                }
            }
        }
        (sites, is_open)
    }

    /// Returns the branches on paths to `end` of which one side passes through `block` and another one need not.
    fn branches_between(&self, block: u32, end: u32) -> Vec<(u32, u32)> {
        let (through, around) = (self.blocks_before(block, None), self.blocks_before(end, Some(block)));
        through.intersection(&around).filter_map(|at| self.branches.get(at).copied()).collect()
    }

    /// Returns the blocks with a path to `end` that does not pass through `avoided`.
    fn blocks_before(&self, end: u32, avoided: Option<u32>) -> BTreeSet<u32> {
        let (mut worklist, mut found) = (vec![end], BTreeSet::new());
        while let Some(block) = worklist.pop() {
            let before = self.predecessors.get(&block).into_iter().flatten();
            worklist.extend(before.filter(|block| Some(**block) != avoided && found.insert(**block)));
        }
        found
    }
}
