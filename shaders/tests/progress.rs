//! Kernels of forward progress are valid for spirv-val and for the check, for every test that has one.

use crate::common;

use common::Validator;
use shaders::progress::{ProgressConfig, compile};
use shaders::variant::SpirvVersion;

/// Configurations of devices: few turns, many turns, and no device scope.
const CONFIGS: [ProgressConfig; 3] = [
    ProgressConfig {
        subgroup_size: 8,
        max_workgroup_invocations: 1024,
        max_workgroup_subgroups: 32,
        device_scope: true,
        copies: 64,
        whole_subgroups: true,
        bound: Some(60_000),
        looks: 2,
        settles: false,
    },
    ProgressConfig {
        subgroup_size: 4,
        max_workgroup_invocations: 256,
        max_workgroup_subgroups: 64,
        device_scope: true,
        copies: 1,
        whole_subgroups: false,
        bound: None,
        looks: 1,
        settles: true,
    },
    ProgressConfig {
        subgroup_size: 32,
        max_workgroup_invocations: 128,
        max_workgroup_subgroups: 4,
        device_scope: false,
        copies: 1,
        whole_subgroups: false,
        bound: None,
        looks: 1,
        settles: true,
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
                    assert_eq!(shaders::check::check(&kernel.words).unwrap(), [], "{}", entry.id);
                    validator.verdict(&kernel.words, SpirvVersion::Vulkan12).unwrap();
                    kernels += 1;
                }
                Err(error) => refused.push(format!("{}: {error}", entry.id)),
            }
        }
    }
    assert!(kernels >= 100, "{kernels} kernels; refused: {refused:#?}");
    assert!(refused.iter().all(|line| line.contains("barrier")), "{refused:#?}");
}
