//! Tests of the herd log: it conforms to a strict grammar and to the reader of this crate.

use pest::Parser;
use results::read::herd::{LogError, parse_log};
use results::wire::{RunLine, VerdictWord};
use results::write::{OutputFormat, TextLayout, new_run_writer};

use crate::lines::run_lines;

#[derive(pest_derive::Parser)]
#[grammar = "../tests/all/herd.pest"]
struct Grammar;

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
    let blocks = parse_log(&write_log(&lines)).unwrap();
    assert_eq!(blocks.len(), logged.len());
    for (block, line) in blocks.iter().zip(logged) {
        assert_eq!(block.name, line.name);
        assert_eq!(Some(&block.condition), line.question.as_ref());
        let counted: u64 = block.states.iter().filter_map(|state| state.count).sum();
        assert_eq!(counted, line.instances - line.unresolved, "{}", line.id);
        assert_eq!(counted, block.positive + block.negative);
        let witnesses: u64 = line.outcomes.iter().filter(|o| o.witness == Some(true)).map(|o| o.count).sum();
        assert_eq!(block.positive, witnesses);
        assert_eq!(block.hash.as_ref(), Some(&line.hashes.test));
        for outcome in line.outcomes.iter().filter(|outcome| outcome.count > 0) {
            let state = block.states.iter().find(|state| {
                outcome.state.iter().all(|(name, value)| {
                    state.values.get(name.trim_start_matches('P')) == Some(&value.to_string())
                })
            });
            assert_eq!(state.unwrap().count, Some(outcome.count));
        }
    }
}

/// Logs of herd7 and litmus7, taken from their manuals.
#[test]
fn logs_of_other_tools_are_read() {
    let herd = "Test SB Allowed\nStates 2\n0:EAX=0; 1:EAX=0;\n0:EAX=0; 1:EAX=1;\nOk\nWitnesses\n\
                Positive: 1 Negative: 1\nFlag x\nCondition exists (0:EAX=0 /\\ 1:EAX=0)\n\
                Observation SB Sometimes 1 1\nTime SB 0.01\nHash=7dbd6b8e6dd4abc2ef3d48b0376fb2e3\n";
    let block = &parse_log(herd).unwrap()[0];
    assert_eq!((block.states.len(), block.positive, block.states[0].count), (2, 1, None));
    let litmus7 = "%%%%\n% Results for sb.litmus %\n%%%%\nX86 SB\n{x=0; y=0;}\n P0 | P1 ;\n\nGenerated assembler\n\
                   Test SB Allowed\nHistogram (2 states)\n11    *>0:EAX=0; 1:EAX=0;\n499985:>0:EAX=1; 1:EAX=0;\nOk\n\n\
                   Witnesses\nPositive: 11, Negative: 499985\nCondition exists (0:EAX=0 /\\ 1:EAX=0) is validated\n\
                   Hash=2d53\nObservation SB Sometimes 11 499985\nTime SB 0.11\n";
    let block = &parse_log(litmus7).unwrap()[0];
    assert_eq!((block.negative, block.seconds, block.states[0].witness), (499_985, Some(0.11), true));
}

#[test]
fn an_inconsistent_log_is_refused_with_its_line() {
    let good = write_log(&run_lines()[..1]);
    let line = |text: &str| -> LogError { parse_log(text).unwrap_err() };
    assert_eq!(line(&good.replace("Histogram (4", "Histogram (5")).line, 10);
    assert_eq!(line(&good.replace("Sometimes", "Never")).line, 16);
    assert!(line(&good.replace("Positive: 93214", "Positive: 93215")).line > 10);
    let cut = good.split_once("Witnesses").unwrap().0;
    assert!(line(cut).what.contains("no witnesses"));
    assert!(line("Test x Allowed\n").what.contains("ends before"));
}

#[test]
fn predictions_are_read_back() {
    let lines = crate::lines::check_lines();
    let text = crate::report::check_report(OutputFormat::Herd);
    insta::assert_snapshot!(text);
    let blocks = parse_log(&text).unwrap();
    let answered: Vec<_> = lines
        .iter()
        .flat_map(|line| line.queries.iter().map(move |query| (line, query)))
        .filter(|(_, query)| query.holds.is_some())
        .collect();
    assert_eq!(blocks.len(), answered.len());
    assert!(!answered.is_empty());
    for (block, (line, query)) in blocks.iter().zip(answered) {
        assert_eq!((&block.name, &block.condition), (&line.name, &query.text));
        assert_eq!(Some(block.validated), query.holds, "{}", line.id);
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
    assert!(parse_log(&block(&unlisted)).unwrap().is_empty());
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
    let blocks: Vec<(String, bool, u64)> = parse_log(&block(&khronos))
        .unwrap()
        .into_iter()
        .map(|block| (block.expectation, block.validated, block.positive))
        .collect();
    let expected = [("Allowed", true, 1), ("Forbidden", true, 0), ("Forbidden", false, 1)];
    assert_eq!(
        blocks,
        expected.map(|(expectation, validated, positive)| (expectation.to_owned(), validated, positive))
    );
}
