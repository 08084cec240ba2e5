//! Explains the outcomes in recorded results: finds the test and the model again and runs the explanation.
//!
//! Records are untrusted input. Only shipped models are used, no path from a record is opened, and a model or
//! test whose hash has changed is not used.

use std::time::{Duration, Instant};

use litmus::{Dialect, Test};
use model::{Budget, ExplainOptions, Explanation, ExplanationAnswer, Model, explain_outcome};
use results::wire::{RunLine, VerdictWord};
use runner::RunVariant;

use crate::kinds::litmus::planned::PlannedTest;
use crate::models::{self, LoadedModel};
use crate::source::{LoadedTest, SourceOrigin, TestSource};
use crate::time_limit::stop_after;

/// Time limit of one explanation.
const EXPLANATION_TIMEOUT: Duration = Duration::from_secs(1);

/// Shipped models by name, loaded once.
#[derive(Debug, Default)]
pub struct ShippedModels {
    loaded: std::collections::BTreeMap<String, Option<LoadedModel>>,
}

impl ShippedModels {
    /// Loads the models that judged `lines`.
    pub fn for_lines<'a>(lines: impl Iterator<Item = &'a RunLine>) -> ShippedModels {
        let mut models = ShippedModels::default();
        for line in lines {
            if !models.loaded.contains_key(&line.model) {
                models.loaded.insert(line.model.clone(), models::load_shipped(&line.model));
            }
        }
        models
    }

    /// Returns the model of a line, if its hash is unchanged.
    fn model_for(&self, line: &RunLine) -> Option<&Model> {
        let chosen = self.loaded.get(&line.model)?.as_ref()?;
        let same = line.hashes.model.is_empty() || line.hashes.model == chosen.hash;
        same.then_some(&chosen.model)
    }
}

/// Returns the judged program of a record, without its filter. If `text` is empty, the embedded test with
/// this id and hash is used.
pub fn recorded_test(id: &str, hash: &str, text: &str) -> Option<(Test, String)> {
    let (mut effective_test, text) = recorded_test_with_filter(id, hash, text)?;
    effective_test.filter = None;
    Some((effective_test, text))
}

/// Returns the text of a record. If it has none, that of the embedded test with this id and hash.
fn recorded_text(id: &str, hash: &str, text: &str) -> Option<String> {
    let (base_id, _) = id.split_once('@').unwrap_or((id, ""));
    let has_hash = |text: &str| hash.is_empty() || models::text_hash(text) == hash;
    // The plan of a test that forces reads has the text of its program, which has another hash.
    let text = if text.is_empty() || !has_hash(text) {
        let embedded = litmus::corpus::tests().into_iter().find(|entry| entry.id == base_id);
        match embedded.map(|entry| entry.text).filter(|text| has_hash(text)) {
            Some(text) => text,
            None if text.is_empty() => return None,
            None => text,
        }
    } else {
        text
    };
    (text.len() <= litmus::syntax::MAX_TEXT_BYTES).then(|| text.to_owned())
}

/// Plans the test of a record again.
pub fn plan_recorded_test(id: &str, hash: &str, text: &str) -> Option<PlannedTest> {
    let text = recorded_text(id, hash, text)?;
    let (base_id, variant) = id.split_once('@').unwrap_or((id, ""));
    let source = TestSource {
        id: id.to_owned(),
        file: id.to_owned(),
        argument: id.to_owned(),
        variant: variant.to_owned(),
        origin: SourceOrigin::Embedded(base_id.to_owned()),
        text: Ok(text.clone()),
    };
    // The text determines its syntax, not the suffix of the id.
    let test = litmus::parse(&text, &id.replace('.', "-")).ok()?;
    PlannedTest::new(LoadedTest { source, text, test }).ok()
}

/// Like [`recorded_test`], with the filter of the test.
pub fn recorded_test_with_filter(id: &str, hash: &str, text: &str) -> Option<(Test, String)> {
    let (_, variant) = id.split_once('@').unwrap_or((id, ""));
    let mut text = recorded_text(id, hash, text)?;
    let mut parsed = litmus::parse(&text, &id.replace('.', "-")).ok()?;
    if parsed.dialect == Dialect::Hsa {
        // The lowered program was judged.
        parsed = litmus::lower_to_vulkan(&parsed).ok()?.test;
        text = litmus::print(&parsed);
    }
    let variant: RunVariant = variant.parse().ok()?;
    Some((shaders::effective_test(&parsed, variant.shader).ok()?, text))
}

/// Explains an outcome such as `P0:r0=1 x=2`; without one, the test's question.
pub fn explain_line(
    test: &Test,
    line: &RunLine,
    outcome: Option<&str>,
    models: &ShippedModels,
    deadline: Instant,
) -> Option<Explanation> {
    let model = models.model_for(line)?;
    if !model.supports_dialect(test.dialect) {
        return None;
    }
    let remaining = deadline.saturating_duration_since(Instant::now());
    if remaining.is_zero() {
        return None;
    }
    let condition = match outcome {
        Some(outcome) => {
            Some(litmus::parse_condition(&outcome_to_condition(outcome)?, "outcome", test).ok()?)
        }
        None if test.question.is_none() => return None,
        None => None,
    };
    let time = remaining.min(EXPLANATION_TIMEOUT);
    let (half, stop) = (stop_after(time / 2), stop_after(time));
    let options = ExplainOptions {
        outcome: condition,
        verdict_budget: Budget::until(&half),
        search_budget: Budget::until(&stop),
        ..ExplainOptions::default()
    };
    explain_outcome(test, model, &options)
        .ok()
        .filter(|explanation| explanation.answer != ExplanationAnswer::Unknown)
}

/// Converts a printed outcome to a condition.
pub fn outcome_to_condition(outcome: &str) -> Option<String> {
    let terms: Option<Vec<String>> = outcome
        .split(' ')
        .map(|word| {
            let (name, value) = word.split_once('=')?;
            // A register of HSA has the same number in the lowered program.
            Some(format!("{} == {value}", name.replace(":$s", ":r")))
        })
        .collect();
    Some(terms?.join(" /\\ "))
}

/// Describes the axiom that a forbidden outcome breaks, with the relations of the cycle and their clauses.
pub fn describe_broken_rule(explanation: &Explanation) -> Option<String> {
    let ExplanationAnswer::Forbidden { closest: Some((_, broken)), .. } = &explanation.answer else {
        return None;
    };
    if broken.edges.is_empty() {
        return Some(explanation::describe_axiom(broken));
    }
    let relation = |edge: &model::ExplainedEdge| match &edge.via {
        Some(via) => format!("{} ({via})", edge.relation),
        None => edge.relation.clone(),
    };
    let relations: Vec<String> = broken.edges.iter().map(relation).collect();
    let mut clauses: Vec<&str> = Vec::new();
    for clause in broken.edges.iter().flat_map(|edge| &edge.clauses) {
        if !clauses.contains(&clause.as_str()) {
            clauses.push(clause);
        }
    }
    let name = broken.name.as_deref().unwrap_or(&broken.text);
    let how = if broken.is_cycle { "a cycle of" } else { "forbidden edges:" };
    Some(format!("{name}, {how} {}; {}", relations.join(", "), clauses.join(" ")))
}

/// Returns the outcome that most needs an explanation: an observed forbidden one, else the most frequent weak
/// one.
pub fn most_notable_outcome(line: &RunLine) -> Option<String> {
    let observed = line.outcomes.iter().filter(|outcome| outcome.count > 0);
    let best = match line.verdict {
        VerdictWord::Violates => {
            observed.filter(|outcome| !outcome.allowed).max_by_key(|outcome| outcome.count)
        }
        _ => observed.filter(|outcome| outcome.weak).max_by_key(|outcome| outcome.count),
    };
    best.map(|outcome| results::state::format_state(&outcome.state))
}
