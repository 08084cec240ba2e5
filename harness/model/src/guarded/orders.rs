//! Total orders of events as bits, which exclude cycles.

use solver::{Assignment, Bit, BitVector, CircuitSolver};

use crate::matrix::Matrix;
use crate::quick::QuickMap;

/// More events are ordered by positions, whose clauses are fewer than those for each three events.
const MAX_EVENTS_OF_BITS: usize = 256;

/// The bit of each pair of events, the lower one first, that the first precedes the second.
type OrderBits = QuickMap<(usize, usize), Bit>;

/// A total order of events.
pub(super) enum TotalOrder {
    Bits(OrderBits),
    /// A number for each event; of two events with one number, the higher event is first.
    Positions(QuickMap<usize, BitVector>),
}

impl TotalOrder {
    /// Returns an order of these events, in ascending order. Events next to each other with `is_certain` have the order of
    /// their numbers.
    pub(super) fn new(
        solver: &mut CircuitSolver<'_>,
        events: &[usize],
        is_certain: impl Fn(usize, usize) -> bool,
    ) -> TotalOrder {
        // Of three events in certain order, no clause is needed.
        let mut uncertain = events.windows(2).filter(|pair| !is_certain(pair[0], pair[1]));
        if events.len() <= MAX_EVENTS_OF_BITS || uncertain.next().is_none() {
            return TotalOrder::Bits(new_total_order(solver, events, is_certain));
        }
        let width = (usize::BITS - events.len().leading_zeros()) as usize;
        let positions = events.iter().map(|event| (*event, solver.circuit.variable(width)));
        let order = TotalOrder::Positions(positions.collect());
        for pair in events.windows(2).filter(|pair| is_certain(pair[0], pair[1])) {
            let ordered = order_bit(solver, &order, pair[0], pair[1]);
            solver.require(ordered);
        }
        order
    }

    /// Returns true if an event precedes another in a solution.
    pub(super) fn is_before(&self, assignment: &Assignment, from: usize, to: usize) -> bool {
        match self {
            TotalOrder::Bits(before) => assignment.bit(ordered_bit(before, from, to)),
            TotalOrder::Positions(positions) => {
                // Of two events with one number, the higher event is first.
                let key = |event| (positions.get(&event).map(|at| assignment.number(at)), usize::MAX - event);
                key(from) < key(to)
            }
        }
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

fn ordered_bit(before: &OrderBits, from: usize, to: usize) -> Bit {
    match from < to {
        true => before.get(&(from, to)).copied(),
        false => before.get(&(to, from)).map(|bit| !*bit),
    }
    .unwrap_or(Bit::FALSE)
}

/// Returns the bits of a total order of events in ascending order.
fn new_total_order(
    solver: &mut CircuitSolver<'_>,
    events: &[usize],
    is_certain: impl Fn(usize, usize) -> bool,
) -> OrderBits {
    let mut before = QuickMap::default();
    for (index, &first) in events.iter().enumerate() {
        for &second in &events[index + 1..] {
            let is_certain = is_certain(first, second);
            before.insert((first, second), if is_certain { Bit::TRUE } else { solver.circuit.input() });
        }
    }
    for (i, &a) in events.iter().enumerate() {
        if solver.is_exhausted() {
            break;
        }
        for (j, &b) in events.iter().enumerate().skip(i + 1) {
            for &c in events[j + 1..].iter().filter(|c| !is_certain(a, **c)) {
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
