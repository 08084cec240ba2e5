//! Conditions over outcomes: `filter`, `exists`, `~exists`, `forall`.

use crate::comparison::Comparison;
use crate::span::Span;
use crate::test::{LocationId, RegisterId, ThreadId};

/// A predicate on an outcome; its comparisons have sides of this type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Condition<S = Term> {
    /// Always true; an empty conjunction.
    True,
    /// A comparison of two terms; relations other than equality are signed.
    Compare {
        /// Left side.
        left: S,
        /// The relation.
        comparison: Comparison,
        /// Right side.
        right: S,
    },
    /// Both hold.
    And(Box<Condition<S>>, Box<Condition<S>>),
    /// At least one holds.
    Or(Box<Condition<S>>, Box<Condition<S>>),
    /// It does not hold.
    Not(Box<Condition<S>>),
}

/// A side of a comparison.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Term {
    /// The final value of a register.
    Register(ThreadId, RegisterId),
    /// The final value of a location: of one component of a vector; component 0 of a scalar.
    Location(LocationId, u8),
    /// The address of a location. Dartagnan reads a bare location on the right of a comparison this way.
    Address(LocationId),
    /// A number.
    Constant(i64),
}

/// The question of a test: a condition with a quantifier.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Question {
    /// The quantifier.
    pub kind: QuestionKind,
    /// The condition under it.
    pub condition: Condition,
    /// The source position.
    pub span: Span,
}

/// The quantifier of a question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QuestionKind {
    /// `exists`: some allowed outcome meets the condition.
    Exists,
    /// `~exists`: no allowed outcome meets it.
    NotExists,
    /// `forall`: every allowed outcome meets it.
    Forall,
    /// `final`: read as `exists`, as in Dartagnan.
    Final,
}

impl<S> Condition<S> {
    /// Visits every side of a comparison, left to right.
    pub fn for_each_term<'a>(&'a self, visit: &mut impl FnMut(&'a S)) {
        match self {
            Condition::True => {}
            Condition::Compare { left, right, .. } => {
                visit(left);
                visit(right);
            }
            Condition::And(left, right) | Condition::Or(left, right) => {
                left.for_each_term(visit);
                right.for_each_term(visit);
            }
            Condition::Not(inner) => inner.for_each_term(visit),
        }
    }

    /// Replaces every side of a comparison; the second argument of `change` is the other side.
    pub fn map_sides<R>(&self, change: &mut impl FnMut(&S, &S) -> R) -> Condition<R> {
        match self {
            Condition::True => Condition::True,
            Condition::Compare { left, comparison, right } => Condition::Compare {
                left: change(left, right),
                comparison: *comparison,
                right: change(right, left),
            },
            Condition::And(left, right) => {
                Condition::And(Box::new(left.map_sides(change)), Box::new(right.map_sides(change)))
            }
            Condition::Or(left, right) => {
                Condition::Or(Box::new(left.map_sides(change)), Box::new(right.map_sides(change)))
            }
            Condition::Not(inner) => Condition::Not(Box::new(inner.map_sides(change))),
        }
    }

    /// Evaluates the condition in three-valued logic; `None` if it depends on an unknown term.
    ///
    /// `value` returns the signed value of a term, or `None` if it is unknown. Its second argument is the
    /// other side of the comparison, whose type determines how a constant is read.
    pub fn evaluate_partial(&self, value: &mut impl FnMut(&S, &S) -> Option<i64>) -> Option<bool> {
        match self {
            Condition::True => Some(true),
            Condition::Compare { left, comparison, right } => {
                let (left, right) = (value(left, right)?, value(right, left)?);
                Some(comparison.holds(left, right))
            }
            Condition::And(left, right) => {
                match (left.evaluate_partial(value), right.evaluate_partial(value)) {
                    (Some(false), _) | (_, Some(false)) => Some(false),
                    (Some(true), Some(true)) => Some(true),
                    _ => None,
                }
            }
            Condition::Or(left, right) => match (left.evaluate_partial(value), right.evaluate_partial(value))
            {
                (Some(true), _) | (_, Some(true)) => Some(true),
                (Some(false), Some(false)) => Some(false),
                _ => None,
            },
            Condition::Not(inner) => inner.evaluate_partial(value).map(|holds| !holds),
        }
    }

    /// Returns true if the condition holds when `value` gives the signed value of every term; see
    /// [`Condition::evaluate_partial`].
    pub fn is_satisfied(&self, value: &mut impl FnMut(&S, &S) -> i64) -> bool {
        self.evaluate_partial(&mut |term, other| Some(value(term, other))) == Some(true)
    }
}
