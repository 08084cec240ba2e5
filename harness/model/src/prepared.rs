//! Plans prepared for the search: specialized to one kind of program, static nodes before nodes that depend
//! on `rf` and `co`.

use std::sync::{Arc, Mutex};

use litmus::QueryTerm;

use crate::cat::{
    BaseReference, ClassFamilies, CompiledModel, KnownBase, NodeId, PlanNode, RecursionGroup, SizeConstraint,
    Vocabulary, specialize_plan,
};
use crate::facts::StructureFacts;
use crate::quick::QuickMap;
use crate::skeleton::Skeleton;

/// A model compiled for certain storage classes, with its plans specialized by facts.
#[derive(Debug)]
pub(crate) struct ModelPlans {
    /// The whole model.
    pub(crate) plan: Arc<CompiledModel>,
    vocabulary: Vocabulary,
    families: ClassFamilies,
    prepared_plans: Mutex<QuickMap<StructureFacts, Arc<PreparedPlan>>>,
    query_plans: Mutex<Vec<QueryPlan>>,
}

/// The terms of a query, and the plan that answers it.
type QueryPlan = (Vec<QueryTerm>, Option<Arc<ModelPlans>>);

/// A specialized plan.
#[derive(Debug)]
pub(crate) struct PreparedPlan {
    /// Axioms, flags and sizes are those of the whole plan, as far as the program can show them.
    pub(crate) plan: CompiledModel,
    /// The nodes below this number depend only on the program.
    pub(crate) first_dynamic: usize,
    /// The bases that depend only on the program.
    pub(crate) static_bases: Vec<(NodeId, BaseReference)>,
    /// The base `rf`, if anything depends on it.
    pub(crate) rf: Vec<NodeId>,
    /// The base `co`, if anything depends on it.
    pub(crate) co: Vec<NodeId>,
}

impl ModelPlans {
    pub(crate) fn new(plan: CompiledModel, vocabulary: Vocabulary, families: ClassFamilies) -> ModelPlans {
        ModelPlans {
            plan: Arc::new(plan),
            vocabulary,
            families,
            prepared_plans: Mutex::default(),
            query_plans: Mutex::default(),
        }
    }

    /// Returns the plan for programs with the facts of an event structure.
    pub(crate) fn prepare_plan(&self, skeleton: &Skeleton) -> Arc<PreparedPlan> {
        let facts = StructureFacts::from_skeleton(skeleton);
        if let Ok(plans) = self.prepared_plans.lock()
            && let Some(prepared) = plans.get(&facts)
        {
            return prepared.clone();
        }
        let plan = specialize_plan(&self.plan, &self.vocabulary, &self.families, &|name, base| {
            if matches!(name, "rf" | "co") { KnownBase::Unknown } else { facts.known_base(name, base.mask) }
        });
        let prepared = Arc::new(PreparedPlan::new(plan));
        if let Ok(mut plans) = self.prepared_plans.lock() {
            plans.insert(facts, prepared.clone());
        }
        prepared
    }

    /// Returns the plan whose executions are those that meet the query's terms; `None` if the model lacks a
    /// relation that they count.
    pub(crate) fn plans_for_query(&self, terms: &[QueryTerm]) -> Option<Arc<ModelPlans>> {
        if let Ok(plans) = self.query_plans.lock()
            && let Some((_, compiled)) = plans.iter().find(|(asked, _)| asked == terms)
        {
            return compiled.clone();
        }
        let compiled = query_plan(&self.plan, terms)
            .map(|plan| Arc::new(ModelPlans::new(plan, self.vocabulary.clone(), self.families.clone())));
        if let Ok(mut plans) = self.query_plans.lock() {
            plans.push((terms.to_vec(), compiled.clone()));
        }
        compiled
    }
}

impl PreparedPlan {
    /// Returns the plan for executions from which events may be missing, so that every node depends on the execution.
    pub(crate) fn with_missing_events(&self) -> PreparedPlan {
        PreparedPlan {
            plan: self.plan.clone(),
            first_dynamic: 0,
            static_bases: self.static_bases.clone(),
            rf: self.rf.clone(),
            co: self.co.clone(),
        }
    }

    fn new(mut plan: CompiledModel) -> PreparedPlan {
        let is_dynamic = find_dynamic_nodes(&plan);
        // A stable partition keeps operands first and groups together.
        let count = plan.nodes.len();
        let order: Vec<usize> = (0..count)
            .filter(|index| !is_dynamic[*index])
            .chain((0..count).filter(|index| is_dynamic[*index]))
            .collect();
        let mut places = vec![NodeId(0); count];
        for (place, index) in order.iter().enumerate() {
            places[*index] = NodeId(place as u32);
        }
        let new_id = |id: NodeId| places[id.to_index()];
        plan.nodes = order.iter().map(|index| plan.nodes[*index].map_operands(new_id)).collect();
        plan.origins = order.iter().map(|index| plan.origins[*index]).collect();
        for RecursionGroup { nodes, bodies } in &mut plan.groups {
            let start = new_id(NodeId(nodes.start)).0;
            *nodes = start..start + (nodes.end - nodes.start);
            bodies.iter_mut().for_each(|body| *body = new_id(*body));
        }
        plan.axioms.iter_mut().for_each(|axiom| axiom.node = new_id(axiom.node));
        plan.size_constraints.iter_mut().for_each(|size| size.node = new_id(size.node));
        let first_dynamic = is_dynamic.iter().filter(|changes| !**changes).count();
        let (mut static_bases, mut rf, mut co) = (Vec::new(), Vec::new(), Vec::new());
        for (index, node) in plan.nodes.iter().enumerate() {
            let id = NodeId(index as u32);
            match node {
                PlanNode::BaseRelation(base) if plan.name_text(base.name) == "rf" => rf.push(id),
                PlanNode::BaseRelation(base) if plan.name_text(base.name) == "co" => co.push(id),
                PlanNode::BaseSet(base) | PlanNode::BaseRelation(base) => static_bases.push((id, *base)),
                _ => {}
            }
        }
        PreparedPlan { plan, first_dynamic, static_bases, rf, co }
    }
}

/// Returns for each node if it depends on reads-from or modification order.
fn find_dynamic_nodes(plan: &CompiledModel) -> Vec<bool> {
    let mut is_dynamic = vec![false; plan.nodes.len()];
    for (index, node) in plan.nodes.iter().enumerate() {
        is_dynamic[index] = match node {
            PlanNode::BaseRelation(base) => matches!(plan.name_text(base.name), "rf" | "co"),
            node => node.operand_nodes().any(|operand| is_dynamic[operand.to_index()]),
        };
        // A recursive group is dynamic as a whole.
        if let Some(group) = plan.groups.iter().find(|group| group.nodes.end as usize == index + 1) {
            let range = group.nodes.start as usize..group.nodes.end as usize;
            let changes = is_dynamic[range.clone()].contains(&true)
                || group.bodies.iter().any(|body| is_dynamic[body.to_index()]);
            is_dynamic[range].fill(changes);
        }
    }
    is_dynamic
}

/// Returns the plan whose executions meet the query; `None` if the model lacks a relation that it counts.
fn query_plan(plan: &CompiledModel, terms: &[QueryTerm]) -> Option<CompiledModel> {
    let mut restricted = plan.clone();
    let consistent = terms.contains(&QueryTerm::Consistent);
    let mut index = 0;
    restricted.axioms.retain(|axiom| {
        // Facts restrict executions even in a query without `consistent[X]`.
        let is_kept = !axiom.is_flag && (consistent || plan.well_formedness_axioms.contains(&index));
        index += 1;
        is_kept
    });
    restricted.well_formedness_axioms.clear();
    for term in terms {
        let (node, comparison, number) = match term {
            QueryTerm::Consistent => continue,
            QueryTerm::Races(comparison, number) => (find_race_relation(plan)?, *comparison, *number),
            QueryTerm::ReleaseSequences(comparison, number) => {
                (plan.find_definition("rs")?, *comparison, *number)
            }
        };
        restricted.size_constraints.push(SizeConstraint { node, comparison, bound: number });
    }
    Some(restricted)
}

/// Returns the data-race relation of a model: its `dr` or `race`.
fn find_race_relation(plan: &CompiledModel) -> Option<NodeId> {
    plan.find_definition("dr").or_else(|| plan.find_definition("race"))
}
