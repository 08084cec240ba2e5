//! Control flow between the blocks of a function: the targets of branches and switches.
//!
//! A switch's literals are as wide as its selector (SPIR-V, `OpSwitch`), so the label of a case is found only with the selector's
//! type: one word for up to 32 bits, two for 64.

use std::collections::BTreeSet;

use arithmetic::mask;
use rspirv::spirv::Op;
use rustc_hash::FxHashMap;

use crate::error::{SourcePosition, SpirvError, malformed};
use crate::module::{SpirvInstruction, SpirvModule, SpirvType};
use crate::opcode::literal_words;
use crate::operation::SpirvOperation;

/// One case of an `OpSwitch`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SwitchCase {
    /// The value of the selector, as an unsigned number of its width.
    pub literal: u64,
    /// The label of the block.
    pub target: u32,
}

impl SpirvModule {
    /// Returns the labels that a terminator may branch to, the default of a switch first; none for other instructions.
    /// `types` are the types of the function's results.
    pub fn successors<'m>(
        &'m self,
        types: &FxHashMap<u32, u32>,
        instruction: &SpirvInstruction,
    ) -> impl Iterator<Item = u32> + use<'m> {
        let operands = self.operands_of(instruction);
        let (targets, stride) = match instruction.op {
            Op::Branch => (operands.get(..1), 1),
            Op::BranchConditional => (operands.get(1..3), 1),
            Op::Switch => (operands.get(1..), literal_words(self.selector_bits(types, instruction)) + 1),
            _ => (None, 1),
        };
        targets.unwrap_or_default().iter().step_by(stride).copied()
    }

    /// Returns the width of a switch's selector, 32 if the selector has no integer type.
    pub fn selector_bits(&self, types: &FxHashMap<u32, u32>, instruction: &SpirvInstruction) -> u32 {
        let selector = self.operands_of(instruction).first();
        let ty = selector
            .and_then(|id| types.get(id).copied().or_else(|| self.constants.get(id).map(|(ty, _)| *ty)));
        match ty.and_then(|ty| self.types.get(&ty)) {
            Some(SpirvType::Integer { bits, .. }) => *bits,
            _ => 32,
        }
    }

    /// Checks that every branch and every merge names a block of its function.
    ///
    /// # Errors
    /// Returns the first instruction whose label is not one.
    pub(crate) fn check_labels(&self) -> Result<(), SpirvError> {
        for function in self.functions.values() {
            for instruction in &function.code {
                let merges = match instruction.op {
                    Op::SelectionMerge => self.operands_of(instruction).get(..1),
                    Op::LoopMerge => self.operands_of(instruction).get(..2),
                    _ => None,
                };
                let merges = merges.unwrap_or_default().iter().copied();
                let mut targets = self.successors(&function.types, instruction).chain(merges);
                if let Some(target) = targets.find(|target| !function.labels.contains_key(target)) {
                    let name = self.display_name(target);
                    let what =
                        format!("Op{:?} names {name}, which is not a block of its function", instruction.op);
                    return Err(malformed(what).located_at(instruction.place));
                }
            }
        }
        Ok(())
    }

    /// Checks that no entry point calls a function that calls itself (SPIR-V, "Universal Validation Rules").
    ///
    /// # Errors
    /// Returns a call of a cycle.
    pub(crate) fn check_calls(&self) -> Result<(), SpirvError> {
        let calls_of = |function: u32| -> Vec<(u32, SourcePosition)> {
            let code = self.functions.get(&function).into_iter().flat_map(|function| &function.code);
            let called = |instruction: &SpirvInstruction| match self.operation(instruction) {
                SpirvOperation::Call { function, .. } => Some((function, instruction.place)),
                _ => None,
            };
            code.filter_map(called).collect()
        };
        let (mut finished, mut active) = (BTreeSet::new(), BTreeSet::new());
        for entry in &self.entry_points {
            // The stack of a depth-first search, with the calls that are left.
            let mut stack = vec![(entry.function, calls_of(entry.function))];
            while let Some((function, calls)) = stack.last_mut() {
                active.insert(*function);
                match calls.pop() {
                    None => {
                        active.remove(function);
                        finished.insert(*function);
                        stack.pop();
                    }
                    Some((called, place)) if active.contains(&called) => {
                        return Err(malformed("recursion, which SPIR-V does not allow").located_at(place));
                    }
                    Some((called, _)) if !finished.contains(&called) => {
                        stack.push((called, calls_of(called)))
                    }
                    Some(_) => {}
                }
            }
        }
        Ok(())
    }
}

/// Returns the cases of an `OpSwitch` whose selector has this many bits.
pub fn switch_cases(cases: &[u32], bits: u32) -> impl Iterator<Item = SwitchCase> + use<'_> {
    cases.chunks_exact(literal_words(bits) + 1).map(move |case| {
        let (literal, target) = match *case {
            [low, high, target] => (u64::from(low) | u64::from(high) << 32, target),
            [literal, target] => (u64::from(literal), target),
            _ => (0, 0),
        };
        SwitchCase { literal: literal & mask(bits), target }
    })
}
