//! Explanations of the corpus: they agree with the predictions, cycles close, and suggested fixes work.
#![expect(clippy::unwrap_used, clippy::panic, reason = "helpers of tests")]

use crate::oracle::{UNLIMITED, shipped};
use std::collections::BTreeSet;

use litmus::{QuestionKind, Race, Test, corpus};
use model::{
    BrokenAxiom, Budget, ExplainOptions, Explanation, ExplanationAnswer, FixSearchResult, InstructionChange,
    Minimality, Model, PredictError, PredictOptions, explain_outcome, list_consistent_executions, predict,
};

fn test_of(id: &str) -> (Test, &'static str) {
    let text = corpus::tests().into_iter().find(|test| test.id == id).unwrap().text;
    (litmus::parse(text, id).unwrap(), text)
}

fn unlimited_options() -> ExplainOptions<'static> {
    ExplainOptions {
        verdict_budget: Budget::UNLIMITED,
        search_budget: Budget::UNLIMITED,
        max_fix_programs: 50,
        ..ExplainOptions::default()
    }
}

/// Returns true if the edges form a path from event to event. Parallel edges of a broken `empty` need not.
fn is_path(broken: &BrokenAxiom) -> bool {
    let next = broken.edges.iter().cycle().skip(1);
    broken.edges.iter().zip(next).all(|(edge, next)| {
        // An inverse is drawn in its original direction.
        [edge.from, edge.to].contains(&next.from) || [edge.from, edge.to].contains(&next.to)
    })
}

fn check(id: &str, test: &Test, model: &Model) -> Explanation {
    let prediction = predict(test, model, &UNLIMITED).unwrap();
    let explanation = explain_outcome(test, model, &unlimited_options()).unwrap();
    assert_eq!(explanation.race, prediction.race, "{id}");
    assert_eq!(explanation.found_race.is_some(), prediction.race == Race::Racy, "{id}");
    let observed = if matches!(test.question.as_ref().unwrap().kind, litmus::QuestionKind::Forall) {
        prediction.can_miss_condition
    } else {
        prediction.can_meet_condition
    };
    match &explanation.answer {
        ExplanationAnswer::Allowed { witness } => {
            assert_eq!(observed, Some(true), "{id}");
            assert!(witness.is_some(), "{id}");
        }
        ExplanationAnswer::Forbidden { closest, complete, candidates } => {
            assert_eq!(observed, Some(false), "{id}");
            let (execution, broken) = closest.as_ref().unwrap();
            // The solver explains outcomes of many candidates.
            assert!(*candidates > 0 && (*complete || *candidates > 1_000), "{id}");
            assert!(!broken.edges.is_empty(), "{id}: {broken:?}");
            assert!(!broken.is_cycle || is_path(broken), "{id}: {broken:?}");
            for edge in broken.edges.iter().chain(&execution.edges) {
                assert!(usize::from(edge.from.0) < execution.events.len(), "{id}");
                assert!(usize::from(edge.to.0) < execution.events.len(), "{id}");
            }
        }
        ExplanationAnswer::Impossible => assert_eq!(observed, Some(false), "{id}"),
        ExplanationAnswer::Unknown => panic!("{id}: unknown"),
    }
    explanation
}

#[test]
fn explanations_agree_with_predictions() {
    // A soak takes every test, other runs one in two.
    let share = if std::env::var_os("VK_LITMUS_SOAK").is_some() { 1 } else { 2 };
    for name in ["vulkan", "dartagnan", "sc"] {
        let model = shipped(name);
        let mut checked = 0;
        for entry in corpus::tests().into_iter().step_by(share) {
            let test = litmus::parse(entry.text, &entry.id).unwrap();
            if test.question.is_none() || !model.supports_dialect(test.dialect) {
                continue;
            }
            // Only the models of the Vulkan texts support hosts, parts of locations and similar features.
            let predicted = predict(&test, &model, &UNLIMITED);
            if name != "vulkan" && matches!(predicted, Err(PredictError::NotAvailable { .. })) {
                continue;
            }
            check(&entry.id, &test, &model);
            checked += 1;
        }
        assert!(checked > 150, "{checked} under {name}");
    }
}

/// Returns a test of several pairs of threads, each of which passes a message, with the instructions for its flag.
fn message_passing(pairs: usize, store: &str, load: &str) -> String {
    let numbers = || 0..pairs;
    let row =
        |cells: &dyn Fn(usize) -> [String; 2]| numbers().flat_map(cells).collect::<Vec<_>>().join(" | ");
    let heads = row(&|n| [2 * n, 2 * n + 1].map(|thread| format!("P{thread}@sg 0, wg {thread}, qf 0")));
    let first = row(&|n| [format!("st.nonpriv.sc0 x{n}, 1"), format!("{load} r0, f{n}")]);
    let second = row(&|n| [format!("{store} f{n}, 1"), format!("ld.nonpriv.sc0 r1, x{n}")]);
    let initial: String = numbers().map(|n| format!("x{n} = 0; f{n} = 0; ")).collect();
    let condition = |n| format!("P{0}:r0 == 1 /\\ P{0}:r1 == 0", 2 * n + 1);
    let condition = numbers().map(condition).collect::<Vec<_>>().join(" /\\ ");
    format!("VULKAN MPs\n{{ {initial}}}\n{heads} ;\n{first} ;\n{second} ;\nexists ({condition})")
}

#[test]
fn tests_of_many_candidates_are_explained() {
    let vulkan = shipped("vulkan");
    let explain = |text: &str| {
        let test = litmus::parse(text, "MPs").unwrap();
        explain_outcome(&test, &vulkan, &ExplainOptions { max_fix_programs: 0, ..ExplainOptions::default() })
            .unwrap()
    };
    let weak = explain(&message_passing(8, "st.atom.dv.sc0", "ld.atom.dv.sc0"));
    assert!(matches!(weak.answer, ExplanationAnswer::Allowed { witness: Some(_) }), "{:?}", weak.answer);
    assert!(weak.found_race.is_some_and(|race| race.pair.is_some()));
    let ordered = message_passing(8, "st.atom.rel.dv.sc0.semsc0.semav", "ld.atom.acq.dv.sc0.semsc0.semvis");
    let ExplanationAnswer::Forbidden { closest: Some((execution, broken)), .. } = explain(&ordered).answer
    else {
        panic!("not forbidden");
    };
    assert!(
        broken.is_cycle && is_path(&broken) && broken.name.as_deref() == Some("consistency"),
        "{broken:?}"
    );
    assert_eq!(execution.outcome.len(), 16);
}

#[test]
fn tests_of_too_many_paths_are_explained_and_not_listed() {
    let vulkan = shipped("vulkan");
    let branches: String = (0..13)
        .map(|n| {
            format!(
                "ld.atom.dv.sc0 r{n}, x | ;\nbne r{n}, 1, LC{n} | ;\nst.atom.dv.sc0 y, 1 | ;\nLC{n}: | ;\n"
            )
        })
        .collect();
    let text = format!(
        "VULKAN branches\n{{ x = 0; y = 0; }}\nP0@sg 0, wg 0, qf 0 | P1@sg 0, wg 1, qf 0 ;\n| st.atom.dv.sc0 x, 1 ;\n{branches}exists (y == 1)"
    );
    let test = litmus::parse(&text, "branches").unwrap();
    let options = ExplainOptions::default();
    let explanation = explain_outcome(&test, &vulkan, &options).unwrap();
    assert!(
        matches!(explanation.answer, ExplanationAnswer::Allowed { witness: Some(_) }),
        "{:?}",
        explanation.answer
    );
    let listed = model::list_consistent_executions(&test, &vulkan, &options, 10);
    assert!(matches!(listed, Err(PredictError::TooManyPaths { .. })), "{listed:?}");
}

/// Returns the text with the changed lines of a fix.
fn apply_changes(text: &str, changes: &[&InstructionChange]) -> String {
    let mut changes = changes.to_vec();
    changes.sort_by_key(|change| std::cmp::Reverse(change.span.offset));
    let mut text = text.to_owned();
    for change in changes {
        let start = change.span.offset as usize;
        text.replace_range(start..start + change.span.length as usize, &change.after);
    }
    text
}

#[test]
fn fixes_work_and_are_minimal() {
    let vulkan = shipped("vulkan");
    let race = |text: &str| {
        let test = litmus::parse(text, "changed").unwrap();
        predict(&test, &vulkan, &UNLIMITED).unwrap().race
    };
    let mut mended = 0;
    for id in [
        "avvis/MP+rel-acq.noav",
        "scopes/MP+rel-acq.wg-far",
        "guard/MP+rel-rlx.guard",
        "race/MP+plain-flag",
        "guard/MP+rlx-acq.guard",
        "iriw/IRIW+plain",
    ] {
        let (test, text) = test_of(id);
        let explanation = explain_outcome(
            &test,
            &vulkan,
            &ExplainOptions {
                verdict_budget: Budget::UNLIMITED,
                search_budget: Budget::UNLIMITED,
                ..ExplainOptions::default()
            },
        )
        .unwrap();
        let FixSearchResult::Found { changes, minimality: least, allowed } =
            &explanation.found_race.as_ref().unwrap().fix
        else {
            panic!("{id}: {:?}", explanation.found_race);
        };
        assert_eq!(*least == Minimality::Cheapest, id != "iriw/IRIW+plain", "{id}");
        let all: Vec<&InstructionChange> = changes.iter().collect();
        let stronger = apply_changes(text, &all);
        assert_eq!(race(&stronger), Race::Free, "{id}: {stronger}");
        let test = litmus::parse(&stronger, "changed").unwrap();
        let meets = predict(&test, &vulkan, &UNLIMITED).unwrap().can_meet_condition;
        assert_eq!(*allowed, meets, "{id}");
        for left_out in 0..all.len() {
            let mut some = all.clone();
            some.remove(left_out);
            assert_eq!(race(&apply_changes(text, &some)), Race::Racy, "{id} without {:?}", all[left_out]);
        }
        mended += 1;
    }
    assert_eq!(mended, 6);
}

#[test]
fn reasons_forbid_their_outcome_and_are_minimal() {
    let vulkan = shipped("vulkan");
    let options = ExplainOptions {
        verdict_budget: Budget::UNLIMITED,
        search_budget: Budget::UNLIMITED,
        max_fix_programs: 300,
        find_forbidding_fix: true,
        ..ExplainOptions::default()
    };
    let mut found = 0;
    for id in ["mp/MP+rlx-rlx", "mp/MP+plain", "isa2/ISA2+rlx-rlx-rlx", "wrc/WRC+rlx-rlx-rlx"] {
        let (test, text) = test_of(id);
        let explanation = explain_outcome(&test, &vulkan, &options).unwrap();
        let Some(FixSearchResult::Found { changes, .. }) = &explanation.forbidding_fix else {
            panic!("{id}: {:?}", explanation.forbidding_fix)
        };
        let all: Vec<&InstructionChange> = changes.iter().collect();
        let race_and_answer = |changes: &[&InstructionChange]| {
            let test = litmus::parse(&apply_changes(text, changes), "changed").unwrap();
            let prediction = predict(&test, &vulkan, &UNLIMITED).unwrap();
            (prediction.race, prediction.can_meet_condition)
        };
        assert_eq!(race_and_answer(&all), (Race::Free, Some(false)), "{id}");
        for left_out in 0..all.len() {
            let mut some = all.clone();
            some.remove(left_out);
            assert_ne!(race_and_answer(&some), (Race::Free, Some(false)), "{id} without {:?}", all[left_out]);
        }
        found += 1;
    }
    assert_eq!(found, 4);
    // No option of an instruction forbids these outcomes. An outcome of sequential consistency has no fix.
    for (id, forbids) in [("sb/SB+rlx-rlx", Some(FixSearchResult::Impossible)), ("coherence/CoRR+rlx", None)]
    {
        let (test, _) = test_of(id);
        assert_eq!(explain_outcome(&test, &vulkan, &options).unwrap().forbidding_fix, forbids, "{id}");
    }
    let (test, _) = test_of("mp/MP+rlx-rlx");
    let serial = Some(litmus::parse_condition("P1:r0 == 0 /\\ P1:r1 == 0", "outcome", &test).unwrap());
    assert_eq!(
        explain_outcome(&test, &vulkan, &ExplainOptions { outcome: serial, ..options })
            .unwrap()
            .forbidding_fix,
        None
    );
}

#[test]
fn an_edge_names_the_alternative_that_holds_and_its_clauses() {
    let (test, _) = test_of("guard/MP+rel-acq.guard");
    let explanation = check("guard/MP+rel-acq.guard", &test, &shipped("vulkan"));
    let ExplanationAnswer::Forbidden { closest: Some((execution, broken)), .. } = explanation.answer else {
        panic!("it is forbidden")
    };
    assert_eq!((broken.name.as_deref(), broken.is_cycle), (Some("consistency"), true));
    let locord = broken.edges.iter().find(|edge| edge.relation == "locord").unwrap();
    assert_eq!(locord.via.as_deref(), Some("write-read"));
    assert!(locord.clauses.iter().any(|clause| clause == "VK-LO-05"), "{:?}", locord.clauses);
    assert!(!locord.clauses.iter().any(|clause| clause == "VK-LO-01"), "another alternative's clause");
    let lines: Vec<u32> =
        [locord.from, locord.to].map(|id| execution.events[usize::from(id.0)].span.line).to_vec();
    assert_eq!(lines, [8, 10]);
    // One level deeper: happens-before, which consists of program order and synchronizes-with.
    let mut open = locord.premises.clone();
    let mut relations = Vec::new();
    while let Some(edge) = open.pop() {
        relations.push(edge.relation.clone());
        open.extend(edge.premises);
    }
    for wanted in ["po", "sw", "rf"] {
        assert!(relations.iter().any(|found| found == wanted), "{wanted} in {relations:?}");
    }
}

#[test]
fn a_given_outcome_is_explained() {
    let (test, _) = test_of("sb/SB+rlx-rlx");
    let vulkan = shipped("vulkan");
    let ask = |text: &str| {
        let outcome = Some(litmus::parse_condition(text, "outcome", &test).unwrap());
        explain_outcome(&test, &vulkan, &ExplainOptions { outcome, ..unlimited_options() }).unwrap()
    };
    assert!(matches!(
        ask("P0:r0 == 1 /\\ P1:r0 == 1").answer,
        ExplanationAnswer::Allowed { witness: Some(_) }
    ));
    assert_eq!(ask("P0:r0 == 7").answer, ExplanationAnswer::Impossible);
    // A location that is not in the condition becomes part of the outcome.
    assert!(matches!(ask("x == 0").answer, ExplanationAnswer::Forbidden { closest: Some(_), .. }));
}

#[test]
fn incomplete_explanations_are_marked() {
    let (test, _) = test_of("mp/MP+rel-acq");
    let vulkan = shipped("vulkan");
    let none = ExplainOptions { max_candidates: 0, ..unlimited_options() };
    let explanation = explain_outcome(&test, &vulkan, &none).unwrap();
    let ExplanationAnswer::Forbidden { closest: None, candidates: 0, complete: false } = explanation.answer
    else {
        panic!("{:?}", explanation.answer)
    };
    let (test, _) = test_of("mp/MP+plain");
    let few = ExplainOptions { max_fix_programs: 3, ..unlimited_options() };
    let mend = explain_outcome(&test, &vulkan, &few).unwrap().found_race.unwrap().fix;
    assert!(matches!(mend, FixSearchResult::Found { minimality: Minimality::Irreducible, .. }), "{mend:?}");
}

/// The listed executions have exactly the outcomes that the engine allows.
#[test]
fn listed_executions_have_the_allowed_outcomes() {
    let vulkan = shipped("vulkan");
    let mut compared = 0;
    for entry in corpus::tests() {
        let Ok(test) = litmus::parse(entry.text, &entry.id) else { continue };
        if !vulkan.supports_dialect(test.dialect) {
            continue;
        }
        let Ok(prediction) = predict(&test, &vulkan, &PredictOptions::default()) else { continue };
        if !prediction.complete || prediction.candidate_executions > 2_000 {
            continue;
        }
        let options = ExplainOptions::default();
        let found = list_consistent_executions(&test, &vulkan, &options, usize::MAX).unwrap();
        assert!(found.complete, "{}", entry.id);
        let shown: BTreeSet<&[(String, String)]> =
            found.executions.iter().map(|found| found.execution.outcome.as_slice()).collect();
        let allowed = prediction.outcomes.values().filter(|says| says.allowed && !says.filtered).count();
        assert_eq!(shown.len(), allowed, "{}", entry.id);
        if let Some(question) = &test.question {
            // For `forall`, the search looks for a violation.
            let shows = if question.kind == QuestionKind::Forall {
                prediction.can_miss_condition
            } else {
                prediction.can_meet_condition
            };
            assert_eq!(shows, Some(found.executions.iter().any(|found| found.is_witness)), "{}", entry.id);
        }
        // Racy executions are marked.
        let flagged = found.executions.iter().any(|found| found.is_racy);
        assert_eq!(flagged, prediction.race == Race::Racy, "{}", entry.id);
        assert_eq!(found.loop_bound, None, "{}", entry.id);
        compared += 1;
    }
    assert!(compared > 300, "{compared}");
}

/// Each order of independent writes is an execution, and the letters of events continue after z.
#[test]
fn executions_of_many_writes() {
    let listed = |text: &str| {
        let test = litmus::parse(text, "writes").unwrap();
        list_consistent_executions(&test, &shipped("vulkan"), &unlimited_options(), usize::MAX)
            .unwrap()
            .executions
    };
    let threads = (0..4).map(|id| format!("P{id}@sg 0, wg {id}, qf 0"));
    let heads = threads.collect::<Vec<_>>().join(" | ");
    let stores = ["st.atom.dv.sc0 x, 1"; 4].join(" | ");
    let found = listed(&format!("VULKAN writes\n{{ x = 0; }}\n{heads} ;\n{stores} ;\n"));
    let orders: BTreeSet<String> = found.iter().map(|found| format!("{:?}", found.execution.edges)).collect();
    assert_eq!((found.len(), orders.len()), (24, 24));

    let loads = "ld.sc0 r0, x ;\n".repeat(28);
    let found = listed(&format!("VULKAN reads\n{{ x = 0; }}\nP0@sg 0, wg 0, qf 0 ;\n{loads}"));
    let labels: Vec<&str> = found[0].execution.events.iter().map(|event| event.label.as_str()).collect();
    assert_eq!(labels[1..][..2], ["a", "b"]);
    assert_eq!(labels[26..][..3], ["z", "aa", "ab"]);
}

/// An incomplete listing reports the loop bound and is not marked as complete.
#[test]
fn truncated_executions_are_reported() {
    let text = "VULKAN loop\n{ x = 0; }\nP0@sg 0, wg 0, qf 0 ;\nLC00: ;\nrmw.atom.dv.sc0.add r0, x, 1 ;\n\
                bne r0, 2, LC00 ;\nexists (x == 3)\n";
    let test = litmus::parse(text, "loop").unwrap();
    let shown = |unroll| {
        let options = ExplainOptions { unroll: Some(unroll), ..ExplainOptions::default() };
        let found = list_consistent_executions(&test, &shipped("vulkan"), &options, 10).unwrap();
        (found.executions.len(), found.loop_bound)
    };
    assert_eq!(shown(1), (0, Some(1)));
    assert_eq!(shown(2), (0, Some(2)));
    // The third iteration is the last one, but the bound does not show that.
    assert_eq!(shown(3).0, 1);
}
