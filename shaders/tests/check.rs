//! Tests of `check` with modified kernels. Each change breaks one rule, which the check reports.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use crate::common;

use common::*;
use kernel_oracle::check::{ModuleFault, check};
use litmus::*;
use rspirv::binary::Assemble;
use rspirv::dr::{Instruction, Module, Operand as Word};
use rspirv::spirv::{Capability, Op};
use shaders::rules::SemanticsRule;

/// A kernel with one instruction of each kind, in sequence.
fn kernel() -> Module {
    let acquire_release =
        Semantics { make_available: true, make_visible: true, ..semantics(Order::AcquireRelease) };
    let exchange = RmwOperation::CompareExchange {
        compare: constant(1),
        value: constant(2),
        unequal: semantics(Order::Acquire),
    };
    let test = Builder::new("all", &["x"])
        .thread(
            thread_place(0, 0),
            vec![
                load(0, 0, atomic(Scope::Device, Order::Acquire)),
                store(0, constant(3), atomic(Scope::Subgroup, Order::Release)),
                rmw(1, 0, RmwOperation::Exchange(constant(4)), Scope::Workgroup, acquire_release),
                rmw(2, 0, exchange, Scope::Device, acquire_release),
                load(3, 0, Access::Coherent { scope: Scope::Device }),
                store(0, constant(5), Access::Coherent { scope: Scope::Device }),
                InstructionKind::Fence { scope: Scope::Device, semantics: acquire_release },
                barrier(Scope::Workgroup, Scope::Workgroup, Some(acquire_release), "0"),
            ],
        )
        .test;
    rspirv::dr::load_words(&shaders::compile(&test, &LAVAPIPE).unwrap().words).unwrap()
}

fn faults(module: &Module) -> Vec<(Op, ModuleFault)> {
    check(&module.assemble())
        .unwrap()
        .into_iter()
        .map(|violation| (violation.instruction, violation.fault))
        .collect()
}

/// Adds a 32-bit constant.
fn constant_id(module: &mut Module, value: u32) -> u32 {
    let header = module.header.as_mut().unwrap();
    let id = header.bound;
    header.bound += 1;
    let ty = module.types_global_values.iter().find(|i| i.class.opcode == Op::TypeInt).unwrap().result_id;
    module.types_global_values.push(Instruction::new(
        Op::Constant,
        ty,
        Some(id),
        vec![Word::LiteralBit32(value)],
    ));
    id
}

/// Replaces the `index`-th operand of the last `op` of the module by a constant; earlier ones are part of the
/// receipt.
fn with_operand(op: Op, index: usize, value: u32) -> Module {
    let mut module = kernel();
    let id = constant_id(&mut module, value);
    let instructions = module.functions[0].blocks.iter_mut().flat_map(|block| &mut block.instructions);
    let last = instructions.filter(|instruction| instruction.class.opcode == op).last().unwrap();
    *last.operands[index].id_ref_any_mut().unwrap() = id;
    module
}

#[test]
fn each_broken_rule_is_named() {
    assert_eq!(faults(&kernel()), []);
    let rule = |rule: SemanticsRule| ModuleFault::Semantics(rule);
    let cases = [
        (Op::AtomicLoad, 2, 0x40, rule(SemanticsRule::RelaxedWithClasses)),
        (Op::AtomicLoad, 2, 0x2, rule(SemanticsRule::OrderWithoutClass)),
        // Subgroup, cross-workgroup and atomic-counter memory are ignored by Vulkan.
        (Op::AtomicLoad, 2, 0x2 | 0x80, rule(SemanticsRule::Unknown)),
        (Op::AtomicLoad, 2, 0x44, rule(SemanticsRule::ReleaseLoad)),
        (Op::AtomicStore, 2, 0x42, rule(SemanticsRule::AcquireStore)),
        (Op::AtomicExchange, 2, 0x50, rule(SemanticsRule::Unknown)),
        (Op::AtomicExchange, 2, 0x46, rule(SemanticsRule::Unknown)),
        (Op::AtomicExchange, 2, 0x2042, rule(SemanticsRule::AvailableWithoutRelease)),
        (Op::AtomicExchange, 2, 0x4044, rule(SemanticsRule::VisibleWithoutAcquire)),
        (Op::AtomicExchange, 1, 4, rule(SemanticsRule::OrderAtInvocation)),
        (Op::AtomicExchange, 1, 0, ModuleFault::Scope(0)),
        (Op::AtomicExchange, 1, 9, ModuleFault::Scope(9)),
        (Op::AtomicCompareExchange, 2, 0x44, rule(SemanticsRule::UnequalStronger)),
        (Op::AtomicCompareExchange, 3, 0x48, rule(SemanticsRule::ReleaseUnequal)),
        (Op::AtomicCompareExchange, 3, 0x842, rule(SemanticsRule::UnequalClasses)),
        (Op::AtomicCompareExchange, 2, 0x42, ModuleFault::Semantics(SemanticsRule::UnequalVisible)),
        (Op::MemoryBarrier, 1, 0, rule(SemanticsRule::RelaxedBarrier)),
        (Op::MemoryBarrier, 1, 0x8, rule(SemanticsRule::OrderWithoutClass)),
        (Op::ControlBarrier, 0, 1, ModuleFault::ExecutionScope(Scope::Device)),
        (Op::ControlBarrier, 2, 0x8, rule(SemanticsRule::OrderWithoutClass)),
    ];
    for (op, index, value, fault) in cases {
        let mut module = with_operand(op, index, value);
        if fault == ModuleFault::Semantics(SemanticsRule::UnequalVisible) {
            let visible = constant_id(&mut module, 0x4042);
            for instruction in module.functions[0].blocks.iter_mut().flat_map(|block| &mut block.instructions)
            {
                if instruction.class.opcode == op {
                    *instruction.operands[3].id_ref_any_mut().unwrap() = visible;
                }
            }
        }
        assert_eq!(faults(&module), [(op, fault)], "{op:?} operand {index} = {value:#x}");
    }
}

#[test]
fn scopes_need_their_capabilities() {
    let without = |capability| {
        let mut module = kernel();
        module.capabilities.retain(|i| i.operands[0] != Word::Capability(capability));
        let mut found: Vec<ModuleFault> = faults(&module).into_iter().map(|(_, fault)| fault).collect();
        found.dedup();
        found
    };
    assert_eq!(without(Capability::VulkanMemoryModelDeviceScope), [ModuleFault::DeviceScope]);
    assert_eq!(without(Capability::GroupNonUniform), [ModuleFault::SubgroupScope]);
}

#[test]
fn atomics_have_32_bits() {
    let mut module = kernel();
    let narrow = module.types_global_values.iter_mut().find(|i| i.class.opcode == Op::TypeInt).unwrap();
    narrow.operands[0] = Word::LiteralBit32(16);
    assert!(faults(&module).iter().filter(|(_, fault)| *fault == ModuleFault::AtomicType).count() >= 4);
}

#[test]
fn words_that_are_not_a_module_are_an_error() {
    assert!(check(&[1, 2, 3]).is_err());
    assert!(shaders::disassemble(&[]).is_err());
    let module = |instructions: &[u32]| [&[0x0723_0203, 0x0001_0500, 0, 9, 0], instructions].concat();
    let void = [2 << 16 | 19, 1];
    let malformed = [
        // A constant of type void.
        module(&[&void[..], &[4 << 16 | 43, 1, 2, 5]].concat()),
        // A structure that contains itself.
        module(&[3 << 16 | 30, 3, 3]),
        // An instruction longer than the module, and one with length zero.
        module(&[9 << 16 | 19, 1]),
        module(&[19]),
        module(&[void, void].concat()),
    ];
    assert!(shaders::disassemble(&module(&void)).is_ok());
    for words in malformed {
        assert!(shaders::disassemble(&words).is_err(), "{words:x?}");
    }
}
