//! Random tests: threads with and without common workgroups, forward jumps, and barriers with any semantics.

use litmus::*;
use proptest::prelude::*;

type Choice = (u8, u8, u8);

/// Returns random instructions with three labels from `first_label` on. Jumps go forward and may overlap.
fn instructions_of(choices: &[Choice], labels: [u8; 3], first_label: u16) -> Vec<InstructionKind> {
    const ARITHMETIC: [ArithmeticOperation; 8] = [
        ArithmeticOperation::Add,
        ArithmeticOperation::Subtract,
        ArithmeticOperation::And,
        ArithmeticOperation::Or,
        ArithmeticOperation::Xor,
        ArithmeticOperation::Minimum,
        ArithmeticOperation::Maximum,
        ArithmeticOperation::Multiply,
    ];
    const RELATIONS: [Comparison; 6] = [
        Comparison::Equal,
        Comparison::NotEqual,
        Comparison::GreaterOrEqual,
        Comparison::LessOrEqual,
        Comparison::Greater,
        Comparison::Less,
    ];
    let place = |label: usize| usize::from(labels[label]) % (choices.len() + 1);
    let relaxed = super::common::semantics(Order::Relaxed);
    let mut instructions = Vec::new();
    for (position, (kind, first, second)) in choices.iter().enumerate() {
        for label in 0..3 {
            if place(label) == position {
                instructions.push(InstructionKind::Flow(Flow::Label(LabelId(first_label + label as u16))));
            }
        }
        let register = u16::from(first % 4);
        let operand = match second % 3 {
            0 => super::common::constant(i64::from(second % 4) - 1),
            _ => super::common::register(u16::from(second % 4)),
        };
        let access = match first % 2 {
            0 => Access::NonPrivate,
            _ => super::common::atomic(Scope::QueueFamily, Order::Relaxed),
        };
        let location = u16::from(second % 2);
        let rmw = |operation| super::common::rmw(register, location, operation, Scope::QueueFamily, relaxed);
        let label = usize::from(second / 4 % 3);
        let target = LabelId(first_label + label as u16);
        instructions.push(match kind % 10 {
            0 | 1 => super::common::load(register, location, access),
            2 => super::common::store(location, super::common::register(register), access),
            3 => rmw(match second / 4 {
                0 => RmwOperation::Exchange(operand),
                1 => RmwOperation::CompareExchange {
                    compare: operand,
                    value: super::common::constant(7),
                    unequal: relaxed,
                },
                _ => RmwOperation::Fetch(ARITHMETIC[usize::from(first % 7)], operand),
            }),
            4 | 5 => InstructionKind::Compute(Compute::Arithmetic {
                destination: RegisterId(register),
                operation: ARITHMETIC[usize::from(first % 8)],
                left: super::common::register(u16::from(first / 4)),
                right: operand,
            }),
            6 if place(label) > position => InstructionKind::Flow(Flow::Goto(target)),
            _ if place(label) > position => InstructionKind::Flow(Flow::Branch {
                relation: RELATIONS[usize::from(first % 6)],
                left: super::common::register(register),
                right: operand,
                target,
            }),
            _ => super::common::store(0, operand, access),
        });
    }
    for label in 0..3 {
        if place(label) == choices.len() {
            instructions.push(InstructionKind::Flow(Flow::Label(LabelId(first_label + label as u16))));
        }
    }
    instructions
}

/// Returns threads with and without common workgroups and subgroups, which meet at up to two barriers with
/// random semantics.
pub fn test() -> impl Strategy<Value = Test> {
    let instruction = (0..10u8, 0..12u8, 0..12u8);
    let piece = (prop::collection::vec(instruction, 0..9), prop::array::uniform3(0..10u8), 0..4u8);
    let thread = (0..2u32, 0..2u32, prop::array::uniform3(piece));
    (0..3usize, any::<bool>(), prop::collection::vec(thread, 1..4)).prop_map(|(barriers, signed, threads)| {
        let mut builder = super::common::Builder::new("random", &["x", "y"]);
        builder.test.locations[1].scalar = signed.then_some(ScalarType::I32);
        for (workgroup, subgroup, pieces) in threads {
            let mut instructions = Vec::new();
            for (index, (choices, labels, order)) in pieces.iter().take(barriers + 1).enumerate() {
                instructions.extend(instructions_of(choices, *labels, 3 * index as u16));
                if index < barriers {
                    let semantics = match order {
                        0 => None,
                        1 => Some(super::common::semantics(Order::Acquire)),
                        2 => Some(super::common::semantics(Order::Release)),
                        _ => Some(super::common::semantics(Order::AcquireRelease)),
                    };
                    instructions.push(super::common::barrier(
                        Scope::Workgroup,
                        Scope::Workgroup,
                        semantics,
                        &index.to_string(),
                    ));
                }
            }
            builder = builder.thread(super::common::thread_place(workgroup, subgroup), instructions);
        }
        builder.test
    })
}
