//! Evaluates values through reads-from, and guesses values in cycles.

use std::collections::BTreeSet;

use litmus::{
    AccessKind, ArithmeticOperation, Compute, Condition, InstructionKind, LocationInit, MemoryAccess,
    Operand, RegisterInit, RmwOperation, SubgroupKind, Term, Test, Value,
};

use crate::thread_path::{BranchCondition, NodeId, ThreadPath, ValueOrigin};

/// The value of a node if the reads that it needs are known.
pub fn evaluate_node(path: &ThreadPath, node: NodeId, reads: &[Option<Value>]) -> Option<Value> {
    match path.nodes[node] {
        ValueOrigin::Constant(value) => Some(value),
        ValueOrigin::Read(number) => reads.get(number).copied().flatten(),
        ValueOrigin::Compute(operation, left, right, ty) => {
            Some(operation.apply(evaluate_node(path, left, reads)?, evaluate_node(path, right, reads)?, ty))
        }
        ValueOrigin::ExchangeResult(number) => reads.get(path.reads.len() + number).copied().flatten(),
        ValueOrigin::Truncate(inner, ty) => Some(evaluate_node(path, inner, reads)?.truncate_to(ty)),
    }
}

/// Returns true if a condition holds; `None` if unknown.
pub fn is_condition_met(
    path: &ThreadPath,
    demand: &BranchCondition,
    reads: &[Option<Value>],
) -> Option<bool> {
    let left = evaluate_node(path, demand.left.0, reads)?.to_signed(demand.left.1);
    let right = evaluate_node(path, demand.right.0, reads)?.to_signed(demand.right.1);
    Some(demand.relation.holds(left, right) == demand.holds)
}

/// Candidates for self-dependent values (VK-AC-06: no rule excludes them): the constants of the program and the
/// condition, and the results of the program's operations on them, applied three times.
pub fn self_dependent_candidates(test: &Test) -> Vec<Value> {
    let mut found: BTreeSet<u64> = BTreeSet::new();
    let mut operations: Vec<(ArithmeticOperation, Operand, Operand)> = Vec::new();
    let unknown = Operand::Register(litmus::RegisterId(0));
    let constant = |found: &mut BTreeSet<u64>, operand: &Operand| {
        if let Operand::Constant(constant) = operand {
            found.insert(*constant as u64);
        }
    };
    for thread in &test.threads {
        for register in &thread.registers {
            if let RegisterInit::Constant(constant) = register.init {
                found.insert(constant as u64);
            }
        }
        for instruction in &thread.instructions {
            instruction.kind.operands().iter().for_each(|operand| constant(&mut found, operand));
            match &instruction.kind {
                InstructionKind::Access(MemoryAccess {
                    kind: AccessKind::Rmw { operation: RmwOperation::Fetch(arithmetic, value), .. },
                    ..
                }) => operations.push((*arithmetic, unknown, *value)),
                InstructionKind::Compute(Compute::Arithmetic { operation, left, right, .. }) => {
                    operations.push((*operation, *left, *right));
                }
                // Votes and ballots return lane bits for any operands.
                InstructionKind::Subgroup(operation) => match operation.kind {
                    SubgroupKind::Elect | SubgroupKind::All | SubgroupKind::Any | SubgroupKind::AllEqual => {
                        found.extend([0, 1]);
                    }
                    // Any set of lanes; six lanes bound the number of guesses.
                    SubgroupKind::Ballot => found.extend(0..1 << test.threads.len().min(6)),
                    _ => {}
                },
                _ => {}
            }
        }
    }
    for index in 0..test.locations.len() {
        let location = litmus::LocationId(index as u16);
        if !test.has_undefined_init(location) {
            found.insert(test.initial_value(location, 0).0);
        }
    }
    let mut from_condition = |condition: &Condition| {
        condition.for_each_term(&mut |term| {
            if let Term::Constant(constant) = term {
                found.insert(*constant as u64);
            }
        });
    };
    if let Some(filter) = &test.filter {
        from_condition(filter);
    }
    if let Some(question) = &test.question {
        from_condition(&question.condition);
    }
    let ty = litmus::ScalarType::U64;
    for _ in 0..3 {
        let previous: Vec<u64> = found.iter().copied().collect();
        let choices = |operand: &Operand| match operand {
            Operand::Constant(constant) => vec![*constant as u64],
            Operand::Register(_) => previous.clone(),
        };
        for (operation, left, right) in &operations {
            for left in choices(left) {
                for right in choices(right) {
                    if found.len() < 64 {
                        found.insert(operation.apply(Value(left), Value(right), ty).0);
                    }
                }
            }
        }
    }
    found.into_iter().map(Value).collect()
}

/// Returns the candidate values of an undefined initial value (VK-ALLOC-04): 0, and each number in the
/// program, its initial state or its question.
pub fn undefined_value_candidates(test: &Test) -> Vec<Value> {
    let mut found: BTreeSet<u64> = BTreeSet::from([0]);
    for location in &test.locations {
        if let LocationInit::Constant(number) = location.init {
            found.insert(number as u64);
        }
    }
    for thread in &test.threads {
        for register in &thread.registers {
            if let RegisterInit::Constant(number) = register.init {
                found.insert(number as u64);
            }
        }
        for operand in thread.instructions.iter().flat_map(|instruction| instruction.kind.operands()) {
            if let Operand::Constant(number) = operand {
                found.insert(number as u64);
            }
        }
    }
    for condition in test.filter.iter().chain(test.question.iter().map(|question| &question.condition)) {
        condition.for_each_term(&mut |term| {
            if let Term::Constant(number) = term {
                found.insert(*number as u64);
            }
        });
    }
    found.into_iter().map(Value).collect()
}
