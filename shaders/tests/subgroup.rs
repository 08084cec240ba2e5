//! Subgroup operations in kernels, from the SPIR-V words: the operations of each test of the family. The
//! opcodes are from the registry, independent of rspirv.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use crate::common;
use vocabulary::Feature;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use common::{LAVAPIPE, Validator};

const CAPABILITY: u32 = 17;
const CONSTANT: u32 = 43;
const ROTATE: u32 = 4431;
/// From OpGroupNonUniformElect to OpGroupNonUniformQuadSwap.
const OPERATIONS: std::ops::RangeInclusive<u32> = 333..=366;
/// Arithmetic operations have a literal, not an id, after the scope.
const ARITHMETIC: std::ops::RangeInclusive<u32> = 349..=364;

/// The value of scope `Subgroup`.
const SUBGROUP: u32 = 3;
const CONTROL_BARRIER: u32 = 224;

/// Returns the GroupNonUniform capabilities, the subgroup operations and the subgroup barriers of a module,
/// with their constants.
fn operations(words: &[u32]) -> String {
    let (mut constants, mut found, mut capabilities) = (BTreeMap::new(), Vec::new(), BTreeSet::new());
    for (opcode, operands) in common::instructions(words) {
        match opcode {
            CAPABILITY if (61..=68).contains(&operands[0]) || operands[0] == 6026 => {
                capabilities.insert(operands[0]);
            }
            CONSTANT => drop(constants.insert(operands[1], operands[2])),
            _ if OPERATIONS.contains(&opcode) || opcode == ROTATE => {
                // Type, result, scope.
                assert_eq!(constants[&operands[2]], SUBGROUP, "the scope of {opcode}");
                let mut text = opcode.to_string();
                for (position, operand) in operands.iter().enumerate().skip(3) {
                    let literal = position == 3 && ARITHMETIC.contains(&opcode);
                    match constants.get(operand).filter(|_| !literal) {
                        Some(constant) => write!(text, " {constant}").unwrap(),
                        None if literal => write!(text, " #{operand}").unwrap(),
                        None => text.push_str(" _"),
                    }
                }
                found.push(text);
            }
            CONTROL_BARRIER if constants[&operands[0]] == SUBGROUP => {
                found.push(format!("{opcode} {} {:#x}", constants[&operands[1]], constants[&operands[2]]));
            }
            _ => {}
        }
    }
    format!("{capabilities:?} {}", found.join(", "))
}

#[test]
fn kernels_have_the_operations_of_their_tests() {
    let mut validator = Validator::new();
    let mut table = String::new();
    for entry in litmus::corpus::tests().iter().filter(|entry| entry.id.starts_with("subgroup/")) {
        let test = litmus::parse(entry.text, &entry.path).unwrap();
        let kernel = shaders::compile(&test, &LAVAPIPE).unwrap();
        validator.validate(&entry.id, &kernel);
        kernel_oracle::lift::verify(&test, &kernel).unwrap();
        common::assert_clean(&kernel);
        // A subgroup runs one instance, so no lane of another instance is in the tangle.
        assert_eq!(kernel.lanes == 1, test.has_tangles(), "{}", entry.id);
        let needed = kernel.requirements.features.iter().filter(|feature| {
            feature.name().starts_with("VK_SUBGROUP_FEATURE_")
                || matches!(
                    feature,
                    Feature::ShaderSubgroupRotateClustered | Feature::ShaderMaximalReconvergence
                )
        });
        let needed: BTreeSet<&str> = needed.map(|feature| feature.name()).collect();
        writeln!(table, "{}\n    {}\n    {needed:?}", entry.id, operations(&kernel.words)).unwrap();
    }
    insta::assert_snapshot!(table);
}

/// A missing or an added operation is detected.
#[test]
fn a_kernel_does_not_correspond_to_another_test() {
    let test = |text: &str| {
        let head =
            "VULKAN T\n{ x = 0; }\nP0@sg 0, wg 0, qf 0 | P1@sg 0, wg 0, qf 0 | P2@sg 0, wg 0, qf 0 ;\n";
        litmus::parse(&format!("{head}{text}\nexists (x == 1)"), "T").unwrap()
    };
    let three = test("sg.ballot r0, 1, 0 | sg.ballot r0, 1, 0 | sg.ballot r0, 1, 0 ;");
    let kernel = shaders::compile(&three, &LAVAPIPE).unwrap();
    assert!(kernel_oracle::lift::verify(&three, &kernel).is_ok());
    for other in [
        "sg.ballot r0, 1, 0 | sg.ballot r0, 1, 0 | add r0, 1, 1 ;",
        "sg.any r0, 1, 0 | sg.any r0, 1, 0 | sg.any r0, 1, 0 ;",
        "sg.reduce.add r0, 1, 0 | sg.reduce.add r0, 1, 0 | sg.reduce.add r0, 1, 0 ;",
        "sg.broadcast r0, 1, 1, 0 | sg.broadcast r0, 1, 1, 0 | sg.broadcast r0, 1, 1, 0 ;",
    ] {
        assert!(kernel_oracle::lift::verify(&test(other), &kernel).is_err(), "{other}");
    }
    let named = |lane: u32| {
        let one = format!("sg.broadcast r0, 1, {lane}, 0");
        test(&format!("{one} | {one} | {one} ;"))
    };
    let kernel = shaders::compile(&named(1), &LAVAPIPE).unwrap();
    assert!(kernel_oracle::lift::verify(&named(1), &kernel).is_ok());
    assert!(kernel_oracle::lift::verify(&named(2), &kernel).is_err());
}

fn two_lane_test(head: &str, column: &str) -> litmus::Test {
    let rows: Vec<String> = column.split(" ; ").map(|row| format!("{row} | {row} ;\n")).collect();
    let text = format!(
        "VULKAN T\n{head}{{ x = 0; P1:r0 = 1; }}\nP0@sg 0, wg 0, qf 0 | P1@sg 0, wg 0, qf 0 ;\n{}exists (x == 1)",
        rows.concat()
    );
    litmus::parse(&text, "T").unwrap()
}

/// Panics if the kernel of a test does not correspond to it, or corresponds to another one.
fn assert_distinct(kinds: &[litmus::Test]) {
    for (number, test) in kinds.iter().enumerate() {
        let kernel = shaders::compile(test, &LAVAPIPE).unwrap();
        for (other, claimed) in kinds.iter().enumerate() {
            let verified = kernel_oracle::lift::verify(claimed, &kernel);
            assert_eq!(verified.is_ok(), number == other, "{number} as {other}: {verified:?}");
        }
    }
}

/// A kernel does not correspond to the test if another branch or no branch skips an operation, or if it
/// reconverges differently.
#[test]
fn branches_around_an_operation_are_compared() {
    let skipped = "beq r0, 1, LC00 ; sg.ballot r1, 1, 0 ; sg.ballot r2, 1, 1 ; LC00:";
    let kinds = [
        two_lane_test("", skipped),
        two_lane_test("", "sg.ballot r1, 1, 0 ; sg.ballot r2, 1, 1"),
        two_lane_test("", "beq r0, 1, LC00 ; sg.ballot r1, 1, 0 ; LC00: ; sg.ballot r2, 1, 1"),
        two_lane_test(
            "",
            "beq r0, 1, LC00 ; beq r0, 2, LC01 ; sg.ballot r1, 1, 0 ; LC01: ; sg.ballot r2, 1, 1 ; LC00:",
        ),
        two_lane_test("reconvergence: maximal\n", skipped),
    ];
    assert_distinct(&kinds);
}

/// A subgroup barrier under a branch is one instruction for the lanes in the branch, and differs from the
/// barrier of another test.
#[test]
fn a_subgroup_barrier_under_a_branch_is_distinct() {
    let [own, relaxed] = ["cbar.execsg.acq_rel.sg.semsc0", "cbar.execsg.sg"];
    let under = |barrier: &str| format!("beq r0, 1, LC00 ; {barrier} 0 ; sg.ballot r1, 1, 0 ; LC00:");
    let kinds = [
        two_lane_test("", &under(own)),
        two_lane_test("", &under(relaxed)),
        two_lane_test("", &format!("beq r0, 1, LC00 ; sg.ballot r1, 1, 0 ; {own} 0 ; LC00:")),
        two_lane_test("", &format!("{own} 0 ; beq r0, 1, LC00 ; sg.ballot r1, 1, 0 ; LC00:")),
        two_lane_test(
            "",
            &format!("beq r0, 1, LC00 ; beq r0, 2, LC01 ; {own} 0 ; LC01: ; sg.ballot r1, 1, 0 ; LC00:"),
        ),
    ];
    assert_distinct(&kinds);
}

/// A lane may wait in a loop in a block.
#[test]
fn loops_are_allowed_in_conditional_blocks() {
    let spin = "LC01: ; ld.atom.dv.sc0 r3, x ; beq r3, 2, LC01";
    for column in [
        format!("beq r0, 1, LC00 ; sg.ballot r1, 1, 0 ; {spin} ; sg.ballot r2, 1, 1 ; LC00:"),
        format!("beq r0, 1, LC00 ; {spin} ; cbar.execsg.sg 0 ; LC00:"),
    ] {
        let test = two_lane_test("", &column);
        let kernel = shaders::compile(&test, &LAVAPIPE).unwrap();
        kernel_oracle::lift::verify(&test, &kernel).unwrap();
        common::assert_clean(&kernel);
        Validator::new().validate("loop", &kernel);
        assert!(kernel.max_loop_iterations > 0);
    }
}
