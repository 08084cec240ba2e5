//! Plans prepared for the search: specialized to one kind of program, static nodes before nodes that depend
//! on `rf` and `co`.

use std::sync::{Arc, Mutex};

use litmus::QueryTerm;

use crate::cat::{
    Base, ClassFamilies, CompiledModel, KnownBase, Node, NodeId, PlanSize, RecursionGroup, Vocabulary,
    specialize_plan,
};
use crate::facts::StructureFacts;
use crate::quick::QuickMap;
use crate::skeleton::Skeleton;

/// A model compiled for certain storage classes, with its plans specialized by facts.
#[derive(Debug)]
pub(crate) struct Compiled {
    /// The whole model.
    pub(crate) plan: Arc<CompiledModel>,
    vocabulary: Vocabulary,
    families: ClassFamilies,
    prepared: Mutex<QuickMap<StructureFacts, Arc<PreparedPlan>>>,
    queries: Mutex<Vec<AskedQuery>>,
}

/// The terms of a query, and the plan that answers it.
type AskedQuery = (Vec<QueryTerm>, Option<Arc<Compiled>>);

/// A specialized plan.
#[derive(Debug)]
pub(crate) struct PreparedPlan {
    /// Axioms, flags and sizes are those of the whole plan, as far as the program can show them.
    pub(crate) plan: CompiledModel,
    /// The nodes below this number depend only on the program.
    pub(crate) fixed: usize,
    /// The bases that depend only on the program.
    pub(crate) leaves: Vec<(NodeId, Base)>,
    /// The base `rf`, if anything depends on it.
    pub(crate) rf: Vec<NodeId>,
    /// The base `co`, if anything depends on it.
    pub(crate) co: Vec<NodeId>,
}

impl Compiled {
    pub(crate) fn new(plan: CompiledModel, vocabulary: Vocabulary, families: ClassFamilies) -> Compiled {
        Compiled {
            plan: Arc::new(plan),
            vocabulary,
            families,
            prepared: Mutex::default(),
            queries: Mutex::default(),
        }
    }

    /// Returns the plan for programs with the facts of an event structure.
    pub(crate) fn prepared(&self, skeleton: &Skeleton) -> Arc<PreparedPlan> {
        let facts = StructureFacts::of(skeleton);
        if let Ok(known) = self.prepared.lock()
            && let Some(prepared) = known.get(&facts)
        {
            return prepared.clone();
        }
        let plan = specialize_plan(&self.plan, &self.vocabulary, &self.families, &|name, base| {
            if matches!(name, "rf" | "co") { KnownBase::Nothing } else { facts.known(name, base.mask) }
        });
        let prepared = Arc::new(PreparedPlan::new(plan));
        if let Ok(mut known) = self.prepared.lock() {
            known.insert(facts, prepared.clone());
        }
        prepared
    }

    /// Returns the plan whose executions are those that meet the query's terms; `None` if the model lacks a
    /// relation that they count.
    pub(crate) fn query(&self, terms: &[QueryTerm]) -> Option<Arc<Compiled>> {
        if let Ok(known) = self.queries.lock()
            && let Some((_, compiled)) = known.iter().find(|(asked, _)| asked == terms)
        {
            return compiled.clone();
        }
        let compiled = query_plan(&self.plan, terms)
            .map(|plan| Arc::new(Compiled::new(plan, self.vocabulary.clone(), self.families.clone())));
        if let Ok(mut known) = self.queries.lock() {
            known.push((terms.to_vec(), compiled.clone()));
        }
        compiled
    }
}

impl PreparedPlan {
    fn new(mut plan: CompiledModel) -> PreparedPlan {
        let changing = changing_nodes(&plan);
        // A stable partition keeps operands first and groups together.
        let count = plan.nodes.len();
        let order: Vec<usize> = (0..count)
            .filter(|index| !changing[*index])
            .chain((0..count).filter(|index| changing[*index]))
            .collect();
        let mut places = vec![NodeId(0); count];
        for (place, index) in order.iter().enumerate() {
            places[*index] = NodeId(place as u32);
        }
        let at = |id: NodeId| places[id.to_index()];
        plan.nodes = order.iter().map(|index| plan.nodes[*index].map_operands(at)).collect();
        plan.origins = order.iter().map(|index| plan.origins[*index]).collect();
        for RecursionGroup { nodes, bodies } in &mut plan.groups {
            let start = at(NodeId(nodes.start)).0;
            *nodes = start..start + (nodes.end - nodes.start);
            bodies.iter_mut().for_each(|body| *body = at(*body));
        }
        plan.axioms.iter_mut().for_each(|axiom| axiom.node = at(axiom.node));
        plan.sizes.iter_mut().for_each(|size| size.node = at(size.node));
        let fixed = changing.iter().filter(|changes| !**changes).count();
        let (mut leaves, mut rf, mut co) = (Vec::new(), Vec::new(), Vec::new());
        for (index, node) in plan.nodes.iter().enumerate() {
            let id = NodeId(index as u32);
            match node {
                Node::BaseRelation(base) if plan.name_text(base.name) == "rf" => rf.push(id),
                Node::BaseRelation(base) if plan.name_text(base.name) == "co" => co.push(id),
                Node::BaseSet(base) | Node::BaseRelation(base) => leaves.push((id, *base)),
                _ => {}
            }
        }
        PreparedPlan { plan, fixed, leaves, rf, co }
    }
}

/// Returns for each node if it depends on reads-from or modification order.
fn changing_nodes(plan: &CompiledModel) -> Vec<bool> {
    let mut changing = vec![false; plan.nodes.len()];
    for (index, node) in plan.nodes.iter().enumerate() {
        changing[index] = match node {
            Node::BaseRelation(base) => matches!(plan.name_text(base.name), "rf" | "co"),
            node => node.operand_nodes().any(|operand| changing[operand.to_index()]),
        };
        // A recursive group is dynamic as a whole.
        if let Some(group) = plan.groups.iter().find(|group| group.nodes.end as usize == index + 1) {
            let range = group.nodes.start as usize..group.nodes.end as usize;
            let changes = changing[range.clone()].contains(&true)
                || group.bodies.iter().any(|body| changing[body.to_index()]);
            changing[range].fill(changes);
        }
    }
    changing
}

/// Returns the plan whose executions meet the query; `None` if the model lacks a relation that it counts.
fn query_plan(plan: &CompiledModel, terms: &[QueryTerm]) -> Option<CompiledModel> {
    let mut asked = plan.clone();
    let consistent = terms.contains(&QueryTerm::Consistent);
    let mut index = 0;
    asked.axioms.retain(|axiom| {
        // Facts restrict executions even in a query without `consistent[X]`.
        let kept = !axiom.flag && (consistent || plan.facts.contains(&index));
        index += 1;
        kept
    });
    asked.facts.clear();
    for term in terms {
        let (node, comparison, number) = match term {
            QueryTerm::Consistent => continue,
            QueryTerm::Races(comparison, number) => (races(plan)?, *comparison, *number),
            QueryTerm::ReleaseSequences(comparison, number) => {
                (plan.find_definition("rs")?, *comparison, *number)
            }
        };
        asked.sizes.push(PlanSize { node, comparison, number });
    }
    Some(asked)
}

/// Returns the data-race relation of a model: its `dr` or `race`.
fn races(plan: &CompiledModel) -> Option<NodeId> {
    plan.find_definition("dr").or_else(|| plan.find_definition("race"))
}
