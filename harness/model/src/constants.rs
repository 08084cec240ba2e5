//! The constants of a test.

use litmus::{Condition, LocationInit, Operand, RegisterInit, Term, Test, Value};

/// Returns the constants of program and conditions.
///
/// These are the values that may appear out of thin air, and that reads of undefined initial values may
/// return.
pub(crate) fn value_domain(test: &Test) -> Vec<Value> {
    let mut constants: Vec<i64> = vec![0];
    for thread in &test.threads {
        for instruction in &thread.instructions {
            constants.extend(instruction.kind.operands().into_iter().filter_map(|operand| match operand {
                Operand::Constant(constant) => Some(constant),
                Operand::Register(_) => None,
            }));
        }
        for register in &thread.registers {
            if let RegisterInit::Constant(constant) = register.init {
                constants.push(constant);
            }
        }
    }
    for location in &test.locations {
        match location.init {
            LocationInit::Constant(constant) => {
                constants.push(constant);
            }
            LocationInit::Components(list) => {
                constants.extend(list.iter().take(usize::from(location.components)));
            }
            LocationInit::CopyOf(_)
            | LocationInit::AddressOf(_)
            | LocationInit::AliasOf(_)
            | LocationInit::Undefined => {}
        }
    }
    let mut condition = |condition: &Condition| {
        condition.for_each_term(&mut |term| {
            if let Term::Constant(constant) = term {
                constants.push(*constant);
            }
        });
    };
    test.filter.iter().for_each(&mut condition);
    test.question.iter().for_each(|question| condition(&question.condition));
    let widest = test
        .observables()
        .iter()
        .map(|observable| test.observable_type(*observable))
        .max_by_key(|scalar| scalar.bits())
        .unwrap_or_default();
    let mut values: Vec<Value> =
        constants.into_iter().map(|constant| Value::from_constant(constant, widest)).collect();
    values.sort_unstable();
    values.dedup();
    values
}
