//! The registers of a thread: computations, jumps, and the values that accesses write.
//!
//! The machines of `sequential` and `progress` execute these on numbers. The types of registers are given by a function.

use litmus::{
    AccessKind, Compute, Flow, Instruction, InstructionKind, LabelId, Operand, RegisterId, RmwOperation,
    ScalarType, Value,
};

/// Returns the index of a label.
pub(crate) fn label_position(instructions: &[Instruction], target: LabelId) -> Option<usize> {
    let label = InstructionKind::Flow(Flow::Label(target));
    instructions.iter().position(|instruction| instruction.kind == label)
}

/// Returns the label that an instruction jumps to.
pub(crate) fn jump_target(flow: &Flow) -> Option<LabelId> {
    match flow {
        Flow::Label(_) => None,
        Flow::Goto(target) | Flow::Branch { target, .. } | Flow::BranchIf { target, .. } => Some(*target),
    }
}

pub(crate) fn operand_type(type_of: impl Fn(RegisterId) -> ScalarType, operand: Operand) -> ScalarType {
    match operand {
        Operand::Constant(_) => ScalarType::default(),
        Operand::Register(register) => type_of(register),
    }
}

/// Returns the type as which two operands are compared: the wider one.
pub(crate) fn comparison_type(
    type_of: impl Fn(RegisterId) -> ScalarType,
    left: Operand,
    right: Operand,
) -> ScalarType {
    let (left, right) = (operand_type(&type_of, left), operand_type(&type_of, right));
    if right.bits() > left.bits() { right } else { left }
}

/// Returns the value of an operand of a type.
pub(crate) fn operand_value(registers: &[u64], operand: Operand, scalar: ScalarType) -> Value {
    match operand {
        Operand::Constant(constant) => Value::from_constant(constant, scalar),
        Operand::Register(register) => Value(registers[usize::from(register.0)]).truncate_to(scalar),
    }
}

/// Executes a computation.
pub(crate) fn execute_compute(
    compute: &Compute,
    registers: &mut [u64],
    type_of: impl Fn(RegisterId) -> ScalarType,
) {
    let (destination, value) = match compute {
        Compute::Move { destination, value } => {
            (destination, operand_value(registers, *value, ScalarType::default()))
        }
        Compute::Compare { destination, relation, left, right } => {
            let unsigned = |operand| operand_value(registers, operand, ScalarType::default()).0 as i64;
            (destination, Value(u64::from(relation.holds(unsigned(*left), unsigned(*right)))))
        }
        Compute::Arithmetic { destination, operation, left, right } => {
            let scalar = type_of(*destination);
            let value = |operand| operand_value(registers, operand, scalar);
            (destination, operation.apply(value(*left), value(*right), scalar))
        }
    };
    registers[usize::from(destination.0)] = value.0;
}

/// Returns true if control jumps to the target of an instruction.
pub(crate) fn takes_jump(flow: &Flow, registers: &[u64], type_of: impl Fn(RegisterId) -> ScalarType) -> bool {
    match flow {
        Flow::Label(_) => false,
        Flow::Goto(_) => true,
        Flow::BranchIf { condition, .. } => registers[usize::from(condition.0)] != 0,
        Flow::Branch { relation, left, right, .. } => {
            let scalar = comparison_type(type_of, *left, *right);
            let signed = |operand| operand_value(registers, operand, scalar).to_signed(scalar);
            relation.holds(signed(*left), signed(*right))
        }
    }
}

/// Returns the value that an access of a type writes if it reads `old`.
pub(crate) fn written_value(
    kind: AccessKind,
    old: Value,
    registers: &[u64],
    scalar: ScalarType,
) -> Option<Value> {
    let value = |operand| operand_value(registers, operand, scalar);
    match kind {
        AccessKind::Load(_) | AccessKind::Await { .. } => None,
        AccessKind::Store(values) => Some(value(values.first())),
        AccessKind::Rmw { operation, .. } => match operation {
            RmwOperation::Exchange(operand) => Some(value(operand)),
            RmwOperation::Fetch(operation, operand) => Some(operation.apply(old, value(operand), scalar)),
            RmwOperation::CompareExchange { compare, value: new, .. } => {
                (value(compare) == old).then(|| value(new))
            }
        },
    }
}
