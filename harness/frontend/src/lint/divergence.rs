//! Control barriers in divergent control flow.
//!
//! The rule reports only certain cases: a barrier in a selection whose condition depends on the invocation's
//! position in its workgroup and on constants. Loops and early returns are not checked, since all invocations
//! may leave them equally.

use std::collections::{HashMap, HashSet};

use rspirv::spirv::{BuiltIn, Op, StorageClass};
use spirv_reader::{SpirvConstant, SpirvFunction, SpirvInstruction, SpirvModule};

/// Returns the divergent barriers in module order.
pub(super) fn barriers(module: &SpirvModule) -> Vec<&SpirvInstruction> {
    let sizes = module.entry_points.iter().filter_map(|entry| module.declared_local_size(entry.function));
    // The smallest size over all entry points.
    let least = |size: [u32; 3], declared: ([u32; 3], bool)| {
        let other = super::smallest_size(module, declared);
        [0, 1, 2].map(|axis: usize| size[axis].min(other[axis]))
    };
    let size = sizes.fold([u32::MAX; 3], least);
    module.functions.values().flat_map(|function| Flow::of(module, function, size).found()).collect()
}

/// A function as a control-flow graph.
struct Flow<'m> {
    module: &'m SpirvModule,
    function: &'m SpirvFunction,
    /// Invocations of a workgroup.
    size: [u32; 3],
    /// The instruction of each result id.
    results: HashMap<u32, &'m SpirvInstruction>,
    /// The values stored to each function variable.
    stored: HashMap<u32, Vec<u32>>,
}

impl<'m> Flow<'m> {
    fn of(module: &'m SpirvModule, function: &'m SpirvFunction, size: [u32; 3]) -> Flow<'m> {
        let results =
            function.code.iter().filter(|one| one.result != 0).map(|one| (one.result, one)).collect();
        let mut stored: HashMap<u32, Vec<u32>> = HashMap::new();
        for instruction in function.code.iter().filter(|instruction| instruction.op == Op::Store) {
            if let [to, value, ..] = module.operands_of(instruction) {
                stored.entry(*to).or_default().push(*value);
            }
        }
        Flow { module, function, size, results, stored }
    }

    fn found(&self) -> Vec<&'m SpirvInstruction> {
        let mut found: Vec<&'m SpirvInstruction> = Vec::new();
        for (at, merge) in self.function.code.iter().enumerate() {
            let branch = self.function.code.get(at + 1);
            let Some(branch) =
                branch.filter(|branch| merge.op == Op::SelectionMerge && branch.op == Op::BranchConditional)
            else {
                continue;
            };
            let (Some(end), [condition, arms @ ..]) =
                (self.module.operands_of(merge).first(), self.module.operands_of(branch))
            else {
                continue;
            };
            if !self.varies(*condition, &mut HashSet::new()) {
                continue;
            }
            let arms: Vec<Vec<&SpirvInstruction>> =
                arms.iter().take(2).map(|arm| self.barriers_of(*arm, *end)).collect();
            // Even if both sides have a barrier, the invocations meet at different ones.
            found.extend(arms.into_iter().flatten());
        }
        found.sort_by_key(|barrier| barrier.place);
        found.dedup_by_key(|barrier| barrier.place);
        found
    }

    /// Returns the workgroup barriers between a block and the end of its selection.
    fn barriers_of(&self, from: u32, end: u32) -> Vec<&'m SpirvInstruction> {
        let (mut left, mut seen) = (vec![from], HashSet::from([end]));
        let mut found = Vec::new();
        while let Some(block) = left.pop() {
            let Some(start) = self.function.labels.get(&block).copied().filter(|_| seen.insert(block)) else {
                continue;
            };
            for instruction in self.function.code.iter().skip(start + 1) {
                let operands = self.module.operands_of(instruction);
                match instruction.op {
                    Op::ControlBarrier if operands.first().is_some_and(|scope| self.is_workgroup(*scope)) => {
                        found.push(instruction);
                    }
                    Op::Branch | Op::BranchConditional | Op::Switch => {
                        left.extend(self.module.successors(&self.function.types, instruction));
                    }
                    _ => {}
                }
                if instruction.op == Op::Label {
                    break;
                }
            }
        }
        found
    }

    fn is_workgroup(&self, scope: u32) -> bool {
        self.number(scope) == Some(2)
    }

    fn number(&self, id: u32) -> Option<u32> {
        match self.module.constants.get(&id) {
            Some((_, SpirvConstant::Scalar(number))) => u32::try_from(*number).ok(),
            _ => None,
        }
    }

    /// Returns whether an input component differs within a workgroup; `None` if unknown.
    fn place(&self, variable: u32, axis: Option<Option<u32>>) -> Option<bool> {
        let all = self.size.iter().any(|size| *size > 1);
        match (self.module.decorations_of(variable).built_in?, axis) {
            (BuiltIn::LocalInvocationIndex, None) => Some(all),
            (BuiltIn::LocalInvocationId, None) => Some(all),
            (BuiltIn::LocalInvocationId, Some(axis)) => Some(*self.size.get(axis? as usize)? > 1),
            _ => None,
        }
    }

    /// Returns true if a value depends only on the position in the workgroup and on constants, and differs.
    fn varies(&self, id: u32, seen: &mut HashSet<u32>) -> bool {
        self.sources(id, seen).is_some_and(|varies| varies)
    }

    /// Does the same; `None` if the value has another source.
    fn sources(&self, id: u32, seen: &mut HashSet<u32>) -> Option<bool> {
        if self.module.constants.contains_key(&id) || !seen.insert(id) {
            return Some(false);
        }
        let instruction = self.results.get(&id)?;
        let operands = self.module.operands_of(instruction);
        match instruction.op {
            Op::Load => {
                let pointer = *operands.first()?;
                let root = match self.results.get(&pointer) {
                    Some(chain) if matches!(chain.op, Op::AccessChain | Op::InBoundsAccessChain) => {
                        *self.module.operands_of(chain).first()?
                    }
                    _ => pointer,
                };
                let variable = self.module.variables.get(&root);
                if variable.is_some_and(|variable| variable.class == StorageClass::Input) {
                    let axis =
                        self.results.get(&pointer).and_then(|chain| self.module.operands_of(chain).get(1));
                    return self.place(root, axis.map(|index| self.number(*index)));
                }
                // A function variable with one store has that value.
                match self.stored.get(&pointer).map(Vec::as_slice) {
                    Some([value]) if variable.is_none() => self.sources(*value, seen),
                    _ => None,
                }
            }
            Op::CompositeExtract => {
                let load = self.results.get(operands.first()?).filter(|load| load.op == Op::Load);
                let root = *self.module.operands_of(load?).first()?;
                self.module.variables.get(&root)?;
                self.place(root, operands.get(1).map(|axis| Some(*axis)))
            }
            Op::CopyObject | Op::Bitcast => self.sources(*operands.first()?, seen),
            Op::IAdd
            | Op::ISub
            | Op::IMul
            | Op::UMod
            | Op::SMod
            | Op::SRem
            | Op::BitwiseAnd
            | Op::BitwiseOr
            | Op::BitwiseXor
            | Op::ShiftLeftLogical
            | Op::ShiftRightLogical
            | Op::IEqual
            | Op::INotEqual
            | Op::LogicalNot => {
                let mut varies = false;
                for operand in operands {
                    // The other operand may be any value that is equal for all.
                    varies |= self.sources(*operand, seen).unwrap_or_default();
                }
                Some(varies)
            }
            _ => None,
        }
    }
}
