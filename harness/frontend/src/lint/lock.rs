//! Spin locks that every lane of a workgroup takes: lanes of one subgroup may wait for each other forever.
//!
//! The rule reports only certain cases: an unconditionally reached loop whose only exit is a successful
//! exchange of constants at a fixed location, followed by a store to that location.

use std::collections::{HashMap, HashSet};

use arithmetic::Instruction;
use rspirv::spirv::Op;
use spirv_reader::{
    AtomicKind, ModuleEntryPoint, SpirvConstant, SpirvFunction, SpirvInstruction, SpirvModule, SpirvOperation,
};

/// Returns the exchanges of such locks in module order.
pub(super) fn locks(module: &SpirvModule) -> Vec<&SpirvInstruction> {
    // A specialized size may be one.
    let number = |id: u32| match module.constants.get(&id) {
        Some((_, SpirvConstant::Scalar(number))) if module.decorations_of(id).specialization.is_none() => {
            *number
        }
        _ => 1,
    };
    let several = |entry: &ModuleEntryPoint| {
        module.declared_local_size(entry.function).is_some_and(|(size, ids)| {
            size.iter().any(|axis| if ids { number(*axis) > 1 } else { *axis > 1 })
        })
    };
    let mut left: Vec<u32> =
        module.entry_points.iter().filter(|entry| several(entry)).map(|entry| entry.function).collect();
    let mut seen = HashSet::new();
    let mut found: Vec<&SpirvInstruction> = Vec::new();
    while let Some(id) = left.pop() {
        let Some(function) = module.functions.get(&id).filter(|_| seen.insert(id)) else { continue };
        let code = Code { module, function };
        found.extend(code.sure(&mut left).into_iter().filter_map(|body| code.lock(&body)));
    }
    found.sort_by_key(|exchange| exchange.place);
    found
}

/// A function whose entry block every invocation reaches.
#[derive(Clone, Copy)]
struct Code<'m> {
    module: &'m SpirvModule,
    function: &'m SpirvFunction,
}

/// A loop: its exit block, and the indices of its instructions.
struct Body {
    merge: u32,
    code: Vec<usize>,
}

impl<'m> Code<'m> {
    /// Returns the instructions between two blocks, in function order.
    fn between(&self, from: u32, end: u32) -> Vec<usize> {
        // The end block is marked as visited, so it is never entered.
        let (mut left, mut seen) = (vec![from], HashSet::from([end]));
        let mut found = Vec::new();
        while let Some(block) = left.pop() {
            let Some(start) = self.function.labels.get(&block).copied().filter(|_| seen.insert(block)) else {
                continue;
            };
            for (at, instruction) in self.function.code.iter().enumerate().skip(start + 1) {
                if self.module.operation(instruction) == SpirvOperation::Label {
                    break;
                }
                left.extend(self.module.successors(&self.function.types, instruction));
                found.push(at);
            }
        }
        found.sort_unstable();
        found
    }

    fn ends(&self, code: &[usize]) -> bool {
        code.iter().any(|at| {
            let operation = self.module.operation(&self.function.code[*at]);
            operation.is_terminator() && !operation.is_branch()
        })
    }

    /// Returns the loops that every invocation reaches; adds functions called on the way to `called`.
    fn sure(&self, called: &mut Vec<u32>) -> Vec<Body> {
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
                    let code = self.between(block, merge);
                    if self.ends(&code) {
                        break;
                    }
                    if matches!(operation, SpirvOperation::LoopMerge { .. }) {
                        loops.push(Body { merge, code });
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

    fn constant(&self, id: u32) -> bool {
        matches!(self.module.constants.get(&id), Some((_, SpirvConstant::Scalar(_))))
    }

    /// Returns the path of a pointer: a variable and constant indices.
    fn place(&self, pointer: u32) -> Option<Vec<u32>> {
        if self.module.variables.contains_key(&pointer) {
            return Some(vec![pointer]);
        }
        let chain = self.function.code.iter().find(|one| one.result == pointer)?;
        let SpirvOperation::AccessChain { base, element: None, indices } = self.module.operation(chain)
        else {
            return None;
        };
        let fixed =
            self.module.variables.contains_key(&base) && indices.iter().all(|index| self.constant(*index));
        fixed.then(|| [&[base], indices].concat())
    }

    /// Returns the location to which an instruction stores a constant.
    fn gives_back(&self, instruction: &SpirvInstruction) -> Option<Vec<u32>> {
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
        self.place(pointer).filter(|_| self.constant(value))
    }

    /// Returns the exchange that is the only exit of a loop, if the lock is released later.
    fn lock(&self, body: &Body) -> Option<&'m SpirvInstruction> {
        let code = &self.function.code;
        let (at, pointer) = body.code.iter().find_map(|at| {
            let SpirvOperation::Atomic(access) = self.module.operation(&code[*at]) else { return None };
            let is_constant = match access.kind {
                AtomicKind::CompareExchange { value, comparator, .. } => {
                    self.constant(value) && self.constant(comparator)
                }
                AtomicKind::Exchange { value } => self.constant(value),
                AtomicKind::Load | AtomicKind::Store { .. } | AtomicKind::Update { .. } => false,
            };
            is_constant.then_some((*at, access.pointer))
        })?;
        let exchange = &code[at];
        let place = self.place(pointer)?;
        // Without a later store of a constant, the exchange takes no lock that is released.
        let given = |(number, one): (usize, &SpirvInstruction)| {
            number > at && self.gives_back(one).as_ref() == Some(&place)
        };
        if !code.iter().enumerate().any(given) {
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
        let decided = self.decided(body, exchange.result);
        self.comes_from(&results, &decided, condition, 0).then_some(exchange)
    }

    /// Returns the function variables that the loop stores only depending on the exchange.
    fn decided(&self, body: &Body, exchange: u32) -> HashSet<u32> {
        let code = &self.function.code;
        let mut decided = HashSet::from([exchange]);
        // A compiler without optimization keeps the result of the exchange in a flag: a variable
        // that a selection on the exchange stores.
        for pair in body.code.windows(2) {
            let [merge, branch] = [0, 1].map(|at: usize| self.module.operation(&code[pair[at]]));
            let (
                SpirvOperation::SelectionMerge { merge },
                SpirvOperation::BranchConditional { condition, yes, no },
            ) = (merge, branch)
            else {
                continue;
            };
            let results: HashMap<u32, &SpirvInstruction> =
                body.code.iter().map(|at| (code[*at].result, &code[*at])).collect();
            if !self.comes_from(&results, &decided, condition, 0) {
                continue;
            }
            let arms = [yes, no].into_iter().flat_map(|arm| self.between(arm, merge));
            let stored = |at: usize| match self.module.operation(&code[at]) {
                SpirvOperation::Store { pointer, .. } => Some(pointer),
                _ => None,
            };
            let stores: Vec<u32> = arms.filter_map(stored).collect();
            // Only the invocation itself stores to a variable of its function.
            let of_function = |id: &u32| !self.module.variables.contains_key(id);
            decided.extend(stores.into_iter().filter(of_function));
        }
        decided
    }

    /// Returns true if a value depends only on the exchange and on constants.
    fn comes_from(
        &self,
        results: &HashMap<u32, &SpirvInstruction>,
        decided: &HashSet<u32>,
        id: u32,
        depth: u32,
    ) -> bool {
        if decided.contains(&id) {
            return true;
        }
        let Some(instruction) = results.get(&id).filter(|_| depth < 16) else { return false };
        let ids = match self.module.operation(instruction) {
            SpirvOperation::Load { pointer, .. } => return decided.contains(&pointer),
            SpirvOperation::Compute {
                instruction: Instruction::Core(Op::IEqual | Op::INotEqual | Op::LogicalNot),
                operands,
            } => operands.to_vec(),
            SpirvOperation::CompositeConstruct { parts } => parts.to_vec(),
            SpirvOperation::CompositeExtract { composite, .. } => vec![composite],
            _ => return false,
        };
        let varies = |id: &&u32| !self.constant(**id);
        let mut sources = ids.iter().filter(varies).peekable();
        // A comparison of constants does not depend on the exchange.
        sources.peek().is_some() && sources.all(|id| self.comes_from(results, decided, *id, depth + 1))
    }
}
