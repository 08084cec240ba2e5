//! Looks for the execution that an explanation is about, and describes it.

use std::ops::ControlFlow;
use std::sync::Arc;

use litmus::{Condition, Outcome, Test};

use super::candidate::{Bounds, Candidate, End, for_each_candidate, kept};
use super::derive::{Deriver, event, place, text_at};
use super::events::{events, text_of};
use super::mend::Mend;
use super::{Answer, Broken, Edge, EventId, Execution, ExplainOptions, RaceFound, Uninitialised};
use crate::budget::BudgetTracker;
use crate::cat::{self, Axiom, AxiomKind, BaseProvider, CompiledModel, Node, NodeId};
use crate::matrix::{Bits, Matrix, Matrix64, Matrix256};
use crate::search::Flags;
use crate::skeleton::{Skeleton, Tags};
use crate::valuation::{ValueDomain, is_plain};
use crate::{Model, PredictError, predict};

/// Derived relations that are drawn where the model defines them.
const DRAWN: [&str; 3] = ["fr", "sw", "locord"];

/// One test under one model, ready to be searched.
pub(super) struct Search<'a> {
    test: &'a Test,
    plan: Arc<CompiledModel>,
    skeletons: Vec<Skeleton>,
    options: &'a ExplainOptions<'a>,
    purse: &'a BudgetTracker<'a>,
    out_of_thin_air: bool,
    domain: ValueDomain<'a>,
}

/// A race whose mend is not looked for yet.
pub(super) struct Raced {
    execution: Execution,
    flag: Broken,
    pair: Option<(EventId, EventId)>,
    missing: Vec<String>,
}

impl Raced {
    pub(super) fn with(self, mend: Mend) -> RaceFound {
        let Raced { execution, flag, pair, missing } = self;
        RaceFound { execution, flag, pair, missing, mend }
    }
}

/// What a candidate does to the axioms.
struct Examined {
    /// The broken axioms, as indices.
    broken: Vec<usize>,
    /// The flags that are raised.
    flagged: Flags,
    /// How many edges the shortest of the broken rules has.
    shortest: usize,
}

/// What is done with a candidate, and whether to go on.
type Visit<'a> = dyn FnMut(&Skeleton, Candidate) -> Result<ControlFlow<()>, PredictError> + 'a;

struct Base<'a, M> {
    skeleton: &'a Skeleton,
    rf: M,
    co: M,
}

impl<M: Matrix> BaseProvider<M> for Base<'_, M> {
    fn set(&self, name: &str, mask: Option<u8>) -> Option<M::Set> {
        self.skeleton.base_set(name, mask)
    }

    fn relation(&self, name: &str, _: Option<u8>) -> Option<M> {
        match name {
            "rf" => Some(self.rf.clone()),
            "co" => Some(self.co.clone()),
            _ => self.skeleton.base_relation(name),
        }
    }
}

impl<'a> Search<'a> {
    pub(super) fn new(
        test: &'a Test,
        model: &Model,
        options: &'a ExplainOptions<'a>,
        unroll: u32,
        purse: &'a BudgetTracker<'a>,
    ) -> Result<Search<'a>, PredictError> {
        let semantic = model.semantic();
        Ok(Search {
            test,
            plan: model.plan_for(test)?,
            skeletons: predict::all_skeletons(test, semantic, unroll)?,
            options,
            purse,
            out_of_thin_air: semantic.values_free,
            domain: ValueDomain::new(test),
        })
    }

    /// Visits the candidates with a wanted outcome.
    fn visit(
        &self,
        terminated: bool,
        wanted: &dyn Fn(&Outcome) -> bool,
        visit: &mut Visit<'_>,
    ) -> Result<End, PredictError> {
        let mut bounds = Bounds {
            left: self.options.candidates,
            purse: self.purse,
            thin_air: false,
            domain: &self.domain,
        };
        // Values out of thin air come last: what also shows without them is shown without them.
        let turns: &[bool] = if self.out_of_thin_air { &[false, true] } else { &[false] };
        for thin_air in turns {
            bounds.thin_air = *thin_air;
            for skeleton in self.skeletons.iter().filter(|skeleton| skeleton.terminated || !terminated) {
                if *thin_air && is_plain(skeleton) {
                    continue;
                }
                let mut each = |candidate| Ok(visit(skeleton, candidate)?.is_continue());
                match for_each_candidate(skeleton, &mut bounds, wanted, &mut each)? {
                    End::Exhausted => {}
                    end => return Ok(end),
                }
            }
        }
        Ok(End::Exhausted)
    }

    /// What the model says of the outcome; `known` is what is known of that already.
    pub(super) fn answer(
        &mut self,
        condition: &Condition,
        known: Option<bool>,
    ) -> Result<Answer, PredictError> {
        let observables = self.test.observables();
        let wanted =
            |outcome: &Outcome| outcome.meets(self.test, &observables, condition) && kept(self.test, outcome);
        let mut candidates = 0;
        let mut witness = None;
        let mut closest: Option<((usize, usize), usize, Skeleton, Candidate)> = None;
        let end = self.visit(true, &wanted, &mut |skeleton, candidate| {
            candidates += 1;
            let examined = self.examine(skeleton, &candidate)?;
            let Some(first) = examined.broken.first().copied() else {
                witness = Some(self.describe(skeleton, &candidate, None)?.0);
                return Ok(ControlFlow::Break(()));
            };
            let distance = (examined.broken.len(), examined.shortest);
            if closest.as_ref().is_none_or(|(known, ..)| distance < *known) {
                closest = Some((distance, first, skeleton.clone(), candidate));
            }
            Ok(ControlFlow::Continue(()))
        })?;
        if witness.is_some() || known == Some(true) {
            return Ok(Answer::Allowed { witness });
        }
        if end == End::Cut && known.is_none() {
            return Ok(Answer::Unknown);
        }
        let complete = end == End::Exhausted;
        let Some((_, _, skeleton, candidate)) = closest else {
            return Ok(if complete {
                Answer::Impossible
            } else {
                Answer::Forbidden { closest: None, candidates, complete }
            });
        };
        let examined = self.examine(&skeleton, &candidate)?;
        let mut best: Option<(Execution, Broken)> = None;
        for axiom in examined.broken {
            let (execution, broken) = self.describe(&skeleton, &candidate, Some(axiom))?;
            let Some(broken) = broken else { continue };
            if best.as_ref().is_none_or(|(_, known)| broken.edges.len() < known.edges.len()) {
                best = Some((execution, broken));
            }
        }
        Ok(Answer::Forbidden { closest: best, candidates, complete })
    }

    /// Whether the bound of loops cut some run off.
    pub(super) fn is_cut(&self) -> bool {
        self.skeletons.iter().any(|skeleton| skeleton.cut)
    }

    /// Up to `most` consistent executions that show a condition, each with whether it raises a flag, and whether these are all.
    pub(super) fn consistent(
        &self,
        condition: &Condition,
        most: usize,
    ) -> Result<(Vec<(Execution, bool)>, bool), PredictError> {
        let observables = self.test.observables();
        let wanted =
            |outcome: &Outcome| outcome.meets(self.test, &observables, condition) && kept(self.test, outcome);
        let mut found = Vec::new();
        let end = self.visit(true, &wanted, &mut |skeleton, candidate| {
            let examined = self.examine(skeleton, &candidate)?;
            if !examined.broken.is_empty() {
                return Ok(ControlFlow::Continue(()));
            }
            if found.len() == most {
                return Ok(ControlFlow::Break(()));
            }
            found.push((self.describe(skeleton, &candidate, None)?.0, examined.flagged.is_race()));
            Ok(ControlFlow::Continue(()))
        })?;
        Ok((found, end == End::Exhausted))
    }

    /// A race in some consistent execution, if one is met.
    pub(super) fn race(&mut self, condition: &Condition) -> Result<Option<Raced>, PredictError> {
        let observables = self.test.observables();
        let explained =
            |outcome: &Outcome| outcome.meets(self.test, &observables, condition) && kept(self.test, outcome);
        // One that shows the outcome says more than another.
        let raised = match self.raising(&Flags::is_race, true, &explained)? {
            None => self.raising(&Flags::is_race, false, &|outcome| kept(self.test, outcome))?,
            found => found,
        };
        let Some((skeleton, candidate)) = raised else { return Ok(None) };
        match skeleton.len() {
            0..=64 => self.raced::<Matrix64>(&skeleton, &candidate),
            _ => self.raced::<Matrix256>(&skeleton, &candidate),
        }
    }

    /// An uninitialised read in some consistent execution, if one is met.
    pub(super) fn uninitialised(&self) -> Result<Option<Uninitialised>, PredictError> {
        let reads = |flags: &Flags| flags.uninitialised;
        let Some((skeleton, candidate)) = self.raising(&reads, false, &|outcome| kept(self.test, outcome))?
        else {
            return Ok(None);
        };
        // Those of threads stand before those of final values.
        let read = candidate.rf.iter().position(|write| {
            write.is_some_and(|write| skeleton.events[usize::from(write)].tags.has(Tags::UW))
        });
        let (execution, _) = self.describe(&skeleton, &candidate, None)?;
        Ok(read.map(|read| Uninitialised { execution, read: event(read) }))
    }

    /// A consistent execution that raises certain flags, if one is met.
    fn raising(
        &self,
        raised: &dyn Fn(&Flags) -> bool,
        terminated: bool,
        wanted: &dyn Fn(&Outcome) -> bool,
    ) -> Result<Option<(Skeleton, Candidate)>, PredictError> {
        let mut found = None;
        self.visit(terminated, wanted, &mut |skeleton, candidate| {
            let examined = self.examine(skeleton, &candidate)?;
            if !examined.broken.is_empty() || !raised(&examined.flagged) {
                return Ok(ControlFlow::Continue(()));
            }
            found = Some((skeleton.clone(), candidate));
            Ok(ControlFlow::Break(()))
        })?;
        Ok(found)
    }

    fn examine(&self, skeleton: &Skeleton, candidate: &Candidate) -> Result<Examined, PredictError> {
        match skeleton.len() {
            0..=64 => self.examine_in::<Matrix64>(skeleton, candidate),
            _ => self.examine_in::<Matrix256>(skeleton, candidate),
        }
    }

    fn evaluate<M: Matrix>(
        &self,
        skeleton: &Skeleton,
        candidate: &Candidate,
    ) -> Result<Vec<cat::Value<M>>, PredictError> {
        let n = skeleton.len();
        let mut rf = M::empty(n);
        for (read, write) in candidate.rf.iter().enumerate() {
            if let Some(write) = write {
                rf.insert(usize::from(*write), read);
            }
        }
        let mut co = M::empty(n);
        for order in &candidate.co {
            for (position, first) in order.iter().enumerate() {
                for second in &order[position + 1..] {
                    if !skeleton.are_alternatives(*first, *second) {
                        co.insert(*first, *second);
                    }
                }
            }
        }
        cat::evaluate(&self.plan, &Base { skeleton, rf, co }, n)
            .map_err(|missing| PredictError::UnknownBase { name: missing.name })
    }

    fn examine_in<M: Matrix>(
        &self,
        skeleton: &Skeleton,
        candidate: &Candidate,
    ) -> Result<Examined, PredictError> {
        let values = self.evaluate::<M>(skeleton, candidate)?;
        let value = |axiom: &Axiom| &values[axiom.node.index()];
        let axioms = || self.plan.axioms.iter().enumerate();
        let broken: Vec<usize> = axioms()
            .filter(|(_, axiom)| !axiom.flag && !cat::holds(axiom, value(axiom)))
            .map(|(index, _)| index)
            .collect();
        let mut flagged = Flags::default();
        axioms()
            .filter(|(_, axiom)| axiom.flag && cat::holds(axiom, value(axiom)))
            .for_each(|(_, axiom)| flagged.raise_axiom(axiom));
        let length = |axiom: &Axiom| match (axiom.kind, value(axiom).relation()) {
            (AxiomKind::Acyclic, Some(relation)) if !axiom.negated => {
                relation.shortest_cycle().map_or(usize::MAX, |cycle| cycle.len())
            }
            _ => 2,
        };
        let shortest =
            broken.iter().filter_map(|index| self.plan.axioms.get(*index)).map(length).min().unwrap_or(0);
        Ok(Examined { broken, flagged, shortest })
    }

    /// The execution, and how it breaks an axiom.
    fn describe(
        &self,
        skeleton: &Skeleton,
        candidate: &Candidate,
        axiom: Option<usize>,
    ) -> Result<(Execution, Option<Broken>), PredictError> {
        match skeleton.len() {
            0..=64 => self.describe_in::<Matrix64>(skeleton, candidate, axiom),
            _ => self.describe_in::<Matrix256>(skeleton, candidate, axiom),
        }
    }

    fn describe_in<M: Matrix>(
        &self,
        skeleton: &Skeleton,
        candidate: &Candidate,
        axiom: Option<usize>,
    ) -> Result<(Execution, Option<Broken>), PredictError> {
        let values = self.evaluate::<M>(skeleton, candidate)?;
        let mut deriver = Deriver::new(&self.plan, &values);
        let execution = self.execution(skeleton, candidate, &values, &mut deriver);
        let axiom = axiom.and_then(|index| self.plan.axioms.get(index));
        let broken = axiom.map(|axiom| self.broken(axiom, &values[axiom.node.index()], &mut deriver));
        Ok((execution, broken))
    }

    fn execution<M: Matrix>(
        &self,
        skeleton: &Skeleton,
        candidate: &Candidate,
        values: &[cat::Value<M>],
        deriver: &mut Deriver<'_, M>,
    ) -> Execution {
        let observables = self.test.observables();
        let outcome = observables.iter().zip(&candidate.outcome.0);
        Execution {
            thin_air: candidate.thin_air,
            events: events(self.test, skeleton, candidate),
            edges: self.drawn_edges(skeleton, candidate, values, deriver),
            outcome: outcome
                .map(|(observable, value)| {
                    let ty = self.test.observable_type(*observable);
                    (self.test.observable_name(*observable), text_of(*value, ty))
                })
                .collect(),
        }
    }

    fn drawn_edges<M: Matrix>(
        &self,
        skeleton: &Skeleton,
        candidate: &Candidate,
        values: &[cat::Value<M>],
        deriver: &mut Deriver<'_, M>,
    ) -> Vec<Edge> {
        let base = |relation: &str, from: usize, to: usize| Edge {
            from: event(from),
            to: event(to),
            relation: relation.to_owned(),
            via: None,
            statement: None,
            clauses: Vec::new(),
            because: Vec::new(),
        };
        let mut edges = Vec::new();
        for (read, write) in candidate.rf.iter().enumerate() {
            edges.extend(write.map(|write| base("rf", usize::from(write), read)));
        }
        for order in &candidate.co {
            let ordered = order.windows(2).filter(|pair| !skeleton.are_alternatives(pair[0], pair[1]));
            edges.extend(ordered.map(|pair| base("co", pair[0], pair[1])));
        }
        for name in ["ssw", "syncbar", "syncsplit"] {
            let Some(relation) = skeleton.base_relation::<M>(name) else { continue };
            let owned = |e: usize| skeleton.events[e].thread().is_some();
            let pairs = relation.pairs().filter(|(from, to)| {
                owned(*from) && owned(*to) && from != to && (name == "ssw" || from < to)
            });
            edges.extend(pairs.map(|(from, to)| base(name, from, to)));
        }
        let thread = |e: usize| skeleton.events[e].owner;
        for name in DRAWN {
            let Some(node) = self.plan.definition(name) else { continue };
            let Some(relation) = values.get(node.index()).and_then(cat::Value::relation) else { continue };
            // What program order or a longer way says as well is left out.
            for (from, to) in relation.pairs() {
                let same = thread(from) == thread(to);
                let whole = [from, to].iter().all(|e| skeleton.events[*e].thread().is_some());
                let shorter = name == "fr"
                    && candidate.co.iter().any(|order| {
                        let at = |e| order.iter().position(|write| *write == e);
                        at(to).is_some_and(|to| {
                            order.get(..to).is_some_and(|before| {
                                before.iter().any(|write| relation.contains(from, *write))
                            })
                        })
                    });
                if whole && !same && !shorter {
                    edges.push(deriver.edge(node, name, from, to));
                }
            }
        }
        edges
    }

    /// How a value breaks an axiom or raises a flag.
    fn broken<M: Matrix>(
        &self,
        axiom: &Axiom,
        value: &cat::Value<M>,
        deriver: &mut Deriver<'_, M>,
    ) -> Broken {
        let statement = self.plan.statement(axiom.statement);
        let mut broken = Broken {
            text: text_at(&self.plan, statement.span),
            name: axiom.name.clone(),
            place: place(&self.plan, axiom.statement),
            clauses: statement.clauses.clone(),
            edges: Vec::new(),
            cycle: false,
            events: Vec::new(),
        };
        if broken.clauses.is_empty()
            && let Some(definition) = self.plan.definitions.iter().find(|d| d.node == axiom.node)
        {
            broken.clauses = self.plan.statement(definition.statement).clauses.clone();
        }
        // A flag is raised by what an axiom of the other sign would be broken by.
        if axiom.negated != axiom.flag {
            return broken;
        }
        match (axiom.kind, value) {
            (_, cat::Value::Set(set)) => broken.events = set.iter().map(event).collect(),
            (AxiomKind::Acyclic, cat::Value::Relation(relation)) => {
                let events = relation.shortest_cycle().unwrap_or_default();
                let next = events.iter().cycle().skip(1);
                broken.edges = events
                    .iter()
                    .zip(next)
                    .flat_map(|(from, to)| named_edges(deriver, axiom.node, *from, *to, &broken.text))
                    .collect();
                broken.cycle = true;
            }
            (AxiomKind::Irreflexive, cat::Value::Relation(relation)) => {
                let at = relation.pairs().filter(|(from, to)| from == to);
                let best = at.min_by_key(|(from, to)| deriver.cost(axiom.node, *from, *to));
                broken.edges = best.map_or(Vec::new(), |(from, to)| {
                    named_edges(deriver, axiom.node, from, to, &broken.text)
                });
                broken.cycle = true;
            }
            (AxiomKind::Empty, cat::Value::Relation(relation)) => {
                let best = relation.pairs().min_by_key(|(from, to)| deriver.cost(axiom.node, *from, *to));
                broken.edges = best.map_or(Vec::new(), |(from, to)| {
                    named_edges(deriver, axiom.node, from, to, &broken.text)
                });
            }
        }
        for edge in &broken.edges {
            for event in [edge.from, edge.to] {
                if !broken.events.contains(&event) {
                    broken.events.push(event);
                }
            }
        }
        broken
    }

    fn raced<M: Matrix>(
        &self,
        skeleton: &Skeleton,
        candidate: &Candidate,
    ) -> Result<Option<Raced>, PredictError> {
        let values = self.evaluate::<M>(skeleton, candidate)?;
        let raised = self
            .plan
            .axioms
            .iter()
            .filter(|axiom| axiom.name.as_deref() != Some(Flags::UNINITIALISED))
            .find(|axiom| axiom.flag && cat::holds(axiom, &values[axiom.node.index()]));
        let Some(axiom) = raised else { return Ok(None) };
        let value = &values[axiom.node.index()];
        let mut deriver = Deriver::new(&self.plan, &values);
        let execution = self.execution(skeleton, candidate, &values, &mut deriver);
        let flag = self.broken(axiom, value, &mut deriver);
        let pair = match (axiom.kind, value.relation()) {
            (AxiomKind::Empty, Some(relation)) => {
                let both = |(from, to): &(usize, usize)| {
                    let owned = |e: usize| skeleton.events[e].thread().is_some();
                    (!(owned(*from) && owned(*to)), from > to)
                };
                relation.pairs().min_by_key(both).map(|(from, to)| (event(from), event(to)))
            }
            _ => None,
        };
        let missing = self.subtracted(axiom.node);
        Ok(Some(Raced { execution, flag, pair, missing }))
    }

    /// The names of what is subtracted from a relation: any of them would have kept a pair out of it.
    fn subtracted(&self, node: NodeId) -> Vec<String> {
        let mut names: Vec<String> = Vec::new();
        let mut open = vec![node];
        while let Some(next) = open.pop() {
            match self.plan.node(next) {
                Node::Difference(inner, less) => {
                    let less = match self.plan.node(less) {
                        Node::Inverse(turned) => turned,
                        _ => less,
                    };
                    // Where several definitions come to the same, the last one is what the text subtracts.
                    let last = self.plan.definitions.iter().rfind(|definition| definition.node == less);
                    let name = last.map(|definition| definition.name.as_str());
                    if let Some(name) = name.or_else(|| self.plan.name_of(less))
                        && !names.iter().any(|known| known == name)
                    {
                        names.insert(0, name.to_owned());
                    }
                    open.push(inner);
                }
                Node::RestrictRows(_, inner) | Node::RestrictColumns(inner, _) => open.push(inner),
                Node::Intersection(left, right) => open.extend([left, right]),
                _ => {}
            }
        }
        names
    }
}

/// The edges of a pair; one with the name of the axiom's relation where they say nothing.
fn named_edges<M: Matrix>(
    deriver: &mut Deriver<'_, M>,
    node: NodeId,
    from: usize,
    to: usize,
    text: &str,
) -> Vec<Edge> {
    match deriver.edges(node, from, to) {
        edges if edges.is_empty() && from != to => vec![Edge {
            from: event(from),
            to: event(to),
            relation: text.to_owned(),
            via: None,
            statement: None,
            clauses: Vec::new(),
            because: Vec::new(),
        }],
        edges => edges,
    }
}
