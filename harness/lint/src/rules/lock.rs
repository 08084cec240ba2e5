//! Spin locks that every lane of a workgroup takes: lanes of one subgroup may wait for each other forever.
//!
//! The rule reports only certain cases: an unconditionally reached loop whose only exit is a successful
//! exchange of constants at a fixed location, followed by a store to that location.

use std::collections::{BTreeMap, HashMap, HashSet};

use arithmetic::Instruction;
use rspirv::spirv::Op;
use spirv_reader::{
    AtomicKind, CompositeOperation, ModuleEntryPoint, SpirvConstant, SpirvFunction, SpirvInstruction,
    SpirvModule, SpirvOperation,
};

/// Returns the exchanges of such locks in module order.
pub(super) fn find_spin_locks(module: &SpirvModule) -> Vec<&SpirvInstruction> {
    // A specialized size may be one.
    let number = |id: u32| match module.constants.get(&id) {
        Some((_, SpirvConstant::Scalar(number))) if module.decorations_of(id).specialization.is_none() => {
            *number
        }
        _ => 1,
    };
    let has_several_invocations = |entry: &ModuleEntryPoint| {
        module.declared_local_size(entry.function).is_some_and(|(size, ids)| {
            size.iter().any(|axis| if ids { number(*axis) > 1 } else { *axis > 1 })
        })
    };
    let mut worklist: Vec<u32> = module
        .entry_points
        .iter()
        .filter(|entry| has_several_invocations(entry))
        .map(|entry| entry.function)
        .collect();
    let mut seen = HashSet::new();
    let mut found: Vec<&SpirvInstruction> = Vec::new();
    while let Some(id) = worklist.pop() {
        let Some(function) = module.functions.get(&id).filter(|_| seen.insert(id)) else { continue };
        let code = ReachedFunction { module, function };
        found.extend(
            code.unconditional_loops(&mut worklist)
                .into_iter()
                .filter_map(|body| code.acquiring_exchange(&body)),
        );
    }
    found.sort_by_key(|exchange| exchange.place);
    found
}

/// A function whose entry block every invocation reaches.
#[derive(Clone, Copy)]
struct ReachedFunction<'m> {
    module: &'m SpirvModule,
    function: &'m SpirvFunction,
}

/// A loop: its exit block, and the indices of its instructions.
struct LoopBody {
    merge: u32,
    code: Vec<usize>,
}

impl<'m> ReachedFunction<'m> {
    /// Returns the instructions between two blocks, in function order.
    fn instructions_between(&self, from: u32, end: u32) -> Vec<usize> {
        // The end block is marked as visited, so it is never entered.
        let (mut worklist, mut seen) = (vec![from], HashSet::from([end]));
        let mut found = Vec::new();
        while let Some(block) = worklist.pop() {
            let Some(start) = self.function.labels.get(&block).copied().filter(|_| seen.insert(block)) else {
                continue;
            };
            for (at, instruction) in self.function.code.iter().enumerate().skip(start + 1) {
                if self.module.operation(instruction) == SpirvOperation::Label {
                    break;
                }
                worklist.extend(self.module.successors(&self.function.types, instruction));
                found.push(at);
            }
        }
        found.sort_unstable();
        found
    }

    fn has_exit(&self, code: &[usize]) -> bool {
        code.iter().any(|at| {
            let operation = self.module.operation(&self.function.code[*at]);
            operation.is_terminator() && !operation.is_branch()
        })
    }

    /// Returns the loops that every invocation reaches; adds functions called on the way to `called`.
    fn unconditional_loops(&self, called: &mut Vec<u32>) -> Vec<LoopBody> {
        let mut loops = Vec::new();
        let (mut at, mut block) = (0, self.function.code.first().map_or(0, |label| label.result));
        while let Some(instruction) = self.function.code.get(at) {
            let operation = self.module.operation(instruction);
            let next = match operation {
                SpirvOperation::Label => {
                    block = instruction.result;
                    None
                }
                SpirvOperation::Call { function, .. } => {
                    called.push(function);
                    None
                }
                SpirvOperation::LoopMerge { merge, .. } | SpirvOperation::SelectionMerge { merge } => {
                    // The whole construct is skipped: all paths through it meet at the merge block,
                    // unless one ends inside.
                    let code = self.instructions_between(block, merge);
                    if self.has_exit(&code) {
                        break;
                    }
                    if matches!(operation, SpirvOperation::LoopMerge { .. }) {
                        loops.push(LoopBody { merge, code });
                    }
                    Some(merge)
                }
                SpirvOperation::Branch { target } => Some(target),
                SpirvOperation::BranchConditional { .. }
                | SpirvOperation::Switch { .. }
                | SpirvOperation::Return { .. } => break,
                _ => None,
            };
            at = match next.and_then(|block| self.function.labels.get(&block)) {
                // Only forward edges are followed.
                Some(position) if *position > at => *position,
                Some(_) => break,
                None => at + 1,
            };
        }
        loops
    }

    fn is_constant(&self, id: u32) -> bool {
        matches!(self.module.constants.get(&id), Some((_, SpirvConstant::Scalar(_))))
    }

    /// Returns the path of a pointer: a variable and constant indices.
    fn constant_path(&self, pointer: u32) -> Option<Vec<u32>> {
        if self.module.variables.contains_key(&pointer) {
            return Some(vec![pointer]);
        }
        let chain = self.function.code.iter().find(|instruction| instruction.result == pointer)?;
        let SpirvOperation::AccessChain { base, element: None, indices } = self.module.operation(chain)
        else {
            return None;
        };
        let fixed =
            self.module.variables.contains_key(&base) && indices.iter().all(|index| self.is_constant(*index));
        fixed.then(|| [&[base], indices].concat())
    }

    /// Returns the location to which an instruction stores a constant.
    fn stored_constant_path(&self, instruction: &SpirvInstruction) -> Option<Vec<u32>> {
        let (pointer, value) = match self.module.operation(instruction) {
            SpirvOperation::Atomic(access) => match access.kind {
                AtomicKind::Store { value } | AtomicKind::Exchange { value } => (access.pointer, value),
                AtomicKind::Load | AtomicKind::CompareExchange { .. } | AtomicKind::Update { .. } => {
                    return None;
                }
            },
            SpirvOperation::Store { pointer, value, .. } => (pointer, value),
            _ => return None,
        };
        self.constant_path(pointer).filter(|_| self.is_constant(value))
    }

    /// Returns the exchange that is the only exit of a loop, if the lock is released later.
    fn acquiring_exchange(&self, body: &LoopBody) -> Option<&'m SpirvInstruction> {
        let code = &self.function.code;
        let (at, pointer) = body.code.iter().find_map(|at| {
            let SpirvOperation::Atomic(access) = self.module.operation(&code[*at]) else { return None };
            let is_constant = match access.kind {
                AtomicKind::CompareExchange { value, comparator, .. } => {
                    self.is_constant(value) && self.is_constant(comparator)
                }
                AtomicKind::Exchange { value } => self.is_constant(value),
                AtomicKind::Load | AtomicKind::Store { .. } | AtomicKind::Update { .. } => false,
            };
            is_constant.then_some((*at, access.pointer))
        })?;
        let exchange = &code[at];
        let place = self.constant_path(pointer)?;
        // Without a later store of a constant, the exchange takes no lock that is released.
        let releases_lock = |(number, one): (usize, &SpirvInstruction)| {
            number > at && self.stored_constant_path(one).as_ref() == Some(&place)
        };
        if !code.iter().enumerate().any(releases_lock) {
            return None;
        }
        let leaves = |at: &&usize| {
            self.module.successors(&self.function.types, &code[**at]).any(|target| target == body.merge)
        };
        let exits: Vec<&usize> = body.code.iter().filter(leaves).collect();
        // A second exit may let a lane leave without the lock.
        let [exit] = exits[..] else { return None };
        let SpirvOperation::BranchConditional { condition, .. } = self.module.operation(&code[*exit]) else {
            return None;
        };
        let results: HashMap<u32, &SpirvInstruction> =
            body.code.iter().map(|at| (code[*at].result, &code[*at])).collect();
        let is_exit = |target: Option<u32>| target == Some(body.merge);
        if self.is_taken(&results, exchange, condition).is_some_and(|taken| {
            let targets: Vec<u32> = self.module.successors(&self.function.types, &code[*exit]).collect();
            is_exit(targets.get(usize::from(!taken)).copied())
        }) {
            return None;
        }
        let decided_ids = self.variables_decided_by(body, exchange.result);
        self.depends_only_on(&results, &decided_ids, condition, 0).then_some(exchange)
    }

    /// Returns a condition's value for a lock that is taken; `None` if it is not a comparison of the exchanged value.
    ///
    /// A loop that a taken lock ends is not one that waits for the lock.
    fn is_taken(
        &self,
        results: &HashMap<u32, &SpirvInstruction>,
        exchange: &SpirvInstruction,
        condition: u32,
    ) -> Option<bool> {
        let number = |id: u32| {
            let (_, SpirvConstant::Scalar(number)) = self.module.constants.get(&id)? else { return None };
            Some(*number)
        };
        let SpirvOperation::Atomic(access) = self.module.operation(exchange) else { return None };
        let stored = number(access.kind.value()?)?;
        let comparison = results.get(&condition)?;
        let [left, right] = *self.module.operands_of(comparison) else { return None };
        let other = if left == exchange.result { right } else { left };
        if ![left, right].contains(&exchange.result) {
            return None;
        }
        match comparison.op {
            Op::IEqual => Some(number(other)? == stored),
            Op::INotEqual => Some(number(other)? != stored),
            _ => None,
        }
    }

    /// Returns the exchange and the local variables whose value in the loop depends only on it.
    ///
    /// A compiler without optimization keeps the result of the exchange in a flag: a variable that a selection
    /// on the exchange stores.
    fn variables_decided_by(&self, body: &LoopBody, exchange: u32) -> HashSet<u32> {
        let code = &self.function.code;
        let results: HashMap<u32, &SpirvInstruction> =
            body.code.iter().map(|at| (code[*at].result, &code[*at])).collect();
        let constructs = self.constructs_in(body);
        let mut stores: BTreeMap<u32, Vec<(usize, u32)>> = BTreeMap::new();
        for at in &body.code {
            if let SpirvOperation::Store { pointer, value, .. } = self.module.operation(&code[*at])
                && self.is_accessed_directly(body, pointer)
            {
                stores.entry(pointer).or_default().push((*at, value));
            }
        }
        let mut decided_ids = HashSet::from([exchange]);
        loop {
            let follows = |id: u32| self.depends_only_on(&results, &decided_ids, id, 0);
            // The conditions of the constructs around a store, `None` for one without a condition to follow.
            let around = |at: usize| {
                constructs
                    .iter()
                    .filter(move |(_, inside)| inside.contains(&at))
                    .map(|(condition, _)| *condition)
            };
            let is_decided = |all: &[(usize, u32)]| {
                all.iter().any(|(at, _)| around(*at).next().is_some())
                    && all.iter().all(|(at, value)| {
                        (self.is_constant(*value) || follows(*value))
                            && around(*at).all(|condition| condition.is_some_and(follows))
                    })
            };
            let more: Vec<u32> = stores
                .iter()
                .filter(|(variable, all)| !decided_ids.contains(variable) && is_decided(all))
                .map(|(variable, _)| *variable)
                .collect();
            if more.is_empty() {
                return decided_ids;
            }
            decided_ids.extend(more);
        }
    }

    /// Returns the constructs within a loop: the condition of a selection, and the instructions inside.
    fn constructs_in(&self, body: &LoopBody) -> Vec<(Option<u32>, HashSet<usize>)> {
        let code = &self.function.code;
        let mut found = Vec::new();
        for pair in body.code.windows(2) {
            let [merge, branch] = [0, 1].map(|at: usize| self.module.operation(&code[pair[at]]));
            let (merge, is_selection) = match merge {
                SpirvOperation::SelectionMerge { merge } => (merge, true),
                SpirvOperation::LoopMerge { merge, .. } if merge != body.merge => (merge, false),
                _ => continue,
            };
            let condition = match branch {
                SpirvOperation::BranchConditional { condition, .. } if is_selection => Some(condition),
                _ => None,
            };
            let arms = self.module.successors(&self.function.types, &code[pair[1]]);
            found.push((condition, arms.flat_map(|arm| self.instructions_between(arm, merge)).collect()));
        }
        found
    }

    /// Returns true for a local variable that the loop only loads and stores as a whole.
    fn is_accessed_directly(&self, body: &LoopBody, pointer: u32) -> bool {
        let code = &self.function.code;
        let is_variable = |one: &SpirvInstruction| {
            one.result == pointer && matches!(self.module.operation(one), SpirvOperation::Variable { .. })
        };
        let is_direct = |one: &SpirvInstruction| match self.module.operation(one) {
            SpirvOperation::Load { .. } => true,
            SpirvOperation::Store { value, .. } => value != pointer,
            // Literals may look like uses, which makes the answer conservative.
            _ => !self.module.operands_of(one).contains(&pointer),
        };
        code.iter().any(is_variable) && body.code.iter().all(|at| is_direct(&code[*at]))
    }

    /// Returns true if a value depends only on the exchange and on constants.
    fn depends_only_on(
        &self,
        results: &HashMap<u32, &SpirvInstruction>,
        decided_ids: &HashSet<u32>,
        id: u32,
        depth: u32,
    ) -> bool {
        if decided_ids.contains(&id) {
            return true;
        }
        let Some(instruction) = results.get(&id).filter(|_| depth < 16) else { return false };
        let ids = match self.module.operation(instruction) {
            SpirvOperation::Load { pointer, .. } => return decided_ids.contains(&pointer),
            SpirvOperation::Compute {
                instruction: Instruction::Core(Op::IEqual | Op::INotEqual | Op::LogicalNot),
                operands,
            } => operands.to_vec(),
            SpirvOperation::Composite(CompositeOperation::Construct { parts }) => parts.to_vec(),
            SpirvOperation::Composite(CompositeOperation::Extract { composite, .. }) => vec![composite],
            _ => return false,
        };
        let varies = |id: &&u32| !self.is_constant(**id);
        let mut sources = ids.iter().filter(varies).peekable();
        // A comparison of constants does not depend on the exchange.
        sources.peek().is_some()
            && sources.all(|id| self.depends_only_on(results, decided_ids, *id, depth + 1))
    }
}
