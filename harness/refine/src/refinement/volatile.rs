//! Volatile accesses, which a compiler may not eliminate, duplicate or combine (SPIR-V, "Memory Operands").
//!
//! An access is volatile by its operands or semantics, or by the decoration of its variable or of a member on
//! the path to it. The executions of a thread are compared by the number of its volatile accesses.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use rspirv::spirv::{MemorySemantics, Op};
use spirv_reader::{MemoryEffect, SourcePosition, SpirvConstant, SpirvFunction, SpirvModule, SpirvType};

use super::condition::ConditionFacts;
use super::event::CellKey;
use super::expression::{Expression, Symbol};
use super::program::{Program, ProgramStep, ThreadPosition};
use entry_point::accessed_variable::root_variable;

/// Upper bound on the steps of all paths of a thread.
const MAX_STEPS: usize = 20_000;
/// Upper bound on the instructions between a pointer and its variable.
const MAX_POINTER_STEPS: usize = 64;

/// The number of volatile loads and of other volatile accesses of each cell.
type VolatileCounts = BTreeMap<(CellKey, bool), usize>;

/// Returns the positions of the volatile accesses of a module.
pub(super) fn volatile_places(module: &SpirvModule) -> HashSet<SourcePosition> {
    let is_volatile_word = |id: u32| match module.constants.get(&id) {
        Some((_, SpirvConstant::Scalar(word))) => *word & u64::from(MemorySemantics::VOLATILE.bits()) != 0,
        _ => false,
    };
    let mut places = HashSet::new();
    for function in module.functions.values() {
        for instruction in &function.code {
            let operation = module.operation(instruction);
            let is_volatile = match operation.memory_effect() {
                MemoryEffect::Access(accesses) => accesses.iter().flatten().any(|access| {
                    access.memory.volatile || is_volatile_path(module, function, access.pointer)
                }),
                MemoryEffect::Texel { memory, .. } => {
                    let image = module.operands_of(instruction).first();
                    memory.volatile || image.is_some_and(|image| is_volatile_path(module, function, *image))
                }
                MemoryEffect::Atomic(access) => {
                    is_volatile_word(access.semantics) || is_volatile_path(module, function, access.pointer)
                }
                MemoryEffect::None
                | MemoryEffect::Barrier { .. }
                | MemoryEffect::Interlock
                | MemoryEffect::Unknown => false,
            };
            if is_volatile {
                places.insert(instruction.place);
            }
        }
    }
    places
}

/// Returns true if the variable of a pointer, or a member on the path, is decorated as volatile.
fn is_volatile_path(module: &SpirvModule, function: &SpirvFunction, pointer: u32) -> bool {
    let is_volatile = |variable| module.decorations_of(variable).volatile;
    if root_variable(module, function, pointer).is_some_and(is_volatile) {
        return true;
    }
    let mut id = pointer;
    for _ in 0..MAX_POINTER_STEPS {
        let Some(chain) = function.code.iter().find(|instruction| instruction.result == id) else { break };
        let Some((base, indices)) = module.operands_of(chain).split_first() else { break };
        if !matches!(chain.op, Op::AccessChain | Op::InBoundsAccessChain) {
            id = *base;
            continue;
        }
        let variable = module.variables.get(base).map(|variable| variable.ty);
        let definition = function.code.iter().find(|one| one.result == *base).map(|one| one.ty);
        let Some(mut ty) = variable.or(definition) else { break };
        if let Some(SpirvType::Pointer { pointee, .. }) = module.types.get(&ty) {
            ty = *pointee;
        }
        for index in indices {
            let number = match module.constants.get(index) {
                Some((_, SpirvConstant::Scalar(number))) => *number as u32,
                _ => 0,
            };
            if module.member_decorations.get(&(ty, number)).is_some_and(|member| member.volatile) {
                return true;
            }
            ty = match module.types.get(&ty) {
                Some(SpirvType::Struct { members }) => members.get(number as usize).copied().unwrap_or(ty),
                Some(SpirvType::Array { element, .. } | SpirvType::RuntimeArray { element }) => *element,
                _ => ty,
            };
        }
        id = *base;
    }
    false
}

/// Returns true if no path of AFTER has the volatile accesses of a path of BEFORE.
pub(super) fn have_different_counts(before: &Program<'_>, after: &Program<'_>) -> bool {
    let (before, after) = (path_counts(before), path_counts(after));
    before.zip(after).is_some_and(|(before, after)| before.is_disjoint(&after))
}

/// Returns the counts of every path; `None` if a path is not followed to its end.
///
/// A superset, since the conditions of a path may exclude each other.
fn path_counts(program: &Program<'_>) -> Option<BTreeSet<VolatileCounts>> {
    if program.has_loop {
        return None;
    }
    let start = ThreadPosition { position: 0, registers: BTreeMap::new() };
    let mut paths = vec![(start, ConditionFacts::new(), VolatileCounts::new())];
    let mut all = BTreeSet::new();
    let mut steps = 0;
    let mut next_symbol: Symbol = 0;
    while let Some((mut machine, facts, mut counts)) = paths.pop() {
        loop {
            steps += 1;
            if steps > MAX_STEPS {
                return None;
            }
            match program.advance(&mut machine, &facts) {
                ProgramStep::Event(event) => {
                    if let Some(cell) = event.cell.clone().filter(|_| event.is_volatile) {
                        let is_load = event.is_load();
                        let offset = match cell.offset {
                            known @ Expression::Known(_) => known,
                            _ => Expression::Symbol(0),
                        };
                        *counts.entry((CellKey { offset, ..cell }, is_load)).or_default() += 1;
                    }
                    if let Some(register) = event.destination {
                        machine.registers.insert(register, Expression::Symbol(next_symbol));
                        next_symbol += 1;
                    }
                }
                ProgramStep::Split(condition) => {
                    for holds in [true, false] {
                        let mut facts = facts.clone();
                        facts.insert(condition.clone(), holds);
                        paths.push((machine.clone(), facts, counts.clone()));
                    }
                    break;
                }
                ProgramStep::End => {
                    all.insert(counts);
                    break;
                }
                ProgramStep::Hang
                | ProgramStep::Cut
                | ProgramStep::Undefined(_)
                | ProgramStep::Unsupported(_) => return None,
            }
        }
    }
    Some(all)
}
