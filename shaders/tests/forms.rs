//! Forms of kernels: their words, and the validity of their modules.

use std::collections::BTreeSet;

use crate::common;

use common::{LAVAPIPE, NARROW, Validator, assert_valid_uses, in_its_stage};
use shaders::transform::KernelForm;
use shaders::{KernelConfig, Variant};

#[test]
fn words_of_forms_round_trip() {
    for word in [KernelForm::EXAMPLE, "form-65535", "form-7-0", "form-7-0-3-15"] {
        let variant: Variant = word.parse().unwrap();
        assert_eq!(variant.to_string(), word);
        assert_eq!(variant.form.unwrap().names().len(), variant.form.unwrap().steps().len());
    }
    for word in ["form", "form-", "form-01", "form-65536", "form-1-3-0", "form-1-16", "form-1-2-2"] {
        assert!(word.parse::<Variant>().is_err(), "{word}");
    }
}

#[test]
fn every_form_is_a_valid_module() {
    let mut validator = Validator::new();
    let narrow = KernelConfig { max_lanes_with_loops: NARROW.subgroup_size, ..NARROW };
    let (mut changed, mut looping, mut names) = (0, 0, BTreeSet::new());
    for (number, entry) in litmus::corpus::tests().into_iter().enumerate() {
        let test = litmus::parse(entry.text, &entry.id).unwrap();
        let Ok(test) = litmus::convert::to_device_program(&test) else { continue };
        for (turn, config) in [LAVAPIPE, narrow].into_iter().enumerate() {
            let form = KernelForm::new((2 * number + turn) as u16);
            let compile = |form| {
                let config = in_its_stage(&test, config);
                let variant = Variant { form, ..config.variant };
                shaders::compile(&test, &KernelConfig { variant, ..config })
            };
            let (Ok(plain), Ok(kernel)) = (compile(None), compile(Some(form))) else { continue };
            assert!(plain.words != kernel.words && plain.identity != kernel.identity, "{}@{form}", entry.id);
            assert_eq!(kernel.words, compile(Some(form)).unwrap().words);
            assert_valid_uses(&kernel.words);
            let adds_loops = plain.max_loop_iterations < kernel.max_loop_iterations;
            assert!(
                !adds_loops || kernel.workgroup_size <= config.max_lanes_with_loops,
                "{}@{form}",
                entry.id
            );
            looping += usize::from(adds_loops);
            changed += 1;
            names.extend(form.names());
            if number % 4 == 0 {
                validator.validate(&format!("{}@{form}", entry.id), &kernel);
            }
        }
    }
    eprintln!("{changed} forms, {} through spirv-val", validator.validated);
    assert!(changed > 300 && looping > 50 && names.len() > 12, "{changed} {names:?}");
}
