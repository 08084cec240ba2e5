//! Values of registers as expressions over the values that loads return.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use litmus::{ArithmeticOperation, ScalarType, Value};

use symbolic::function::{
    COMMUTATIVE_BIT, FIRST_OPERAND, NEGATION_BIT, PRODUCT_BIT, negation_of, operand_bits,
};

/// A value that a load or a read-modify-write returned.
pub(super) type Symbol = u32;

/// The value of a register.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Expression {
    Known(u64),
    Symbol(Symbol),
    Apply(ArithmeticOperation, Rc<Expression>, Rc<Expression>),
    /// The result of a function without a definition, by its code ([`symbolic::function`]).
    Function(u32, Rc<Expression>),
}

impl Expression {
    /// Applies an operation, and returns the normal form of the result.
    ///
    /// Sums and multiples are linear forms, so that differently grouped ones are equal.
    pub fn apply(operation: ArithmeticOperation, left: Expression, right: Expression) -> Expression {
        use ArithmeticOperation::{Add, And, Divide, Maximum, Minimum, Multiply, Or, Subtract, Xor};
        if let (Expression::Known(left), Expression::Known(right)) = (&left, &right) {
            // Registers have 32 bits.
            let narrow = |value: &u64| Value(value & u64::from(u32::MAX));
            return Expression::Known(operation.apply(narrow(left), narrow(right), ScalarType::U32).0);
        }
        let linear = |operands: [(&Expression, u32); 2]| {
            let mut sum = LinearForm::default();
            for (operand, factor) in operands {
                sum.add(operand, factor);
            }
            sum.into_expression()
        };
        let zero = Expression::Known(0);
        match (operation, &left, &right) {
            (Add, ..) => return linear([(&left, 1), (&right, 1)]),
            (Subtract, ..) => return linear([(&left, 1), (&right, u32::MAX)]),
            (Multiply, Expression::Known(factor), other) | (Multiply, other, Expression::Known(factor)) => {
                return linear([(other, *factor as u32), (&zero, 0)]);
            }
            _ => {}
        }
        let commutes = match operation {
            Add | Multiply | And | Or | Xor | Minimum | Maximum => true,
            Subtract | Divide => false,
        };
        // Known operands come first.
        let (left, right) = if commutes && right < left { (right, left) } else { (left, right) };
        match (operation, &left) {
            (Or | Xor, Expression::Known(0)) => right,
            (And, Expression::Known(0)) => Expression::Known(0),
            _ => Expression::Apply(operation, Rc::new(left), Rc::new(right)),
        }
    }

    /// Applies a function, and returns the normal form of the result.
    ///
    /// `operand` is a list: a quotient of the first operand, as a separate function, and the second one.
    pub fn apply_function(code: u32, operand: Expression) -> Expression {
        use ArithmeticOperation::Divide;
        let negated = |value: &Rc<Expression>| match &**value {
            Expression::Function(code, list) if code & NEGATION_BIT != 0 => first_operand(list),
            _ => None,
        };
        if code & NEGATION_BIT != 0
            && let Some(value) = first_operand(&operand)
            && let Some(inner) = negated(&value)
        {
            return (*inner).clone();
        }
        let Expression::Apply(Divide, head, right) = &operand else {
            return Expression::Function(code, Rc::new(operand));
        };
        let Some(left) = first_operand(head).filter(|_| code & COMMUTATIVE_BIT != 0) else {
            return Expression::Function(code, Rc::new(operand));
        };
        let list = |left: &Rc<Expression>, right: &Rc<Expression>| {
            let (left, right) = if right < left { (right, left) } else { (left, right) };
            let head = Expression::Function(FIRST_OPERAND, left.clone());
            Expression::Apply(Divide, Rc::new(head), right.clone())
        };
        if code & PRODUCT_BIT != 0 {
            // A product of negative factors is a negative product.
            let sign = 1 << (operand_bits(code) - 1);
            let opposite = |value: &Rc<Expression>| match **value {
                Expression::Known(known) if known & sign != 0 => {
                    Some(Rc::new(Expression::Known(known ^ sign)))
                }
                _ => negated(value),
            };
            let (of_left, of_right) = (opposite(&left), opposite(right));
            let is_negative = of_left.is_some() != of_right.is_some();
            let factors = [of_left.unwrap_or(left), of_right.unwrap_or_else(|| right.clone())];
            let product = Expression::Function(code, Rc::new(list(&factors[0], &factors[1])));
            if !is_negative {
                return product;
            }
            let sign = negation_of(code);
            return Expression::Function(
                sign,
                Rc::new(Expression::Function(FIRST_OPERAND, Rc::new(product))),
            );
        }
        Expression::Function(code, Rc::new(list(&left, right)))
    }

    /// Replaces symbols.
    pub fn substitute(&self, replace: &impl Fn(Symbol) -> Expression) -> Expression {
        match self {
            Expression::Known(_) => self.clone(),
            Expression::Symbol(symbol) => replace(*symbol),
            Expression::Apply(operation, left, right) => {
                Expression::apply(*operation, left.substitute(replace), right.substitute(replace))
            }
            Expression::Function(function, operand) => {
                Expression::apply_function(*function, operand.substitute(replace))
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
            Expression::Function(_, operand) => operand.collect_symbols(symbols),
        }
    }

    /// Returns the first symbol, if the value is not known.
    pub fn first_symbol(&self) -> Option<Symbol> {
        match self {
            Expression::Known(_) => None,
            Expression::Symbol(symbol) => Some(*symbol),
            Expression::Apply(_, left, right) => left.first_symbol().or_else(|| right.first_symbol()),
            Expression::Function(_, operand) => operand.first_symbol(),
        }
    }
}

/// Returns the operand of a list of one.
fn first_operand(list: &Expression) -> Option<Rc<Expression>> {
    match list {
        Expression::Function(FIRST_OPERAND, first) => Some(first.clone()),
        _ => None,
    }
}

/// A sum of multiples of expressions, modulo 2^32.
#[derive(Default)]
struct LinearForm {
    constant: u32,
    factors: BTreeMap<Expression, u32>,
}

impl LinearForm {
    /// Adds a multiple of an expression in normal form.
    fn add(&mut self, term: &Expression, factor: u32) {
        match term {
            Expression::Known(known) => {
                self.constant = self.constant.wrapping_add((*known as u32).wrapping_mul(factor));
            }
            Expression::Apply(ArithmeticOperation::Add, left, right) => {
                self.add(left, factor);
                self.add(right, factor);
            }
            Expression::Apply(ArithmeticOperation::Multiply, left, right)
                if matches!(**left, Expression::Known(_)) =>
            {
                let own = if let Expression::Known(own) = **left { own } else { 1 };
                self.add(right, (own as u32).wrapping_mul(factor));
            }
            other => {
                let own = self.factors.entry(other.clone()).or_default();
                *own = own.wrapping_add(factor);
            }
        }
    }

    fn into_expression(self) -> Expression {
        let known = |number: u32| Expression::Known(u64::from(number));
        let join = |operation, left, right| Expression::Apply(operation, Rc::new(left), Rc::new(right));
        let terms = self.factors.into_iter().filter(|(_, factor)| *factor != 0);
        let terms = terms.map(|(term, factor)| match factor {
            1 => term,
            _ => join(ArithmeticOperation::Multiply, known(factor), term),
        });
        let sum = terms.reduce(|sum, term| join(ArithmeticOperation::Add, sum, term));
        match sum {
            None => known(self.constant),
            Some(sum) if self.constant == 0 => sum,
            Some(sum) => join(ArithmeticOperation::Add, known(self.constant), sum),
        }
    }
}

/// The registers of a thread; registers that are not listed hold 0.
pub(super) type Registers = BTreeMap<u16, Expression>;

/// Registers that the code from an instruction on may read.
pub(super) type LiveRegisters = BTreeSet<u16>;
