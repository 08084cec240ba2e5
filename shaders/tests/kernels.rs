//! Small tests and snapshots of the disassembly of their kernels, which are valid and correspond to the test.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use crate::common;

use common::{LAVAPIPE, Validator};

#[test]
fn kernels_are_as_recorded() {
    insta::glob!("kernels/*.litmus", |path| {
        let text = std::fs::read_to_string(path).unwrap();
        let test = litmus::parse(&text, &path.display().to_string()).unwrap_or_else(|error| {
            unreadable(path, &error);
        });
        let kernel = shaders::compile(&test, &LAVAPIPE).unwrap();
        Validator::new().check(&test.name, &kernel);
        shaders::lift::verify(&test, &kernel).unwrap();
        insta::assert_snapshot!(describe(&kernel));
    });
}

#[expect(clippy::panic, reason = "a test fails by panicking")]
fn unreadable(path: &std::path::Path, error: &litmus::ParseErrors) -> ! {
    panic!("{}: {error:?}", path.display())
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
        kernel.initial,
        kernel.results,
        kernel.finals,
        shaders::disassemble(&kernel.words).unwrap()
    )
}
