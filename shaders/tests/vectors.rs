//! Vectors of every type and length, whole and in part, in every memory and variant. Each module is valid,
//! corresponds to the test and passes the check.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use crate::common;

use std::collections::BTreeMap;

use common::{LAVAPIPE, check_every_variant};
use litmus::{ScalarType, Test};
use rspirv::dr::Operand;
use rspirv::spirv::Op;
use shaders::CompiledKernel;

const TYPES: [(&str, u32); 8] =
    [("u8", 1), ("i8", 1), ("u16", 2), ("u32", 4), ("i32", 4), ("u64", 8), ("f32", 4), ("f64", 8)];
const MEMORIES: [(&str, &str); 3] = [("buffer", "sc0"), ("address", "sc0"), ("workgroup", "sc1")];

/// Returns the first `count` registers or numbers in braces.
fn in_braces(prefix: &str, count: u32) -> String {
    let items: Vec<String> = (1..=count).map(|number| format!("{prefix}{number}")).collect();
    format!("{{{}}}", items.join(", "))
}

/// Returns tests that store and load a vector of a location, or a part of it.
fn generated_tests() -> Vec<(String, Test)> {
    let mut tests = Vec::new();
    for (scalar, bytes) in TYPES {
        for declared in 2..=4 {
            if declared * bytes > 16 {
                continue;
            }
            for (memory, class) in MEMORIES {
                for count in 2..=declared {
                    for first in 0..=declared - count {
                        let part =
                            if count == declared { String::new() } else { format!(".{scalar}x{count}") };
                        let name = format!("{memory} {scalar}x{declared}, {count} from {first}");
                        let (offset, values) = (first * bytes, in_braces("", count));
                        let registers = in_braces("r", count);
                        let text = format!(
                            "VULKAN T {{ {memory} {scalar}x{declared} v = 7; f = 0; }}
P0@sg 0, wg 0, qf 0 | P1@sg 1, wg 0, qf 0 ;
st.av.wg.{class}{part} v+{offset}, {values} | ld.atom.acq.wg.sc0.sem{class} r0, f ;
st.atom.rel.wg.sc0.sem{class} f, 1 | ld.vis.wg.{class}{part} {registers}, v+{offset} ;
exists (P1:r0 == 1 /\\ P1:r1 == 0 /\\ v[0] == 1 /\\ v[1] == 2)"
                        );
                        tests.push((name, litmus::parse(&text, "T").unwrap()));
                    }
                }
            }
        }
    }
    tests
}

#[test]
fn vectors_compile_in_every_variant() {
    let (kernels, refused) = check_every_variant(generated_tests(), |position, _| position % 26 == 0);
    assert!(kernels > 1000);
    let known = [
        "device address under GLSL450",
        "explicit layout of workgroup memory in Vulkan 1.1",
        "no workgroups in this stage: memory",
        "more threads than invocations in a workgroup of this size",
        "threads placed by subgroups of varying size",
        "workgroup memory that no driver initializes",
    ];
    let is_known = |rule: &String| known.iter().any(|known| rule.starts_with(known));
    assert!(refused.iter().all(is_known), "{refused:?}");
}

/// Returns the numbers of components of all vector loads and stores of the kernel.
fn widths(kernel: &CompiledKernel) -> Vec<u32> {
    let module = shaders::parse_module(&kernel.words).unwrap();
    let vectors: BTreeMap<u32, u32> = module
        .types_global_values
        .iter()
        .filter(|instruction| instruction.class.opcode == Op::TypeVector)
        .filter_map(|instruction| match instruction.operands[..] {
            [_, Operand::LiteralBit32(count)] => Some((instruction.result_id?, count)),
            _ => None,
        })
        .collect();
    let types: BTreeMap<u32, u32> = module
        .all_inst_iter()
        .filter_map(|instruction| Some((instruction.result_id?, instruction.result_type?)))
        .collect();
    let accesses = module.functions.iter().flat_map(|function| &function.blocks);
    accesses
        .flat_map(|block| &block.instructions)
        .filter_map(|instruction| match (instruction.class.opcode, &instruction.operands[..]) {
            (Op::Load, _) => vectors.get(&instruction.result_type?).copied(),
            (Op::Store, [_, Operand::IdRef(value), ..]) => vectors.get(types.get(value)?).copied(),
            _ => None,
        })
        .collect()
}

/// A vector access is one instruction, not one per component.
#[test]
fn one_instruction_moves_all_components() {
    let text = "VULKAN T { buffer u32x4 v = 0; address u16x3 w = 0; }
P0@sg 0, wg 0, qf 0 ;
st.av.dv.sc0 v, {1, 2, 3, 4} ;
ld.vis.dv.sc0.u32x2 {r0, r1}, v+4 ;
st.sc0 w, {1, 2, 3} ;
exists (P0:r0 == 1)";
    let kernel = shaders::compile(&litmus::parse(text, "T").unwrap(), &LAVAPIPE).unwrap();
    // The address of the buffer and the inputs of the kernel are also vectors.
    let moved: Vec<u32> = widths(&kernel);
    let text = shaders::disassemble(&kernel.words).unwrap();
    assert!(moved.ends_with(&[4, 2, 3]), "{moved:?}\n{text}");
}

/// A location after one of another type: neither the vector nor its neighbour moves.
#[test]
fn vectors_and_their_components_have_the_same_layout() {
    let text =
        "VULKAN T { buffer u32x4 v = {1, 2, 3, 4}; buffer u8x3 b = {5, 6, 7}; buffer f32x2 g = {1, 2}; }
P0@sg 0, wg 0, qf 0 ;
ld.sc0 {r0, r1, r2, r3}, v ;
exists (v[3] == 4 /\\ b[2] == 7 /\\ g[1] == 2)";
    let test = litmus::parse(text, "T").unwrap();
    let kernel = shaders::compile(&test, &LAVAPIPE).unwrap();
    assert_eq!(kernel.storage_words, 4);
    let expected = [
        0x0000_0004_0000_0003_0000_0002_0000_0001,
        0x0007_0605,
        u128::from(1f32.to_bits()) | u128::from(2f32.to_bits()) << 32,
    ];
    assert_eq!(kernel.initial_values, expected);
    assert_eq!(test.location(litmus::LocationId(1)).scalar_type(), ScalarType::U8);
}
