//! Locks that every lane of a workgroup takes in a loop: lanes of one subgroup wait for each other there.
//!
//! Only what is sure is told: a loop that every invocation comes to, which ends when an exchange of constants at a fixed place
//! succeeds and by nothing else, and a write to that place behind the exchange, which gives the lock back.

use std::collections::{HashMap, HashSet};

use rspirv::spirv::Op;

use crate::module::{Constant, EntryPoint, Function, Instruction, Module};

/// The exchanges that take such locks, in the order of the module.
pub(super) fn locks(module: &Module) -> Vec<&Instruction> {
    // A size that is specialized may be one.
    let number = |id: u32| match module.constants.get(&id) {
        Some((_, Constant::Scalar(number))) if module.decorations(id).specialization.is_none() => *number,
        _ => 1,
    };
    let several = |entry: &EntryPoint| {
        module.local_size(entry.function).is_some_and(|(size, ids)| {
            size.iter().any(|axis| if ids { number(*axis) > 1 } else { *axis > 1 })
        })
    };
    let mut left: Vec<u32> =
        module.entry_points.iter().filter(|entry| several(entry)).map(|entry| entry.function).collect();
    let mut seen = HashSet::new();
    let mut found: Vec<&Instruction> = Vec::new();
    while let Some(id) = left.pop() {
        let Some(function) = module.functions.get(&id).filter(|_| seen.insert(id)) else { continue };
        let code = Code { module, function };
        found.extend(code.sure(&mut left).into_iter().filter_map(|body| code.lock(&body)));
    }
    found.sort_by_key(|exchange| exchange.place);
    found
}

/// A function whose beginning every invocation comes to.
#[derive(Clone, Copy)]
struct Code<'m> {
    module: &'m Module,
    function: &'m Function,
}

/// A loop: where it goes on, and its instructions by number.
struct Body {
    merge: u32,
    code: Vec<usize>,
}

impl<'m> Code<'m> {
    /// The instructions that lead from a block to another, in the order of the function.
    fn between(&self, from: u32, end: u32) -> Vec<usize> {
        let (mut left, mut seen) = (vec![from], HashSet::from([end]));
        let mut found = Vec::new();
        while let Some(block) = left.pop() {
            let Some(start) = self.function.labels.get(&block).copied().filter(|_| seen.insert(block)) else {
                continue;
            };
            for (at, instruction) in self.function.code.iter().enumerate().skip(start + 1) {
                match instruction.op {
                    Op::Label => break,
                    Op::Branch | Op::BranchConditional | Op::Switch => {
                        left.extend(self.module.operands(instruction));
                    }
                    _ => {}
                }
                found.push(at);
            }
        }
        found.sort_unstable();
        found
    }

    fn ends(&self, code: &[usize]) -> bool {
        let op = |at: &usize| self.function.code[*at].op;
        code.iter().any(|at| {
            matches!(
                op(at),
                Op::Return
                    | Op::ReturnValue
                    | Op::Kill
                    | Op::TerminateInvocation
                    | Op::EmitMeshTasksEXT
                    | Op::Unreachable
            )
        })
    }

    /// The loops that every invocation comes to; functions that it calls on the way are left to look at.
    fn sure(&self, called: &mut Vec<u32>) -> Vec<Body> {
        let mut loops = Vec::new();
        let (mut at, mut block) = (0, self.function.code.first().map_or(0, |label| label.result));
        while let Some(instruction) = self.function.code.get(at) {
            let operands = self.module.operands(instruction);
            let merge = operands.first().copied().unwrap_or(0);
            let next = match instruction.op {
                Op::Label => {
                    block = instruction.result;
                    None
                }
                Op::FunctionCall => {
                    called.extend(operands.first());
                    None
                }
                Op::LoopMerge | Op::SelectionMerge => {
                    let code = self.between(block, merge);
                    if self.ends(&code) {
                        break;
                    }
                    if instruction.op == Op::LoopMerge {
                        loops.push(Body { merge, code });
                    }
                    Some(merge)
                }
                Op::Branch => Some(merge),
                Op::BranchConditional | Op::Switch | Op::Return | Op::ReturnValue => break,
                _ => None,
            };
            at = match next.and_then(|block| self.function.labels.get(&block)) {
                // Control goes on, not back.
                Some(position) if *position > at => *position,
                Some(_) => break,
                None => at + 1,
            };
        }
        loops
    }

    fn constant(&self, id: u32) -> bool {
        matches!(self.module.constants.get(&id), Some((_, Constant::Scalar(_))))
    }

    /// The place of a pointer: a variable and constant indices.
    fn place(&self, pointer: u32) -> Option<Vec<u32>> {
        if self.module.variables.contains_key(&pointer) {
            return Some(vec![pointer]);
        }
        let chain = self.function.code.iter().find(|one| one.result == pointer)?;
        let operands = self.module.operands(chain);
        let fixed = matches!(chain.op, Op::AccessChain | Op::InBoundsAccessChain)
            && self.module.variables.contains_key(operands.first()?)
            && operands[1..].iter().all(|index| self.constant(*index));
        fixed.then(|| operands.to_vec())
    }

    /// The place that an instruction writes a constant to.
    fn gives_back(&self, instruction: &Instruction) -> Option<Vec<u32>> {
        let operands = self.module.operands(instruction);
        let value = match instruction.op {
            Op::AtomicStore | Op::AtomicExchange => operands.get(3)?,
            Op::Store => operands.get(1)?,
            _ => return None,
        };
        self.place(*operands.first()?).filter(|_| self.constant(*value))
    }

    /// The exchange that ends a loop and nothing else does, where the lock is given back.
    fn lock(&self, body: &Body) -> Option<&'m Instruction> {
        let code = &self.function.code;
        let exchange = body.code.iter().map(|at| (*at, &code[*at])).find(|(_, one)| {
            let operands = self.module.operands(one);
            let constant = |at: usize| operands.get(at).is_some_and(|id| self.constant(*id));
            match one.op {
                Op::AtomicCompareExchange => constant(4) && constant(5),
                Op::AtomicExchange => constant(3),
                _ => false,
            }
        })?;
        let (at, exchange) = exchange;
        let place = self.place(*self.module.operands(exchange).first()?)?;
        let given = |(number, one): (usize, &Instruction)| {
            number > at && self.gives_back(one).as_ref() == Some(&place)
        };
        if !code.iter().enumerate().any(given) {
            return None;
        }
        let leaves = |at: &&usize| {
            let operands = self.module.operands(&code[**at]);
            matches!(code[**at].op, Op::Branch | Op::BranchConditional | Op::Switch)
                && operands.contains(&body.merge)
        };
        let exits: Vec<&usize> = body.code.iter().filter(leaves).collect();
        let [exit] = exits[..] else { return None };
        let condition = *self.module.operands(&code[*exit]).first()?;
        let results: HashMap<u32, &Instruction> =
            body.code.iter().map(|at| (code[*at].result, &code[*at])).collect();
        let decided = self.decided(body, exchange.result);
        let only =
            code[*exit].op == Op::BranchConditional && self.comes_from(&results, &decided, condition, 0);
        only.then_some(exchange)
    }

    /// Variables of the function that are stored to in a loop only as the exchange decides.
    fn decided(&self, body: &Body, exchange: u32) -> HashSet<u32> {
        let code = &self.function.code;
        let mut decided = HashSet::from([exchange]);
        for pair in body.code.windows(2) {
            let [merge, branch] = [&code[pair[0]], &code[pair[1]]];
            let ([end, ..], [condition, arms @ ..]) =
                (self.module.operands(merge), self.module.operands(branch))
            else {
                continue;
            };
            let by_exchange = || {
                let results: HashMap<u32, &Instruction> =
                    body.code.iter().map(|at| (code[*at].result, &code[*at])).collect();
                self.comes_from(&results, &decided, *condition, 0)
            };
            if merge.op != Op::SelectionMerge || branch.op != Op::BranchConditional || !by_exchange() {
                continue;
            }
            let stores = arms.iter().take(2).flat_map(|arm| self.between(*arm, *end));
            let stores: Vec<u32> = stores
                .filter(|at| code[*at].op == Op::Store)
                .filter_map(|at| self.module.operands(&code[at]).first().copied())
                .collect();
            let of_function = |id: &u32| !self.module.variables.contains_key(id);
            decided.extend(stores.into_iter().filter(of_function));
        }
        decided
    }

    /// Whether a value is computed from the exchange, what it decides and constants alone.
    fn comes_from(
        &self,
        results: &HashMap<u32, &Instruction>,
        decided: &HashSet<u32>,
        id: u32,
        depth: u32,
    ) -> bool {
        if decided.contains(&id) {
            return true;
        }
        let Some(instruction) = results.get(&id).filter(|_| depth < 16) else { return false };
        let operands = self.module.operands(instruction);
        match instruction.op {
            Op::Load => operands.first().is_some_and(|from| decided.contains(from)),
            Op::IEqual | Op::INotEqual | Op::LogicalNot | Op::CompositeExtract | Op::CompositeConstruct => {
                let ids = if instruction.op == Op::CompositeExtract { &operands[..1] } else { operands };
                let varies = |id: &&u32| !self.constant(**id);
                let mut sources = ids.iter().filter(varies).peekable();
                sources.peek().is_some()
                    && sources.all(|id| self.comes_from(results, decided, *id, depth + 1))
            }
            _ => false,
        }
    }
}
