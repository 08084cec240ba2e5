//! Small tests and snapshots of the disassembly of their kernels, which are valid and correspond to the test.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use crate::common;

use common::{LAVAPIPE, Validator};
use kernel_oracle::lift::LiftError;
use rspirv::binary::Assemble;
use rspirv::dr::Operand;
use rspirv::spirv::{Decoration, Op};
use shaders::CompiledKernel;

#[test]
fn kernels_are_as_recorded() {
    insta::glob!("kernels/*.litmus", |path| {
        let text = std::fs::read_to_string(path).unwrap();
        let test = litmus::parse(&text, &path.display().to_string()).unwrap_or_else(|error| {
            unreadable(path, &error);
        });
        let kernel = shaders::compile(&test, &LAVAPIPE).unwrap();
        Validator::new().validate(&test.name, &kernel);
        kernel_oracle::lift::verify(&test, &kernel).unwrap();
        insta::assert_snapshot!(describe(&kernel));
    });
}

#[expect(clippy::panic, reason = "a test fails by panicking")]
fn unreadable(path: &std::path::Path, error: &litmus::ParseErrors) -> ! {
    panic!("{}: {error:?}", path.display())
}

/// A kernel that reads the salt of one binding twice and that of another never is refused.
#[test]
fn kernels_read_the_salt_of_every_binding() {
    for (text, other) in [(include_str!("kernels/SB.litmus"), 1), (include_str!("kernels/Image.litmus"), 2)] {
        let test = litmus::parse(text, "salts").unwrap();
        let kernel = shaders::compile(&test, &LAVAPIPE).unwrap();
        let first = if other == 1 { 0 } else { kernel.bindings.len() as u32 };
        let mut module = shaders::parse_module(&kernel.words).unwrap();
        let bound = |binding: u32| {
            let wanted = [Operand::Decoration(Decoration::Binding), Operand::LiteralBit32(binding)];
            module.annotations.iter().find(|own| own.operands[1..] == wanted).unwrap().operands[0].clone()
        };
        let (from, to) = (bound(first), bound(first + other));
        // Salts are read before all other memory of the test.
        let mut all = module.functions[0].blocks.iter_mut().flat_map(|block| &mut block.instructions);
        let reads = |op: Op| matches!(op, Op::AccessChain | Op::Load);
        let salt = all.find(|own| reads(own.class.opcode) && own.operands[0] == from).unwrap();
        salt.operands[0] = to;
        let changed = CompiledKernel { words: module.assemble(), ..kernel };
        let found = kernel_oracle::lift::verify(&test, &changed);
        assert!(matches!(found, Err(LiftError::WrongSalts(_))), "{found:?}");
    }
}

/// Returns the kernel as text: its properties and its disassembly.
fn describe(kernel: &shaders::CompiledKernel) -> String {
    format!(
        "workgroup size {}, {} slots, needs {:?}\nclasses {:?}\nbindings {:?}\nstorages {} = {:?}\nresults {:?}\nfinals {:?}\n\n{}",
        kernel.workgroup_size,
        kernel.lanes,
        kernel.requirements,
        kernel.roles.classes,
        kernel.bindings,
        kernel.storages,
        kernel.initial_values,
        kernel.results,
        kernel.final_values,
        shaders::disassemble(&kernel.words).unwrap()
    )
}
