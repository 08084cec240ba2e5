//! Faults of compilers that depend on the form of a kernel: rewritings of the legalized function.
//!
//! Each looks for code that kernels of tests do not have and that their transformed forms have: calls, stores that
//! are never executed, and accesses that both branches of a selection repeat. What it does there is an
//! optimization that keeps the values of one invocation and breaks an order between invocations.

use std::collections::HashMap;

use rspirv::spirv::{MemoryAccess, MemorySemantics, Op};
use spirv_reader::SpirvOperation;

use crate::fault::Fault;
use crate::instruction::{LocatedInstruction, new_instruction};
use crate::module::LoadedModule;

/// Rewrites the function as a compiler with this fault does. `next_id` follows all ids.
pub(crate) fn miscompile(
    code: Vec<LocatedInstruction>,
    module: &LoadedModule<'_>,
    fault: Fault,
    next_id: u32,
) -> Vec<LocatedInstruction> {
    let mut compiler = FaultyCompiler { code, module, next_id };
    match fault {
        Fault::DeadStoreIfConverted => compiler.convert_dead_stores(),
        Fault::CommonStoreSunkBelowRelease => compiler.sink_common_stores(),
        Fault::CommonLoadHoistedOverAcquire => compiler.hoist_common_loads(),
        _ => {}
    }
    compiler.code
}

/// Changes an instruction of a called function as an inliner with this fault does; returns what precedes it.
pub(crate) fn miscompile_call(
    own: &mut LocatedInstruction,
    module: &mut LoadedModule<'_>,
    fault: Fault,
    mut fresh_id: impl FnMut() -> u32,
) -> Vec<LocatedInstruction> {
    let is_split = fault == Fault::AtomicSplitInCalls && own.op == Op::AtomicIAdd;
    let is_relaxed = fault == Fault::SemanticsLostInCalls && is_atomic(own, module) || is_split;
    if is_relaxed
        && let Some(semantics) = own.operands.get_mut(2)
        && let Some((ty, _)) = module.constants.get(semantics).copied()
    {
        *semantics = fresh_id();
        module.constants.insert(*semantics, (ty, 0));
    }
    let (true, [pointer, scope, semantics, value]) = (is_split, own.operands.as_slice()) else {
        return Vec::new();
    };
    let sum = fresh_id();
    let load = new_instruction(Op::AtomicLoad, own.ty, own.result, vec![*pointer, *scope, *semantics]);
    let add = new_instruction(Op::IAdd, own.ty, sum, vec![own.result, *value]);
    let store = vec![*pointer, *scope, *semantics, sum];
    *own = LocatedInstruction { op: Op::AtomicStore, ty: 0, result: 0, operands: store, ..own.clone() };
    vec![load, add]
}

struct FaultyCompiler<'c, 'm> {
    code: Vec<LocatedInstruction>,
    module: &'c LoadedModule<'m>,
    next_id: u32,
}

/// A selection whose branches have one access each: the positions of its branch and of the accesses.
struct CommonAccess {
    branch: usize,
    accesses: [usize; 2],
    end: u32,
}

impl FaultyCompiler<'_, '_> {
    fn fresh_id(&mut self) -> u32 {
        self.next_id = self.next_id.wrapping_add(1);
        self.next_id
    }

    fn label(&self, id: u32) -> Option<usize> {
        self.code.iter().position(|own| own.op == Op::Label && own.result == id)
    }

    /// Returns the position of the only instruction of a block that then goes to `end`.
    fn single_instruction(&self, block: u32, end: u32) -> Option<usize> {
        let at = self.label(block)? + 1;
        let next = self.code.get(at + 1)?;
        (next.op == Op::Branch && next.operands == [end]).then_some(at)
    }

    /// Returns a selection's end with its branch, whose operands are the condition and both targets.
    fn selection(&self, at: usize) -> Option<(u32, [u32; 3])> {
        let (merge, branch) = (self.code.get(at.checked_sub(1)?)?, self.code.get(at)?);
        let is_selection = merge.op == Op::SelectionMerge && branch.op == Op::BranchConditional;
        let operands = branch.operands.get(..3)?.try_into().ok()?;
        is_selection.then_some((*merge.operands.first()?, operands))
    }

    fn type_of(&self, id: u32) -> Option<u32> {
        let computed = self.code.iter().find(|own| own.result == id).map(|own| own.ty);
        computed.or_else(|| self.module.constants.get(&id).map(|(ty, _)| *ty))
    }

    /// If-conversion: a store in a branch that is not taken becomes a store of the old value.
    fn convert_dead_stores(&mut self) {
        let mut at = 1;
        while at < self.code.len() {
            if let Some((end, [condition, yes, no])) = self.selection(at)
                && yes == end
                && let Some(store) = self.single_instruction(no, end).filter(|store| *store > at)
                && !self.orders(&self.code[store], MemorySemantics::RELEASE)
                && let Some((value_at, load)) = load_of_store(&self.code[store])
                && let Some(value) = self.code[store].operands.get(value_at).copied()
                && let Some(ty) = self.type_of(value)
            {
                let mut own = self.code.remove(store);
                let (old, chosen) = (self.fresh_id(), self.fresh_id());
                own.operands[value_at] = chosen;
                let moved = [
                    LocatedInstruction { ty, result: old, ..load },
                    new_instruction(Op::Select, ty, chosen, vec![condition, old, value]),
                    own,
                ];
                // In front of the merge instruction.
                self.code.splice(at - 1..at - 1, moved);
                at += 3;
            }
            at += 1;
        }
    }

    /// Returns the first selection from a position on whose branches both perform the same access.
    fn common_access(&self, from: usize, plain: Op, atomic: Op) -> Option<CommonAccess> {
        let is_unordered = |own: &LocatedInstruction| {
            is_plain(own, plain)
                || own.op == atomic && !self.orders(own, MemorySemantics::ACQUIRE | MemorySemantics::RELEASE)
        };
        (from.max(1)..self.code.len()).find_map(|branch| {
            let (end, [_, yes, no]) = self.selection(branch)?;
            let accesses = [self.single_instruction(yes, end)?, self.single_instruction(no, end)?];
            let [first, second] = accesses.map(|at| &self.code[at]);
            let is_common = is_unordered(first) && first.op == second.op && first.operands == second.operands;
            (is_common && branch < accesses[0] && accesses[0] < accesses[1]).then_some(CommonAccess {
                branch,
                accesses,
                end,
            })
        })
    }

    /// Stores of both branches become one after the selection, below the next release or barrier there.
    fn sink_common_stores(&mut self) {
        let mut from = 1;
        while let Some(CommonAccess { branch, accesses: [first, second], end }) =
            self.common_access(from, Op::Store, Op::AtomicStore)
        {
            from = branch + 1;
            self.code.remove(second);
            let store = self.code.remove(first);
            let Some(start) = self.label(end).map(|label| label + 1) else { continue };
            let block = || self.code.iter().enumerate().skip(start).take_while(|(_, own)| !is_end(own));
            let after_phis = start + block().take_while(|(_, own)| own.op == Op::Phi).count();
            let ordering = block().find(|(_, own)| self.orders(own, MemorySemantics::RELEASE));
            let place = ordering.map_or(after_phis, |(at, _)| at + 1);
            self.code.insert(place, store);
        }
    }

    /// Loads of both branches become one before the selection, above the last acquire or barrier there.
    fn hoist_common_loads(&mut self) {
        let mut from = 1;
        while let Some(CommonAccess { branch, accesses: [first, second], .. }) =
            self.common_access(from, Op::Load, Op::AtomicLoad)
        {
            from = branch + 1;
            let duplicate = self.code.remove(second);
            let load = self.code.remove(first);
            let renamed = HashMap::from([(duplicate.result, load.result)]);
            self.code.iter_mut().for_each(|own| rename_operands(own, &renamed));
            let place = self.place_before_acquire(branch - 1, &load);
            self.code.insert(place, load);
        }
    }

    /// Returns the position of the last acquire before a position, on the only path to it, that follows the computation of
    /// a load's address; without one, the position itself.
    fn place_before_acquire(&self, from: usize, load: &LocatedInstruction) -> usize {
        let is_operand = |own: &LocatedInstruction| own.result != 0 && load.ids().any(|id| id == own.result);
        let mut at = from;
        while let Some(before) = at.checked_sub(1) {
            let own = &self.code[before];
            if is_operand(own) {
                break;
            }
            if self.orders(own, MemorySemantics::ACQUIRE) {
                return before;
            }
            at = before;
            if own.op == Op::Label {
                let enters = |from: &&LocatedInstruction| {
                    matches!(from.op, Op::Branch | Op::BranchConditional)
                        && from.operands.contains(&own.result)
                };
                let mut entering = self.code.iter().filter(enters);
                let (Some(only), None) = (entering.next(), entering.next()) else { break };
                let Some(position) = self.code.iter().position(|own| std::ptr::eq(own, only)) else { break };
                // A loop enters its header from below.
                if position >= at {
                    break;
                }
                at = position;
            }
        }
        from
    }

    /// Returns true for barriers, and for atomics with one of these orders.
    fn orders(&self, own: &LocatedInstruction, order: MemorySemantics) -> bool {
        let orders = order | MemorySemantics::ACQUIRE_RELEASE;
        let word = own.operands.get(2).and_then(|id| self.module.constants.get(id));
        matches!(own.op, Op::ControlBarrier | Op::MemoryBarrier)
            || is_atomic(own, self.module) && word.is_some_and(|(_, word)| *word as u32 & orders.bits() != 0)
    }
}

/// Returns the position of a store's value, and the load of the old one; `None` for another instruction.
fn load_of_store(own: &LocatedInstruction) -> Option<(usize, LocatedInstruction)> {
    let pointer = *own.operands.first()?;
    match own.op {
        Op::Store if is_plain(own, Op::Store) => {
            let memory = MemoryAccess::NON_PRIVATE_POINTER.bits();
            Some((1, new_instruction(Op::Load, 0, 0, vec![pointer, memory])))
        }
        Op::AtomicStore => Some((3, new_instruction(Op::AtomicLoad, 0, 0, own.operands.get(..3)?.to_vec()))),
        _ => None,
    }
}

fn rename_operands(own: &mut LocatedInstruction, names: &HashMap<u32, u32>) {
    for at in own.id_positions() {
        if let Some(name) = own.operands.get(at).and_then(|id| names.get(id)) {
            own.operands[at] = *name;
        }
    }
}

fn is_atomic(own: &LocatedInstruction, module: &LoadedModule<'_>) -> bool {
    matches!(module.decode_instruction(own), Ok(SpirvOperation::Atomic(_)))
}

fn is_end(own: &LocatedInstruction) -> bool {
    use Op::{Branch, BranchConditional, Kill, LoopMerge, Return, SelectionMerge, Switch, Unreachable};
    matches!(
        own.op,
        Branch | BranchConditional | Kill | LoopMerge | Return | SelectionMerge | Switch | Unreachable
    )
}

/// Returns true for a load or a store that is not volatile, of memory that other invocations may access.
fn is_plain(own: &LocatedInstruction, op: Op) -> bool {
    let memory = own.operands.get(if op == Op::Load { 1 } else { 2 }).copied().unwrap_or_default();
    let memory = MemoryAccess::from_bits_truncate(memory);
    own.op == op
        && memory.contains(MemoryAccess::NON_PRIVATE_POINTER)
        && !memory.contains(MemoryAccess::VOLATILE)
}
