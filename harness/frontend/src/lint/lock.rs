//! Spin locks that every lane of a workgroup takes: lanes of one subgroup may wait for each other forever.
//!
//! The rule reports only certain cases: an unconditionally reached loop whose only exit is a successful
//! exchange of constants at a fixed location, followed by a store to that location.

use std::collections::{HashMap, HashSet};

use rspirv::spirv::Op;
use spirv_reader::{ModuleEntryPoint, SpirvConstant, SpirvFunction, SpirvInstruction, SpirvModule};

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
        // The end block counts as seen, so that it is never entered.
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
                        left.extend(self.module.successors(&self.function.types, instruction));
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

    /// Returns the loops that every invocation reaches; adds functions called on the way to `called`.
    fn sure(&self, called: &mut Vec<u32>) -> Vec<Body> {
        let mut loops = Vec::new();
        let (mut at, mut block) = (0, self.function.code.first().map_or(0, |label| label.result));
        while let Some(instruction) = self.function.code.get(at) {
            let operands = self.module.operands_of(instruction);
            // The first operand is the merge block of a header, and the target of a branch.
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
                    // The whole construct is skipped: all paths through it meet at the merge block,
                    // unless one ends inside.
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
        let operands = self.module.operands_of(chain);
        let fixed = matches!(chain.op, Op::AccessChain | Op::InBoundsAccessChain)
            && self.module.variables.contains_key(operands.first()?)
            && operands[1..].iter().all(|index| self.constant(*index));
        fixed.then(|| operands.to_vec())
    }

    /// Returns the location to which an instruction stores a constant.
    fn gives_back(&self, instruction: &SpirvInstruction) -> Option<Vec<u32>> {
        let operands = self.module.operands_of(instruction);
        let value = match instruction.op {
            Op::AtomicStore | Op::AtomicExchange => operands.get(3)?,
            Op::Store => operands.get(1)?,
            _ => return None,
        };
        self.place(*operands.first()?).filter(|_| self.constant(*value))
    }

    /// Returns the exchange that alone ends a loop, if the lock is released later.
    fn lock(&self, body: &Body) -> Option<&'m SpirvInstruction> {
        let code = &self.function.code;
        let exchange = body.code.iter().map(|at| (*at, &code[*at])).find(|(_, one)| {
            let operands = self.module.operands_of(one);
            let constant = |at: usize| operands.get(at).is_some_and(|id| self.constant(*id));
            match one.op {
                Op::AtomicCompareExchange => constant(4) && constant(5),
                Op::AtomicExchange => constant(3),
                _ => false,
            }
        })?;
        let (at, exchange) = exchange;
        let place = self.place(*self.module.operands_of(exchange).first()?)?;
        // Without a store of a constant behind it, the exchange takes no lock that is given back.
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
        let condition = *self.module.operands_of(&code[*exit]).first()?;
        let results: HashMap<u32, &SpirvInstruction> =
            body.code.iter().map(|at| (code[*at].result, &code[*at])).collect();
        let decided = self.decided(body, exchange.result);
        let only =
            code[*exit].op == Op::BranchConditional && self.comes_from(&results, &decided, condition, 0);
        only.then_some(exchange)
    }

    /// Returns the function variables that the loop stores only depending on the exchange.
    fn decided(&self, body: &Body, exchange: u32) -> HashSet<u32> {
        let code = &self.function.code;
        let mut decided = HashSet::from([exchange]);
        // A compiler without optimization keeps the result of the exchange in a flag: a variable
        // that a selection on the exchange stores.
        for pair in body.code.windows(2) {
            let [merge, branch] = [&code[pair[0]], &code[pair[1]]];
            let ([end, ..], [condition, arms @ ..]) =
                (self.module.operands_of(merge), self.module.operands_of(branch))
            else {
                continue;
            };
            let by_exchange = || {
                let results: HashMap<u32, &SpirvInstruction> =
                    body.code.iter().map(|at| (code[*at].result, &code[*at])).collect();
                self.comes_from(&results, &decided, *condition, 0)
            };
            if merge.op != Op::SelectionMerge || branch.op != Op::BranchConditional || !by_exchange() {
                continue;
            }
            let stores = arms.iter().take(2).flat_map(|arm| self.between(*arm, *end));
            let stores: Vec<u32> = stores
                .filter(|at| code[*at].op == Op::Store)
                .filter_map(|at| self.module.operands_of(&code[at]).first().copied())
                .collect();
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
        let operands = self.module.operands_of(instruction);
        match instruction.op {
            Op::Load => operands.first().is_some_and(|from| decided.contains(from)),
            Op::IEqual | Op::INotEqual | Op::LogicalNot | Op::CompositeExtract | Op::CompositeConstruct => {
                // The further operands of an extraction are literal indices.
                let ids = if instruction.op == Op::CompositeExtract { &operands[..1] } else { operands };
                let varies = |id: &&u32| !self.constant(**id);
                let mut sources = ids.iter().filter(varies).peekable();
                // A comparison of constants alone does not depend on the exchange.
                sources.peek().is_some()
                    && sources.all(|id| self.comes_from(results, decided, *id, depth + 1))
            }
            _ => false,
        }
    }
}
