//! Tests of the herd log: it conforms to a strict grammar, and what the grammar reads are the contents of the record.

use std::collections::BTreeMap;

use pest::Parser;
use pest::iterators::Pair;
use results::wire::{RunLine, VerdictWord};
use results::write::{OutputFormat, TextLayout, new_run_writer};

use crate::lines::run_lines;

#[derive(pest_derive::Parser)]
#[grammar = "../tests/all/herd.pest"]
struct Grammar;

/// A block of a log, as the grammar reads it.
#[derive(Debug, Default)]
pub struct LogBlock {
    name: String,
    expectation: String,
    condition: String,
    hash: Option<String>,
    is_validated: bool,
    /// Numbers of witnesses and of others.
    counts: Vec<u64>,
    /// Values by name, with their count in the log of a run.
    states: Vec<(Option<u64>, BTreeMap<String, String>)>,
}

/// Reads a log of runs (`Rule::log`) or of predictions.
pub fn read_log(form: Rule, text: &str) -> Vec<LogBlock> {
    let log = Grammar::parse(form, text).map_err(|error| format!("{error}\n{text}")).unwrap().next().unwrap();
    let blocks = log.into_inner().filter(|pair| matches!(pair.as_rule(), Rule::block | Rule::prediction));
    blocks.map(read_block).collect()
}

fn read_block(pair: Pair<'_, Rule>) -> LogBlock {
    let mut block = LogBlock::default();
    let text = |pair: &Pair<'_, Rule>| pair.as_str().trim_end().to_owned();
    let numbers = |pair: Pair<'_, Rule>| {
        let numbers = pair.into_inner().filter(|part| part.as_rule() == Rule::number);
        numbers.map(|number| number.as_str().parse().unwrap()).collect::<Vec<u64>>()
    };
    for part in pair.into_inner() {
        match part.as_rule() {
            Rule::header => {
                let words: Vec<String> = part.into_inner().map(|word| text(&word)).collect();
                [block.name, block.expectation] = words.try_into().unwrap();
            }
            Rule::histogram => {
                let states = part.into_inner().filter(|part| part.as_rule() == Rule::state);
                block.states = states.map(read_state).collect();
            }
            Rule::values => block.states.push(read_state(part)),
            Rule::verdict => block.is_validated = text(&part) == "Ok",
            Rule::witnesses | Rule::counts => block.counts = numbers(part),
            Rule::condition | Rule::question => {
                let words = text(&part);
                let words = words.strip_prefix("Condition ").unwrap();
                let words = words.strip_suffix(" validated").unwrap_or(words);
                let words = words.strip_suffix(" is").or(words.strip_suffix(" is NOT")).unwrap_or(words);
                block.condition = words.to_owned();
            }
            Rule::hash => block.hash = text(&part).strip_prefix("Hash=").map(str::to_owned),
            _ => {}
        }
    }
    block
}

fn read_state(pair: Pair<'_, Rule>) -> (Option<u64>, BTreeMap<String, String>) {
    let (mut count, mut values) = (None, BTreeMap::new());
    for part in pair.into_inner() {
        match part.as_rule() {
            Rule::number => count = part.as_str().parse().ok(),
            Rule::binding => {
                let (name, value) = part.as_str().trim_end_matches(';').split_once('=').unwrap();
                values.insert(name.trim_matches(['[', ']']).to_owned(), value.to_owned());
            }
            _ => {}
        }
    }
    (count, values)
}

fn write_log(lines: &[RunLine]) -> String {
    let mut out = Vec::new();
    {
        let mut writer = new_run_writer(OutputFormat::Herd, &mut out, TextLayout::default()).unwrap();
        lines.iter().for_each(|line| writer.write_verdict(line).unwrap());
        writer.finish().unwrap();
    }
    String::from_utf8(out).unwrap()
}

fn hostile_lines() -> Vec<RunLine> {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/all/records/hostile.jsonl");
    results::read::read_results(&path).unwrap().lines
}

#[test]
fn herd_log() {
    insta::assert_snapshot!(write_log(&run_lines()));
}

#[test]
fn the_log_keeps_the_grammar() {
    for lines in [run_lines(), hostile_lines(), Vec::new()] {
        let text = write_log(&lines);
        if let Err(error) = Grammar::parse(Rule::log, &text) {
            panic!("{error}\n{text}");
        }
    }
    assert!(Grammar::parse(Rule::log, "Test x Allowed\n").is_err(), "the grammar refuses something");
}

#[test]
fn the_log_is_read_back() {
    let lines = run_lines();
    let logged: Vec<&RunLine> = lines
        .iter()
        .filter(|line| line.verdict != VerdictWord::Skipped)
        .filter(|line| line.outcomes.iter().any(|outcome| outcome.count > 0))
        .collect();
    let blocks = read_log(Rule::log, &write_log(&lines));
    assert_eq!(blocks.len(), logged.len());
    for (block, line) in blocks.iter().zip(logged) {
        assert_eq!(block.name, line.name);
        assert_eq!(Some(&block.condition), line.question.as_ref());
        let counted: u64 = block.states.iter().filter_map(|(count, _)| *count).sum();
        assert_eq!(counted, line.instances - line.unresolved, "{}", line.id);
        assert_eq!(counted, block.counts.iter().sum::<u64>());
        let witnesses: u64 = line.outcomes.iter().filter(|o| o.witness == Some(true)).map(|o| o.count).sum();
        assert_eq!(block.counts[0], witnesses);
        assert_eq!(block.hash.as_ref(), Some(&line.hashes.test));
        for outcome in line.outcomes.iter().filter(|outcome| outcome.count > 0) {
            let state = block.states.iter().find(|(_, values)| {
                outcome
                    .state
                    .iter()
                    .all(|(name, value)| values.get(name.trim_start_matches('P')) == Some(&value.to_string()))
            });
            assert_eq!(state.unwrap().0, Some(outcome.count));
        }
    }
}

#[test]
fn predictions_are_read_back() {
    let lines = crate::lines::check_lines();
    let text = crate::report::check_report(OutputFormat::Herd);
    insta::assert_snapshot!(text);
    let blocks = read_log(Rule::predictions, &text);
    let answered: Vec<_> = lines
        .iter()
        .flat_map(|line| line.queries.iter().map(move |query| (line, query)))
        .filter(|(_, query)| query.holds.is_some())
        .collect();
    assert_eq!(blocks.len(), answered.len());
    assert!(!answered.is_empty());
    for (block, (line, query)) in blocks.iter().zip(answered) {
        assert_eq!((&block.name, &block.condition), (&line.name, &query.text));
        assert_eq!(Some(block.is_validated), query.holds, "{}", line.id);
        let allowed = line.outcomes.iter().filter(|outcome| outcome.allowed && !outcome.filtered).count();
        assert_eq!(block.states.len(), allowed, "{}", line.id);
    }
}

#[test]
fn predictions_omit_unknown_answers() {
    let block = |line: &results::wire::CheckLine| results::write::herd::format_prediction(line);
    let good = crate::lines::check_lines().remove(0);
    let mut unlisted = good.clone();
    unlisted.outcomes.clear();
    assert!(read_log(Rule::predictions, &block(&unlisted)).is_empty());
    assert!(block(&unlisted).contains("holds; too many states to list"));
    // `Ok` in Khronos logs means that the expectation is met: a `NOSOLUTION` has no witness.
    let mut khronos = good.clone();
    khronos.outcomes.iter_mut().for_each(|outcome| outcome.witness = None);
    let query = |text: &str, holds| results::wire::Query {
        text: text.to_owned(),
        holds: Some(holds),
        expected: None,
    };
    khronos.queries = vec![
        query("SATISFIABLE consistent[X]", true),
        query("NOSOLUTION consistent[X] && #dr>0", true),
        query("NOSOLUTION consistent[X]", false),
    ];
    let blocks: Vec<(String, bool, u64)> = read_log(Rule::predictions, &block(&khronos))
        .into_iter()
        .map(|block| (block.expectation, block.is_validated, block.counts[0]))
        .collect();
    let expected = [("Allowed", true, 1), ("Forbidden", true, 0), ("Forbidden", false, 1)];
    assert_eq!(
        blocks,
        expected.map(|(expectation, validated, positive)| (expectation.to_owned(), validated, positive))
    );
}
