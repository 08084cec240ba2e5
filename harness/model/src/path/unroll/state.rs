//! States of a thread on all of its paths at once, and how they merge where paths meet.

use std::collections::BTreeMap;

use solver::{Bit, BitVector, Circuit};

/// The steps whose reads something depends on, each with the bit under which it does.
pub(crate) type Dependencies = BTreeMap<usize, Bit>;

/// A value with the reads that it is computed from.
#[derive(Clone)]
pub(super) struct TracedValue {
    pub(super) value: BitVector,
    pub(super) sources: Dependencies,
}

/// A comparison with the reads that it is computed from.
#[derive(Clone)]
pub(super) struct TracedCondition {
    pub(super) holds: Bit,
    pub(super) sources: Dependencies,
}

/// The state of a thread before an instruction, merged over the paths that lead to it.
#[derive(Clone)]
pub(super) struct MergedState {
    pub(super) guard: Bit,
    pub(super) registers: Vec<TracedValue>,
    /// The comparison that each condition register holds.
    pub(super) conditions: Vec<TracedCondition>,
    /// The reads that decide if control reaches the code before an instruction, by this instruction.
    pub(super) control: BTreeMap<usize, Dependencies>,
    pub(super) heads: BTreeMap<usize, LoopHead>,
}

/// The state at the last visit of a label.
#[derive(Clone)]
pub(super) struct LoopHead {
    pub(super) first_step: usize,
    pub(super) registers: Vec<TracedValue>,
    pub(super) conditions: Vec<TracedCondition>,
}

/// Adds dependencies to others.
pub(super) fn add_dependencies(circuit: &mut Circuit, all: &mut Dependencies, added: &Dependencies) {
    for (step, bit) in added {
        let either = all.get(step).map_or(*bit, |other| circuit.or(*bit, *other));
        all.insert(*step, either);
    }
}

/// Returns the dependencies of one of two states.
fn select_dependencies(
    circuit: &mut Circuit,
    select: Bit,
    [then, otherwise]: [&Dependencies; 2],
) -> Dependencies {
    let mut selected = Dependencies::new();
    for step in then.keys().chain(otherwise.keys()) {
        let bit = |of: &Dependencies| of.get(step).copied().unwrap_or(Bit::FALSE);
        selected.insert(*step, circuit.if_then_else(select, bit(then), bit(otherwise)));
    }
    selected
}

/// Returns a bit that holds if one of two guards does, which exclude each other.
pub(super) fn join_guards(circuit: &mut Circuit, a: Bit, b: Bit) -> Bit {
    // Both sides of a branch: the guard before it.
    let (left, right) = (circuit.conjuncts(a), circuit.conjuncts(b));
    let shared: Vec<Bit> = left.iter().copied().filter(|bit| right.contains(bit)).collect();
    let open =
        |side: &[Bit]| -> Vec<Bit> { side.iter().copied().filter(|bit| !shared.contains(bit)).collect() };
    if let ([one], [other]) = (open(&left).as_slice(), open(&right).as_slice())
        && *one == !*other
    {
        return circuit.all(&shared);
    }
    circuit.or(a, b)
}

/// Merges two states of one instance, which exclude each other.
pub(super) fn merge_states(circuit: &mut Circuit, first: MergedState, second: MergedState) -> MergedState {
    let select = second.guard;
    let registers = merge_registers(circuit, select, &second.registers, &first.registers);
    let conditions = merge_conditions(circuit, select, &second.conditions, &first.conditions);
    let mut control = BTreeMap::new();
    let none = Dependencies::new();
    for end in first.control.keys().chain(second.control.keys()) {
        let reads = [&second, &first].map(|state| state.control.get(end).unwrap_or(&none));
        control.insert(*end, select_dependencies(circuit, select, reads));
    }
    let mut heads = BTreeMap::new();
    for (label, one) in &first.heads {
        let Some(other) = second.heads.get(label) else { continue };
        let head = LoopHead {
            first_step: one.first_step.min(other.first_step),
            registers: merge_registers(circuit, select, &other.registers, &one.registers),
            conditions: merge_conditions(circuit, select, &other.conditions, &one.conditions),
        };
        heads.insert(*label, head);
    }
    MergedState {
        guard: join_guards(circuit, first.guard, second.guard),
        registers,
        conditions,
        control,
        heads,
    }
}

fn merge_registers(
    circuit: &mut Circuit,
    select: Bit,
    then: &[TracedValue],
    otherwise: &[TracedValue],
) -> Vec<TracedValue> {
    let pairs = then.iter().zip(otherwise);
    let merged = pairs.map(|(then, otherwise)| TracedValue {
        value: circuit.select(select, &then.value, &otherwise.value),
        sources: select_dependencies(circuit, select, [&then.sources, &otherwise.sources]),
    });
    merged.collect()
}

fn merge_conditions(
    circuit: &mut Circuit,
    select: Bit,
    then: &[TracedCondition],
    otherwise: &[TracedCondition],
) -> Vec<TracedCondition> {
    let pairs = then.iter().zip(otherwise);
    let merged = pairs.map(|(then, otherwise)| TracedCondition {
        holds: circuit.if_then_else(select, then.holds, otherwise.holds),
        sources: select_dependencies(circuit, select, [&then.sources, &otherwise.sources]),
    });
    merged.collect()
}
