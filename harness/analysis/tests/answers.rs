//! Kernels in GLSL as compiled by glslang, with the expected answers. The sources are in the same folder.
#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use std::path::{Path, PathBuf};
use std::process::Command;

use entry_point::AnalysisOptions;
use model::{Budget, Model};
use repair::ChangeKind;
use spirv_reader::SpirvModule;
use spirv_reader::annotations::parse_formula;
use symbolic::ModelQuery;

/// Kernels with their grids and assertions.
const KERNELS: [(&str, u32, Option<&str>); 8] = [
    ("lock", 2, Some("data.count == 2")),
    ("lock-right", 2, Some("data.count == 2")),
    ("message", 2, Some("result.seen == 0 or result.seen == 42")),
    ("message-not-coherent", 2, None),
    ("reduce", 1, None),
    ("reduce-right", 1, Some("data.result[0] == 0")),
    ("divergent", 1, None),
    ("reduce-divergent", 1, None),
];

fn tests_folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/shaders")
}

fn answer_text(bytes: &[u8], workgroups: u32, assertion: Option<&str>) -> String {
    let module = entry_point::read_module(bytes).unwrap();
    let assertion = assertion.map(|text| parse_formula(text).unwrap());
    let options = AnalysisOptions { grid: Some([workgroups, 1, 1]), assertion, ..AnalysisOptions::default() };
    let lifted = symbolic::lift(&module, &options).unwrap();
    // The printed form of a lifted test parses.
    for case in &lifted.cases {
        let printed = litmus::print(&case.test);
        assert_eq!(litmus::print(&litmus::parse(&printed, "lifted").unwrap()), printed);
    }
    let model = Model::shipped("vulkan").unwrap().unwrap();
    let query = ModelQuery {
        budget: Budget::from_steps(2_000_000),
        decide_race: true,
        decide_question: true,
        locate_race: true,
    };
    let answer = symbolic::answer_with_model(&lifted, &model, &query).unwrap();
    let mut text = format!("{:?}", answer.race);
    if let Some(question) = &lifted.question {
        text += &format!("\n{question}: {:?}", answer.holds);
    }
    let line = |spot: &entry_point::Spot| {
        module.source_line(spot.line).map_or(String::new(), |line| format!("{}:{}", line.file, line.line))
    };
    if let Some(found) = &answer.race_spot {
        text += &format!("\n{}", found.describe(&lifted.invocations));
        found.at.iter().for_each(|spot| text += &format!("\n  {}", line(spot)));
    }
    if answer.race == litmus::Race::Racy {
        let missing_sync = repair::find_missing_sync(&lifted, &model, &query).unwrap();
        text += &format!("\nwhy: {}", missing_sync.description());
        let found = answer.race_spot.as_ref();
        let options = AnalysisOptions { keep_all: true, ..options.clone() };
        let with_all_accesses = symbolic::lift(&module, &options).unwrap();
        let fix = repair::fix_races(&module, &options, &with_all_accesses, &model, found, &query).unwrap();
        for change in &fix.changes {
            let source = module.source_line(change.line).unwrap();
            text += &format!(
                "\nfix: {}:{}: {}",
                source.file,
                source.line,
                describe_change(&module, &change.kind)
            );
        }
    }
    for finding in &lifted.findings {
        text += &format!("\n{:?}: {} ({})", finding.kind(), finding.message, line(&finding.at[0]));
    }
    text
}

/// Describes a change without the ids and word offsets of a module.
fn describe_change(module: &SpirvModule, change: &ChangeKind) -> String {
    match change {
        ChangeKind::InsertBarrier { side, anchor, scope, class, .. } => {
            format!("{scope:?} barrier for {class:?} {side:?} {anchor:?}")
        }
        ChangeKind::MakeCoherent { root, .. } => {
            format!("coherent {}", entry_point::accessed_variable::variable_label(module, *root))
        }
        ChangeKind::StrengthenOrder { anchor, more, .. } => format!("{anchor:?} {more:?}"),
        other => format!("{other:?}"),
    }
}

#[test]
fn answers_for_shaders() {
    let all: Vec<String> = KERNELS
        .iter()
        .map(|(name, workgroups, assertion)| {
            let bytes = std::fs::read(tests_folder().join(format!("{name}.spvasm"))).unwrap();
            format!("{name}: {}", answer_text(&bytes, *workgroups, *assertion))
        })
        .collect();
    insta::assert_snapshot!(all.join("\n\n"));
}

/// The modules of the compiler, raw and optimized, have the same answers as the committed text.
#[test]
fn compilers_and_optimizers_do_not_change_answers() {
    if Command::new("glslangValidator").arg("--version").output().is_err() {
        println!("skipped 1: no glslangValidator");
        return;
    }
    let out = std::env::temp_dir().join(format!("vk-litmus-analysis-{}", std::process::id()));
    std::fs::create_dir_all(&out).unwrap();
    for (name, workgroups, assertion) in KERNELS {
        let committed = std::fs::read(tests_folder().join(format!("{name}.spvasm"))).unwrap();
        let expected = answer_text(&committed, workgroups, assertion);
        for flags in [&["-g"][..], &["-g", "-Os"]] {
            let path = out.join("kernel.spv");
            let status = Command::new("glslangValidator")
                .current_dir(tests_folder())
                .args(["-V", "--target-env", "vulkan1.2"])
                .args(flags)
                .arg("-o")
                .arg(&path)
                .arg(format!("{name}.comp"))
                .output()
                .unwrap();
            assert!(status.status.success(), "{status:?}");
            let binary = std::fs::read(&path).unwrap();
            let answer = answer_text(&binary, workgroups, assertion);
            // A fix names instructions, and an optimizer leaves others.
            let compared = |text: &str| match flags.len() {
                1 => text.to_owned(),
                _ => text.split("\nfix: ").next().unwrap_or_default().to_owned(),
            };
            assert_eq!(compared(&answer), compared(&expected), "{name} {flags:?}");
        }
    }
    std::fs::remove_dir_all(&out).unwrap();
}
