//! Removes the loop guards that WGSL compilers insert: a counter from 2^64 - 1 down to 0.
//!
//! The guard makes every loop finite in theory. No run reaches its end, and without the counter a spin loop
//! repeats its state and is recognized.

use std::collections::HashSet;

use rspirv::spirv::Op;

use crate::module::{SpirvConstant, SpirvFunction, SpirvInstruction, SpirvModule};

impl SpirvModule {
    /// Removes the decrements of loop guards.
    pub(crate) fn remove_loop_guards(&self, function: &mut SpirvFunction) {
        let guards = function
            .code
            .iter()
            .filter(|instruction| instruction.op == Op::Variable && self.starts_with_all_ones(instruction));
        let guards =
            guards.map(|variable| variable.result).filter(|guard| self.is_loop_guard(function, *guard));
        for guard in guards.collect::<Vec<u32>>() {
            for store in &mut function.code {
                if store.op == Op::Store && self.operands_of(store).first() == Some(&guard) {
                    store.op = Op::Nop;
                }
            }
        }
    }

    /// Returns true if a variable starts as two words of all ones.
    fn starts_with_all_ones(&self, variable: &SpirvInstruction) -> bool {
        let constant = |id: &u32| self.constants.get(id).map(|(_, constant)| constant);
        let ones = |id: &u32| constant(id) == Some(&SpirvConstant::Scalar(u64::from(u32::MAX)));
        match self.operands_of(variable).get(1).and_then(constant) {
            Some(SpirvConstant::Composite(words)) => words.len() == 2 && words.iter().all(ones),
            _ => false,
        }
    }

    /// Returns true if a variable is only compared and decremented.
    fn is_loop_guard(&self, function: &SpirvFunction, guard: u32) -> bool {
        let mut values = HashSet::new();
        let mut counted = HashSet::new();
        function.code.iter().all(|one| {
            let operands = self.operands_of(one);
            let reads = operands.iter().any(|id| values.contains(id));
            match (one.op, operands) {
                (Op::Load, [from, ..]) if *from == guard => values.insert(one.result),
                (Op::Store, [to, value, ..]) if *to == guard => counted.contains(value),
                (Op::ISub, [from, _]) if values.contains(from) => counted.insert(one.result),
                (Op::IEqual | Op::CompositeExtract, _) if reads => true,
                _ => !reads && !operands.contains(&guard),
            }
        })
    }
}
