//! Total orders of events as bits, which exclude cycles.

use solver::{Bit, CircuitSolver};

use crate::matrix::Matrix;
use crate::quick::QuickMap;

/// A total order of events: the bit of each pair, the lower event first, that the first precedes the second.
pub(super) struct TotalOrder(QuickMap<(usize, usize), Bit>);

impl TotalOrder {
    /// Returns an order of these events, in ascending order. `is_certain` pairs have the order of their numbers.
    pub(super) fn new(
        solver: &mut CircuitSolver<'_>,
        events: &[usize],
        is_certain: impl Fn(usize, usize) -> bool,
    ) -> TotalOrder {
        let mut order = TotalOrder(QuickMap::default());
        for (index, &first) in events.iter().enumerate() {
            for &second in &events[index + 1..] {
                let is_certain = is_certain(first, second);
                order.0.insert((first, second), if is_certain { Bit::TRUE } else { solver.circuit.input() });
            }
        }
        for (i, &a) in events.iter().enumerate() {
            if solver.is_exhausted() {
                break;
            }
            for (j, &b) in events.iter().enumerate().skip(i + 1) {
                for &c in events[j + 1..].iter().filter(|c| !is_certain(a, **c)) {
                    let [ab, bc, ac] = [(a, b), (b, c), (a, c)].map(|(x, y)| order.bit(x, y));
                    // One bit per pair makes the order total and antisymmetric. A total relation without a cycle
                    // of three events is transitive.
                    solver.require_any(&[!ab, !bc, ac]);
                    solver.require_any(&[ab, bc, !ac]);
                }
            }
        }
        order
    }

    /// Returns the bit that an event precedes another; it does not precede itself.
    pub(super) fn bit(&self, from: usize, to: usize) -> Bit {
        match from < to {
            true => self.0.get(&(from, to)).copied(),
            false => self.0.get(&(to, from)).map(|bit| !*bit),
        }
        .unwrap_or(Bit::FALSE)
    }
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
