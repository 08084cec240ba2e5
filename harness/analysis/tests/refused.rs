//! A malformed or unsupported module gives a diagnostic with a position, within bounds on memory and time.

use entry_point::{AnalysisOptions, Problem, Refusal};

/// Returns a kernel of one invocation with the given declarations and body.
fn kernel_text(declarations: &str, body: &str) -> String {
    let template = include_str!("templates/refused.spvasm");
    template.replace("; DECLARATIONS", declarations).replace("; BODY", body)
}

fn lift_text(text: &str) -> Result<symbolic::Lifted, Refusal> {
    entry_point::read_module(text.as_bytes())
        .and_then(|module| symbolic::lift(&module, &AnalysisOptions::default()))
}

fn refusal_message(declarations: &str, body: &str) -> String {
    let mut text = kernel_text(declarations, body);
    match body {
        "OpNop" => text = text.replace("LocalSize 2 1 1", "LocalSize 64 64 1"),
        _ if declarations.contains("%bytes") => {
            text = text.replace(
                "%data Binding 0",
                "%data Binding 0\nOpDecorate %bytes DescriptorSet 0\nOpDecorate %bytes Binding 0",
            );
        }
        _ => {}
    }
    match lift_text(&text) {
        Ok(_) => "lifted".to_owned(),
        Err(refusal) => refusal.to_string(),
    }
}

#[test]
fn refusals_have_a_reason_and_a_position() {
    let refusal_line = |case: &str| {
        let (name, kernel) = case.split_once('\n')?;
        let (declarations, body) = kernel.split_once(";\n")?;
        Some(format!(
            "{name}: {}",
            refusal_message(declarations.strip_suffix('\n').unwrap_or_default(), body.trim_end())
        ))
    };
    let cases = include_str!("templates/refused-kernels.spvasm").split("\n\n; ").skip(1);
    let all: Vec<String> = cases.filter_map(refusal_line).collect();
    insta::assert_snapshot!(all.join("\n"));
}

#[test]
fn kernels_without_faults_are_lifted() {
    let lifted = lift_text(&kernel_text("", "OpStore %mine %1")).unwrap();
    assert_eq!(lifted.invocations.len(), 2);
    // Two invocations access two elements, so no location is shared.
    assert!(lifted.cases[0].test.locations.is_empty());
    let lifted = self::lift_text(&kernel_text("", "OpStore %first %me")).unwrap();
    insta::assert_snapshot!(litmus::print(&lifted.cases[0].test));
}

fn encode_module(instructions: &[&[u32]]) -> Vec<u8> {
    let mut words = vec![0x0723_0203, 0x0001_0600, 0, 100, 0];
    for instruction in instructions {
        words.push((instruction.len() as u32) << 16 | instruction[0]);
        words.extend(&instruction[1..]);
    }
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

fn error_message(bytes: &[u8]) -> String {
    match entry_point::read_module(bytes)
        .and_then(|module| symbolic::lift(&module, &AnalysisOptions::default()))
    {
        Ok(_) => "lifted".to_owned(),
        Err(refusal) => refusal.to_string(),
    }
}

#[test]
fn hostile_modules_end_in_a_diagnostic() {
    let mut all = vec![
        error_message(&[]),
        error_message(&[0x03, 0x02, 0x23, 0x07, 1]),
        error_message(&encode_module(&[])),
        // A word count of zero, and one beyond the end.
        error_message(&[encode_module(&[]), vec![0, 0, 0, 0]].concat()),
        error_message(&[encode_module(&[]), vec![17, 0, 9, 0]].concat()),
        // A structure and an array that contain themselves.
        error_message(&encode_module(&[&[30, 1, 1]])),
        error_message(&encode_module(&[&[28, 1, 1, 2]])),
        // A vector of four billion elements.
        error_message(&encode_module(&[&[21, 1, 32, 0], &[23, 2, 1, 4_000_000_000]])),
    ];
    // Structures of doubling size: 2^60 bytes.
    let mut deep: Vec<Vec<u32>> = vec![vec![21, 1, 32, 0]];
    deep.extend((2..62).map(|id| vec![30, id, id - 1, id - 1]));
    let deep: Vec<&[u32]> = deep.iter().map(Vec::as_slice).collect();
    all.push(error_message(&encode_module(&deep)));
    // Types nested a hundred deep.
    let mut chain: Vec<Vec<u32>> = vec![vec![21, 1, 32, 0]];
    chain.extend((2..100).map(|id| vec![30, id, id - 1]));
    let chain: Vec<&[u32]> = chain.iter().map(Vec::as_slice).collect();
    all.push(error_message(&encode_module(&chain)));
    insta::assert_snapshot!(all.join("\n"));
}

#[test]
fn large_and_endless_kernels_stay_within_bounds() {
    let mut text = kernel_text("", "");
    let many: String = (0..300_000).map(|index| format!("%x{index} = OpCopyObject %u32 %me\n")).collect();
    text = text.replace("OpReturn", &format!("{many}OpReturn"));
    assert!(lift_text(&text).is_ok());
    let endless = kernel_text(
        "",
        "OpBranch %head
%head = OpLabel
%i = OpPhi %u32 %0 %entry %next %head
%next = OpIAdd %u32 %i %1
OpLoopMerge %done %head None
OpBranch %head
%done = OpLabel",
    );
    let refused = lift_text(&endless).unwrap_err();
    assert!(matches!(refused.what, Problem::Exhausted { what: "steps of an invocation", .. }), "{refused}");
    let huge = kernel_text(
        "%4096 = OpConstant %u32 4000000000
%large = OpTypeArray %u32 %4096
%to_large = OpTypePointer Private %large
%private = OpVariable %to_large Private",
        "%all = OpLoad %large %private",
    );
    let refused = lift_text(&huge).unwrap_err();
    assert!(matches!(refused.what, Problem::Budget { what: "members of a value", .. }), "{refused}");
}

/// Random words after a header, and a kernel with random words: no panic.
#[test]
fn random_words_cause_no_panic() {
    let assembled = spirv_reader::assemble_text(&kernel_text("", "OpStore %mine %1")).unwrap().words;
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut random = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    let mut read = 0;
    for _ in 0..250 {
        let mut words = assembled.clone();
        for _ in 0..=random() % 3 {
            let at = 5 + random() as usize % (words.len() - 5);
            words[at] = match random() % 3 {
                0 => random() as u32,
                1 => random() as u32 % 80,
                _ => words[at] ^ 1 << (random() % 32),
            };
        }
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        let module = entry_point::read_module(&bytes);
        read += usize::from(module.is_ok());
        if let Ok(module) = module {
            let _ = symbolic::lift(&module, &AnalysisOptions::default());
            let _ = walk::analyze_grid(&module, &AnalysisOptions::default());
        }
    }
    assert!(read > 30, "{read}");
    // Text with random characters.
    let text = kernel_text("", "OpStore %mine %1");
    for _ in 0..2_000 {
        let mut bytes = text.clone().into_bytes();
        for _ in 0..=random() % 3 {
            let at = random() as usize % bytes.len();
            bytes[at] = match random() % 3 {
                0 => random() as u8,
                1 => b"%=\"; \n0-!|"[random() as usize % 10],
                _ => bytes[random() as usize % text.len()],
            };
        }
        if let Ok(module) = entry_point::read_module(&bytes) {
            let _ = symbolic::lift(&module, &AnalysisOptions::default());
        }
    }
}

#[test]
fn classic_modules_are_read_as_the_vulkan_model() {
    let coherent = kernel_text("", "OpStore %first %me").replace("Logical Vulkan", "Logical GLSL450");
    let lifted = self::lift_text(&coherent).unwrap();
    assert_eq!(lifted.notes.len(), 1);
    let plain = litmus::print(&lifted.cases[0].test);
    assert!(plain.contains("st.sc0 data_0, 1"), "{plain}");
    let coherent = coherent
        .replace("OpDecorate %data Binding 0", "OpDecorate %data Binding 0\nOpDecorate %data Coherent");
    let made = litmus::print(&self::lift_text(&coherent).unwrap().cases[0].test);
    assert!(made.contains("st.av.qf.sc0 data_0, 1"), "{made}");
}

/// A fragment executes each end of its section once. The lifter and the walk report violations.
#[test]
fn sections_are_executed_once() {
    let found = |mode: &str, body: &str| {
        let text = kernel_text("", body)
            .replace("GLCompute", "Fragment")
            .replace("LocalInvocationIndex", "PrimitiveId");
        let module = entry_point::read_module(text.replace("LocalSize 2 1 1", mode).as_bytes()).unwrap();
        let options = AnalysisOptions { grid: Some([1, 1, 2]), ..AnalysisOptions::default() };
        let lifted = symbolic::lift(&module, &options).map(|lifted| !lifted.findings.is_empty());
        let walked = walk::analyze_grid(&module, &options).map(|report| !report.findings.is_empty());
        assert_eq!(lifted, walked, "{body}");
        lifted.map_err(|refusal| refusal.to_string())
    };
    let (begin, end) = ("OpBeginInvocationInterlockEXT\n", "OpEndInvocationInterlockEXT\n");
    for mode in ["PixelInterlockOrderedEXT", "SampleInterlockUnorderedEXT", "ShadingRateInterlockOrderedEXT"]
    {
        assert_eq!(found(mode, &[begin, end].concat()), Ok(false));
    }
    let mode = "PixelInterlockUnorderedEXT";
    for wrong in [&[end][..], &[begin, begin, end], &[begin, end, end], &[begin, end, begin, end]] {
        assert_eq!(found(mode, &wrong.concat()), Ok(true), "{wrong:?}");
    }
    let refused = found("OriginUpperLeft", &[begin, end].concat());
    assert!(refused.is_err_and(|why| why.contains("without an interlock execution mode")));
}

/// An unknown instruction without a result is refused, since it may have a side effect.
#[test]
fn walks_refuse_unknown_side_effects() {
    let walked = |body: &str| {
        let module = entry_point::read_module(kernel_text("", body).as_bytes()).unwrap();
        walk::analyze_grid(&module, &AnalysisOptions::default()).map(|report| report.verdict)
    };
    assert_eq!(walked("OpNop"), Ok(walk::RaceVerdict::Clean));
    for op in ["OpBeginInvocationInterlockEXT", "OpEmitVertex", "OpSetMeshOutputsEXT %1 %1"] {
        let refused = walked(op).map_err(|refusal| refusal.to_string());
        let name = op.split(' ').next().unwrap();
        assert!(refused.as_ref().is_err_and(|why| why.contains(name)), "{op}: {refused:?}");
    }
}
