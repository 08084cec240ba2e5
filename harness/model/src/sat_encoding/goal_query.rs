//! Queries to the SAT encoding: the goal as a term, and the evidence for the answer.

use litmus::{Outcome, ResolvedCondition, Value};

use super::values::EventDomains;
use super::{BooleanTerm, SatEncoding};
use crate::cat::Axiom;
use crate::choice::{fix_next_write, fix_read_source, is_axiom_possible};
use crate::flags::Flags;
use crate::matrix::Matrix;
use crate::outcome_collector::{ExecutionGoal, OutcomeCollector, ValueConstraint};
use crate::prepared::PreparedPlan;
use crate::skeleton::{FinalValueSource, Skeleton};
use crate::symmetry::{for_each_comparison, observed_indices};
use crate::valuation::{enumerate_valuations, reads_of, satisfies_constraints};
use solver::{Literal, SatSolver};

/// The strongest evidence for an execution of the goal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum GoalEvidence {
    /// No such execution exists.
    NoExecution,
    /// One exists, with values that depend on themselves.
    OutOfThinAir,
    /// One exists without such values.
    Grounded,
}

/// Returns the flags that executions without self-dependent values raise.
pub(crate) fn grounded_flags(raised: &[(Flags, GoalEvidence)]) -> Flags {
    let mut grounded = Flags::default();
    raised
        .iter()
        .filter(|(_, shown)| *shown == GoalEvidence::Grounded)
        .for_each(|(flags, _)| grounded.add(*flags));
    grounded
}

/// Values of reads and of last writes, with the terms that they stand for.
#[derive(Clone)]
struct ValueCombination {
    premises: Vec<BooleanTerm>,
    /// The values that are last writes, by the number of the observable.
    last: Vec<(usize, Value)>,
}

/// A predicate on the final values with these indices.
type FinalPredicate<'t> = dyn Fn(&[Value]) -> bool + 't;

impl EventDomains {
    /// Returns true if every query about the final values can be encoded.
    pub(crate) fn can_encode_goals(&self, skeleton: &Skeleton, collector: &OutcomeCollector<'_>) -> bool {
        let reads = |index: usize| match skeleton.final_values.get(index) {
            Some(FinalValueSource::Expression(expression)) => reads_of(expression),
            _ => Vec::new(),
        };
        let mut can_encode =
            (0..skeleton.final_values.len()).all(|index| self.has_few_combinations(&reads(index)));
        for condition in [&collector.filter, &collector.condition] {
            for_each_comparison(condition, &mut |indexes| {
                let all: Vec<u16> = indexes.iter().flat_map(|index| reads(*index)).collect();
                can_encode &= self.has_few_combinations(&all);
            });
        }
        can_encode
    }
}

impl<M: Matrix, S: SatSolver> SatEncoding<'_, M, S> {
    /// Finds a consistent execution, with `flag` one that raises the flag; `None` if the budget ran out.
    fn solve_goal(
        &mut self,
        collector: &OutcomeCollector<'_>,
        goal: ExecutionGoal<'_>,
        flag: Option<(usize, Literal)>,
    ) -> Option<GoalEvidence> {
        let holds = self.encode_goal(collector, goal);
        self.define_values();
        let mut assumed: Vec<Literal> = flag.iter().map(|(_, literal)| *literal).collect();
        match holds {
            BooleanTerm::False => return Some(GoalEvidence::NoExecution),
            BooleanTerm::True => {}
            BooleanTerm::Literal(literal) => assumed.push(literal),
        }
        // Symmetry breaking is sound only for goals that all executions of an orbit share. A
        // conjunct and an outcome name threads.
        let is_symmetric = match goal {
            ExecutionGoal::Any | ExecutionGoal::InFilter => true,
            ExecutionGoal::ConditionIs(_) => collector.symmetry_breaking.preserves_condition,
            ExecutionGoal::Violates(_) | ExecutionGoal::Outcome(_) => false,
        };
        assumed.extend(self.symmetry_assumption.filter(|_| is_symmetric));
        if self.solver.is_exhausted() {
            return None;
        }
        // First try executions in which no value depends on itself.
        let grounded: Vec<Literal> = self.grounded.into_iter().collect();
        for groundedness in
            [Some(grounded.as_slice()), (!grounded.is_empty()).then_some(&[])].into_iter().flatten()
        {
            let mut all: Vec<Literal> = assumed.iter().chain(groundedness).copied().collect();
            let mut blocking = None;
            while self.solver.solve(&all)? {
                // Check the execution that the solver found, so that no answer rests on the clauses alone.
                let evidence = self.check_solution(collector, goal, flag.map(|(axiom, _)| axiom));
                debug_assert!(
                    evidence != Some(GoalEvidence::NoExecution),
                    "the clauses must agree with the axioms"
                );
                match evidence {
                    Some(GoalEvidence::NoExecution) => return None,
                    Some(evidence) => return Some(evidence),
                    // A value cycle permits more values than are tried. Another query may be satisfied by the
                    // tried ones.
                    None => {
                        // The blocking clauses hold under a fresh assumption. Later queries do not
                        // assume it, so for them these executions are not excluded.
                        let assumption = *blocking.get_or_insert_with(|| self.solver.new_variable());
                        if !all.contains(&assumption) {
                            all.push(assumption);
                        }
                        self.block_solution(assumption);
                    }
                }
            }
        }
        Some(GoalEvidence::NoExecution)
    }

    /// Finds a consistent execution of the goal; `None` if the budget ran out.
    ///
    /// With `raised`, it looks only for executions that raise further flags, and adds these flags with their
    /// evidence.
    pub(crate) fn find_evidence(
        &mut self,
        collector: &OutcomeCollector<'_>,
        goal: ExecutionGoal<'_>,
        raised: Option<&mut Vec<(Flags, GoalEvidence)>>,
    ) -> Option<GoalEvidence> {
        // An encoding that was built after the budget ran out is incomplete.
        if self.solver.is_exhausted() {
            return None;
        }
        let Some(raised) = raised else { return self.solve_goal(collector, goal, None) };
        let mut best = GoalEvidence::NoExecution;
        for flag in self.flags.clone() {
            let mut flags = Flags::default();
            flags.raise_axiom(&self.prepared.plan.axioms[flag.0]);
            if grounded_flags(raised).lacks_any_of(flags) {
                let evidence = self.solve_goal(collector, goal, Some(flag))?;
                if evidence > GoalEvidence::NoExecution {
                    raised.push((flags, evidence));
                }
                best = best.max(evidence);
            }
        }
        Some(best)
    }

    /// Excludes executions with the reads-from edges and the last writes of the solver's current one, conditional
    /// on the literal.
    fn block_solution(&mut self, assumption: Literal) {
        // The values that `check_solution` tries follow from reads-from, and the final values of storages
        // from the last writes; nothing else of the write order matters.
        let chosen = self.sources.values().flatten().map(|(_, literal)| *literal);
        let mut clause: Vec<Literal> = chosen.filter(|literal| self.solver.holds(*literal)).collect();
        for last in &self.skeleton.final_values {
            let FinalValueSource::LastWrite(storage) = last else { continue };
            let writes = self.thread_writes(Some(*storage));
            let before = |from: &usize, to: &usize| super::order_literal(&self.orders, *from, *to);
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
        clause.push(!assumption);
        self.solver.add_clause(&clause);
    }

    /// Checks the execution that the solver found: consistent, raises the flag and meets the goal, by the
    /// plan and its values.
    ///
    /// Returns `None` if none of the tried values fits.
    fn check_solution(
        &self,
        collector: &OutcomeCollector<'_>,
        goal: ExecutionGoal<'_>,
        flag: Option<usize>,
    ) -> Option<GoalEvidence> {
        let PreparedPlan { plan, rf, co, .. } = self.prepared;
        let mut bounds = self.static_bounds.bounds.clone();
        let mut reads_from = vec![None; self.skeleton.len()];
        for choice in &self.static_bounds.reads {
            let sources = self.sources.get(&choice.read).map_or(&[][..], Vec::as_slice);
            let chosen =
                sources.iter().find(|(_, literal)| self.solver.holds(*literal)).map(|(write, _)| *write);
            // A read that no clause mentions has no literals. Its source is irrelevant to the
            // axioms, so any candidate completes the execution.
            let Some(write) = chosen.or(choice.candidates.first().copied()) else {
                return Some(GoalEvidence::NoExecution);
            };
            reads_from[choice.read] = Some(write as u16);
            rf.iter().for_each(|id| fix_read_source(&mut bounds, *id, choice.read, write));
        }
        let mut last = Vec::new();
        for storage in &self.static_bounds.storages {
            let mut writes = self.thread_writes(Some(*storage));
            // The rank of a write in the solver's total order: the number of writes that precede
            // it.
            writes.sort_by_cached_key(|write| {
                let earlier = |other: &&usize| {
                    super::order_literal(&self.orders, **other, *write)
                        .is_some_and(|literal| self.solver.holds(literal))
                };
                let all = self.thread_writes(Some(*storage));
                all.iter().filter(|other| *other != write).filter(earlier).count()
            });
            for (index, write) in writes.iter().enumerate() {
                co.iter().for_each(|id| fix_next_write(&mut bounds, *id, *write, &writes[index + 1..]));
            }
            last.extend(writes.last().copied().or_else(|| self.initial_write(*storage)).map(|w| w as u16));
        }
        bounds.evaluate_all(plan);
        let holds = |(index, axiom): (usize, &Axiom)| {
            axiom.is_flag && flag != Some(index) || is_axiom_possible(axiom, &bounds)
        };
        if !plan.axioms.iter().enumerate().all(holds) {
            return Some(GoalEvidence::NoExecution);
        }
        let rules = &collector.rules;
        let values = enumerate_valuations(self.skeleton, &reads_from, rules.out_of_thin_air, rules.domain);
        let shown = values
            .iter()
            .filter(|shown| satisfies_constraints(self.skeleton, &shown.values))
            .filter(|shown| collector.is_goal_met(goal, &collector.to_outcome(&shown.values, &last)));
        shown.map(|v| if v.thin_air { GoalEvidence::OutOfThinAir } else { GoalEvidence::Grounded }).max()
    }

    /// Returns a term that implies the goal.
    fn encode_goal(&mut self, collector: &OutcomeCollector<'_>, goal: ExecutionGoal<'_>) -> BooleanTerm {
        let mut terms = Vec::new();
        if !matches!(goal, ExecutionGoal::Any | ExecutionGoal::Outcome(_)) {
            terms.push(self.encode_condition(&collector.filter, true));
        }
        match goal {
            ExecutionGoal::Any | ExecutionGoal::InFilter => {}
            ExecutionGoal::ConditionIs(wanted) => {
                terms.push(self.encode_condition(&collector.condition, wanted))
            }
            ExecutionGoal::Violates(part) => terms.push(match collector.negated_conjunct(part) {
                Some((index, demand)) => self.encode_value_constraint(index, demand),
                None => BooleanTerm::False,
            }),
            ExecutionGoal::Outcome(Outcome(values)) => {
                for (index, value) in values.iter().enumerate() {
                    terms.push(self.encode_value_constraint(index, ValueConstraint::Value(*value)));
                }
            }
        }
        self.encode_all(&terms)
    }

    fn encode_value_constraint(&mut self, index: usize, demand: ValueConstraint) -> BooleanTerm {
        self.encode_final_predicate(&[index], &|values| {
            values.first().is_some_and(|value| demand.allows(*value))
        })
    }

    /// Returns a term that implies that the condition has the wanted value.
    fn encode_condition(&mut self, condition: &ResolvedCondition, wanted: bool) -> BooleanTerm {
        match condition {
            ResolvedCondition::Constant(holds) if *holds == wanted => BooleanTerm::True,
            ResolvedCondition::Constant(_) => BooleanTerm::False,
            ResolvedCondition::Not(inner) => self.encode_condition(inner, !wanted),
            ResolvedCondition::And(both) | ResolvedCondition::Or(both) => {
                let sides = [self.encode_condition(&both.0, wanted), self.encode_condition(&both.1, wanted)];
                // De Morgan: a violated disjunction is a conjunction of violated sides.
                if matches!(condition, ResolvedCondition::And(_)) == wanted {
                    self.encode_all(&sides)
                } else {
                    self.encode_any(false, &sides)
                }
            }
            ResolvedCondition::Compare(left, _, right) => {
                let indexes = observed_indices([*left, *right]);
                self.encode_final_predicate(&indexes, &|values| {
                    let value = |index| {
                        indexes.iter().position(|i| *i == index).and_then(|at| values.get(at).copied())
                    };
                    condition.evaluate_partial(&mut { value }) == Some(wanted)
                })
            }
        }
    }

    /// Returns a term that implies that these final values satisfy the predicate.
    fn encode_final_predicate(&mut self, indexes: &[usize], predicate: &FinalPredicate<'_>) -> BooleanTerm {
        let skeleton = self.skeleton;
        let reads: Vec<u16> = indexes
            .iter()
            .flat_map(|index| match skeleton.final_values.get(*index) {
                Some(FinalValueSource::Expression(expression)) => reads_of(expression),
                _ => Vec::new(),
            })
            .collect();
        let mut last = Vec::new();
        for index in indexes {
            if let Some(FinalValueSource::LastWrite(storage)) = skeleton.final_values.get(*index) {
                last.push((*index, self.final_value_terms(*storage)));
            }
        }
        let mut literal = None;
        let mut always = true;
        self.for_each_combination(&reads, &mut |me, given, known| {
            let mut open: Vec<ValueCombination> =
                vec![ValueCombination { premises: given.to_vec(), last: Vec::new() }];
            for (index, terms) in &last {
                let next = open.iter().flat_map(|combination| {
                    terms.iter().map(|(value, term)| {
                        let mut next = combination.clone();
                        next.premises.push(*term);
                        next.last.push((*index, *value));
                        next
                    })
                });
                open = next.collect();
            }
            for ValueCombination { premises: mut given, last } in open {
                let value = |index: &usize| match &skeleton.final_values[*index] {
                    FinalValueSource::Expression(expression) => expression.evaluate(&mut |read| known(read)),
                    FinalValueSource::LastWrite(_) => last.iter().find(|(i, _)| i == index).map(|(_, v)| *v),
                };
                let values: Option<Vec<Value>> = indexes.iter().map(value).collect();
                if !values.is_some_and(|values| predicate(&values)) {
                    always = false;
                    // The literal is one-sided: it excludes every combination that fails the test.
                    // If nothing fails, no literal is needed.
                    given
                        .push(BooleanTerm::Literal(*literal.get_or_insert_with(|| me.solver.new_variable())));
                    me.add_implication(&given, BooleanTerm::False);
                }
            }
        });
        match literal {
            _ if always => BooleanTerm::True,
            Some(literal) => BooleanTerm::Literal(literal),
            None => BooleanTerm::False,
        }
    }
}
