//! A cat model compiled for one kind of program: set and relation operations in evaluation order.
//!
//! [`CompiledModel::nodes`] is topologically sorted: operands precede their users. Equal expressions share
//! one node. Constant folding has applied the laws of relation algebra and the storage classes of the
//! program. Base sets and relations are leaves that the engine supplies.

use super::source::{CatSpan, SourceText};
use std::ops::Range;
use std::sync::Arc;

/// Index of a node in [`CompiledModel::nodes`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId(pub u32);

impl NodeId {
    /// The index as a number to index with.
    #[inline]
    pub fn to_index(self) -> usize {
        self.0 as usize
    }
}

/// Index of a base name in [`CompiledModel::names`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NameId(pub u32);

/// Index of a group of mutually recursive definitions in [`CompiledModel::groups`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GroupId(pub u32);

/// Index of a statement in [`CompiledModel::statements`]: statements are numbered in the order of the text, includes in place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StatementId(pub u32);

/// The kind of a node: a set of events or a relation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum NodeKind {
    Set,
    Relation,
}

/// A set or relation that the engine supplies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BaseReference {
    /// Its name, in [`CompiledModel::names`].
    pub name: NameId,
    /// The storage classes of a base that is indexed by a set of them (bit i = class i), as `SEM(M)`.
    pub mask: Option<u8>,
}

/// One operation. Operands are indices of earlier nodes, except in a [`RecursionGroup`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PlanNode {
    /// A set that the engine supplies.
    BaseSet(BaseReference),
    /// A relation that the engine supplies.
    BaseRelation(BaseReference),
    /// The set or relation without members.
    Empty(NodeKind),
    /// All events, or each event with each.
    Full(NodeKind),
    /// Members of either operand.
    Union(NodeKind, NodeId, NodeId),
    /// Members of both.
    Intersection(NodeKind, NodeId, NodeId),
    /// Members of the first that are not in the second.
    Difference(NodeKind, NodeId, NodeId),
    /// Events or pairs that are not in the operand.
    Complement(NodeKind, NodeId),

    /// Events with a target in the relation.
    Domain(NodeId),
    /// Events with a source in the relation.
    Range(NodeId),

    /// Each event with itself.
    Identity,
    /// Each event of a set with itself.
    IdentityOn(NodeId),
    /// Each event of the first set with each of the second.
    Product(NodeId, NodeId),
    /// Relational composition.
    Sequence(NodeId, NodeId),
    /// Pairs with source and target exchanged.
    Inverse(NodeId),
    /// Transitive closure.
    Plus(NodeId),
    /// Reflexive and transitive closure.
    Star(NodeId),
    /// Reflexive closure.
    Optional(NodeId),
    /// `r \ (r; r⁺)`.
    Immediate(NodeId),
    /// Pairs of the relation whose source is in the set: set first, relation second (`[s]; r`).
    RestrictRows(NodeId, NodeId),
    /// Pairs of the relation whose target is in the set: relation first, set second (`r; [s]`).
    RestrictColumns(NodeId, NodeId),

    /// Member of a recursive group: its value in the least fixpoint.
    Recursive {
        group: GroupId,
        /// Index of the member in its group.
        index: u32,
        /// Set or relation.
        node_kind: NodeKind,
    },
}

impl PlanNode {
    /// Returns the operands; none for leaves and [`PlanNode::Recursive`] (see [`RecursionGroup::bodies`]).
    pub fn operand_nodes(self) -> impl Iterator<Item = NodeId> {
        let mut operands = [None, None];
        let mut free = operands.iter_mut();
        self.map_operands(|operand| {
            if let Some(slot) = free.next() {
                *slot = Some(operand);
            }
            operand
        });
        operands.into_iter().flatten()
    }

    /// Returns the kind of the node's value: set or relation.
    pub fn kind(self) -> NodeKind {
        match self {
            PlanNode::BaseSet(_) | PlanNode::Domain(_) | PlanNode::Range(_) => NodeKind::Set,
            PlanNode::Empty(kind)
            | PlanNode::Full(kind)
            | PlanNode::Union(kind, ..)
            | PlanNode::Intersection(kind, ..)
            | PlanNode::Difference(kind, ..)
            | PlanNode::Complement(kind, _)
            | PlanNode::Recursive { node_kind: kind, .. } => kind,
            _ => NodeKind::Relation,
        }
    }

    /// Returns true if the value shrinks while this operand grows.
    pub(crate) fn is_antitone_in(self, operand: NodeId) -> bool {
        match self {
            PlanNode::Difference(_, _, subtracted) => subtracted == operand,
            PlanNode::Complement(..) => true,
            _ => false,
        }
    }

    pub(crate) fn map_operands(self, mut replace: impl FnMut(NodeId) -> NodeId) -> PlanNode {
        match self {
            PlanNode::BaseSet(_)
            | PlanNode::BaseRelation(_)
            | PlanNode::Empty(_)
            | PlanNode::Full(_)
            | PlanNode::Identity
            | PlanNode::Recursive { .. } => self,
            PlanNode::Domain(a) => PlanNode::Domain(replace(a)),
            PlanNode::Range(a) => PlanNode::Range(replace(a)),
            PlanNode::IdentityOn(a) => PlanNode::IdentityOn(replace(a)),
            PlanNode::Product(a, b) => PlanNode::Product(replace(a), replace(b)),
            PlanNode::Union(kind, a, b) => PlanNode::Union(kind, replace(a), replace(b)),
            PlanNode::Intersection(kind, a, b) => PlanNode::Intersection(kind, replace(a), replace(b)),
            PlanNode::Difference(kind, a, b) => PlanNode::Difference(kind, replace(a), replace(b)),
            PlanNode::Complement(kind, a) => PlanNode::Complement(kind, replace(a)),
            PlanNode::Sequence(a, b) => PlanNode::Sequence(replace(a), replace(b)),
            PlanNode::Inverse(a) => PlanNode::Inverse(replace(a)),
            PlanNode::Plus(a) => PlanNode::Plus(replace(a)),
            PlanNode::Star(a) => PlanNode::Star(replace(a)),
            PlanNode::Optional(a) => PlanNode::Optional(replace(a)),
            PlanNode::Immediate(a) => PlanNode::Immediate(replace(a)),
            PlanNode::RestrictRows(a, b) => PlanNode::RestrictRows(replace(a), replace(b)),
            PlanNode::RestrictColumns(a, b) => PlanNode::RestrictColumns(replace(a), replace(b)),
        }
    }
}

/// Mutually recursive definitions (`let rec … and …`), evaluated together to their least fixpoint.
///
/// The members' [`PlanNode::Recursive`] nodes are first in `nodes`, in order; the nodes that depend on them follow.
/// To evaluate: set the members empty, evaluate the rest of `nodes` in order, copy each body to its member, and repeat
/// until no member changes. Then every node of the range holds its final value. Groups never nest or overlap.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecursionGroup {
    /// Indices of the members and of all nodes that their bodies compute from them.
    pub nodes: Range<u32>,
    /// The body of each member.
    pub bodies: Vec<NodeId>,
}

/// The constraint of an axiom on its node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum AxiomKind {
    /// No event reaches itself.
    Acyclic,
    /// No event is related to itself.
    Irreflexive,
    /// No pair, or no event if the node is a set.
    Empty,
}

/// An `acyclic`, `irreflexive` or `empty` line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Axiom {
    pub kind: AxiomKind,
    /// True if the constraint is negated.
    pub negated: bool,
    /// True for a flag, which is raised if its constraint holds (`flag ~empty dr as racy`) and forbids
    /// nothing.
    pub is_flag: bool,
    pub node: NodeId,
    /// The word after `as`.
    pub name: Option<String>,
    /// The line.
    pub statement: StatementId,
}

/// A constraint on the number of members of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SizeConstraint {
    pub node: NodeId,
    pub comparison: litmus::Comparison,
    /// Right operand of the comparison.
    pub bound: u32,
}

/// A statement of the model's text, for explanations and for the list of clauses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StatementSource {
    /// The names that it defines, or the name of the axiom.
    pub names: Vec<String>,
    /// Source location of the statement.
    pub span: CatSpan,
    /// Clauses of the specification that it encodes, as its comment cites them.
    pub clauses: Vec<String>,
}

/// A `let` definition of a set or a relation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Definition {
    pub name: String,
    /// Its value.
    pub node: NodeId,
    /// The statement that defines it.
    pub statement: StatementId,
}

/// Name of an anonymous node in explanations: a function call, or a part of a union with its own citation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeLabel {
    pub node: NodeId,
    /// The function's name; `None` for a part of a union.
    pub function: Option<String>,
    /// The statement that defines the function or contains the part.
    pub statement: StatementId,
    /// The function's definition, or the part of the union.
    pub span: CatSpan,
    /// The clauses that are cited there.
    pub clauses: Vec<String>,
}

#[derive(Clone, Debug, Default)]
pub struct CompiledModel {
    /// The operations, operands first.
    pub nodes: Vec<PlanNode>,
    /// For each node the first statement that uses it.
    pub origins: Vec<StatementId>,
    /// Names of base sets and relations.
    pub names: Vec<String>,
    /// Recursive groups in the order of their nodes.
    pub groups: Vec<RecursionGroup>,
    /// The axioms and flags in the order of the text.
    pub axioms: Vec<Axiom>,
    /// Indices of the axioms that define well-formed executions, consistent or not.
    pub well_formedness_axioms: Vec<usize>,
    /// Cardinality constraints in addition to the axioms.
    pub size_constraints: Vec<SizeConstraint>,
    /// The definitions in the order of the text; a later one of the same name hides an earlier one.
    pub definitions: Vec<Definition>,
    /// Names for explanations, innermost first; a node may have several.
    pub labels: Vec<NodeLabel>,
    /// The statements in the order of the text.
    pub statements: Vec<StatementSource>,
    /// The texts that the statements' spans point into.
    pub sources: Arc<[SourceText]>,
}

impl CompiledModel {
    /// The node.
    ///
    /// # Panics
    /// On an index of another plan.
    #[inline]
    pub fn node_at(&self, id: NodeId) -> PlanNode {
        self.nodes[id.to_index()]
    }

    /// Adds the fact that the relation with this name is transitive in all executions; returns false if the
    /// name is unknown.
    pub(crate) fn require_transitive(&mut self, name: &str) -> bool {
        let definition = self.definitions.iter().rev().find(|definition| definition.name == name);
        let Some(&Definition { node, statement, .. }) = definition else { return false };
        let mut add = |new: PlanNode| {
            self.nodes.push(new);
            self.origins.push(statement);
            NodeId(self.nodes.len() as u32 - 1)
        };
        // A relation is transitive exactly if `(r; r) \ r` is empty.
        let twice = add(PlanNode::Sequence(node, node));
        let missing_pairs = add(PlanNode::Difference(NodeKind::Relation, twice, node));
        self.well_formedness_axioms.push(self.axioms.len());
        self.axioms.push(Axiom {
            kind: AxiomKind::Empty,
            negated: false,
            is_flag: false,
            node: missing_pairs,
            name: Some(format!("{name}-transitive")),
            statement,
        });
        true
    }

    /// The name of a base set or relation.
    pub fn name_text(&self, id: NameId) -> &str {
        self.names.get(id.0 as usize).map_or("", String::as_str)
    }

    /// Returns the value of the last `let` that defines the name.
    pub fn find_definition(&self, name: &str) -> Option<NodeId> {
        self.definitions
            .iter()
            .rev()
            .find(|definition| definition.name == name)
            .map(|definition| definition.node)
    }

    /// Returns the name of a node: its first `let` definition, or the name of the base.
    pub fn name_of(&self, node: NodeId) -> Option<&str> {
        if let Some(definition) = self.definitions.iter().find(|definition| definition.node == node) {
            return Some(&definition.name);
        }
        match self.node_at(node) {
            PlanNode::BaseSet(base) | PlanNode::BaseRelation(base) => Some(self.name_text(base.name)),
            _ => None,
        }
    }

    /// The statement.
    ///
    /// # Panics
    /// On an index of another plan.
    pub fn statement_at(&self, id: StatementId) -> &StatementSource {
        &self.statements[id.0 as usize]
    }

    /// Marks the transitive operands of the given nodes, including the nodes themselves.
    pub fn mark_needed(&self, roots: impl IntoIterator<Item = NodeId>) -> Vec<bool> {
        let mut needed = vec![false; self.nodes.len()];
        let mut worklist: Vec<NodeId> = roots.into_iter().collect();
        while let Some(id) = worklist.pop() {
            if std::mem::replace(&mut needed[id.to_index()], true) {
                continue;
            }
            match self.node_at(id) {
                // A group is evaluated as a whole.
                PlanNode::Recursive { group, .. } => {
                    let group = &self.groups[group.0 as usize];
                    worklist.extend(group.nodes.clone().map(NodeId));
                }
                node => worklist.extend(node.operand_nodes()),
            }
        }
        needed
    }
}
