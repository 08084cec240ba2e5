//! Split barriers in kernels, from the SPIR-V words: the barriers of each test of the family, or the reason
//! why it has no kernel. The opcodes are from the registry, independent of rspirv.

use crate::common;
use vocabulary::Feature;

use std::collections::BTreeMap;
use std::fmt::Write;

use common::{LAVAPIPE, Validator};

const EXTENSION: u32 = 10;
const CAPABILITY: u32 = 17;
const CONSTANT: u32 = 43;
const CONTROL_BARRIER: u32 = 224;
const SPLIT_BARRIER: u32 = 6141;
const ARRIVE: u32 = 6142;
const WAIT: u32 = 6143;

/// Returns the barriers of a module in order.
fn barriers(words: &[u32]) -> String {
    let (mut constants, mut found) = (BTreeMap::new(), Vec::new());
    let (mut capability, mut extension) = (false, false);
    for (opcode, operands) in common::instructions(words) {
        match opcode {
            EXTENSION => {
                let bytes: Vec<u8> = operands.iter().flat_map(|word| word.to_le_bytes()).collect();
                extension |= bytes.starts_with(b"SPV_EXT_split_barrier\0");
            }
            CAPABILITY => capability |= operands == [SPLIT_BARRIER],
            CONSTANT => drop(constants.insert(operands[1], operands[2])),
            CONTROL_BARRIER | ARRIVE | WAIT => {
                assert_eq!(operands.len(), 3);
                let [execution, memory, semantics] = [0, 1, 2].map(|index| constants[&operands[index]]);
                let name = match opcode {
                    ARRIVE => "arrive",
                    WAIT => "wait",
                    _ => "cbar",
                };
                found.push(format!("{name} {execution} {memory} {semantics:#x}"));
            }
            _ => {}
        }
    }
    let halves = found.iter().any(|barrier| !barrier.starts_with("cbar"));
    assert_eq!((capability, extension), (halves, halves), "{found:?}");
    found.join(", ")
}

#[test]
fn kernels_alternate_arrivals_and_waits() {
    let mut validator = Validator::new();
    let mut table = String::new();
    for entry in litmus::corpus::tests().iter().filter(|entry| entry.id.starts_with("split/")) {
        let test = litmus::parse(entry.text, &entry.path).unwrap();
        let row = match shaders::compile(&test, &LAVAPIPE) {
            Ok(kernel) => {
                validator.validate(&entry.id, &kernel);
                kernel_oracle::lift::verify(&test, &kernel).unwrap();
                common::assert_clean(&kernel);
                let named = kernel.requirements.features.contains(&Feature::ShaderSplitBarrier);
                assert_eq!(named, entry.text.contains("cbar.arrive"), "{}", entry.id);
                barriers(&kernel.words)
            }
            Err(error) => format!("none: {error}"),
        };
        writeln!(table, "{}\n    {row}", entry.id).unwrap();
    }
    insta::assert_snapshot!(table);
}

/// The Intel extension differs only in the name of the extension.
#[test]
fn intels_form_differs_in_the_name_of_the_extension() {
    let compile_test = |id: &str| {
        let entry = litmus::corpus::tests().into_iter().find(|entry| entry.id == id).unwrap();
        shaders::compile(&litmus::parse(entry.text, &entry.path).unwrap(), &LAVAPIPE).unwrap()
    };
    let kernel = compile_test("split/MP+split");
    let mut intel = kernel.clone();
    assert!(intel.name_split_barriers_as_intel());
    let text = |words: &[u32]| -> Vec<u8> { words.iter().flat_map(|word| word.to_le_bytes()).collect() };
    let (before, after) = (text(&kernel.words), text(&intel.words));
    let at = |bytes: &[u8], name: &[u8]| bytes.windows(name.len()).position(|part| part == name);
    let place = at(&before, b"SPV_EXT_split_barrier\0\0\0").unwrap();
    assert_eq!(at(&after, b"SPV_INTEL_split_barrier\0"), Some(place));
    assert_eq!((&before[..place], &before[place + 24..]), (&after[..place], &after[place + 24..]));
    assert!(!intel.requirements.features.contains(&Feature::ShaderSplitBarrier));
    assert!(!compile_test("barrier/MP+cbar").name_split_barriers_as_intel());
}

/// Halves with different scopes have one instruction. The kernel always waits for the last arrival, so that the
/// next round can arrive again.
#[test]
fn halves_of_several_threads_are_one_instruction() {
    for (rows, expected) in [
        (
            "cbar.arrive.wg 0 | cbar.arrive.wg 0 ; cbar.wait.wg 0 | cbar.wait.wg 0 ;",
            "arrive 2 2 0x0, wait 2 2 0x0",
        ),
        ("cbar.arrive.wg 0 | cbar.arrive.wg 0 ;", "arrive 2 2 0x0, wait 2 4 0x0"),
        ("cbar.arrive.wg 0 | cbar.arrive.wg 0 ; | cbar.wait.wg 0 ;", "arrive 2 2 0x0, wait 2 2 0x0"),
        (
            "cbar.arrive.sg 0 | cbar.arrive.wg 0 ; cbar.wait.wg 0 | cbar.wait.sg 0 ;",
            "arrive 2 4 0x0, wait 2 4 0x0",
        ),
    ] {
        let text = format!("VULKAN T {{ x = 0; }} P0@sg 0, wg 0, qf 0 | P1@sg 1, wg 0, qf 0 ; {rows}");
        let kernel = shaders::compile(&litmus::parse(&text, "T").unwrap(), &LAVAPIPE).unwrap();
        assert_eq!(barriers(&kernel.words), expected, "{rows}");
    }
}
