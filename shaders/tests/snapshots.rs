//! Disassembly of a dozen small kernels, each of which spirv-val accepts.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use common::*;
use litmus::*;

fn check(name: &str, builder: Builder, config: &shaders::KernelConfig) {
    let kernel = shaders::compile(&builder.test, config).unwrap();
    Validator::new().check(name, &kernel);
    insta::assert_snapshot!(name, shaders::disassemble(&kernel.words).unwrap());
}

fn sb(first: Place, second: Place) -> Builder {
    let relaxed = atomic(Scope::Device, Order::Relaxed);
    Builder::new("SB+rlx-rlx", &["x", "y"])
        .thread(first, vec![store(0, constant(1), relaxed), load(0, 1, relaxed)])
        .thread(second, vec![store(1, constant(1), relaxed), load(0, 0, relaxed)])
}

#[test]
fn store_buffering_across_workgroups() {
    check("sb", sb(at(0, 0), at(1, 0)), &LAVAPIPE);
}

#[test]
fn store_buffering_across_subgroups() {
    check("sb_subgroups", sb(at(0, 0), at(0, 1)), &LAVAPIPE);
}

#[test]
fn store_buffering_within_a_subgroup() {
    check("sb_lanes", sb(at(0, 0), at(0, 0)), &NARROW);
}

#[test]
fn message_passing_with_guard_and_coherent_payload() {
    let mp = Builder::new("MP+rel-acq.guard", &["x", "y"])
        .thread(
            at(0, 0),
            vec![
                store(0, constant(1), Access::Coherent { scope: Scope::Device }),
                store(1, constant(1), atomic(Scope::Device, Order::Release)),
            ],
        )
        .thread(
            at(1, 0),
            vec![
                load(0, 1, atomic(Scope::Device, Order::Acquire)),
                InstructionKind::Branch {
                    relation: BranchRelation::NotEqual,
                    left: register(0),
                    right: constant(1),
                    target: LabelId(0),
                },
                load(1, 0, Access::Coherent { scope: Scope::Device }),
                InstructionKind::Label(LabelId(0)),
            ],
        );
    check("mp_guard", mp, &LAVAPIPE);
}

#[test]
fn control_barrier_on_which_threads_agree() {
    let full =
        Some(Semantics { make_available: true, make_visible: true, ..semantics(Order::AcquireRelease) });
    let mp = Builder::new("MP+cbar", &["x"])
        .thread(
            at(0, 0),
            vec![
                store(0, constant(1), Access::NonPrivate),
                barrier(Scope::Workgroup, Scope::Workgroup, full, "0"),
            ],
        )
        .thread(
            at(0, 1),
            vec![barrier(Scope::Workgroup, Scope::Workgroup, full, "0"), load(0, 0, Access::NonPrivate)],
        );
    check("mp_barrier", mp, &LAVAPIPE);
}
