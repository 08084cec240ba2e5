//! The grid walk against the model, which is exhaustive: both agree on random small kernels.
//!
//! The test also counts the racy kernels that 1, 10 and 100 schedules find. `VK_LITMUS_RANDOM_KERNELS` is the
//! number of kernels, or a range of seeds: `1-20000`.
#![expect(clippy::unwrap_used, clippy::panic, reason = "helpers of tests")]

use entry_point::{AnalysisOptions, FindingKind, Problem, Refusal};
use litmus::Race;
use model::{Budget, Model};
use symbolic::ModelQuery;
use walk::RaceVerdict;

use crate::derivation::{Derivation, Random};

const GRAMMAR: &str = include_str!("kernels.grammar");
/// The header of every kernel; `LOCAL` is the workgroup size, `MODEL` the memory model.
const HEADER: &str = include_str!("templates/grids.spvasm");

/// Returns a random kernel with its grid. Its synchronization is barriers, subgroups, split barriers, sections or relays.
fn random_kernel(seed: u64, synchronization: &str) -> (String, AnalysisOptions) {
    let mut random = Random::new(seed);
    let shapes = [(2, 1), (2, 2), (2, 2), (1, 2), (1, 3), (4, 1), (2, 3)];
    let (local, workgroups) = shapes[random.below(shapes.len())];
    let (model, capability) = match random.below(4) {
        0 => ("classic", ""),
        _ => ("vulkan", "OpCapability VulkanMemoryModel"),
    };
    let coherent = model == "classic" && random.below(2) == 0;
    let care = if random.below(3) > 0 { "careful" } else { "careless" };
    let coherent = if coherent { "OpMemberDecorate %block 0 Coherent" } else { "" };
    let mut text = HEADER.replace("CAPABILITY", capability).replace("LOCAL", &local.to_string());
    text = text.replace("MODEL", if model == "vulkan" { "Vulkan" } else { "GLSL450" });
    text = text.replace("COHERENT", coherent);
    let arguments = format!("{model} {synchronization} {care}");
    if synchronization == "sections" {
        // A few pixels and primitives, with one section.
        let shapes = [(1, 2), (1, 2), (1, 2), (1, 3), (2, 2)];
        let (pixels, primitives) = shapes[random.below(shapes.len())];
        let order = ["PixelInterlockOrderedEXT", "PixelInterlockUnorderedEXT"][random.below(2)];
        let modes = format!("OriginUpperLeft\nOpExecutionMode %main {order}");
        text = text.replace(&format!("LocalSize {local} 1 1"), &modes).replace("GLCompute", "Fragment");
        text = text.replace("LocalInvocationIndex", "PrimitiveId");
        text = text.replace("OpDecorate %group BuiltIn WorkgroupId\n", "");
        text += &Derivation::new(GRAMMAR, random).expand_kernel(&format!("fragments {arguments}"));
        let grid = Some([pixels, 1, primitives]);
        return (text, AnalysisOptions { grid, ..AnalysisOptions::default() });
    }
    if synchronization == "relays" {
        let text = text.replace(&format!("LocalSize {local} 1 1"), "LocalSize 2 1 1");
        let subgroup_size = Some(1 + random.below(2) as u32);
        let kernel = Derivation::new(GRAMMAR, random).expand_kernel(&format!("relays {arguments}"));
        let options = AnalysisOptions { grid: Some([2, 1, 1]), subgroup_size, ..AnalysisOptions::default() };
        return (text + &kernel, options);
    }
    let subgroup_size = match synchronization {
        "subgroups" => Some(2 << random.below(2)),
        _ => Some(1 << random.below(if local > 1 { 2 } else { 1 })),
    };
    let positions = if local == 1 { "1" } else { "many" };
    text += &Derivation::new(GRAMMAR, random).expand_kernel(&format!("workgroups {arguments} {positions}"));
    (text, AnalysisOptions { grid: Some([workgroups, 1, 1]), subgroup_size, ..AnalysisOptions::default() })
}

/// Returns the options in the first line of a kernel: `; grid X,Y,Z subgroup N`.
fn options_of(text: &str) -> AnalysisOptions {
    let words: Vec<&str> = text.lines().next().unwrap().split([' ', ',']).collect();
    let number = |at: usize| words[at].parse().ok();
    let grid = Some([2, 3, 4].map(|at| number(at).unwrap()));
    AnalysisOptions { grid, subgroup_size: number(6), ..AnalysisOptions::default() }
}

/// Returns the kernels of a folder of these tests whose names begin with a word.
fn kernels_of(folder: &str, start: &str) -> Vec<String> {
    let folder = format!("{}/tests/{folder}", env!("CARGO_MANIFEST_DIR"));
    let mut files: Vec<_> = std::fs::read_dir(folder).unwrap().map(|file| file.unwrap().path()).collect();
    files.retain(|file| file.file_name().unwrap().to_str().unwrap().starts_with(start));
    files.sort();
    files.iter().map(|file| std::fs::read_to_string(file).unwrap()).collect()
}

/// Returns true if a walk reports a race.
fn has_race(report: &walk::GridReport) -> bool {
    let race = FindingKind::is_race;
    report.findings.iter().any(|found| race(found.kind))
}

/// Returns true if a walk reports an uninitialized value.
///
/// Later results are undefined: the walk continues with 0, the model tries 0 and 1.
fn has_uninitialized_read(report: &walk::GridReport) -> bool {
    report.findings.iter().any(|found| found.kind == FindingKind::UninitialisedRead)
}

/// Returns a random kernel of phases between workgroup barriers, and true if two accesses of a phase conflict.
///
/// A fence if `is_fine`: other orders than those of the barriers are possible then.
fn random_phases(random: &mut Random, is_fine: bool) -> (String, bool) {
    let mut text = HEADER.replace("CAPABILITY", "").replace("MODEL", "GLSL450");
    text = text.replace("LOCAL", "4").replace("COHERENT", "");
    text += "%main = OpFunction %void None %function\n%entry = OpLabel\n%me = OpLoad %u32 %id\n\
             %at0 = OpAccessChain %to_shared %shared %0\n%at1 = OpAccessChain %to_shared %shared %1\n";
    text += if is_fine { "OpMemoryBarrier %2 %264\n" } else { "" };
    let mut is_racy = false;
    let mut accesses: Vec<(usize, usize, bool)> = Vec::new();
    for number in 0..12 {
        // Most phases have one access, so that most of the history is ordered.
        if random.below(4) > 0 {
            text += "OpControlBarrier %2 %2 %264\n";
            accesses.clear();
        }
        let (lane, place, writes) = (random.below(4), random.below(2), random.below(3) > 0);
        is_racy |=
            accesses.iter().any(|(other, at, stores)| *other != lane && *at == place && (writes || *stores));
        accesses.push((lane, place, writes));
        let access = match writes {
            true => format!("OpStore %at{place} %1"),
            false => format!("%l{number} = OpLoad %u32 %at{place}"),
        };
        text += &format!(
            "%c{number} = OpIEqual %bool %me %{lane}\nOpSelectionMerge %m{number} None\n\
             OpBranchConditional %c{number} %t{number} %m{number}\n%t{number} = OpLabel\n{access}\n\
             OpBranch %m{number}\n%m{number} = OpLabel\n"
        );
    }
    (text + "OpReturn\nOpFunctionEnd\n", is_racy)
}

/// Regression: of three writes of a word in three phases, the last one was not recorded.
#[test]
fn races_within_a_phase_are_found_after_many_phases() {
    let options = AnalysisOptions { grid: Some([1, 1, 1]), ..AnalysisOptions::default() };
    for seed in 1..=100 {
        for is_fine in [false, true] {
            let (text, is_racy) = random_phases(&mut Random::new(seed), is_fine);
            let module = entry_point::read_module(text.as_bytes()).unwrap();
            let walked = walk::analyze_grid(&module, &options).unwrap();
            assert_eq!(has_race(&walked), is_racy, "seed {seed}: {:?}\n{text}", walked.findings);
        }
    }
}

#[test]
fn walks_agree_with_the_model() {
    compare_with_model("barriers");
}

#[test]
fn walks_agree_with_the_model_on_split_barriers() {
    compare_with_model("split");
}

#[test]
fn walks_agree_with_the_model_on_interlocked_sections() {
    compare_with_model("sections");
}

/// A subgroup barrier that some invocations skip orders the others.
#[test]
fn walks_agree_with_the_model_on_subgroup_barriers() {
    compare_with_model("subgroups");
}

/// Regression: a barrier did not pass on to the others what one of its invocations had acquired by it.
#[test]
fn walks_agree_with_the_model_on_relays() {
    compare_with_model("relays");
}

/// Bound on the shadow memory per accessed byte, also with locks and in sparsely accessed buffers.
#[test]
fn shadow_memory_has_at_most_32_bytes_per_byte() {
    let shaders = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/shaders");
    let read = |path: std::path::PathBuf| entry_point::read_module(&std::fs::read(path).unwrap()).unwrap();
    let lock = AnalysisOptions { grid: Some([256, 1, 1]), ..AnalysisOptions::default() };
    let mut all = vec![("lock-right", read(shaders.join("lock-right.spvasm")), lock)];
    if let Some(corpora) = std::env::var_os("VK_LITMUS_CORPORA") {
        let folder = std::path::PathBuf::from(corpora).join("kernels/granite_binning");
        let case = std::fs::read_to_string(folder.join("case.toml")).unwrap();
        let case = entry_point::inputs::parse_case_file(&case, &|name| Err(name.to_owned())).unwrap();
        all.push(("granite_binning", read(folder.join("k.spv")), case.options));
    }
    for (name, module, options) in all {
        let walked = walk::analyze_grid(&module, &AnalysisOptions { schedules: Some(1), ..options }).unwrap();
        let (kept, accessed) = (walked.shadow_bytes, walked.accessed_bytes);
        assert!(accessed > 0 && kept <= 32 * accessed, "{name}: {kept} of {accessed}");
    }
}

/// The kernels of `model-only` race only if a read returns the value of a later write; a replacement in their second line
/// removes the cause and the race.
///
/// In five of them the read decides whether the write is executed, in a cycle of invocations: `if (x) y = 1`
/// and `if (y) x = 1`. The specification does not exclude that (VK-AC-06), but no known implementation does
/// it; if the kernels store zeros, they do not race. In 17531, 18237 and 37502, a control barrier without matching
/// semantics lies between the read and another invocation's write. It does not order them (VK-SW-09,
/// VK-SW-10), so a device may execute the read late. In 17531 the barrier orders the accesses that depend on
/// the read, so only value speculation leads to the race. A walk reads only earlier writes.
#[test]
fn model_only_races_need_a_read_of_a_later_write() {
    let model = Model::shipped("vulkan").unwrap().unwrap();
    let query = ModelQuery {
        budget: Budget::default().with_step_limit(30_000),
        decide_race: true,
        decide_question: false,
        locate_race: false,
    };
    for text in kernels_of("model-only", "") {
        // Two invocations have the same race as four, and the model is faster.
        let (options, change) = (options_of(&text), text.lines().nth(1).unwrap().to_owned());
        let text = text.replacen(&change, "", 1);
        let (from, to) = change.trim_start_matches("; ").split_once(" => ").unwrap();
        assert_eq!(text.matches(from).count(), 1, "{change}");
        for (text, expected) in [(text.clone(), Race::Racy), (text.replace(from, to), Race::Free)] {
            let module = entry_point::read_module(text.as_bytes()).unwrap();
            let answer =
                symbolic::answer_with_model(&symbolic::lift(&module, &options).unwrap(), &model, &query)
                    .unwrap();
            assert_eq!(answer.race, expected, "{text}");
            let walked =
                walk::analyze_grid(&module, &AnalysisOptions { schedules: Some(100), ..options.clone() })
                    .unwrap();
            assert!(!has_race(&walked) && walked.is_schedule_dependent, "{text}");
        }
    }
}

fn compare_with_model(synchronization: &str) {
    let model = Model::shipped("vulkan").unwrap().unwrap();
    // A count or a range. Relays are small.
    let default = if synchronization == "relays" { "100" } else { "30" };
    let requested = std::env::var("VK_LITMUS_RANDOM_KERNELS").unwrap_or_else(|_| default.to_owned());
    let (first, last) = requested.split_once('-').unwrap_or(("1", &requested));
    let (first, last): (u64, u64) = (first.parse().unwrap(), last.parse().unwrap());
    // Kernels on which both differed: a comparison that stores only in one schedule; a read of a value published in
    // other storage classes, or after an atomic of the same location; a fence that makes writes visible that a control
    // barrier without visibility ordered; barriers in a loop after an atomic of one invocation.
    let known = kernels_of("disagreements", synchronization).into_iter().map(|text| {
        let options = options_of(&text);
        (0, text, options)
    });
    let random = (first..=last).map(|seed| {
        let (text, options) = random_kernel(seed, synchronization);
        (seed, text, options)
    });
    let kernels: Vec<(u64, String, AnalysisOptions)> = random.chain(known).collect();
    let mut count = kernels.len();
    let (mut racy, mut free, mut open, mut missed, mut uninitialized_only) = (0, 0, 0, 0, 0);
    let schedules = [1, 10, 100];
    let (mut found_by, mut never) = ([0; 3], Vec::new());
    for (seed, text, options) in kernels {
        let body = text.split_once("%groups = OpLoad").map_or("", |(_, body)| body);
        let module =
            entry_point::read_module(text.as_bytes()).unwrap_or_else(|error| panic!("{error}\n{text}"));
        let walked = walk::analyze_grid(&module, &options)
            .unwrap_or_else(|error| panic!("seed {seed}: {error}\n{text}"));
        let lifted = match symbolic::lift(&module, &options) {
            Ok(lifted) => lifted,
            // Too many executions of one invocation.
            Err(Refusal { what: Problem::Budget { .. } | Problem::Exhausted { .. }, .. }) => {
                open += 1;
                continue;
            }
            // The lifter refuses subgroup barriers that depend on a loaded value, so only the walk has an
            // answer.
            Err(Refusal { what: Problem::Unsupported(_), .. }) if synchronization == "subgroups" => {
                count -= 1;
                continue;
            }
            Err(error) => panic!("seed {seed}: {error}\n{text}"),
        };
        let budget = Budget::default().with_step_limit(30_000);
        let query = ModelQuery { budget, decide_race: true, decide_question: false, locate_race: false };
        // Some tests exceed the engine's bounds.
        let Ok(answer) = symbolic::answer_with_model(&lifted, &model, &query) else {
            open += 1;
            continue;
        };
        let found = has_race(&walked);
        match answer.race {
            Race::Racy => {
                racy += 1;
                // Schedule-dependent races may be missed.
                let is_reported = found || has_uninitialized_read(&walked);
                uninitialized_only += usize::from(is_reported && !found);
                missed += usize::from(!is_reported);
                assert!(
                    is_reported || walked.is_schedule_dependent,
                    "seed {seed}: missed\n{options:?}\n{body}"
                );
                // Every schedule count includes the smaller ones.
                let mut seen = false;
                for (found_count, schedules) in found_by.iter_mut().zip(schedules) {
                    let limited_options = AnalysisOptions { schedules: Some(schedules), ..options.clone() };
                    let reports_defect =
                        |report: walk::GridReport| has_race(&report) || has_uninitialized_read(&report);
                    seen = seen || walk::analyze_grid(&module, &limited_options).is_ok_and(reports_defect);
                    *found_count += usize::from(seen);
                }
                if !seen {
                    never.push(seed);
                    println!("seed {seed}: the model alone finds it\n{options:?}\n{text}");
                }
            }
            Race::Free => {
                free += 1;
                let words: Vec<&String> = walked.findings.iter().map(|found| &found.message).collect();
                assert!(!found, "seed {seed}: {words:#?}\n{options:?}\n{body}");
                assert_ne!(walked.verdict, RaceVerdict::Undecided);
            }
            Race::Unknown => open += 1,
        }
    }
    let counts = schedules.iter().zip(found_by).map(|(n, found)| format!("{found} by {n}"));
    let shares = counts.collect::<Vec<_>>().join(", ");
    println!(
        "{racy} racy ({uninitialized_only} reported as an uninitialized read only), {free} free, {open} open; of the racy {missed} missed, found \
         {shares}; never: {never:?}"
    );
    assert!(racy > count / 10 && free > count / 20, "{racy} {free}");
    assert!(open * 10 <= count, "{open} of {count} open");
    assert!(missed * 50 <= racy, "{missed} of {racy} missed");
}
