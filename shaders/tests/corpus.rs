//! Every test of the corpus, and of other projects if available. Kernels are valid and correspond to the
//! test (`identity` has their bytes); other tests are refused with a rule.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use crate::common;

use std::collections::BTreeMap;
use std::path::Path;

use common::{LAVAPIPE, NARROW, Validator, in_its_stage, own_corpus};
use shaders::CompileError;

#[derive(Default)]
struct Tally {
    kernels: usize,
    refused: BTreeMap<String, usize>,
    too_large: usize,
}

fn check_all(tests: Vec<(String, litmus::Test)>, validate_each: usize) -> Tally {
    let mut tally = Tally::default();
    let mut validator = Validator::new();
    for (index, (name, test)) in tests.into_iter().enumerate() {
        let Ok(test) = litmus::convert::to_device_program(&test) else {
            *tally.refused.entry("no lowering".to_owned()).or_default() += 2;
            continue;
        };
        for config in [
            shaders::KernelConfig { thread_loops: index % 3 > 0, ..LAVAPIPE },
            shaders::KernelConfig { has_stress: index % 2 == 1, parallel: index % 3 == 1, ..NARROW },
        ] {
            let config = in_its_stage(&test, config);
            match shaders::compile(&test, &config) {
                Ok(kernel) => {
                    tally.kernels += 1;
                    kernel_oracle::lift::verify(&test, &kernel)
                        .map_err(|error| format!("{name}: {error}"))
                        .unwrap();
                    if index % validate_each == 0 {
                        validator.validate(&name, &kernel);
                    }
                    common::assert_clean(&kernel);
                }
                Err(CompileError::NotPlaceable { rule }) => *tally.refused.entry(rule).or_default() += 1,
                Err(CompileError::WorkgroupTooLarge { .. }) => tally.too_large += 1,
            }
        }
    }
    eprintln!(
        "{} kernels, {} of them through spirv-val; refused: {:?}; workgroup too large: {}",
        tally.kernels, validator.validated, tally.refused, tally.too_large
    );
    tally
}

#[test]
fn the_own_corpus() {
    let tally = check_all(own_corpus(), 1);
    assert!(tally.kernels > 300);
    for rule in tally.refused.keys() {
        assert!(
            [
                "separate dispatches",
                "control barrier not reached by every thread",
                "several queues",
                "no lowering",
                "sc1 across workgroups",
                "loop with effects",
                "host thread",
                "shader call",
                "offset into a location"
            ]
            .contains(&rule.as_str()),
            "the corpus has a test that is refused for {rule}"
        );
    }
}

/// At least nine in ten tests of the corpus that use only shaders have a program, in one dispatch or several.
#[test]
fn nine_in_ten_tests_compile() {
    let mut refused = Vec::new();
    let mut native = 0;
    for (name, test) in own_corpus() {
        let host = test.threads.iter().any(|thread| thread.place == litmus::ThreadPlace::Host);
        if host {
            continue;
        }
        native += 1;
        let Ok(test) = litmus::convert::to_device_program(&test) else {
            refused.push(format!("{name}: no lowering"));
            continue;
        };
        let config = in_its_stage(&test, LAVAPIPE);
        if let Err(error) = shaders::compile_program(&test, &config, shaders::Pipelines::Merged) {
            refused.push(format!("{name}: {error}"));
        }
    }
    eprintln!("{} of {native} have a program; without: {refused:#?}", native - refused.len());
    assert!(10 * refused.len() <= native, "{refused:#?}");
}

#[test]
fn dartagnan_corpus() {
    let Some(folder) = std::env::var_os("VK_LITMUS_CORPORA") else {
        eprintln!("skipped: 1 corpus, VK_LITMUS_CORPORA is not set");
        return;
    };
    let tally = check_all(common::tests_in(&Path::new(&folder).join("dat3m")), 3);
    assert!(tally.kernels > 100);
}
