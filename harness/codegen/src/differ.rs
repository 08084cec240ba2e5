//! Compares the machine code of a test with that of a relaxed test.
//!
//! Both are compiled in the same way. If the code is the same, the removed synchronization had no effect.
//! This is not a failure by itself: the hardware may order these accesses without it.

use litmus::closed_enum;

use crate::disassembly::Disassembly;

closed_enum! {
    /// The difference between two machine codes.
    pub enum CodeDifference {
        /// Only names of registers and labels differ.
        Same = "same",
        /// Nothing related to memory differs: other registers, or other instruction positions between the same
        /// accesses, waits and barriers.
        Schedule = "schedule",
        /// Accesses, their bits, waits, barriers or their order differ.
        Memory = "differs",
    }
}

impl CodeDifference {
    /// Compares the kernels of a form one by one.
    pub fn between_forms(left: &[Disassembly], right: &[Disassembly]) -> CodeDifference {
        if left.len() != right.len() {
            return CodeDifference::Memory;
        }
        left.iter()
            .zip(right)
            .map(|(left, right)| CodeDifference::between_kernels(left, right))
            .max()
            .unwrap_or(CodeDifference::Same)
    }

    pub fn between_kernels(left: &Disassembly, right: &Disassembly) -> CodeDifference {
        if left.normalized_lines() == right.normalized_lines() {
            CodeDifference::Same
        } else if left.memory_skeleton() == right.memory_skeleton() && has_memory_skeleton(left) {
            CodeDifference::Schedule
        } else {
            CodeDifference::Memory
        }
    }

    /// Returns true if the relaxation does not change the memory operations.
    pub fn has_same_memory_operations(self) -> bool {
        self != CodeDifference::Memory
    }
}

/// Returns true if the dialect recognizes memory operations; without a skeleton, only equal text is
/// conclusive.
fn has_memory_skeleton(disassembly: &Disassembly) -> bool {
    !disassembly.memory_skeleton().is_empty()
}

/// Returns the kind of a relaxation from the text of its step (`P0.1: scope wg`), without the position.
///
/// Relaxations of one kind share a row of the table.
pub fn relaxation_kind(step: &str) -> &str {
    step.split_once(": ").map_or(step, |(_, kind)| kind)
}

/// Returns the shape of a test by its name: the part before the first `+`.
pub fn shape_of_test_name(name: &str) -> &str {
    let name = name.rsplit('/').next().unwrap_or(name);
    name.split('+').next().unwrap_or(name)
}

/// Returns the lines of a diff: common lines begin with a blank, others with `-` or `+`.
pub fn line_diff(old: &[String], new: &[String]) -> Vec<String> {
    let operations = similar::capture_diff_slices(similar::Algorithm::Myers, old, new);
    let changes = operations.iter().flat_map(|operation| operation.iter_changes(old, new));
    changes.map(|change| format!("{} {}", change.tag(), change.value())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse_disassembly(text: &str) -> Disassembly {
        Disassembly::parse(text, &vendor::radv().dialect).unwrap()
    }

    const STORES: &str = "buffer_store_dword v0, off, s[4:7], 0 glc\ns_waitcnt vmcnt(0)\nbuffer_store_dword v0, off, s[4:7], 0 offset:256 glc";

    #[test]
    fn a_lost_wait_or_bit_is_a_difference() {
        let full = parse_disassembly(STORES);
        for weaker in [STORES.replace("s_waitcnt vmcnt(0)\n", ""), STORES.replacen(" glc", "", 1)] {
            assert_eq!(
                CodeDifference::between_kernels(&full, &parse_disassembly(&weaker)),
                CodeDifference::Memory,
                "{weaker}"
            );
        }
    }

    #[test]
    fn registers_and_schedule_are_not_differences() {
        let full = parse_disassembly(STORES);
        let renamed = parse_disassembly(&STORES.replace("s[4:7]", "s[8:11]"));
        assert_eq!(CodeDifference::between_kernels(&full, &renamed), CodeDifference::Same);
        let moved = parse_disassembly(&format!("v_mov_b32_e32 v9, 1\n{STORES}"));
        assert_eq!(CodeDifference::between_kernels(&full, &moved), CodeDifference::Schedule);
        assert!(
            CodeDifference::between_forms(&[full.clone(), full.clone()], &[renamed, moved])
                .has_same_memory_operations()
        );
        assert_eq!(CodeDifference::between_forms(std::slice::from_ref(&full), &[]), CodeDifference::Memory);
    }

    #[test]
    fn steps_and_tests_have_a_kind() {
        assert_eq!(relaxation_kind("P0.1: scope wg"), "scope wg");
        assert_eq!(relaxation_kind("no ssw P0 P1"), "no ssw P0 P1");
        assert_eq!(shape_of_test_name("mp/MP+rel-acq"), "MP");
    }

    #[test]
    fn a_diff_preserves_common_lines() {
        let lines = |text: &str| -> Vec<String> { text.split(' ').map(str::to_owned).collect() };
        assert_eq!(line_diff(&lines("a b c d"), &lines("a c e d")), ["  a", "- b", "  c", "+ e", "  d"]);
        assert_eq!(line_diff(&lines("a"), &lines("a b")), ["  a", "+ b"]);
    }
}
