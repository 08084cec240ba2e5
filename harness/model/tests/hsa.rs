//! The HSA model: the worked examples of the specification, the levels of undefinedness, and the engine
//! compared with the naive enumerator.
#![expect(clippy::unwrap_used, clippy::panic, reason = "tests")]

use crate::oracle::{UNLIMITED, assert_agreement, check_cases, outcomes_where, shipped, soak_cases};
use crate::{hsa_oracle, random};

use std::collections::{BTreeMap, HashSet};
use std::path::PathBuf;

use litmus::{
    AccessKind, Dialect, MemoryAccess, Operand, Outcome, Prediction, Race, RmwOperation, Test, Undefinedness,
};
use model::{Model, PredictError, PredictOptions, naive, predict};
use proptest::prelude::*;

fn hsa() -> Model {
    shipped("hsa")
}

fn predict_unlimited(test: &Test, model: &Model) -> Prediction {
    let prediction = predict(test, model, &UNLIMITED).unwrap();
    assert!(prediction.complete, "{}", test.name);
    prediction
}

/// The corpus tests of HSA.
pub fn corpus() -> Vec<(String, Test)> {
    let tests = litmus::corpus::tests().into_iter().filter(|entry| entry.id.starts_with("hsa/"));
    let tests: Vec<(String, Test)> =
        tests.map(|entry| (entry.id.clone(), litmus::parse(entry.text, &entry.id).unwrap())).collect();
    assert!(tests.len() >= 32, "only {} tests", tests.len());
    tests
}

/// Returns the verdict as in the table of examples.
fn verdict_text(prediction: &Prediction) -> String {
    match (prediction.race, prediction.undefinedness, prediction.can_meet_condition) {
        (Race::Free, None, Some(true)) => "allowed".to_owned(),
        (Race::Free, None, Some(false)) => "forbidden".to_owned(),
        (Race::Racy, Some(Undefinedness::Value), _) => "undefined-race value".to_owned(),
        (Race::Racy, Some(Undefinedness::Program), _) => "undefined-race program".to_owned(),
        other => panic!("{other:?}"),
    }
}

/// The sections of the specification with an example, and its verdict.
const EXAMPLES: [(&str, &str); 17] = [
    ("3.13.1.1", "forbidden"),
    ("3.13.1.2", "forbidden"),
    ("3.13.1.3", "forbidden"),
    ("3.13.1.4", "forbidden"),
    ("3.13.1.5", "forbidden"),
    ("3.13.1.6", "forbidden"),
    ("3.13.1.7", "forbidden"),
    ("3.13.1.8", "forbidden"),
    ("3.13.2.1", "forbidden"),
    ("3.13.2.2", "forbidden"),
    ("3.13.2.3", "forbidden"),
    ("3.13.2.4", "undefined-race value"),
    ("3.13.2.5", "forbidden"),
    ("3.13.2.6", "forbidden"),
    ("3.13.3.1", "allowed"),
    ("3.13.4.1", "undefined-race value"),
    ("3.13.4.2", "undefined-race program"),
];

#[test]
fn the_worked_examples() {
    let model = hsa();
    let mut verdicts: BTreeMap<String, String> = BTreeMap::new();
    for (id, test) in corpus() {
        let Some(origin) = &test.metadata.origin else { continue };
        let section = origin.rsplit(' ').next().unwrap().to_owned();
        let previous = verdicts.insert(section, verdict_text(&predict_unlimited(&test, &model)));
        assert_eq!(previous, None, "{id} is a second form of {origin}");
    }
    let expected: BTreeMap<String, String> =
        EXAMPLES.iter().map(|(section, verdict)| ((*section).to_owned(), (*verdict).to_owned())).collect();
    assert_eq!(verdicts, expected);
}

/// Returns the cells of a line of comma-separated values.
fn cells(line: &str) -> Vec<String> {
    let mut cells = vec![String::new()];
    let mut quoted = false;
    for character in line.chars() {
        match character {
            '"' => quoted = !quoted,
            ',' if !quoted => cells.push(String::new()),
            other => cells.last_mut().unwrap().push(other),
        }
    }
    cells
}

#[test]
fn the_worked_examples_as_others_wrote_them() {
    let folder =
        std::env::var_os("VK_LITMUS_CORPORA").map(|corpora| PathBuf::from(corpora).join("../reference"));
    let Some(folder) = folder.filter(|folder| folder.join("hsa-examples.csv").exists()) else {
        println!("1 skipped: no hsa-examples.csv beside VK_LITMUS_CORPORA");
        return;
    };
    let model = hsa();
    let table = std::fs::read_to_string(folder.join("hsa-examples.csv")).unwrap();
    let mut agreed = 0;
    for line in table.lines().skip(1) {
        let row = cells(line);
        let expected = [row[7].as_str(), row[8].as_str()].join(" ");
        let path = folder.join("hsa-examples").join(format!("hsa-{}.litmus", row[0]));
        let text = std::fs::read_to_string(&path).unwrap();
        let test = litmus::parse(&text, &row[0]).unwrap_or_else(|e| panic!("{}: {:?}", row[0], e.messages()));
        assert_eq!(verdict_text(&predict_unlimited(&test, &model)), expected.trim(), "{}", row[0]);
        agreed += 1;
    }
    println!("{agreed} of {agreed} examples agree");
    assert_eq!(agreed, 17);
}

/// Racy corpus tests have only undefined values, except for these, which are undefined as a whole.
const PROGRAM_LEVEL: [&str; 10] = [
    "hsa/LB+ctrl-data.agent-store",
    "hsa/MP+agent-far",
    "hsa/MP+screl.wg-await.system",
    "hsa/MP+system-fences.wg-flag",
    "hsa/MP+wave-far",
    "hsa/MP+wg-far",
    "hsa/MP+wi-far",
    "hsa/Race+addr",
    "hsa/Race+branch",
    "hsa/Race+stores-branch",
];

#[test]
fn levels_of_undefinedness() {
    let model = hsa();
    let mut program_level = Vec::new();
    for (id, test) in corpus() {
        let prediction = predict_unlimited(&test, &model);
        assert_eq!(prediction.undefinedness.is_some(), prediction.race == Race::Racy, "{id}");
        if prediction.undefinedness == Some(Undefinedness::Program) {
            program_level.push(id);
        }
    }
    assert_eq!(program_level, PROGRAM_LEVEL);
}

#[test]
fn outcomes_list_value_registers_and_the_locations_of_the_condition() {
    let text = "HSA t\n{ x = 0; y = 0; }\nP0@wave 0, wg 0, agent 0 | P1@wave 0, wg 0, agent 1 ;\n\
                ld_global_u32 $s3, [x] | mov_u32 $s1, -1 ;\ncmp_eq_b1_u32 $c0, $s3, 0 | st_global_u32 5, [y] ;\n\
                cbr_b1 $c0, @end ; ld_global_u32 $s0, [x] ; @end: ;\nexists (y = 5)";
    let test = litmus::parse(text, "t").unwrap();
    let names: Vec<String> =
        test.observables().into_iter().map(|observable| test.observable_name(observable)).collect();
    assert_eq!(names, ["P0:$s3", "P0:$s0", "P1:$s1", "y"]);
    let prediction = predict_unlimited(&test, &hsa());
    let values = [0, 0, 0xFFFF_FFFF, 5].map(litmus::Value).to_vec();
    assert_eq!(outcomes_where(&prediction, |predicted| predicted.allowed), HashSet::from([Outcome(values)]));
    assert_eq!(
        (prediction.race, prediction.undefinedness, prediction.can_meet_condition),
        (Race::Free, None, Some(true))
    );
}

#[test]
fn a_dialect_under_a_foreign_model_is_refused() {
    let (_, handoff) = corpus().swap_remove(0);
    let native = litmus::parse("VULKAN t\n{ x = 0; } P0@sg 0, wg 0, qf 0 ; ld.sc0 r0, x ;", "t").unwrap();
    for (name, _) in Model::shipped_models() {
        let model = Model::shipped(name).expect("a shipped model").unwrap();
        for test in [&handoff, &native] {
            let answer = predict(test, &model, &PredictOptions::default());
            if model.supports_dialect(test.dialect) {
                answer.unwrap();
            } else {
                let error = answer.unwrap_err();
                assert!(matches!(error, PredictError::UnsupportedDialect { .. }), "{name}: {error}");
            }
        }
        assert_eq!(model.supports_dialect(Dialect::Hsa), ["hsa", "sc"].contains(name));
    }
    assert_eq!(Model::default_for_dialect(Dialect::Hsa), "hsa");
}

#[test]
fn engine_and_naive_enumerator_agree_on_random_tests() {
    let model = hsa();
    let (cases, rng_seed) = soak_cases(100, 31);
    let compared = std::cell::Cell::new(0u32);
    let levels = std::cell::RefCell::new(HashSet::new());
    check_cases((cases, rng_seed), &random::text(2..=3, 3), |text| {
        let test = litmus::parse(&text, "random")
            .map_err(|errors| TestCaseError::fail(format!("{:?}\n{text}", errors.messages())))?;
        let slow = naive::enumerate(&test, &model, 1, 20_000).unwrap();
        let Some(slow) = slow else { return Ok(()) };
        let fast = predict(&test, &model, &UNLIMITED).unwrap();
        assert_agreement(&test, &fast, &slow, true)?;
        prop_assert_eq!(fast.undefinedness, slow.level, "{}", text);
        compared.set(compared.get() + 1);
        levels.borrow_mut().insert(format!("{:?}", fast.undefinedness));
        Ok(())
    });
    println!("hsa: {} of {cases} random tests compared", compared.get());
    assert!(compared.get() > cases / 2, "most random tests must be small enough to compare");
    assert_eq!(levels.borrow().len(), 3, "races of both levels and programs without races");
}

/// Returns the answer of `hsa_oracle`, if the test is small enough and does not add registers to memory.
fn literal_answer(test: &Test) -> Option<hsa_oracle::HsaAnswer> {
    let mut highest = 2;
    for instruction in test.threads.iter().flat_map(|thread| &thread.instructions) {
        if let Some(MemoryAccess {
            kind: AccessKind::Rmw { destination: None, operation: RmwOperation::Fetch(_, operand) },
            ..
        }) = instruction.kind.access()
        {
            match operand {
                Operand::Register(_) => return None,
                Operand::Constant(constant) => highest += *constant as u64,
            }
        }
    }
    let domain: Vec<u64> = (0..=highest).collect();
    hsa_oracle::judge_test(test, &domain, 60_000)
}

/// Returns the answer of the engine, if it lists all outcomes (at most 65,536).
fn engine_answer(test: &Test, model: &Model) -> Option<hsa_oracle::HsaAnswer> {
    let prediction = predict(test, model, &UNLIMITED).unwrap();
    if !prediction.complete {
        return None;
    }
    let allowed = outcomes_where(&prediction, |predicted| predicted.allowed);
    Some(hsa_oracle::HsaAnswer {
        outcomes: allowed.iter().map(|outcome| outcome.0.iter().map(|value| value.0).collect()).collect(),
        racy: prediction.race == Race::Racy,
        is_program_undefined: prediction.undefinedness == Some(Undefinedness::Program),
    })
}

#[test]
fn engine_and_literal_text_agree_on_random_tests() {
    let model = hsa();
    let (cases, rng_seed) = soak_cases(100, 31);
    let compared = std::cell::Cell::new(0u32);
    check_cases((cases, rng_seed), &random::text(2..=3, 3), |text| {
        let test = litmus::parse(&text, "random").unwrap();
        if let Some(letter) = literal_answer(&test)
            && let Some(engine) = engine_answer(&test, &model)
        {
            prop_assert_eq!(engine, letter, "{}", text);
            compared.set(compared.get() + 1);
        }
        Ok(())
    });
    println!("hsa: {} of {cases} random tests compared with the letter of the text", compared.get());
    assert!(compared.get() > cases / 2, "most random tests must be small enough to compare");
}
