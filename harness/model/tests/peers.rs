//! The published verdicts of Dartagnan and Khronos for their tests, under the models that reproduce them.
#![expect(clippy::unwrap_used, clippy::panic, reason = "tests")]

use std::collections::BTreeMap;
use std::path::PathBuf;

use litmus::{Prediction, QuestionKind, Race, Test};
use model::{Model, PredictError, PredictOptions, answer_queries, predict};

/// One row of `dat3m/verdicts.csv`.
struct PeerVerdict {
    path: String,
    check: String,
    expected: bool,
}

fn corpora() -> Option<PathBuf> {
    std::env::var_os("VK_LITMUS_CORPORA").map(PathBuf::from)
}

fn rows() -> Option<(PathBuf, Vec<PeerVerdict>)> {
    let Some(folder) = corpora().map(|c| c.join("dat3m")) else {
        println!("skipped: VK_LITMUS_CORPORA is not set");
        return None;
    };
    let table = std::fs::read_to_string(folder.join("verdicts.csv")).unwrap();
    let rows = table
        .lines()
        .skip(1)
        .map(|line| {
            // The query may contain commas; path and check are the first fields, the counts the last.
            let mut fields = line.splitn(3, ',');
            let (path, check, rest) =
                (fields.next().unwrap(), fields.next().unwrap(), fields.next().unwrap());
            let expected = rest.rsplit(',').nth(2).unwrap();
            PeerVerdict { path: path.to_owned(), check: check.to_owned(), expected: expected == "1" }
        })
        .collect();
    Some((folder, rows))
}

/// Returns true if the condition of a test has the answer that Dartagnan calls PASS.
fn safety_answer(test: &Test, prediction: &Prediction) -> Option<bool> {
    match test.question.as_ref().unwrap().kind {
        QuestionKind::Exists | QuestionKind::Final => prediction.can_meet_condition,
        QuestionKind::NotExists => prediction.can_meet_condition.map(|meets| !meets),
        QuestionKind::Forall => prediction.can_miss_condition.map(|misses| !misses),
    }
}

/// The rows on which a shipped model differs, as `check path`.
fn shipped_differences(chains: &str, nochains: &str) -> Option<Vec<String>> {
    let shipped = |name: &str| Model::shipped(name).unwrap().unwrap();
    model_differences(shipped(chains), shipped(nochains))
}

/// The rows on which a model differs, as `check path`.
fn model_differences(chains: Model, nochains: Model) -> Option<Vec<String>> {
    let (folder, rows) = rows()?;
    let name = chains.name().to_owned();
    let models: BTreeMap<bool, Model> = [(true, chains), (false, nochains)].into_iter().collect();
    let mut differences = Vec::new();
    let mut refused = 0;
    for row in &rows {
        let text = std::fs::read_to_string(folder.join(&row.path)).unwrap();
        let test = litmus::parse(&text, &row.path).unwrap_or_else(|e| panic!("{}: {e:?}", row.path));
        let model = &models[&!row.check.ends_with("nochains")];
        let prediction = match predict(&test, model, &PredictOptions::default()) {
            // SPIR-V cannot express this; the models of other tools accept it.
            Err(PredictError::TwoStorageClasses { .. }) if name == "vulkan" => {
                refused += 1;
                continue;
            }
            prediction => prediction.unwrap(),
        };
        let answer = match row.check.as_str() {
            "safety-chains" | "safety-nochains" => safety_answer(&test, &prediction),
            _ => (prediction.race != Race::Unknown).then_some(prediction.race == Race::Free),
        };
        match answer {
            Some(answer) if answer == row.expected => {}
            Some(_) => differences.push(format!("{} {}", row.check, row.path)),
            None => differences.push(format!("{} {} (not finished in time)", row.check, row.path)),
        }
    }
    let agree = rows.len() - differences.len() - refused;
    println!("{agree} of {} rows agree with {name}, {refused} are refused", rows.len());
    Some(differences)
}

#[test]
fn the_dartagnan_model_has_dartagnans_verdicts() {
    let Some(differences) = shipped_differences("dartagnan", "dartagnan-nochains") else { return };
    assert!(differences.is_empty(), "{differences:#?}");
}

/// Dartagnan's published files, unchanged. `VK_LITMUS_DARTAGNAN_CAT` is their folder; the default is `cat`
/// next to Dartagnan's tests.
#[test]
fn dartagnans_files_give_its_verdicts() {
    let folder = std::env::var_os("VK_LITMUS_DARTAGNAN_CAT")
        .map(PathBuf::from)
        .or_else(|| corpora().map(|corpora| corpora.join("dat3m/cat")));
    let Some(folder) = folder.filter(|folder| folder.join("vulkan.cat").is_file()) else {
        println!("skipped: no vulkan.cat of Dartagnan's; VK_LITMUS_DARTAGNAN_CAT names its folder");
        return;
    };
    let model = |name: &str| {
        let text = std::fs::read_to_string(folder.join(name)).unwrap();
        let include = |file: &str| std::fs::read_to_string(folder.join(file)).ok();
        Model::from_text(name, &text, &include).unwrap_or_else(|errors| panic!("{name}: {errors:?}"))
    };
    let Some(differences) = model_differences(model("vulkan.cat"), model("vulkan-nochains.cat")) else {
        return;
    };
    assert!(differences.is_empty(), "{differences:#?}");
}

/// The remaining differences are decisions, with reasons in docs/dev/decisions.md.
#[test]
fn vulkan_differs_only_by_decision() {
    let Some(differences) = shipped_differences("vulkan", "vulkan-nochains") else { return };
    assert_eq!(differences, ["safety-chains Manual/CoWW-RR.litmus"]);
}

/// Returns the rows of `khronos/verdicts.csv` on which a model differs, as `file: line`, and the number of
/// rows.
fn khronos_differences(chains: &str, nochains: &str) -> Option<Vec<String>> {
    let Some(folder) = corpora().map(|c| c.join("khronos")) else {
        println!("skipped: VK_LITMUS_CORPORA is not set");
        return None;
    };
    let table = std::fs::read_to_string(folder.join("verdicts.csv")).unwrap();
    let model = |name: &str| Model::shipped(name).unwrap().unwrap();
    let (chains_model, nochains_model) = (model(chains), model(nochains));
    let mut answers: BTreeMap<String, (Test, Vec<Option<bool>>)> = BTreeMap::new();
    let (mut rows, mut differences) = (0, Vec::new());
    for line in table.lines().skip(1) {
        let fields: Vec<&str> = line.split(',').collect();
        let [path, check, query, _expected, threads, instructions] = fields[..] else { panic!("{line}") };
        let (test, answers) = answers.entry(path.to_owned()).or_insert_with(|| {
            let text = std::fs::read_to_string(folder.join(path)).unwrap();
            let test = litmus::parse(&text, path).unwrap_or_else(|e| panic!("{path}: {e:?}"));
            let answers =
                answer_queries(&test, &chains_model, Some(&nochains_model), &PredictOptions::default())
                    .unwrap();
            (test, answers)
        });
        assert_eq!(test.threads.len().to_string(), threads, "{path}");
        let count: usize = test.threads.iter().map(|thread| thread.instructions.len()).sum();
        assert_eq!(count.to_string(), instructions, "{path}");
        let index: usize = check.split('-').nth(1).unwrap().parse().unwrap();
        let line = &test.khronos.as_ref().unwrap().queries[index];
        assert_eq!((line.text.as_str(), line.without_chains), (query, check.ends_with("nochains")), "{path}");
        rows += 1;
        // Every line of the suite holds under its model.
        if answers[index] != Some(true) {
            differences.push(format!("{path}: {query} ({:?})", answers[index]));
        }
    }
    println!("{} of {rows} rows agree with {chains}", rows - differences.len());
    assert!(rows > 0);
    Some(differences)
}

#[test]
fn the_alloy_model_has_khronos_verdicts() {
    let Some(differences) = khronos_differences("khronos-alloy", "khronos-alloy-nochains") else { return };
    assert!(differences.is_empty(), "{differences:#?}");
}

#[test]
fn vulkan_agrees_with_the_verdicts_of_khronos() {
    let Some(differences) = khronos_differences("vulkan", "vulkan-nochains") else { return };
    assert!(differences.is_empty(), "{differences:#?}");
}

/// D1: the guard of Dartagnan's from-reads, and the texts without location order in from-reads.
#[test]
fn only_from_reads_distinguish_the_models_on_khronos_suite() {
    let coww = "noncohcoww.test: NOSOLUTION consistent[X] (Some(false))";
    let lost_update = "noncohrmwfail.test: NOSOLUTION consistent[X] (Some(false))";
    for (model, expected) in [("dartagnan", &[coww][..]), ("vulkan-2024", &[coww, lost_update][..])] {
        let Some(differences) = khronos_differences(model, &format!("{model}-nochains")) else { return };
        assert_eq!(differences, expected, "{model}");
    }
}

/// A `.test` file and its native form are the same program: values and the filter leave the same executions.
#[test]
fn converted_files_keep_their_meaning() {
    let Some(folder) = corpora().map(|c| c.join("khronos")) else {
        println!("skipped: VK_LITMUS_CORPORA is not set");
        return;
    };
    let model = Model::shipped("vulkan").unwrap().unwrap();
    let mut compared = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|extension| extension != "test") {
            continue;
        }
        let file = path.to_str().unwrap();
        let test = litmus::parse(&std::fs::read_to_string(&path).unwrap(), file).unwrap();
        let Ok(native) = litmus::convert::to_vulkan(&test) else { continue };
        let left = predict(&test, &model, &PredictOptions::default()).unwrap();
        let right = predict(&native, &model, &PredictOptions::default()).unwrap();
        let allowed = |prediction: &Prediction| -> Vec<_> {
            let outcomes = prediction.outcomes.iter().filter(|(_, p)| p.allowed && !p.filtered);
            outcomes.map(|(outcome, _)| outcome.clone()).collect()
        };
        assert_eq!(left.race, right.race, "{file}");
        assert_eq!(allowed(&left), allowed(&right), "{file}");
        compared += 1;
    }
    assert!(compared > 0);
}
