//! RMW chains as clauses: the value bounds that follow from the order of the chain.

use litmus::Value;

use super::{Refuter, RelationTerm};
use crate::line::RmwChain;
use crate::matrix::Matrix;
use crate::sat::Solver;
use crate::valuation::stored_value;

/// For an RMW: the values that it may read, in ascending order, each with the value that it then writes.
type Rises = Vec<(Value, Value)>;

impl<M: Matrix, S: Solver> Refuter<'_, M, S> {
    /// Encodes the values of each RMW chain.
    pub(super) fn demand_lines(&mut self) {
        let domains = self.domains.clone();
        domains.lines.iter().for_each(|line| self.demand_rising(line));
    }

    /// Encodes that later RMWs read at least what earlier ones wrote, if each write is monotone and at least
    /// the value read.
    ///
    /// By induction over the RMWs between two of them. So an RMW that reads a value that needs all others
    /// comes after them.
    fn demand_rising(&mut self, line: &RmwChain) {
        let Some(rises) = self.rises(line) else { return };
        self.demand_each(line, &rises);
        let mut at_least: Vec<Vec<(Value, RelationTerm)>> = Vec::new();
        for ((read, _), rises) in line.rmw_events.iter().zip(&rises) {
            let returned = self.returned(*read);
            let mut terms = Vec::new();
            let mut above = RelationTerm::No;
            for (value, _) in rises.iter().rev() {
                let is = returned
                    .iter()
                    .find(|(other, _)| other == value)
                    .map_or(RelationTerm::No, |(_, term)| *term);
                // `above` means "reads at least this value": a suffix disjunction, built from the
                // largest value down. For the smallest value it is always true.
                above = if terms.len() + 1 == rises.len() {
                    RelationTerm::Yes
                } else {
                    self.any(false, &[is, above])
                };
                terms.push((*value, above));
            }
            terms.reverse();
            at_least.push(terms);
        }
        for (one, (_, first)) in line.rmw_events.iter().enumerate() {
            for (other, (_, second)) in line.rmw_events.iter().enumerate() {
                if one == other {
                    continue;
                }
                let before = self.ordered(*first, *second);
                for ((_, written), (_, found)) in rises[one].iter().zip(&at_least[one]) {
                    let enough = at_least[other].iter().find(|(value, _)| value >= written);
                    let enough = enough.map_or(RelationTerm::No, |(_, term)| *term);
                    self.implies(&[before, *found], enough);
                }
            }
        }
    }

    /// Encodes that some RMW reads every intermediate value, if all increments are equal.
    fn demand_each(&mut self, line: &RmwChain, rises: &[Rises]) {
        let steps = rises.iter().flatten().map(|(found, written)| written.0 - found.0);
        let (least, most) =
            steps.fold((u64::MAX, 0), |(least, most), step| (least.min(step), most.max(step)));
        // With equal increments, the n-th RMW of the chain reads the initial value plus n steps. So
        // each of these values is read by exactly one RMW.
        let first = stored_value(self.skeleton, line.initial, &vec![None; self.skeleton.len()]);
        let Some(Value(first)) = first.filter(|_| least == most && least > 0) else { return };
        for number in
            (first..).step_by(usize::try_from(least).unwrap_or(usize::MAX)).take(line.rmw_events.len())
        {
            let mut finders = Vec::new();
            for (read, _) in &line.rmw_events {
                let returned = self.returned(*read);
                finders.extend(returned.iter().filter(|(value, _)| value.0 == number).map(|(_, term)| *term));
            }
            let some = self.any(false, &finders);
            self.implies(&[!some], RelationTerm::No);
        }
    }

    /// Returns the value that each RMW stores for each value that it may read; `None` if some RMW does not
    /// increase it.
    fn rises(&self, line: &RmwChain) -> Option<Vec<Rises>> {
        let mut known = vec![None; self.skeleton.len()];
        let each = line.rmw_events.iter().map(|(read, write)| {
            let mut found = self.domains.returned(*read).to_vec();
            found.sort_unstable();
            let mut rises = Rises::new();
            for value in found {
                known[*read] = Some(value);
                let written = stored_value(self.skeleton, *write, &known)?;
                // The induction needs a monotone function: a larger value read must not lead to a
                // smaller value written.
                let more = rises.last().is_none_or(|(_, less)| *less <= written);
                rises.push((written >= value && more).then_some((value, written))?);
            }
            Some(rises)
        });
        each.collect()
    }
}
