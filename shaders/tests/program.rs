//! Programs of several kernels: the kernel and phase of each thread, and the dependencies between phases. The
//! kernels together correspond to the test.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use crate::common;

use common::{LAVAPIPE, NARROW, Validator};
use litmus::{AccessMask, Observable, Test, ThreadId};
use shaders::program::restrict_to_threads;
use shaders::variant::WorkgroupCount;
use shaders::{Dependency, KernelConfig, Pipelines, Program, ResultSlot, Variant, compile_program};

/// Message passing between workgroups.
const MESSAGE: &str = "VULKAN T { x = 0; f = 0; }
P0@sg 0, wg 0, qf 0            | P1@sg 0, wg 1, qf 0             ;
st.av.dv.sc0 x, 1              | ld.atom.acq.dv.sc0.semsc0 r0, f ;
st.atom.rel.dv.sc0.semsc0 f, 1 | ld.vis.dv.sc0 r1, x             ;
exists (P1:r0 == 1 /\\ P1:r1 == 0)";

fn parse(text: &str) -> Test {
    litmus::parse(text, "T").unwrap()
}

/// Returns the threads of each kernel of each phase.
fn thread_numbers(program: &Program) -> Vec<Vec<Vec<u16>>> {
    let part = |part: &shaders::ProgramKernel| part.threads.iter().map(|thread| thread.0).collect();
    program.phases.iter().map(|phase| phase.kernels.iter().map(part).collect()).collect()
}

/// The number of concurrent workgroups does not change kernels, but some tests need many.
#[test]
fn variants_set_the_number_of_workgroups_per_group() {
    let parallel = KernelConfig { parallel: true, ..LAVAPIPE };
    for (word, pipelines, config, groups) in [
        ("", Pipelines::Merged, LAVAPIPE, Some(None)),
        ("workgroups-1", Pipelines::Merged, LAVAPIPE, None),
        ("workgroups-1", Pipelines::Split, LAVAPIPE, None),
        ("workgroups-1", Pipelines::Merged, parallel, None),
        ("workgroups-2", Pipelines::Merged, LAVAPIPE, Some(Some(1))),
        ("workgroups-2", Pipelines::Merged, parallel, Some(Some(2))),
        ("workgroups-5", Pipelines::Split, LAVAPIPE, Some(Some(2))),
        ("size-7.workgroups-65535", Pipelines::Merged, LAVAPIPE, Some(Some(32_767))),
    ] {
        let variant: Variant = word.parse().unwrap();
        let config = KernelConfig { variant, ..config };
        match compile_program(&parse(MESSAGE), &config, pipelines) {
            Ok(program) => {
                assert_eq!(Some(program.fixed_groups()), groups, "{word}");
                let plain = Variant { workgroup_count: WorkgroupCount::Random, ..variant };
                let config = KernelConfig { variant: plain, ..config };
                let drawn = shaders::compile_program(&parse(MESSAGE), &config, pipelines).unwrap();
                assert!(program.kernels().map(|one| &one.words).eq(drawn.kernels().map(|one| &one.words)));
            }
            Err(error) => {
                assert_eq!(groups, None, "{word}: {error}");
                assert!(
                    error.to_string().contains("more workgroups in the test than in a dispatch of this size")
                );
            }
        }
    }
}

/// Checks that every kernel has exactly the events of its threads, and that results and classes are numbered
/// consecutively.
fn check(name: &str, test: &Test, program: &Program, validator: &mut Validator, validate: bool) {
    let mut threads: Vec<ThreadId> = Vec::new();
    let mut slots = 0;
    for phase in &program.phases {
        let mut classes = 0;
        for part in &phase.kernels {
            let kernel = &part.kernel;
            kernel_oracle::lift::verify(&restrict_to_threads(test, &part.threads), kernel)
                .map_err(|error| format!("{name}: {error}"))
                .unwrap();
            common::assert_clean(kernel);
            if validate {
                validator.validate(name, kernel);
            }
            assert_eq!(kernel.lanes, program.lanes, "{name}");
            assert_eq!(kernel.storages, program.storages, "{name}");
            assert_eq!(kernel.first_slot, slots, "{name}");
            assert_eq!(kernel.first_class, classes, "{name}");
            let own = &program.results[slots as usize..slots as usize + kernel.results.len()];
            for (slot, local) in own.iter().zip(&kernel.results) {
                // A final value of workgroup memory belongs to no thread.
                let thread = local.thread().map(|thread| part.threads[usize::from(thread.0)]);
                assert_eq!(slot.thread(), thread, "{name}");
            }
            slots += kernel.results.len() as u32;
            classes += kernel.roles.classes.len() as u32;
            threads.extend(&part.threads);
            assert!(kernel.bindings.contains(&shaders::Binding::Rendezvous), "{name}");
        }
    }
    // Results of host threads follow those of kernels.
    let hosts = program.hosts.as_ref().map_or(&[][..], |hosts| &hosts.threads);
    threads.extend(hosts.iter().map(|host| host.thread));
    assert!(
        program.results[slots as usize..]
            .iter()
            .all(|slot| hosts.iter().any(|host| slot.thread() == Some(host.thread))),
        "{name}"
    );
    assert_eq!(slots as usize == program.results.len(), hosts.is_empty(), "{name}");
    threads.sort_unstable();
    assert_eq!(threads, (0..test.threads.len()).map(|t| ThreadId(t as u16)).collect::<Vec<_>>(), "{name}");
    for observable in test.observables() {
        let register = program.results.contains(&ResultSlot::Register(observable));
        let location = program.final_values.iter().any(|(known, _)| *known == observable);
        // Kernels report registers, and final values of workgroup memory because the host cannot read it.
        if matches!(observable, Observable::Register(..)) {
            assert!(register, "{name}");
        }
        assert_eq!(location, !register, "{name}");
    }
}

#[test]
fn the_corpus_as_programs_merged_and_split() {
    let mut validator = Validator::new();
    let (mut merged, mut split, mut phased) = (0, 0, 0);
    // A soak compiles each test for both devices, other runs for one.
    let share = if std::env::var_os("VK_LITMUS_SOAK").is_some() { 1 } else { 2 };
    for (index, (name, test)) in common::own_corpus().into_iter().enumerate() {
        for config in [LAVAPIPE, NARROW].into_iter().skip(index % share).step_by(share) {
            if let Ok(program) = compile_program(&test, &config, Pipelines::Merged) {
                check(&name, &test, &program, &mut validator, program.phases.len() > 1);
                merged += 1;
                phased += usize::from(program.phases.len() > 1);
            }
            if let Ok(program) = compile_program(&test, &config, Pipelines::Split) {
                check(&name, &test, &program, &mut validator, index % 8 == 0);
                assert!(program.kernels().all(|kernel| kernel.roles.classes.len() == 1), "{name}");
                split += 1;
            }
        }
    }
    eprintln!("{merged} programs, {phased} of several phases, {split} split");
    assert!(merged > 300 && split > 250 && phased >= 16, "{merged} {split} {phased}");
}

#[test]
fn one_phase_is_the_kernel_of_the_test() {
    let test =
        parse("VULKAN T { x = 0; } P0@sg 0, wg 0, qf 0 | P1@sg 0, wg 1, qf 0 ; st.sc0 x, 1 | ld.sc0 r0, x ;");
    let kernel = shaders::compile(&test, &LAVAPIPE).unwrap();
    let program = compile_program(&test, &LAVAPIPE, Pipelines::Merged).unwrap();
    assert_eq!(thread_numbers(&program), [[[0, 1]]]);
    assert_eq!(program.kernels().next().unwrap().words, kernel.words);
    assert_eq!(program.phases[0].dependency, Dependency::default());
}

#[test]
fn threads_run_after_their_predecessors() {
    let text = "VULKAN T { x = 0; y = 0; } { ssw 0 1; ssw 1 3; ssw 0 3; }
        P0@sg 0, wg 0, qf 0 | P1@sg 0, wg 1, qf 0 | P2@sg 0, wg 2, qf 0 | P3@sg 0, wg 3, qf 0 ;
        st.sc0 x, 1         | visdevice           | st.sc0 y, 1         | visdevice           ;
        avdevice            | ld.sc0 r0, x        |                     | ld.sc0 r0, y        ;
                            | st.sc0 y, 2         |                     |                     ;";
    let program_of = |pipelines| compile_program(&parse(text), &LAVAPIPE, pipelines).unwrap();
    let merged = program_of(Pipelines::Merged);
    assert_eq!(thread_numbers(&merged), [vec![vec![0, 2]], vec![vec![1]], vec![vec![3]]]);
    let between: Vec<Dependency> = merged.phases.iter().map(|phase| phase.dependency).collect();
    let visible = AccessMask::SHADER_READ;
    let both =
        Dependency { available: AccessMask::SHADER_WRITE, visible: visible.with(AccessMask::SHADER_WRITE) };
    // The writes of the first phase are already available, and those of the second are never made available.
    let last = Dependency { available: AccessMask::NONE, visible };
    assert_eq!(between, [Dependency::default(), both, last]);
    assert_eq!(
        thread_numbers(&program_of(Pipelines::Split)),
        [vec![vec![0], vec![2]], vec![vec![1]], vec![vec![3]]]
    );
}

/// Returns the access masks of the dependency from the first thread to the second.
fn dependency(rows: &str) -> (String, String) {
    let text = format!(
        "VULKAN T {{ x = 0; y = 0; }} {{ ssw 0 1; }} P0@sg 0, wg 0, qf 0 | P1@sg 0, wg 1, qf 0 ; {rows}"
    );
    let program = compile_program(&parse(&text), &LAVAPIPE, Pipelines::Merged).unwrap();
    let Dependency { available, visible } = program.phases[1].dependency;
    let words = |mask: AccessMask| mask.names().collect::<Vec<_>>().join(".");
    (words(available), words(visible))
}

#[test]
fn dependencies_have_the_access_masks_of_the_test() {
    let cases = [
        ("ld.sc0 r0, x | st.sc0 x, 1 ;", ("", "")),
        ("st.sc0 x, 1 | ld.sc0 r0, x ;", ("", "")),
        ("st.sc0 x, 1 | ld.sc0 r0, x ; avdevice | ;", ("shader_write", "")),
        ("st.sc0 x, 1 | visdevice ; avdevice | ld.sc0 r0, x ;", ("shader_write", "shader_read")),
        ("st.sc0 x, 1 | visdevice ; | ld.sc0 r0, x ;", ("", "shader_read")),
        ("st.sc0 x, 1 | st.sc0 x, 2 ; avdevice | ;", ("shader_write", "shader_write")),
        // The entire dependency is after the first thread, or before the second.
        ("st.sc0 x, 1 | ; avdevice | ; visdevice | ld.sc0 r0, x ;", ("shader_write", "shader_read")),
        ("st.sc0 x, 1 | avdevice ; | visdevice ; | ld.sc0 r0, x ;", ("shader_write", "shader_read")),
        ("avdevice | ld.sc0 r0, x ; st.sc0 x, 1 | visdevice ;", ("", "")),
    ];
    for (rows, (available, visible)) in cases {
        assert_eq!(dependency(rows), (available.to_owned(), visible.to_owned()), "{rows}");
    }
}

#[test]
fn access_masks_are_those_of_the_test() {
    let two = |available: &str, visible: &str, later: &str| {
        dependency(&format!("st.sc0 x, 1 | visdevice{visible} ; avdevice{available} | {later} ;"))
    };
    let masks = [AccessMask::NONE, AccessMask::HOST_READ.with(AccessMask::TRANSFER_WRITE)];
    for mask in AccessMask::single_accesses().chain(masks) {
        let words: Vec<_> = mask.names().collect();
        let (text, words) = (
            if words.is_empty() { ".none".to_owned() } else { format!(".{}", words.join(".")) },
            words.join("."),
        );
        assert_eq!(two(&text, "", "ld.sc0 r0, x").0, words);
        assert_eq!(two("", &text, "ld.sc0 r0, x").1, words);
        // Without an availability operation, the later thread need not wait for writes.
        assert_eq!(two(".none", &text, "st.sc0 x, 2").1, words);
    }
    assert_eq!(two(".memory_write", ".memory_read", "st.sc0 x, 2").1, "shader_write.memory_read");
    assert_eq!(two(".memory_write", ".memory_write", "st.sc0 x, 2").1, "memory_write");
}

#[test]
fn dependencies_of_all_memory_differ_from_narrower_ones() {
    let all = |rows: &str| {
        let text = format!(
            "VULKAN T {{ x = 0; y = 0; }} {{ ssw 0 1; }} P0@sg 0, wg 0, qf 0 | P1@sg 0, wg 1, qf 0 ; {rows}"
        );
        compile_program(&parse(&text), &LAVAPIPE, Pipelines::Merged).unwrap().all_memory
    };
    let read = |available: &str, visible: &str| {
        all(&format!("st.sc0 x, 1 | visdevice{visible} ; avdevice{available} | ld.sc0 r0, x ;"))
    };
    assert!(
        read("", "")
            && read(".shader_write", ".memory_read")
            && read(".memory_write", ".shader_read.host_read")
    );
    assert!(!read(".none", "") && !read("", ".shader_write") && !read(".shader_read", ".uniform_read"));
    assert!(!all("st.sc0 x, 1 | ld.sc0 r0, x ;") && !all("st.sc0 x, 1 | ld.sc0 r0, x ; avdevice | ;"));
    // The write is not read, or it is overwritten. Write-after-read needs no memory dependency.
    assert!(all("st.sc0 x, 1 | ld.sc0 r0, y ;") && all("st.sc0 x, 1 | st.sc0 x, 2 ; avdevice | ;"));
    assert!(all("ld.sc0 r0, x | visdevice.none ; avdevice.none | st.sc0 x, 1 ;"));
    assert!(!all("st.sc0 x, 1 | rmw.atom.dv.sc0.add r0, x, 1 ; avdevice | ;"));
}

/// All kernels of a program run as many instances as fit in the fullest subgroup of any of them.
#[test]
fn kernels_of_a_program_have_equal_lanes() {
    let text = "VULKAN T { x = 0; } { ssw 0 2; ssw 1 2; }
        P0@sg 0, wg 0, qf 0 | P1@sg 0, wg 0, qf 0 | P2@sg 0, wg 1, qf 0 ;
        st.sc0 x, 1         | ld.sc0 r0, x        | ld.sc0 r0, x        ;";
    let test = parse(text);
    let program = compile_program(&test, &LAVAPIPE, Pipelines::Merged).unwrap();
    assert_eq!(thread_numbers(&program), [[vec![0, 1]], [vec![2]]]);
    assert_eq!(program.lanes, LAVAPIPE.subgroup_size / 2);
    check("T", &test, &program, &mut Validator::new(), true);
}

/// Host threads: batches, and the operations around them.
#[test]
fn host_threads_submit_batches() {
    use shaders::host::{HostThreadAct, SubmissionStart};
    let host = |locations: &str, ssw: &str, code: &str| {
        format!(
            "VULKAN T {{ {locations} }} {ssw} P0@host | P1@sg 0, wg 0, qf 0 | P2@sg 0, wg 1, qf 0 ; {code}"
        )
    };
    let x = "buffer u32 x [host] = 0;";
    let text = host(
        x,
        "",
        "st.sc0 x, 1 | st.sc0 x, 2 | ld.sc0 r0, x ; submit P1 | avdevice.shader_write | ; wait P1 | visdevice.host_read | ;
         ld.sc0 r0, x | | ;",
    );
    let program = compile_program(&parse(&text), &LAVAPIPE, Pipelines::Merged).unwrap();
    assert_eq!(thread_numbers(&program), [[[1]], [[2]]]);
    let hosts = program.hosts.as_ref().unwrap();
    assert_eq!(hosts.submission_starts, [SubmissionStart::Submitted, SubmissionStart::Early]);
    let acts = [
        HostThreadAct::Execute(0..1),
        HostThreadAct::Submit(0),
        HostThreadAct::Wait(0),
        HostThreadAct::Execute(3..4),
    ];
    assert_eq!(hosts.threads[0].acts, acts);
    let after = Dependency { available: AccessMask::SHADER_WRITE, visible: AccessMask::HOST_READ };
    assert_eq!(hosts.dependencies_after, [after, Dependency::default()]);
    let reports: Vec<_> = program.results.iter().filter_map(|slot| slot.thread()).collect();
    assert_eq!(reports.last(), Some(&ThreadId(0)));
}

/// A kernel runs on one queue, so each queue has its kernels in every phase.
#[test]
fn each_queue_has_a_separate_kernel() {
    let text = "VULKAN T { x = 0; f = 0; }
        P0@sg 0, wg 0, qf 7  | P1@sg 0, wg 0, qf 3  | P2@sg 0, wg 1, qf 7  ;
        st.atom.dv.sc0 x, 1  | ld.atom.dv.sc0 r0, x | ld.atom.dv.sc0 r0, x ;";
    let families = |program: &Program| -> Vec<Vec<u32>> {
        let phases = program.phases.iter();
        phases.map(|phase| phase.kernels.iter().map(|part| part.queue).collect()).collect()
    };
    let merged = compile_program(&parse(text), &LAVAPIPE, Pipelines::Merged).unwrap();
    assert_eq!(thread_numbers(&merged), [[vec![0, 2], vec![1]]]);
    assert_eq!((families(&merged), merged.queues), (vec![vec![0, 1]], vec![0, 1]));
    let split = compile_program(&parse(text), &LAVAPIPE, Pipelines::Split).unwrap();
    assert_eq!(families(&split), [[0, 1, 0]]);
    let after = compile_program(
        &parse(&text.replace("f = 0; }", "f = 0; } { ssw 0 1; }")),
        &LAVAPIPE,
        Pipelines::Merged,
    );
    assert_eq!(families(&after.unwrap()), [[0], [1]]);
    // Queues of the same family have separate kernels.
    let text = text.replace("wg 1, qf 7", "wg 1, qf 7, q 3");
    let merged = compile_program(&parse(&text), &LAVAPIPE, Pipelines::Merged).unwrap();
    assert_eq!((families(&merged), merged.queues), (vec![vec![0, 1, 2]], vec![0, 1, 0]));
}

/// A thread that does not synchronize with its workgroup may run in another one.
#[test]
fn an_unneeded_common_workgroup_is_split() {
    let text = "VULKAN T { x = 0; } { ssw 0 1; } P0@sg 0, wg 0, qf 0 | P1@sg 0, wg 0, qf 0 ;
        st.sc0 x, 1 | visdevice ; avdevice | ld.sc0 r0, x ;";
    assert_eq!(
        thread_numbers(&compile_program(&parse(text), &LAVAPIPE, Pipelines::Merged).unwrap()),
        [[[0]], [[1]]]
    );
}
