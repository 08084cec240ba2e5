//! What is found out about one skeleton, and in which way: all of its executions where these are few enough, otherwise one
//! question after the other, each only until it is answered.

use litmus::Outcome;

use crate::PredictError;
use crate::combine::{Combiner, Findings, Sought};
use crate::few::Few;
use crate::matrix::Matrix;
use crate::prepared::Prepared;
use crate::search::{Flags, Goal, Ground, Leaf, Search};
use crate::skeleton::Skeleton;

/// How many steps the search for all executions may take before single questions are asked instead.
const STEPS: u64 = 20_000;

/// Adds what the executions of a skeleton show.
pub(crate) fn explore<M: Matrix>(
    skeleton: &Skeleton,
    prepared: &Prepared,
    combiner: &Combiner<'_>,
    findings: &mut Findings,
) -> Result<(), PredictError> {
    if let Some(few) = Few::<M>::new(skeleton, prepared, combiner)? {
        few.add(skeleton, prepared, combiner, findings);
        return Ok(());
    }
    combiner.add_candidates(findings);
    let ground = Ground::<M>::new(skeleton, prepared)?;
    // Where outcomes are not listed, all executions are too many from the start; values that depend on each other leave no
    // other way.
    if !findings.unlisted || !combiner.plain {
        let mut search =
            Search::new(skeleton, prepared, &ground, skeleton.observed_storages(), combiner.deadline);
        if combiner.plain {
            search.limit(STEPS);
        }
        let complete = search.run(&mut combiner.collect(findings));
        if complete || !search.gave_up() {
            findings.timed_out |= !complete;
            return Ok(());
        }
    }
    // From here on executions are no longer counted.
    let mut raised = findings.raised;
    let mut ask = |sought: Sought<'_>, flags: Option<&mut Flags>| match find(
        skeleton, prepared, &ground, combiner, sought, flags,
    ) {
        Some(found) => found,
        None => {
            findings.timed_out = true;
            false
        }
    };
    ask(Sought::Kept, Some(&mut raised));
    if skeleton.terminated {
        let (mut meets, mut misses) = (findings.meets, findings.misses);
        meets = meets || ask(Sought::Answer(true), None);
        misses = misses || ask(Sought::Answer(false), None);
        let mut allowed: Vec<Outcome> = Vec::new();
        if !findings.unlisted {
            for outcome in findings.candidates.difference(&findings.allowed) {
                let shown = find(skeleton, prepared, &ground, combiner, Sought::Outcome(outcome), None);
                match shown {
                    Some(true) => allowed.push(outcome.clone()),
                    Some(false) => {}
                    None => {
                        findings.timed_out = true;
                        break;
                    }
                }
            }
        }
        findings.allowed.extend(allowed);
        (findings.meets, findings.misses) = (meets, misses);
    }
    findings.raised = raised;
    Ok(())
}

/// Whether some consistent execution of the skeleton is looked for; `None` when the time was up before that was known. With
/// `flags` those are looked for that raise others than these, and what they raise is added.
pub(crate) fn find<M: Matrix>(
    skeleton: &Skeleton,
    prepared: &Prepared,
    ground: &Ground<M>,
    combiner: &Combiner<'_>,
    sought: Sought<'_>,
    flags: Option<&mut Flags>,
) -> Option<bool> {
    let mut search = Search::new(skeleton, prepared, ground, skeleton.observed_storages(), combiner.deadline);
    if combiner.plain {
        let Some((reads, alike)) = combiner.sources(&ground.reads, sought) else { return Some(false) };
        search.restrict(reads, alike);
    }
    let mut goal = Find { combiner, sought, flags, found: false, timed_out: false };
    let complete = search.run(&mut goal);
    (goal.found || complete && !goal.timed_out).then_some(goal.found)
}

struct Find<'c, 'a, 'f> {
    combiner: &'c Combiner<'a>,
    sought: Sought<'c>,
    flags: Option<&'f mut Flags>,
    found: bool,
    timed_out: bool,
}

impl Goal for Find<'_, '_, '_> {
    fn wants(&mut self, flags: Flags, reads_from: &[Option<u16>]) -> bool {
        let open = match &self.flags {
            Some(raised) => raised.misses(flags),
            None => !self.found,
        };
        open && self.combiner.meets_so_far(self.sought, reads_from, &[]) != Some(false)
    }

    fn take(&mut self, leaf: Leaf) {
        match self.combiner.finds(&leaf, self.sought) {
            Some(true) => {
                self.found = true;
                if let Some(raised) = &mut self.flags {
                    raised.add(leaf.flagged);
                }
            }
            Some(false) => {}
            None => self.timed_out = true,
        }
    }
}
