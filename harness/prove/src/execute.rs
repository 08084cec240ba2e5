//! Symbolic execution of one arbitrary invocation: its accesses and barriers, with conditions and addresses as terms.
//!
//! Each node of the graph is executed once. At a merge, values become selections. A loop is executed for an arbitrary
//! iteration: values that it changes are unknown functions of the iteration first. If the next value is the last one plus
//! a step that no iteration changes, the closed form `initial + iteration * step` replaces the function, and similarly
//! for shifts, values that alternate, and values that depend on the iteration before alone. After a loop, its iteration is
//! the last one, an unknown function of the iterations of outer loops. A loop is assumed to have less than 2^32 iterations.
//!
//! Long because a loop needs the joins, closed forms and rewriting of what it contains in one place.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use arithmetic::mask;
use rspirv::spirv::{BuiltIn, StorageClass as StorageClassWord};
use rustc_hash::FxHashMap;
use spirv_reader::{
    ImageOperation, SourcePosition, Specialized, SpirvModule, SpirvOperation, SpirvType, switch_cases,
};
use vocabulary::{Scope, Semantics, StorageClass};

use crate::decide::Stop;
use crate::graph::{Graph, NodeEnd};
use crate::input::{GivenValue, InputMemory};
use crate::refusal::{Unproved, UnprovedReason};
use crate::term::{
    Function, FunctionId, FunctionKind, Operator, Substitution, TermArena, TermId, Uniformity,
};
use crate::value::{Descriptor, LocalKey, Pointer, State, Value};

/// Upper bound on the invocations of a workgroup that is assumed if its size is not fixed.
pub(crate) const MAX_LOCAL_SIZE: u64 = 1_024;
/// Upper bound on the workgroups of a dimension, `maxComputeWorkGroupCount`'s required minimum.
pub(crate) const MAX_WORKGROUPS: u64 = 65_535;
/// Upper bound on the terms of a summary.
const MAX_TERMS: usize = 400_000;

/// The bytes or the texel of an access.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Location {
    Bytes { offset: TermId, size: u64 },
    Texel { coordinates: Vec<TermId> },
}

impl Location {
    /// Returns the terms of the address.
    pub fn terms(&self) -> &[TermId] {
        match self {
            Location::Bytes { offset, .. } => std::slice::from_ref(offset),
            Location::Texel { coordinates } => coordinates,
        }
    }
}

/// How far an access takes part in the order of barriers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Strength {
    /// No barrier orders it.
    Private,
    /// Ordered by barriers that make writes available and visible.
    NonPrivate,
    /// It makes its write available, or writes visible to it.
    Published,
}

/// An access to memory that invocations share.
#[derive(Clone, Debug)]
pub(crate) struct Access {
    pub node: usize,
    pub descriptor: Descriptor,
    pub location: Location,
    pub writes: bool,
    /// The scope of an atomic.
    pub atomic: Option<Scope>,
    pub strength: Strength,
    pub class: StorageClass,
    /// A condition under which the access is executed.
    pub facts: TermId,
    /// A condition on earlier iterations.
    pub history: TermId,
    /// The stored value, or the result of a ticket.
    pub values: Vec<TermId>,
    /// The added constant, for the addition of a positive constant whose result is used.
    pub ticket: Option<Ticket>,
    pub line: u32,
    pub place: SourcePosition,
}

/// The result of an atomic addition of a positive constant.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Ticket {
    pub result: TermId,
    pub step: u64,
}

/// A control barrier of the workgroup.
#[derive(Clone, Debug)]
pub(crate) struct Barrier {
    pub node: usize,
    pub scope: Scope,
    pub semantics: Semantics,
    pub reach: TermId,
    /// A condition on earlier iterations.
    pub history: TermId,
    pub line: u32,
    pub place: SourcePosition,
}

/// An index into an array of fixed length that is not known to be in bounds.
#[derive(Clone, Debug)]
pub(crate) struct Bound {
    pub name: String,
    pub facts: TermId,
    pub index: TermId,
    pub length: TermId,
}

/// An election of a lane in each subgroup.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Election {
    pub result: TermId,
    pub node: usize,
    /// The condition that holds if it is reached.
    pub reach: TermId,
}

/// A loop-carried number that grows by a step in each iteration.
#[derive(Clone, Debug)]
pub(crate) struct ClosedForm {
    pub index: usize,
    pub name: String,
    /// Its value in an iteration, what is added to the first value, the product in that, and the first value.
    pub terms: Vec<TermId>,
    pub step: TermId,
}

/// An edge that an invocation may take to a node.
#[derive(Clone, Debug)]
struct Edge {
    from: usize,
    /// A condition that holds exactly if the edge is reached, as far as divergence is concerned.
    reach: TermId,
    /// A condition that holds if the edge is taken.
    facts: TermId,
    state: Rc<State>,
}

/// The accesses and barriers of one arbitrary invocation.
pub(crate) struct Summary<'m> {
    pub module: &'m SpirvModule,
    pub specialized: &'m Specialized<'m>,
    pub graph: Graph<'m>,
    pub terms: TermArena,
    pub accesses: Vec<Access>,
    pub barriers: Vec<Barrier>,
    pub bounds: Vec<Bound>,
    /// The symbols of the iterations of loops.
    pub iterations: Vec<FunctionId>,
    last_iterations: Vec<FunctionId>,
    /// For each loop, the conditions under which an iteration is followed by another one.
    pub loop_conditions: Vec<TermId>,
    /// The same with what else is known of the iteration.
    pub loop_continues: Vec<TermId>,
    pub closed_forms: Vec<ClosedForm>,
    pub elections: Vec<Election>,
    pub local_size: [TermId; 3],
    /// Returns true once the proof has to end.
    pub stop: Option<Stop<'m>>,
    /// Upper bound on the workgroups of a dimension.
    pub max_workgroups: u64,
    /// Given bytes of inputs, and the scalars that are loaded from them, by name.
    pub given: Vec<(InputMemory, u64, Vec<u8>)>,
    pub used: BTreeMap<String, GivenValue>,
    /// True if a divisor is not known to differ from zero.
    pub assumes_divisors: bool,
    /// True if what a load of a variable returns may be unwritten.
    pub assumes_written: bool,
}

impl Summary<'_> {
    /// Returns true if the proof has to end.
    pub fn is_stopped(&self) -> bool {
        self.stop.is_some_and(|stop| stop())
    }

    fn symbol(&mut self, kind: FunctionKind, range: (u64, u64), uniformity: Uniformity) -> TermId {
        let function = self.terms.named_function(kind, 32, range, uniformity);
        self.terms.apply(function, &[])
    }

    pub fn local_id(&mut self, axis: usize) -> TermId {
        let highest = self.terms.range(self.local_size[axis]).1.max(1) - 1;
        self.symbol(FunctionKind::LocalId(axis), (0, highest), Uniformity::Invocation)
    }

    pub fn group_id(&mut self, axis: usize) -> TermId {
        self.symbol(FunctionKind::GroupId(axis), (0, self.max_workgroups - 1), Uniformity::Workgroup)
    }

    /// Returns a built-in number of subgroups.
    pub fn subgroup_number(&mut self, built_in: BuiltIn) -> Option<TermId> {
        let (range, uniformity) = match built_in {
            BuiltIn::SubgroupSize => ((1, 128), Uniformity::Grid),
            BuiltIn::NumSubgroups => ((1, MAX_LOCAL_SIZE), Uniformity::Workgroup),
            BuiltIn::SubgroupId => ((0, MAX_LOCAL_SIZE - 1), Uniformity::Invocation),
            BuiltIn::SubgroupLocalInvocationId => ((0, 127), Uniformity::Invocation),
            _ => return None,
        };
        Some(self.symbol(FunctionKind::Subgroup(built_in), range, uniformity))
    }

    pub fn group_count(&mut self, axis: usize) -> TermId {
        self.symbol(FunctionKind::GroupCount(axis), (1, self.max_workgroups), Uniformity::Grid)
    }

    /// Returns the last iteration of a loop, a function of the iterations of the loops around it.
    pub fn last_iteration(&mut self, index: usize) -> TermId {
        let mut around = self.graph.loops_around(self.graph.loops[index].header);
        around.pop();
        let arguments: Vec<TermId> =
            around.iter().map(|outer| self.terms.apply(self.iterations[*outer], &[])).collect();
        self.terms.apply(self.last_iterations[index], &arguments)
    }
}

pub(crate) struct Executor<'m> {
    pub summary: Summary<'m>,
    /// Values by frame and id, with the node that defines them.
    pub values: FxHashMap<(usize, u32), (Value, usize)>,
    /// The specialization constants that are symbols.
    pub symbolic_constants: BTreeSet<u32>,
    /// The variables whose memory the entry point writes.
    pub written: BTreeSet<u32>,
    /// The closed forms of loop-carried variables.
    closed: FxHashMap<FunctionId, TermId>,
    incoming: Vec<Vec<Edge>>,
    /// For each loop, the edges that leave it, with their targets, and the edges to its header.
    leaving: Vec<Vec<(Edge, usize)>>,
    back: Vec<Vec<Edge>>,
    pub state: State,
    pub node: usize,
    pub reach: TermId,
    pub facts: TermId,
    reach_of: Vec<Option<TermId>>,
    facts_of: Vec<Option<TermId>>,
    pub line: u32,
    pub place: SourcePosition,
}

/// A variable or phi that a loop changes.
struct Carried {
    function: FunctionId,
    initial: TermId,
    next: TermId,
    name: String,
}

/// Replaces closed forms, and optionally an iteration.
struct LoopSubstitution<'a> {
    closed: &'a FxHashMap<FunctionId, TermId>,
    /// The formal iterations of each closed form.
    formals: &'a [TermId],
    iteration: Option<(FunctionId, TermId)>,
}

impl Substitution for LoopSubstitution<'_> {
    fn apply(&mut self, terms: &mut TermArena, function: FunctionId, arguments: &[TermId]) -> Option<TermId> {
        if let Some((from, to)) = self.iteration
            && from == function
        {
            return Some(to);
        }
        let closed = *self.closed.get(&function)?;
        let mut result = closed;
        for (formal, actual) in self.formals.iter().zip(arguments) {
            if let (true, Operator::Apply(iteration)) =
                (formal != actual, terms.term(*formal).operator.clone())
            {
                result = at_iteration(terms, result, iteration, *actual);
            }
        }
        Some(result)
    }
}

/// Returns the value of a term in another iteration of a loop.
fn at_iteration(terms: &mut TermArena, term: TermId, iteration: FunctionId, to: TermId) -> TermId {
    let none = FxHashMap::default();
    let mut by = LoopSubstitution { closed: &none, formals: &[], iteration: Some((iteration, to)) };
    terms.substitute(term, &mut FxHashMap::default(), &mut by)
}

impl<'m> Executor<'m> {
    pub fn new(
        module: &'m SpirvModule,
        specialized: &'m Specialized<'m>,
        graph: Graph<'m>,
        mut terms: TermArena,
        local_size: [TermId; 3],
    ) -> Executor<'m> {
        // The number of iterations fits 32 bits.
        let range = (0, mask(32) - 1);
        let symbol = |terms: &mut TermArena, kind| terms.named_function(kind, 32, range, Uniformity::Grid);
        let count = graph.loops.len();
        let iterations = (0..count).map(|index| symbol(&mut terms, FunctionKind::Iteration(index))).collect();
        let last_iterations =
            (0..count).map(|index| symbol(&mut terms, FunctionKind::LastIteration(index))).collect();
        let truth = terms.truth(true);
        let nodes = graph.nodes.len();
        Executor {
            summary: Summary {
                module,
                specialized,
                graph,
                terms,
                accesses: Vec::new(),
                barriers: Vec::new(),
                bounds: Vec::new(),
                iterations,
                last_iterations,
                loop_conditions: vec![truth; count],
                loop_continues: vec![truth; count],
                closed_forms: Vec::new(),
                elections: Vec::new(),
                local_size,
                stop: None,
                max_workgroups: MAX_WORKGROUPS,
                given: Vec::new(),
                used: BTreeMap::new(),
                assumes_divisors: false,
                assumes_written: false,
            },
            values: FxHashMap::default(),
            symbolic_constants: BTreeSet::new(),
            written: BTreeSet::new(),
            closed: FxHashMap::default(),
            incoming: vec![Vec::new(); nodes],
            leaving: vec![Vec::new(); count],
            back: vec![Vec::new(); count],
            state: State::new(),
            node: 0,
            reach: truth,
            facts: truth,
            reach_of: vec![None; nodes],
            facts_of: vec![None; nodes],
            line: 0,
            place: SourcePosition::Module,
        }
    }

    pub fn terms(&mut self) -> &mut TermArena {
        &mut self.summary.terms
    }

    /// Executes the entry point.
    pub fn run(mut self) -> Result<Summary<'m>, Unproved> {
        let truth = self.terms().truth(true);
        self.collect_written()?;
        let mut state = State::new();
        for (id, variable) in &self.summary.module.variables {
            if matches!(variable.class, StorageClassWord::Private | StorageClassWord::Output) {
                let value = match variable.initializer {
                    0 => self.unwritten_value(variable.ty)?,
                    initializer => self.constant_value(initializer),
                };
                state.insert((0, *id), value);
            }
        }
        let start = Edge { from: usize::MAX, reach: truth, facts: truth, state: Rc::new(state) };
        self.incoming[0].push(start);
        self.run_region(None)?;
        self.summary.terms.solve_uniformity();
        Ok(self.summary)
    }

    /// Returns a refusal at the current instruction.
    pub fn unproved(&self, reason: UnprovedReason) -> Unproved {
        Unproved { reason, line: self.line, place: self.place }
    }

    /// Executes the nodes of a loop, or of the whole graph.
    fn run_region(&mut self, within: Option<usize>) -> Result<(), Unproved> {
        let header = within.map(|index| self.summary.graph.loops[index].header);
        let nodes: Vec<usize> = match within {
            None => self.summary.graph.order.clone(),
            Some(index) => {
                let body = &self.summary.graph.loops[index].body;
                self.summary.graph.order.iter().copied().filter(|node| body.contains(node)).collect()
            }
        };
        for node in nodes {
            let innermost = self.summary.graph.loop_of[node];
            if innermost == within {
                if Some(node) != header {
                    self.enter_node(node)?;
                }
                self.run_node(node)?;
            } else if let Some(inner) = innermost.filter(|inner| {
                let one = &self.summary.graph.loops[*inner];
                one.header == node && one.parent == within
            }) {
                self.run_loop(inner)?;
            }
            if self.summary.is_stopped() {
                return Err(self.unproved(UnprovedReason::Budget));
            }
            if self.summary.terms.count() > MAX_TERMS {
                return Err(self.unproved(UnprovedReason::TooLarge));
            }
        }
        Ok(())
    }

    /// Returns the symbols of the iterations of the loops around a node.
    pub fn iterations_around(&mut self, node: usize) -> Vec<TermId> {
        let around = self.summary.graph.loops_around(node);
        around.iter().map(|index| self.summary.terms.apply(self.summary.iterations[*index], &[])).collect()
    }

    /// Returns a new unknown value of the current iteration.
    pub fn arbitrary(&mut self, width: u32, uniformity: Uniformity, sources: Vec<TermId>) -> TermId {
        self.unknown(FunctionKind::Arbitrary, width, (0, mask(width)), uniformity, sources)
    }

    pub fn unknown(
        &mut self,
        kind: FunctionKind,
        width: u32,
        range: (u64, u64),
        uniformity: Uniformity,
        sources: Vec<TermId>,
    ) -> TermId {
        let function = Function { kind, width, range, uniformity, sources, original: None };
        let function = self.summary.terms.add_function(function);
        let iterations = self.iterations_around(self.node);
        self.summary.terms.apply(function, &iterations)
    }

    /// Computes conditions, state and phis of a node from the edges to it.
    fn enter_node(&mut self, node: usize) -> Result<(), Unproved> {
        let edges = std::mem::take(&mut self.incoming[node]);
        self.node = node;
        let (reach, facts, state) = self.join_edges(node, &edges);
        self.begin(node, reach, facts, state);
        let code = self.summary.graph.code(node);
        let mut phis = Vec::new();
        for instruction in code {
            if let SpirvOperation::Phi { sources } = self.summary.module.operation(instruction) {
                let value = self.phi_value(node, sources, &edges);
                phis.push((instruction.result, value));
            }
        }
        for (id, value) in phis {
            self.define(id, value);
        }
        Ok(())
    }

    fn begin(&mut self, node: usize, reach: TermId, facts: TermId, state: State) {
        (self.node, self.reach, self.facts, self.state) = (node, reach, facts, state);
        (self.reach_of[node], self.facts_of[node]) = (Some(reach), Some(facts));
    }

    /// Joins the conditions and states of edges.
    fn join_edges(&mut self, node: usize, edges: &[Edge]) -> (TermId, TermId, State) {
        let Some(first) = edges.first() else {
            let never = self.terms().truth(false);
            return (never, never, State::new());
        };
        let graph = &self.summary.graph;
        let around = graph.loops_around(node);
        // Every path from such a dominator leads here, so its conditions are the conditions of the node.
        let source = graph.dominators_of(node).find(|dominator| {
            let loops = graph.loops_around(*dominator);
            around.starts_with(&loops)
        });
        let source = source.filter(|source| edges.len() > 1 || graph.loops_around(*source) == around);
        let source = source.filter(|source| graph.always_leads_to(*source, node));
        let leaves_loop = edges
            .iter()
            .any(|edge| edge.from != usize::MAX && graph.loops_around(edge.from).len() > around.len());
        let known = source.and_then(|source| Some((self.reach_of[source]?, self.facts_of[source]?)));
        let (reaches, facts): (Vec<TermId>, Vec<TermId>) =
            edges.iter().map(|edge| (edge.reach, edge.facts)).unzip();
        let reach = match known {
            Some((reach, _)) => reach,
            None => self.terms().any(&reaches),
        };
        let joined_facts = match known {
            Some((_, facts)) if edges.len() > 1 && !leaves_loop => facts,
            _ => self.terms().any(&facts),
        };
        let state = if edges.len() > 1 { self.join_states(edges) } else { (*first.state).clone() };
        (reach, joined_facts, state)
    }

    /// Returns the conditions of edges without what they have in common.
    fn distinguishing_conditions(&mut self, edges: &[Edge]) -> Vec<TermId> {
        let all: Vec<BTreeSet<TermId>> =
            edges.iter().map(|edge| self.summary.terms.conjuncts(edge.facts).into_iter().collect()).collect();
        let common = all.iter().cloned().reduce(|common, one| &common & &one).unwrap_or_default();
        all.iter()
            .map(|one| {
                let own: Vec<TermId> = one.difference(&common).copied().collect();
                self.summary.terms.every(&own)
            })
            .collect()
    }

    fn join_values(&mut self, conditions: &[TermId], values: &[Value]) -> Value {
        let Some(last) = values.last() else { return Value::Opaque };
        let mut result = last.clone();
        for (condition, value) in conditions.iter().zip(values).rev().skip(1) {
            if result != *value {
                result = value.select(&result, *condition, &mut self.summary.terms);
            }
        }
        result
    }

    /// Returns the value of a phi over some edges.
    fn phi_value(&mut self, node: usize, sources: &[[u32; 2]], edges: &[Edge]) -> Value {
        let frame = self.summary.graph.nodes[node].frame;
        let mut values = Vec::new();
        for edge in edges {
            let label = self.summary.graph.nodes.get(edge.from).map_or(0, |from| from.label);
            let source = sources.iter().find(|[_, from]| *from == label);
            values.push(source.map_or(Value::Opaque, |[id, _]| self.value_at(frame, *id, node)));
        }
        let conditions = self.distinguishing_conditions(edges);
        self.join_values(&conditions, &values)
    }

    pub fn define(&mut self, id: u32, value: Value) {
        let frame = self.summary.graph.nodes[self.node].frame;
        self.values.insert((frame, id), (value, self.node));
    }

    /// Returns the value of an id in the frame of the current node.
    pub fn value(&mut self, id: u32) -> Value {
        let frame = self.summary.graph.nodes[self.node].frame;
        self.value_at(frame, id, self.node)
    }

    /// Returns the value of an id, seen from a node outside of the loops that it was defined in.
    fn value_at(&mut self, frame: usize, id: u32, node: usize) -> Value {
        let Some((value, defined)) = self.values.get(&(frame, id)).cloned() else {
            return self.constant_value(id);
        };
        let (mut from, to) =
            (self.summary.graph.loops_around(defined), self.summary.graph.loops_around(node));
        let mut value = value;
        while from.len() > to.len() || !to.starts_with(&from) {
            let Some(left) = from.pop() else { break };
            value = self.leave_loop_value(left, &value);
        }
        value
    }

    /// Replaces the iteration of a loop by its last one.
    fn leave_loop_value(&mut self, index: usize, value: &Value) -> Value {
        let last = self.summary.last_iteration(index);
        let closed = std::mem::take(&mut self.closed);
        let iteration = Some((self.summary.iterations[index], last));
        let formals = self.formals(index);
        let mut by = LoopSubstitution { closed: &closed, formals: &formals, iteration };
        let terms = &mut self.summary.terms;
        let mut memo = FxHashMap::default();
        let result = value.map_terms(&mut |term| terms.substitute(term, &mut memo, &mut by));
        self.closed = closed;
        result
    }

    /// Returns the iterations of a loop and of the loops around it, the outermost first.
    fn formals(&mut self, index: usize) -> Vec<TermId> {
        self.iterations_around(self.summary.graph.loops[index].header)
    }

    /// Passes an edge on to its target, out of the loops that it leaves.
    fn add_edge(&mut self, target: usize, edge: Edge) {
        let inner = self.summary.graph.loop_of.get(edge.from).copied().flatten();
        self.add_edge_within(inner, target, edge);
    }

    /// Passes an edge on to its target; a loop around the source of the edge is `inner`.
    fn add_edge_within(&mut self, inner: Option<usize>, target: usize, edge: Edge) {
        match inner.map(|index| (index, &self.summary.graph.loops[index])) {
            Some((index, one)) if !one.body.contains(&target) => self.leaving[index].push((edge, target)),
            Some((index, one)) if one.header == target => self.back[index].push(edge),
            _ => self.incoming[target].push(edge),
        }
    }

    /// Executes a loop for an arbitrary iteration, finds closed forms and passes on the edges that leave it.
    fn run_loop(&mut self, index: usize) -> Result<(), Unproved> {
        let header = self.summary.graph.loops[index].header;
        let edges = std::mem::take(&mut self.incoming[header]);
        self.node = header;
        let (reach, facts, state) = self.join_edges(header, &edges);
        let recorded = &self.summary;
        let first = [
            recorded.accesses.len(),
            recorded.barriers.len(),
            recorded.bounds.len(),
            recorded.closed_forms.len(),
        ];
        let mut carried: Vec<Carried> = Vec::new();
        let module = self.summary.module;
        let mut begin_state = state.clone();
        let mut places: Vec<(Option<LocalKey>, u32, usize, Value)> = Vec::new();
        for key in self.changed_variables(index) {
            if let Some(value) = state.get(&key) {
                let first = carried.len();
                places.push((Some(key), 0, first, value.clone()));
                let value = self.carry(value, &module.display_name(key.1), &mut carried);
                begin_state.insert(key, value);
            }
        }
        let mut phis = Vec::new();
        for instruction in self.summary.graph.code(header) {
            if let SpirvOperation::Phi { sources } = self.summary.module.operation(instruction) {
                let initial = self.phi_value(header, sources, &edges);
                let first = carried.len();
                let value = self.carry(&initial, &module.display_name(instruction.result), &mut carried);
                places.push((None, instruction.result, first, initial));
                phis.push((instruction.result, value, sources));
            }
        }
        self.begin(header, reach, facts, begin_state);
        for (id, value, _) in &phis {
            self.define(*id, value.clone());
        }
        self.run_region(Some(index))?;
        // The values after an iteration.
        let back = std::mem::take(&mut self.back[index]);
        let leaving = std::mem::take(&mut self.leaving[index]);
        self.node = header;
        let truth = self.terms().truth(true);
        let mut continues = self.terms().truth(false);
        if !back.is_empty() {
            let facts: Vec<TermId> = back.iter().map(|edge| edge.facts).collect();
            continues = self.terms().any(&facts);
            let after = self.join_states(&back);
            for (key, id, first, initial) in places {
                let value = match key {
                    Some(key) => after.get(&key).cloned().unwrap_or(Value::Opaque),
                    None => {
                        let sources = phis.iter().find(|phi| phi.0 == id).map_or(&[][..], |phi| phi.2);
                        self.phi_value(header, sources, &back)
                    }
                };
                if !value.has_shape_of(&initial) {
                    return Err(self.unproved(UnprovedReason::UnknownPointer));
                }
                for (one, next) in carried[first..].iter_mut().zip(value.terms()) {
                    one.next = self.summary.terms.simplify_under(next, continues);
                }
            }
            let reaches: Vec<TermId> = back.iter().map(|edge| edge.reach).collect();
            self.summary.loop_conditions[index] = self.summary.terms.any(&reaches);
        }
        let has_back = !back.is_empty();
        self.close_forms(index, carried, has_back);
        // The last iteration depends on the branches that end the loop.
        let sources: Vec<TermId> = leaving.iter().map(|(edge, _)| edge.reach).collect();
        let last = self.summary.last_iterations[index];
        self.summary.terms.function_mut(last).sources.extend(sources);
        self.rewrite_loop(index, first, continues, truth);
        for (edge, target) in leaving {
            let state: State =
                edge.state.iter().map(|(key, value)| (*key, self.leave_loop_value(index, value))).collect();
            let conditions = Value::Composite([Value::Scalar(edge.reach), Value::Scalar(edge.facts)].into());
            let conditions = self.leave_loop_value(index, &conditions).terms();
            let outer = self.summary.graph.loops[index].parent;
            let edge =
                Edge { from: edge.from, reach: conditions[0], facts: conditions[1], state: Rc::new(state) };
            self.add_edge_within(outer, target, edge);
        }
        self.closed.clear();
        Ok(())
    }

    /// Joins the states of edges. A variable that some path lacks is out of scope.
    fn join_states(&mut self, edges: &[Edge]) -> State {
        let conditions = self.distinguishing_conditions(edges);
        let mut joined = State::new();
        for key in edges[0].state.keys() {
            let values: Option<Vec<Value>> = edges.iter().map(|edge| edge.state.get(key).cloned()).collect();
            if let Some(values) = values {
                joined.insert(*key, self.join_values(&conditions, &values));
            }
        }
        joined
    }

    /// Returns a value whose terms are unknown functions of the iteration.
    fn carry(&mut self, initial: &Value, name: &str, carried: &mut Vec<Carried>) -> Value {
        initial.map_terms(&mut |term| {
            let width = self.summary.terms.width(term);
            let (kind, range) = (FunctionKind::Carried, (0, mask(width)));
            let value = self.unknown(kind, width, range, Uniformity::Grid, vec![term]);
            if let Operator::Apply(function) = self.summary.terms.term(value).operator {
                carried.push(Carried { function, initial: term, next: value, name: name.to_owned() });
            }
            value
        })
    }

    /// Finds closed forms of loop-carried variables, until none is left that has one.
    fn close_forms(&mut self, index: usize, carried: Vec<Carried>, has_back: bool) {
        let formals = self.formals(index);
        let mut open = carried;
        let all: Vec<FunctionId> = open.iter().map(|one| one.function).collect();
        for one in &open {
            self.summary.terms.function_mut(one.function).sources.push(one.next);
        }
        let mut is_changed = true;
        while is_changed && !open.is_empty() {
            is_changed = false;
            let mut rest = Vec::new();
            for mut one in open {
                let closed = std::mem::take(&mut self.closed);
                let mut by = LoopSubstitution { closed: &closed, formals: &formals, iteration: None };
                one.next = self.summary.terms.substitute(one.next, &mut FxHashMap::default(), &mut by);
                self.closed = closed;
                let form = match has_back {
                    true => {
                        self.closed_form(index, &one, &formals).or_else(|| self.lagging(index, &one, &all))
                    }
                    false => Some(one.initial),
                };
                match form {
                    Some(form) => {
                        self.closed.insert(one.function, form);
                        is_changed = true;
                    }
                    None => rest.push(one),
                }
            }
            open = rest;
        }
    }

    fn closed_form(&mut self, index: usize, one: &Carried, formals: &[TermId]) -> Option<TermId> {
        let iteration_function = self.summary.iterations[index];
        let terms = &mut self.summary.terms;
        let iteration = terms.apply(iteration_function, &[]);
        let width = terms.width(one.next);
        let current = terms.apply(one.function, formals);
        if terms.has_only_leaves(one.next, &[current, one.initial]) {
            return Some(one.initial);
        }
        if let Some(other) = terms.other_of_two(one.next, current, one.initial)
            && !terms.mentions(other, iteration_function)
        {
            let (zero, one_bit) = (terms.constant(32, 0), terms.constant(32, 1));
            let parity = terms.binary(Operator::And, iteration, one_bit);
            let is_even = terms.equal(parity, zero);
            return Some(terms.select(is_even, one.initial, other));
        }
        if !(8..=32).contains(&width) {
            return None;
        }
        let counter = terms.extend(iteration, width, false);
        let step = terms.subtract(one.next, current);
        if !terms.mentions(step, iteration_function) {
            let total = terms.multiply(counter, step);
            let form = terms.add(one.initial, total);
            let product = terms.linear_form(total).0.first().map_or(total, |atom| atom.0);
            let (name, terms) = (one.name.clone(), vec![form, total, product, one.initial]);
            self.summary.closed_forms.push(ClosedForm { index, name, terms, step });
            return Some(form);
        }
        let next = terms.term(one.next).clone();
        let is_current = next.arguments.first() == Some(&current);
        let amount = next.arguments.get(1).and_then(|amount| terms.constant_of(*amount));
        if !is_current || width != 32 {
            return None;
        }
        let (shift, by) = match (&next.operator, amount) {
            (Operator::ShiftRight, Some(by)) if by > 0 => (Operator::ShiftRight, by),
            // A signed quotient by a power of two, of a value that starts non-negative and stays so.
            (Operator::DivideSigned, Some(by))
                if by.is_power_of_two() && by > 1 && terms.is_non_negative(one.initial) =>
            {
                (Operator::ShiftRight, by.trailing_zeros().into())
            }
            // The double of the current value.
            (Operator::Sum { coefficients, constant: 0 }, _) => match coefficients[..] {
                [factor] if factor.is_power_of_two() => (Operator::ShiftLeft, factor.trailing_zeros().into()),
                _ => return None,
            },
            _ => return None,
        };
        // Beyond the width, nothing is left; a wrapped amount would restore the value.
        let (zero, limit) = (terms.constant(32, 0), terms.constant(32, 32 / by + 1));
        let is_small = terms.binary(Operator::Less, iteration, limit);
        let amount = terms.scale(iteration, by);
        let shifted = terms.binary(shift, one.initial, amount);
        Some(terms.select(is_small, shifted, zero))
    }

    /// Returns the form of a number that depends on no carried number without a form: the first one, then a function of
    /// the iteration before.
    fn lagging(&mut self, index: usize, one: &Carried, carried: &[FunctionId]) -> Option<TermId> {
        let function = self.summary.iterations[index];
        let terms = &mut self.summary.terms;
        if carried.iter().any(|other| !self.closed.contains_key(other) && terms.mentions(one.next, *other)) {
            return None;
        }
        let (iteration, zero) = (terms.apply(function, &[]), terms.constant(32, 0));
        let before = terms.sum(32, &[(iteration, 1)], u64::MAX);
        let last = at_iteration(terms, one.next, function, before);
        let is_first = terms.equal(iteration, zero);
        Some(terms.select(is_first, one.initial, last))
    }

    /// Replaces closed forms in everything that the loop recorded, and adds the history of its iterations.
    fn rewrite_loop(
        &mut self,
        index: usize,
        [access, barrier, bound, form]: [usize; 4],
        continues: TermId,
        truth: TermId,
    ) {
        let formals = self.formals(index);
        let closed = std::mem::take(&mut self.closed);
        let mut by = LoopSubstitution { closed: &closed, formals: &formals, iteration: None };
        let mut memo = FxHashMap::default();
        let continues = self.summary.terms.substitute(continues, &mut memo, &mut by);
        // The iteration before this one was followed by this one.
        let iteration = self.summary.terms.apply(self.summary.iterations[index], &[]);
        let (zero, one) = (self.summary.terms.constant(32, 0), self.summary.terms.constant(32, 1));
        let before = self.summary.terms.subtract(iteration, one);
        // The first iteration was followed by another one too.
        let function = self.summary.iterations[index];
        let earlier = [zero, before].map(|to| at_iteration(&mut self.summary.terms, continues, function, to));
        let held = self.summary.terms.every(&earlier);
        let is_first = self.summary.terms.equal(iteration, zero);
        let history = if held == truth { truth } else { self.summary.terms.any(&[is_first, held]) };
        let terms = &mut self.summary.terms;
        let mut map = |term: TermId| terms.substitute(term, &mut memo, &mut by);
        for one in &mut self.summary.accesses[access..] {
            (one.facts, one.history) = (map(one.facts), map(one.history));
            if let Some(element) = &mut one.descriptor.element {
                *element = map(*element);
            }
            match &mut one.location {
                Location::Bytes { offset, .. } => *offset = map(*offset),
                Location::Texel { coordinates } => coordinates.iter_mut().for_each(|one| *one = map(*one)),
            }
            one.values.iter_mut().for_each(|one| *one = map(*one));
            if let Some(ticket) = &mut one.ticket {
                ticket.result = map(ticket.result);
            }
        }
        for one in &mut self.summary.barriers[barrier..] {
            (one.reach, one.history) = (map(one.reach), map(one.history));
        }
        let conditions = self.summary.loop_conditions.iter_mut().zip(&mut self.summary.loop_continues);
        for (inner, (reach, facts)) in conditions.enumerate() {
            if self.summary.graph.loops[index].body.contains(&self.summary.graph.loops[inner].header) {
                (*reach, *facts) = (map(*reach), map(*facts));
            }
        }
        for one in &mut self.summary.closed_forms[form..] {
            one.terms.iter_mut().chain([&mut one.step]).for_each(|one| *one = map(*one));
        }
        for one in &mut self.summary.bounds[bound..] {
            (one.facts, one.index, one.length) = (map(one.facts), map(one.index), map(one.length));
        }
        let body = self.summary.graph.loops[index].body.clone();
        // The order of the values does not matter: each is replaced alone.
        let mut keys: Vec<(usize, u32)> =
            self.values.iter().filter(|(_, (_, node))| body.contains(node)).map(|(key, _)| *key).collect();
        keys.sort_unstable();
        for key in keys {
            if let Some((value, _)) = self.values.get_mut(&key) {
                *value = value.map_terms(&mut map);
            }
        }
        for node in &body {
            for condition in [&mut self.reach_of[*node], &mut self.facts_of[*node]].into_iter().flatten() {
                *condition = map(*condition);
            }
        }
        for one in &mut self.summary.accesses[access..] {
            one.history = self.summary.terms.every(&[one.history, history]);
        }
        for one in &mut self.summary.barriers[barrier..] {
            one.history = self.summary.terms.every(&[one.history, history]);
        }
        for one in &mut self.summary.bounds[bound..] {
            one.facts = self.summary.terms.every(&[one.facts, history]);
        }
        self.summary.loop_continues[index] = continues;
        self.closed = closed;
    }

    /// Returns the local variables that a loop may store to.
    fn changed_variables(&self, index: usize) -> BTreeSet<LocalKey> {
        let graph = &self.summary.graph;
        let mut changed = BTreeSet::new();
        for node in &graph.loops[index].body {
            for instruction in graph.code(*node) {
                let pointer = match self.summary.module.operation(instruction) {
                    SpirvOperation::Variable { .. } => instruction.result,
                    operation => match written_pointer(&operation) {
                        Some(pointer) => pointer,
                        None => continue,
                    },
                };
                changed.extend(self.root_variables(graph.nodes[*node].frame, pointer).into_iter().flatten());
            }
            if let NodeEnd::Leave { .. } = graph.nodes[*node].end {
                changed.insert((graph.nodes[*node].frame, 0));
            }
        }
        changed
    }

    /// Returns the variables that a pointer may refer to, of frame 0 for the module's; `None` if some are not known.
    pub fn root_variables(&self, frame: usize, id: u32) -> Option<BTreeSet<LocalKey>> {
        let graph = &self.summary.graph;
        let (mut roots, mut visited, mut open) = (BTreeSet::new(), BTreeSet::new(), vec![(frame, id)]);
        while let Some((frame, id)) = open.pop() {
            if !visited.insert((frame, id)) {
                continue;
            }
            if self.summary.module.variables.contains_key(&id) {
                roots.insert((0, id));
                continue;
            }
            let function = graph.frames[frame].function;
            if let Some(position) = function.parameters.iter().position(|parameter| *parameter == id) {
                let (caller, arguments) = graph.frames[frame].caller?;
                open.push((caller, *arguments.get(position)?));
                continue;
            }
            let instruction = function.code.iter().find(|instruction| instruction.result == id)?;
            match self.summary.module.operation(instruction) {
                SpirvOperation::Variable { .. } => _ = roots.insert((frame, id)),
                SpirvOperation::AccessChain { base: from, .. }
                | SpirvOperation::Image(ImageOperation::TexelPointer { image: from, .. })
                | SpirvOperation::Copy { value: from }
                | SpirvOperation::Bitcast { value: from } => open.push((frame, from)),
                SpirvOperation::Select { yes, no, .. } => open.extend([(frame, yes), (frame, no)]),
                SpirvOperation::Phi { sources } => {
                    open.extend(sources.iter().map(|[value, _]| (frame, *value)));
                }
                SpirvOperation::Load { pointer, .. }
                    if matches!(
                        self.summary.module.types.get(&instruction.ty),
                        Some(SpirvType::Handle(_))
                    ) =>
                {
                    open.push((frame, pointer));
                }
                _ => return None,
            }
        }
        Some(roots)
    }

    /// Executes a node and adds the edges to its successors.
    fn run_node(&mut self, node: usize) -> Result<(), Unproved> {
        self.node = node;
        if let Some((frame, result)) = self.summary.graph.nodes[node].returned {
            let value = self.state.remove(&(frame, 0)).unwrap_or(Value::Opaque);
            self.define(result, value);
        }
        for instruction in self.summary.graph.code(node) {
            (self.line, self.place) = (instruction.line, instruction.place);
            self.execute(instruction)?;
        }
        let successors = self.summary.graph.nodes[node].successors.clone();
        match self.summary.graph.nodes[node].end.clone() {
            NodeEnd::Exit | NodeEnd::Unreachable => {}
            NodeEnd::Next => self.branch_to(successors[0], None),
            NodeEnd::Enter { frame } => {
                let callee = &self.summary.graph.frames[frame];
                let (parameters, arguments) =
                    (callee.function.parameters.clone(), callee.caller.map_or(&[][..], |caller| caller.1));
                for (parameter, argument) in parameters.iter().zip(arguments) {
                    let value = self.value(*argument);
                    self.values.insert((frame, *parameter), (value, node));
                }
                self.branch_to(successors[0], None);
            }
            NodeEnd::Leave { value } => {
                let value = value.map_or(Value::Opaque, |value| self.value(value));
                let frame = self.summary.graph.nodes[node].frame;
                self.state.insert((frame, 0), value);
                self.branch_to(successors[0], None);
            }
            NodeEnd::Branch => self.run_branch(node, &successors),
        }
        Ok(())
    }

    fn run_branch(&mut self, node: usize, successors: &[usize]) {
        let Some(instruction) = self.summary.graph.code(node).last() else { return };
        match self.summary.module.operation(instruction) {
            SpirvOperation::BranchConditional { condition, .. } => {
                let condition = self.scalar_or_arbitrary(condition, 1);
                let negated = self.terms().not(condition);
                match successors {
                    [yes, no] if yes != no => {
                        self.branch_to(*yes, Some(condition));
                        self.branch_to(*no, Some(negated));
                    }
                    _ => self.branch_to(successors[0], None),
                }
            }
            SpirvOperation::Switch { selector, cases, .. } => {
                let frame = self.summary.graph.nodes[node].frame;
                let types = &self.summary.graph.frames[frame].function.types;
                let bits = self.summary.module.selector_bits(types, instruction);
                let selector = self.scalar_or_arbitrary(selector, bits);
                let mut targets: BTreeMap<usize, Vec<TermId>> = BTreeMap::new();
                let mut none = Vec::new();
                let literals: Vec<u64> = switch_cases(cases, bits).map(|case| case.literal).collect();
                for (literal, target) in literals.iter().zip(successors.iter().skip(1)) {
                    let literal = self.terms().constant(bits, *literal);
                    let is_equal = self.terms().equal(selector, literal);
                    targets.entry(*target).or_default().push(is_equal);
                    none.push(self.summary.terms.not(is_equal));
                }
                let default = self.terms().every(&none);
                targets.entry(successors[0]).or_default().push(default);
                for (target, conditions) in targets {
                    let condition = self.terms().any(&conditions);
                    self.branch_to(target, Some(condition));
                }
            }
            _ => self.branch_to(successors[0], None),
        }
    }

    /// Returns a scalar operand, or any value for one that is not followed.
    pub fn scalar_or_arbitrary(&mut self, id: u32, width: u32) -> TermId {
        match self.value(id).scalar().filter(|term| self.summary.terms.width(*term) == width) {
            Some(term) => term,
            None => self.arbitrary(width, Uniformity::Invocation, Vec::new()),
        }
    }

    fn branch_to(&mut self, target: usize, condition: Option<TermId>) {
        let truth = self.terms().truth(true);
        let condition = condition.unwrap_or(truth);
        let (reach, facts) = (self.reach, self.facts);
        let edge = Edge {
            from: self.node,
            reach: self.terms().every(&[reach, condition]),
            facts: self.terms().every(&[facts, condition]),
            state: Rc::new(self.state.clone()),
        };
        self.add_edge(target, edge);
    }

    pub fn pointer_of(&mut self, id: u32) -> Result<Rc<Pointer>, Unproved> {
        match self.value(id) {
            Value::Pointer(pointer) => Ok(pointer),
            Value::Scalar(_) | Value::Composite(_) | Value::Opaque => {
                Err(self.unproved(UnprovedReason::UnknownPointer))
            }
        }
    }
}

/// Returns the pointer or image that an operation may write to.
pub(crate) fn written_pointer(operation: &SpirvOperation<'_>) -> Option<u32> {
    match operation {
        SpirvOperation::Store { pointer, .. } | SpirvOperation::ComputeAndStore { pointer, .. } => {
            Some(*pointer)
        }
        SpirvOperation::CopyMemory { target, .. } | SpirvOperation::CopyMemorySized { target, .. } => {
            Some(*target)
        }
        SpirvOperation::Atomic(access) => Some(access.pointer),
        SpirvOperation::Image(ImageOperation::Write { image, .. }) => Some(*image),
        _ => None,
    }
}
