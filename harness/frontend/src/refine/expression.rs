//! Values of registers as expressions over the values that loads return.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use litmus::{ArithmeticOperation, ScalarType, Value};

/// A value that a load or a read-modify-write returned.
pub(super) type Symbol = u32;

/// The value of a register.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Expression {
    Known(u64),
    Symbol(Symbol),
    Apply(ArithmeticOperation, Rc<Expression>, Rc<Expression>),
}

impl Expression {
    /// Applies an operation, and folds constants.
    pub fn apply(operation: ArithmeticOperation, left: Expression, right: Expression) -> Expression {
        use ArithmeticOperation::{Add, And, Divide, Maximum, Minimum, Multiply, Or, Subtract, Xor};
        let compute = |left: u64, right: u64| {
            // Registers have 32 bits.
            let narrow = |value| Value(value & u64::from(u32::MAX));
            operation.apply(narrow(left), narrow(right), ScalarType::U32).0
        };
        if let (Expression::Known(left), Expression::Known(right)) = (&left, &right) {
            return Expression::Known(compute(*left, *right));
        }
        // Normal form: subtraction of a constant is addition of its negation.
        if let (Subtract, Expression::Known(right)) = (operation, &right) {
            let negated = Expression::Known(u64::from((*right as u32).wrapping_neg()));
            return Expression::apply(Add, left, negated);
        }
        let commutes = match operation {
            Add | Multiply | And | Or | Xor | Minimum | Maximum => true,
            Subtract | Divide => false,
        };
        // Known operands come first.
        let (left, right) = if commutes && right < left { (right, left) } else { (left, right) };
        // Constants of nested operations of one kind are combined (associativity), so that
        // differently grouped sums are equal.
        if let (Expression::Known(outer), Expression::Apply(inner, known, rest)) = (&left, &right)
            && let Expression::Known(known) = **known
            && *inner == operation
            && commutes
        {
            let folded = Expression::Known(compute(*outer, known));
            return Expression::apply(operation, folded, (**rest).clone());
        }
        match (operation, &left) {
            (Add | Or | Xor, Expression::Known(0)) | (Multiply, Expression::Known(1)) => right,
            (Multiply | And, Expression::Known(0)) => Expression::Known(0),
            _ => Expression::Apply(operation, Rc::new(left), Rc::new(right)),
        }
    }

    /// Replaces symbols.
    pub fn substitute(&self, replace: &impl Fn(Symbol) -> Expression) -> Expression {
        match self {
            Expression::Known(_) => self.clone(),
            Expression::Symbol(symbol) => replace(*symbol),
            Expression::Apply(operation, left, right) => {
                Expression::apply(*operation, left.substitute(replace), right.substitute(replace))
            }
        }
    }

    /// Adds the symbols in order of their occurrence, without repetition.
    pub fn collect_symbols(&self, symbols: &mut Vec<Symbol>) {
        match self {
            Expression::Known(_) => {}
            Expression::Symbol(symbol) => {
                if !symbols.contains(symbol) {
                    symbols.push(*symbol);
                }
            }
            Expression::Apply(_, left, right) => {
                left.collect_symbols(symbols);
                right.collect_symbols(symbols);
            }
        }
    }

    /// Returns the first symbol, if the value is not known.
    pub fn first_symbol(&self) -> Option<Symbol> {
        match self {
            Expression::Known(_) => None,
            Expression::Symbol(symbol) => Some(*symbol),
            Expression::Apply(_, left, right) => left.first_symbol().or_else(|| right.first_symbol()),
        }
    }
}

/// The registers of a thread; registers that are not listed hold 0.
pub(super) type Registers = BTreeMap<u16, Expression>;

/// Registers that the code from an instruction on may read.
pub(super) type LiveRegisters = BTreeSet<u16>;
