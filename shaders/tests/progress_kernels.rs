//! Kernels that ask about forward progress.
#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use shaders::CompileError;
use shaders::progress::{Level, ProgressConfig, ProgressKernel, compile};
use shaders::rules::Rule;

fn config() -> ProgressConfig {
    ProgressConfig {
        subgroup_size: 8,
        max_workgroup_invocations: 256,
        max_workgroup_subgroups: 32,
        device_scope: true,
        copies: 64,
        whole_subgroups: true,
        bound: Some(60_000),
        looks: 2,
        settles: true,
    }
}

fn kernel(id: &str) -> Result<ProgressKernel, CompileError> {
    let entry = litmus::corpus::progress_tests().into_iter().find(|entry| entry.id == id).unwrap();
    compile(&litmus::parse(entry.text, &entry.id).unwrap(), &config())
}

#[test]
fn threads_part_at_their_highest_common_level() {
    let at = |id: &str| {
        let kernel = kernel(id).unwrap();
        (kernel.level, kernel.units, kernel.copies, kernel.workgroup_size)
    };
    assert_eq!(at("progress/handoff-down"), (Level::Workgroups, 2, 64, 8));
    assert_eq!(at("progress/handoff-down.subgroups"), (Level::Subgroups, 2, 16, 256));
    assert_eq!(at("progress/handoff-down.lanes"), (Level::Invocations, 2, 4, 8));
    assert_eq!(at("progress/two-level-handoff"), (Level::Workgroups, 2, 64, 16));
}

#[test]
fn a_barrier_that_only_some_may_reach_is_refused_by_name() {
    let error = kernel("progress/barrier-in-loop").unwrap_err();
    assert_eq!(error.to_string(), CompileError::from(Rule::GuardedBarrier).to_string());
}

#[test]
fn modules_keep_the_rules_that_validators_miss() {
    for entry in litmus::corpus::progress_tests() {
        let test = litmus::parse(entry.text, &entry.id).unwrap();
        let Ok(kernel) = compile(&test, &config()) else { continue };
        assert_eq!(shaders::check::check(&kernel.words).unwrap(), [], "{}", entry.id);
        for instruction in shaders::load(&kernel.words).unwrap().all_inst_iter() {
            assert!(shaders::OPCODES.contains(&instruction.class.opcode), "{:?}", instruction.class.opcode);
        }
    }
}
