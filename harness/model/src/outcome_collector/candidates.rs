//! Outcomes of candidate executions, without the axioms.

use litmus::LocationId;

use super::{
    Findings, MAX_LISTED_OUTCOMES, OutcomeCollector, OutcomeStatus, reads_of, satisfies_constraints,
};
use crate::skeleton::{FinalValueSource, Tags};
use crate::valuation::enumerate_counted_valuations;

/// Number of tried values of a cycle that cost about one step.
const ASSIGNMENTS_PER_STEP: u64 = 8;

/// The source of a read, or the last write to a storage.
#[derive(Clone, Copy)]
enum Choice {
    Source(u16, u16),
    LastWrite(u16),
}

impl OutcomeCollector<'_> {
    /// Adds the outcomes of all candidate executions, without the axioms.
    pub(crate) fn add_candidates(&self, findings: &mut Findings) {
        let reads: Vec<usize> =
            (0..self.skeleton.len()).filter(|&e| self.skeleton.events[e].tags.has(Tags::R)).collect();
        let candidates: Vec<Vec<usize>> =
            reads.iter().map(|read| self.skeleton.candidate_writes(*read)).collect();
        if candidates.iter().any(Vec::is_empty) {
            return;
        }
        // Every permutation of the writes of a storage is a candidate modification order.
        let orders = self.skeleton.storages().iter().fold(1u64, |product, storage| {
            let writes = self.program_writes(*storage).len() as u64;
            product.saturating_mul((1..=writes).fold(1, u64::saturating_mul))
        });
        let executions = candidates.iter().fold(orders, |product, c| product.saturating_mul(c.len() as u64));
        findings.candidate_executions = findings.candidate_executions.saturating_add(executions);
        if !self.skeleton.terminated || findings.unlisted || findings.outcomes.is_fixed {
            return;
        }
        // Skip reads that no final value and no condition depends on.
        let relevant = self.relevant_reads(&reads, &candidates);
        let mut choices: Vec<Vec<Choice>> = Vec::new();
        for (read, writes) in reads.iter().zip(&candidates) {
            if !relevant.contains(read) {
                continue;
            }
            let mut seen = Vec::new();
            let mut distinct = Vec::new();
            for &write in writes {
                let known = self.skeleton.events[write].stored_value.as_ref().and_then(|s| s.known_value());
                // Writes of one known value lead to the same outcomes.
                if known.is_none() || !seen.contains(&known) {
                    seen.push(known);
                    distinct.push(Choice::Source(*read as u16, write as u16));
                }
            }
            choices.push(distinct);
        }
        for observed in &self.skeleton.final_values {
            if let FinalValueSource::LastWrite(storage) = observed {
                let mut writes = self.program_writes(*storage);
                // Without a write, the initial value is the final one.
                if writes.is_empty() {
                    writes = (0..self.skeleton.len())
                        .filter(|&e| self.skeleton.events[e].storage == Some(*storage))
                        .filter(|&e| self.skeleton.events[e].tags.has(Tags::IW))
                        .take(1)
                        .collect();
                }
                choices.push(writes.iter().map(|write| Choice::LastWrite(*write as u16)).collect());
            }
        }
        let outcomes = choices.iter().fold(1usize, |product, c| product.saturating_mul(c.len()));
        if outcomes > MAX_LISTED_OUTCOMES || findings.outcomes.len() > MAX_LISTED_OUTCOMES {
            findings.unlisted = true;
            return;
        }
        // Each candidate takes at least one step.
        if self.tracker.has_less_than(outcomes as u64) {
            findings.timed_out = true;
            return;
        }
        let mut rf = vec![None; self.skeleton.len()];
        self.record_candidates(&choices, &mut rf, &mut Vec::new(), findings);
    }

    fn program_writes(&self, storage: LocationId) -> Vec<usize> {
        (0..self.skeleton.len())
            .filter(|&e| {
                let event = &self.skeleton.events[e];
                event.storage == Some(storage) && event.tags.has(Tags::W) && !event.tags.has(Tags::IW)
            })
            .collect()
    }

    fn relevant_reads(&self, reads: &[usize], candidates: &[Vec<usize>]) -> Vec<usize> {
        let mut open: Vec<u16> = self.observed_reads.clone();
        for constraint in &self.skeleton.constraints {
            open.extend(reads_of(&constraint.left));
            open.extend(reads_of(&constraint.right));
        }
        // Any write may be the last one.
        if self.skeleton.final_values.iter().any(|f| matches!(f, FinalValueSource::LastWrite(_))) {
            for event in &self.skeleton.events {
                open.extend(event.stored_value.as_ref().map(reads_of).unwrap_or_default());
            }
        }
        let mut relevant = Vec::new();
        while let Some(read) = open.pop() {
            let read = usize::from(read);
            if relevant.contains(&read) {
                continue;
            }
            relevant.push(read);
            if let Some(position) = reads.iter().position(|r| *r == read) {
                for write in &candidates[position] {
                    open.extend(
                        self.skeleton.events[*write].stored_value.as_ref().map(reads_of).unwrap_or_default(),
                    );
                }
            }
        }
        relevant
    }

    fn record_candidates(
        &self,
        choices: &[Vec<Choice>],
        rf: &mut Vec<Option<u16>>,
        last: &mut Vec<u16>,
        findings: &mut Findings,
    ) {
        if findings.timed_out || self.tracker.spend(1) {
            findings.timed_out = true;
            return;
        }
        let Some((first, rest)) = choices.split_first() else {
            let (found, tried) = enumerate_counted_valuations(self.skeleton, rf, true, self.rules.domain);
            findings.timed_out |= self.tracker.spend(tried / ASSIGNMENTS_PER_STEP);
            for shown in found {
                if satisfies_constraints(self.skeleton, &shown.values) {
                    let outcome = self.to_outcome(&shown.values, last);
                    findings.outcomes.record_outcome(outcome, OutcomeStatus::Candidate);
                }
            }
            return;
        };
        for choice in first {
            match *choice {
                Choice::Source(read, write) => rf[usize::from(read)] = Some(write),
                Choice::LastWrite(write) => last.push(write),
            }
            self.record_candidates(rest, rf, last, findings);
            match *choice {
                Choice::Source(read, _) => rf[usize::from(read)] = None,
                Choice::LastWrite(_) => {
                    last.pop();
                }
            }
        }
    }
}
