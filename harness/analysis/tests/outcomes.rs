//! Final buffer contents: from the model for few invocations, and from the walk if no result depends on the
//! schedule.
#![expect(clippy::unwrap_used, clippy::panic, reason = "tests")]

use analysis::dispatch::plan_dispatch;
use analysis::outcomes::{FinalContents, final_contents};
use entry_point::AnalysisOptions;
use model::{Budget, Model};
use vocabulary::Feature;

fn contents_of_file(path: &str, grid: u32, buffers: &[((u32, u32), &[u32])]) -> FinalContents {
    let path = format!("{}/{path}.spvasm", env!("CARGO_MANIFEST_DIR"));
    let module = entry_point::read_module(&std::fs::read(path).unwrap()).unwrap();
    let bytes = |words: &[u32]| words.iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<u8>>().into();
    let buffers = buffers.iter().map(|(at, words)| (*at, bytes(words))).collect();
    let options = AnalysisOptions { grid: Some([grid, 1, 1]), buffers, ..AnalysisOptions::default() };
    let dispatch = plan_dispatch(&module, &options).unwrap();
    let vulkan = Model::shipped("vulkan").unwrap().unwrap();
    final_contents(&module, &dispatch, &options, &vulkan, Budget::default(), &ToString::to_string)
}

/// Returns the allowed contents, and the number of those that sequential consistency forbids.
fn allowed_contents(finals: FinalContents) -> (Vec<Vec<u64>>, usize) {
    let FinalContents::Known { contents, .. } = finals else { panic!("{finals:?}") };
    let allowed: Vec<_> = contents.iter().filter(|(_, says)| says.is_allowed).collect();
    let weak = allowed.iter().filter(|(_, says)| says.is_weak).count();
    (allowed.into_iter().map(|(values, _)| values.clone()).collect(), weak)
}

const DISPATCH: &str = "../cli/tests/all/shaders/dispatch";

#[test]
fn few_invocations_are_enumerated() {
    let (contents, weak) = allowed_contents(contents_of_file("tests/shaders/lock-right", 2, &[]));
    assert_eq!((contents.len(), weak), (1, 0), "{contents:?}");
    assert!(contents[0].contains(&2), "{contents:?}");
    // Data and flag are always written; the other workgroup reads one of three or of four pairs.
    let (relaxed, weak) = allowed_contents(contents_of_file(&format!("{DISPATCH}/message-relaxed"), 2, &[]));
    assert_eq!((relaxed.len(), weak), (4, 1), "{relaxed:?}");
    let (ordered, weak) = allowed_contents(contents_of_file(&format!("{DISPATCH}/message"), 2, &[]));
    assert_eq!((ordered.len(), weak), (3, 0), "{ordered:?}");
    // Three invocations draw three tickets in any order.
    let (tickets, _) = allowed_contents(contents_of_file(&format!("{DISPATCH}/tickets"), 3, &[]));
    assert_eq!(tickets.len(), 6, "{tickets:?}");
}

#[test]
fn a_grid_without_an_order_has_one_content() {
    let words: Vec<u32> = (0..64).collect();
    let (contents, weak) =
        allowed_contents(contents_of_file(&format!("{DISPATCH}/reduction"), 1, &[((0, 0), &words)]));
    assert_eq!((contents, weak), (vec![vec![2016]], 0));
    // An atomic load reads the last value if every atomic update happens before it.
    let (contents, weak) = allowed_contents(contents_of_file(&format!("{DISPATCH}/shared-count"), 1, &[]));
    assert_eq!((contents, weak), (vec![vec![16]], 0));
}

/// Vectors that are carried by loops, recombined, passed to functions and returned.
#[test]
fn vector_components_are_separate() {
    let count = 32;
    let (contents, _) =
        allowed_contents(contents_of_file("tests/shaders/vectors", count, &[((0, 0), &[0; 32])]));
    let word = |id: u64| (5 * id + 8) * 1_000_000 + (3 * id + 5) * 1_000 + 2 * id + 3;
    assert_eq!(contents, [(0..count.into()).map(word).collect::<Vec<_>>()]);
}

#[test]
fn undefined_and_unknown_contents_have_a_reason() {
    let FinalContents::Undefined { reason: why, .. } = contents_of_file(&format!("{DISPATCH}/racy"), 2, &[])
    else {
        panic!()
    };
    assert!(why.starts_with("race: data race on `data.count`"), "{why}");
    let FinalContents::Unknown { reason: why, .. } =
        contents_of_file(&format!("{DISPATCH}/tickets"), 64, &[])
    else {
        panic!()
    };
    assert!(why.contains("16 invocations"), "{why}");
}

/// Results that may differ between devices are never judged.
#[test]
fn device_dependent_results_are_unknown() {
    for (name, what) in [("subgroup-size", "the subgroup size"), ("negative-remainder", "a signed remainder")]
    {
        let finals = contents_of_file(&format!("{DISPATCH}/{name}"), 1, &[]);
        let FinalContents::Unknown { reason: why, is_race_free: true } = finals else {
            panic!("{name}: {finals:?}")
        };
        assert!(why.contains(what), "{why}");
    }
    let finals = contents_of_file(&format!("{DISPATCH}/smallest-quotient"), 1, &[]);
    let FinalContents::Undefined { reason: why, .. } = finals else { panic!("{finals:?}") };
    assert!(why.contains("undefined"), "{why}");
}

/// If a dispatch changes nothing, it looks the same as one that was not executed.
#[test]
fn dispatches_without_an_effect_are_unknown() {
    let zeros = vec![0; 64];
    let finals = contents_of_file(&format!("{DISPATCH}/reduction"), 1, &[((0, 0), &zeros)]);
    let FinalContents::Unknown { reason: why, is_race_free: true } = finals else { panic!("{finals:?}") };
    assert!(why.contains("does not change its buffers"), "{why}");
}

/// A dispatch has names, constants and features, and the unchanged words of the file.
#[test]
fn a_dispatch_has_the_words_of_the_module() {
    let path = format!("{}/{DISPATCH}/reduction.spvasm", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read(path).unwrap();
    let module = entry_point::read_module(&text).unwrap();
    let of = plan_dispatch(&module, &AnalysisOptions::default()).unwrap();
    assert_eq!(of.words, spirv_reader::assemble_text(std::str::from_utf8(&text).unwrap()).unwrap().words);
    let buffers: Vec<_> =
        of.buffers.iter().map(|b| (b.set, b.binding, b.is_uniform, b.name.as_str(), b.bytes.len())).collect();
    assert_eq!(buffers, [(0, 0, false, "given", 65_536), (1, 2, false, "result", 4)]);
    assert_eq!((of.entry.as_str(), of.local_size, of.workgroup_bytes), ("main", [64, 1, 1], 256));
    assert!(
        of.has_loops
            && !of.uses_floats
            && of.required_features.is_empty()
            && of.unknown_capabilities.is_empty(),
        "{of:?}"
    );
    let names = entry_point::layout::element_names(
        &module,
        &AnalysisOptions::default(),
        &[(0, 0, 0, 12), (1, 2, 0, 0)],
    )
    .unwrap();
    assert_eq!(names, ["given.values[3]", "result.total"]);
}

/// A clustered rotation needs more features than a rotation of the whole subgroup, and so does an execution mode.
#[test]
fn rotations_and_execution_modes_require_their_features() {
    let needs = |mode: &str, cluster: &str| {
        let text = format!(
            "OpCapability Shader\nOpCapability GroupNonUniformRotateKHR\nOpMemoryModel Logical GLSL450\n\
             OpEntryPoint GLCompute %main \"main\"\nOpExecutionMode %main LocalSize 8 1 1\n{mode}%void = OpTypeVoid\n\
             %u32 = OpTypeInt 32 0\n%2 = OpConstant %u32 2\n%3 = OpConstant %u32 3\n%4 = OpConstant %u32 4\n\
             %function = OpTypeFunction %void\n%main = OpFunction %void None %function\n%entry = OpLabel\n\
             %turned = OpGroupNonUniformRotateKHR %u32 %3 %2 %2 {cluster}\nOpReturn\nOpFunctionEnd\n"
        );
        plan_dispatch(&entry_point::read_module(text.as_bytes()).unwrap(), &AnalysisOptions::default())
            .unwrap()
            .required_features
            .concat()
    };
    assert_eq!(needs("", ""), [Feature::ShaderSubgroupRotate]);
    for (mode, feature) in [
        ("SubgroupUniformControlFlowKHR", Feature::ShaderSubgroupUniformControlFlow),
        ("MaximallyReconvergesKHR", Feature::ShaderMaximalReconvergence),
    ] {
        assert!(needs(&format!("OpExecutionMode %main {mode}\n"), "").contains(&feature), "{mode}");
    }
    let mut clustered = needs("", "%4");
    clustered.sort_unstable();
    assert_eq!(clustered, [Feature::ShaderSubgroupRotate, Feature::ShaderSubgroupRotateClustered]);
}
