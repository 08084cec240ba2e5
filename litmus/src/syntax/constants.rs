//! Checks that constants fit their types. A store of a larger constant would store another value, and a
//! condition on it could never hold.

#![deny(clippy::wildcard_enum_match_arm)]

use crate::condition::{Condition, Term};
use crate::error::{ErrorList, ParseError};
use crate::khronos::NO_VALUE;
use crate::outcome::Observable;
use crate::span::Span;
use crate::test::{
    AccessKind, Compute, Dialect, Flow, InstructionKind, LocationInit, Operand, RegisterId, RegisterInit,
    RmwOperation, ScalarType, Test, ThreadId,
};
use crate::value::Value;

/// Reports every constant of a test that does not fit its type.
pub(super) fn check_constants(test: &Test, errors: &mut ErrorList) {
    for location in &test.locations {
        match &location.init {
            LocationInit::Constant(constant) => {
                check_fits(*constant, location.scalar_type(), location.span, errors)
            }
            LocationInit::Components(constants) => {
                constants
                    .iter()
                    .for_each(|one| check_fits(*one, location.scalar_type(), location.span, errors));
            }
            LocationInit::CopyOf(_)
            | LocationInit::AddressOf(_)
            | LocationInit::AliasOf(_)
            | LocationInit::Undefined => {}
        }
    }
    for (number, thread) in test.threads.iter().enumerate() {
        let number = ThreadId(number as u16);
        for (register, declared) in thread.registers.iter().enumerate() {
            if let RegisterInit::Constant(constant) = declared.init {
                check_fits(
                    constant,
                    test.register_type(number, RegisterId(register as u16)),
                    thread.span,
                    errors,
                );
            }
        }
        for instruction in &thread.instructions {
            for (operand, ty) in typed_operands(test, number, &instruction.kind) {
                // Lines of a `.test` file may leave a value open.
                let open = test.dialect == Dialect::Khronos && operand == Operand::Constant(NO_VALUE);
                if let Operand::Constant(constant) = operand
                    && !open
                {
                    check_fits(constant, ty, instruction.span, errors);
                }
            }
        }
    }
    let question = test.question.as_ref().map(|question| (&question.condition, question.span));
    let filter = test.filter.as_ref().map(|filter| (filter, filter_span(test)));
    for (condition, span) in question.into_iter().chain(filter) {
        check_condition(test, condition, span, errors);
    }
}

/// Reports every constant of a condition about `test` that does not fit the type of the other side.
pub(super) fn check_condition(test: &Test, condition: &Condition, span: Span, errors: &mut ErrorList) {
    let ty = |term: &Term| match term {
        Term::Register(thread, register) => Some(test.register_type(*thread, *register)),
        Term::Location(location, component) => {
            Some(test.observable_type(Observable::Location(*location, *component)))
        }
        Term::Address(_) | Term::Constant(_) => None,
    };
    match condition {
        Condition::True => {}
        Condition::Compare { left, right, .. } => {
            for (one, other) in [(left, right), (right, left)] {
                if let (Term::Constant(constant), Some(ty)) = (one, ty(other)) {
                    check_fits(*constant, ty, span, errors);
                }
            }
        }
        Condition::And(left, right) | Condition::Or(left, right) => {
            check_condition(test, left, span, errors);
            check_condition(test, right, span, errors);
        }
        Condition::Not(inner) => check_condition(test, inner, span, errors),
    }
}

/// Returns the position of the question; that of the filter is not recorded.
fn filter_span(test: &Test) -> Span {
    test.question.as_ref().map(|question| question.span).unwrap_or_default()
}

/// Returns the operands of an instruction with their types.
#[expect(
    clippy::wildcard_enum_match_arm,
    reason = "`litmus` says the operands; without a type of their own they are u32"
)]
fn typed_operands(test: &Test, thread: ThreadId, kind: &InstructionKind) -> Vec<(Operand, ScalarType)> {
    let register = |operand: &Operand| match operand {
        Operand::Register(register) => Some(test.register_type(thread, *register)),
        Operand::Constant(_) => None,
    };
    match kind {
        InstructionKind::Access(access) => {
            let ty = access.place.scalar_type(test);
            match access.kind {
                AccessKind::Load(_) => Vec::new(),
                AccessKind::Store(values) => values.iter().map(|value| (value, ty)).collect(),
                AccessKind::Rmw { operation, .. } => match operation {
                    RmwOperation::Exchange(operand) | RmwOperation::Fetch(_, operand) => vec![(operand, ty)],
                    RmwOperation::CompareExchange { compare, value, .. } => vec![(compare, ty), (value, ty)],
                },
                AccessKind::Await { value, .. } => vec![(value, ty)],
            }
        }
        InstructionKind::Compute(Compute::Arithmetic { destination, left, right, .. }) => {
            let ty = test.register_type(thread, *destination);
            vec![(*left, ty), (*right, ty)]
        }
        InstructionKind::Compute(Compute::Move { destination, value }) => {
            vec![(*value, test.register_type(thread, *destination))]
        }
        InstructionKind::Compute(Compute::Compare { left, right, .. })
        | InstructionKind::Flow(Flow::Branch { left, right, .. }) => {
            let ty = register(left).or(register(right)).unwrap_or_default();
            vec![(*left, ty), (*right, ty)]
        }
        _ => kind.operands().into_iter().map(|operand| (operand, ScalarType::default())).collect(),
    }
}

fn check_fits(value: i64, ty: ScalarType, span: Span, errors: &mut ErrorList) {
    if !Value::fits_type(value, ty) {
        errors.push(ParseError::ValueOutOfRange { value, ty: ty.keyword(), span });
    }
}
