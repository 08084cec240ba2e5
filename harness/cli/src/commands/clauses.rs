//! `clauses`: the statements that encode each clause, the tests that discriminate it, and mutants that no
//! test detects.

use std::collections::{BTreeMap, BTreeSet};

use campaign::parallel::parallel_map;
use campaign::similar;
use litmus::{Test, corpus};
use model::clauses::{Clause, Disposition, list_citations, list_clauses as inventory};
use model::mutation::{
    Difference, EquivalenceReason, MUTATED_MODELS, Mutant, SurvivingMutant, find_killing_test,
    generate_mutants, list_surviving_mutants,
};
use model::synthesis::count_operations;
use model::{Budget, Model, PredictError, PredictOptions, PredictionSummary, predict_summary};
use results::wire::{
    Argument, ClauseRow, ClausesRecord, DifferenceWord, DispositionWord, MutantRow, MutantStatus, ReasonWord,
};

use crate::arguments::Clauses;
use crate::exit::{Failure, Outcome};
use crate::output::{print_as, print_message};

/// Budget of one test under one mutant.
const TEST_BUDGET: PredictOptions = PredictOptions { budget: Budget::from_steps(200_000), unroll: 1 };

/// Runs the command.
///
/// # Errors
/// Returns an error if the matrix cannot be printed.
pub fn clauses(arguments: &Clauses, quiet: bool) -> Result<Outcome, Failure> {
    let tests = embedded_tests()?;
    let mut rows = clause_rows(&tests)?;
    if arguments.mutants {
        if !quiet {
            print_message("judging the mutants of each model takes some minutes");
        }
        let record = ClausesRecord { clauses: rows, mutants: mutant_rows(&tests)? };
        return print_as(arguments.format, &record, format_clauses);
    }
    for id in &arguments.ids {
        if !rows.iter().any(|row| row.id == *id) {
            let suggestion = similar::did_you_mean(id, rows.iter().map(|row| row.id.as_str()));
            return Err(Failure::input_message(format!(
                "unknown clause `{id}`{suggestion}; `clauses` lists all"
            )));
        }
    }
    rows.retain(|row| arguments.ids.is_empty() || arguments.ids.contains(&row.id));
    let record = ClausesRecord { clauses: rows, mutants: Vec::new() };
    print_as(arguments.format, &record, |record| record.clauses.iter().map(format_clause).collect())
}

/// An embedded test with its id.
struct EmbeddedTest {
    id: String,
    test: Test,
}

fn embedded_tests() -> Result<Vec<EmbeddedTest>, Failure> {
    let entries = corpus::tests().into_iter().chain(corpus::model_only_tests());
    entries
        .map(|entry| {
            let test = litmus::parse(entry.text, &entry.path).map_err(Failure::input)?;
            Ok(EmbeddedTest { id: entry.id, test })
        })
        .collect()
}

fn clause_rows(tests: &[EmbeddedTest]) -> Result<Vec<ClauseRow>, Failure> {
    let mut statements: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for citation in list_citations().map_err(Failure::input)? {
        let location = format!("{}:{} {}", citation.file, citation.line, citation.name);
        for clause in citation.clauses {
            statements.entry(clause).or_default().push(location.clone());
        }
    }
    let mut discriminating: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for EmbeddedTest { id, test } in tests {
        for clause in &test.metadata.clauses {
            discriminating.entry(clause).or_default().push(id.clone());
        }
    }
    Ok(inventory().into_iter().map(|clause| clause_row(&clause, &statements, &discriminating)).collect())
}

fn clause_row(
    clause: &Clause,
    statements: &BTreeMap<String, Vec<String>>,
    tests: &BTreeMap<&str, Vec<String>>,
) -> ClauseRow {
    let cited = statements.get(clause.id).cloned().unwrap_or_default();
    // A citation in a statement overrides the disposition in the inventory.
    let disposition = if cited.is_empty() { clause.disposition } else { Disposition::Encoded };
    let engine = clause.engine_names.iter().map(|name| format!("engine {name}"));
    ClauseRow {
        id: clause.id.to_owned(),
        model: clause.specification.model_name().to_owned(),
        anchor: clause.anchor.map(str::to_owned),
        statement: clause.statement.to_owned(),
        disposition: match disposition {
            Disposition::Encoded => DispositionWord::Encoded,
            Disposition::Static => DispositionWord::Static,
            Disposition::Device => DispositionWord::Device,
            Disposition::NotApplicable => DispositionWord::NotApplicable,
        },
        statements: cited.into_iter().chain(engine).collect(),
        tests: tests.get(clause.id).cloned().unwrap_or_default(),
        why: clause.why.filter(|_| disposition != Disposition::Encoded).map(str::to_owned),
    }
}

/// A test with its verdict under the unmodified model.
struct JudgedTest<'t> {
    embedded: &'t EmbeddedTest,
    verdict: PredictionSummary,
}

fn mutant_rows(tests: &[EmbeddedTest]) -> Result<Vec<MutantRow>, Failure> {
    let (bound, known) = list_surviving_mutants();
    let mut rows = Vec::new();
    for (name, file) in MUTATED_MODELS {
        let Some(model) = Model::shipped(name) else { continue };
        let model = model.map_err(Failure::input)?;
        let judged = judge_tests(&model, tests)?;
        let all = generate_mutants(&model, &|source, _| file.is_none_or(|file| source == file));
        rows.extend(parallel_map(&all, |mutant| mutant_row(name, mutant, &judged, &known, bound)));
    }
    Ok(rows)
}

/// Returns the tests of a model's dialect with their verdicts, small tests first.
fn judge_tests<'t>(model: &Model, tests: &'t [EmbeddedTest]) -> Result<Vec<JudgedTest<'t>>, Failure> {
    let mut dialect_tests: Vec<&EmbeddedTest> =
        tests.iter().filter(|embedded| model.supports_dialect(embedded.test.dialect)).collect();
    dialect_tests.sort_by_key(|embedded| count_operations(&embedded.test));
    let mut judged = Vec::with_capacity(dialect_tests.len());
    for embedded in dialect_tests {
        match predict_summary(&embedded.test, model, &TEST_BUDGET) {
            Ok(verdict) => judged.push(JudgedTest { embedded, verdict }),
            // Older model files do not define every operation.
            Err(PredictError::NotAvailable { .. }) => {}
            Err(error) => return Err(Failure::input_message(format!("{}: {error}", embedded.id))),
        }
    }
    Ok(judged)
}

fn mutant_row(
    name: &str,
    mutant: &Mutant,
    judged: &[JudgedTest<'_>],
    known: &[SurvivingMutant],
    bound: &str,
) -> MutantRow {
    let mutation = &mutant.mutation;
    let cites = |test: &Test| test.metadata.clauses.iter().any(|clause| mutation.clauses.contains(clause));
    // Tests of the statement's clauses are tried first, as they most probably detect the mutant.
    let (citing, others): (Vec<&JudgedTest<'_>>, Vec<&JudgedTest<'_>>) =
        judged.iter().partition(|judged| cites(&judged.embedded.test));
    let candidates = citing
        .into_iter()
        .chain(others)
        .map(|judged| (judged.embedded.id.as_str(), &judged.embedded.test, &judged.verdict));
    let killed = find_killing_test(&mutant.model, candidates, &TEST_BUDGET);
    let listed = known.iter().find(|listed| {
        listed.model == name && listed.statement == mutation.statement && listed.change == mutation.change
    });
    let argument = listed
        .and_then(|listed| listed.equivalence_proof)
        .map(|(reason, text)| Argument { reason: reason_word(reason), text: text.to_owned() });
    let mut row = MutantRow {
        model: name.to_owned(),
        statement: format!("{}:{} {}", mutation.file, mutation.line, mutation.statement),
        change: mutation.change.clone(),
        status: MutantStatus::Alive,
        by: None,
        difference: None,
        bound: None,
        argument: None,
    };
    match (killed, listed) {
        (Some((id, difference)), _) => {
            row.status = MutantStatus::Killed;
            row.by = Some(id.to_owned());
            row.difference = Some(difference_word(difference));
        }
        (None, Some(_)) if argument.is_some() => {
            row.status = MutantStatus::Equivalent;
            row.argument = argument;
        }
        (None, Some(_)) => {
            row.status = MutantStatus::Unkilled;
            row.bound = Some(bound.to_owned());
        }
        (None, None) => row.bound = Some("the embedded tests".to_owned()),
    }
    row
}

/// Converts the reason why a mutant is equivalent to its form in JSON.
fn reason_word(reason: EquivalenceReason) -> ReasonWord {
    match reason {
        EquivalenceReason::Implied => ReasonWord::Implied,
        EquivalenceReason::Contained => ReasonWord::Contained,
        EquivalenceReason::Discarded => ReasonWord::Discarded,
        EquivalenceReason::Absent => ReasonWord::Absent,
        EquivalenceReason::Counted => ReasonWord::Counted,
    }
}

/// Converts a kind of difference to its form in JSON.
pub fn difference_word(difference: Difference) -> DifferenceWord {
    match difference {
        Difference::Outcome => DifferenceWord::Outcome,
        Difference::RacyUnderSecond => DifferenceWord::RacyUnderSecond,
        Difference::RacyUnderFirst => DifferenceWord::RacyUnderFirst,
        Difference::Executions => DifferenceWord::Executions,
    }
}

fn format_clause(row: &ClauseRow) -> String {
    let mut text = String::new();
    let word = row.disposition.name();
    text += &format!("{}  {word}: {}\n", row.id, row.statement);
    if let Some(why) = &row.why {
        text += &format!("    {why}\n");
    }
    for statement in &row.statements {
        text += &format!("    {statement}\n");
    }
    if row.tests.is_empty() && row.disposition == DispositionWord::Encoded {
        text += "    gap: no test discriminates it\n";
    } else if !row.tests.is_empty() {
        text += &format!("    tests: {}\n", row.tests.join(" "));
    }
    text
}

fn format_clauses(record: &ClausesRecord) -> String {
    let mut text: String = record.clauses.iter().map(format_clause).collect();
    text.push('\n');
    for row in &record.mutants {
        let MutantRow { model, statement, change, .. } = row;
        let end = match (row.status, &row.by, &row.argument) {
            (MutantStatus::Killed, Some(by), _) => format!("killed by {by}"),
            (MutantStatus::Equivalent, _, Some(argument)) => format!("equivalent: {}", argument.text),
            (MutantStatus::Unkilled, ..) => "not killed within the bound".to_owned(),
            _ => "ALIVE".to_owned(),
        };
        text += &format!("{model}  {statement}: {change}: {end}\n");
    }
    text.push('\n');
    let count = |disposition: DispositionWord| {
        record.clauses.iter().filter(|row| row.disposition == disposition).count()
    };
    let gaps = record
        .clauses
        .iter()
        .filter(|row| row.disposition == DispositionWord::Encoded && row.tests.is_empty())
        .count();
    text += &format!(
        "{} clauses: {} encoded ({gaps} without a test), {} static, {} device, {} not applicable\n",
        record.clauses.len(),
        count(DispositionWord::Encoded),
        count(DispositionWord::Static),
        count(DispositionWord::Device),
        count(DispositionWord::NotApplicable)
    );
    let models: BTreeSet<&str> = record.mutants.iter().map(|row| row.model.as_str()).collect();
    for model in models {
        let rows: Vec<&MutantRow> = record.mutants.iter().filter(|row| row.model == model).collect();
        let count = |status: MutantStatus| rows.iter().filter(|row| row.status == status).count();
        let reasons: Vec<String> = EquivalenceReason::ALL
            .into_iter()
            .map(|reason| {
                let has_reason = |row: &&&MutantRow| {
                    row.argument.as_ref().is_some_and(|argument| argument.reason == reason_word(reason))
                };
                (reason, rows.iter().filter(has_reason).count())
            })
            .filter(|(_, count)| *count > 0)
            .map(|(reason, count)| format!("{} {count}", reason.name()))
            .collect();
        let reasons = if reasons.is_empty() { String::new() } else { format!(" ({})", reasons.join(", ")) };
        text += &format!(
            "{model}: {} mutants: {} killed, {} equivalent{reasons}, {} not killed within the bound, {} alive\n",
            rows.len(),
            count(MutantStatus::Killed),
            count(MutantStatus::Equivalent),
            count(MutantStatus::Unkilled),
            count(MutantStatus::Alive)
        );
    }
    if let Some(bound) = record
        .mutants
        .iter()
        .find_map(|row| row.bound.as_ref().filter(|_| row.status == MutantStatus::Unkilled))
    {
        text += &format!("the bound: {bound}\n");
    }
    text
}
