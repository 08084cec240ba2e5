//! The solver interface of the SAT encoding, and its implementation with batsat (a MiniSat port).

use batsat::{Callbacks, Solver as Minisat, SolverInterface, SolverOpts, Var, lbool};

use crate::budget::BudgetTracker;

/// A variable or its negation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Literal(u32);

impl std::ops::Not for Literal {
    type Output = Literal;

    fn not(self) -> Literal {
        Literal(self.0 ^ 1)
    }
}

/// An incremental SAT solver: clauses persist, assumptions change per call.
pub(crate) trait Solver {
    /// A new variable.
    fn variable(&mut self) -> Literal;

    /// Returns a new variable that clauses define in terms of others, never branched on.
    fn defined(&mut self) -> Literal;

    /// Returns true if the budget is exhausted.
    fn is_spent(&self) -> bool;

    /// Adds a clause: at least one of the literals holds.
    fn clause(&mut self, literals: &[Literal]);

    /// Decides whether all clauses hold under these assumptions; `None` if the budget ran out first.
    fn solve(&mut self, assumed: &[Literal]) -> Option<bool>;

    /// Returns true if the literal holds in the model of the last satisfiable call.
    fn holds(&self, literal: Literal) -> bool;
}

/// Spends one step of the budget per decision of the solver.
struct Spending<'a>(&'a BudgetTracker<'a>);

impl Callbacks for Spending<'_> {
    fn stop(&self) -> bool {
        self.0.spend(1)
    }
}

/// The batsat solver, a descendant of MiniSat. It is deterministic: its decisions depend only on the clauses.
pub(crate) struct Batsat<'a> {
    solver: Minisat<Spending<'a>>,
    purse: &'a BudgetTracker<'a>,
    clause: Vec<batsat::Lit>,
}

impl<'a> Batsat<'a> {
    pub(crate) fn new(purse: &'a BudgetTracker<'a>) -> Batsat<'a> {
        Batsat { solver: Minisat::new(SolverOpts::default(), Spending(purse)), purse, clause: Vec::new() }
    }
}

fn lit(literal: Literal) -> batsat::Lit {
    batsat::Lit::new(Var::unsafe_from_idx(literal.0 >> 1), literal.0 & 1 == 0)
}

impl Solver for Batsat<'_> {
    fn variable(&mut self) -> Literal {
        self.purse.spend(1);
        Literal(self.solver.new_var_default().idx() << 1)
    }

    fn defined(&mut self) -> Literal {
        self.purse.spend(1);
        Literal(self.solver.new_var(lbool::UNDEF, false).idx() << 1)
    }

    fn is_spent(&self) -> bool {
        self.purse.is_exhausted()
    }

    fn clause(&mut self, literals: &[Literal]) {
        self.clause.clear();
        self.clause.extend(literals.iter().map(|literal| lit(*literal)));
        self.solver.add_clause_reuse(&mut self.clause);
    }

    fn solve(&mut self, assumed: &[Literal]) -> Option<bool> {
        let assumed: Vec<batsat::Lit> = assumed.iter().map(|literal| lit(*literal)).collect();
        let answer = self.solver.solve_limited(&assumed);
        (answer == lbool::TRUE || answer == lbool::FALSE).then_some(answer == lbool::TRUE)
    }

    fn holds(&self, literal: Literal) -> bool {
        self.solver.value_lit(lit(literal)) == lbool::TRUE
    }
}
