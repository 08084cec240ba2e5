//! Storages that are only counted on, as clauses: what the axioms say of them at length, and what follows of their values.

use litmus::Value;

use super::{Refuter, Term};
use crate::line::RmwChain;
use crate::matrix::Matrix;
use crate::sat::Solver;
use crate::valuation::stored_value;

/// For a read-modify-write the values that it may find, ascending, with what it writes then.
type Rises = Vec<(Value, Value)>;

impl<M: Matrix, S: Solver> Refuter<'_, M, S> {
    /// Says of each read-modify-write of a line that it reads what the one before it wrote. These clauses follow from the axioms, and
    /// without them a solver finds them one order of writes after the other.
    pub(super) fn demand_lines(&mut self) {
        let domains = self.domains.clone();
        for line in &domains.lines {
            for (read, write) in &line.rmw_events {
                for (source, reads) in self.sources_of(*read) {
                    if source != line.initial {
                        let before = self.ordered(source, *write);
                        self.implies(&[reads], before);
                    }
                    for (_, other) in
                        line.rmw_events.iter().filter(|(_, other)| other != write && *other != source)
                    {
                        let behind =
                            if source == line.initial { Term::Yes } else { self.ordered(source, *other) };
                        let after = self.ordered(*write, *other);
                        self.implies(&[reads, behind], after);
                    }
                }
            }
            self.demand_rising(line);
        }
    }

    /// Where every write is at least what was read, and the more the more that was, whoever comes later finds at least what the earlier
    /// one wrote: by induction over those between them. So a number that needs all others before it has them there.
    fn demand_rising(&mut self, line: &RmwChain) {
        let Some(rises) = self.rises(line) else { return };
        self.demand_each(line, &rises);
        let mut at_least: Vec<Vec<(Value, Term)>> = Vec::new();
        for ((read, _), rises) in line.rmw_events.iter().zip(&rises) {
            let returned = self.returned(*read);
            let mut terms = Vec::new();
            let mut above = Term::No;
            for (value, _) in rises.iter().rev() {
                let is =
                    returned.iter().find(|(other, _)| other == value).map_or(Term::No, |(_, term)| *term);
                above = if terms.len() + 1 == rises.len() { Term::Yes } else { self.any(&[is, above]) };
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
                    let enough = enough.map_or(Term::No, |(_, term)| *term);
                    self.implies(&[before, *found], enough);
                }
            }
        }
    }

    /// Where every write adds the same, every number on the way is found by somebody.
    fn demand_each(&mut self, line: &RmwChain, rises: &[Rises]) {
        let steps = rises.iter().flatten().map(|(found, written)| written.0 - found.0);
        let (least, most) =
            steps.fold((u64::MAX, 0), |(least, most), step| (least.min(step), most.max(step)));
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
            let some = self.any(&finders);
            self.implies(&[!some], Term::No);
        }
    }

    /// What each link makes of what it may find; `None` where something does not rise.
    fn rises(&self, line: &RmwChain) -> Option<Vec<Rises>> {
        let mut known = vec![None; self.skeleton.len()];
        let each = line.rmw_events.iter().map(|(read, write)| {
            let mut found = self.domains.returned(*read).to_vec();
            found.sort_unstable();
            let mut rises = Rises::new();
            for value in found {
                known[*read] = Some(value);
                let written = stored_value(self.skeleton, *write, &known)?;
                let more = rises.last().is_none_or(|(_, less)| *less <= written);
                rises.push((written >= value && more).then_some((value, written))?);
            }
            Some(rises)
        });
        each.collect()
    }
}
