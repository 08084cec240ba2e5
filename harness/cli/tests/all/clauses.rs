//! The matrix of clauses: valid, complete, and with existing tests and statements.

use std::collections::BTreeSet;

use crate::common::{Ran, assert_valid, schemas, vk_litmus};

#[test]
fn the_matrix_is_valid_and_complete() {
    // Judging the mutants of every model takes a minute or more: only in a soak.
    let soak = std::env::var_os("VK_LITMUS_SOAK").is_some();
    let mutants = soak.then_some("--mutants");
    let ran = Ran::run(vk_litmus(["clauses", "--format", "json", "--quiet"]).args(mutants));
    assert_eq!((ran.code, ran.stderr.as_str()), (0, ""));
    let matrix: serde_json::Value = serde_json::from_str(&ran.stdout).unwrap();
    for schema in schemas("clauses.schema.json", "clauses.schema.json") {
        assert_valid(&schema, &matrix);
    }
    let tests: BTreeSet<String> = litmus::corpus::tests()
        .into_iter()
        .chain(litmus::corpus::model_only_tests())
        .map(|entry| entry.id)
        .collect();
    let clauses = matrix["clauses"].as_array().unwrap();
    let count_of = |model: &str| clauses.iter().filter(|clause| clause["model"] == model).count();
    assert_eq!((count_of("vulkan"), count_of("hsa")), (243, 211));
    for clause in clauses {
        let encoded = clause["disposition"] == "encoded";
        assert_eq!(encoded, !clause["statements"].as_array().unwrap().is_empty(), "{clause:#}");
        assert_eq!(encoded, clause["why"].is_null(), "{clause:#}");
        for test in clause["tests"].as_array().unwrap() {
            assert!(tests.contains(test.as_str().unwrap()), "{clause:#}");
        }
    }
    let mutants = matrix["mutants"].as_array().unwrap();
    assert!(!soak || mutants.len() > 300, "{}", mutants.len());
    for mutant in mutants {
        let killed = mutant["status"] == "killed";
        assert_eq!(killed, mutant["by"].as_str().is_some_and(|by| tests.contains(by)), "{mutant:#}");
        let argued = mutant["status"] == "equivalent";
        assert_eq!(
            argued,
            mutant["argument"]["text"].as_str().is_some_and(|text| !text.is_empty()),
            "{mutant:#}"
        );
        assert_eq!(mutant["status"] == "unkilled", mutant["bound"].is_string(), "{mutant:#}");
        assert_ne!(mutant["status"], "alive", "{mutant:#}");
    }
}
