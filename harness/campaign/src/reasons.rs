//! Why a model says what it does of an outcome of a record: test and model are looked up again, and asked.
//!
//! Records are not trusted: only shipped models are asked, nothing is read that a record names, and a model or a test that
//! has changed since is not asked at all.

use std::time::{Duration, Instant};

use litmus::{Dialect, Test};
use model::{Budget, ExplainOptions, Explanation, ExplanationAnswer, Model, explain_outcome};
use results::wire::{RunLine, VerdictWord};
use runner::Variant;

use crate::choice::{self, Chosen};
use crate::patience::patience;

/// The longest that a model is asked about one outcome.
const PATIENCE: Duration = Duration::from_secs(1);

/// The shipped models that have been asked for by name.
#[derive(Debug, Default)]
pub struct Models {
    loaded: std::collections::BTreeMap<String, Option<Chosen>>,
}

impl Models {
    /// Loads the models that judged `lines`.
    pub fn of<'a>(lines: impl Iterator<Item = &'a RunLine>) -> Models {
        let mut models = Models::default();
        for line in lines {
            if !models.loaded.contains_key(&line.model) {
                models.loaded.insert(line.model.clone(), choice::load_shipped(&line.model));
            }
        }
        models
    }

    /// The model that judged a line, where it is still the same.
    fn judge(&self, line: &RunLine) -> Option<&Model> {
        let chosen = self.loaded.get(&line.model)?.as_ref()?;
        let same = line.hashes.model.is_empty() || line.hashes.model == chosen.hash;
        same.then_some(&chosen.model)
    }
}

/// The test that a record's verdict is about: what its variant says, without its filter. `text` is empty where the record
/// does not hold it; then an embedded test of this id and hash is meant.
pub fn test(id: &str, hash: &str, text: &str) -> Option<(Test, String)> {
    let (mut said, text) = with_filter(id, hash, text)?;
    said.filter = None;
    Some((said, text))
}

/// As [`test`], with the filter of the test.
pub fn with_filter(id: &str, hash: &str, text: &str) -> Option<(Test, String)> {
    let (plain, variant) = id.split_once('@').unwrap_or((id, ""));
    let text = if text.is_empty() {
        let all = litmus::corpus::tests();
        let entry = all.iter().find(|entry| entry.id == plain)?;
        if !hash.is_empty() && choice::hash(entry.text) != hash {
            return None;
        }
        entry.text.to_owned()
    } else {
        text.to_owned()
    };
    if text.len() > litmus::syntax::MAX_TEXT_BYTES {
        return None;
    }
    // The text says in which syntax it is, whatever the id ends in.
    let mut parsed = litmus::parse(&text, &id.replace('.', "-")).ok()?;
    let mut text = text;
    if parsed.dialect == Dialect::Hsa {
        // It is the lowered program that was judged.
        parsed = litmus::lower(&parsed).ok()?.test;
        text = litmus::print(&parsed);
    }
    let variant: Variant = variant.parse().ok()?;
    Some((shaders::meaning(&parsed, variant.told).ok()?, text))
}

/// What the model of a line says of an outcome, which stands as `P0:r0=1 x=2`; of the test's question without one.
pub fn explained(
    test: &Test,
    line: &RunLine,
    outcome: Option<&str>,
    models: &Models,
    deadline: Instant,
) -> Option<Explanation> {
    let model = models.judge(line)?;
    if !model.judges(test.dialect) {
        return None;
    }
    let left = deadline.saturating_duration_since(Instant::now());
    if left.is_zero() {
        return None;
    }
    let condition = match outcome {
        Some(outcome) => Some(litmus::parse_condition(&condition(outcome)?, "outcome", test).ok()?),
        None if test.question.is_none() => return None,
        None => None,
    };
    let time = left.min(PATIENCE);
    let (half, stop) = (patience(time / 2), patience(time));
    let options = ExplainOptions {
        outcome: condition,
        verdict: Budget::until(&half),
        budget: Budget::until(&stop),
        ..ExplainOptions::default()
    };
    explain_outcome(test, model, &options)
        .ok()
        .filter(|explanation| explanation.answer != ExplanationAnswer::Unknown)
}

/// An outcome as a condition.
pub fn condition(outcome: &str) -> Option<String> {
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

/// The rule that a forbidden outcome breaks: the axiom, and the relations that contradict it with their clauses.
pub fn broken_rule(explanation: &Explanation) -> Option<String> {
    let ExplanationAnswer::Forbidden { closest: Some((_, broken)), .. } = &explanation.answer else {
        return None;
    };
    if broken.edges.is_empty() {
        return Some(explanation::rule(broken));
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
    let how = if broken.cycle { "a cycle of" } else { "what must not be:" };
    Some(format!("{name}, {how} {}; {}", relations.join(", "), clauses.join(" ")))
}

/// The outcome of a verdict that most wants an explanation: a forbidden one that was seen, else the weak one seen most.
pub fn remarkable(line: &RunLine) -> Option<String> {
    let seen = line.outcomes.iter().filter(|outcome| outcome.count > 0);
    let best = match line.verdict {
        VerdictWord::Violates => seen.filter(|outcome| !outcome.allowed).max_by_key(|outcome| outcome.count),
        _ => seen.filter(|outcome| outcome.weak).max_by_key(|outcome| outcome.count),
    };
    best.map(|outcome| results::state::text(&outcome.state))
}
