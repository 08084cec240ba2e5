//! Queries to the SAT encoding: the goal as a term, and the evidence for the answer.

use litmus::{Outcome, ResolvedCondition, Value};

use super::values::Domains;
use super::{Refuter, RelationTerm};
use crate::cat::Axiom;
use crate::choice::{axiom_possible, fix_next, fix_read};
use crate::combine::{ExecutionGoal, OutcomeCollector, ValueConstraint};
use crate::flags::Flags;
use crate::matrix::Matrix;
use crate::prepared::PreparedPlan;
use crate::sat::{Literal, Solver};
use crate::skeleton::{FinalValue, Skeleton};
use crate::symmetry::{comparisons, observed};
use crate::valuation::{constraints_met, reads_of, valuations};

/// The strongest evidence for an execution of the goal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum GoalEvidence {
    /// No such execution exists.
    Never,
    /// One exists, with values that depend on themselves.
    OutOfThinAir,
    /// One exists without such values.
    Grounded,
}

/// Returns the flags that executions without self-dependent values raise.
pub(crate) fn known(raised: &[(Flags, GoalEvidence)]) -> Flags {
    let mut known = Flags::default();
    raised
        .iter()
        .filter(|(_, shown)| *shown == GoalEvidence::Grounded)
        .for_each(|(flags, _)| known.add(*flags));
    known
}

/// Values of reads and of last writes, with the terms that they stand for.
#[derive(Clone)]
struct Combination {
    given: Vec<RelationTerm>,
    /// The values that are last writes, by the number of the observable.
    last: Vec<(usize, Value)>,
}

/// A predicate on the final values with these indices.
type Test<'t> = dyn Fn(&[Value]) -> bool + 't;

impl Domains {
    /// Returns true if every query about the final values can be encoded.
    pub(crate) fn can_ask(&self, skeleton: &Skeleton, combiner: &OutcomeCollector<'_>) -> bool {
        let reads = |index: usize| match skeleton.finals.get(index) {
            Some(FinalValue::Expression(expression)) => reads_of(expression),
            _ => Vec::new(),
        };
        let mut can = (0..skeleton.finals.len()).all(|index| self.can_combine(&reads(index)));
        for condition in [&combiner.filter, &combiner.condition] {
            comparisons(condition, &mut |indexes| {
                let all: Vec<u16> = indexes.iter().flat_map(|index| reads(*index)).collect();
                can &= self.can_combine(&all);
            });
        }
        can
    }
}

impl<M: Matrix, S: Solver> Refuter<'_, M, S> {
    /// Finds a consistent execution, with `flag` one that raises the flag; `None` if the budget ran out.
    fn look(
        &mut self,
        combiner: &OutcomeCollector<'_>,
        sought: ExecutionGoal<'_>,
        flag: Option<(usize, Literal)>,
    ) -> Option<GoalEvidence> {
        let holds = self.sought(combiner, sought);
        self.define_values();
        let mut assumed: Vec<Literal> = flag.iter().map(|(_, literal)| *literal).collect();
        match holds {
            RelationTerm::No => return Some(GoalEvidence::Never),
            RelationTerm::Yes => {}
            RelationTerm::If(literal) => assumed.push(literal),
        }
        // Symmetry breaking is sound only for goals that all executions of an orbit share. A
        // conjunct and an outcome name threads.
        let any_alike = match sought {
            ExecutionGoal::Any | ExecutionGoal::InFilter => true,
            ExecutionGoal::ConditionIs(_) => combiner.alike.preserves_condition,
            ExecutionGoal::Violates(_) | ExecutionGoal::Outcome(_) => false,
        };
        assumed.extend(self.first_alike.filter(|_| any_alike));
        if self.solver.is_spent() {
            return None;
        }
        // First try executions in which no value depends on itself.
        let grounded: Vec<Literal> = self.grounded.into_iter().collect();
        for also in [Some(grounded.as_slice()), (!grounded.is_empty()).then_some(&[])].into_iter().flatten() {
            let mut all: Vec<Literal> = assumed.iter().chain(also).copied().collect();
            let mut only = None;
            while self.solver.solve(&all)? {
                // Check the execution that the solver found, so that no answer rests on the clauses alone.
                let shown = self.shows(combiner, sought, flag.map(|(axiom, _)| axiom));
                debug_assert!(shown != Some(GoalEvidence::Never), "the clauses say what the axioms say");
                match shown {
                    Some(GoalEvidence::Never) => return None,
                    Some(shown) => return Some(shown),
                    // A value cycle permits more values than are tried. Another query may be satisfied by the
                    // tried ones.
                    None => {
                        // The blocking clauses hold under a fresh assumption. Later queries do not
                        // assume it, so for them these executions are not excluded.
                        let here = *only.get_or_insert_with(|| self.solver.variable());
                        if !all.contains(&here) {
                            all.push(here);
                        }
                        self.exclude_reads(here);
                    }
                }
            }
        }
        Some(GoalEvidence::Never)
    }

    /// Finds a consistent execution of the goal; `None` if the budget ran out.
    ///
    /// With `raised`, it looks only for executions that raise further flags, and adds these flags with their
    /// evidence.
    pub(crate) fn ask(
        &mut self,
        combiner: &OutcomeCollector<'_>,
        sought: ExecutionGoal<'_>,
        raised: Option<&mut Vec<(Flags, GoalEvidence)>>,
    ) -> Option<GoalEvidence> {
        // An encoding that was built after the budget ran out is incomplete.
        if self.solver.is_spent() {
            return None;
        }
        let Some(raised) = raised else { return self.look(combiner, sought, None) };
        let mut best = GoalEvidence::Never;
        for flag in self.flags.clone() {
            let mut more = Flags::default();
            more.raise_axiom(&self.prepared.plan.axioms[flag.0]);
            if known(raised).lacks_any_of(more) {
                let shown = self.look(combiner, sought, Some(flag))?;
                if shown > GoalEvidence::Never {
                    raised.push((more, shown));
                }
                best = best.max(shown);
            }
        }
        Some(best)
    }

    /// Excludes executions with the reads-from edges and the last writes of the solver's current one, conditional
    /// on the literal.
    fn exclude_reads(&mut self, here: Literal) {
        // The values that `shows` tries follow from reads-from, and the final values of storages
        // from the last writes; nothing else of the write order matters.
        let chosen = self.sources.values().flatten().map(|(_, literal)| *literal);
        let mut clause: Vec<Literal> = chosen.filter(|literal| self.solver.holds(*literal)).collect();
        for last in &self.skeleton.finals {
            let FinalValue::LastWrite(storage) = last else { continue };
            let writes = self.writes(Some(*storage));
            let before = |from: &usize, to: &usize| super::precedes(&self.orders, *from, *to);
            let follows_all = |write: &&usize| {
                let others = writes.iter().filter(|other| other != write);
                others.filter_map(|other| before(other, write)).all(|literal| self.solver.holds(literal))
            };
            if let Some(write) = writes.iter().find(follows_all) {
                let others = writes.iter().filter(|other| *other != write);
                clause.extend(others.filter_map(|other| before(other, write)));
            }
        }
        clause.sort_unstable();
        clause.dedup();
        let mut clause: Vec<Literal> = clause.into_iter().map(|literal| !literal).collect();
        clause.push(!here);
        self.solver.clause(&clause);
    }

    /// Checks the execution that the solver found: consistent, raises the flag and meets the goal, by the
    /// plan and its values.
    ///
    /// Returns `None` if none of the tried values fits.
    fn shows(
        &self,
        combiner: &OutcomeCollector<'_>,
        sought: ExecutionGoal<'_>,
        flag: Option<usize>,
    ) -> Option<GoalEvidence> {
        let PreparedPlan { plan, rf, co, .. } = self.prepared;
        let mut bounds = self.ground.bounds.clone();
        let mut reads_from = vec![None; self.skeleton.len()];
        for choice in &self.ground.reads {
            let sources = self.sources.get(&choice.read).map_or(&[][..], Vec::as_slice);
            let chosen =
                sources.iter().find(|(_, literal)| self.solver.holds(*literal)).map(|(write, _)| *write);
            // A read that no clause mentions has no literals. Its source is irrelevant to the
            // axioms, so any candidate completes the execution.
            let Some(write) = chosen.or(choice.candidates.first().copied()) else {
                return Some(GoalEvidence::Never);
            };
            reads_from[choice.read] = Some(write as u16);
            rf.iter().for_each(|id| fix_read(&mut bounds, *id, choice.read, write));
        }
        let mut last = Vec::new();
        for storage in &self.ground.storages {
            let mut writes = self.writes(Some(*storage));
            // The rank of a write in the solver's total order: the number of writes that precede
            // it.
            writes.sort_by_cached_key(|write| {
                let earlier = |other: &&usize| {
                    super::precedes(&self.orders, **other, *write)
                        .is_some_and(|literal| self.solver.holds(literal))
                };
                let all = self.writes(Some(*storage));
                all.iter().filter(|other| *other != write).filter(earlier).count()
            });
            for (index, write) in writes.iter().enumerate() {
                co.iter().for_each(|id| fix_next(&mut bounds, *id, *write, &writes[index + 1..]));
            }
            last.extend(writes.last().copied().or_else(|| self.initial_write(*storage)).map(|w| w as u16));
        }
        bounds.evaluate_all(plan);
        let holds = |(index, axiom): (usize, &Axiom)| {
            axiom.flag && flag != Some(index) || axiom_possible(axiom, &bounds)
        };
        if !plan.axioms.iter().enumerate().all(holds) {
            return Some(GoalEvidence::Never);
        }
        let rules = &combiner.rules;
        let values = valuations(self.skeleton, &reads_from, rules.out_of_thin_air, rules.domain);
        let shown = values
            .iter()
            .filter(|shown| constraints_met(self.skeleton, &shown.values))
            .filter(|shown| combiner.is_goal_met(sought, &combiner.to_outcome(&shown.values, &last)));
        shown.map(|v| if v.thin_air { GoalEvidence::OutOfThinAir } else { GoalEvidence::Grounded }).max()
    }

    /// Returns a term that implies the goal.
    fn sought(&mut self, combiner: &OutcomeCollector<'_>, sought: ExecutionGoal<'_>) -> RelationTerm {
        let mut terms = Vec::new();
        if !matches!(sought, ExecutionGoal::Any | ExecutionGoal::Outcome(_)) {
            terms.push(self.condition(&combiner.filter, true));
        }
        match sought {
            ExecutionGoal::Any | ExecutionGoal::InFilter => {}
            ExecutionGoal::ConditionIs(wanted) => terms.push(self.condition(&combiner.condition, wanted)),
            ExecutionGoal::Violates(part) => terms.push(match combiner.negated_conjunct(part) {
                Some((index, demand)) => self.demanded(index, demand),
                None => RelationTerm::No,
            }),
            ExecutionGoal::Outcome(Outcome(values)) => {
                for (index, value) in values.iter().enumerate() {
                    terms.push(self.demanded(index, ValueConstraint::Value(*value)));
                }
            }
        }
        self.all(&terms)
    }

    fn demanded(&mut self, index: usize, demand: ValueConstraint) -> RelationTerm {
        self.finals_meet(&[index], &|values| values.first().is_some_and(|value| demand.allows(*value)))
    }

    /// Returns a term that implies that the condition has the wanted value.
    fn condition(&mut self, condition: &ResolvedCondition, wanted: bool) -> RelationTerm {
        match condition {
            ResolvedCondition::Known(holds) if *holds == wanted => RelationTerm::Yes,
            ResolvedCondition::Known(_) => RelationTerm::No,
            ResolvedCondition::Not(inner) => self.condition(inner, !wanted),
            ResolvedCondition::And(both) | ResolvedCondition::Or(both) => {
                let sides = [self.condition(&both.0, wanted), self.condition(&both.1, wanted)];
                // De Morgan: a violated disjunction is a conjunction of violated sides.
                if matches!(condition, ResolvedCondition::And(_)) == wanted {
                    self.all(&sides)
                } else {
                    self.any(false, &sides)
                }
            }
            ResolvedCondition::Compare(left, _, right) => {
                let indexes = observed([*left, *right]);
                self.finals_meet(&indexes, &|values| {
                    let value = |index| {
                        indexes.iter().position(|i| *i == index).and_then(|at| values.get(at).copied())
                    };
                    condition.evaluate_partial(&mut { value }) == Some(wanted)
                })
            }
        }
    }

    /// Returns a term that implies that these final values satisfy the predicate.
    fn finals_meet(&mut self, indexes: &[usize], test: &Test<'_>) -> RelationTerm {
        let skeleton = self.skeleton;
        let reads: Vec<u16> = indexes
            .iter()
            .flat_map(|index| match skeleton.finals.get(*index) {
                Some(FinalValue::Expression(expression)) => reads_of(expression),
                _ => Vec::new(),
            })
            .collect();
        let mut last = Vec::new();
        for index in indexes {
            if let Some(FinalValue::LastWrite(storage)) = skeleton.finals.get(*index) {
                last.push((*index, self.final_values(*storage)));
            }
        }
        let mut literal = None;
        let mut always = true;
        self.for_each_combination(&reads, &mut |me, given, known| {
            let mut open: Vec<Combination> = vec![Combination { given: given.to_vec(), last: Vec::new() }];
            for (index, terms) in &last {
                let next = open.iter().flat_map(|combination| {
                    terms.iter().map(|(value, term)| {
                        let mut next = combination.clone();
                        next.given.push(*term);
                        next.last.push((*index, *value));
                        next
                    })
                });
                open = next.collect();
            }
            for Combination { mut given, last } in open {
                let value = |index: &usize| match &skeleton.finals[*index] {
                    FinalValue::Expression(expression) => expression.evaluate(&mut |read| known(read)),
                    FinalValue::LastWrite(_) => last.iter().find(|(i, _)| i == index).map(|(_, v)| *v),
                };
                let values: Option<Vec<Value>> = indexes.iter().map(value).collect();
                if !values.is_some_and(|values| test(&values)) {
                    always = false;
                    // The literal is one-sided: it excludes every combination that fails the test.
                    // If nothing fails, no literal is needed.
                    given.push(RelationTerm::If(*literal.get_or_insert_with(|| me.solver.variable())));
                    me.implies(&given, RelationTerm::No);
                }
            }
        });
        match literal {
            _ if always => RelationTerm::Yes,
            Some(literal) => RelationTerm::If(literal),
            None => RelationTerm::No,
        }
    }
}
