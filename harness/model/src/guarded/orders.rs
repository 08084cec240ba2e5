//! Total orders of events as bits, which exclude cycles.

use solver::{Bit, BitVector, CircuitSolver};

use crate::matrix::Matrix;
use crate::quick::QuickMap;

/// Larger cycles of events that may be missing are excluded by positions, whose clauses are fewer than those for each
/// three events.
const MAX_CYCLE_EVENTS: usize = 40;

/// The bit of each pair of events, the lower one first, that the first precedes the second.
pub(super) type OrderBits = QuickMap<(usize, usize), Bit>;

/// A total order of events.
pub(super) enum TotalOrder {
    Bits(OrderBits),
    /// A number for each event; of two events with one number, the higher event is first.
    Positions(QuickMap<usize, BitVector>),
}

impl TotalOrder {
    /// Returns an order in which no cycle of these events, in ascending order, is possible. `all_execute`: none of them may
    /// be missing.
    pub(super) fn new(solver: &mut CircuitSolver<'_>, events: &[usize], all_execute: bool) -> TotalOrder {
        if all_execute || events.len() <= MAX_CYCLE_EVENTS {
            return TotalOrder::Bits(new_total_order(solver, events));
        }
        let width = (usize::BITS - events.len().leading_zeros()) as usize;
        let positions = events.iter().map(|event| (*event, solver.circuit.variable(width)));
        TotalOrder::Positions(positions.collect())
    }
}

/// Returns the bit that an event precedes another; it does not precede itself.
pub(super) fn order_bit(solver: &mut CircuitSolver<'_>, order: &TotalOrder, from: usize, to: usize) -> Bit {
    match order {
        _ if from == to => Bit::FALSE,
        TotalOrder::Bits(before) => ordered_bit(before, from, to),
        TotalOrder::Positions(positions) => {
            match (positions.get(&from.min(to)), positions.get(&from.max(to))) {
                (Some(low), Some(high)) if from < to => solver.circuit.less_than(low, high),
                (Some(low), Some(high)) => !solver.circuit.less_than(low, high),
                _ => Bit::FALSE,
            }
        }
    }
}

pub(super) fn ordered_bit(before: &OrderBits, from: usize, to: usize) -> Bit {
    match from < to {
        true => before.get(&(from, to)).copied(),
        false => before.get(&(to, from)).map(|bit| !*bit),
    }
    .unwrap_or(Bit::FALSE)
}

/// Returns the bits of a total order of events in ascending order.
pub(super) fn new_total_order(solver: &mut CircuitSolver<'_>, events: &[usize]) -> OrderBits {
    let mut before = QuickMap::default();
    for (index, &first) in events.iter().enumerate() {
        for &second in &events[index + 1..] {
            before.insert((first, second), solver.circuit.input());
        }
    }
    for (i, &a) in events.iter().enumerate() {
        for (j, &b) in events.iter().enumerate().skip(i + 1) {
            for &c in &events[j + 1..] {
                let [ab, bc, ac] = [(a, b), (b, c), (a, c)].map(|(x, y)| ordered_bit(&before, x, y));
                // One bit per pair makes the order total and antisymmetric. A total relation without a cycle
                // of three events is transitive.
                solver.require_any(&[!ab, !bc, ac]);
                solver.require_any(&[ab, bc, !ac]);
            }
        }
    }
    before
}

/// Returns the strongly connected components that contain cycles, with events in ascending order.
pub(super) fn cyclic_components<M: Matrix>(relation: &M, n: usize) -> Vec<Vec<usize>> {
    let reaches = relation.plus();
    let mut components: Vec<Vec<usize>> = Vec::new();
    for event in (0..n).filter(|event| reaches.contains(*event, *event)) {
        let is_mutual = |first: &usize| reaches.contains(*first, event) && reaches.contains(event, *first);
        match components.iter_mut().find(|component| component.first().is_some_and(is_mutual)) {
            Some(component) => component.push(event),
            None => components.push(vec![event]),
        }
    }
    components
}
