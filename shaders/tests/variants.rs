//! Every variant × storage × types × operations × loops. Each module is valid for its target, corresponds to
//! the test and passes the check.
#![expect(clippy::panic, clippy::unwrap_used, reason = "a test fails by panicking")]

use crate::common;
use vocabulary::Feature;

use common::{LAVAPIPE, Validator, assert_clean, check_every_variant};
use litmus::Test;
use rspirv::dr::Operand;
use rspirv::spirv::Decoration;
use shaders::variant::MemoryModel;
use shaders::{KernelConfig, Variant};

fn parse(text: &str) -> Test {
    litmus::parse(text, "T").unwrap_or_else(|error| panic!("{text}: {error}"))
}

/// Message passing through each storage, with payload and flag in every combination of types.
fn generated_tests() -> Vec<(String, Test)> {
    let storages = [("buffer", "sc0"), ("address", "sc0"), ("image", "sc2"), ("workgroup", "sc1")];
    let payloads = ["u8", "i16", "u32", "i32", "u64", "f32", "f64"];
    let flags = ["u32", "i32", "u64", "f32"];
    let mut tests = Vec::new();
    for (payload, payload_class) in storages {
        for (flag, flag_class) in storages {
            for (number, payload_type) in payloads.iter().enumerate() {
                let flag_type = flags[number % flags.len()];
                let name = format!("{payload} {payload_type}, {flag} {flag_type}");
                let text = format!(
                    "VULKAN T {{ {payload} {payload_type} x = 3; {flag} {flag_type} f = 0; {payload} {payload_type} y = 7; }}
P0@sg 0, wg 0, qf 0 | P1@sg 1, wg 0, qf 0 ;
st.av.wg.{payload_class} x, 1 | LC00: ;
st.{payload_class} y, 5 | ld.atom.acq.wg.{flag_class}.sem{payload_class} r0, f ;
st.atom.rel.wg.{flag_class}.sem{payload_class} f, 1 | bne r0, 1, LC00 ;
rmw.atom.wg.{flag_class}.add r1, f, 2 | ld.vis.wg.{payload_class} r1, x ;
rmw.atom.wg.{flag_class} r2, f, 1 | add r2, r1, r0 ;
| st.{payload_class} y, r2 ;
exists (P1:r0 == 1 /\\ P1:r1 == 0 /\\ y == 9 /\\ f == 1)"
                );
                tests.push((name, parse(&text)));
            }
        }
    }
    tests
}

fn compile_in(test: &Test, variant: Variant, config: KernelConfig) -> shaders::CompiledKernel {
    shaders::compile(test, &KernelConfig { variant, ..config }).unwrap()
}

#[test]
fn every_storage_and_type_compiles_in_every_variant() {
    // One process per module is slow, so each variant covers each storage, and each type.
    let (kernels, refused) =
        check_every_variant(generated_tests(), |position, turn| position % 7 == 0 || turn == 0);
    assert!(kernels > 600);
    let known = [
        "type of an image",
        "image together with another type",
        "device address under GLSL450",
        "private access to workgroup memory under GLSL450",
        "coherent and private accesses to one location under GLSL450",
        "more threads than invocations in a workgroup of this size",
        "threads placed by subgroups of varying size",
        "workgroup memory that no driver initializes",
    ];
    let is_known = |rule: &str| known.contains(&rule) || rule.starts_with("no workgroups in this stage: ");
    assert!(refused.iter().all(|rule| is_known(rule)), "{refused:?}");
}

#[test]
fn aliases_and_mixed_types_of_workgroup_memory_have_an_explicit_layout() {
    let test = parse(
        "VULKAN T { workgroup u32 x = 3; y aliases x; workgroup u64 z = 1; }
P0@sg 0, wg 0, qf 0 | P1@sg 1, wg 0, qf 0 ;
st.av.wg.sc1 x, 1   | ld.vis.wg.sc1 r0, y ;
st.av.wg.sc1 z, 1   | ld.vis.wg.sc1 r1, z ;
exists (P1:r0 == 1 /\\ x == 1)",
    );
    let kernel = compile_in(&test, Variant::default(), LAVAPIPE);
    assert!(kernel.requirements.features.contains(&Feature::WorkgroupMemoryExplicitLayout));
    // Each slot has two storages, each one unit of two words.
    assert_eq!(kernel.requirements.workgroup_bytes, 2 * 8 * kernel.lanes);
    kernel_oracle::lift::verify(&test, &kernel).unwrap();
    Validator::new().validate("explicit", &kernel);
    assert_clean(&kernel);
}

#[test]
fn under_glsl450_device_scope_means_the_queue_family() {
    let test = parse(
        "VULKAN T { x = 0; f = 0; }
P0@sg 0, wg 0, qf 0            | P1@sg 0, wg 1, qf 0             ;
st.av.dv.sc0 x, 1              | ld.atom.acq.dv.sc0.semsc0 r0, f ;
st.atom.rel.dv.sc0.semsc0 f, 1 | ld.vis.dv.sc0 r1, x             ;
exists (P1:r0 == 1 /\\ P1:r1 == 0)",
    );
    let variant = Variant { model: MemoryModel::Glsl450, ..Variant::default() };
    let text_of_variant = litmus::print(&shaders::effective_test(&test, variant).unwrap());
    assert!(
        text_of_variant.contains("st.av.qf.sc0 x, 1")
            && text_of_variant.contains("ld.atom.acq.qf.sc0.semsc0 r0, f"),
        "{text_of_variant}"
    );
    let kernel = compile_in(&test, variant, LAVAPIPE);
    assert_eq!(kernel.requirements.features, []);
    let text = shaders::disassemble(&kernel.words).unwrap();
    assert!(text.contains("OpMemoryModel Logical GLSL450") && text.contains("Coherent"), "{text}");
    // The kernel corresponds to the changed test only.
    let plain = shaders::CompiledKernel { variant: Variant::default(), ..kernel };
    assert!(kernel_oracle::lift::verify(&test, &plain).is_err());
}

#[test]
fn loops_that_only_wait_are_bounded_and_marked() {
    let test = parse(
        "VULKAN T { f = 0; l = 0; }
P0@sg 0, wg 0, qf 0            | P1@sg 0, wg 1, qf 0                        ;
st.atom.dv.sc0 f, 1            | LC00:                                      ;
                               | ld.atom.dv.sc0 r0, f                       ;
                               | bne r0, 1, LC00                            ;
                               | LC01:                                      ;
                               | rmw.atom.acq.dv.sc0.semsc0.cas r1, l, 0, 1 ;
                               | bne r1, 0, LC01                            ;
exists (P1:r0 == 1)",
    );
    let kernel = compile_in(&test, Variant::default(), LAVAPIPE);
    assert_eq!(kernel.max_loop_iterations, 2 * (LAVAPIPE.loop_bound + 1));
    assert!(kernel.results.contains(&shaders::ResultSlot::Done(litmus::ThreadId(1))));
    kernel_oracle::lift::verify(&test, &kernel).unwrap();
    Validator::new().validate("loops", &kernel);
    // Kernels with loops have fewer lanes (see [`KernelConfig::max_lanes_with_loops`]), and no loop
    // of rounds around them.
    let wide = KernelConfig { lanes: 32, max_lanes_with_loops: 8, thread_loops: true, ..LAVAPIPE };
    let kernel = compile_in(&test, Variant::default(), wide);
    assert_eq!((kernel.lanes, kernel.thread_loops), (8, 0));
    let split = shaders::compile_program(&test, &wide, shaders::Pipelines::Split).unwrap();
    assert!(split.kernels().all(|kernel| kernel.lanes == 8), "all run the same instances");
    let straight =
        parse("VULKAN T { x = 0; } P0@sg 0, wg 0, qf 0 | P1@sg 0, wg 1, qf 0 ; st.sc0 x, 1 | ld.sc0 r0, x ;");
    let kernel = compile_in(&straight, Variant::default(), wide);
    assert_eq!((kernel.lanes, kernel.thread_loops), (32, 2));
}

#[test]
fn memory_that_a_kernel_does_not_write_is_declared_non_writable() {
    let test = parse(
        "VULKAN T { x = 0; y = 0; z aliases y; w = 0; f = 0; image u32 i = 0; }
P0@sg 0, wg 0, qf 0     | P1@sg 0, wg 0, qf 0        ;
ld.sc0 r0, x            | ld.sc0 r0, y               ;
ld.atom.dv.sc0 r1, w    | st.sc0 z, 1                ;
ld.sc2 r2, i            | rmw.atom.dv.sc0.add r1, f, 1 ;
exists (P0:r0 == 1)",
    );
    let kernel = compile_in(&test, "readonly".parse().unwrap(), LAVAPIPE);
    let module = rspirv::dr::load_words(&kernel.words).unwrap();
    let name_of = |id: u32| {
        module.debug_names.iter().find_map(|name| match &name.operands[..] {
            [Operand::IdRef(of), Operand::LiteralString(name)] if *of == id => Some(name.clone()),
            _ => None,
        })
    };
    let mut declared: Vec<String> = module
        .annotations
        .iter()
        .filter_map(|annotation| match &annotation.operands[..] {
            [Operand::IdRef(id), Operand::Decoration(Decoration::NonWritable)] => name_of(*id),
            _ => None,
        })
        .collect();
    declared.sort();
    // The declaration of `y` has its other name.
    assert_eq!(declared, ["i", "w", "x"]);
}
