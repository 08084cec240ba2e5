//! Every test of the corpus in every stage: what compiles is valid and says what the test says; what does not is refused by the
//! name of a rule, and counted.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use crate::common;

use std::collections::BTreeMap;
use std::fmt::Write;

use common::{LAVAPIPE, NARROW, Validator, assert_clean};
use litmus::cts::{self, CtsCase};
use litmus::{Test, ThreadId};
use rspirv::dr::Operand;
use rspirv::spirv::{Op, StorageClass};
use shaders::carrier::Carrier;
use shaders::variant::Stage;
use shaders::{
    Binding, CompileError, Fixed, Kernel, KernelConfig, Leaving, Pipelines, Program, Variant, fixed_program,
    program,
};

const STAGES: [Stage; 3] = [Stage::Vertex, Stage::Fragment, Stage::FragmentHelpers];

fn in_stage(config: KernelConfig, stage: Stage) -> KernelConfig {
    KernelConfig { variant: Variant { stage, ..config.variant }, ..config }
}

fn check(validator: &mut Validator, name: &str, kernel: &Kernel) {
    assert_clean(kernel);
    validator.check(name, kernel);
    assert!(kernel.bindings.contains(&Binding::Claims), "{name}");
    if let Carrier::Fragment { cells, positions } = &kernel.carrier {
        assert_eq!(shaders::check::check(positions).unwrap(), []);
        assert!(cells.size * cells.size >= kernel.workgroup_size);
    }
}

/// How many of those tests that compute has a program for have one in each stage, and why the others have none. The numbers stand in
/// `docs/coverage.md` too.
#[test]
fn the_corpus_in_stages() {
    let mut validator = Validator::new();
    let mut table = String::new();
    for stage in STAGES {
        let (mut compute, mut told) = (0, 0);
        let mut refused: BTreeMap<String, usize> = BTreeMap::new();
        for (number, entry) in litmus::corpus::tests().into_iter().enumerate() {
            let test = litmus::parse(entry.text, &entry.id).unwrap();
            let Ok(test) = litmus::convert::for_device(&test) else { continue };
            let config = if number % 2 == 0 { LAVAPIPE } else { NARROW };
            let config = KernelConfig { thread_loops: number % 3 > 0, stressed: number % 5 == 0, ..config };
            if program(&test, &config, Pipelines::Merged).is_err() {
                continue;
            }
            compute += 1;
            match program(&test, &in_stage(config, stage), Pipelines::Merged) {
                Ok(program) => {
                    told += 1;
                    program.kernels().for_each(|kernel| check(&mut validator, &entry.id, kernel));
                    says_the_test(&entry.id, &test, &program);
                }
                Err(CompileError::NotPlaceable { rule }) => *refused.entry(rule).or_default() += 1,
                Err(error) => panic!("{}: {error}", entry.id),
            }
        }
        writeln!(table, "{stage:?}: {told} of {compute} tests that compute has a program for").unwrap();
        for (rule, count) in refused {
            writeln!(table, "  {count:>4} {rule}").unwrap();
        }
    }
    eprintln!("{} kernels through spirv-val", validator.validated);
    insta::assert_snapshot!(table);
}

/// Kernels whose machine code is looked at: each way to leave results is valid, and what only reads writes no memory at all where they
/// are outputs of a stage.
#[test]
fn results_as_an_expression_or_an_output() {
    let mut validator = Validator::new();
    let ways = [
        (Stage::Compute, Leaving::Expression),
        (Stage::Vertex, Leaving::Output),
        (Stage::Fragment, Leaving::Output),
    ];
    let mut table = String::new();
    for (stage, results) in ways {
        let (mut kernels, mut readers) = (0, 0);
        let config = KernelConfig { loop_bound: 1, ..in_stage(LAVAPIPE, stage) };
        let fixed = Fixed { results, ..Fixed::SINGLE };
        for entry in litmus::corpus::tests() {
            let test = litmus::parse(entry.text, &entry.id).unwrap();
            let Ok(test) = litmus::convert::for_device(&test) else { continue };
            let Ok(program) = fixed_program(&test, &config, Pipelines::Split, &fixed) else { continue };
            for part in program.phases.iter().flat_map(|phase| &phase.parts) {
                let kernel = &part.kernel;
                assert_clean(kernel);
                validator.check(&entry.id, kernel);
                kernels += 1;
                assert!(!kernel.bindings.contains(&Binding::Claims), "{}", entry.id);
                let instructions = part.threads.iter().flat_map(|thread| &test.thread(*thread).instructions);
                let writes =
                    instructions.filter_map(|one| one.kind.access()).any(litmus::MemoryAccess::writes);
                if results == Leaving::Output {
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

/// Whether a module may write what other invocations see.
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

/// The CTS's names of a stage by what becomes of them. The programs of vertex and fragment names are those of compute names.
#[test]
fn names_of_the_cts_in_stages() {
    let mut table = String::new();
    for (stage, of_names) in [(Stage::Vertex, cts::Stage::Vertex), (Stage::Fragment, cts::Stage::Fragment)] {
        let mut made: BTreeMap<String, String> = BTreeMap::new();
        let mut counts: BTreeMap<String, usize> = BTreeMap::new();
        for case in cts::cases() {
            if !matches!(&case, CtsCase::Generated(case) if case.stage == of_names) {
                continue;
            }
            let glsl = case.variant().starts_with("glsl450");
            let made = made.entry(format!("{} {glsl}", case.id())).or_insert_with(|| {
                let test = litmus::parse(&case.text(), &case.id()).unwrap();
                let mut config = in_stage(LAVAPIPE, stage);
                if glsl {
                    config.variant = config.variant.with("glsl450".parse().unwrap());
                }
                match program(&test, &config, Pipelines::Merged) {
                    Ok(program) => {
                        says_the_test(&case.id(), &test, &program);
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

/// A fence of the workgroup between two looks at one location, by a thread that is alone there, is the queue family's: the model is
/// asked about that.
#[test]
fn a_fence_that_reaches_nobody_is_told_as_one_of_the_queue_family() {
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
    for stage in STAGES {
        let variant = Variant { stage, ..Variant::default() };
        let said = shaders::meaning(&read("wg", 1), variant).unwrap();
        assert_eq!(litmus::print(&said), litmus::print(&read("qf", 1)));
        let kernel = shaders::compile(&read("wg", 1), &in_stage(LAVAPIPE, stage)).unwrap();
        shaders::lift::verify(&read("wg", 1), &kernel).unwrap();
        // Where somebody shares the workgroup, it would be another test.
        let refused = shaders::compile(&read("wg", 0), &in_stage(LAVAPIPE, stage)).unwrap_err();
        assert!(refused.to_string().starts_with("no workgroups in this stage"), "{refused}");
        assert_eq!(shaders::meaning(&read("wg", 1), Variant::default()).unwrap(), read("wg", 1));
    }
}

fn says_the_test(name: &str, test: &Test, program: &Program) {
    for phase in &program.phases {
        for part in &phase.parts {
            let own = shaders::program::part_of(test, &part.threads);
            shaders::lift::verify(&own, &part.kernel).unwrap_or_else(|error| panic!("{name}: {error}"));
        }
    }
}

#[test]
fn points_lie_where_the_fragments_look_for_them() {
    let test = litmus::parse(
        "VULKAN T { x = 0; } P0@sg 0, wg 0, qf 0 | P1@sg 0, wg 1, qf 0 ; st.sc0 x, 1 | ld.sc0 r0, x ;",
        "T",
    )
    .unwrap();
    let mut validator = Validator::new();
    for (lanes, cell) in [(1, (16, 16)), (4, (64, 2)), (8, (64, 64)), (30, (1, 1))] {
        for target in ["", "vulkan11"] {
            let variant = Variant { stage: Stage::Fragment, ..target.parse().unwrap() };
            let config = KernelConfig { lanes, cell, variant, ..LAVAPIPE };
            let kernel = shaders::compile(&test, &config).unwrap();
            let Carrier::Fragment { positions, .. } = &kernel.carrier else { panic!("{:?}", kernel.carrier) };
            check(&mut validator, "fragment", &kernel);
            check_words(&validator, positions, variant);
        }
    }
    let vertex = shaders::compile(&test, &in_stage(LAVAPIPE, Stage::Vertex)).unwrap();
    let text = shaders::disassemble(&vertex.words).unwrap();
    assert!(text.contains("OpEntryPoint Vertex") && text.contains("BuiltIn PointSize"), "{text}");
    assert!(!text.contains("LocalSize"), "{text}");
}

fn check_words(validator: &Validator, words: &[u32], variant: Variant) {
    if let Err(message) = validator.verdict(words, variant.target) {
        panic!("{message}\n{}", shaders::disassemble(words).unwrap());
    }
}

#[test]
fn what_a_stage_has_not_is_refused_with_the_clause() {
    let told = |first: &str, second: &str| {
        let text = format!(
            "VULKAN T {{ x = 0; }} P0@sg 0, wg 0, qf 0 | P1@sg 1, wg 0, qf 0 ; {first} | {second} ;
            exists (P0:r0 == 0 /\\ P1:r0 == 0)"
        );
        let test = litmus::parse(&text, "T").unwrap();
        STAGES.map(|stage| match program(&test, &in_stage(LAVAPIPE, stage), Pipelines::Merged) {
            Ok(_) => "told".to_owned(),
            Err(error) => error.to_string(),
        })
    };
    let cases = [
        (
            "ld.atom.wg.sc0 r0, x",
            "no workgroups in this stage: memory scope (VUID-StandaloneSpirv-None-07321)",
        ),
        ("ld.sc1 r0, x", "no workgroups in this stage: memory (VUID-StandaloneSpirv-None-04645)"),
        (
            "cbar.wg 0 ; ld.sc0 r0, x",
            "no workgroups in this stage: control barrier (VUID-StandaloneSpirv-None-04637)",
        ),
        ("ld.atom.sg.sc0 r0, x", "subgroups in this stage"),
        ("ld.atom.dv.sc0 r0, x", "told"),
        ("ld.atom.qf.sc0 r0, x", "told"),
    ];
    for (code, said) in cases {
        let lines: Vec<&str> = code.split(" ; ").collect();
        let both = lines.iter().map(|line| format!("{line} | {line}")).collect::<Vec<_>>().join(" ; ");
        let (first, second) = both.split_once(" | ").unwrap();
        assert_eq!(told(first, second), [said; 3], "{code}");
    }
}
