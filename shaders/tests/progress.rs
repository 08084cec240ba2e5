//! Kernels for forward progress: their level, and their validity in spirv-val and the check of modules.
#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use crate::common;

use common::Validator;
use shaders::CompileError;
use shaders::progress::{ProgressConfig, ProgressKernel, SeparationLevel, compile};
use shaders::rules::Rule;
use shaders::variant::SpirvVersion;

/// Configurations of devices: few turns, many turns, and no device scope.
pub const CONFIGS: [ProgressConfig; 3] = [
    ProgressConfig {
        subgroup_size: 8,
        max_workgroup_invocations: 1024,
        max_workgroup_subgroups: 32,
        device_scope: true,
        copies: 64,
        fills_subgroups: true,
        max_iterations: Some(60_000),
        stop_polls: 2,
        has_final_barrier: false,
    },
    ProgressConfig {
        subgroup_size: 4,
        max_workgroup_invocations: 256,
        max_workgroup_subgroups: 64,
        device_scope: true,
        copies: 1,
        fills_subgroups: false,
        max_iterations: None,
        stop_polls: 1,
        has_final_barrier: true,
    },
    ProgressConfig {
        subgroup_size: 32,
        max_workgroup_invocations: 128,
        max_workgroup_subgroups: 4,
        device_scope: false,
        copies: 1,
        fills_subgroups: false,
        max_iterations: None,
        stop_polls: 1,
        has_final_barrier: true,
    },
];

#[test]
fn every_kernel_is_valid() {
    let validator = Validator::new();
    let (mut kernels, mut refused) = (0, Vec::new());
    for entry in litmus::corpus::progress_tests() {
        let test = litmus::parse(entry.text, &entry.id).unwrap();
        for config in CONFIGS {
            match compile(&test, &config) {
                Ok(kernel) => {
                    crate::common::assert_valid_uses(&kernel.words);
                    for instruction in shaders::parse_module(&kernel.words).unwrap().all_inst_iter() {
                        let op = instruction.class.opcode;
                        assert!(crate::common::is_of_compute_kernels(op), "{instruction:?}");
                    }
                    validator.run_spirv_val(&kernel.words, SpirvVersion::Vulkan12).unwrap();
                    kernels += 1;
                }
                Err(error) => refused.push(format!("{}: {error}", entry.id)),
            }
        }
    }
    assert!(kernels >= 100, "{kernels} kernels; refused: {refused:#?}");
    assert!(refused.iter().all(|line| line.contains("barrier")), "{refused:#?}");
}

fn kernel(id: &str) -> Result<ProgressKernel, CompileError> {
    let entry = litmus::corpus::progress_tests().into_iter().find(|entry| entry.id == id).unwrap();
    let [roomy, ..] = CONFIGS;
    let config = ProgressConfig { max_workgroup_invocations: 256, has_final_barrier: true, ..roomy };
    compile(&litmus::parse(entry.text, &entry.id).unwrap(), &config)
}

#[test]
fn threads_separate_at_their_highest_common_level() {
    let at = |id: &str| {
        let kernel = kernel(id).unwrap();
        (kernel.level, kernel.units, kernel.copies, kernel.workgroup_size)
    };
    assert_eq!(at("progress/handoff-down"), (SeparationLevel::Workgroups, 2, 64, 8));
    assert_eq!(at("progress/handoff-down.subgroups"), (SeparationLevel::Subgroups, 2, 16, 256));
    assert_eq!(at("progress/handoff-down.lanes"), (SeparationLevel::Invocations, 2, 4, 8));
    assert_eq!(at("progress/two-level-handoff"), (SeparationLevel::Workgroups, 2, 64, 16));
}

#[test]
fn a_divergent_barrier_is_refused_by_name() {
    let error = kernel("progress/barrier-in-loop").unwrap_err();
    assert_eq!(error.to_string(), CompileError::from(Rule::GuardedBarrier).to_string());
}
