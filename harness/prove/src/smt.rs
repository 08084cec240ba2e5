//! Questions as scripts of SMT-LIB 2.6 (logic QF_UFBV) for an installed solver, and the numbers of its models.
//!
//! Every term is a bit-vector, and truth values have one bit. Products and quotients are exact, so the answers hold for
//! questions with abstract products as well.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use rustc_hash::FxHashMap;

use crate::decide::{Decision, Question, TermModel, result_bits};
use crate::term::{Function, FunctionId, Operator, TermArena, TermId};

/// Bits that a sum of exact summands needs in addition.
const SUM_BITS: u32 = 40;

/// An installed solver.
#[derive(Clone, Copy)]
pub struct SmtSolver<'s> {
    /// The name and the version.
    pub name: &'s str,
    /// Runs the solver on a script and returns what it prints: nothing if a limit ended it.
    ///
    /// Fails with the reason why it gives no answers.
    pub run: &'s (dyn Fn(&str) -> Result<String, String> + Sync),
}

/// Asks a solver a question. Fails if it gives no answer, or a model that is none.
pub(crate) fn ask(
    solver: SmtSolver<'_>,
    terms: &TermArena,
    question: &Question<'_>,
) -> Result<Decision, String> {
    let (script, applications) = write_script(terms, question);
    let printed = (solver.run)(&script)?;
    let (answer, model) = printed.split_once('\n').unwrap_or((&printed, ""));
    match answer.trim() {
        "unsat" => Ok(Decision::Impossible),
        "sat" => {
            let values = parse_values(model);
            let value_of = |id: &TermId| Some((*id, *values.get(&id.number())?));
            let values: Option<FxHashMap<TermId, u64>> = applications.iter().map(value_of).collect();
            let model = TermModel { values: values.ok_or("`sat` without the requested values")? };
            let at = |id: TermId| model.values.get(&id).copied().unwrap_or(0);
            // A quotient by zero has a value for the solver alone.
            match question.conjuncts.iter().map(|one| terms.evaluate(*one, &at)).min() {
                Some(Some(0)) => Err("`sat` with values for which the question does not hold".to_owned()),
                Some(None) => Ok(Decision::Unknown),
                _ => Ok(Decision::Possible(model)),
            }
        }
        "unknown" | "timeout" | "" => Ok(Decision::Unknown),
        other => Err(format!("`{other}` instead of `sat`, `unsat` or `unknown`")),
    }
}

/// Returns the script of a question, and the applications whose values it asks for.
fn write_script(terms: &TermArena, question: &Question<'_>) -> (String, Vec<TermId>) {
    let roots: Vec<TermId> = question.conjuncts.iter().chain(question.exact).copied().collect();
    let mut ids = BTreeSet::new();
    terms.for_each_subterm(&roots, |id| _ = ids.insert(id));
    let mut script = Script {
        terms,
        text: "(set-option :produce-models true)\n(set-logic QF_UFBV)\n".to_owned(),
        declared: BTreeSet::new(),
    };
    let mut applications = Vec::new();
    // The arguments of a term are older.
    for id in ids {
        let term = terms.term(id);
        if let Operator::Apply(function) = term.operator {
            applications.push(id);
            script.declare(function, &term.arguments);
        }
        let body = script.body(id);
        script.line(format_args!("(define-fun t{} () (_ BitVec {}) {body})", id.number(), term.width));
        if let Operator::Apply(function) = term.operator {
            script.limit(id, terms.function(function), question);
        }
    }
    for id in question.exact {
        script.require_exact(*id);
    }
    for id in question.conjuncts {
        script.line(format_args!("(assert (= t{} #b1))", id.number()));
    }
    script.line(format_args!("(check-sat)"));
    if !applications.is_empty() {
        let names: Vec<String> = applications.iter().map(|id| format!("t{}", id.number())).collect();
        script.line(format_args!("(get-value ({}))", names.join(" ")));
    }
    (script.text, applications)
}

/// A script in progress.
struct Script<'t> {
    terms: &'t TermArena,
    text: String,
    declared: BTreeSet<FunctionId>,
}

impl Script<'_> {
    fn line(&mut self, text: std::fmt::Arguments<'_>) {
        // Writing to a text does not fail.
        _ = writeln!(self.text, "{text}");
    }

    fn declare(&mut self, function: FunctionId, arguments: &[TermId]) {
        if self.declared.insert(function) {
            let sorts: Vec<String> =
                arguments.iter().map(|one| format!("(_ BitVec {})", self.terms.width(*one))).collect();
            let (number, width) = (function.number(), self.terms.function(function).width);
            self.line(format_args!("(declare-fun f{number} ({}) (_ BitVec {width}))", sorts.join(" ")));
        }
    }

    /// Adds the range of a function's result.
    fn limit(&mut self, id: TermId, function: &Function, question: &Question<'_>) {
        let (width, (low, high)) = (function.width, function.range);
        let high = high.min(arithmetic::mask(result_bits(function, question.small)));
        for (from, to) in [(number(width, low), name(id)), (name(id), number(width, high))] {
            self.line(format_args!("(assert (bvule {from} {to}))"));
        }
    }

    /// Returns the expression of a term by the names of its arguments.
    fn body(&self, id: TermId) -> String {
        let term = self.terms.term(id);
        let part = |index: usize| name(term.arguments[index]);
        let from = term.arguments.first().map_or(0, |one| self.terms.width(*one));
        let binary = |operator: &str| format!("({operator} {} {})", part(0), part(1));
        let truth = |operator: &str| format!("(ite {} #b1 #b0)", binary(operator));
        match &term.operator {
            Operator::Constant(value) => number(term.width, *value),
            Operator::Apply(function) if term.arguments.is_empty() => format!("f{}", function.number()),
            Operator::Apply(function) => {
                let arguments: Vec<String> = term.arguments.iter().map(|one| name(*one)).collect();
                format!("(f{} {})", function.number(), arguments.join(" "))
            }
            Operator::Sum { coefficients, constant } => {
                let summands = term.arguments.iter().zip(coefficients);
                summands.fold(number(term.width, *constant), |sum, (one, factor)| {
                    format!("(bvadd {sum} (bvmul {} {}))", number(term.width, *factor), name(*one))
                })
            }
            Operator::Multiply => binary("bvmul"),
            Operator::Divide => binary("bvudiv"),
            Operator::Remainder => binary("bvurem"),
            Operator::DivideSigned => binary("bvsdiv"),
            Operator::RemainderSigned => binary("bvsrem"),
            Operator::And => binary("bvand"),
            Operator::Or => binary("bvor"),
            Operator::Xor => binary("bvxor"),
            Operator::ShiftLeft => binary("bvshl"),
            Operator::ShiftRight => binary("bvlshr"),
            Operator::ShiftRightSigned => binary("bvashr"),
            Operator::Extend => format!("((_ zero_extend {}) {})", term.width - from, part(0)),
            Operator::ExtendSigned => format!("((_ sign_extend {}) {})", term.width - from, part(0)),
            Operator::Truncate => format!("((_ extract {} 0) {})", term.width - 1, part(0)),
            Operator::Select => format!("(ite (= {} #b1) {} {})", part(0), part(1), part(2)),
            Operator::Equal => truth("="),
            Operator::Less => truth("bvult"),
            Operator::LessSigned => truth("bvslt"),
            Operator::Every => {
                let parts = term.arguments.iter();
                parts.fold("#b1".to_owned(), |all, one| format!("(bvand {all} {})", name(*one)))
            }
            Operator::Not => format!("(bvnot {})", part(0)),
        }
    }

    /// Requires that a product or a sum does not wrap.
    fn require_exact(&mut self, id: TermId) {
        let term = self.terms.term(id);
        let extended = |one: &TermId, more: u32| format!("((_ zero_extend {more}) {})", name(*one));
        let (wide, more) = match &term.operator {
            Operator::Multiply => {
                let [a, b] = [0, 1].map(|index: usize| extended(&term.arguments[index], term.width));
                (format!("(bvmul {a} {b})"), term.width)
            }
            Operator::Sum { coefficients, constant } => {
                term.arguments.iter().for_each(|atom| self.require_exact(*atom));
                let signed =
                    |value: u64| format!("((_ sign_extend {SUM_BITS}) {})", number(term.width, value));
                let summands = term.arguments.iter().zip(coefficients);
                let sum = summands.fold(signed(*constant), |sum, (one, factor)| {
                    format!("(bvadd {sum} (bvmul {} {}))", signed(*factor), extended(one, SUM_BITS))
                });
                (sum, SUM_BITS)
            }
            _ => return,
        };
        let (high, low) = (term.width + more - 1, term.width);
        self.line(format_args!("(assert (= ((_ extract {high} {low}) {wide}) {}))", number(more, 0)));
    }
}

fn name(id: TermId) -> String {
    format!("t{}", id.number())
}

fn number(width: u32, value: u64) -> String {
    format!("(_ bv{value} {width})")
}

/// Reads pairs of a term and its number, such as `((t3 #x0f) (t4 (_ bv1 2)))`.
fn parse_values(text: &str) -> FxHashMap<u32, u64> {
    let mut values = FxHashMap::default();
    let mut term = None;
    for word in text.split(|c: char| c.is_whitespace() || c == '(' || c == ')') {
        let parse = |prefix: &str, radix| {
            word.strip_prefix(prefix).and_then(|digits| u64::from_str_radix(digits, radix).ok())
        };
        if let Some(id) = word.strip_prefix('t').and_then(|id| id.parse().ok()) {
            term = Some(id);
        } else if let Some(value) = parse("#x", 16).or_else(|| parse("#b", 2)).or_else(|| parse("bv", 10)) {
            term.take().map(|id| values.insert(id, value));
        }
    }
    values
}
