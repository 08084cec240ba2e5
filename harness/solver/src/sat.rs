//! The interface of incremental SAT solvers, and its implementation with batsat (a MiniSat port).

use batsat::{Callbacks, Solver as Minisat, SolverInterface, SolverOpts, Var, lbool};

use crate::budget::BudgetTracker;

/// A variable or its negation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Literal(u32);

impl std::ops::Not for Literal {
    type Output = Literal;

    fn not(self) -> Literal {
        Literal(self.0 ^ 1)
    }
}

/// An incremental SAT solver: clauses persist, assumptions change per call.
pub trait SatSolver {
    /// A new variable.
    fn new_variable(&mut self) -> Literal;

    /// Returns a new variable that clauses define in terms of others; it costs a fraction of a step.
    fn new_defined_variable(&mut self) -> Literal;

    /// Returns true if the budget is exhausted.
    fn is_exhausted(&self) -> bool;

    /// Adds a clause: at least one of the literals holds.
    fn add_clause(&mut self, literals: &[Literal]);

    /// Decides whether all clauses hold under these assumptions; `None` if the budget ran out first.
    fn solve(&mut self, assumptions: &[Literal]) -> Option<bool>;

    /// Returns true if the literal holds in the model of the last satisfiable call.
    fn holds(&self, literal: Literal) -> bool;
}

/// Number of defined variables that take about as long as one decision.
const DEFINED_VARIABLES_PER_STEP: u32 = 8;

/// Spends one step of the budget per decision of the solver.
struct BudgetCallbacks<'a>(&'a BudgetTracker<'a>);

impl Callbacks for BudgetCallbacks<'_> {
    fn stop(&self) -> bool {
        self.0.spend(1)
    }
}

/// The batsat solver, a descendant of MiniSat. It is deterministic: its decisions depend only on the clauses.
pub struct BatsatSolver<'a> {
    solver: Minisat<BudgetCallbacks<'a>>,
    tracker: &'a BudgetTracker<'a>,
    clause_buffer: Vec<batsat::Lit>,
}

impl<'a> BatsatSolver<'a> {
    /// Returns a solver without clauses, which spends a step per variable and per decision.
    pub fn new(tracker: &'a BudgetTracker<'a>) -> BatsatSolver<'a> {
        BatsatSolver {
            solver: Minisat::new(SolverOpts::default(), BudgetCallbacks(tracker)),
            tracker,
            clause_buffer: Vec::new(),
        }
    }
}

fn to_batsat_literal(literal: Literal) -> batsat::Lit {
    batsat::Lit::new(Var::unsafe_from_idx(literal.0 >> 1), literal.0 & 1 == 0)
}

impl SatSolver for BatsatSolver<'_> {
    fn new_variable(&mut self) -> Literal {
        self.tracker.spend(1);
        Literal(self.solver.new_var_default().idx() << 1)
    }

    fn new_defined_variable(&mut self) -> Literal {
        let index = self.solver.new_var_default().idx();
        self.tracker.spend(u64::from(index.is_multiple_of(DEFINED_VARIABLES_PER_STEP)));
        Literal(index << 1)
    }

    fn is_exhausted(&self) -> bool {
        self.tracker.is_exhausted()
    }

    fn add_clause(&mut self, literals: &[Literal]) {
        self.clause_buffer.clear();
        self.clause_buffer.extend(literals.iter().map(|literal| to_batsat_literal(*literal)));
        self.solver.add_clause_reuse(&mut self.clause_buffer);
    }

    fn solve(&mut self, assumptions: &[Literal]) -> Option<bool> {
        let assumptions: Vec<batsat::Lit> =
            assumptions.iter().map(|literal| to_batsat_literal(*literal)).collect();
        let answer = self.solver.solve_limited(&assumptions);
        (answer == lbool::TRUE || answer == lbool::FALSE).then_some(answer == lbool::TRUE)
    }

    fn holds(&self, literal: Literal) -> bool {
        self.solver.value_lit(to_batsat_literal(literal)) == lbool::TRUE
    }
}
