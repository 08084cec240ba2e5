//! Every corpus test parses in strict mode, has expectations, and has an equal printed form.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use std::fs;
use std::path::{Path, PathBuf};

use litmus::ParseOptions;

fn corpus() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus");
    let mut files: Vec<PathBuf> = fs::read_dir(folder)
        .unwrap()
        .map(|family| family.unwrap().path())
        .filter(|family| family.is_dir())
        .flat_map(|family| fs::read_dir(family).unwrap().map(|file| file.unwrap().path()))
        .collect();
    files.sort();
    files
}

fn read(path: &Path) -> litmus::Test {
    let text = fs::read_to_string(path).unwrap();
    litmus::parse_with(&text, path.to_str().unwrap(), ParseOptions { strict_metadata: true })
        .unwrap_or_else(|errors| panic!("{errors}: {:#?}", errors.messages()))
}

#[test]
fn every_test_parses_strictly_and_round_trips() {
    let files = corpus();
    assert!(files.len() >= 200, "{} files", files.len());
    for path in &files {
        assert_eq!(path.extension().unwrap(), "litmus", "{}", path.display());
        let test = read(path);
        let printed = litmus::print(&test);
        let again = litmus::parse(&printed, path.to_str().unwrap())
            .unwrap_or_else(|errors| panic!("{}: {errors}\n{printed}", path.display()));
        assert_eq!(test, again, "{}\n{printed}", path.display());
    }
}

#[test]
fn every_test_has_a_condition_an_expectation_and_clauses() {
    for path in corpus() {
        let (test, name) = (read(&path), path.display());
        assert!(test.question.is_some(), "{name}");
        let (model, prefix) = match test.dialect {
            litmus::Dialect::Hsa => ("hsa", "HSA-"),
            litmus::Dialect::Vulkan | litmus::Dialect::Khronos => ("vulkan", "VK-"),
        };
        let of_model = test.metadata.expectations.iter().filter(|expectation| expectation.model == model);
        assert_eq!(of_model.filter(|expectation| expectation.race.is_some()).count(), 1, "{name}");
        if test.dialect == litmus::Dialect::Hsa && litmus::lower_to_vulkan(&test).is_ok() {
            let lowered = |expectation: &&litmus::Expectation| expectation.model == "vulkan";
            assert_eq!(test.metadata.expectations.iter().filter(lowered).count(), 1, "{name}");
        }
        // The results of subgroup operations are not clauses of the memory model.
        let computes = test
            .threads
            .iter()
            .flat_map(|thread| &thread.instructions)
            .any(|instruction| matches!(instruction.kind, litmus::InstructionKind::Subgroup(_)));
        assert!(!test.metadata.clauses.is_empty() || computes, "{name}");
        assert!(test.metadata.clauses.iter().all(|clause| clause.starts_with(prefix)), "{name}");
        assert!(test.metadata.comments.is_empty(), "{name}: {:?}", test.metadata.comments);
    }
}
