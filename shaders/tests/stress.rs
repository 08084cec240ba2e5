//! Memory stress in kernels is recognized, and refused if it is modified.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use crate::common;

use common::*;
use kernel_oracle::lift::{LiftError, lift, verify};
use litmus::*;
use rspirv::binary::Assemble;
use rspirv::dr::{Instruction, Module, Operand};
use rspirv::spirv::{Decoration, Op, Word};
use shaders::{CompiledKernel, KernelConfig, StressParameters};

const STRESSED: KernelConfig = KernelConfig { has_stress: true, ..LAVAPIPE };

fn store_buffering() -> Test {
    let relaxed = || atomic(Scope::Device, Order::Relaxed);
    Builder::new("SB", &["x", "y"])
        .thread(thread_place(0, 0), vec![store(0, constant(1), relaxed()), load(0, 1, relaxed())])
        .thread(thread_place(1, 0), vec![store(1, constant(1), relaxed()), load(0, 0, relaxed())])
        .test
}

fn kernel() -> CompiledKernel {
    shaders::compile(&store_buffering(), &STRESSED).unwrap()
}

fn changed(change: impl FnOnce(&mut Module)) -> CompiledKernel {
    let kernel = kernel();
    let mut module = shaders::parse_module(&kernel.words).unwrap();
    change(&mut module);
    CompiledKernel { words: module.assemble(), ..kernel }
}

fn verdict(kernel: &CompiledKernel) -> Result<(), LiftError> {
    verify(&store_buffering(), kernel)
}

/// Returns the index of the variable with this binding.
fn bound(module: &Module, binding: u32) -> usize {
    let is_it = |instruction: &Instruction| {
        matches!(instruction.operands[..], [_, Operand::Decoration(Decoration::Binding), Operand::LiteralBit32(number)]
            if number == binding)
    };
    module.annotations.iter().position(is_it).unwrap()
}

/// Returns the scratch accesses: atomics whose semantics are volatile.
fn scratch_accesses(module: &mut Module) -> Vec<&mut Instruction> {
    let volatile = constant_of(module, 0x8000);
    let all = module.functions[0].blocks.iter_mut().flat_map(|block| &mut block.instructions);
    all.filter(|instruction| instruction.operands.get(2) == Some(&Operand::IdMemorySemantics(volatile)))
        .collect()
}

fn constant_of(module: &Module, value: u32) -> Word {
    let is_it = |instruction: &&Instruction| {
        instruction.class.opcode == Op::Constant && instruction.operands == [Operand::LiteralBit32(value)]
    };
    module.types_global_values.iter().find(is_it).and_then(|instruction| instruction.result_id).unwrap()
}

#[test]
fn stress_is_recognized_in_every_variant() {
    let mut validator = Validator::new();
    for variant in ["", "glsl450", "vulkan11", "volatile", "restrict", "unrolled"] {
        let config = KernelConfig { variant: variant.parse().unwrap_or_default(), ..STRESSED };
        let kernel = shaders::compile(&store_buffering(), &config).unwrap();
        verify(&store_buffering(), &kernel).unwrap();
        validator.validate(variant, &kernel);
        assert_clean(&kernel);
        let lifted = lift(&kernel.words, &kernel.bindings).unwrap();
        let turn = [Op::AtomicLoad, Op::AtomicStore];
        assert_eq!(lifted.stress, [turn, turn].concat(), "{variant}");
        let without = KernelConfig { has_stress: false, ..config };
        let without = shaders::compile(&store_buffering(), &without).unwrap();
        let plain = lift(&without.words, &without.bindings).unwrap();
        assert_eq!((plain.stress.len(), plain.threads), (0, lifted.threads), "the threads are the same");
        assert_eq!(kernel.push_constant_bytes(), without.push_constant_bytes() + StressParameters::BYTES);
    }
}

/// All push constants and an address fit in the minimum that Vulkan guarantees.
#[test]
fn push_constants_fit_every_device() {
    assert!(kernel().push_constant_bytes() + 8 <= 128);
    assert!(kernel().push_constant_bytes().is_multiple_of(8));
}

#[test]
fn stress_that_orders_is_refused() {
    let kernel = changed(|module| {
        let volatile = constant_of(module, 0x8000);
        let constant = module.types_global_values.iter_mut().find(|i| i.result_id == Some(volatile)).unwrap();
        constant.operands = vec![Operand::LiteralBit32(0x42)];
    });
    assert_eq!(verdict(&kernel), Err(LiftError::Stress(Op::AtomicLoad)));
}

#[test]
fn stress_on_tested_locations_is_refused() {
    let kernel = changed(|module| {
        let locations = bound(module, 0);
        module.annotations[locations].operands[2] = Operand::LiteralBit32(4);
    });
    assert_eq!(
        verdict(&kernel),
        Err(LiftError::Stress(Op::Load)),
        "the salt of the test's memory is not stress"
    );
    let kernel = changed(|module| {
        let scratch = bound(module, 4);
        module.annotations[scratch].operands[2] = Operand::LiteralBit32(1);
    });
    assert_eq!(verdict(&kernel), Err(LiftError::OutsideThreads(Op::AtomicLoad)));
}

#[test]
fn stress_that_is_another_operation_is_refused() {
    let kernel = changed(|module| {
        let word =
            module.types_global_values.iter().find(|i| i.class.opcode == Op::TypeInt).unwrap().result_id;
        let header = module.header.as_mut().unwrap();
        let id = header.bound;
        header.bound += 1;
        for instruction in scratch_accesses(module) {
            if instruction.class.opcode == Op::AtomicStore {
                let operands = instruction.operands.clone();
                *instruction = Instruction::new(Op::AtomicIAdd, word, Some(id), operands);
                break;
            }
        }
    });
    assert_eq!(verdict(&kernel), Err(LiftError::Stress(Op::AtomicIAdd)));
}

#[test]
fn missing_stress_is_detected() {
    let kernel = changed(|module| {
        let volatile = constant_of(module, 0x8000);
        for block in &mut module.functions[0].blocks {
            block.instructions.retain(|instruction| {
                instruction.class.opcode != Op::AtomicStore
                    || instruction.operands.get(2) != Some(&Operand::IdMemorySemantics(volatile))
            });
        }
    });
    assert_eq!(verdict(&kernel), Err(LiftError::StressDiffers(vec![Op::AtomicLoad; 2])));
}

#[test]
fn the_kernel_of_stress_alone_is_valid() {
    let mut validator = Validator::new();
    for config in [STRESSED, NARROW] {
        let stress = shaders::stress::stress_kernel(&config, 32);
        assert_valid_uses(&stress.words);
        let kernel = CompiledKernel { words: stress.words, ..kernel() };
        validator.validate("stress", &kernel);
    }
}
