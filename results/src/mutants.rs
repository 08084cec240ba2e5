//! Mutants of a test: weakened tests on which the device may show the outcome that the original forbids.
//!
//! The method is that of MC Mutants (Levine et al., ASPLOS 2023, <https://doi.org/10.1145/3575693.3575750>):
//! a test environment that never shows the outcome on the mutant could not have shown it on the original.

use std::collections::BTreeMap;

use crate::escape;
use crate::wire::{MutantSeen, RunLine, VerdictWord};

/// Verdicts by device and test.
#[derive(Debug, Default)]
pub struct MutantVerdicts<'a>(BTreeMap<(&'a str, &'a str), &'a RunLine>);

impl<'a> MutantVerdicts<'a> {
    /// Indexes these verdicts.
    pub fn from_lines(lines: impl IntoIterator<Item = &'a RunLine>) -> MutantVerdicts<'a> {
        MutantVerdicts(
            lines.into_iter().map(|line| ((line.device.as_str(), line.id.as_str()), line)).collect(),
        )
    }

    /// Returns, for a conforming verdict, how often each mutant that ran on the same device showed the
    /// forbidden outcome.
    pub fn mutant_counts(&self, line: &RunLine) -> Vec<MutantSeen> {
        if line.verdict != VerdictWord::Conforms {
            return Vec::new();
        }
        let ran = line.mutants.iter().filter_map(|id| self.0.get(&(line.device.as_str(), id.as_str())));
        ran.filter(|mutant| mutant.verdict != VerdictWord::Skipped)
            .map(|mutant| MutantSeen {
                id: mutant.id.clone(),
                seen: mutant
                    .outcomes
                    .iter()
                    .filter(|outcome| outcome.witness == Some(true))
                    .fold(0, |sum, outcome| sum.saturating_add(outcome.count)),
                instances: mutant.instances,
            })
            .collect()
    }

    /// Returns a few words beside a verdict: a summary of [`Self::mutant_counts`]; empty if no mutant ran.
    pub fn summarize(&self, line: &RunLine) -> String {
        let all = self.mutant_counts(line);
        match all.iter().filter(|mutant| mutant.seen > 0).count() {
            _ if all.is_empty() => String::new(),
            0 => "nothing seen: weak evidence".to_owned(),
            seen => format!("{seen} of {} mutants seen", all.len()),
        }
    }

    /// Returns a line for each mutant with its counts.
    pub fn describe_counts(&self, line: &RunLine) -> Vec<String> {
        let number = crate::number::format_count;
        let describe = |mutant: MutantSeen| {
            format!(
                "{}: {} of {}",
                escape::escape_line(&mutant.id),
                number(mutant.seen),
                number(mutant.instances)
            )
        };
        self.mutant_counts(line).into_iter().map(describe).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::RunOutcome;

    fn line(id: &str, verdict: VerdictWord, mutants: &[&str]) -> RunLine {
        let mutants = mutants.iter().map(|id| (*id).to_owned()).collect();
        RunLine { id: id.to_owned(), device: "here".to_owned(), verdict, mutants, ..RunLine::default() }
    }

    fn with_witness_count(count: u64, line: RunLine) -> RunLine {
        let outcome = |count, witness| RunOutcome {
            count,
            allowed: true,
            weak: true,
            witness: Some(witness),
            ..RunOutcome::default()
        };
        let outcomes = vec![outcome(70, false), outcome(count, true)];
        RunLine { instances: count + 70, outcomes, ..line }
    }

    #[test]
    fn observed_mutants_are_listed_for_conforming_tests() {
        let lines = [
            line("strong", VerdictWord::Conforms, &["seen", "unseen", "skipped", "elsewhere"]),
            line("blind", VerdictWord::Conforms, &["unseen"]),
            line("alone", VerdictWord::Conforms, &[]),
            line("broken", VerdictWord::Violates, &["seen"]),
            with_witness_count(1234, line("seen", VerdictWord::Undefined, &[])),
            with_witness_count(0, line("unseen", VerdictWord::Conforms, &[])),
            line("skipped", VerdictWord::Skipped, &[]),
            RunLine {
                device: "there".to_owned(),
                ..with_witness_count(5, line("elsewhere", VerdictWord::Conforms, &[]))
            },
        ];
        let mutants = MutantVerdicts::from_lines(&lines);
        let words: Vec<String> = lines.iter().take(4).map(|line| mutants.summarize(line)).collect();
        assert_eq!(words, ["1 of 2 mutants seen", "nothing seen: weak evidence", "", ""]);
        assert_eq!(mutants.describe_counts(&lines[0]), ["seen: 1,234 of 1,304", "unseen: 0 of 70"]);
    }
}
