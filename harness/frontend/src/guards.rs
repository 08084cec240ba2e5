//! Guards of loops that compilers of WGSL write: a variable that counts down from 2^64 - 1, so that no loop is endless.
//!
//! Nobody waits so long, and a loop that waits is to be seen as one: the count stays where it begins.

use std::collections::HashSet;

use rspirv::spirv::Op;

use crate::module::{Constant, Function, Instruction, Module};

impl Module {
    /// Leaves out the counting of guards.
    pub(crate) fn without_guards(&self, function: &mut Function) {
        let guards = function.code.iter().filter(|one| one.op == Op::Variable && self.counts_from_all(one));
        let guards = guards.map(|variable| variable.result).filter(|guard| self.is_guard(function, *guard));
        for guard in guards.collect::<Vec<u32>>() {
            for store in &mut function.code {
                if store.op == Op::Store && self.operands(store).first() == Some(&guard) {
                    store.op = Op::Nop;
                }
            }
        }
    }

    /// Whether a variable is two words of ones at first.
    fn counts_from_all(&self, variable: &Instruction) -> bool {
        let constant = |id: &u32| self.constants.get(id).map(|(_, constant)| constant);
        let ones = |id: &u32| constant(id) == Some(&Constant::Scalar(u64::from(u32::MAX)));
        match self.operands(variable).get(1).and_then(constant) {
            Some(Constant::Composite(words)) => words.len() == 2 && words.iter().all(ones),
            _ => false,
        }
    }

    /// Whether a variable is compared and counted down, and nothing else.
    fn is_guard(&self, function: &Function, guard: u32) -> bool {
        let mut values = HashSet::new();
        let mut counted = HashSet::new();
        function.code.iter().all(|one| {
            let operands = self.operands(one);
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
