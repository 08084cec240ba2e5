//! HSA tests lowered to Vulkan: the verdicts of both models, in a table and on random tests.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use crate::hsa::corpus;
use crate::oracle::{UNLIMITED, check_cases, shipped, soak_cases};
use crate::random;

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::path::PathBuf;

use litmus::{LoweredTest, LoweringError, Prediction, Test, lower_to_vulkan};
use model::{Model, predict};
use proptest::prelude::*;
use results::portability::{HsaComparison, PortabilityClass, compare_predictions};

/// Both models, and the model of devices without chains.
struct LoweringModels {
    hsa: Model,
    vulkan: Model,
    nochains: Model,
}

impl LoweringModels {
    fn new() -> LoweringModels {
        LoweringModels {
            hsa: shipped("hsa"),
            vulkan: shipped("vulkan"),
            nochains: shipped("vulkan-nochains"),
        }
    }
}

fn predict_unlimited(test: &Test, model: &Model) -> Prediction {
    predict(test, model, &UNLIMITED).unwrap()
}

/// Predicts the program as a device executes it: without its filter, which only selects outcomes.
fn predict_on_device(lowered: &Test, model: &Model) -> Prediction {
    let mut program = lowered.clone();
    program.filter = None;
    let mut prediction = predict_unlimited(&program, model);
    if let Some(filter) = &lowered.filter {
        for (outcome, says) in &mut prediction.outcomes {
            says.filtered = !outcome.meets_condition(lowered, &prediction.observables, filter);
        }
    }
    prediction
}

fn compare_models(test: &Test, lowered: &LoweredTest, hsa: &Model, vulkan: &Model) -> HsaComparison {
    compare_predictions(
        test,
        lowered,
        predict_unlimited(test, hsa),
        &predict_on_device(&lowered.test, vulkan),
    )
}

/// The worked examples of the specification by section, with chains and without.
const EXAMPLES: [(&str, PortabilityClass, PortabilityClass); 17] = {
    use PortabilityClass::{BothRace, ModelOnly, Portable, VulkanRace};
    [
        ("3.13.1.1", ModelOnly, ModelOnly),
        ("3.13.1.2", Portable, Portable),
        ("3.13.1.3", Portable, Portable),
        ("3.13.1.4", Portable, VulkanRace),
        ("3.13.1.5", Portable, Portable),
        ("3.13.1.6", Portable, VulkanRace),
        ("3.13.1.7", Portable, Portable),
        ("3.13.1.8", Portable, Portable),
        ("3.13.2.1", Portable, Portable),
        ("3.13.2.2", Portable, Portable),
        ("3.13.2.3", Portable, Portable),
        ("3.13.2.4", BothRace, BothRace),
        ("3.13.2.5", VulkanRace, VulkanRace),
        ("3.13.2.6", Portable, Portable),
        ("3.13.3.1", Portable, Portable),
        ("3.13.4.1", BothRace, BothRace),
        ("3.13.4.2", BothRace, BothRace),
    ]
};

#[test]
fn the_worked_examples() {
    let models = LoweringModels::new();
    let mut seen = Vec::new();
    for (id, test) in corpus() {
        let Some(origin) = &test.metadata.origin else { continue };
        let section = origin.rsplit(' ').next().unwrap();
        let Some((section, ..)) = EXAMPLES.iter().find(|(known, ..)| *known == section) else { continue };
        let lowered = lower_to_vulkan(&test).unwrap_or_else(|error| panic!("{id}: {error}"));
        let class = |vulkan| {
            let comparison = compare_models(&test, &lowered, &models.hsa, vulkan);
            comparison.class.unwrap_or_else(|| panic!("{id}: {:?}", comparison.fault))
        };
        seen.push((*section, class(&models.vulkan), class(&models.nochains)));
    }
    seen.sort_by_key(|(section, ..)| *section);
    assert_eq!(seen, EXAMPLES);
}

#[test]
fn the_worked_examples_as_others_wrote_them() {
    let folder = std::env::var_os("VK_LITMUS_CORPORA")
        .map(|corpora| PathBuf::from(corpora).join("../reference/hsa-examples"));
    let Some(folder) = folder.filter(|folder| folder.exists()) else {
        println!("1 skipped: no hsa-examples beside VK_LITMUS_CORPORA");
        return;
    };
    let models = LoweringModels::new();
    for (section, with_chains, without) in EXAMPLES {
        let text = std::fs::read_to_string(folder.join(format!("hsa-{section}.litmus"))).unwrap();
        let test = litmus::parse(&text, section).unwrap();
        let lowered = lower_to_vulkan(&test).unwrap_or_else(|error| panic!("{section}: {error}"));
        let class = |vulkan| compare_models(&test, &lowered, &models.hsa, vulkan).class;
        assert_eq!(
            (class(&models.vulkan), class(&models.nochains)),
            (Some(with_chains), Some(without)),
            "{section}"
        );
    }
}

#[test]
fn lowered_texts() {
    const IDS: [&str; 7] = [
        "hsa/MP+overwritten",
        "hsa/ISA2+wg-system",
        "hsa/MP+group-system",
        "hsa/MP+later-store",
        "hsa/MP+unsigned.guard",
        "hsa/RMW+noret-noret",
        "hsa/MP+pkt",
    ];
    let lowered = corpus().into_iter().filter(|(id, _)| IDS.contains(&id.as_str()));
    let texts: Vec<String> =
        lowered.map(|(_, test)| litmus::print(&lower_to_vulkan(&test).unwrap().test)).collect();
    assert_eq!(texts.len(), IDS.len());
    insta::assert_snapshot!("texts", texts.join("\n"));
}

/// Outcomes that only HSA forbids, beyond the worked examples, and a fence without an effect in both models.
const REGRESSIONS: [(&str, PortabilityClass); 9] = [
    ("hsa/SB+screl-scacq", PortabilityClass::ModelOnly),
    ("hsa/SB+scar.rmw-scacq", PortabilityClass::ModelOnly),
    ("hsa/SB+scar-rmw", PortabilityClass::Portable),
    ("hsa/RWC+screl-scacq", PortabilityClass::ModelOnly),
    ("hsa/R+screl-scacq", PortabilityClass::ModelOnly),
    ("hsa/SB+rlx.fences", PortabilityClass::Portable),
    ("hsa/IRIW+addrs", PortabilityClass::ModelOnly),
    ("hsa/WRC+data-addr", PortabilityClass::ModelOnly),
    ("hsa/MP+later-store", PortabilityClass::VulkanRace),
];

#[test]
fn classes_of_the_corpus() {
    let models = LoweringModels::new();
    let mut table = String::new();
    let mut classes = BTreeMap::new();
    for (id, test) in corpus() {
        let row = match lower_to_vulkan(&test) {
            Err(error) => format!("refused: {error}, line {}", error.span().line),
            Ok(lowered) => {
                let comparison_class = |vulkan| {
                    let comparison = compare_models(&test, &lowered, &models.hsa, vulkan);
                    let class = comparison.class.unwrap_or_else(|| panic!("{id}: {:?}", comparison.fault));
                    (class, class.name())
                };
                let (class, word) = comparison_class(&models.vulkan);
                classes.insert(id.clone(), class);
                format!("{word}, without chains {}", comparison_class(&models.nochains).1)
            }
        };
        table.push_str(&format!("{id}: {row}\n"));
    }
    insta::assert_snapshot!("classes", table);
    for (id, class) in REGRESSIONS {
        assert_eq!(classes.get(id), Some(&class), "{id}");
    }
}

/// Statistics of the random tests.
#[derive(Default)]
struct ComparisonCounts {
    compared_tests: Cell<u32>,
    refused_tests: Cell<u32>,
    classes: RefCell<BTreeMap<&'static str, u32>>,
}

impl ComparisonCounts {
    /// Lowers a test, reads its text back, and compares the models.
    fn compare(&self, text: &str, models: &LoweringModels) -> Result<(), TestCaseError> {
        let mut test = litmus::parse(text, "random").unwrap();
        // If no outcome meets the condition, all outcomes are compared.
        test.question = test.question.filter(|question| question.kind != litmus::QuestionKind::NotExists);
        let lowered = match lower_to_vulkan(&test) {
            Ok(lowered) => lowered,
            Err(LoweringError::AgentScope { .. }) => {
                self.refused_tests.set(self.refused_tests.get() + 1);
                return Ok(());
            }
            Err(error) => return Err(TestCaseError::fail(format!("{error}\n{text}"))),
        };
        let printed = litmus::print(&lowered.test);
        prop_assert_eq!(&litmus::parse(&printed, "printed").unwrap(), &lowered.test, "{}", printed);
        let hsa = predict_unlimited(&test, &models.hsa);
        for vulkan in [&models.vulkan, &models.nochains] {
            let comparison =
                compare_predictions(&test, &lowered, hsa.clone(), &predict_on_device(&lowered.test, vulkan));
            prop_assert_eq!(&comparison.fault, &None, "{}\n{}", text, printed);
            if let Some(class) = comparison.class {
                *self.classes.borrow_mut().entry(class.name()).or_insert(0_u32) += 1;
                self.compared_tests.set(self.compared_tests.get() + 1);
            }
        }
        Ok(())
    }

    fn print_counts(&self, cases: u32) {
        println!(
            "{} predictions of {cases} random tests compared, {} tests refused: {:?}",
            self.compared_tests.get(),
            self.refused_tests.get(),
            self.classes.borrow()
        );
        assert!(self.compared_tests.get() > cases, "most random tests must be lowered and answered");
    }
}

#[test]
fn lowering_preserves_outcomes_of_random_tests() {
    let (models, tally) = (LoweringModels::new(), ComparisonCounts::default());
    let (cases, rng_seed) = soak_cases(250, 47);
    check_cases((cases, rng_seed), &random::text(2..=3, 3), |text| tally.compare(&text, &models));
    tally.print_counts(cases);
    assert!(tally.classes.borrow().len() >= 3, "most classes must occur");
}

/// Two work-items of a work-group, with two synchronizing atomics each: the total order matters.
fn synchronizing_programs() -> impl Strategy<Value = String> {
    const OPERATIONS: [&str; 5] = [
        "atomic_st_global_screl_wg_u32 1, [L]",
        "atomic_ld_global_scacq_wg_u32 R, [L]",
        "atomic_exch_global_scar_wg_u32 R, [L], 2",
        "atomic_st_global_rlx_wg_u32 3, [L]",
        "atomic_ld_global_rlx_wg_u32 R, [L]",
    ];
    let operation = (prop_oneof![6 => 0..3_usize, 1 => 3..OPERATIONS.len()], any::<bool>());
    proptest::collection::vec(operation, 4).prop_map(|drawn| {
        let cell = |index: usize| {
            let (operation, second) = drawn[index];
            let location = if second { "y" } else { "x" };
            OPERATIONS[operation].replace('L', location).replace('R', &format!("$s{index}"))
        };
        format!(
            "HSA random\n{{ x = 0; y = 0; }}\nP0@wave 0, wg 0, agent 0 | P1@wave 1, wg 0, agent 0 ;\n{} | {} ;\n{} | {} ;\n\
             ~exists (0 = 1)",
            cell(0),
            cell(2),
            cell(1),
            cell(3)
        )
    })
}

#[test]
fn outcomes_forbidden_by_the_total_order_are_model_only() {
    let (models, tally) = (LoweringModels::new(), ComparisonCounts::default());
    let (cases, rng_seed) = soak_cases(1000, 48);
    check_cases((cases, rng_seed), &synchronizing_programs(), |text| tally.compare(&text, &models));
    tally.print_counts(cases);
    let classes = tally.classes.borrow();
    assert_eq!(classes.keys().copied().collect::<Vec<_>>(), ["model-only", "portable"]);
    assert!(classes.get("model-only") >= Some(&8), "some random tests must turn on the total order");
}

/// One work-item that computes, compares and jumps. Condition registers are used twice, later than their
/// comparison, or after a change of their operands.
fn computing_programs() -> impl Strategy<Value = String> {
    const CONSTANTS: [&str; 6] = ["0", "1", "-1", "2147483647", "0x80000000", "4294967295"];
    const RELATIONS: [&str; 6] = ["eq", "ne", "lt", "le", "gt", "ge"];
    const OPERATIONS: [&str; 6] = ["add", "sub", "mul", "and", "or", "xor"];
    let piece = (0..5_u8, 0..6_usize, 0..6_usize, 0..3_usize, 0..3_usize, any::<bool>());
    proptest::collection::vec(piece, 3..12).prop_map(|pieces| {
        let mut cells = Vec::new();
        // Labels of branches that are not placed yet, innermost last.
        let mut open: Vec<usize> = Vec::new();
        for (index, (kind, word, constant, from, to, last)) in pieces.into_iter().enumerate() {
            let value = if last { CONSTANTS[constant].to_owned() } else { format!("$s{}", constant % 3) };
            cells.push(match kind {
                0 => format!("mov_u32 $s{to}, {value}"),
                1 => format!("{}_u32 $s{to}, $s{from}, {value}", OPERATIONS[word]),
                2 => format!("cmp_{}_b1_u32 $c{}, $s{from}, {value}", RELATIONS[word], to % 2),
                3 => {
                    open.push(index);
                    format!("cbr_b1 $c{}, @to{index}", to % 2)
                }
                _ => match open.pop() {
                    Some(label) => format!("@to{label}:"),
                    None => format!("cmp_{}_b1_u32 $c{}, {}, $s{from}", RELATIONS[word], to % 2, CONSTANTS[constant]),
                },
            });
        }
        cells.extend(open.iter().rev().map(|label| format!("@to{label}:")));
        let rows: Vec<String> = cells.into_iter().map(|cell| format!("{cell} ;\n")).collect();
        format!(
            "HSA random\n{{ x = 0; P0:$s1 = -1; P0:$s2 = 2; }}\nP0@wave 0, wg 0, agent 0 ;\n{}~exists (0 = 1)",
            rows.concat()
        )
    })
}

#[test]
fn lowering_preserves_the_results_of_one_work_item() {
    let (models, tally) = (LoweringModels::new(), ComparisonCounts::default());
    let (cases, rng_seed) = soak_cases(250, 49);
    let held = Cell::new(0_u32);
    check_cases((cases, rng_seed), &computing_programs(), |text| {
        tally.compare(&text, &models)?;
        // No outcome is lost and each side has one, so they are equal.
        let test = litmus::parse(&text, "random").unwrap();
        let lowered = lower_to_vulkan(&test).unwrap().test;
        prop_assert_eq!(predict_unlimited(&lowered, &models.vulkan).outcomes.len(), 1, "{}", text);
        prop_assert_eq!(predict_unlimited(&test, &models.hsa).outcomes.len(), 1, "{}", text);
        held.set(held.get() + u32::from(lowered.threads[0].registers.len() > 3));
        Ok(())
    });
    tally.print_counts(cases);
    assert!(held.get() > cases / 10, "comparisons must be held in registers now and then");
}
