//! Code that is not reached because of an implicit flow: a branch determined a value that a later branch
//! tests.
//!
//! Taint follows only explicit flows. In `bool hit = false; if (mode == 7) hit = true; if (hit) …`, and in a
//! call that returns early, the second condition has no taint. An unreached block behind a condition that may
//! join values counts as decided by each input whose branches all invocations took to one side. That may name
//! an input too many.

use std::collections::BTreeSet;

use rspirv::spirv::StorageClass;
use spirv_reader::SpirvOperation;

use super::program::{DecodedFunction, DecodedProgram, SkippedCode};

/// Upper bound on the nesting of a condition.
const MAX_DEPTH: u32 = 6;

impl DecodedProgram<'_> {
    /// Returns the unreached code with effects behind conditions that may join values, other than `known` blocks.
    pub fn skipped_by_joined_values(&self, reached: &[bool], known: &BTreeSet<u32>) -> SkippedCode {
        let mut found = SkippedCode::default();
        let effects = self.unreached_effects(reached);
        if effects.iter().all(|(block, _)| known.contains(block)) {
            return found;
        }
        let is_reached = |site: u32| reached.get(site as usize).copied().unwrap_or_default();
        for function in self.functions.iter().filter(|function| is_reached(function.first_site)) {
            let mut here = false;
            for (site, inst) in (function.first_site..).zip(&function.code) {
                let condition = match inst.operation {
                    SpirvOperation::Label => {
                        here = is_reached(site);
                        continue;
                    }
                    SpirvOperation::BranchConditional { condition, .. } => condition,
                    SpirvOperation::Switch { selector, .. } => selector,
                    _ => continue,
                };
                if here && self.may_join_values(function, condition, 0) {
                    let skipped = self.skipped_by_branch(site, reached).blocks;
                    let own =
                        effects.iter().filter(|(block, _)| skipped.contains(block) && !known.contains(block));
                    for (block, line) in own {
                        found.blocks.insert(*block);
                        found.effects.insert(*line);
                    }
                }
            }
        }
        found
    }

    /// Returns true if a value may come from several paths: by a phi, a local variable or a call.
    fn may_join_values(&self, function: &DecodedFunction<'_>, id: u32, depth: u32) -> bool {
        let Some(inst) = function.code.iter().find(|inst| inst.raw.result == id) else { return false };
        match inst.operation {
            SpirvOperation::Phi { .. } | SpirvOperation::Call { .. } => true,
            SpirvOperation::Load { pointer, .. } => {
                let class = self.pointee_of(self.type_of(pointer)).map(|of| of.0);
                matches!(class, Some(StorageClass::Function | StorageClass::Private))
            }
            SpirvOperation::Compute { operands, .. } => {
                depth < MAX_DEPTH && operands.iter().any(|id| self.may_join_values(function, *id, depth + 1))
            }
            _ => false,
        }
    }
}
