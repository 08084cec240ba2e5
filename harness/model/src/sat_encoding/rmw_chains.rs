//! RMW chains as clauses: the value bounds that follow from the order of the chain.

use litmus::Value;

use super::{BooleanTerm, SatEncoding};
use crate::matrix::Matrix;
use crate::rmw_chain::RmwChain;
use crate::valuation::stored_value;
use solver::SatSolver;

/// For an RMW: the values that it may read, in ascending order, each with the value that it then writes.
type ValueSteps = Vec<(Value, Value)>;

impl<M: Matrix, S: SatSolver> SatEncoding<'_, M, S> {
    /// Encodes the values of each RMW chain.
    pub(super) fn encode_rmw_chains(&mut self) {
        let domains = self.domains.clone();
        domains.rmw_chains.iter().for_each(|chain| self.encode_increasing_chain(chain));
    }

    /// Encodes that later RMWs read at least what earlier ones wrote, if each write is monotone and at least
    /// the value read.
    ///
    /// By induction over the RMWs between two of them. So an RMW that reads a value that needs all others
    /// comes after them.
    fn encode_increasing_chain(&mut self, chain: &RmwChain) {
        let Some(value_steps) = self.value_steps(chain) else { return };
        self.encode_equal_increments(chain, &value_steps);
        let mut at_least: Vec<Vec<(Value, BooleanTerm)>> = Vec::new();
        for ((read, _), steps) in chain.rmw_events.iter().zip(&value_steps) {
            let returned = self.returned_value_terms(*read);
            let mut terms = Vec::new();
            let mut above = BooleanTerm::False;
            for (value, _) in steps.iter().rev() {
                let term = returned
                    .iter()
                    .find(|(other, _)| other == value)
                    .map_or(BooleanTerm::False, |(_, term)| *term);
                // `above` means "reads at least this value": a suffix disjunction, built from the
                // largest value down. For the smallest value it is always true.
                above = if terms.len() + 1 == steps.len() {
                    BooleanTerm::True
                } else {
                    self.encode_any(false, &[term, above])
                };
                terms.push((*value, above));
            }
            terms.reverse();
            at_least.push(terms);
        }
        for (one, (_, first)) in chain.rmw_events.iter().enumerate() {
            for (other, (_, second)) in chain.rmw_events.iter().enumerate() {
                if one == other {
                    continue;
                }
                let before = self.order_term(*first, *second);
                for ((_, written), (_, found)) in value_steps[one].iter().zip(&at_least[one]) {
                    let enough = at_least[other].iter().find(|(value, _)| value >= written);
                    let enough = enough.map_or(BooleanTerm::False, |(_, term)| *term);
                    self.add_implication(&[before, *found], enough);
                }
            }
        }
    }

    /// Encodes that some RMW reads every intermediate value, if all increments are equal.
    fn encode_equal_increments(&mut self, chain: &RmwChain, value_steps: &[ValueSteps]) {
        let steps = value_steps.iter().flatten().map(|(found, written)| written.0 - found.0);
        let (least, most) =
            steps.fold((u64::MAX, 0), |(least, most), step| (least.min(step), most.max(step)));
        // With equal increments, the n-th RMW of the chain reads the initial value plus n steps. So
        // each of these values is read by exactly one RMW.
        let first = stored_value(self.skeleton, chain.initial, &vec![None; self.skeleton.len()]);
        let Some(Value(first)) = first.filter(|_| least == most && least > 0) else { return };
        for number in
            (first..).step_by(usize::try_from(least).unwrap_or(usize::MAX)).take(chain.rmw_events.len())
        {
            let mut readers = Vec::new();
            for (read, _) in &chain.rmw_events {
                let returned = self.returned_value_terms(*read);
                readers.extend(returned.iter().filter(|(value, _)| value.0 == number).map(|(_, term)| *term));
            }
            let some = self.encode_any(false, &readers);
            self.add_implication(&[!some], BooleanTerm::False);
        }
    }

    /// Returns the value that each RMW stores for each value that it may read; `None` if some RMW does not
    /// increase it.
    fn value_steps(&self, chain: &RmwChain) -> Option<Vec<ValueSteps>> {
        let mut known = vec![None; self.skeleton.len()];
        let each = chain.rmw_events.iter().map(|(read, write)| {
            let mut found = self.domains.returned_values(*read).to_vec();
            found.sort_unstable();
            let mut steps = ValueSteps::new();
            for value in found {
                known[*read] = Some(value);
                let written = stored_value(self.skeleton, *write, &known)?;
                // The induction needs a monotone function: a larger value read must not lead to a
                // smaller value written.
                let is_monotone = steps.last().is_none_or(|(_, less)| *less <= written);
                steps.push((written >= value && is_monotone).then_some((value, written))?);
            }
            Some(steps)
        });
        each.collect()
    }
}
