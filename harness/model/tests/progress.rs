//! Termination under progress models: the rows of other tools, the corpus, and tests that distinguish the
//! definitions.

use std::path::Path;

use model::Model;
use model::progress::{
    Fairness, PROGRESS_GUARANTEES, ProgressLimits, ProgressModel, check_termination, check_termination_under,
};

/// Rows of Dartagnan's liveness classes: path, `liveness-MODEL`, `terminates`, 1 or 0.
#[test]
fn liveness_rows_of_dartagnan_are_reproduced() {
    let Some(corpora) = std::env::var_os("VK_LITMUS_CORPORA") else {
        println!("skipped: VK_LITMUS_CORPORA is not set");
        return;
    };
    let vulkan = Model::shipped("vulkan").unwrap().unwrap();
    let folder = Path::new(&corpora).join("dat3m");
    let mut reader = csv::Reader::from_path(folder.join("liveness.csv")).unwrap();
    let (mut rows, mut wrong) = (0, Vec::new());
    for row in reader.records() {
        let row = row.unwrap();
        let text = std::fs::read_to_string(folder.join(&row[0])).unwrap();
        let test = litmus::parse(&text, &row[0]).unwrap();
        let name = row[1].strip_prefix("liveness-").unwrap().to_lowercase().replace('_', "-");
        let model: ProgressModel = name.parse().unwrap();
        let answer =
            check_termination(&test, &vulkan, &model, Fairness::Weak, &ProgressLimits::default()).unwrap();
        rows += 1;
        if answer.terminates != Some(&row[3] == "1") {
            wrong.push(format!("{} under {name}: {answer:?}", &row[0]));
        }
    }
    println!("{rows} rows");
    assert!(rows > 900, "{rows} rows");
    assert!(wrong.is_empty(), "{} of {rows}:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn corpus_tests_state_their_termination() {
    let vulkan = Model::shipped("vulkan").unwrap().unwrap();
    let models: Vec<ProgressModel> =
        PROGRESS_GUARANTEES.iter().map(|(_, promise)| ProgressModel::uniform(*promise)).collect();
    let mut wrong = Vec::new();
    let entries = litmus::corpus::progress_tests();
    assert!(entries.len() > 30);
    for entry in entries {
        let test = litmus::parse_with(entry.text, &entry.id, litmus::ParseOptions { strict_metadata: true })
            .unwrap();
        for fairness in [Fairness::Weak, Fairness::Strong] {
            let answers =
                check_termination_under(&test, &vulkan, &models, fairness, &ProgressLimits::default())
                    .unwrap();
            let ends: Vec<&str> = models
                .iter()
                .zip(&PROGRESS_GUARANTEES)
                .zip(&answers)
                .filter(|(_, answer)| answer.terminates == Some(true))
                .map(|((_, (name, _)), _)| *name)
                .collect();
            let expected = test.metadata.terminating_models(fairness == Fairness::Strong).unwrap();
            if ends != expected {
                wrong.push(format!("{}|{}|{}", entry.id, fairness.name(), ends.join(" ")));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn unsupported_termination_queries_are_refused() {
    let vulkan = Model::shipped("vulkan").unwrap().unwrap();
    let text = "VULKAN t\n{ x = 0; }\nP0@sg 0, wg 0, qf 0 ;\ncbar.acq_rel.wg.semsc0 r0 ;\nexists (x == 0)";
    let test = litmus::parse(text, "t").unwrap();
    let fair = ProgressModel::uniform(PROGRESS_GUARANTEES[0].1);
    let error =
        check_termination(&test, &vulkan, &fair, Fairness::Weak, &ProgressLimits::default()).unwrap_err();
    assert!(error.to_string().contains("`r0` of a control barrier is computed"), "{error}");
}
