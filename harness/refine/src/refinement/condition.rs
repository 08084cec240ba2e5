//! Conditions of branches on the values that loads return.

use std::collections::BTreeMap;

use litmus::Comparison;

use super::expression::{Expression, Symbol};

/// A comparison in normal form, so that both programs have one condition for equal branches.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Condition {
    /// The operands are sorted.
    Equal(Expression, Expression),
    /// Less than, as signed numbers. The left operand is not a constant.
    Less(Expression, Expression),
}

/// The conditions that hold or do not hold on a path.
pub(super) type ConditionFacts = BTreeMap<Condition, bool>;

/// The value of a comparison.
pub(super) enum ConditionValue {
    /// True or false for all values.
    Known(bool),
    /// True if the condition has this value.
    Open { condition: Condition, holds_if: bool },
}

fn as_signed(value: u64) -> i64 {
    i64::from(value as u32 as i32)
}

impl Condition {
    /// Returns the value of a comparison.
    pub fn compare(relation: Comparison, left: Expression, right: Expression) -> ConditionValue {
        if let (Expression::Known(left), Expression::Known(right)) = (&left, &right) {
            return ConditionValue::Known(relation.holds(as_signed(*left), as_signed(*right)));
        }
        if left == right {
            return ConditionValue::Known(relation.holds(0, 0));
        }
        match relation {
            Comparison::Equal | Comparison::NotEqual => {
                let (left, right) = if right < left { (right, left) } else { (left, right) };
                let holds_if = relation == Comparison::Equal;
                ConditionValue::Open { condition: Condition::Equal(left, right), holds_if }
            }
            Comparison::Less => Condition::compare_less(left, right, true),
            Comparison::Greater => Condition::compare_less(right, left, true),
            Comparison::GreaterOrEqual => Condition::compare_less(left, right, false),
            Comparison::LessOrEqual => Condition::compare_less(right, left, false),
        }
    }

    fn compare_less(left: Expression, right: Expression, holds_if: bool) -> ConditionValue {
        match left {
            // A number is greater than a constant unless it is less than the next one.
            Expression::Known(known) => match (known as u32 as i32).checked_add(1) {
                Some(next) => {
                    let next = Expression::Known(u64::from(next as u32));
                    ConditionValue::Open { condition: Condition::Less(right, next), holds_if: !holds_if }
                }
                None => ConditionValue::Known(!holds_if),
            },
            left => ConditionValue::Open { condition: Condition::Less(left, right), holds_if },
        }
    }

    /// Returns the condition after a change of its operands, as [`Condition::compare`].
    fn map_operands(&self, change: impl Fn(&Expression) -> Expression) -> ConditionValue {
        let (relation, left, right) = match self {
            Condition::Equal(left, right) => (Comparison::Equal, left, right),
            Condition::Less(left, right) => (Comparison::Less, left, right),
        };
        Condition::compare(relation, change(left), change(right))
    }

    /// Returns the symbols of the operands.
    pub fn symbols(&self) -> Vec<Symbol> {
        let (Condition::Equal(left, right) | Condition::Less(left, right)) = self;
        let mut symbols = Vec::new();
        left.collect_symbols(&mut symbols);
        right.collect_symbols(&mut symbols);
        symbols
    }

    /// Returns the value of a symbol that follows from the condition.
    pub fn implied_value(&self) -> Option<(Symbol, Expression)> {
        match self {
            Condition::Equal(known @ Expression::Known(_), Expression::Symbol(symbol)) => {
                Some((*symbol, known.clone()))
            }
            Condition::Equal(..) | Condition::Less(..) => None,
        }
    }
}

/// Replaces symbols in facts; `None` if a fact becomes false, so that no execution takes the path.
pub(super) fn substitute_facts(
    facts: &ConditionFacts,
    replace: &impl Fn(Symbol) -> Expression,
) -> Option<ConditionFacts> {
    let mut changed = ConditionFacts::new();
    for (condition, value) in facts {
        match condition.map_operands(|side| side.substitute(replace)) {
            ConditionValue::Known(known) if known == *value => {}
            ConditionValue::Known(_) => return None,
            ConditionValue::Open { condition, holds_if } => {
                let value = *value == holds_if;
                if changed.insert(condition, value).is_some_and(|known| known != value) {
                    return None;
                }
            }
        }
    }
    Some(changed)
}
