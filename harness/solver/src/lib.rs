//! Decides questions about bits and bit-vectors with an incremental SAT solver, within a budget of steps.
//!
//! A [`Circuit`] holds gates, each built once: equal gates are shared, constants are folded. Its bit-vectors
//! ([`BitVector`]) have the operations of SMT-LIB's theory of fixed-size bit-vectors, in any width. A
//! [`CircuitSolver`] gives a gate its clauses (Tseitin's encoding) when a question first depends on it, and
//! asks the solver batsat, which is pure Rust.
//!
//! Clauses persist; a question is a list of assumptions, which hold for one call. An answer is exact. The
//! only other answer is `None`: the [`Budget`] ended first.
//!
//! Linear arithmetic and comparisons are cheap at 64 bits. A product or quotient of two unknown numbers of 32
//! bits is not: its clauses are quadratic in the width, and the solver may not answer within seconds.
//!
//! ```
//! use solver::{BitVector, Budget, BudgetTracker, CircuitSolver};
//!
//! let tracker = BudgetTracker::new(Budget::default());
//! let mut solver = CircuitSolver::new(&tracker);
//! let circuit = &mut solver.circuit;
//! let (x, ten) = (circuit.variable(8), BitVector::constant(8, 10));
//! let sum = circuit.add(&x, &ten);
//! // Does x + 10 wrap around?
//! let wraps = circuit.less_than(&sum, &x);
//! assert_eq!(solver.solve(&[wraps]), Some(true));
//! assert!(solver.assignment().number(&x) >= 246);
//! let is_small = solver.circuit.less_than(&x, &BitVector::constant(8, 246));
//! assert_eq!(solver.solve(&[wraps, is_small]), Some(false));
//! ```

mod bit_vector;
mod budget;
mod circuit;
mod circuit_solver;

pub use bit_vector::{BitVector, MAX_CASES, ShiftKind};
pub use budget::{Budget, BudgetTracker, STOP_POLL_INTERVAL};
pub use circuit::{Bit, Circuit};
pub use circuit_solver::{Assignment, CircuitSolver};
