//! Questions about a circuit: gates get clauses when a question first depends on them.
//!
//! The solver is batsat, an incremental MiniSat port. It is deterministic: its decisions depend only on the clauses.

use batsat::{Callbacks, Lit, Solver, SolverInterface, SolverOpts, lbool};

use crate::bit_vector::BitVector;
use crate::budget::BudgetTracker;
use crate::circuit::{Bit, Circuit, Gate};

/// Number of defined variables that take about as long as one decision.
const DEFINED_VARIABLES_PER_STEP: u32 = 8;

/// Spends one step of the budget per decision of the solver.
struct BudgetCallbacks<'a>(&'a BudgetTracker<'a>);

impl Callbacks for BudgetCallbacks<'_> {
    fn stop(&self) -> bool {
        self.0.spend(1)
    }
}

/// A circuit with a solver. Requirements persist; assumptions hold for one call.
///
/// A gate without influence on requirements and assumptions costs no clause.
pub struct CircuitSolver<'a> {
    /// The circuit, which may grow between two calls.
    pub circuit: Circuit,
    solver: Solver<BudgetCallbacks<'a>>,
    tracker: &'a BudgetTracker<'a>,
    clause_buffer: Vec<Lit>,
    /// The literal that is true.
    truth: Lit,
    /// The literal of each node that has clauses.
    literals: Vec<Option<Lit>>,
}

impl<'a> CircuitSolver<'a> {
    /// Returns an empty circuit without requirements, whose inputs and decisions cost a step each.
    pub fn new(tracker: &'a BudgetTracker<'a>) -> CircuitSolver<'a> {
        let mut solver = Solver::new(SolverOpts::default(), BudgetCallbacks(tracker));
        let truth = Lit::new(solver.new_var_default(), true);
        tracker.spend(1);
        solver.add_clause_reuse(&mut vec![truth]);
        let (clause_buffer, literals) = (Vec::new(), vec![Some(truth)]);
        CircuitSolver { circuit: Circuit::default(), solver, tracker, clause_buffer, truth, literals }
    }

    /// Requires that at least one bit holds in every further answer.
    pub fn require_any(&mut self, bits: &[Bit]) {
        if bits.contains(&Bit::TRUE) {
            return;
        }
        let clause: Vec<Lit> =
            bits.iter().filter(|bit| **bit != Bit::FALSE).map(|bit| self.literal(*bit)).collect();
        add_clause(&mut self.solver, &mut self.clause_buffer, &clause);
    }

    /// Requires that this bit holds in every further answer.
    pub fn require(&mut self, bit: Bit) {
        self.require_any(&[bit]);
    }

    /// Decides whether the requirements and these bits can hold together; `None` if the budget ended first.
    pub fn solve(&mut self, assumptions: &[Bit]) -> Option<bool> {
        let assumptions: Vec<Lit> = assumptions.iter().map(|bit| self.literal(*bit)).collect();
        let answer = self.solver.solve_limited(&assumptions);
        (answer == lbool::TRUE || answer == lbool::FALSE).then_some(answer == lbool::TRUE)
    }

    /// Returns the values of all nodes in the model of the last satisfiable call.
    ///
    /// Inputs that no question depended on are false.
    pub fn assignment(&self) -> Assignment {
        let holds = |node: usize| {
            let literal = self.literals.get(node).copied().flatten();
            literal.is_some_and(|literal| self.solver.value_lit(literal) == lbool::TRUE)
        };
        Assignment { values: self.circuit.evaluate(holds) }
    }

    /// Returns true if the budget is exhausted.
    pub fn is_exhausted(&self) -> bool {
        self.tracker.is_exhausted()
    }

    /// Returns the literal of a bit; adds the clauses of the gates that it depends on.
    fn literal(&mut self, bit: Bit) -> Lit {
        self.literals.resize(self.circuit.node_count(), None);
        // A list instead of recursion: the depth of a circuit is not bounded.
        let mut open = vec![bit.node()];
        while let Some(&node) = open.last() {
            if self.literals[node].is_some() {
                open.pop();
                continue;
            }
            let operands: Vec<Bit> = match self.circuit.gate(node) {
                Gate::True | Gate::Input => Vec::new(),
                Gate::And(operands) => operands.to_vec(),
                Gate::Xor(a, b) => vec![*a, *b],
                Gate::IfThenElse(condition, then, otherwise) => vec![*condition, *then, *otherwise],
            };
            let before = open.len();
            open.extend(operands.iter().map(|bit| bit.node()).filter(|node| self.literals[*node].is_none()));
            if open.len() == before {
                open.pop();
                self.define(node, &operands);
            }
        }
        self.known_literal(bit)
    }

    /// Returns the literal of a bit whose node has one.
    fn known_literal(&self, bit: Bit) -> Lit {
        let literal = self.literals[bit.node()].unwrap_or(self.truth);
        if bit.is_negated() { !literal } else { literal }
    }

    /// Adds the variable of a node and the clauses that define it; its operands have literals.
    fn define(&mut self, node: usize, operands: &[Bit]) {
        // An input costs a step, a defined variable a fraction of one.
        let variable = self.solver.new_var_default();
        let is_input = matches!(self.circuit.gate(node), Gate::Input);
        let is_step = is_input || variable.idx().is_multiple_of(DEFINED_VARIABLES_PER_STEP);
        self.tracker.spend(u64::from(is_step));
        let whole = Lit::new(variable, true);
        self.literals[node] = Some(whole);
        let operands: Vec<Lit> = operands.iter().map(|bit| self.known_literal(*bit)).collect();
        let mut add = |clause: &[Lit]| add_clause(&mut self.solver, &mut self.clause_buffer, clause);
        match (self.circuit.gate(node), operands.as_slice()) {
            (Gate::Xor(..), &[a, b]) => {
                for clause in [[!whole, a, b], [!whole, !a, !b], [whole, !a, b], [whole, a, !b]] {
                    add(&clause);
                }
            }
            (Gate::IfThenElse(..), &[condition, then, otherwise]) => {
                for clause in [
                    [!condition, !then, whole],
                    [!condition, then, !whole],
                    [condition, !otherwise, whole],
                    [condition, otherwise, !whole],
                    // Redundant, but both branches determine the result before the condition does.
                    [!then, !otherwise, whole],
                    [then, otherwise, !whole],
                ] {
                    add(&clause);
                }
            }
            (Gate::And(_), operands) => {
                operands.iter().for_each(|operand| add(&[!whole, *operand]));
                let clause: Vec<Lit> = operands.iter().map(|operand| !*operand).chain([whole]).collect();
                add(&clause);
            }
            (Gate::True | Gate::Input | Gate::Xor(..) | Gate::IfThenElse(..), _) => {}
        }
    }
}

/// Adds a clause: at least one of the literals holds.
fn add_clause(solver: &mut Solver<BudgetCallbacks<'_>>, buffer: &mut Vec<Lit>, literals: &[Lit]) {
    buffer.clear();
    buffer.extend(literals);
    solver.add_clause_reuse(buffer);
}

/// The values of a circuit's nodes.
#[derive(Clone, Debug)]
pub struct Assignment {
    values: Vec<bool>,
}

impl Assignment {
    /// Returns the value of a bit; a bit that is younger than the assignment is false.
    pub fn bit(&self, bit: Bit) -> bool {
        self.values.get(bit.node()).is_some_and(|value| *value != bit.is_negated())
    }

    /// Returns the value of a bit-vector; bits above the 128th are ignored.
    pub fn number(&self, vector: &BitVector) -> u128 {
        let bits = vector.bits().iter().take(128).enumerate();
        bits.fold(0, |number, (place, bit)| number | u128::from(self.bit(*bit)) << place)
    }
}
