//! The last lowering pass: computes properties of the whole kernel, such as reference properties, outermost
//! loops and preserved program order.

use spirv_reader::Decorations;

use super::{LoweredValue, Lowering};
use crate::fault::Fault;
use crate::instruction::LoadError;
use crate::order;
use crate::program::{DEVICE, MemoryOp, Op, Program, ReferencePlace, Switch, WaitCondition};

impl Lowering<'_> {
    /// Finishes the program after all of the kernel is lowered.
    pub(super) fn finish(mut self, fault: Fault) -> Result<Program, LoadError> {
        self.mark_outermost_loops();
        self.complete_split_barriers(fault);
        self.drop_section_effects(fault);
        let program = &mut self.program;
        let mut non_writable = vec![false; program.references.len()];
        for (number, reference) in program.references.iter_mut().enumerate() {
            let own: Vec<&MemoryOp> = program
                .memory
                .iter()
                .filter(|op| op.is_access() && !op.streaming && usize::from(op.reference) == number)
                .collect();
            let level = |op: &&MemoryOp| if op.is_atomic() { op.scope } else { 0 };
            reference.lowest = own.iter().map(level).min().unwrap_or(DEVICE);
            let scope = own.first().map(|op| op.scope);
            let has_same_scope = |op: &&MemoryOp| op.is_atomic() && op.bytes == 4 && Some(op.scope) == scope;
            reference.uniform_atomic_scope = scope.filter(|_| own.iter().all(has_same_scope));
            let is_any = |decorated: fn(&Decorations) -> bool| {
                self.module.variables.iter().any(|variable| {
                    decorated(&self.module.source().decorations_of(variable.id))
                        && matches!(self.lowered_values.get(&variable.id), Some(LoweredValue::MemoryVariable { reference, .. }) if usize::from(*reference) == number)
                })
            };
            if let Some(flag) = non_writable.get_mut(number) {
                *flag = is_any(|decorations| decorations.non_writable);
            }
            let is_unaliased = !is_any(|decorations| decorations.aliased);
            reference.is_auxiliary = is_unaliased && !is_any(|decorations| decorations.restrict);
            let is_plain_store = |op: &&MemoryOp| {
                !op.is_read() && !op.is_atomic() && op.private && !op.available && op.bytes == 4
            };
            let binding = matches!(reference.place, ReferencePlace::Binding(_));
            reference.write_only = is_unaliased && binding && own.iter().all(is_plain_store);
            reference.aliased = self.indices.iter().any(|(id, own)| {
                usize::from(*own) == number
                    && self.indices.iter().any(|(other, of)| other == id && usize::from(*of) != number)
            });
        }
        program.mark_read_only_loads(fault);
        program.mark_reused_loads(fault, &non_writable);
        program.demote_workgroup_of_one_subgroup(fault);
        let count = program.memory.len();
        program.wait_conditions = (0..count * count)
            .map(|pair| {
                let (earlier, later) = (program.memory.get(pair / count), program.memory.get(pair % count));
                match (earlier, later) {
                    (Some(earlier), Some(later)) => order::required_wait(earlier, later, fault),
                    _ => WaitCondition::Always,
                }
            })
            .collect();
        Ok(self.program)
    }

    /// Marks the back edges of loops that are in no other loop: they end rounds.
    fn mark_outermost_loops(&mut self) {
        let program = &self.program;
        let mut back: Vec<(u32, u32, usize)> = Vec::new();
        let starts = &program.blocks;
        for (position, op) in program.ops.iter().enumerate() {
            let block = starts.iter().take_while(|start| **start as usize <= position).count() as u32 - 1;
            let edges: Vec<u32> = match op {
                Op::Jump { edge } => vec![*edge],
                Op::Branch { yes, no, .. } => vec![*yes, *no],
                Op::Switch(Switch { cases, otherwise, .. }) => {
                    let case_edges =
                        program.cases.get(cases.0 as usize..cases.1 as usize).unwrap_or_default();
                    case_edges.iter().map(|(_, edge)| *edge).chain([*otherwise]).collect()
                }
                _ => continue,
            };
            for edge in edges {
                if let Some(back_edge) = program.edges.get(edge as usize).filter(|way| way.ends_round) {
                    back.push((back_edge.to, block, edge as usize));
                }
            }
        }
        for (head, from, _) in &back {
            match self.program.loops.iter_mut().find(|(first, _)| first == head) {
                Some((_, last)) => *last = (*from).max(*last),
                None => self.program.loops.push((*head, *from)),
            }
        }
        self.program.loops.sort_unstable_by_key(|(first, last)| (*first, std::cmp::Reverse(*last)));
        for (head, from, edge) in &back {
            let inner = back.iter().any(|(outer, until, _)| outer < head && until >= from);
            if let Some(edge) = self.program.edges.get_mut(*edge) {
                edge.ends_round = !inner;
            }
        }
    }
}
