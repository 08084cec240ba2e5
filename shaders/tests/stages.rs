//! Every test of the corpus in every stage. Kernels are valid and correspond to the test; other tests are
//! refused with a rule, and counted.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use crate::common;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use common::{LAVAPIPE, NARROW, Validator, assert_clean};
use litmus::cts::{self, CtsCase};
use litmus::{Test, ThreadId};
use rspirv::dr::Operand;
use rspirv::spirv::{Decoration, Op, StorageClass};
use shaders::carrier::Carrier;
use shaders::draw::DrawModules;
use shaders::variant::CarrierStage;
use shaders::{
    Binding, CompileError, CompiledKernel, FixedDispatch, KernelConfig, Pipelines, Program, ResultPlacement,
    Variant, compile_fixed_program, compile_program,
};

const STAGES: [CarrierStage; 5] = [
    CarrierStage::Vertex,
    CarrierStage::Fragment,
    CarrierStage::FragmentHelpers,
    CarrierStage::Mesh,
    CarrierStage::Task,
];
/// Stages with different threads in different stages.
const MIXED: [CarrierStage; 2] = [CarrierStage::VertexFragment, CarrierStage::FragmentVertex];

fn in_stage(config: KernelConfig, stage: CarrierStage) -> KernelConfig {
    KernelConfig { variant: Variant { stage, ..config.variant }, ..config }
}

fn check(validator: &mut Validator, name: &str, kernel: &CompiledKernel) {
    assert_clean(kernel);
    validator.validate(name, kernel);
    let claims = kernel.bindings.contains(&Binding::Claims);
    assert_eq!(claims, !kernel.variant.stage.has_workgroups(), "{name}");
    if let Carrier::Fragment { layout: cells, point_shader: positions, .. } = &kernel.carrier {
        common::assert_valid_uses(positions);
        assert!(cells.size * cells.size >= kernel.workgroup_size);
    }
    if let Carrier::Task { mesh } = &kernel.carrier {
        check_words(validator, mesh, kernel.variant);
    }
}

/// Counts, for each stage, the tests with a compute program that have a program in the stage, and the reasons
/// of the others.
#[test]
fn the_corpus_in_stages() {
    let mut validator = Validator::new();
    let mut table = String::new();
    // The table covers all tests; outside of a soak, one kernel in 18 is validated and lifted.
    let share = if std::env::var_os("VK_LITMUS_SOAK").is_some() { 1 } else { 18 };
    let with_compute_program = |(number, entry): (usize, litmus::corpus::EmbeddedFile)| {
        let test = litmus::parse(entry.text, &entry.id).unwrap();
        let test = litmus::convert::to_device_program(&test).ok()?;
        let config = if number % 2 == 0 { LAVAPIPE } else { NARROW };
        let config = KernelConfig { thread_loops: number % 3 > 0, has_stress: number % 5 == 0, ..config };
        compile_program(&test, &config, Pipelines::Merged).ok()?;
        Some((number, entry, test, config))
    };
    let tests: Vec<_> =
        litmus::corpus::tests().into_iter().enumerate().filter_map(with_compute_program).collect();
    for (index, stage) in STAGES.into_iter().chain(MIXED).enumerate() {
        let compute = tests.len();
        let (mut told, mut draws) = (0, 0);
        let mut refused: BTreeMap<String, usize> = BTreeMap::new();
        for (number, entry, test, config) in &tests {
            match compile_program(test, &in_stage(*config, stage), Pipelines::Merged) {
                Ok(program) => {
                    told += 1;
                    draws += check_draws(&validator, stage, &program);
                    if (*number + index).is_multiple_of(share) {
                        program.kernels().for_each(|kernel| check(&mut validator, &entry.id, kernel));
                        check_correspondence(&entry.id, test, &program);
                    }
                }
                Err(CompileError::NotPlaceable { rule }) => *refused.entry(rule).or_default() += 1,
                Err(error) => panic!("{}: {error}", entry.id),
            }
        }
        writeln!(table, "{stage:?}: {told} of {compute} tests that compute has a program for").unwrap();
        if stage.is_mixed() {
            writeln!(table, "  {draws:>4} draws of vertices and fragments that both play").unwrap();
        }
        for (rule, count) in refused {
            writeln!(table, "  {count:>4} {rule}").unwrap();
        }
    }
    eprintln!("{} kernels through spirv-val", validator.validated);
    insta::assert_snapshot!(table);
}

/// Checks that each thread is in its stage, and that both modules of a draw are valid with their common
/// bindings. Returns the number of such draws.
fn check_draws(validator: &Validator, stage: CarrierStage, program: &Program) -> usize {
    let mut draws = 0;
    for phase in &program.phases {
        for part in &phase.kernels {
            for thread in &part.threads {
                assert_eq!(part.kernel.variant.stage, stage.for_thread(usize::from(thread.0)));
            }
        }
        for pair in phase.kernels.windows(2) {
            let [fragment, vertex] = pair else { continue };
            if !matches!(vertex.kernel.carrier, Carrier::VertexWithFragments { .. }) {
                continue;
            }
            let (fragment, vertex) = (&fragment.kernel, &vertex.kernel);
            let together = DrawModules::combine(vertex, fragment);
            check_words(validator, &together.vertex, vertex.variant);
            check_words(validator, &together.fragment, fragment.variant);
            assert_eq!(draw_binding_names(&together.fragment, &together), kernel_binding_names(fragment));
            assert_eq!(draw_binding_names(&together.vertex, &together), kernel_binding_names(vertex));
            let claims = |of: bool| together.bindings.iter().filter(|b| **b == (Binding::Claims, of)).count();
            assert_eq!((claims(true), claims(false)), (1, 1), "each stage has its own");
            draws += 1;
        }
    }
    draws
}

fn draw_binding_names(words: &[u32], together: &DrawModules) -> Vec<String> {
    let module = rspirv::dr::load_words(words).unwrap();
    let numbers = module.annotations.iter().filter_map(|one| match one.operands[..] {
        [_, Operand::Decoration(Decoration::Binding), Operand::LiteralBit32(number)] => Some(number as usize),
        _ => None,
    });
    // Several variables of different types may share one binding.
    let mut all: Vec<String> = numbers
        .collect::<BTreeSet<usize>>()
        .into_iter()
        .map(|number| match together.bindings.get(number) {
            Some((binding, _)) => format!("{binding:?}"),
            None => format!("{:?}", together.images[number - together.bindings.len()]),
        })
        .collect();
    all.sort();
    all
}

fn kernel_binding_names(kernel: &CompiledKernel) -> Vec<String> {
    let images = kernel.images.iter().map(|image| format!("{image:?}"));
    let mut all: Vec<String> =
        kernel.bindings.iter().map(|binding| format!("{binding:?}")).chain(images).collect();
    all.sort();
    all
}

/// Kernels for inspecting machine code. Each placement of results is valid. If results are outputs of a
/// stage, kernels without stores write no memory.
#[test]
fn results_as_an_expression_or_an_output() {
    let mut validator = Validator::new();
    let placements = [
        (CarrierStage::Compute, ResultPlacement::Expression),
        (CarrierStage::Vertex, ResultPlacement::Output),
        (CarrierStage::Fragment, ResultPlacement::Output),
    ];
    let mut table = String::new();
    // The table covers all tests; outside of a soak, the kernels of one in eight are validated.
    let share = if std::env::var_os("VK_LITMUS_SOAK").is_some() { 1 } else { 8 };
    for (stage, results) in placements {
        let (mut kernels, mut readers) = (0, 0);
        let config = KernelConfig { loop_bound: 1, ..in_stage(LAVAPIPE, stage) };
        let fixed = FixedDispatch { result_placement: results, ..FixedDispatch::SINGLE };
        for (number, entry) in litmus::corpus::tests().into_iter().enumerate() {
            let test = litmus::parse(entry.text, &entry.id).unwrap();
            let Ok(test) = litmus::convert::to_device_program(&test) else { continue };
            let Ok(program) = compile_fixed_program(&test, &config, Pipelines::Split, &fixed) else {
                continue;
            };
            for part in program.phases.iter().flat_map(|phase| &phase.kernels) {
                let kernel = &part.kernel;
                assert_clean(kernel);
                if number.is_multiple_of(share) {
                    validator.validate(&entry.id, kernel);
                }
                kernels += 1;
                assert!(!kernel.bindings.contains(&Binding::Claims), "{}", entry.id);
                let instructions = part.threads.iter().flat_map(|thread| &test.thread(*thread).instructions);
                let writes =
                    instructions.filter_map(|one| one.kind.access()).any(litmus::MemoryAccess::is_write);
                if results == ResultPlacement::Output {
                    assert!(!kernel.bindings.contains(&Binding::Results) && kernel.results.is_empty());
                    assert_eq!(writes_memory(&kernel.words), writes, "{} {stage:?}", entry.id);
                } else {
                    let own = |thread| {
                        kernel
                            .results
                            .iter()
                            .filter(|slot| slot.thread() == Some(ThreadId(thread as u16)))
                            .count()
                    };
                    assert!((0..part.threads.len()).all(|thread| own(thread) == 1), "{}", entry.id);
                }
                readers += u32::from(!writes);
            }
        }
        writeln!(table, "{stage:?} {results:?}: {kernels} kernels, {readers} that only read").unwrap();
    }
    eprintln!("{} kernels through spirv-val", validator.validated);
    insta::assert_snapshot!(table);
}

/// Returns true if a module may write memory that other invocations can read.
fn writes_memory(words: &[u32]) -> bool {
    let module = rspirv::dr::load_words(words).unwrap();
    let own: Vec<u32> = module
        .all_inst_iter()
        .filter(|one| {
            one.class.opcode == Op::Variable
                && matches!(
                    one.operands.first(),
                    Some(Operand::StorageClass(StorageClass::Output | StorageClass::Function))
                )
        })
        .filter_map(|one| one.result_id)
        .collect();
    module.all_inst_iter().any(|one| match one.class.opcode {
        Op::Store => !matches!(one.operands.first(), Some(Operand::IdRef(to)) if own.contains(to)),
        Op::ImageWrite | Op::CooperativeMatrixStoreKHR | Op::AtomicFlagClear => true,
        Op::AtomicLoad => false,
        other => format!("{other:?}").starts_with("Atomic"),
    })
}

/// Names of CTS tests in stages, by result. The programs of vertex and fragment names equal those of compute
/// names.
#[test]
fn names_of_the_cts_in_stages() {
    let mut table = String::new();
    for (stage, of_names) in
        [(CarrierStage::Vertex, cts::Stage::Vertex), (CarrierStage::Fragment, cts::Stage::Fragment)]
    {
        let mut made: BTreeMap<String, String> = BTreeMap::new();
        let mut counts: BTreeMap<String, usize> = BTreeMap::new();
        for case in cts::all_cases() {
            if !matches!(&case, CtsCase::Generated(case) if case.stage == of_names) {
                continue;
            }
            let glsl = case.variant().starts_with("glsl450");
            let made = made.entry(format!("{} {glsl}", case.test_id())).or_insert_with(|| {
                let test = litmus::parse(&case.litmus_text(), &case.test_id()).unwrap();
                let mut config = in_stage(LAVAPIPE, stage);
                if glsl {
                    config.variant = config.variant.overridden_by("glsl450".parse().unwrap());
                }
                match compile_program(&test, &config, Pipelines::Merged) {
                    Ok(program) => {
                        check_correspondence(&case.test_id(), &test, &program);
                        "told".to_owned()
                    }
                    Err(error) => error.to_string(),
                }
            });
            *counts.entry(made.clone()).or_default() += 1;
        }
        writeln!(table, "{stage:?}: {counts:?}").unwrap();
    }
    insta::assert_snapshot!(table);
}

/// A workgroup fence between two loads of one location, in a thread without others in its workgroup, becomes
/// a fence of the queue family. The model evaluates it as such.
#[test]
fn a_fence_without_partners_becomes_one_of_the_queue_family() {
    let text = |scope: &str, workgroup: u32| {
        format!(
            "VULKAN T {{ f = 0; }} P0@sg 0, wg 0, qf 0 | P1@sg 1, wg {workgroup}, qf 0 ;
            st.atom.dv.sc0 f, 1 | ld.atom.dv.sc0 r0, f ;
            | membar.acq.{scope}.semsc0 ;
            | ld.atom.dv.sc0 r1, f ;
            exists (P1:r0 == 0 /\\ P1:r1 == 1)"
        )
    };
    let read = |scope, workgroup| litmus::parse(&text(scope, workgroup), "T").unwrap();
    for stage in STAGES.into_iter().filter(|stage| !stage.has_workgroups()) {
        let variant = Variant { stage, ..Variant::default() };
        let effective = shaders::effective_test(&read("wg", 1), variant).unwrap();
        assert_eq!(litmus::print(&effective), litmus::print(&read("qf", 1)));
        let kernel = shaders::compile(&read("wg", 1), &in_stage(LAVAPIPE, stage)).unwrap();
        kernel_oracle::lift::verify(&read("wg", 1), &kernel).unwrap();
        // With another thread in the workgroup, this would change the test.
        let refused = shaders::compile(&read("wg", 0), &in_stage(LAVAPIPE, stage)).unwrap_err();
        assert!(refused.to_string().starts_with("no workgroups in this stage"), "{refused}");
        assert_eq!(shaders::effective_test(&read("wg", 1), Variant::default()).unwrap(), read("wg", 1));
    }
}

fn check_correspondence(name: &str, test: &Test, program: &Program) {
    for phase in &program.phases {
        for part in &phase.kernels {
            let own = shaders::program::restrict_to_threads(test, &part.threads);
            kernel_oracle::lift::verify(&own, &part.kernel).unwrap_or_else(|error| panic!("{name}: {error}"));
        }
    }
}

#[test]
fn points_are_at_the_pixels_of_their_fragments() {
    let test = litmus::parse(
        "VULKAN T { x = 0; } P0@sg 0, wg 0, qf 0 | P1@sg 0, wg 1, qf 0 ; st.sc0 x, 1 | ld.sc0 r0, x ;",
        "T",
    )
    .unwrap();
    let mut validator = Validator::new();
    for (lanes, cell) in [(1, (16, 16)), (4, (64, 2)), (8, (64, 64)), (30, (1, 1))] {
        for target in ["", "vulkan11"] {
            let variant = Variant { stage: CarrierStage::Fragment, ..target.parse().unwrap() };
            let config = KernelConfig { lanes, fragment_cell: cell, variant, ..LAVAPIPE };
            let kernel = shaders::compile(&test, &config).unwrap();
            let Carrier::Fragment { point_shader: positions, .. } = &kernel.carrier else {
                panic!("{:?}", kernel.carrier)
            };
            check(&mut validator, "fragment", &kernel);
            check_words(&validator, positions, variant);
        }
    }
    let vertex = shaders::compile(&test, &in_stage(LAVAPIPE, CarrierStage::Vertex)).unwrap();
    let text = shaders::disassemble(&vertex.words).unwrap();
    assert!(text.contains("OpEntryPoint Vertex") && text.contains("BuiltIn PointSize"), "{text}");
    assert!(!text.contains("LocalSize"), "{text}");
}

/// Fragments of one section share a pixel. Each executes the ends of its section once, before any return and
/// in the mode of the variant.
#[test]
fn fragments_of_one_section_share_a_pixel() {
    let words = [
        ("fragment", "Pixel"),
        ("fragment.sample-interlock", "Sample"),
        ("fragment.shading-rate-interlock", "ShadingRate"),
        ("fragment-helpers", "Pixel"),
        ("fragment.vulkan11", "Pixel"),
    ];
    let mut validator = Validator::new();
    let tests = litmus::corpus::tests();
    let tests: Vec<_> = tests.iter().filter(|entry| entry.id.starts_with("interlock/")).collect();
    assert!(tests.len() > 20);
    for entry in tests {
        let test = litmus::parse(entry.text, &entry.id).unwrap();
        let ordered = test.interlock_order() == Some(litmus::InterlockOrder::Ordered);
        let order = if ordered { "Ordered" } else { "Unordered" };
        let sections: Vec<_> = (0..test.threads.len())
            .map(|thread| test.first_section(litmus::ThreadId(thread as u16)))
            .collect();
        for (words, mode) in words {
            let config = KernelConfig { variant: words.parse().unwrap(), ..LAVAPIPE };
            let kernel = shaders::compile(&test, &config).unwrap();
            let name = format!("{}@{words}", entry.id);
            check(&mut validator, &name, &kernel);
            kernel_oracle::lift::verify(&test, &kernel).unwrap();
            let text = shaders::disassemble(&kernel.words).unwrap();
            for once in
                [&format!("{mode}Interlock{order}EXT"), "OpBeginInvocation", "OpEndInvocation", "OpReturn"]
            {
                assert_eq!(text.matches(once).count(), 1, "{name} {once}: {text}");
            }
            let Carrier::Fragment { point_shader: positions, overlap: Some(overlap), .. } = &kernel.carrier
            else {
                panic!("{:?}", kernel.carrier)
            };
            check_words(&validator, positions, config.variant);
            for (left, own) in overlap.cells.iter().zip(&sections) {
                for (right, other) in overlap.cells.iter().zip(&sections) {
                    let same = own == other && own.is_some() || std::ptr::eq(left, right);
                    assert_eq!(left == right, same, "{name}: {:?}", overlap.cells);
                }
            }
        }
    }
}

fn check_words(validator: &Validator, words: &[u32], variant: Variant) {
    if let Err(message) = validator.run_spirv_val(words, variant.target) {
        panic!("{message}\n{}", shaders::disassemble(words).unwrap());
    }
}

/// With separate pipelines they are in separate draws, whose vertices place no points for other kernels.
#[test]
fn threads_in_different_stages_have_separate_kernels() {
    let text = "VULKAN T { x = 0; } P0@sg 0, wg 0, qf 0 | P1@sg 0, wg 1, qf 0 ; st.sc0 x, 1 | ld.sc0 r0, x ;
        exists (P1:r0 == 1)";
    let test = litmus::parse(text, "T").unwrap();
    for stage in MIXED {
        for (pipelines, of_one_draw) in [(Pipelines::Merged, true), (Pipelines::Split, false)] {
            let program = compile_program(&test, &in_stage(LAVAPIPE, stage), pipelines).unwrap();
            let beside =
                |kernel: &CompiledKernel| matches!(kernel.carrier, Carrier::VertexWithFragments { .. });
            assert_eq!((program.phases.len(), program.kernels().count()), (1, 2));
            assert_eq!(program.kernels().any(beside), of_one_draw);
        }
    }
}
