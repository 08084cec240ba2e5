//! An incremental SAT solver with a budget: batsat, a MiniSat port. It is deterministic: its decisions depend only on
//! the clauses.

use batsat::{Callbacks, Lit, Solver as Minisat, SolverInterface, SolverOpts, lbool};

use crate::budget::BudgetTracker;

/// Number of defined variables that take about as long as one decision.
const DEFINED_VARIABLES_PER_STEP: u32 = 8;

/// Spends one step of the budget per decision of the solver.
struct BudgetCallbacks<'a>(&'a BudgetTracker<'a>);

impl Callbacks for BudgetCallbacks<'_> {
    fn stop(&self) -> bool {
        self.0.spend(1)
    }
}

/// Clauses persist, assumptions change per call.
pub(crate) struct SatSolver<'a> {
    solver: Minisat<BudgetCallbacks<'a>>,
    tracker: &'a BudgetTracker<'a>,
    clause_buffer: Vec<Lit>,
}

impl<'a> SatSolver<'a> {
    /// Returns a solver without clauses, which spends a step per variable and per decision.
    pub(crate) fn new(tracker: &'a BudgetTracker<'a>) -> SatSolver<'a> {
        let solver = Minisat::new(SolverOpts::default(), BudgetCallbacks(tracker));
        SatSolver { solver, tracker, clause_buffer: Vec::new() }
    }

    /// A new variable.
    pub(crate) fn new_variable(&mut self) -> Lit {
        self.tracker.spend(1);
        Lit::new(self.solver.new_var_default(), true)
    }

    /// Returns a new variable that clauses define in terms of others; it costs a fraction of a step.
    pub(crate) fn new_defined_variable(&mut self) -> Lit {
        let variable = self.solver.new_var_default();
        self.tracker.spend(u64::from(variable.idx().is_multiple_of(DEFINED_VARIABLES_PER_STEP)));
        Lit::new(variable, true)
    }

    /// Returns true if the budget is exhausted.
    pub(crate) fn is_exhausted(&self) -> bool {
        self.tracker.is_exhausted()
    }

    /// Adds a clause: at least one of the literals holds.
    pub(crate) fn add_clause(&mut self, literals: &[Lit]) {
        self.clause_buffer.clear();
        self.clause_buffer.extend(literals);
        self.solver.add_clause_reuse(&mut self.clause_buffer);
    }

    /// Decides whether all clauses hold under these assumptions; `None` if the budget ran out first.
    pub(crate) fn solve(&mut self, assumptions: &[Lit]) -> Option<bool> {
        let answer = self.solver.solve_limited(assumptions);
        (answer == lbool::TRUE || answer == lbool::FALSE).then_some(answer == lbool::TRUE)
    }

    /// Returns true if the literal holds in the model of the last satisfiable call.
    pub(crate) fn holds(&self, literal: Lit) -> bool {
        self.solver.value_lit(literal) == lbool::TRUE
    }
}
