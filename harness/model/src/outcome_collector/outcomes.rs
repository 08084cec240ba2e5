//! Enumerates the outcomes of a leaf's executions, and checks path constraints.

use litmus::Outcome;

use super::{LocationChoice, OutcomeCollector, all_choices};
use crate::search::SearchLeaf;
use crate::valuation::{ReadValues, Valuation, enumerate_valuations, satisfies_constraints, stored_value};

impl OutcomeCollector<'_> {
    /// Visits the outcomes of a leaf's executions until `visit` returns false, at most about `most` of them.
    ///
    /// The flag passed to `visit` is true if the outcome's values come out of thin air. Returns the number of
    /// visited executions; `None` if the budget ran out.
    pub(crate) fn for_each_outcome(
        &self,
        leaf: &SearchLeaf,
        most: u64,
        visit: &mut impl FnMut(&Outcome, bool) -> bool,
    ) -> Option<u64> {
        let choices = leaf.locations.iter().map(|solutions| match self.has_independent_values {
            true => self.observed_choices(solutions),
            false => all_choices(solutions),
        });
        let choices: Vec<Vec<LocationChoice>> = choices.collect();
        let mut visited = 0;
        let mut rf = vec![None; self.skeleton.len()];
        let complete = self.for_each_choice(&choices, &mut rf, &mut Vec::new(), 1, &mut |rf, last, _| {
            let values =
                enumerate_valuations(self.skeleton, rf, self.rules.out_of_thin_air, self.rules.domain);
            let shown = values.iter().filter(|shown| satisfies_constraints(self.skeleton, &shown.values));
            visited += 1;
            let mut continues = visited <= most;
            for Valuation { values, thin_air } in shown {
                continues = continues && visit(&self.to_outcome(values, last), *thin_air);
            }
            continues
        });
        complete.then_some(visited)
    }

    /// Returns true if no values of these partial reads-from edges satisfy the path constraints.
    pub(crate) fn violates_path_constraints(&self, reads_from: &[Option<u16>]) -> bool {
        let skeleton = self.skeleton;
        let mut values: ReadValues = vec![None; skeleton.len()];
        let mut changed = true;
        while changed {
            changed = false;
            for (read, write) in reads_from.iter().enumerate() {
                if let (None, Some(write)) = (values[read], write) {
                    values[read] = stored_value(skeleton, usize::from(*write), &values);
                    changed |= values[read].is_some();
                }
            }
        }
        !satisfies_constraints(skeleton, &values)
    }
}
