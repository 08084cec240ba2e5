//! Kernels with their answers: the first line of each module is the expected proof, and `variants.tsv` changes them.

use std::collections::BTreeSet;

use prove::{ProofOptions, prove};
use spirv_reader::{SpirvModule, read_module};

const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests");

/// Returns the answer for a module; by the rules of its source language if that is HLSL.
///
/// Its conditions are assumed in a second proof, which must print the same ones.
fn answer(module: SpirvModule) -> String {
    let by_language =
        module.by_language_rules(spirv_reader::HlslRules::default()).filter(SpirvModule::defines_collisions);
    let module = by_language.unwrap_or(module);
    let report = prove(&module, &ProofOptions::default(), None, None);
    if report.is_proved && !report.conditions.is_empty() {
        let assumed = vec![report.conditions.join(" and ")];
        let again = prove(&module, &ProofOptions { assumed, ..ProofOptions::default() }, None, None);
        assert!(again.is_proved, "{:?}: {:?}", report.conditions, again.unproved);
        let sorted = |conditions: &[String]| BTreeSet::from_iter(conditions.iter().cloned());
        assert_eq!(sorted(&again.conditions), sorted(&report.conditions));
    }
    let reasons: Vec<String> = report.unproved.iter().map(|one| one.reason.to_string()).collect();
    if !report.is_proved {
        return format!("not proved: {}", reasons.join("; "));
    }
    let list = |word: &str, parts: &[String], separator: &str| match parts {
        [] => String::new(),
        parts => format!(" {word} {}", parts.join(separator)),
    };
    let conditions = list("if", &report.conditions, " and ");
    let grid = report.grid.map(|count| count.map_or("*".to_owned(), |count| count.to_string())).join(",");
    format!("proved for {grid}{conditions}{}", list("assuming", &report.assumptions, "; "))
}

fn is_blessed() -> bool {
    std::env::var("VK_LITMUS_BLESS").is_ok()
}

#[test]
fn kernels_have_the_proofs_of_their_first_lines() {
    let mut files: Vec<_> =
        std::fs::read_dir(format!("{FOLDER}/kernels")).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    assert!(files.len() > 10);
    for file in files {
        let text = std::fs::read_to_string(&file).unwrap();
        let (first, rest) = text.split_once('\n').unwrap();
        let answer = format!("; {}", answer(read_module(rest.as_bytes()).unwrap()));
        if is_blessed() {
            std::fs::write(&file, format!("{answer}\n{rest}")).unwrap();
            continue;
        }
        assert_eq!(answer, first, "{}", file.display());
    }
}

#[test]
fn variants_of_kernels_have_their_answers() {
    let path = format!("{FOLDER}/variants.tsv");
    let table = std::fs::read_to_string(&path).unwrap();
    let (mut blessed, mut wrong) = (String::new(), Vec::new());
    for line in table.lines() {
        let columns: Vec<String> = line.split('\t').map(|column| column.replace("\\n", "\n")).collect();
        let [expected, kernel, changes @ ..] = columns.as_slice() else {
            blessed += &format!("{line}\n");
            continue;
        };
        let mut text = std::fs::read_to_string(format!("{FOLDER}/kernels/{kernel}.spvasm")).unwrap();
        for change in changes.chunks(2) {
            assert!(text.contains(&change[0]), "{line}");
            text = text.replace(&change[0], &change[1]);
        }
        let answer = answer(read_module(text.as_bytes()).unwrap());
        if answer != *expected {
            wrong.push(format!("{answer}, not {line}"));
        }
        blessed += &format!("{answer}\t{}\n", line.split_once('\t').unwrap().1);
    }
    if is_blessed() {
        std::fs::write(&path, blessed).unwrap();
        return;
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
